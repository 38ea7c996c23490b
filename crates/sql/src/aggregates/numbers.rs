//! Sums and means, each exact where its type is.

use super::{Bound, plain};
use crate::error::{error, fail};
use crate::expr::Expr;
use crate::types::interval::Interval;
use crate::types::{Type, integer, numeric};
use nestor_model::{Decimal128, Result, Value};
use nestor_planner::relation::Accumulator;

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

    fn result(&self) -> Result<Value> {
        if self.n == 0 {
            return Ok(Value::Null);
        }
        if self.gives == Gives::Int8 {
            return i64::try_from(self.sum)
                .map(Value::Int64)
                .map_err(|_| error("22003", "bigint out of range"));
        }
        let sum = numeric::parse(&self.sum.to_string())?;
        match self.gives {
            Gives::Mean => numeric::div(sum, Decimal128::from_i64(self.n)).map(Value::Decimal128),
            _ => Ok(Value::Decimal128(sum)),
        }
    }
}

struct Decimals {
    mean: bool,
    sum: Decimal128,
    n: i64,
}

impl Accumulator for Decimals {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Decimal128(value)) = args.first() {
            self.sum = match self.n {
                0 => *value,
                _ => numeric::add(self.sum, *value)?,
            };
            self.n += 1;
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        match (self.n, self.mean) {
            (0, _) => Ok(Value::Null),
            (n, true) => numeric::div(self.sum, Decimal128::from_i64(n)).map(Value::Decimal128),
            (_, false) => Ok(Value::Decimal128(self.sum)),
        }
    }
}

struct Floats {
    mean: bool,
    sum: f64,
    n: i64,
}

impl Accumulator for Floats {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Double(value)) = args.first() {
            let sum = self.sum + value;
            if sum.is_infinite() && self.sum.is_finite() && value.is_finite() {
                return fail("22003", "value out of range: overflow");
            }
            self.sum = sum;
            self.n += 1;
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(match (self.n, self.mean) {
            (0, _) => Value::Null,
            (n, true) => Value::Double(self.sum / n as f64),
            (_, false) => Value::Double(self.sum),
        })
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
            (n, true) => self.sum.times(1.0 / n as f64).map(Interval::to_value),
            (_, false) => Ok(self.sum.to_value()),
        }
    }
}

struct Bits {
    combine: fn(i64, i64) -> i64,
    found: Option<i64>,
    narrow: bool,
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
    let ty = arg.ty();
    if name.starts_with("bit_") {
        if !ty.is_integer() {
            return fail("42883", format!("function {name}({ty}) does not exist"));
        }
        let narrow = ty != Type::Int8;
        let (name, combine): (_, fn(i64, i64) -> i64) = match name {
            "bit_and" => ("bit_and", |a, b| a & b),
            "bit_or" => ("bit_or", |a, b| a | b),
            _ => ("bit_xor", |a, b| a ^ b),
        };
        let start = move || -> Box<dyn Accumulator> {
            Box::new(Bits {
                combine,
                found: None,
                narrow,
            })
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
            plain(
                name,
                move || Box::new(Integers { gives, sum: 0, n: 0 }),
                vec![arg],
                result,
            )
        }
        Type::Numeric => {
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Decimals {
                    mean,
                    sum: Decimal128::ZERO,
                    n: 0,
                })
            };
            plain(name, start, vec![arg], Type::Numeric)
        }
        Type::Float4 | Type::Float8 => {
            let result = if mean { Type::Float8 } else { ty };
            plain(
                name,
                move || Box::new(Floats { mean, sum: 0.0, n: 0 }),
                vec![arg],
                result,
            )
        }
        Type::Interval => {
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Intervals {
                    mean,
                    sum: Interval::default(),
                    n: 0,
                })
            };
            plain(name, start, vec![arg], Type::Interval)
        }
        ty => fail("42883", format!("function {name}({ty}) does not exist")),
    }
}
