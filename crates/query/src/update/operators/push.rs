//! `{$push: {a: value}}` or `{a: {$each: [...], $position: 0, $slice: 5, $sort: 1 | {b: -1}}}`:
//! adds to an array: insert all at the position (the end), then sort, then cut.

use super::{Effect, Existing, Modifier, Site, array};
use crate::collation::{Collator, compare};
use crate::update::operand::{Encoded, Operand};
use array::Item;
use nestor_model::number::Num;
use nestor_model::sort::sort_by;
use nestor_model::{DocRef, Path, Result, ValueRef, bail};
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct Push {
    values: Vec<Operand>,
    /// Counted from the end when negative.
    position: Option<i64>,
    /// The first so many; the last so many when negative.
    slice: Option<i64>,
    sort: Option<SortBy>,
}

#[derive(Debug)]
enum SortBy {
    Whole { descending: bool },
    Fields(Vec<(Path, bool)>),
}

impl Push {
    /// Errors: 2 (BadValue) for malformed modifiers.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let modifiers = value.as_document().filter(|doc| doc.get("$each").is_some());
        let Some(doc) = modifiers else {
            return Ok(Self {
                values: vec![Operand::new(value)],
                position: None,
                slice: None,
                sort: None,
            });
        };
        let mut push = Self {
            values: Vec::new(),
            position: None,
            slice: None,
            sort: None,
        };
        for (name, value) in doc {
            match name {
                "$each" => match value {
                    ValueRef::Array(items) => push.values = items.iter().map(Operand::new).collect(),
                    other => bail!(
                        BadValue,
                        "The argument to $each in $push must be an array but it was of type: {}",
                        other.bson_type().alias()
                    ),
                },
                "$slice" => push.slice = Some(integer("$slice", value)?),
                "$position" => push.position = Some(integer("$position", value)?),
                "$sort" => push.sort = Some(SortBy::parse(value)?),
                _ => bail!(BadValue, "Unrecognized clause in $push: {name}"),
            }
        }
        Ok(push)
    }

    fn arrange<'i>(&'i self, mut items: Vec<Item<'i>>, collator: Option<&Collator>) -> Result<Vec<Item<'i>>> {
        let length = items.len();
        let at = match self.position {
            None => length,
            Some(p) if p >= 0 => usize::try_from(p).unwrap_or(usize::MAX).min(length),
            Some(p) => length.saturating_sub(usize::try_from(p.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        items.splice(at..at, self.values.iter().map(Item::from));
        if let Some(sort) = &self.sort {
            sort_by(&mut items, |a, b| sort.compare(a.value, b.value, collator))?;
        }
        match self.slice {
            None => {}
            Some(n) if n >= 0 => items.truncate(usize::try_from(n).unwrap_or(usize::MAX)),
            Some(n) => {
                let keep = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
                items.drain(..items.len().saturating_sub(keep));
            }
        }
        Ok(items)
    }
}

impl Modifier for Push {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(raw) = array::elements(at) else {
            bail!(
                BadValue,
                "The field '{}' must be an array but is of type {} in document {}",
                site.path(),
                at.type_name(),
                site.id()
            );
        };
        if self.position.is_none() && self.slice.is_none() && self.sort.is_none() {
            let from = raw.elements().count();
            let values: Vec<_> = self.values.iter().map(Operand::encoded).collect();
            return Ok(if values.is_empty() {
                Effect::Keep
            } else {
                Effect::Append {
                    from,
                    values,
                    whole: false,
                }
            });
        }
        let items = self.arrange(raw.elements().map(Item::from).collect(), site.collator())?;
        Ok(Effect::replace(at, array::build(items)))
    }

    fn missing<'u>(&'u self, site: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(array::build(self.arrange(Vec::new(), site.collator())?)))
    }
}

fn integer(clause: &str, value: ValueRef<'_>) -> Result<i64> {
    match Num::from_ref(value) {
        None => bail!(
            BadValue,
            "The value for {clause} must be an integer value but was given type: {}",
            value.bson_type().alias()
        ),
        Some(number) => match number.to_i64_exact() {
            Some(n) => Ok(n),
            None => bail!(
                BadValue,
                "The value for {clause} must be an integer value, not {value:?}"
            ),
        },
    }
}

impl SortBy {
    fn parse(value: ValueRef<'_>) -> Result<Self> {
        if Num::from_ref(value).is_some() {
            return Ok(Self::Whole {
                descending: direction(value)?,
            });
        }
        let ValueRef::Document(doc) = value else {
            bail!(
                BadValue,
                "The $sort is invalid: use 1/-1 to sort the whole element, or {{field:1/-1}} to sort embedded fields"
            );
        };
        let mut fields = Vec::new();
        for (name, value) in doc {
            let path = Path::new(name);
            if name.is_empty() {
                bail!(BadValue, "The $sort field cannot be empty");
            }
            if path.parts().iter().any(|part| part.name.is_empty()) {
                bail!(
                    BadValue,
                    "The $sort field is a dotted field but has an empty part: {name}"
                );
            }
            fields.push((path, direction(value)?));
        }
        if fields.is_empty() {
            bail!(
                BadValue,
                "The $sort pattern is empty when it should be a set of fields."
            );
        }
        Ok(Self::Fields(fields))
    }

    fn compare(&self, a: ValueRef<'_>, b: ValueRef<'_>, collator: Option<&Collator>) -> Ordering {
        match self {
            Self::Whole { descending } => directed(compare(a, b, collator), *descending),
            Self::Fields(fields) => fields
                .iter()
                .map(|(path, descending)| directed(compare(key(a, path), key(b, path), collator), *descending))
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// True for descending.
fn direction(value: ValueRef<'_>) -> Result<bool> {
    match Num::from_ref(value).and_then(Num::to_i64_exact) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => bail!(BadValue, "The $sort element value must be either 1 or -1"),
    }
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

/// The value to sort an element by; null when it has none.
fn key<'i>(element: ValueRef<'i>, path: &Path) -> ValueRef<'i> {
    let mut value = element;
    for (depth, part) in path.parts().iter().enumerate() {
        let next = match value {
            ValueRef::Document(doc) => DocRef::get(doc, &part.name),
            ValueRef::Array(items) if depth > 0 => part.index.and_then(|i| items.get(i as usize)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return ValueRef::Null,
        }
    }
    value
}
