//! What segments have of the columns of a table: of those of its documents, and of those that are fields of the elements of an array.

use crate::catalog::{Column as Field, Table};
use crate::functions::{DATES_MS, typed_into};
use crate::run::bounds::Bound;
use crate::types::{Type, stored, zone as clocks};
use nestor_columns::{Column, DAY_MS, Found, Places, Segment, Values, Zone, elements};
use nestor_model::vector::{Builder, Data, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use std::ops::Range;
use std::sync::Arc;

/// The path of the array whose elements have a column of a table as their field.
fn array(table: &Table, at: usize) -> Option<&str> {
    let own = table.elements.filter(|own| at >= own.first)?;
    Some(&table.columns[own.array].path)
}

/// What a segment has of a column.
fn find<'s>(table: &Table, segment: &'s Segment, at: usize) -> Found<'s> {
    let column = &table.columns[at];
    match array(table, at) {
        None => segment.find([column.path.as_str()]),
        Some(array) => match segment.elements([array]) {
            elements::Found::Elements(own) => own.segment().find([column.name.as_str()]),
            elements::Found::Nothing => Found::Nothing,
            elements::Found::Unknown => Found::Unknown,
        },
    }
}

/// Between which values those of a column lie in a segment.
pub(super) fn zone<'s>(table: &Table, segment: &'s Segment, at: usize) -> Zone<'s> {
    let column = &table.columns[at];
    match array(table, at) {
        None => segment.zone([column.path.as_str()]),
        Some(array) => segment.zone_of_elements([array], [column.name.as_str()]),
    }
}

/// A value of a zone as one of its column's type, if it is one.
pub(super) fn read_end(table: &Table, at: usize, end: &Value) -> Option<Value> {
    let column = &table.columns[at];
    if array(table, at).is_none() {
        return stored::read(&column.ty, end.as_ref(), &column.path).ok();
    }
    let mut builder = Builder::default();
    typed_into(&end.as_ref(), &column.ty, &mut builder).ok()?;
    Some(builder.finish().value(0))
}

/// Whether no value of a column is within a bound, of which these are the least and the largest.
pub(super) fn is_outside(table: &Table, bound: &Bound, least: &Value, most: &Value) -> bool {
    let ty = &table.columns[bound.column].ty;
    let is_text = matches!(least, Value::String(_));
    // Clocks that are set back show an earlier time after a later one.
    let (least, most) = match (array(table, bound.column), least, most) {
        (Some(_), Value::DateTime(least), Value::DateTime(most)) => (
            Value::DateTime(least.saturating_sub(DAY_MS)),
            Value::DateTime(most.saturating_add(DAY_MS)),
        ),
        _ => (least.clone(), most.clone()),
    };
    let read = |end: &Value| read_end(table, bound.column, end);
    match (read(&least), read(&most)) {
        (Some(least), Some(most)) => is_text == ty.is_text() && bound.excludes(ty, least, most),
        _ => false,
    }
}

/// Whether some row of a segment has no value in a column, or that is not known.
pub(super) fn has_nulls(table: &Table, segment: &Segment, at: usize) -> bool {
    match find(table, segment, at) {
        Found::Column(values) => values.has_gaps(),
        Found::Nothing | Found::Unknown => true,
    }
}

/// The columns of a table that are needed, without the array whose elements are the rows.
fn needed<'t>(table: &'t Table, needed: &'t [bool]) -> impl Iterator<Item = usize> + use<'t> {
    let array = table.elements.map(|own| own.array);
    (0..table.columns.len()).filter(move |at| needed[*at] && Some(*at) != array)
}

/// Whether a segment has all columns that are needed, and the elements of some rows where these are the table's.
pub(super) fn has_all(table: &Table, wanted: &[bool], segment: &Segment, rows: &Range<usize>) -> bool {
    let has_elements =
        table
            .elements
            .is_none_or(|own| match segment.elements([table.columns[own.array].path.as_str()]) {
                elements::Found::Elements(found) => {
                    found.segment().has_documents_only() && !(own.keeps && found.has_gaps(rows))
                }
                elements::Found::Nothing => !own.keeps,
                elements::Found::Unknown => false,
            });
    has_elements && needed(table, wanted).all(|at| !matches!(find(table, segment, at), Found::Unknown))
}

