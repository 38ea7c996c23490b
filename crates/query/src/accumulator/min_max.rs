//! `$min` and `$max`.

use super::{Accumulator, Argument, Definition, State, value_bytes};
use crate::collation::{Collator, compare};
use crate::env::Val;
use nestor_model::{Result, Value, ValueRef};
use std::cmp::Ordering;

pub(super) const MIN: Definition = Definition {
    name: "$min",
    argument: Argument::Expression,
    start: |settings| Accumulator::Extremum(Extremum::min(settings.collator)),
};

pub(super) const MAX: Definition = Definition {
    name: "$max",
    argument: Argument::Expression,
    start: |settings| Accumulator::Extremum(Extremum::max(settings.collator)),
};

/// The least or greatest value in BSON order; null and missing are left out.
#[derive(Clone, Debug)]
pub struct Extremum {
    /// How a value must compare with the current one to replace it.
    wanted: Ordering,
    collator: Option<Collator>,
    value: Value,
    bytes: usize,
}

impl Extremum {
    /// The least.
    pub fn min(collator: Option<&Collator>) -> Self {
        Self {
            wanted: Ordering::Less,
            collator: collator.cloned(),
            value: Value::Missing,
            bytes: 0,
        }
    }

    /// The greatest.
    pub fn max(collator: Option<&Collator>) -> Self {
        Self {
            wanted: Ordering::Greater,
            ..Self::min(collator)
        }
    }
}

impl Extremum {
    /// True for `$min`.
    pub fn is_min(&self) -> bool {
        self.wanted == Ordering::Less
    }

    /// The one of these doubles that would stay; `None` when there is none, or when one is not a number.
    pub(super) fn among(&self, values: &[f64]) -> Option<f64> {
        let (first, rest) = values.split_first()?;
        let mut best = *first;
        let mut is_number = !best.is_nan();
        for value in rest {
            is_number &= !value.is_nan();
            let replaces = if self.is_min() { *value < best } else { *value > best };
            best = if replaces { *value } else { best };
        }
        is_number.then_some(best)
    }
}

impl State for Extremum {
    /// Takes a value; the first of equal ones stays.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if value.is_nullish() {
            return Ok(());
        }
        if self.value.is_missing()
            || compare(value.as_ref(), self.value.as_ref(), self.collator.as_ref()) == self.wanted
        {
            self.value = value.into_value();
            self.bytes = value_bytes(&self.value);
        }
        Ok(())
    }

    /// The value, or null.
    fn result(&self) -> Value {
        if self.value.is_missing() {
            Value::Null
        } else {
            self.value.clone()
        }
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.add(Val::Ref(partial))
    }
}
