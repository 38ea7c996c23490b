//! `$push`.

use super::held::Held;
use super::{Accumulator, Argument, Definition, State, add_items};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$push",
    argument: Argument::Expression,
    start: |_| Accumulator::Push(Push::default()),
};

/// All values in order; missing ones are left out.
#[derive(Clone, Debug, Default)]
pub struct Push(Held);

impl State for Push {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if !value.is_missing() {
            self.0.push(value.into_value());
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.0.to_array()
    }

    fn memory(&self) -> usize {
        self.0.bytes()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}
