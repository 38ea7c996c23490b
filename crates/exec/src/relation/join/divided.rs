//! Joins whose right input does not fit into memory: rows of both inputs in files, divided by their keys.
//!
//! Of the files of a level those behind the first few are on disk, on both sides; the rows of the others are joined at once. With each row that there is no room for
//! half of what is in memory follows the rest. When the left input is at its end, each pair of files is an input of its own, which may be divided again by other bits.
//! Where that does not help, because most rows have the same key, the right file is read block by block, and the left one goes by each of these.

use super::keys::Keys;
use crate::kept::Kept;
use crate::relation::Run;
use crate::relation::apart::{Apart, FILES, LEVEL_MAX, Waiting};
use crate::relation::spilled::Written;
use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Chunk, Scalar};
use std::sync::Arc;

/// What the rows of a side are in files: keys that are no columns of it, then the columns.
pub(super) struct Layout {
    /// The column that each key is; `None` for those that stand before.
    keys: Vec<Option<usize>>,
    /// Whether there are columns.
    has_columns: bool,
}

impl Layout {
    /// For keys over rows with so many columns before those of the side.
    pub fn new<S: Scalar>(keys: &[S], before: usize, has_columns: bool) -> Self {
        let place = |key: &S| {
            let place = key.place().filter(|_| has_columns && key.is_own_key());
            place.and_then(|place| place.checked_sub(before))
        };
        Self {
            keys: keys.iter().map(place).collect(),
            has_columns,
        }
    }

    fn row(&self, chunk: &Chunk, keys: &[Arc<Vector>], row: usize) -> Vec<Value> {
        let others = keys.iter().zip(&self.keys).filter(|(_, place)| place.is_none());
        let mut values: Vec<Value> = others.map(|(key, _)| key.value(row)).collect();
        if self.has_columns {
            values.extend(chunk.columns.iter().map(|column| column.value(row)));
        }
        values
    }

    /// Rows of a file with their keys.
    pub fn read(&self, mut chunk: Chunk) -> (Chunk, Keys) {
        let others = self.keys.iter().filter(|place| place.is_none()).count();
        let columns = chunk.columns.split_off(others.min(chunk.columns.len()));
        let mut others = std::mem::replace(&mut chunk.columns, columns).into_iter();
        let keys = self.keys.iter().map(|place| match place {
            Some(place) => chunk.columns[*place].clone(),
            None => others.next().unwrap_or_default(),
        });
        let keys = Keys::of(keys.collect());
        (chunk, keys)
    }
}

/// The rows of both inputs that are on their way to files.
pub(super) struct Divided {
    level: u32,
    /// Rows of the files before this one are in memory.
    here: usize,
    right: Option<Apart>,
    /// The right files, once the right input is at its end.
    written: Vec<Option<Waiting>>,
    left: Option<Apart>,
    /// Rows of the right input.
    pub right_rows: u64,
    /// Rows without keys have no pair: they go anywhere.
    next: usize,
    buffers: Kept,
}

impl Divided {
    /// For inputs that were divided so often before.
    ///
    /// Errors: those of too little memory.
    pub fn new(level: u32, right_rows: u64) -> Result<Self> {
        let mut buffers = Kept::default();
        Ok(Self {
            level,
            here: FILES,
            right: Some(Apart::new(level, &mut buffers)?),
            written: Vec::new(),
            left: None,
            right_rows,
            next: 0,
            buffers,
        })
    }

    /// Half of what is in memory follows what is not.
    pub fn halve(&mut self) {
        self.here /= 2;
    }

    /// Puts right rows away, of those at `places`; the places of those that stay.
    ///
    /// Errors: those of files and of the interrupt.
    pub fn put_right<S: Scalar>(
        &mut self,
        (chunk, keys): (&Chunk, &Keys),
        places: Option<Vec<u32>>,
        layout: &Layout,
        run: &Run<'_, '_, S>,
    ) -> Result<Vec<u32>> {
        let mut stay = Vec::new();
        let Some(right) = &mut self.right else { return Ok(stay) };
        for place in places.unwrap_or_else(|| (0..chunk.rows as u32).collect()) {
            let row = place as usize;
            let file = match keys.is_null(row) {
                true => {
                    self.next += 1;
                    self.next % FILES
                }
                false => right.file_of(&keys.parts, row),
            };
            match file < self.here {
                true => stay.push(place),
                false => right.push(file, layout.row(chunk, &keys.parts, row), run)?,
            }
        }
        Ok(stay)
    }

