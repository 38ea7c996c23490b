//! `{$set: {"a.b": value}}`: gives a field a value; makes the documents on the way there.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::{Encoded, Operand};
use nestor_model::{Result, ValueRef};

#[derive(Debug)]
pub(super) struct Set(Operand);

impl Set {
    pub fn new(value: ValueRef<'_>) -> Self {
        Self(Operand::new(value))
    }
}

impl Modifier for Set {
    fn existing<'u>(&'u self, at: &Existing<'u>, _: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(Effect::replace(at, self.0.encoded()))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(self.0.encoded()))
    }
}
