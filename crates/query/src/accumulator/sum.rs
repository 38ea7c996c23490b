//! `$sum`.

use super::{Accumulator, Argument, Definition, State};
use crate::env::Val;
use nestor_model::{Decimal128, Result, Value, ValueRef};

pub(super) const DEFINITION: Definition = Definition {
    name: "$sum",
    argument: Argument::Expression,
    start: |_| Accumulator::Sum(Sum::default()),
};

/// A sum that keeps integers exact, doubles compensated, and decimals decimal; everything else is left out.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// Exact: a thousand million longs fit.
    integers: i128,
    doubles: DoubleDouble,
    /// Counts of the types seen, so that removing can narrow the result again.
    longs: u64,
    double_count: u64,
    decimals: u64,
    decimal: Option<Decimal128>,
}

impl Sum {
    /// Adds a number; other values are left out.
    #[inline]
    pub fn add_number(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Int32(v) => self.integers += i128::from(v),
            ValueRef::Int64(v) => {
                self.integers += i128::from(v);
                self.longs += 1;
            }
            ValueRef::Double(v) => {
                self.doubles.add(v);
                self.double_count += 1;
            }
            ValueRef::Decimal128(v) => {
                // From zero on, which also makes a negative zero positive.
                self.decimal = Some(self.decimal.unwrap_or(Decimal128::ZERO).add(v));
                self.decimals += 1;
            }
            _ => {}
        }
    }

    /// Adds doubles, as one after the other.
    pub(super) fn add_doubles(&mut self, values: &[f64]) {
        // A copy, so that it stays in registers.
        let mut doubles = self.doubles;
        values.iter().for_each(|value| doubles.add(*value));
        self.doubles = doubles;
        self.double_count += values.len() as u64;
    }

    /// Adds integers, all of them longs or none.
    pub(super) fn add_integers(&mut self, values: &[i64], are_longs: bool) {
        let total = values.iter().map(|value| i128::from(*value)).sum();
        self.add_total(total, values.len() as u64, are_longs);
    }

    /// Adds so many integers, all of them longs or none, by their sum.
    pub(super) fn add_total(&mut self, total: i128, count: u64, are_longs: bool) {
        self.integers += total;
        self.longs += if are_longs { count } else { 0 };
    }

    /// Adds an integer so many times; false for other values, which are not added.
    pub(super) fn add_times(&mut self, value: ValueRef<'_>, times: usize) -> bool {
        match value {
            ValueRef::Int32(v) => self.integers += i128::from(v) * times as i128,
            ValueRef::Int64(v) => {
                self.integers += i128::from(v) * times as i128;
                self.longs += times as u64;
            }
            _ => return false,
        }
        true
    }

    /// The total as a double.
    pub(super) fn double_total(&self) -> f64 {
        let mut total = self.doubles;
        total.add_integer(self.integers);
        total.value()
    }

    /// The total as a decimal.
    pub(super) fn decimal_total(&self) -> Decimal128 {
        let decimal = self.decimal.unwrap_or(Decimal128::ZERO);
        // Added even when it is zero: that brings the exponent of a large sum back to zero where it fits.
        let integers = match i64::try_from(self.integers) {
            Ok(v) => Decimal128::from_i64(v),
            Err(_) => Decimal128::from_f64_exact(self.integers as f64),
        };
        let mut total = decimal.add(integers);
        if self.double_count > 0 {
            total = total.add(Decimal128::from_f64_exact(self.doubles.value()));
        }
        total
    }

    /// True when a decimal was added.
    pub(super) fn is_decimal(&self) -> bool {
        self.decimals > 0
    }
}

