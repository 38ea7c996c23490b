//! The values of one path of many documents.

use crate::packed::{Packed, Places};
use nestor_model::value::EMPTY_DOC;
use nestor_model::vector::{Builder, Data, Texts, Vector};
use nestor_model::{ObjectId, Value, ValueRef};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Bytes of a value that is held, at most.
const BYTES_MAX: usize = 4096;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// What a document has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A value that the column holds.
    Value,
    /// Null.
    Null,
    /// Nothing.
    Missing,
    /// An array, something long, or the field twice: it is not held.
    Other,
    /// A document: its fields are at the paths below.
    Document,
}

/// Values of one path, as many as there are rows.
#[derive(Debug)]
pub struct Column {
    values: Values,
    /// Of each row what it has, unless all have values.
    states: Option<Box<[State]>>,
    /// Rows that have something that is not held.
    others: usize,
    /// Some row has a document.
    has_documents: bool,
    /// The least and the largest value in the order of values, if all are of one type and none is NaN.
    range: Option<(Value, Value)>,
}

/// Values in the form that their type allows; those of rows without one mean nothing.
#[derive(Debug)]
pub enum Values {
    /// No row has one.
    Nothing,
    /// [`Value::Bool`], as 0 and 1.
    Bool(Packed),
    /// [`Value::Int32`].
    Int32(Packed),
    /// [`Value::Int64`].
    Int64(Packed),
    /// [`Value::DateTime`], in milliseconds.
    Date(Packed),
    /// The same where all are beginnings of days: in [`DAY_MS`].
    Days(Packed),
    /// [`Value::Double`].
    Double(Box<[f64]>),
    /// [`Value::Double`] that are what a whole number divided by a power of ten gives.
    Scaled(Packed, f64),
    /// [`Value::Decimal128`]: digits, of which so many stand behind the point.
    Decimal(Packed, u8),
    /// [`Value::String`]: which of the texts each row has.
    Text(Packed, Texts),
    /// [`Value::ObjectId`].
    Id(Box<[ObjectId]>),
    /// Any.
    Any(Box<[Value]>),
}

impl Column {
    /// A column that nothing is held of.
    pub(crate) fn unknown() -> Self {
        Self {
            values: Values::Nothing,
            states: None,
            others: 1,
            has_documents: false,
            range: None,
        }
    }

    /// A column of which each value is held.
    pub(crate) fn whole(values: Values, states: Option<Box<[State]>>, range: Option<(Value, Value)>) -> Self {
        Self {
            values,
            has_documents: states.iter().any(|states| states.contains(&State::Document)),
            states,
            others: 0,
            range,
        }
    }

    /// Of each row what it has, unless all have values.
    pub(crate) fn states(&self) -> Option<&[State]> {
        self.states.as_deref()
    }

    /// Whether some row has null or nothing.
    pub fn has_gaps(&self) -> bool {
        self.states.is_some()
    }

    /// The form of its values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Whether each row has null, nothing, a value that is held, or a document.
    pub fn is_held(&self) -> bool {
        self.others == 0
    }

    /// Whether some row has a document.
    pub fn has_documents(&self) -> bool {
        self.has_documents
    }

    /// What a row has.
    pub fn state(&self, row: usize) -> State {
        self.states.as_ref().map_or(State::Value, |states| states[row])
    }

    /// Which of some rows have no value, if one of them has none.
    pub fn nulls(&self, places: &Places<'_>) -> Option<Vec<bool>> {
        let states = self.states.as_ref()?;
        let nulls = places.pick(states, |state| state != State::Value);
        nulls.contains(&true).then_some(nulls)
    }

    /// The least and the largest of its values, if they are all of one type.
    pub fn range(&self) -> Option<&(Value, Value)> {
        self.range.as_ref()
    }

