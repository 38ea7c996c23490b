//! `$min`, `$max`, `$minN`, `$maxN`.

use super::{items, value_bytes};
use crate::collation::{Collator, compare};
use crate::env::Val;
use nestor_model::{Value, ValueRef};
use std::cmp::Ordering;

/// The least or greatest value in BSON order; null and missing are left out.
#[derive(Clone, Debug)]
pub struct Extremum {
    /// What a value must compare as against the current one to take its place.
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

    /// Takes a value; the first of equal ones stays.
    pub fn add(&mut self, value: Val<'_>) {
        if value.is_nullish() {
            return;
        }
        if self.value.is_missing()
            || compare(value.as_ref(), self.value.as_ref(), self.collator.as_ref()) == self.wanted
        {
            self.value = value.into_value();
            self.bytes = value_bytes(&self.value);
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

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: the value, or null.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`Extremum::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        self.add(Val::Ref(partial));
    }
}

/// The `n` least or greatest values, best first; null and missing are left out.
#[derive(Clone, Debug)]
pub struct ExtremumN {
    better: Ordering,
    collator: Option<Collator>,
    n: usize,
    /// Sorted, best first, at most `n`.
    values: Vec<Value>,
    bytes: usize,
}

impl ExtremumN {
    /// The `n` least.
    pub fn min(n: usize, collator: Option<&Collator>) -> Self {
        Self {
            better: Ordering::Less,
            collator: collator.cloned(),
            n,
            values: Vec::new(),
            bytes: 0,
        }
    }

    /// The `n` greatest.
    pub fn max(n: usize, collator: Option<&Collator>) -> Self {
        Self {
            better: Ordering::Greater,
            ..Self::min(n, collator)
        }
    }

    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if value.is_nullish() {
            return;
        }
        let stays = |held: &Value| compare(value.as_ref(), held.as_ref(), self.collator.as_ref()) != self.better;
        if self.values.len() >= self.n && self.values.last().is_some_and(stays) {
            return;
        }
        let at = self.values.partition_point(stays);
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

    /// The state: the values, best first.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`ExtremumN::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(Val::Ref(value)));
    }
}
