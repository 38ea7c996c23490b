//! Sums and means, each exact where its type is.

use super::grouped::{State, only};
use super::{Bound, plain};
use crate::error::{error, fail};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::Context;
use crate::types::interval::Interval;
use crate::types::{Type, integer, numeric};
use nestor_model::decimal::DecimalParts;
use nestor_model::vector::{self, Data, Vector};
use nestor_model::{Decimal128, Result, Value};
use nestor_planner::relation::Accumulator;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a sum becomes.
#[derive(Clone, Copy, PartialEq)]
enum Gives {
    Int8,
    Numeric,
    Mean,
}

struct Integers {
    gives: Gives,
    sum: i128,
    n: i64,
}

impl Accumulator for Integers {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(n) = args.first().and_then(integer) {
            self.sum += i128::from(n);
            self.n += 1;
        }
        Ok(())
    }

    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        if let Some(n) = args.first().and_then(integer) {
            self.sum -= i128::from(n);
            self.n -= 1;
        }
        Ok(true)
    }

    fn result(&self) -> Result<Value> {
        if self.n == 0 {
            return Ok(Value::Null);
        }
        if self.gives == Gives::Int8 {
            return i64::try_from(self.sum)
                .map(Value::Int64)
                .map_err(|_| error("22003", "bigint out of range"));
        }
        let mean = match self.gives {
            Gives::Mean => numeric::quotient(self.sum, self.n),
            _ => None,
        };
        if let Some(mean) = mean {
            return Ok(Value::Decimal128(mean));
        }
        let sum = numeric::parse(&self.sum.to_string())?;
        match self.gives {
            Gives::Mean => numeric::div(sum, Decimal128::from_i64(self.n)).map(Value::Decimal128),
            _ => Ok(Value::Decimal128(sum)),
        }
    }
}

impl State for Integers {
    const MERGES: bool = true;

    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(self))
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.sum += other.sum;
        self.n += other.n;
        Ok(())
    }

    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let [arg] = args else { return Ok(0) };
        let one = only(groups).filter(|_| arg.nulls.is_none());
        let sum: Option<i128> = match &arg.data {
            _ if one.is_none() => None,
            // Chunks have too few rows for an overflow.
            Data::Int32(values) => Some(values.iter().map(|n| i64::from(*n)).sum::<i64>().into()),
            Data::Int64(values) => Some(values.iter().map(|n| i128::from(*n)).sum()),
            _ => None,
        };
        if let (Some(group), Some(sum)) = (one, sum) {
            states[group].sum += sum;
            states[group].n += groups.len() as i64;
            return Ok(0);
        }
        if let (Data::Int32(values), None) = (&arg.data, &arg.nulls) {
            for (n, group) in values.iter().zip(groups) {
                let state = &mut states[*group as usize];
                state.sum += i128::from(*n);
                state.n += 1;
            }
            return Ok(0);
        }
        for (row, group) in groups.iter().enumerate() {
            let n = match &arg.data {
                _ if arg.is_null(row) => continue,
                Data::Int32(values) => i64::from(values[row]),
                Data::Int64(values) => values[row],
                _ => match integer(&arg.value(row)) {
                    Some(n) => n,
                    None => continue,
                },
            };
            let state = &mut states[*group as usize];
            state.sum += i128::from(n);
            state.n += 1;
        }
        Ok(0)
    }
}

struct Decimals {
    mean: bool,
    n: i64,
    /// The sum of those that came as digits with a scale.
    digits: i128,
    scale: u8,
    /// The sum of the others.
    others: Option<Decimal128>,
}

impl Decimals {
    fn sum(&self) -> Result<Decimal128> {
        let exact = Decimal128::from_parts(DecimalParts {
            negative: self.digits < 0,
            coefficient: self.digits.unsigned_abs(),
            exponent: -i32::from(self.scale),
        });
        let exact = match exact {
            Some(exact) => exact,
            // More than 34 digits are rounded.
            None => numeric::parse(&format!("{}E-{}", self.digits, self.scale))?,
        };
        match self.others {
            None => Ok(exact),
            Some(others) => numeric::add(others, exact),
        }
    }

    /// The digits with one more, unless they become too many.
    fn with(&self, digits: i128, scale: u8) -> Option<(i128, u8)> {
        let wider = scale.max(self.scale);
        let power = |from: u8| 10i128.pow(u32::from(wider - from));
        let own = self.digits.checked_mul(power(self.scale))?;
        let sum = own.checked_add(digits.checked_mul(power(scale))?)?;
        Some((sum, wider))
    }
}

impl Accumulator for Decimals {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(Value::Decimal128(value)) = args.first() else {
            return Ok(());
        };
        let sum = vector::digits(*value).and_then(|(digits, scale)| self.with(digits.into(), scale));
        match sum {
            Some(sum) => (self.digits, self.scale) = sum,
            None => {
                self.others = Some(match self.others {
                    None => *value,
                    Some(others) => numeric::add(others, *value)?,
                });
            }
        }
        self.n += 1;
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        match (self.n, self.mean) {
            (0, _) => Ok(Value::Null),
            (n, true) => numeric::div(self.sum()?, Decimal128::from_i64(n)).map(Value::Decimal128),
            (_, false) => self.sum().map(Value::Decimal128),
        }
    }
}