    /// The values of some rows; null where there is none.
    pub fn vector(&self, places: &Places<'_>) -> Vector {
        let data = match &self.values {
            Values::Nothing => return Vector::same(Value::Null, places.len()),
            Values::Bool(values) => Data::Bool(values.pick(places, |value| value != 0)),
            Values::Int32(values) => Data::Int32(values.pick(places, |value| value as i32)),
            Values::Int64(values) => Data::Int64(values.pick(places, |value| value)),
            Values::Double(values) => Data::Double(places.pick(values, |value| value)),
            Values::Scaled(digits, unit) => Data::Double(digits.pick(places, |digits| digits as f64 / unit)),
            Values::Decimal(digits, scale) => Data::Decimal {
                digits: digits.pick(places, |value| value),
                scale: *scale,
            },
            Values::Text(numbers, texts) => Data::Text(texts.picked(numbers.pick(places, |value| value as u32))),
            Values::Date(_) | Values::Days(_) | Values::Id(_) | Values::Any(_) => {
                return Data::Values(places.map(|row| self.value(row).to_value())).into();
            }
        };
        Vector {
            data,
            nulls: self.nulls(places),
        }
    }

    /// Whether no row has a value.
    pub(crate) fn is_empty(&self) -> bool {
        let has_value = |states: &[State]| states.contains(&State::Value);
        self.states.as_deref().is_some_and(|states| !has_value(states))
    }

