//! `{$min: {a: value}}`: sets a field when the operand is less in BSON order than what is there.

use super::{Effect, Existing, Modifier, Site};
use crate::collation::compare;
use crate::update::operand::{Encoded, Operand};
use nestor_model::{Result, ValueRef};
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) struct Min(Operand);

impl Min {
    pub fn new(value: ValueRef<'_>) -> Self {
        Self(Operand::new(value))
    }
}

impl Modifier for Min {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(match compare(self.0.value(), at.value, site.collator()) {
            Ordering::Less => Effect::Replace(self.0.encoded()),
            _ => Effect::Keep,
        })
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(self.0.encoded()))
    }
}
