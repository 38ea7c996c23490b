//! `$first`, `$last`, `$firstN`, `$lastN`.

use super::value_bytes;
use crate::env::Val;
use nestor_model::Value;
use std::collections::VecDeque;

/// The first value, whatever it is.
#[derive(Clone, Debug, Default)]
pub struct First(Option<Value>);

impl First {
    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if self.0.is_none() {
            self.0 = Some(value.into_value());
        }
    }

    /// The value; missing when it was or when there was none.
    pub fn result(&self) -> Value {
        self.0.clone().unwrap_or(Value::Missing)
    }
}

/// The last value, whatever it is.
#[derive(Clone, Debug, Default)]
pub struct Last(Option<Value>);

impl Last {
    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        self.0 = Some(value.into_value());
    }

    /// The value; missing when it was or when there was none.
    pub fn result(&self) -> Value {
        self.0.clone().unwrap_or(Value::Missing)
    }
}

fn present(value: Val<'_>) -> Value {
    if value.is_missing() {
        Value::Null
    } else {
        value.into_value()
    }
}

/// The first `n` values; a missing one is null.
#[derive(Clone, Debug)]
pub struct FirstN {
    n: usize,
    values: Vec<Value>,
    bytes: usize,
}

impl FirstN {
    /// Keeps `n` values.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            values: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if self.values.len() < self.n {
            let value = present(value);
            self.bytes += value_bytes(&value);
            self.values.push(value);
        }
    }

    /// The values in order.
    pub fn result(&self) -> Value {
        self.values.clone().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }
}

/// The last `n` values; a missing one is null.
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

    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        let value = present(value);
        self.bytes += value_bytes(&value);
        self.values.push_back(value);
        if self.values.len() > self.n {
            let oldest = self.values.pop_front().expect("longer than n, so not empty");
            self.bytes -= value_bytes(&oldest);
        }
    }

    /// The values in order.
    pub fn result(&self) -> Value {
        self.values.iter().cloned().collect::<Vec<_>>().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }
}
