//! What a server answers, and what it is asked with: values of few kinds in buffers that are used again and again.

use std::ops::Range;

/// A value of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A whole number, or a boolean as 0 and 1.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Bytes of the buffer of the [`Rows`]: a text, or a document of MongoDB's as BSON.
    Bytes {
        /// The first.
        start: u32,
        /// How many.
        length: u32,
    },
}

/// The rows of an answer, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// What was read from the connection.
    pub(crate) buffer: Vec<u8>,
    pub(crate) cells: Vec<Cell>,
    /// Where the cells of each row end.
    pub(crate) ends: Vec<usize>,
    /// Rows or documents that a write has changed.
    pub affected: u64,
}

impl Rows {
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.cells.clear();
        self.ends.clear();
        self.affected = 0;
    }

    pub(crate) fn push_bytes(&mut self, range: Range<usize>) {
        // Answers are far shorter than 4 GiB: each protocol limits its messages to less.
        self.cells.push(Cell::Bytes {
            start: range.start as u32,
            length: range.len() as u32,
        });
    }

    pub(crate) fn end_row(&mut self) {
        self.ends.push(self.cells.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The values of row `index`.
    pub fn row(&self, index: usize) -> &[Cell] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.cells[begin..self.ends[index]]
    }

    /// The whole number in column `column` of row `index`; what is a number with a fraction counts when it has none.
    pub fn int(&self, index: usize, column: usize) -> Result<i64, String> {
        match self.row(index).get(column) {
            Some(Cell::Int(number)) => Ok(*number),
            Some(Cell::Float(number)) if number.fract() == 0.0 => Ok(*number as i64),
            Some(Cell::Bytes { .. }) => {
                let text = self.bytes(index, column)?;
                let text = std::str::from_utf8(text).unwrap_or_default();
                text.parse()
                    .map_err(|_| format!("a whole number was expected, not {text:?}"))
            }
            other => Err(format!("a whole number was expected, not {other:?}")),
        }
    }

    /// The number in column `column` of row `index`.
    pub fn float(&self, index: usize, column: usize) -> Result<f64, String> {
        match self.row(index).get(column) {
            Some(Cell::Int(number)) => Ok(*number as f64),
            Some(Cell::Float(number)) => Ok(*number),
            Some(Cell::Bytes { .. }) => {
                let text = self.bytes(index, column)?;
                let text = std::str::from_utf8(text).unwrap_or_default();
                text.parse().map_err(|_| format!("a number was expected, not {text:?}"))
            }
            other => Err(format!("a number was expected, not {other:?}")),
        }
    }

    /// The text in column `column` of row `index`.
    pub fn bytes(&self, index: usize, column: usize) -> Result<&[u8], String> {
        match self.row(index).get(column) {
            Some(Cell::Bytes { start, length }) => {
                Ok(&self.buffer[*start as usize..*start as usize + *length as usize])
            }
            other => Err(format!("a text was expected, not {other:?}")),
        }
    }
}

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Int(i64),
    Text { start: usize, length: usize },
}

/// The parameters of one call.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    pub(crate) list: Vec<Argument>,
    pub(crate) bytes: Vec<u8>,
}

impl Arguments {
    /// None.
    pub fn clear(&mut self) -> &mut Self {
        self.list.clear();
        self.bytes.clear();
        self
    }

    /// One more, a whole number.
    pub fn int(&mut self, number: i64) -> &mut Self {
        self.list.push(Argument::Int(number));
        self
    }

    /// One more, the text that `write` appends. Its length is that of the statement's parameter.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - start;
        self.list.push(Argument::Text { start, length });
        self
    }
}
