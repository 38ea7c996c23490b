//! Values that are asked for.

use super::super::store::Atom;
use crate::operand::{Operand, double, refuse};
use nestor_model::{Result, ValueRef};
use nestor_query::geo::Near;
use std::ops::Bound;

/// Strings of one `query`, and terms that may become of it.
pub(in crate::text) const CLAUSES_MAX: usize = 1024;

/// The strings of `query`.
pub(super) fn query(spec: &Operand<'_>) -> Result<Vec<String>> {
    spec.required("query")?;
    let query = spec.strings("query")?.unwrap_or_default();
    if query.len() > CLAUSES_MAX {
        refuse!("\"{}\" has more than {CLAUSES_MAX} clauses", spec.name_of("query"));
    }
    Ok(query.into_iter().map(str::to_owned).collect())
}

/// The value of `equals`.
pub(super) fn equal(name: &str, value: ValueRef<'_>) -> Result<Atom> {
    match value {
        ValueRef::Null | ValueRef::Undefined => Ok(Atom::Null),
        value => listed(name, value),
    }
}

/// A value of `in`.
fn listed(name: &str, value: ValueRef<'_>) -> Result<Atom> {
    Ok(match value {
        ValueRef::String(text) => Atom::Token(text.into()),
        ValueRef::Bool(truth) => Atom::Bool(truth),
        ValueRef::DateTime(at) => Atom::Date(at),
        ValueRef::ObjectId(id) => Atom::ObjectId(id.0),
        ValueRef::Binary { subtype: 4, bytes } => match bytes.try_into() {
            Ok(bytes) => Atom::Uuid(bytes),
            Err(_) => refuse!("\"{name}\" must have 16 bytes as a UUID"),
        },
        value => match double(value) {
            Some(number) => Atom::number(number),
            None => refuse!(
                "\"{name}\" must be a boolean, objectId, number, string, date or UUID, not {}",
                value.bson_type().alias()
            ),
        },
    })
}

/// The values of `in`, all of one type.
pub(super) fn listed_values(spec: &Operand<'_>, field: &str) -> Result<Vec<Atom>> {
    let name = spec.name_of(field);
    let ValueRef::Array(items) = spec.required(field)? else {
        return Ok(vec![listed(&name, spec.required(field)?)?]);
    };
    let mut values = items
        .iter()
        .map(|item| listed(&name, item))
        .collect::<Result<Vec<Atom>>>()?;
    let Some(first) = values.first() else {
        refuse!("\"{name}\" cannot be empty");
    };
    let kind = std::mem::discriminant(first);
    if values.iter().any(|value| std::mem::discriminant(value) != kind) {
        refuse!("\"{name}\" must have values of one type");
    }
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

/// The bounds of `range`.
#[derive(Clone, Debug)]
pub(in crate::text) struct Limits {
    pub(in crate::text) low: Bound<Atom>,
    pub(in crate::text) high: Bound<Atom>,
}

impl Limits {
    pub(super) fn read(spec: &Operand<'_>) -> Result<Self> {
        let low = bound(spec, "gt", "gte")?;
        let high = bound(spec, "lt", "lte")?;
        match (inside(&low), inside(&high)) {
            (None, None) => refuse!("\"{}\" must have one of gt, gte, lt and lte", spec.name()),
            (Some(a), Some(b)) if std::mem::discriminant(a) != std::mem::discriminant(b) => {
                refuse!("the bounds of \"{}\" must be of one type", spec.name())
            }
            (Some(a), Some(b)) => {
                let is_open = matches!(low, Bound::Excluded(_)) || matches!(high, Bound::Excluded(_));
                if a > b || a == b && is_open {
                    refuse!("the lower bound of \"{}\" must be less than the upper one", spec.name());
                }
            }
            _ => {}
        }
        Ok(Self { low, high })
    }

    /// One of the bounds.
    pub(in crate::text) fn any(&self) -> Option<&Atom> {
        inside(&self.low).or(inside(&self.high))
    }
}

fn inside(bound: &Bound<Atom>) -> Option<&Atom> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

fn bound(spec: &Operand<'_>, open: &str, closed: &str) -> Result<Bound<Atom>> {
    let read = |field: &str| -> Result<Option<Atom>> {
        match spec.doc().get(field) {
            None => Ok(None),
            // Here null is a value, and none that has an order.
            Some(value @ (ValueRef::String(_) | ValueRef::DateTime(_) | ValueRef::ObjectId(_))) => {
                listed(&spec.name_of(field), value).map(Some)
            }
            Some(value) => match double(value) {
                Some(number) => Ok(Some(Atom::number(number))),
                None => refuse!(
                    "\"{}\" must be a number, string, date or objectId, not {}",
                    spec.name_of(field),
                    value.bson_type().alias()
                ),
            },
        }
    };
    Ok(match (read(open)?, read(closed)?) {
        (None, None) => Bound::Unbounded,
        (Some(value), None) => Bound::Excluded(value),
        (None, Some(value)) => Bound::Included(value),
        (Some(_), Some(_)) => refuse!("\"{}\" cannot have both {open} and {closed}", spec.name()),
    })
}

/// What `near` measures from.
#[derive(Debug)]
pub(in crate::text) enum Origin {
    Number(f64),
    Date(i64),
    Point(Near),
}

impl Origin {
    pub(super) fn read(spec: &Operand<'_>, field: &str) -> Result<Self> {
        let name = spec.name_of(field);
        match spec.required(field)? {
            ValueRef::DateTime(at) => Ok(Self::Date(at)),
            ValueRef::Document(doc) => {
                if !matches!(doc.get("type"), Some(ValueRef::String("Point"))) {
                    refuse!("\"{name}\" must be a number, a date or a GeoJSON point");
                }
                match Near::of_geojson("near", doc) {
                    Ok(near) => Ok(Self::Point(near)),
                    Err(error) => refuse!("\"{name}\": {}", error.message()),
                }
            }
            value => match double(value) {
                Some(number) => Ok(Self::Number(number)),
                None => refuse!("\"{name}\" must be a number, a date or a GeoJSON point"),
            },
        }
    }
}
