//! `$first`.

use super::kept::Kept;
use super::{Accumulator, Argument, Definition, State};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$first",
    argument: Argument::Expression,
    start: |_| Accumulator::First(First::default()),
};

/// The first value, whatever it is; missing when that value was, or when there was none.
#[derive(Clone, Debug, Default)]
pub struct First(Kept);

impl State for First {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if self.0.is_empty() {
            self.0.keep(value.into_value());
        }
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