    /// The right input is at its end.
    ///
    /// Errors: those of files.
    pub fn right_is_over<S>(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        if let Some(right) = self.right.take() {
            self.written = right.finish(run)?;
            self.left = Some(Apart::new(self.level, &mut self.buffers)?);
        }
        Ok(())
    }

    /// Puts left rows away that may have a pair in a file; the places of the others.
    ///
    /// Errors: those of files and of the interrupt.
    pub fn put_left<S: Scalar>(
        &mut self,
        chunk: &Chunk,
        keys: &Keys,
        layout: &Layout,
        run: &Run<'_, '_, S>,
    ) -> Result<Vec<u32>> {
        let mut stay = Vec::new();
        let Some(left) = &mut self.left else { return Ok(stay) };
        for row in 0..chunk.rows {
            let file = left.file_of(&keys.parts, row);
            match keys.is_null(row) || self.written[file].is_none() {
                true => stay.push(row as u32),
                false => left.push(file, layout.row(chunk, &keys.parts, row), run)?,
            }
        }
        Ok(stay)
    }

    /// The files of both sides. Right rows are wanted without left ones too if that is said.
    ///
    /// Errors: those of files.
    pub fn finish<S>(self, keeps_right: bool, run: &Run<'_, '_, S>) -> Result<Vec<Pair>> {
        let left = self.left.map_or_else(|| Ok(Vec::new()), |left| left.finish(run))?;
        let mut left = left.into_iter();
        let mut pairs = Vec::new();
        for right in self.written {
            let left = left.next().flatten().map(|left| left.rows);
            let Some(Waiting { rows: right, level }) = right.filter(|_| left.is_some() || keeps_right) else {
                continue;
            };
            let is_most = right.rows() > self.right_rows / 4 * 3;
            pairs.push(Pair {
                in_blocks: left.is_none() || is_most || level >= LEVEL_MAX,
                seen: Seen::default(),
                left,
                right,
                level,
            });
        }
        Ok(pairs)
    }
}

/// Files of rows that may be pairs.
pub(super) struct Pair {
    pub left: Option<Written>,
    pub right: Written,
    /// How often the rows were divided.
    pub level: u32,
    /// The right file is read block by block, and not divided any more.
    pub in_blocks: bool,
    /// Which left rows had a pair, where there are several blocks.
    pub seen: Seen,
}

impl Pair {
    /// Whether left rows have no pair behind the block that they go by.
    pub fn is_last(&self) -> bool {
        self.right.is_over()
    }

    /// Goes back to the first left row.
    ///
    /// Errors: those of the file.
    pub fn again(&mut self) -> Result<()> {
        self.seen.row = 0;
        self.left.as_mut().map_or(Ok(()), Written::rewind)
    }
}

/// Which of the rows that go by several times had a pair.
#[derive(Default)]
pub(super) struct Seen {
    /// The number of the next row.
    pub row: u64,
    bits: Vec<u64>,
    kept: Kept,
}

impl Seen {
    /// Whether a row had one.
    pub fn has(&self, row: u64) -> bool {
        let bits = self.bits.get((row / 64) as usize);
        bits.is_some_and(|bits| bits >> (row % 64) & 1 == 1)
    }

    /// It has one.
    ///
    /// Errors: those of too little memory.
    pub fn add(&mut self, row: u64) -> Result<()> {
        let at = (row / 64) as usize;
        if self.bits.len() <= at {
            self.kept.grow_spilling((at + 1 - self.bits.len()) * 8)?;
            self.bits.resize(at + 1, 0);
        }
        self.bits[at] |= 1 << (row % 64);
        Ok(())
    }
}