    /// What a row has; missing where that is not held, and where it is a document.
    pub fn value(&self, row: usize) -> ValueRef<'_> {
        match self.state(row) {
            State::Value => {}
            State::Null => return ValueRef::Null,
            State::Missing | State::Other | State::Document => return ValueRef::Missing,
        }
        match &self.values {
            Values::Nothing => ValueRef::Missing,
            Values::Bool(values) => ValueRef::Bool(values.get(row) != 0),
            Values::Int32(values) => ValueRef::Int32(values.get(row) as i32),
            Values::Int64(values) => ValueRef::Int64(values.get(row)),
            Values::Date(values) => ValueRef::DateTime(values.get(row)),
            Values::Days(days) => ValueRef::DateTime(days.get(row) * DAY_MS),
            Values::Double(values) => ValueRef::Double(values[row]),
            Values::Scaled(digits, unit) => ValueRef::Double(digits.get(row) as f64 / unit),
            Values::Decimal(digits, scale) => {
                ValueRef::Decimal128(nestor_model::vector::decimal(digits.get(row), *scale))
            }
            Values::Text(numbers, texts) => ValueRef::String(texts.get(numbers.get(row) as usize)),
            Values::Id(ids) => ValueRef::ObjectId(ids[row]),
            Values::Any(values) => values[row].as_ref(),
        }
    }

    /// Whether a row is what a row of another column is, type and bits.
    pub(crate) fn has_same(&self, row: usize, other: &Column, at: usize) -> bool {
        if self.state(row) != other.state(at) {
            return false;
        }
        match (self.value(row), other.value(at)) {
            (ValueRef::Int32(a), ValueRef::Int32(b)) => a == b,
            (ValueRef::Int64(a), ValueRef::Int64(b)) | (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a == b,
            (ValueRef::String(a), ValueRef::String(b)) => a == b,
            (a, b) => a.to_value().identical(&b.to_value()),
        }
    }

    /// The same with the values of another one in the place of those of some rows; `None` where that takes more than to copy it: of
    /// numbers of other types or widths, texts, and rows without a value.
    pub(crate) fn replaced(&self, rows: &[usize], with: &Self) -> Option<Self> {
        if self.states.is_some() || with.states.is_some() || self.others + with.others > 0 {
            return None;
        }
        let both = |old: &Packed, new: &Packed, value: &dyn Fn(i64) -> Value| {
            let packed = old.replaced(rows, new)?;
            let range = packed.ends().map(|(least, most)| (value(least), value(most)));
            Some((packed, range))
        };
        let (values, range) = match (&self.values, &with.values) {
            (Values::Bool(old), Values::Bool(new)) => {
                let (values, range) = both(old, new, &|value| Value::Bool(value != 0))?;
                (Values::Bool(values), range)
            }
            (Values::Int32(old), Values::Int32(new)) => {
                let (values, range) = both(old, new, &|value| Value::Int32(value as i32))?;
                (Values::Int32(values), range)
            }
            (Values::Int64(old), Values::Int64(new)) => {
                let (values, range) = both(old, new, &Value::Int64)?;
                (Values::Int64(values), range)
            }
            (Values::Date(old), Values::Date(new)) => {
                let (values, range) = both(old, new, &Value::DateTime)?;
                (Values::Date(values), range)
            }
            (Values::Days(old), Values::Days(new)) => {
                let (values, range) = both(old, new, &|day| Value::DateTime(day * DAY_MS))?;
                (Values::Days(values), range)
            }
            (Values::Scaled(old, unit), Values::Scaled(new, other)) => {
                let new = rescaled(new, *other, *unit)?;
                let (values, range) = both(old, &new, &|digits| Value::Double(digits as f64 / unit))?;
                (Values::Scaled(values, *unit), range)
            }
            (Values::Decimal(old, scale), Values::Decimal(new, other)) if scale == other => {
                let value = |digits| Value::Decimal128(nestor_model::vector::decimal(digits, *scale));
                let (values, range) = both(old, new, &value)?;
                (Values::Decimal(values, *scale), range)
            }
            _ => return None,
        };
        Some(Self {
            values,
            states: None,
            others: 0,
            has_documents: false,
            range,
        })
    }

    /// The column of some rows; its range is that of all.
    pub(crate) fn picked(&self, rows: &[u32]) -> Self {
        fn of<T: Clone>(values: &[T], rows: &[u32]) -> Box<[T]> {
            rows.iter().map(|row| values[*row as usize].clone()).collect()
        }
        let values = match &self.values {
            Values::Nothing => Values::Nothing,
            Values::Bool(values) => Values::Bool(values.picked(rows)),
            Values::Int32(values) => Values::Int32(values.picked(rows)),
            Values::Int64(values) => Values::Int64(values.picked(rows)),
            Values::Date(values) => Values::Date(values.picked(rows)),
            Values::Days(days) => Values::Days(days.picked(rows)),
            Values::Double(values) => Values::Double(of(values, rows)),
            Values::Scaled(digits, unit) => Values::Scaled(digits.picked(rows), *unit),
            Values::Decimal(digits, scale) => Values::Decimal(digits.picked(rows), *scale),
            Values::Text(numbers, texts) => Values::Text(numbers.picked(rows), texts.clone()),
            Values::Id(ids) => Values::Id(of(ids, rows)),
            Values::Any(values) => Values::Any(of(values, rows)),
        };
        Self {
            values,
            states: self.states.as_ref().map(|states| of(states, rows)),
            others: self.others,
            has_documents: self.has_documents,
            range: self.range.clone(),
        }
    }

    /// The same, where rows that are `none` have what `gap` says of their places: null, or nothing.
    pub(crate) fn picked_with(&self, rows: &[u32], none: u32, gap: impl Fn(usize) -> State) -> Self {
        if !rows.contains(&none) {
            return self.picked(rows);
        }
        let state = |(at, row): (usize, &u32)| match *row == none {
            true => gap(at),
            false => self.state(*row as usize),
        };
        let states: Box<[State]> = rows.iter().enumerate().map(state).collect();
        let first = |row: &u32| if *row == none { 0 } else { *row };
        // Without any row there is none to stand in the place of those.
        let picked = match rows.iter().all(|row| *row == none) {
            true => Self {
                values: Values::Nothing,
                states: None,
                range: self.range.clone(),
                ..*self
            },
            false => self.picked(&rows.iter().map(first).collect::<Vec<u32>>()),
        };
        Self {
            states: Some(states),
            ..picked
        }
    }

    /// A number for each of some rows, the same where they have the same, and how many numbers there may be; `None` of a column with too many
    /// different values for a table of them.
    pub fn numbers(&self, places: &Places<'_>) -> Option<(usize, Vec<u32>)> {
        let packed = match &self.values {
            Values::Bool(values) | Values::Int32(values) | Values::Int64(values) | Values::Date(values) => values,
            Values::Days(digits) | Values::Scaled(digits, _) | Values::Decimal(digits, _) | Values::Text(digits, _) => {
                digits
            }
            Values::Nothing => return Some((2, places.map(|row| u32::from(self.state(row) == State::Null)))),
            Values::Double(_) | Values::Id(_) | Values::Any(_) => return None,
        };
        let span = packed.span()?;
        let mut numbers = packed.distances(places);
        if let Some(states) = &self.states {
            let mut at = 0;
            places.each(|row| {
                match states[row] {
                    State::Value => {}
                    State::Null => numbers[at] = span as u32,
                    State::Missing | State::Other | State::Document => numbers[at] = span as u32 + 1,
                }
                at += 1;
            });
        }
        Some((span + 2, numbers))
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Nothing => 0,
            Values::Bool(values) | Values::Int32(values) | Values::Int64(values) | Values::Date(values) => {
                values.bytes()
            }
            Values::Double(values) => values.len() * 8,
            Values::Days(digits) | Values::Scaled(digits, _) | Values::Decimal(digits, _) => digits.bytes(),
            Values::Text(numbers, texts) => numbers.bytes() + texts.weight(),
            Values::Id(ids) => ids.len() * size_of::<ObjectId>(),
            Values::Any(values) => values.iter().map(Value::weight).sum(),
        };
        size_of::<Self>() + values + self.states.as_ref().map_or(0, |states| states.len())
    }
}

