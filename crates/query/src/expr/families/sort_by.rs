//! `sortBy` of `$sortArray` and of `$top`, `$bottom` and their kin as expressions.
//!
//! Unlike a `$sort` stage these compare an array as a whole, and a path does not go through arrays.

use crate::env::Env;
use crate::expr::args::error;
use nestor_model::number::whole_number;
use nestor_model::sort::sort_by;
use nestor_model::{Path, Result, Value, ValueRef};
use std::cmp::Ordering;

/// How elements are ordered.
pub(crate) enum SortBy {
    /// Whole elements; true for descending.
    Whole(bool),
    /// The fields at these paths; true for descending.
    Fields(Box<[(Path, bool)]>),
}

/// The key by which elements are compared.
pub(crate) type SortKey = Box<[Value]>;

impl SortBy {
    /// Parses. Errors: 2942505 a document's value is not 1 or -1, 2942506 a number is not, 2942507 another type.
    pub(crate) fn parse(op: &str, value: ValueRef<'_>) -> Result<Self> {
        match value {
            ValueRef::Document(doc) => {
                let fields: Option<Box<[_]>> = doc
                    .iter()
                    .map(|(path, value)| Some((Path::new(path), is_descending(value)?)))
                    .collect();
                match fields {
                    Some(fields) if !fields.is_empty() => Ok(SortBy::Fields(fields)),
                    _ => Err(error(2_942_505, format!("{op}: each field of sortBy must be 1 or -1"))),
                }
            }
            number if number.is_number() => match is_descending(number) {
                Some(descending) => Ok(SortBy::Whole(descending)),
                None => Err(error(2_942_506, format!("{op}: sortBy must be 1 or -1"))),
            },
            other => Err(error(
                2_942_507,
                format!(
                    "{op}: sortBy must be 1, -1 or a document, not {}",
                    other.bson_type().alias()
                ),
            )),
        }
    }

    /// The key of an element; missing fields count as null.
    pub(crate) fn key(&self, item: ValueRef<'_>) -> SortKey {
        match self {
            SortBy::Whole(_) => Box::new([item.to_value()]),
            SortBy::Fields(fields) => fields.iter().map(|(path, _)| read(path, item)).collect(),
        }
    }

    /// Orders two keys.
    fn compare(&self, env: &Env<'_>, a: &SortKey, b: &SortKey) -> Ordering {
        let turned = |order: Ordering, descending: bool| if descending { order.reverse() } else { order };
        match self {
            SortBy::Whole(descending) => turned(env.compare(a[0].as_ref(), b[0].as_ref()), *descending),
            SortBy::Fields(fields) => fields
                .iter()
                .zip(a.iter().zip(b))
                .map(|((_, descending), (a, b))| turned(env.compare(a.as_ref(), b.as_ref()), *descending))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }

    /// Sorts; ties keep their order.
    pub(crate) fn sort(&self, env: &Env<'_>, items: &mut Vec<Value>) -> Result<()> {
        match self {
            SortBy::Whole(false) => sort_by(items, |a, b| env.compare(a.as_ref(), b.as_ref())),
            SortBy::Whole(true) => sort_by(items, |a, b| env.compare(b.as_ref(), a.as_ref())),
            SortBy::Fields(_) => {
                let mut keyed: Vec<(SortKey, Value)> = std::mem::take(items)
                    .into_iter()
                    .map(|item| (self.key(item.as_ref()), item))
                    .collect();
                sort_by(&mut keyed, |a, b| self.compare(env, &a.0, &b.0))?;
                items.extend(keyed.into_iter().map(|(_, item)| item));
                Ok(())
            }
        }
    }
}

fn is_descending(value: ValueRef<'_>) -> Option<bool> {
    match whole_number(value)? {
        1 => Some(false),
        -1 => Some(true),
        _ => None,
    }
}

fn read(path: &Path, item: ValueRef<'_>) -> Value {
    let mut value = item;
    for part in path.parts() {
        value = match value {
            ValueRef::Document(doc) => doc.get(&part.name).unwrap_or(ValueRef::Missing),
            _ => ValueRef::Missing,
        };
    }
    if value.is_missing() {
        Value::Null
    } else {
        value.to_value()
    }
}
