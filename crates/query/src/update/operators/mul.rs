//! `{$mul: {n: 2}}`: multiplies a number; a missing field becomes zero of the operand's type.

use super::{Effect, Existing, Modifier, Site, arithmetic};
use crate::update::operand::Encoded;
use nestor_model::number::Num;
use nestor_model::{Result, ValueRef};

#[derive(Debug)]
pub(super) struct Mul(Num);

impl Mul {
    /// Errors: 14 (TypeMismatch).
    pub fn parse(field: &str, value: ValueRef<'_>) -> Result<Self> {
        arithmetic::operand("multiply", field, value).map(Self)
    }
}

impl Modifier for Mul {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        arithmetic::combine("$mul", at, site, |old| old.checked_mul(self.0))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        // Zero of type int times the operand has the operand's type; it cannot overflow.
        Ok(Num::Int32(0).checked_mul(self.0).map(Encoded::new))
    }
}
