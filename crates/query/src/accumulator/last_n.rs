//! `$lastN`.

use super::{Accumulator, Argument, Definition, State, add_items, present, value_bytes};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};
use std::collections::VecDeque;

pub(super) const DEFINITION: Definition = Definition {
    name: "$lastN",
    argument: Argument::InputAndN,
    start: |settings| Accumulator::LastN(LastN::new(settings.n)),
};

/// The last `n` values in order; a missing one is null.
#[derive(Clone, Debug)]
pub struct LastN {
    n: usize,
    values: VecDeque<Value>,
    bytes: usize,
}

impl LastN {
    /// Keeps `n` values.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            values: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl State for LastN {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        let value = present(value);
        self.bytes += value_bytes(&value);
        self.values.push_back(value);
        if self.values.len() > self.n {
            let oldest = self.values.pop_front().expect("longer than n, so not empty");
            self.bytes -= value_bytes(&oldest);
        }
        Ok(())
    }

    fn result(&self) -> Value {
        self.values.iter().cloned().collect::<Vec<_>>().into()
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}
