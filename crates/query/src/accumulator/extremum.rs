//! `$min`, `$max`, `$minN`, `$maxN`.

use super::value_bytes;
use crate::env::Val;
use nestor_model::{Value, compare};
use std::cmp::Ordering;

/// The least or greatest value in BSON order; null and missing are left out.
#[derive(Clone, Debug)]
pub struct Extremum {
    /// What a value must compare as against the current one to take its place.
    wanted: Ordering,
    value: Value,
}

impl Extremum {
    /// The least.
    pub fn min() -> Self {
        Self {
            wanted: Ordering::Less,
            value: Value::Missing,
        }
    }

    /// The greatest.
    pub fn max() -> Self {
        Self {
            wanted: Ordering::Greater,
            value: Value::Missing,
        }
    }

    /// Takes a value; the first of equal ones stays.
    pub fn add(&mut self, value: Val<'_>) {
        if value.is_nullish() {
            return;
        }
        if self.value.is_missing() || compare(value.as_ref(), &self.value) == self.wanted {
            self.value = value.into_value();
        }
    }

    /// The value, or null.
    pub fn result(&self) -> Value {
        if self.value.is_missing() {
            Value::Null
        } else {
            self.value.clone()
        }
    }
}

/// The `n` least or greatest values, best first; null and missing are left out.
#[derive(Clone, Debug)]
pub struct ExtremumN {
    better: Ordering,
    n: usize,
    /// Sorted, best first, at most `n`.
    values: Vec<Value>,
    bytes: usize,
}

impl ExtremumN {
    /// The `n` least.
    pub fn min(n: usize) -> Self {
        Self {
            better: Ordering::Less,
            n,
            values: Vec::new(),
            bytes: 0,
        }
    }

    /// The `n` greatest.
    pub fn max(n: usize) -> Self {
        Self {
            better: Ordering::Greater,
            ..Self::min(n)
        }
    }

    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if value.is_nullish() {
            return;
        }
        if self.values.len() >= self.n
            && self
                .values
                .last()
                .is_some_and(|worst| compare(value.as_ref(), worst) != self.better)
        {
            return;
        }
        let at = self
            .values
            .partition_point(|held| compare(value.as_ref(), held) != self.better);
        let value = value.into_value();
        self.bytes += value_bytes(&value);
        self.values.insert(at, value);
        if self.values.len() > self.n {
            let worst = self.values.pop().expect("longer than n, so not empty");
            self.bytes -= value_bytes(&worst);
        }
    }

    /// The values, best first.
    pub fn result(&self) -> Value {
        self.values.clone().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }
}