/// Whether a value is too long to be held.
fn is_long(value: ValueRef<'_>) -> bool {
    let bytes = match value {
        ValueRef::String(text) | ValueRef::Code(text) | ValueRef::Symbol(text) => text.len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        ValueRef::Regex { pattern, .. } => pattern.len(),
        ValueRef::CodeWithScope { .. } => return true,
        _ => return false,
    };
    bytes > BYTES_MAX
}

/// Makes a column, row by row.
#[derive(Debug, Default)]
pub(crate) struct ColumnBuilder {
    values: Builder,
    states: Vec<State>,
    /// Rows that have something.
    rows: usize,
}

impl ColumnBuilder {
    /// Adds a row, after rows before it that were not added and have nothing; `false` for a second value of a row, which cannot be held.
    pub(crate) fn push(&mut self, row: usize, value: ValueRef<'_>) -> bool {
        if self.states.len() > row {
            self.states[row] = State::Other;
            return false;
        }
        self.fill(row);
        let state = match value {
            ValueRef::Null => State::Null,
            ValueRef::Missing => State::Missing,
            ValueRef::Document(_) => State::Document,
            ValueRef::Array(_) => State::Other,
            value if is_long(value) => State::Other,
            _ => State::Value,
        };
        self.rows += usize::from(state != State::Missing);
        match (state, value) {
            (State::Value, ValueRef::String(text)) => self.values.push_text(text),
            (State::Value, ValueRef::Int32(value)) => self.values.push_int32(value),
            (State::Value, ValueRef::Double(value)) => self.values.push_double(value),
            (State::Value, value) => self.values.push(value.to_value()),
            _ => self.values.push_null(),
        }
        self.states.push(state);
        true
    }

    /// Adds a row of a column that is held, after rows before it that were not added and have nothing.
    pub(crate) fn push_from(&mut self, row: usize, column: &Column, from: usize) {
        match column.state(from) {
            State::Missing => {}
            // Of a document only that it is there is held.
            State::Document => {
                self.push(row, ValueRef::Document(EMPTY_DOC));
            }
            State::Value | State::Null | State::Other => {
                self.push(row, column.value(from));
            }
        }
    }

    /// What so many rows have.
    pub(crate) fn states(&mut self, rows: usize) -> &[State] {
        self.fill(rows);
        &self.states
    }

