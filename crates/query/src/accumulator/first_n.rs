//! `$firstN`.

use super::held::Held;
use super::{Accumulator, Argument, Definition, State, add_items, present};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$firstN",
    argument: Argument::InputAndN,
    start: |settings| Accumulator::FirstN(FirstN::new(settings.n)),
};

/// The first `n` values in order; a missing one is null.
#[derive(Clone, Debug)]
pub struct FirstN {
    n: usize,
    values: Held,
}

impl FirstN {
    /// Keeps `n` values.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            values: Held::default(),
        }
    }
}

impl State for FirstN {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if self.values.values().len() < self.n {
            self.values.push(present(value));
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.values.to_array()
    }

    fn memory(&self) -> usize {
        self.values.bytes()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}
