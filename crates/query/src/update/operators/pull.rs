//! `{$pull: {a: value | condition}}`: removes the array elements that equal a value or meet a condition.

use super::{Effect, Existing, Modifier, Site, array};
use crate::env::Scope;
use crate::update::Predicate;
use crate::update::operand::Encoded;
use nestor_model::{Result, ValueRef, bail};

#[derive(Debug)]
pub(super) struct Pull(Predicate);

impl Pull {
    /// Errors: those of the condition.
    pub fn parse(value: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        Predicate::for_pull(value, scope).map(Self)
    }
}

impl Modifier for Pull {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        let Some(items) = array::elements(at) else {
            bail!(BadValue, "Cannot apply $pull to a non-array value");
        };
        let rest = array::without(items, |_, e| self.0.matches(e.value(), site.context.op))?;
        Ok(rest.map_or(Effect::Keep, Effect::Replace))
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }

    fn needs_path(&self, _: &Site<'_, '_>) -> bool {
        false
    }
}