    /// How many rows have something.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    fn fill(&mut self, rows: usize) {
        while self.states.len() < rows {
            self.states.push(State::Missing);
            self.values.push_null();
        }
    }

    /// The column of so many rows.
    pub(crate) fn finish(mut self, rows: usize) -> Column {
        self.fill(rows);
        let others = self.states.iter().filter(|state| **state == State::Other).count();
        // Documents are looked at for all of it then.
        if others > 0 {
            return Column::unknown();
        }
        let has_documents = self.states.contains(&State::Document);
        let is_full = self.states.iter().all(|state| *state == State::Value);
        let vector = self.values.finish();
        let range = match has_documents {
            true => None,
            false => range_of(&vector.data, &self.states),
        };
        let values = match vector.data {
            Data::Same(..) => Values::Nothing,
            Data::Bool(values) => Values::Bool(packed(values.into_iter().map(i64::from))),
            Data::Int32(values) => Values::Int32(packed(values.into_iter().map(i64::from))),
            Data::Int64(values) => Values::Int64(Packed::new(&values)),
            Data::Double(values) => match scaled(&values) {
                Some((digits, unit)) => Values::Scaled(digits, unit),
                None => Values::Double(values.into()),
            },
            Data::Decimal { digits, scale } => Values::Decimal(Packed::new(&digits), scale),
            Data::Text(texts) => numbered(&texts),
            Data::Values(values) => of_values(values, &self.states),
        };
        Column {
            values,
            states: (!is_full).then(|| self.states.into()),
            others,
            has_documents,
            range,
        }
    }
}

fn packed(values: impl Iterator<Item = i64>) -> Packed {
    Packed::new(&values.collect::<Vec<_>>())
}

/// The least and the largest of values that are all of one type and have an order that says what lies between.
fn range_of(data: &Data, states: &[State]) -> Option<(Value, Value)> {
    let has = |row: usize| states[row] == State::Value;
    match data {
        Data::Bool(all) => ends(all, has, Some(bool::cmp)).map(both(|value| Value::Bool(*value))),
        Data::Int32(all) => ends(all, has, Some(i32::cmp)).map(both(|value| Value::Int32(*value))),
        Data::Int64(all) => ends(all, has, Some(i64::cmp)).map(both(|value| Value::Int64(*value))),
        Data::Double(all) => {
            let is_nan = (0..all.len()).any(|row| has(row) && all[row].is_nan());
            // Zeros of both signs are one value, of which the first is taken.
            let order = |a: &f64, b: &f64| a.partial_cmp(b).unwrap_or(Ordering::Equal);
            ends(all, has, (!is_nan).then_some(order)).map(both(|value| Value::Double(*value)))
        }
        Data::Decimal { digits, scale } => {
            let value = |digits: &i64| Value::Decimal128(nestor_model::vector::decimal(*digits, *scale));
            ends(digits, has, Some(i64::cmp)).map(both(value))
        }
        Data::Text(texts) => {
            let mut all = (0..texts.len()).filter(|row| has(*row)).map(|row| texts.get(row));
            let first = all.next()?;
            let ends = all.fold((first, first), |(least, most), text| (least.min(text), most.max(text)));
            Some((Value::from(ends.0), Value::from(ends.1)))
        }
        Data::Same(value, rows) => {
            let value = (0..*rows).any(has).then_some(value)?;
            (!is_unordered(value)).then(|| (value.clone(), value.clone()))
        }
        Data::Values(all) => {
            let kind = (0..all.len())
                .find(|row| has(*row))
                .map(|row| all[row].as_ref().bson_type());
            let fits = |value: &Value| Some(value.as_ref().bson_type()) == kind && !is_unordered(value);
            let is_one = all.iter().enumerate().all(|(row, value)| !has(row) || fits(value));
            let order = |a: &Value, b: &Value| nestor_model::compare(a, b);
            ends(all, has, is_one.then_some(order)).map(both(Value::clone))
        }
    }
}

