//! `$first`, `$last`, `$firstN`, `$lastN`.

use super::{items, value_bytes};
use crate::env::Val;
use nestor_model::{Value, ValueRef};
use std::collections::VecDeque;

/// The first value, whatever it is.
#[derive(Clone, Debug, Default)]
pub struct First(Kept);

impl First {
    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        if self.0.value.is_none() {
            self.0.keep(value.into_value());
        }
    }

    /// The value; missing when it was or when there was none.
    pub fn result(&self) -> Value {
        self.0.result()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.0.bytes
    }

    /// The state, as [`Kept::partial`].
    pub fn partial(&self) -> Value {
        self.0.partial()
    }

    /// Takes what [`First::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        if let Some(value) = Kept::of(partial) {
            self.add(Val::Ref(value));
        }
    }
}

/// The last value, whatever it is.
#[derive(Clone, Debug, Default)]
pub struct Last(Kept);

impl Last {
    /// Takes a value.
    pub fn add(&mut self, value: Val<'_>) {
        self.0.keep(value.into_value());
    }

    /// The value; missing when it was or when there was none.
    pub fn result(&self) -> Value {
        self.0.result()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.0.bytes
    }

    /// The state, as [`Kept::partial`].
    pub fn partial(&self) -> Value {
        self.0.partial()
    }

    /// Takes what [`Last::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        if let Some(value) = Kept::of(partial) {
            self.add(Val::Ref(value));
        }
    }
}

/// One value, once there is one.
#[derive(Clone, Debug, Default)]
struct Kept {
    value: Option<Value>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, value: Value) {
        self.bytes = value_bytes(&value);
        self.value = Some(value);
    }

    fn result(&self) -> Value {
        self.value.clone().unwrap_or(Value::Missing)
    }

    /// No item when there is no value yet, two when it is missing.
    fn partial(&self) -> Value {
        match &self.value {
            None => Vec::new(),
            Some(Value::Missing) => vec![Value::Null, Value::Null],
            Some(value) => vec![value.clone()],
        }
        .into()
    }

    fn of(partial: ValueRef<'_>) -> Option<ValueRef<'_>> {
        let mut items = items(partial);
        let first = items.next()?;
        Some(items.next().map_or(first, |_| ValueRef::Missing))
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

    /// The state: the values in order.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`FirstN::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(Val::Ref(value)));
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

    /// The state: the values in order.
    pub fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what [`LastN::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(Val::Ref(value)));
    }
}
