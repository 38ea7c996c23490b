//! `{$pullAll: {a: [value, ...]}}`: removes the array elements that equal any of the values.

use super::{Effect, Existing, Modifier, Site, array};
use crate::collation::{Collator, Key, equal};
use crate::update::operand::Encoded;
use nestor_model::{Result, ValueRef, bail};
use std::collections::HashSet;

/// Up to this many values are compared one by one.
const LINEAR_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct PullAll {
    values: HashSet<Key>,
    collator: Option<Collator>,
}

impl PullAll {
    /// Errors: 2 (BadValue) when the operand is not an array.
    pub fn parse(value: ValueRef<'_>, collator: Option<&Collator>) -> Result<Self> {
        let ValueRef::Array(values) = value else {
            bail!(
                BadValue,
                "$pullAll requires an array argument but was given a {}",
                value.bson_type().alias()
            );
        };
        Ok(Self {
            values: values.iter().map(|v| Key::new(v.to_value(), collator)).collect(),
            collator: collator.cloned(),
        })
    }

    fn contains(&self, value: ValueRef<'_>) -> bool {
        let collator = self.collator.as_ref();
        if self.values.len() <= LINEAR_MAX {
            self.values.iter().any(|key| equal(key.value.as_ref(), value, collator))
        } else {
            self.values.contains(&Key::new(value.to_value(), collator))
        }
    }
}

impl Modifier for PullAll {
    fn existing<'u>(&'u self, at: &Existing<'u>, _: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(items) = array::elements(at) else {
            bail!(BadValue, "Cannot apply $pull to a non-array value");
        };
        let rest = array::without(items, |_, e| Ok(self.contains(e.value())))?;
        Ok(rest.map_or(Effect::Keep, Effect::Replace))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }

    fn needs_path(&self, _: &Site<'_, '_>) -> bool {
        false
    }
}
