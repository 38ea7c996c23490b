//! `{$pullAll: {a: [value, ...]}}`: removes the array elements that equal any of the values.

use super::{Effect, Existing, Modifier, Site, array};
use crate::update::operand::Encoded;
use nestor_model::order::Key;
use nestor_model::{Result, ValueRef, bail, values_equal};
use std::collections::HashSet;

/// Up to this many values are compared one by one.
const LINEAR_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct PullAll(HashSet<Key>);

impl PullAll {
    /// Errors: 2 (BadValue) when the operand is not an array.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let ValueRef::Array(values) = value else {
            bail!(
                BadValue,
                "$pullAll requires an array argument but was given a {}",
                value.bson_type().alias()
            );
        };
        Ok(Self(values.iter().map(|v| Key(v.to_value())).collect()))
    }

    fn contains(&self, value: ValueRef<'_>) -> bool {
        if self.0.len() <= LINEAR_MAX {
            self.0.iter().any(|key| values_equal(&key.0, value))
        } else {
            self.0.contains(&Key(value.to_value()))
        }
    }
}

impl Modifier for PullAll {
    fn existing<'u>(&'u self, at: &Existing<'u>, _: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(items) = array::elements(at) else {
            bail!(BadValue, "Cannot apply $pull to a non-array value");
        };
        let rest = array::without(items, |_, e| Ok::<_, nestor_model::Error>(self.contains(e.value())))?;
        Ok(rest.map_or(Effect::Keep, Effect::Replace))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }

    fn needs_path(&self, _: &Site<'_, '_>) -> bool {
        false
    }
}