impl State for Decimals {
    const MERGES: bool = true;

    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(SlidingDecimals {
            state: self,
            scales: BTreeMap::new(),
        }))
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        let mut rest = other.others;
        match self.with(other.digits, other.scale) {
            Some(sum) => (self.digits, self.scale) = sum,
            None => rest = Some(other.sum()?),
        }
        self.others = match (self.others, rest) {
            (Some(own), Some(rest)) => Some(numeric::add(own, rest)?),
            (own, rest) => own.or(rest),
        };
        self.n += other.n;
        Ok(())
    }

    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let [arg] = args else { return Ok(0) };
        if let (Some(group), Data::Decimal { digits, scale }, None) = (only(groups), &arg.data, &arg.nulls) {
            let state = &mut states[group];
            // A chunk's sum has room in 128 bits.
            let more: i128 = digits.iter().map(|digits| i128::from(*digits)).sum();
            let sum = match *scale == state.scale {
                true => state.digits.checked_add(more).map(|sum| (sum, *scale)),
                false => None,
            };
            if let Some(sum) = sum {
                (state.digits, state.scale) = sum;
                state.n += groups.len() as i64;
                return Ok(0);
            }
        }
        for (row, group) in groups.iter().enumerate() {
            let state = &mut states[*group as usize];
            let sum = match &arg.data {
                _ if arg.is_null(row) => continue,
                Data::Decimal { digits, scale } if *scale == state.scale => {
                    let sum = state.digits.checked_add(i128::from(digits[row]));
                    sum.map(|sum| (sum, *scale))
                }
                Data::Decimal { digits, scale } => state.with(digits[row].into(), *scale),
                _ => None,
            };
            match sum {
                Some(sum) => {
                    (state.digits, state.scale) = sum;
                    state.n += 1;
                }
                None => state.add(&[arg.value(row)])?,
            }
        }
        Ok(0)
    }
}

/// The same, of which rows can be given back: as long as the sum is exact.
struct SlidingDecimals {
    state: Decimals,
    /// How many rows have each scale. A sum has the largest.
    scales: BTreeMap<u8, u64>,
}

/// Digits of a decimal at most.
const DIGITS_MAX: u32 = 34;

impl SlidingDecimals {
    /// The sum with another number that has digits and a scale, which it has besides; `None` where it has none, or the sum would have to be rounded.
    fn with(&self, value: Decimal128, is_taken: bool) -> Option<(i128, u8, u8)> {
        let parts = value.parts().filter(|_| self.state.others.is_none())?;
        let scale = u8::try_from(parts.exponent.checked_neg()?).ok()?;
        let digits = i128::try_from(parts.coefficient).ok()?;
        let is_plain = u32::from(scale) <= DIGITS_MAX && !(parts.negative && digits == 0);
        let sign = if parts.negative == is_taken { 1 } else { -1 };
        let (sum, wider) = self.state.with(sign * digits, scale).filter(|_| is_plain)?;
        (sum.unsigned_abs() < 10u128.pow(DIGITS_MAX)).then_some((sum, wider, scale))
    }
}

impl Accumulator for SlidingDecimals {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(Value::Decimal128(value)) = args.first() else {
            return Ok(());
        };
        let Some((sum, wider, scale)) = self.with(*value, false) else {
            return self.state.add(args);
        };
        *self.scales.entry(scale).or_insert(0) += 1;
        (self.state.digits, self.state.scale) = (sum, wider);
        self.state.n += 1;
        Ok(())
    }

    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        let Some(Value::Decimal128(value)) = args.first() else {
            return Ok(true);
        };
        let Some((sum, wider, scale)) = self.with(*value, true) else {
            return Ok(false);
        };
        let Some(rows) = self.scales.get_mut(&scale) else {
            return Ok(false);
        };
        *rows -= 1;
        if *rows == 0 {
            self.scales.remove(&scale);
        }
        let state = &mut self.state;
        (state.digits, state.scale) = (sum, wider);
        state.n -= 1;
        // What is left has no digits behind the largest scale that is left.
        let scale = self.scales.last_key_value().map_or(0, |(scale, _)| *scale);
        if scale < state.scale {
            state.digits /= 10i128.pow(u32::from(state.scale - scale));
            state.scale = scale;
        }
        Ok(true)
    }

    fn result(&self) -> Result<Value> {
        self.state.result()
    }
}

struct Floats {
    mean: bool,
    sum: f64,
    n: i64,
}

