//! Whether a value satisfies a schema.

use super::{Additional, Bound, Dependency, Items, Schema};
use nestor_model::number::Num;
use nestor_model::sort::sort_by;
use nestor_model::statement::work;
use nestor_model::{ArrayRef, DocRef, Result, Str, Value, ValueRef, compare};
use std::collections::HashSet;

impl Schema {
    /// Whether `value` satisfies every keyword. Errors: a pattern that takes too long.
    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        work(1)?;
        Ok(self.types.is_none_or(|types| types.contains(value.bson_type()))
            && self.is_encrypted_as_wanted(value)
            && self.enum_allows(value)
            && self.number_fits(value)
            && self.string_fits(value)?
            && match value {
                ValueRef::Array(items) => self.array_fits(items)?,
                ValueRef::Document(doc) => self.object_fits(doc)?,
                _ => true,
            }
            && self.combinations_fit(value)?)
    }

    pub(super) fn is_encrypted_as_wanted(&self, value: ValueRef<'_>) -> bool {
        self.encrypted.is_none_or(|encrypted| encrypted.allows(value))
    }

    pub(super) fn enum_allows(&self, value: ValueRef<'_>) -> bool {
        match &self.allowed {
            Some(allowed) => allowed.iter().any(|v| equal_unordered(v.as_ref(), value)),
            None => true,
        }
    }

    fn number_fits(&self, value: ValueRef<'_>) -> bool {
        !value.is_number()
            || (self.minimum.as_ref().is_none_or(|b| above(b, value))
                && self.maximum.as_ref().is_none_or(|b| below(b, value))
                && self.multiple_of.as_ref().is_none_or(|n| is_multiple(value, n)))
    }

    fn string_fits(&self, value: ValueRef<'_>) -> Result<bool> {
        let ValueRef::String(text) = value else {
            return Ok(true);
        };
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = text.chars().count() as u64;
            if self.min_length.is_some_and(|n| length < n) || self.max_length.is_some_and(|n| length > n) {
                return Ok(false);
            }
        }
        self.pattern.as_ref().map_or(Ok(true), |pattern| pattern.is_match(text))
    }

    fn array_fits(&self, items: ArrayRef<'_>) -> Result<bool> {
        if self.min_items.is_some() || self.max_items.is_some() {
            let length = items.len() as u64;
            if self.min_items.is_some_and(|n| length < n) || self.max_items.is_some_and(|n| length > n) {
                return Ok(false);
            }
        }
        if self.unique_items && duplicate(items)?.is_some() {
            return Ok(false);
        }
        for (i, item) in items.iter().enumerate() {
            if let Some(schema) = self.item_schema(i) {
                if !schema.matches(item)? {
                    return Ok(false);
                }
            } else if self.is_additional_item(i) {
                match &self.additional_items {
                    Some(Additional::Allowed(false)) => return Ok(false),
                    Some(Additional::Schema(schema)) if !schema.matches(item)? => return Ok(false),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// The schema that `items` gives for the item at `index`.
    pub(super) fn item_schema(&self, index: usize) -> Option<&Schema> {
        match &self.items {
            Some(Items::Each(schema)) => Some(schema),
            Some(Items::ByPosition(schemas)) => schemas.get(index),
            None => None,
        }
    }

    /// Whether `additionalItems` is about the item at `index`: only beyond a list of schemas.
    pub(super) fn is_additional_item(&self, index: usize) -> bool {
        matches!(&self.items, Some(Items::ByPosition(schemas)) if index >= schemas.len())
    }

    fn object_fits(&self, doc: DocRef<'_>) -> Result<bool> {
        if !self.has_required(doc) {
            return Ok(false);
        }
        if self.min_properties.is_some() || self.max_properties.is_some() {
            let count = doc.iter().count() as u64;
            if self.min_properties.is_some_and(|n| count < n) || self.max_properties.is_some_and(|n| count > n) {
                return Ok(false);
            }
        }
        if !self.properties.is_empty() {
            for (name, value) in doc {
                work(1)?;
                if let Some(schema) = self.property(name) {
                    if !schema.matches(value)? {
                        return Ok(false);
                    }
                }
            }
        }
        if !self.pattern_properties.is_empty() || self.additional_properties.is_some() {
            for (name, value) in doc {
                work(1 + self.pattern_properties.len())?;
                for (pattern, schema) in &self.pattern_properties {
                    if pattern.is_match(name)? && !schema.matches(value)? {
                        return Ok(false);
                    }
                }
                if self.is_additional_property(name)? {
                    match &self.additional_properties {
                        Some(Additional::Allowed(false)) => return Ok(false),
                        Some(Additional::Schema(schema)) if !schema.matches(value)? => return Ok(false),
                        _ => {}
                    }
                }
            }
        }
        for (name, demand) in &self.dependencies {
            if doc.get(name).is_none() {
                continue;
            }
            let met = match demand {
                Dependency::Properties(names) => names.iter().all(|n| doc.get(n).is_some()),
                Dependency::Schema(schema) => schema.matches(ValueRef::Document(doc))?,
            };
            if !met {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_required(&self, doc: DocRef<'_>) -> bool {
        /// Required names from which on a set of the document's names is cheaper than looking up each.
        const SET_FROM: usize = 16;
        if self.required.len() < SET_FROM {
            return self.required.iter().all(|name| doc.get(name).is_some());
        }
        let names: HashSet<&str> = doc.iter().map(|(name, _)| name).collect();
        self.required.iter().all(|name| names.contains(name.as_str()))
    }

    /// Whether `additionalProperties` is about this property.
    pub(super) fn is_additional_property(&self, name: &str) -> Result<bool> {
        if self.property(name).is_some() {
            return Ok(false);
        }
        for (pattern, _) in &self.pattern_properties {
            if pattern.is_match(name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn combinations_fit(&self, value: ValueRef<'_>) -> Result<bool> {
        for schema in &self.all_of {
            if !schema.matches(value)? {
                return Ok(false);
            }
        }
        if !self.any_of.is_empty() && matching(&self.any_of, value, 1)? == 0 {
            return Ok(false);
        }
        if !self.one_of.is_empty() && matching(&self.one_of, value, 2)? != 1 {
            return Ok(false);
        }
        match &self.not {
            Some(schema) => Ok(!schema.matches(value)?),
            None => Ok(true),
        }
    }
}

/// How many schemas match, counting to `enough` at most.
fn matching(schemas: &[Schema], value: ValueRef<'_>, enough: usize) -> Result<usize> {
    let mut count = 0;
    for schema in schemas {
        count += usize::from(schema.matches(value)?);
        if count == enough {
            break;
        }
    }
    Ok(count)
}

fn is_nan(value: ValueRef<'_>) -> bool {
    Num::from_ref(value).is_some_and(Num::is_nan)
}

pub(super) fn above(bound: &Bound, value: ValueRef<'_>) -> bool {
    within(bound, value, std::cmp::Ordering::Greater)
}

pub(super) fn below(bound: &Bound, value: ValueRef<'_>) -> bool {
    within(bound, value, std::cmp::Ordering::Less)
}

fn within(bound: &Bound, value: ValueRef<'_>, side: std::cmp::Ordering) -> bool {
    let order = compare(value, &bound.value);
    // As in comparisons of filters, NaN is within a limit of NaN only.
    if is_nan(value) != is_nan(bound.value.as_ref()) {
        return false;
    }
    order == side || (order.is_eq() && !bound.exclusive)
}

pub(super) fn is_multiple(value: ValueRef<'_>, of: &Value) -> bool {
    let (Some(value), Some(of)) = (Num::from_ref(value), Num::from_ref(of.as_ref())) else {
        return false;
    };
    match (value, of) {
        // In decimal, 0.3 is a multiple of 0.1.
        (Num::Decimal(_) | Num::Double(_), _) | (_, Num::Decimal(_) | Num::Double(_)) => {
            value.to_decimal().rem(of.to_decimal()).is_zero()
        }
        _ => match (value.to_i64_exact(), of.to_i64_exact()) {
            (Some(v), Some(n)) => v.checked_rem(n).is_some_and(|rest| rest == 0),
            _ => false,
        },
    }
}

/// The second of two equal items.
pub(super) fn duplicate(items: ArrayRef<'_>) -> Result<Option<ValueRef<'_>>> {
    // Equal items are neighbours once sorted, objects once their fields are sorted too.
    let (nested, mut plain): (Vec<_>, Vec<_>) = items
        .iter()
        .partition(|v| matches!(v, ValueRef::Document(_) | ValueRef::Array(_)));
    sort_by(&mut plain, |a, b| compare(*a, *b))?;
    if let Some(pair) = plain.windows(2).find(|pair| compare(pair[0], pair[1]).is_eq()) {
        return Ok(Some(pair[1]));
    }
    let mut nested: Vec<(Value, ValueRef<'_>)> = nested.into_iter().map(|v| (fields_sorted(v), v)).collect();
    sort_by(&mut nested, |a, b| compare(&a.0, &b.0))?;
    let pair = nested.windows(2).find(|pair| compare(&pair[0].0, &pair[1].0).is_eq());
    Ok(pair.map(|pair| pair[1].1))
}

/// The value with the fields of every object in the order of their names.
fn fields_sorted(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(doc) => {
            let mut fields: Vec<(Str, Value)> = doc.iter().map(|(n, v)| (n.into(), fields_sorted(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Document(fields.into_iter().collect())
        }
        ValueRef::Array(items) => Value::Array(items.iter().map(fields_sorted).collect()),
        other => other.to_value(),
    }
}

/// Equality in which the order of an object's fields does not matter.
pub(super) fn equal_unordered(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Document(x), ValueRef::Document(y)) => {
            x.iter().count() == y.iter().count()
                && x.iter()
                    .all(|(name, v)| y.get(name).is_some_and(|w| equal_unordered(v, w)))
        }
        (ValueRef::Array(x), ValueRef::Array(y)) => {
            let (mut left, mut right) = (x.iter(), y.iter());
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return true,
                    (Some(v), Some(w)) if equal_unordered(v, w) => {}
                    _ => return false,
                }
            }
        }
        _ => compare(a, b).is_eq(),
    }
}
