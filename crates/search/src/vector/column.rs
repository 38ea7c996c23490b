//! The values of one filter field.

use super::bits::Bits;
use super::definition::Level;
use nestor_model::statement::work;
use nestor_model::{PathPart, Result, Value, ValueRef};

/// The subtype of binary values that are UUIDs.
const UUID: u8 = 4;

/// Whether filters see such values.
pub fn is_seen(value: ValueRef<'_>) -> bool {
    matches!(
        value,
        ValueRef::Null
            | ValueRef::Bool(_)
            | ValueRef::Int32(_)
            | ValueRef::Int64(_)
            | ValueRef::Double(_)
            | ValueRef::DateTime(_)
            | ValueRef::ObjectId(_)
            | ValueRef::String(_)
            | ValueRef::Binary { subtype: UUID, .. }
    )
}

/// The values that filters see of one field, of all entries of a segment.
#[derive(Debug)]
pub struct Column {
    level: Level,
    /// Entry by entry.
    values: Vec<Value>,
    /// Where the values of each entry end.
    ends: Vec<usize>,
    /// The entries that have the field, whatever its values are.
    present: Bits,
    /// Bytes that the values take.
    weight: usize,
}

impl Column {
    /// One of no entries.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            values: Vec::new(),
            ends: Vec::new(),
            present: Bits::default(),
            weight: 0,
        }
    }

    /// What its entries are.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Adds an entry with what it has at the path.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn push(&mut self, entry: ValueRef<'_>, path: &[PathPart]) -> Result<()> {
        let mut is_present = false;
        visit(entry, path, &mut |value| {
            is_present = true;
            self.add(value)
        })?;
        self.ends.push(self.values.len());
        self.present.push(is_present);
        Ok(())
    }

    fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        match value {
            ValueRef::Array(items) => {
                for item in items {
                    work(1)?;
                    self.keep(item);
                }
            }
            value => self.keep(value),
        }
        Ok(())
    }

    fn keep(&mut self, value: ValueRef<'_>) {
        if is_seen(value) {
            let value = value.to_value();
            self.weight += value.weight();
            self.values.push(value);
        }
    }

    /// Adds an entry of another column.
    ///
    /// Errors: those of the statement's interrupt.
    pub fn copy(&mut self, from: &Self, entry: usize) -> Result<()> {
        let values = from.of(entry);
        work(1 + values.len())?;
        self.weight += values.iter().map(Value::weight).sum::<usize>();
        self.values.extend_from_slice(values);
        self.ends.push(self.values.len());
        self.present.push(from.present.has(entry));
        Ok(())
    }

    /// The values of an entry.
    pub fn of(&self, entry: usize) -> &[Value] {
        let start = match entry {
            0 => 0,
            entry => self.ends[entry - 1],
        };
        &self.values[start..self.ends[entry]]
    }

    /// The entries that have the field.
    pub fn present(&self) -> &Bits {
        &self.present
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.weight + self.ends.capacity() * size_of::<usize>() + self.present.bytes()
    }
}

/// Calls `see` with what is at the path, arrays on the way being gone through.
///
/// Errors: those of `see`, and of the statement's interrupt.
pub fn visit<'a>(
    value: ValueRef<'a>,
    path: &[PathPart],
    see: &mut impl FnMut(ValueRef<'a>) -> Result<()>,
) -> Result<()> {
    let (mut value, mut path) = (value, path);
    while let Some((part, rest)) = path.split_first() {
        match value {
            ValueRef::Document(document) => match document.get(&part.name) {
                Some(field) => (value, path) = (field, rest),
                None => return Ok(()),
            },
            ValueRef::Array(items) => {
                for item in items {
                    work(1)?;
                    if let ValueRef::Document(_) = item {
                        visit(item, path, see)?;
                    }
                }
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
    see(value)
}
