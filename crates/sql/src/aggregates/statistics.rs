//! Statistics, and ordered-set aggregates.

use super::{Bound, plain};
use crate::error::fail;
use crate::expr::{Expr, Node};
use crate::functions::coerce;
use crate::types::cast::Context;
use crate::types::interval::Interval;
use crate::types::{Type, compare, numeric};
use nestor_model::{Array, Decimal128, Error, Result, Value};
use nestor_planner::relation::Accumulator;

/// What is computed of sums of powers.
#[derive(Clone, Copy)]
struct Spread {
    root: bool,
    sample: bool,
    numeric: bool,
}

/// Sum, and sum of squared differences from the mean, updated as Youngs and Cramer do so that they do not cancel out.
struct Moments {
    spread: Spread,
    n: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn new(spread: Spread) -> Self {
        Self {
            spread,
            n: 0.0,
            sum: 0.0,
            squares: 0.0,
        }
    }
}

impl Accumulator for Moments {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Double(x)) = args.first() {
            self.n += 1.0;
            self.sum += x;
            if self.n > 1.0 {
                let apart = x * self.n - self.sum;
                self.squares += apart * apart / (self.n * (self.n - 1.0));
            } else if !x.is_finite() {
                self.squares = f64::NAN;
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        let n = if self.spread.sample { self.n - 1.0 } else { self.n };
        if self.n == 0.0 || n <= 0.0 {
            return Ok(Value::Null);
        }
        let variance = self.squares / n;
        let value = if self.spread.root { variance.sqrt() } else { variance };
        match self.spread.numeric {
            true => numeric::parse(&format!("{value:.16}")).map(Value::Decimal128),
            false => Ok(Value::Double(value)),
        }
    }
}

/// The same of decimal numbers, exactly as long as their sums have room.
struct Exact {
    floats: Moments,
    n: i64,
    sums: Option<(Decimal128, Decimal128)>,
}

impl Accumulator for Exact {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(Value::Decimal128(x)) = args.first() else {
            return Ok(());
        };
        self.n += 1;
        let add = |(sum, squares): (Decimal128, Decimal128)| -> Option<(Decimal128, Decimal128)> {
            let sum = numeric::add(sum, *x).ok()?;
            let squares = numeric::add(squares, numeric::exactly_times(*x, *x)?).ok()?;
            Some((sum, squares))
        };
        self.sums = self.sums.and_then(add);
        self.floats.add(&[Value::Double(x.to_f64())])
    }

    fn result(&self) -> Result<Value> {
        let spread = self.floats.spread;
        let Some((sum, squares)) = self.sums.filter(|(sum, _)| sum.is_finite()) else {
            return self.floats.result();
        };
        if self.n == 0 || (spread.sample && self.n == 1) {
            return Ok(Value::Null);
        }
        let n = Decimal128::from_i64(self.n);
        let exact = numeric::exactly_times(squares, n).zip(numeric::exactly_times(sum, sum));
        let Some(numerator) = exact.and_then(|(a, b)| numeric::sub(a, b).ok()) else {
            return self.floats.result();
        };
        if numerator.is_zero() || numerator.is_negative() {
            return Ok(Value::Decimal128(Decimal128::ZERO));
        }
        let below = numeric::mul(n, Decimal128::from_i64(if spread.sample { self.n - 1 } else { self.n }))?;
        let variance = numeric::div(numerator, below)?;
        Ok(Value::Decimal128(match spread.root {
            true => numeric::sqrt(numerator.div(below), numeric::scale(variance))?,
            false => variance,
        }))
    }
}

/// A function of the sums of two variables.
#[derive(Clone, Copy, PartialEq)]
enum Pair {
    AvgX,
    AvgY,
    Sxx,
    Sxy,
    Syy,
    Corr,
    CovarPop,
    CovarSamp,
    Count,
    Slope,
    Intercept,
    R2,
}

/// Sums, squared differences from the means and their product; the first argument is Y.
struct Pairs {
    gives: Pair,
    n: f64,
    sums: (f64, f64),
    squares: (f64, f64),
    product: f64,
}

