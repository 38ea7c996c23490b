//! `$avg`.

use super::Sum;
use nestor_model::{Decimal128, Value, ValueRef};

/// The mean of the numbers: a double, or a decimal if any was; null without numbers.
#[derive(Clone, Debug, Default)]
pub struct Average {
    sum: Sum,
    count: u64,
}

impl Average {
    /// Adds a number; other values are left out.
    pub fn add(&mut self, value: ValueRef<'_>) {
        if value.is_number() {
            self.sum.add(as_double(value));
            self.count += 1;
        }
    }

    /// Takes a number back out, as [`Sum::remove`].
    pub fn remove(&mut self, value: ValueRef<'_>) -> bool {
        if !value.is_number() {
            return true;
        }
        let removed = self.sum.remove(as_double(value));
        if removed {
            self.count -= 1;
        }
        removed
    }

    /// The mean.
    pub fn result(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        if self.sum.is_decimal() {
            return Value::Decimal128(self.sum.decimal_total().div(Decimal128::from_i64(self.count as i64)));
        }
        Value::Double(self.sum.double_total() / self.count as f64)
    }

    /// The state: the sum's and the count.
    pub fn partial(&self) -> Value {
        vec![self.sum.partial(), Value::Int64(self.count as i64)].into()
    }

    /// Adds what [`Average::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        if let ValueRef::Array(items) = partial {
            self.sum.merge(items.get(0).unwrap_or(ValueRef::Null));
            if let Some(ValueRef::Int64(count)) = items.get(1) {
                self.count += count as u64;
            }
        }
    }
}

/// Longs take part as the doubles nearest to them, decimals as they are.
fn as_double(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Int32(v) => ValueRef::Double(f64::from(v)),
        ValueRef::Int64(v) => ValueRef::Double(v as f64),
        other => other,
    }
}
