//! Values that an accumulator holds, with the bytes they take.

use super::value_bytes;
use nestor_model::Value;

/// Values in an order, and their bytes, so that those are known without looking at the values.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    values: Vec<Value>,
    bytes: usize,
}

impl Held {
    /// The values in order.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Puts a value behind all others.
    pub(super) fn push(&mut self, value: Value) {
        self.bytes += value_bytes(&value);
        self.values.push(value);
    }

    /// Puts a value at a place; those from there on move back.
    pub(super) fn insert(&mut self, at: usize, value: Value) {
        self.bytes += value_bytes(&value);
        self.values.insert(at, value);
    }

    /// Takes the last value away.
    pub(super) fn pop(&mut self) {
        if let Some(value) = self.values.pop() {
            self.bytes -= value_bytes(&value);
        }
    }

    /// The values as an array.
    pub(super) fn to_array(&self) -> Value {
        self.values.clone().into()
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