impl Floats {
    /// Errors: 22003 for a sum that is too large.
    fn plus(&mut self, value: f64) -> Result<()> {
        let sum = self.sum + value;
        if sum.is_infinite() && self.sum.is_finite() && value.is_finite() {
            return fail("22003", "value out of range: overflow");
        }
        self.sum = sum;
        self.n += 1;
        Ok(())
    }
}

impl Accumulator for Floats {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        match args.first() {
            Some(Value::Double(value)) => self.plus(*value),
            _ => Ok(()),
        }
    }

    fn result(&self) -> Result<Value> {
        Ok(match (self.n, self.mean) {
            (0, _) => Value::Null,
            (n, true) => Value::Double(self.sum / n as f64),
            (_, false) => Value::Double(self.sum),
        })
    }
}

impl State for Floats {
    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let [arg] = args else { return Ok(0) };
        let values = match (&arg.data, &arg.nulls) {
            (Data::Double(values), None) => values,
            _ => {
                for (row, group) in groups.iter().enumerate() {
                    states[*group as usize].add(&[arg.value(row)])?;
                }
                return Ok(0);
            }
        };
        if let Some(group) = only(groups) {
            let state = &mut states[group];
            let sum = values.iter().fold(state.sum, |sum, value| sum + value);
            // What is not finite may be an overflow, which each value is asked for.
            if sum.is_finite() {
                (state.sum, state.n) = (sum, state.n + values.len() as i64);
                return Ok(0);
            }
        }
        for (value, group) in values.iter().zip(groups) {
            states[*group as usize].plus(*value)?;
        }
        Ok(0)
    }
}

struct Intervals {
    mean: bool,
    sum: Interval,
    n: i64,
}

impl Accumulator for Intervals {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(value @ Value::Binary(_)) = args.first() {
            self.sum = self.sum.plus(Interval::of(value))?;
            self.n += 1;
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        match (self.n, self.mean) {
            (0, _) => Ok(Value::Null),
            (n, true) => self.sum.divided(n as f64).map(Interval::to_value),
            (_, false) => Ok(self.sum.to_value()),
        }
    }
}

struct Bits {
    combine: fn(i64, i64) -> i64,
    found: Option<i64>,
    narrow: bool,
}

impl State for Intervals {}

impl State for Bits {
    const MERGES: bool = true;

    fn merge(&mut self, other: Self) -> Result<()> {
        self.found = match (self.found, other.found) {
            (Some(own), Some(found)) => Some((self.combine)(own, found)),
            (own, found) => own.or(found),
        };
        Ok(())
    }
}

impl Accumulator for Bits {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(n) = args.first().and_then(integer) {
            self.found = Some(match self.found {
                None => n,
                Some(found) => (self.combine)(found, n),
            });
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(match self.found {
            None => Value::Null,
            Some(n) if self.narrow => Value::Int32(n as i32),
            Some(n) => Value::Int64(n),
        })
    }
}

pub(super) fn bind(name: &str, arg: Expr) -> Result<Bound> {
    // Times of day add up to intervals.
    let arg = match arg.ty() {
        Type::Time => coerce(arg, &Type::Interval, Context::Implicit)?,
        _ => arg,
    };
    let ty = arg.ty();
    if name.starts_with("bit_") {
        if ty == Type::Bit {
            return super::ranges::of_bits(name, arg);
        }
        if !ty.is_integer() {
            return fail("42883", format!("function {name}({ty}) does not exist"));
        }
        let narrow = ty != Type::Int8;
        let (name, combine): (_, fn(i64, i64) -> i64) = match name {
            "bit_and" => ("bit_and", |a, b| a & b),
            "bit_or" => ("bit_or", |a, b| a | b),
            _ => ("bit_xor", |a, b| a ^ b),
        };
        let start = move || Bits {
            combine,
            found: None,
            narrow,
        };
        return plain(name, start, vec![arg], ty);
    }
    let mean = name == "avg";
    let name = if mean { "avg" } else { "sum" };
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 => {
            let gives = match (mean, &ty) {
                (true, _) => Gives::Mean,
                (false, Type::Int8) => Gives::Numeric,
                (false, _) => Gives::Int8,
            };
            let result = if gives == Gives::Int8 {
                Type::Int8
            } else {
                Type::Numeric
            };
            plain(name, move || Integers { gives, sum: 0, n: 0 }, vec![arg], result)
        }
        Type::Numeric => {
            let start = move || Decimals {
                mean,
                n: 0,
                digits: 0,
                scale: 0,
                others: None,
            };
            plain(name, start, vec![arg], Type::Numeric)
        }
        Type::Float4 | Type::Float8 => {
            let result = if mean { Type::Float8 } else { ty };
            plain(name, move || Floats { mean, sum: 0.0, n: 0 }, vec![arg], result)
        }
        Type::Interval => {
            let start = move || Intervals {
                mean,
                sum: Interval::default(),
                n: 0,
            };
            plain(name, start, vec![arg], Type::Interval)
        }
        ty => fail("42883", format!("function {name}({ty}) does not exist")),
    }
}