impl State for Sum {
    /// Adds a number; other values are left out.
    #[inline]
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        self.add_number(value.as_ref());
        Ok(())
    }

    /// Takes a number back out. False for what cannot be undone: decimals (rounding) and infinities.
    fn remove(&mut self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Int32(v) => self.integers -= i128::from(v),
            ValueRef::Int64(v) => {
                self.integers -= i128::from(v);
                self.longs -= 1;
            }
            ValueRef::Double(v) => {
                if !v.is_finite() || !self.doubles.sum.is_finite() {
                    return false;
                }
                self.doubles.add(-v);
                self.double_count -= 1;
                if self.double_count == 0 {
                    self.doubles = DoubleDouble::default();
                }
            }
            ValueRef::Decimal128(_) => return false,
            _ => {}
        }
        true
    }

    /// int if all were int and it fits, long if it fits, else double; decimal if any was.
    fn result(&self) -> Value {
        if self.decimals > 0 {
            return Value::Decimal128(self.decimal_total());
        }
        if self.double_count > 0 {
            return Value::Double(self.double_total());
        }
        match (i32::try_from(self.integers), i64::try_from(self.integers)) {
            (Ok(v), _) if self.longs == 0 => Value::Int32(v),
            (_, Ok(v)) => Value::Int64(v),
            _ => Value::Double(self.integers as f64),
        }
    }

    /// Numbers of a fixed size.
    fn memory(&self) -> usize {
        0
    }

    /// An integer while there is nothing else, or all fields in order.
    fn partial(&self) -> Value {
        if let (Ok(small), 0, 0, 0) = (
            i64::try_from(self.integers),
            self.longs,
            self.double_count,
            self.decimals,
        ) {
            return Value::Int64(small);
        }
        let DoubleDouble { sum, error, special } = self.doubles;
        let high = (self.integers >> 64) as i64;
        // The low half as bits: together with the high half it is the whole number again.
        let low = self.integers as i64;
        vec![
            Value::Int64(high),
            Value::Int64(low),
            Value::Int64(self.longs as i64),
            Value::Double(sum),
            Value::Double(error),
            special.map_or(Value::Null, Value::Double),
            Value::Int64(self.double_count as i64),
            self.decimal.map_or(Value::Null, Value::Decimal128),
            Value::Int64(self.decimals as i64),
        ]
        .into()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        let items = match partial {
            ValueRef::Int64(small) => {
                self.integers += i128::from(small);
                return Ok(());
            }
            ValueRef::Array(items) => items,
            _ => return Ok(()),
        };
        let long = |at| match items.get(at) {
            Some(ValueRef::Int64(v)) => v,
            _ => 0,
        };
        let double = |at| match items.get(at) {
            Some(ValueRef::Double(v)) => Some(v),
            _ => None,
        };
        self.integers += (i128::from(long(0)) << 64) | i128::from(long(1) as u64);
        self.longs += long(2) as u64;
        self.doubles.add(double(3).unwrap_or_default());
        self.doubles.error += double(4).unwrap_or_default();
        if let Some(special) = double(5) {
            self.doubles.add(special);
        }
        self.double_count += long(6) as u64;
        if let Some(ValueRef::Decimal128(decimal)) = items.get(7) {
            self.decimal = Some(self.decimal.unwrap_or(Decimal128::ZERO).add(decimal));
        }
        self.decimals += long(8) as u64;
        Ok(())
    }
}

/// A sum of doubles with the rounding errors kept beside it (Knuth's two-sum).
#[derive(Clone, Copy, Debug, Default)]
struct DoubleDouble {
    sum: f64,
    error: f64,
    /// Infinities and NaN, which would poison the error term.
    special: Option<f64>,
}

impl DoubleDouble {
    fn add(&mut self, v: f64) {
        if !v.is_finite() {
            self.special = Some(self.special.map_or(v, |s| s + v));
            return;
        }
        let sum = self.sum + v;
        let back = sum - self.sum;
        self.error += (self.sum - (sum - back)) + (v - back);
        self.sum = sum;
    }

    fn add_integer(&mut self, v: i128) {
        // Two halves that doubles hold exactly.
        let high = (v >> 32) << 32;
        self.add(high as f64);
        self.add((v - high) as f64);
    }

    fn value(self) -> f64 {
        match self.special {
            Some(special) => special,
            // Once the sum itself overflowed its error term is not a number.
            None if self.sum.is_finite() => self.sum + self.error,
            None => self.sum,
        }
    }
}
