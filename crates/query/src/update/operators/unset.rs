//! `{$unset: {a: ""}}`: removes a field; an array element becomes null. The operand is ignored.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::Encoded;
use nestor_model::Result;

#[derive(Debug)]
pub(super) struct Unset;

impl Modifier for Unset {
    fn existing<'u>(&'u self, _: &Existing<'u>, _: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(Effect::Remove)
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }

    fn needs_path(&self, _: &Site<'_, '_>) -> bool {
        false
    }
}