/// The least and the largest value of two ranges ([`Column::range`]); `None` where these are of two types.
pub(crate) fn range_of_both((least, most): (Value, Value), other: &(Value, Value)) -> Option<(Value, Value)> {
    let order = |a: &Value, b: &Value| nestor_model::compare(a, b);
    let is_one = least.as_ref().bson_type() == other.0.as_ref().bson_type();
    let both = || {
        (
            std::cmp::min_by(least, other.0.clone(), order),
            std::cmp::max_by(most, other.1.clone(), order),
        )
    };
    is_one.then(both)
}

/// Whether a value is no number that others are less or more than.
fn is_unordered(value: &Value) -> bool {
    match value {
        Value::Double(value) => value.is_nan(),
        Value::Decimal128(value) => !value.is_finite(),
        _ => false,
    }
}

/// The least and the largest of those of some rows, the first of equal ones; `None` where they have no order.
fn ends<T>(all: &[T], has: impl Fn(usize) -> bool, order: Option<impl Fn(&T, &T) -> Ordering>) -> Option<(&T, &T)> {
    let order = order?;
    let mut out: Option<(&T, &T)> = None;
    for (row, value) in all.iter().enumerate() {
        if !has(row) {
            continue;
        }
        out = Some(match out {
            None => (value, value),
            Some((least, most)) if order(value, least).is_lt() => (value, most),
            Some((least, most)) if order(value, most).is_gt() => (least, value),
            Some(known) => known,
        });
    }
    out
}