impl Accumulator for Pairs {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let [Value::Double(y), Value::Double(x)] = args {
            self.n += 1.0;
            self.sums = (self.sums.0 + x, self.sums.1 + y);
            if self.n > 1.0 {
                let (dx, dy) = (x * self.n - self.sums.0, y * self.n - self.sums.1);
                let scale = 1.0 / (self.n * (self.n - 1.0));
                self.squares.0 += dx * dx * scale;
                self.squares.1 += dy * dy * scale;
                self.product += dx * dy * scale;
            } else if !x.is_finite() || !y.is_finite() {
                let unsure = |n: f64| if n.is_finite() { 0.0 } else { f64::NAN };
                self.squares = (unsure(*x), unsure(*y));
                self.product = f64::NAN;
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        let (sx, sy) = self.squares;
        let some = |ok: bool, value: f64| Ok(if ok { Value::Double(value) } else { Value::Null });
        match self.gives {
            Pair::Count => Ok(Value::Int64(self.n as i64)),
            Pair::AvgX => some(self.n > 0.0, self.sums.0 / self.n),
            Pair::AvgY => some(self.n > 0.0, self.sums.1 / self.n),
            Pair::Sxx => some(self.n > 0.0, sx),
            Pair::Sxy => some(self.n > 0.0, self.product),
            Pair::Syy => some(self.n > 0.0, sy),
            Pair::Corr => some(sx > 0.0 && sy > 0.0, self.product / (sx * sy).sqrt()),
            Pair::CovarPop => some(self.n > 0.0, self.product / self.n),
            Pair::CovarSamp => some(self.n > 1.0, self.product / (self.n - 1.0)),
            Pair::Slope => some(sx > 0.0, self.product / sx),
            Pair::Intercept => some(sx > 0.0, (self.sums.1 - self.sums.0 * self.product / sx) / self.n),
            Pair::R2 => some(
                sx > 0.0,
                if sy == 0.0 {
                    1.0
                } else {
                    self.product * self.product / (sx * sy)
                },
            ),
        }
    }
}

/// Values of an ordered set, which come in their order.
struct Ordered {
    /// `None`: the most frequent.
    continuous: Option<bool>,
    ty: Type,
    fraction: Value,
    values: Vec<Value>,
    weight: usize,
}

impl Accumulator for Ordered {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(value) = args.last() else { return Ok(()) };
        if args.len() > 1 {
            self.fraction = args[0].clone();
        }
        if !matches!(value, Value::Null) {
            self.weight += value.weight();
            self.values.push(value.clone());
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        check_fractions(&self.fraction)?;
        if self.values.is_empty() {
            return Ok(Value::Null);
        }
        let Some(continuous) = self.continuous else {
            return Ok(self.most_frequent());
        };
        match &self.fraction {
            Value::Array(fractions) => {
                let all = fractions
                    .iter()
                    .map(|fraction| self.at(&fraction.to_value(), continuous));
                Ok(Value::Array(Array::new(all.collect::<Result<_>>()?)))
            }
            fraction => self.at(fraction, continuous),
        }
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

/// Errors: 22003 for a fraction, or one of an array of them, that is not between 0 and 1.
fn check_fractions(fraction: &Value) -> Result<()> {
    match fraction {
        Value::Double(n) if !(0.0..=1.0).contains(n) => {
            fail("22003", format!("percentile value {n} is not between 0 and 1"))
        }
        Value::Array(all) => all.iter().try_for_each(|one| check_fractions(&one.to_value())),
        _ => Ok(()),
    }
}

impl Ordered {
    /// The value at a fraction; null for none.
    fn at(&self, fraction: &Value, continuous: bool) -> Result<Value> {
        let n = self.values.len();
        let Value::Double(fraction) = fraction else {
            return Ok(Value::Null);
        };
        if !continuous {
            let at = ((fraction * n as f64).ceil() as usize).clamp(1, n) - 1;
            return Ok(self.values[at].clone());
        }
        let place = fraction * (n - 1) as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        Ok(match (&self.values[low], &self.values[high]) {
            (Value::Double(a), Value::Double(b)) => Value::Double(a + (b - a) * (place - low as f64)),
            (a @ Value::Binary(_), b) => {
                let (a, b) = (Interval::of(a), Interval::of(b));
                let apart = b.plus(a.negate()?)?.times(place - low as f64)?;
                a.plus(apart)?.to_value()
            }
            (a, _) => a.clone(),
        })
    }

    fn most_frequent(&self) -> Value {
        let (mut best, mut most, mut from) = (0, 0, 0);
        for at in 0..=self.values.len() {
            let same =
                at < self.values.len() && compare::compare(&self.ty, &self.values[from], &self.values[at]).is_eq();
            if !same {
                if at - from > most {
                    (best, most) = (from, at - from);
                }
                from = at;
            }
        }
        self.values[best].clone()
    }
}

pub(super) fn bind(name: &str, args: Vec<Expr>, wrong: &dyn Fn() -> Error) -> Result<Bound> {
    let doubles = |args: &[Expr]| -> Result<Vec<Expr>> {
        args.iter()
            .map(|arg| coerce(arg.clone(), &Type::Float8, Context::Assignment))
            .collect()
    };
    match (name, args.as_slice()) {
        ("stddev" | "stddev_samp" | "stddev_pop" | "variance" | "var_samp" | "var_pop", [arg]) => {
            let numeric = arg.ty().is_integer() || arg.ty() == Type::Numeric;
            let spread = Spread {
                root: name.starts_with("stddev"),
                sample: !name.ends_with("_pop"),
                numeric,
            };
            if !arg.ty().is_number() {
                return Err(wrong());
            }
            let name = if spread.root { "stddev" } else { "variance" };
            if !numeric {
                let start = move || -> Box<dyn Accumulator> { Box::new(Moments::new(spread)) };
                return plain(name, start, doubles(&args)?, Type::Float8);
            }
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Exact {
                    floats: Moments::new(spread),
                    n: 0,
                    sums: Some((Decimal128::ZERO, Decimal128::ZERO)),
                })
            };
            let arg = coerce(arg.clone(), &Type::Numeric, Context::Implicit)?;
            plain(name, start, vec![arg], Type::Numeric)
        }
        ("mode", [arg]) => {
            let ty = arg.ty();
            let of = ty.clone();
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Ordered {
                    continuous: None,
                    ty: of.clone(),
                    fraction: Value::Null,
                    values: Vec::new(),
                    weight: 0,
                })
            };
            plain("mode", start, args, ty)
        }
        ("percentile_cont" | "percentile_disc", [fraction, arg]) => {
            let continuous = name == "percentile_cont";
            let several = fraction.ty().element().is_some();
            let wanted = if several { Type::Float8.array() } else { Type::Float8 };
            let fraction = coerce(fraction.clone(), &wanted, Context::Implicit)?;
            let arg = match continuous {
                true if arg.ty() == Type::Interval => arg.clone(),
                true if !arg.ty().is_number() => return Err(wrong()),
                true => coerce(arg.clone(), &Type::Float8, Context::Assignment)?,
                false => arg.clone(),
            };
            let of = arg.ty();
            let ty = if several { of.clone().array() } else { of.clone() };
            // Without rows a constant is looked at all the same.
            let known = match fraction.node() {
                Node::Const(value, _) => value.clone(),
                _ => Value::Null,
            };
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Ordered {
                    continuous: Some(continuous),
                    ty: of.clone(),
                    fraction: known.clone(),
                    values: Vec::new(),
                    weight: 0,
                })
            };
            let name = if continuous {
                "percentile_cont"
            } else {
                "percentile_disc"
            };
            plain(name, start, vec![fraction, arg], ty)
        }
        (_, [_, _]) => {
            let (name, gives) = match name {
                "corr" => ("corr", Pair::Corr),
                "covar_pop" => ("covar_pop", Pair::CovarPop),
                "covar_samp" => ("covar_samp", Pair::CovarSamp),
                "regr_avgx" => ("regr_avgx", Pair::AvgX),
                "regr_avgy" => ("regr_avgy", Pair::AvgY),
                "regr_sxx" => ("regr_sxx", Pair::Sxx),
                "regr_sxy" => ("regr_sxy", Pair::Sxy),
                "regr_syy" => ("regr_syy", Pair::Syy),
                "regr_count" => ("regr_count", Pair::Count),
                "regr_slope" => ("regr_slope", Pair::Slope),
                "regr_intercept" => ("regr_intercept", Pair::Intercept),
                "regr_r2" => ("regr_r2", Pair::R2),
                _ => return Err(wrong()),
            };
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Pairs {
                    gives,
                    n: 0.0,
                    sums: (0.0, 0.0),
                    squares: (0.0, 0.0),
                    product: 0.0,
                })
            };
            let ty = if gives == Pair::Count { Type::Int8 } else { Type::Float8 };
            plain(name, start, doubles(&args)?, ty)
        }
        _ => Err(wrong()),
    }
}
