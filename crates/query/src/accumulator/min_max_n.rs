//! `$minN` and `$maxN`.

use super::held::Held;
use super::{Accumulator, Argument, Definition, State, add_items};
use crate::collation::{Collator, compare};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};
use std::cmp::Ordering;

pub(super) const MIN: Definition = Definition {
    name: "$minN",
    argument: Argument::InputAndN,
    start: |settings| Accumulator::ExtremumN(ExtremumN::min(settings.n, settings.collator)),
};

pub(super) const MAX: Definition = Definition {
    name: "$maxN",
    argument: Argument::InputAndN,
    start: |settings| Accumulator::ExtremumN(ExtremumN::max(settings.n, settings.collator)),
};

/// The `n` least or greatest values, best first; null and missing are left out.
#[derive(Clone, Debug)]
pub struct ExtremumN {
    better: Ordering,
    collator: Option<Collator>,
    n: usize,
    /// Sorted, best first, at most `n`.
    values: Held,
}

impl ExtremumN {
    /// The `n` least.
    pub fn min(n: usize, collator: Option<&Collator>) -> Self {
        Self {
            better: Ordering::Less,
            collator: collator.cloned(),
            n,
            values: Held::default(),
        }
    }

    /// The `n` greatest.
    pub fn max(n: usize, collator: Option<&Collator>) -> Self {
        Self {
            better: Ordering::Greater,
            ..Self::min(n, collator)
        }
    }
}

impl State for ExtremumN {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if value.is_nullish() {
            return Ok(());
        }
        let held = self.values.values();
        let stays = |held: &Value| compare(value.as_ref(), held.as_ref(), self.collator.as_ref()) != self.better;
        if held.len() >= self.n && held.last().is_some_and(stays) {
            return Ok(());
        }
        let at = held.partition_point(stays);
        self.values.insert(at, value.into_value());
        if self.values.values().len() > self.n {
            self.values.pop();
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
