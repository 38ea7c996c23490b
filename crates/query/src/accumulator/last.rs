//! `$last`.

use super::kept::Kept;
use super::{Accumulator, Argument, Definition, State};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$last",
    argument: Argument::Expression,
    start: |_| Accumulator::Last(Last::default()),
};

/// The last value, whatever it is; missing when that value was, or when there was none.
#[derive(Clone, Debug, Default)]
pub struct Last(Kept);

impl State for Last {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        self.0.keep(value.into_value());
        Ok(())
    }

    fn result(&self) -> Value {
        self.0.result()
    }

    fn memory(&self) -> usize {
        self.0.bytes()
    }

    fn partial(&self) -> Value {
        self.0.partial()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        match Kept::of(partial) {
            Some(value) => self.add(Val::Ref(value)),
            None => Ok(()),
        }
    }
}
