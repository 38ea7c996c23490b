//! `$avg`.

use super::{Accumulator, Argument, Definition, State, Sum};
use crate::env::Val;
use nestor_model::{Decimal128, Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$avg",
    argument: Argument::Expression,
    start: |_| Accumulator::Average(Average::default()),
};

/// The mean of the numbers: a double, or a decimal if any was; null without numbers.
#[derive(Clone, Debug, Default)]
pub struct Average {
    sum: Sum,
    count: u64,
    /// Longs take part as the doubles nearest to them instead of as they are.
    rounds_longs: bool,
}

impl Average {
    /// The mean as the operator `$avg` computes it, which rounds longs to doubles before it adds them.
    pub fn of_operator() -> Self {
        Self {
            rounds_longs: true,
            ..Self::default()
        }
    }

    /// Adds doubles, as one after the other.
    pub(super) fn add_doubles(&mut self, values: &[f64]) {
        self.sum.add_doubles(values);
        self.count += values.len() as u64;
    }

    /// Adds integers, all of them longs or none; false when they have to be added one by one, and are not added.
    pub(super) fn add_integers(&mut self, values: &[i64], are_longs: bool) -> bool {
        if are_longs && self.rounds_longs {
            return false;
        }
        self.sum.add_integers(values, are_longs);
        self.count += values.len() as u64;
        true
    }

    /// Adds so many integers, all of them longs or none, by their sum, which is exact.
    pub(super) fn add_total(&mut self, total: i128, count: u64, are_longs: bool) {
        debug_assert!(!self.rounds_longs, "longs that are rounded have no sum of their own");
        self.sum.add_total(total, count, are_longs);
        self.count += count;
    }

    fn term<'v>(&self, value: ValueRef<'v>) -> ValueRef<'v> {
        match value {
            ValueRef::Int64(v) if self.rounds_longs => ValueRef::Double(v as f64),
            other => other,
        }
    }
}

impl State for Average {
    /// Adds a number; other values are left out.
    #[inline]
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        let value = value.as_ref();
        if value.is_number() {
            self.sum.add_number(self.term(value));
            self.count += 1;
        }
        Ok(())
    }

    /// Takes a number back out, as [`Sum`] does.
    fn remove(&mut self, value: ValueRef<'_>) -> bool {
        if !value.is_number() {
            return true;
        }
        let removed = self.sum.remove(self.term(value));
        if removed {
            self.count -= 1;
        }
        removed
    }

    /// The mean.
    fn result(&self) -> Value {
        if self.count == 0 {
            return Value::Null;
        }
        if self.sum.is_decimal() {
            return Value::Decimal128(self.sum.decimal_total().div(Decimal128::from_i64(self.count as i64)));
        }
        Value::Double(self.sum.double_total() / self.count as f64)
    }

    /// Numbers of a fixed size.
    fn memory(&self) -> usize {
        0
    }

    /// The sum's state and the count.
    fn partial(&self) -> Value {
        vec![self.sum.partial(), Value::Int64(self.count as i64)].into()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        if let ValueRef::Array(items) = partial {
            self.sum.merge(items.get(0).unwrap_or(ValueRef::Null))?;
            if let Some(ValueRef::Int64(count)) = items.get(1) {
                self.count += count as u64;
            }
        }
        Ok(())
    }
}
