//! `{$inc: {n: 1}}`: adds to a number; a missing field becomes the operand.

use super::{Effect, Existing, Modifier, Site, arithmetic};
use crate::update::operand::Encoded;
use nestor_model::number::Num;
use nestor_model::{Result, ValueRef};

#[derive(Debug)]
pub(super) struct Inc(Num);

impl Inc {
    /// Errors: 14 (TypeMismatch).
    pub fn parse(field: &str, value: ValueRef<'_>) -> Result<Self> {
        arithmetic::operand("increment", field, value).map(Self)
    }
}

impl Modifier for Inc {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        arithmetic::combine("$inc", at, site, |old| old.checked_add(self.0))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(Encoded::new(self.0)))
    }
}
