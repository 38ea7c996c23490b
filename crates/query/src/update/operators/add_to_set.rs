//! `{$addToSet: {a: value}}` or `{a: {$each: [value, ...]}}`: appends values that the array does not hold.

use super::{Effect, Existing, Modifier, Site, array};
use crate::collation::{Collator, Key, equal};
use crate::update::operand::{Encoded, Operand};
use nestor_model::statement::work;
use nestor_model::{Result, ValueRef, bail};
use std::collections::HashMap;

/// Up to this many values are compared one by one.
const LINEAR_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct AddToSet {
    /// Without duplicates, in the order of first appearance.
    values: Vec<Operand>,
    /// From value to its position, when there are many.
    positions: HashMap<Key, usize>,
    collator: Option<Collator>,
}

impl AddToSet {
    /// Errors: 14 (TypeMismatch) when `$each` is not an array; 2 (BadValue) for other fields beside it.
    pub fn parse(value: ValueRef<'_>, collator: Option<&Collator>) -> Result<Self> {
        let each = value
            .as_document()
            .filter(|doc| doc.iter().next().is_some_and(|(name, _)| name == "$each"));
        let Some(doc) = each else {
            return Ok(Self {
                values: vec![Operand::new(value)],
                positions: HashMap::new(),
                collator: collator.cloned(),
            });
        };
        let items = match doc.get("$each") {
            Some(ValueRef::Array(items)) => items,
            other => bail!(
                TypeMismatch,
                "The argument to $each in $addToSet must be an array but it was of type {}",
                other.unwrap_or(ValueRef::Missing).bson_type().alias()
            ),
        };
        if doc.iter().count() > 1 {
            bail!(BadValue, "Found unexpected fields after $each in $addToSet: {doc:?}");
        }
        let mut positions = HashMap::new();
        let mut values = Vec::new();
        for item in items {
            if let std::collections::hash_map::Entry::Vacant(entry) =
                positions.entry(Key::new(item.to_value(), collator))
            {
                entry.insert(values.len());
                values.push(Operand::new(item));
            }
        }
        if values.len() <= LINEAR_MAX {
            positions.clear();
        }
        Ok(Self {
            values,
            positions,
            collator: collator.cloned(),
        })
    }

    fn position(&self, value: ValueRef<'_>) -> Option<usize> {
        let collator = self.collator.as_ref();
        if self.positions.is_empty() {
            self.values.iter().position(|v| equal(v.value(), value, collator))
        } else {
            self.positions.get(&Key::new(value.to_value(), collator)).copied()
        }
    }
}

impl Modifier for AddToSet {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(items) = array::elements(at) else {
            bail!(
                BadValue,
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                site.field(),
                at.type_name()
            );
        };
        let mut absent = vec![true; self.values.len()];
        let mut from = 0;
        for (_, item) in items.iter() {
            work(1)?;
            if let Some(found) = self.position(item) {
                absent[found] = false;
            }
            from += 1;
        }
        let values: Vec<_> = self
            .values
            .iter()
            .zip(absent)
            .filter(|(_, absent)| *absent)
            .map(|(value, _)| value.encoded())
            .collect();
        Ok(if values.is_empty() {
            Effect::Keep
        } else {
            Effect::Append {
                from,
                values,
                whole: true,
            }
        })
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(array::build(self.values.iter().map(array::Item::from))))
    }
}
