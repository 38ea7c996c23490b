//! Values by rows, and rows by values.

use super::key::RowId;
use nestor_model::{Str, Value, ValueRef};
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// A value of a column.
#[derive(Clone, Debug)]
pub(in crate::text) enum Atom {
    Null,
    /// Numbers are doubles, whatever their type; 0 has one sign.
    Number(f64),
    Token(Str),
    Uuid([u8; 16]),
    ObjectId([u8; 12]),
    Bool(bool),
    Date(i64),
}

impl Atom {
    /// A number.
    pub(in crate::text) fn number(number: f64) -> Self {
        match number {
            number if number.is_nan() => Self::Number(f64::NAN),
            number => Self::Number(number + 0.0),
        }
    }

    /// Where its type stands among others.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Number(_) => 1,
            Self::Token(_) => 2,
            Self::Uuid(_) => 3,
            Self::ObjectId(_) => 4,
            Self::Bool(_) => 5,
            Self::Date(_) => 6,
        }
    }

    /// Its number.
    pub(in crate::text) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The BSON value.
    pub(in crate::text) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Double(*number),
            Self::Token(token) => Value::String(token.clone()),
            Self::Uuid(bytes) => ValueRef::Binary { subtype: 4, bytes }.to_value(),
            Self::ObjectId(bytes) => Value::ObjectId(nestor_model::ObjectId(*bytes)),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Date(at) => Value::DateTime(*at),
        }
    }
}

impl Atom {
    /// What a row is sorted by as a value of BSON; of what has nothing, the lowest key.
    pub(in crate::text) fn sort_value(atom: Option<&Self>) -> Value {
        atom.map_or(Value::MinKey, Self::to_value)
    }

    /// The other way round; the outer `None` is for what is no such value.
    pub(in crate::text) fn sorted(value: ValueRef<'_>) -> Option<Option<Self>> {
        Some(Some(match value {
            ValueRef::MinKey => return Some(None),
            ValueRef::Null => Self::Null,
            ValueRef::Double(number) => Self::number(number),
            ValueRef::String(token) => Self::Token(token.into()),
            ValueRef::Binary { bytes, .. } => Self::Uuid(bytes.try_into().ok()?),
            ValueRef::ObjectId(id) => Self::ObjectId(id.0),
            ValueRef::Bool(truth) => Self::Bool(truth),
            ValueRef::DateTime(at) => Self::Date(at),
            _ => return None,
        }))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => nestor_model::order::compare_f64(*a, *b),
            (Self::Token(a), Self::Token(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            (Self::ObjectId(a), Self::ObjectId(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

/// The values of one field.
#[derive(Debug, Default)]
pub(in crate::text) struct Column {
    /// Ascending, each once.
    values: Vec<Atom>,
    /// The rows of `values[i]` are `rows[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    rows: Vec<RowId>,
    /// Rows with numbers of their values, ascending.
    by_row: Vec<(RowId, u32)>,
}

impl Column {
    /// The column of these values.
    pub(super) fn of(mut pairs: Vec<(Atom, RowId)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut column = Self {
            by_row: Vec::with_capacity(pairs.len()),
            rows: Vec::with_capacity(pairs.len()),
            ..Self::default()
        };
        for (value, row) in pairs {
            if column.values.last() != Some(&value) {
                column.values.push(value);
                column.starts.push(column.rows.len() as u32);
            }
            column.by_row.push((row, column.values.len() as u32 - 1));
            column.rows.push(row);
        }
        column.starts.push(column.rows.len() as u32);
        column.by_row.sort_unstable();
        column
    }

    /// Each value with each of its rows.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&Atom, RowId)> {
        self.by_row
            .iter()
            .map(|(row, number)| (&self.values[*number as usize], *row))
    }

    /// The values, ascending.
    pub(in crate::text) fn values(&self) -> &[Atom] {
        &self.values
    }

    /// How many pairs of rows and values there are.
    pub(in crate::text) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows that have the value of a number.
    pub(in crate::text) fn rows_of(&self, numbers: Range<usize>) -> &[RowId] {
        match numbers.is_empty() {
            true => &[],
            false => &self.rows[self.starts[numbers.start] as usize..self.starts[numbers.end] as usize],
        }
    }

    /// The numbers of the values within bounds.
    pub(in crate::text) fn range(&self, low: Bound<&Atom>, high: Bound<&Atom>) -> Range<usize> {
        let start = match low {
            Bound::Unbounded => 0,
            Bound::Included(low) => self.values.partition_point(|value| value < low),
            Bound::Excluded(low) => self.values.partition_point(|value| value <= low),
        };
        let end = match high {
            Bound::Unbounded => self.values.len(),
            Bound::Included(high) => self.values.partition_point(|value| value <= high),
            Bound::Excluded(high) => self.values.partition_point(|value| value < high),
        };
        start..end.max(start)
    }

    /// The numbers of the values of a row, ascending.
    pub(in crate::text) fn numbers_at(&self, row: RowId) -> impl Iterator<Item = usize> {
        let start = self.by_row.partition_point(|(at, _)| *at < row);
        let own = self.by_row[start..].iter().take_while(move |(at, _)| *at == row);
        own.map(|(_, number)| *number as usize)
    }

    /// The values of a row, ascending.
    pub(in crate::text) fn values_at(&self, row: RowId) -> impl DoubleEndedIterator<Item = &Atom> {
        let start = self.by_row.partition_point(|(at, _)| *at < row);
        let end = self.by_row.partition_point(|(at, _)| *at <= row);
        self.by_row[start..end]
            .iter()
            .map(|(_, number)| &self.values[*number as usize])
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let heap = |value: &Atom| match value {
            Atom::Token(token) if token.is_heap_allocated() => token.len(),
            _ => 0,
        };
        let values: usize = self.values.iter().map(heap).sum();
        values + self.values.len() * (size_of::<Atom>() + 4) + self.rows.len() * 12
    }
}