/// Bytes of the columns that are needed, of some rows of a segment.
pub(super) fn weight(table: &Table, wanted: &[bool], segment: &Segment, rows: &Range<usize>) -> u64 {
    let first = table.elements.map_or(table.columns.len(), |own| own.first);
    let own = needed(table, wanted).filter(|at| *at < first);
    let own = own.map(|at| table.columns[at].path.as_str());
    let of_documents = segment.weight(own, rows.len());
    let of_elements = table.elements.map_or(0, |own| {
        let array = table.columns[own.array].path.as_str();
        let names = needed(table, wanted).filter(|at| *at >= first);
        let names = names.map(|at| table.columns[at].name.as_str());
        match segment.elements([array]) {
            elements::Found::Elements(found) => {
                let begins = segment.weight([array], rows.len());
                begins + found.segment().weight(names, found.of_rows(rows).len())
            }
            elements::Found::Nothing | elements::Found::Unknown => 0,
        }
    });
    of_documents + of_elements
}

/// Elements of arrays as rows, some at a time.
pub(super) struct Elements {
    segment: Arc<Segment>,
    array: String,
    /// The documents that are left and have the elements that are read now.
    rows: Range<usize>,
    /// The elements that are read now, and where those that are left end.
    now: Range<usize>,
    end: usize,
    /// Of each of them its document, counted from the first of `rows`.
    documents: Vec<u32>,
}

impl Elements {
    /// The elements that some rows of a segment have in an array, before the first of them.
    pub(super) fn new(array: &str, segment: Arc<Segment>, rows: Range<usize>) -> Self {
        let all = match segment.elements([array]) {
            elements::Found::Elements(found) => found.of_rows(&rows),
            elements::Found::Nothing | elements::Found::Unknown => 0..0,
        };
        Self {
            array: array.to_owned(),
            segment,
            rows,
            now: all.start..all.start,
            end: all.end,
            documents: Vec::new(),
        }
    }

    /// Goes on to the next ones; how many, `None` at the end.
    pub(super) fn advance(&mut self) -> Option<usize> {
        self.now = self.now.end..self.end.min(self.now.end + ROWS);
        let elements::Found::Elements(found) = self.segment.elements([self.array.as_str()]) else {
            return None;
        };
        if self.now.is_empty() {
            return None;
        }
        self.rows.start = found.row_of(self.now.start, &self.rows);
        self.documents = found.rows_of(&self.now, self.rows.start);
        Some(self.now.len())
    }

    /// A column of the elements, or of those at `places` among them.
    ///
    /// Errors: those of the values.
    pub(super) fn column(&self, table: &Table, at: usize, places: Option<&[u32]>) -> Result<Vector> {
        let field = &table.columns[at];
        if array(table, at).is_none() {
            let picked: Vec<u32>;
            let documents = match places {
                None => &self.documents,
                Some(places) => {
                    picked = places.iter().map(|place| self.documents[*place as usize]).collect();
                    &picked
                }
            };
            return values(field, &self.segment, &Places::At(self.rows.start, documents));
        }
        let places = match places {
            None => Places::Range(self.now.clone()),
            Some(places) => Places::At(self.now.start, places),
        };
        match find(table, &self.segment, at) {
            Found::Column(column) => of_elements(field, column, &places),
            Found::Nothing | Found::Unknown => Ok(Vector::same(Value::Null, places.len())),
        }
    }
}

/// The values of a column of documents at some rows of a segment.
///
/// Errors: those of [`stored::read`].
pub(super) fn values(field: &Field, segment: &Segment, places: &Places<'_>) -> Result<Vector> {
    match segment.find([field.path.as_str()]) {
        Found::Column(column) => typed(field, column, places),
        Found::Nothing | Found::Unknown => Ok(Vector::same(Value::Null, places.len())),
    }
}