fn both<'v, T: 'v>(value: impl Fn(&'v T) -> Value) -> impl Fn((&'v T, &'v T)) -> (Value, Value) {
    move |(least, most)| (value(least), value(most))
}

/// Whole numbers that are divided by one power of ten as such that are divided by another; `None` where the numbers are not the same then.
fn rescaled(digits: &Packed, unit: f64, to: f64) -> Option<Packed> {
    let all: Option<Vec<i64>> = (0..digits.len())
        .map(|row| digits_of(digits.get(row) as f64 / unit, to))
        .collect();
    Some(Packed::new(&all?))
}

/// The whole number that is a value when it is divided by a unit, if there is one.
fn digits_of(value: f64, unit: f64) -> Option<i64> {
    /// Whole numbers up to this are exact.
    const DIGITS_MAX: f64 = 9_007_199_254_740_992.0;
    let whole = (value * unit).round();
    let is_exact = whole.abs() < DIGITS_MAX && (whole / unit).to_bits() == value.to_bits();
    is_exact.then_some(whole as i64)
}

/// Numbers that were written with few digits behind the point, as whole numbers and what they are divided by.
fn scaled(values: &[f64]) -> Option<(Packed, f64)> {
    /// Digits behind the point, at most: numbers with more have as many in front of it as take the same bytes.
    const UNITS: i32 = 14;
    let try_unit = |unit: f64| {
        let digits: Option<Vec<i64>> = values.iter().map(|value| digits_of(*value, unit)).collect();
        Some((Packed::new(&digits?), unit))
    };
    (0..=UNITS).map(|digits| 10f64.powi(digits)).find_map(try_unit)
}

/// Texts with each of them once.
fn numbered(texts: &Texts) -> Values {
    let mut known: HashMap<&str, i64> = HashMap::new();
    let mut distinct = Texts::default();
    let numbers: Vec<i64> = (0..texts.len())
        .map(|row| {
            let text = texts.get(row);
            *known.entry(text).or_insert_with(|| {
                distinct.push(text);
                distinct.len() as i64 - 1
            })
        })
        .collect();
    Values::Text(Packed::new(&numbers), distinct)
}

/// Values that no form of vectors holds.
fn of_values(values: Vec<Value>, states: &[State]) -> Values {
    let has = |row: usize| states[row] == State::Value;
    let dates: Option<Vec<i64>> = values
        .iter()
        .enumerate()
        .map(|(row, value)| match value {
            Value::DateTime(ms) => Some(*ms),
            _ => (!has(row)).then_some(0),
        })
        .collect();
    if let Some(mut dates) = dates {
        // A row without one takes the place of its neighbour, so that it widens nothing.
        let mut last = (0..dates.len()).find(|row| has(*row)).map_or(0, |row| dates[row]);
        for (row, date) in dates.iter_mut().enumerate() {
            match has(row) {
                true => last = *date,
                false => *date = last,
            }
        }
        if dates.iter().all(|ms| ms % DAY_MS == 0) {
            return Values::Days(packed(dates.iter().map(|ms| ms / DAY_MS)));
        }
        return Values::Date(Packed::new(&dates));
    }
    let ids: Option<Vec<ObjectId>> = values
        .iter()
        .enumerate()
        .map(|(row, value)| match value {
            Value::ObjectId(id) => Some(*id),
            _ => (!has(row)).then_some(ObjectId([0; 12])),
        })
        .collect();
    match ids {
        Some(ids) => Values::Id(ids.into()),
        None => Values::Any(values.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Value]) -> Column {
        let mut builder = ColumnBuilder::default();
        for (row, value) in values.iter().enumerate() {
            builder.push(row, value.as_ref());
        }
        builder.finish(values.len())
    }

    /// What stands in the place of others is as if the column had been made so, least and largest value included.
    #[test]
    fn a_column_with_some_values_replaced_is_the_one_that_would_be_made() {
        let decimal = |digits| Value::Decimal128(nestor_model::vector::decimal(digits, 2));
        let kinds: [(&str, &dyn Fn(i64) -> Value); 7] = [
            ("bool", &|value| Value::Bool(value % 2 == 0)),
            ("int", &|value| Value::Int32(value as i32)),
            ("long", &|value| Value::Int64(value * 7 - 50)),
            ("date", &|value| Value::DateTime(value - 3)),
            ("double", &|value| Value::Double((value - 15) as f64 / 10.0)),
            ("decimal", &decimal),
            ("text", &|value| Value::String(format!("t{value}").into())),
        ];
        for (name, make) in kinds {
            let old: Vec<Value> = (0..40).map(|row| make(row * 5 % 23)).collect();
            for (rows, with) in [
                (vec![0, 5, 39], vec![4, 4, 19]),
                (vec![7], vec![22]),
                (vec![0, 23], vec![11, 12]),
            ] {
                let new: Vec<Value> = with.into_iter().map(make).collect();
                let mut all = old.clone();
                for (row, value) in rows.iter().zip(&new) {
                    all[*row] = value.clone();
                }
                let replaced = column(&old).replaced(&rows, &column(&new));
                assert_eq!(replaced.is_some(), name != "text", "{name}");
                let Some(replaced) = replaced else { continue };
                let made = column(&all);
                assert_eq!(
                    format!("{:?}", replaced.range()),
                    format!("{:?}", made.range()),
                    "{name}"
                );
                assert!((0..all.len()).all(|row| replaced.has_same(row, &made, row)), "{name}");
            }
            let gaps = column(&[Value::Null, make(1)]);
            assert!(gaps.replaced(&[1], &column(&[make(1)])).is_none(), "{name}");
            assert!(column(&old).replaced(&[0, 1], &gaps).is_none(), "{name}");
        }
        assert!(
            column(&[Value::Int32(1)])
                .replaced(&[0], &column(&[Value::Int64(1)]))
                .is_none()
        );
    }
    #[test]
    fn numbers_with_some_digits_behind_the_point_are_whole_numbers_and_a_unit() {
        for digits in 0..=14 {
            let unit = 10f64.powi(digits);
            let values: Vec<Value> = (0..50)
                .map(|row| Value::Double(f64::from(row * 7919 - 9000) / unit))
                .collect();
            let made = column(&values);
            let Values::Scaled(_, kept) = made.values() else {
                panic!("{digits} digits: {made:?}")
            };
            assert_eq!(kept.to_bits(), unit.to_bits());
            let same = |(row, value): (usize, &Value)| made.value(row).to_value().identical(value);
            assert!(values.iter().enumerate().all(same), "{digits} digits");
        }
        let thirds: Vec<Value> = (1..9).map(|row| Value::Double(f64::from(row) / 3.0)).collect();
        assert!(matches!(column(&thirds).values(), Values::Double(_)));
    }
}
