//! `{$setOnInsert: {a: value}}`: `$set` when an upsert inserts, nothing otherwise.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::{Encoded, Operand};
use nestor_model::{Result, ValueRef};

#[derive(Debug)]
pub(super) struct SetOnInsert(Operand);

impl SetOnInsert {
    pub fn new(value: ValueRef<'_>) -> Self {
        Self(Operand::new(value))
    }
}

impl Modifier for SetOnInsert {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(if site.context.insert {
            Effect::replace(at, self.0.encoded())
        } else {
            Effect::Keep
        })
    }

    fn missing<'u>(&'u self, site: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(site.context.insert.then(|| self.0.encoded()))
    }

    fn needs_path(&self, site: &Site<'_, '_>) -> bool {
        site.context.insert
    }
}