/// The values of a column as those of its type.
///
/// Errors: those of [`stored::read`].
fn typed(field: &Field, column: &Column, places: &Places<'_>) -> Result<Vector> {
    let data = match (&field.ty, column.values()) {
        (_, Values::Nothing) if !field.has_json_nulls() => return Ok(column.vector(places)),
        (Type::Bool, Values::Bool(_))
        | (Type::Int2 | Type::Int4, Values::Int32(_))
        | (Type::Int8 | Type::Oid, Values::Int64(_))
        | (Type::Float4 | Type::Float8, Values::Double(_) | Values::Scaled(..))
        | (Type::Numeric, Values::Decimal(..)) => return Ok(column.vector(places)),
        (ty, Values::Text(..)) if ty.is_text() => return Ok(column.vector(places)),
        (Type::Int8 | Type::Oid, Values::Int32(values)) => Data::Int64(values.pick(places, |value| value)),
        (Type::Float4 | Type::Float8, Values::Int32(values) | Values::Int64(values)) => {
            Data::Double(values.pick(places, |value| value as f64))
        }
        (Type::Date, Values::Date(values))
            if in_reach(column, DAY_MS * i64::from(i32::MIN), DAY_MS * i64::from(i32::MAX)) =>
        {
            Data::Int32(values.pick(places, |ms| ms.div_euclid(DAY_MS) as i32))
        }
        (Type::Date, Values::Days(days))
            if in_reach(column, DAY_MS * i64::from(i32::MIN), DAY_MS * i64::from(i32::MAX)) =>
        {
            Data::Int32(days.pick(places, |day| day as i32))
        }
        (Type::Timestamp | Type::Timestamptz, Values::Days(days))
            if in_reach(column, i64::MIN / 1000, i64::MAX / 1000) =>
        {
            Data::Int64(days.pick(places, |day| day.wrapping_mul(DAY_MS * 1000)))
        }
        (Type::Timestamp | Type::Timestamptz, Values::Date(values))
            if in_reach(column, i64::MIN / 1000, i64::MAX / 1000) =>
        {
            Data::Int64(values.pick(places, |ms| ms.wrapping_mul(1000)))
        }
        _ => {
            return one_by_one(places, |row, into| field.read_into(&column.value(row), into));
        }
    };
    Ok(Vector {
        data,
        nulls: column.nulls(places),
    })
}

/// The values of a field of elements as those of its type: as JSON is read.
///
/// Errors: those of the values.
fn of_elements(field: &Field, column: &Column, places: &Places<'_>) -> Result<Vector> {
    let data = match (&field.ty, column.values()) {
        (ty, Values::Nothing) if !matches!(ty, Type::Jsonb | Type::Json) => return Ok(column.vector(places)),
        (Type::Bool, Values::Bool(_))
        | (Type::Int4, Values::Int32(_))
        | (Type::Int8, Values::Int64(_))
        | (Type::Float8, Values::Double(_) | Values::Scaled(..))
        | (Type::Numeric, Values::Decimal(..))
        | (Type::Text, Values::Text(..)) => return Ok(column.vector(places)),
        (Type::Int8, Values::Int32(values)) => Data::Int64(values.pick(places, |value| value)),
        (Type::Date, values @ (Values::Date(numbers) | Values::Days(numbers)))
            if in_reach(column, -DATES_MS.cast_signed(), DATES_MS.cast_signed()) =>
        {
            // As the clocks of the session's zone show them.
            let day = |ms: i64| (ms + clocks::current_offset(ms * 1000) * 1000).div_euclid(DAY_MS) as i32;
            Data::Int32(match (values, clocks::is_utc()) {
                (Values::Days(_), true) => numbers.pick(places, |number| number as i32),
                (Values::Days(_), false) => numbers.pick(places, |number| day(number * DAY_MS)),
                _ => numbers.pick(places, day),
            })
        }
        _ => return one_by_one(places, |row, into| typed_into(&column.value(row), &field.ty, into)),
    };
    Ok(Vector {
        data,
        nulls: column.nulls(places),
    })
}

/// A vector of values that are added row by row.
fn one_by_one(places: &Places<'_>, mut add: impl FnMut(usize, &mut Builder) -> Result<()>) -> Result<Vector> {
    let mut builder = Builder::default();
    let mut result = Ok(());
    places.each(|row| {
        if result.is_ok() {
            result = add(row, &mut builder);
        }
    });
    result.map(|()| builder.finish())
}

/// Whether all dates of a column lie between two moments.
fn in_reach(column: &Column, from: i64, to: i64) -> bool {
    match column.range() {
        Some((Value::DateTime(least), Value::DateTime(most))) => from < *least && *most < to,
        _ => false,
    }
}
