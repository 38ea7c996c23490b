//! Statistics, and ordered-set aggregates.

use super::{Bound, plain};
use crate::error::fail;
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::Context;
use crate::types::{Type, compare, numeric};
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Accumulator;

/// What is computed of sums of powers.
#[derive(Clone, Copy)]
struct Spread {
    root: bool,
    sample: bool,
    numeric: bool,
}

/// Mean and sum of squared differences, updated so that they do not cancel out.
struct Moments {
    spread: Spread,
    n: f64,
    mean: f64,
    squares: f64,
}

impl Accumulator for Moments {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Double(x)) = args.first() {
            self.n += 1.0;
            let delta = x - self.mean;
            self.mean += delta / self.n;
            self.squares += delta * (x - self.mean);
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

/// Means, squared differences and their product; the first argument is Y.
struct Pairs {
    gives: Pair,
    n: f64,
    mean: (f64, f64),
    squares: (f64, f64),
    product: f64,
}

impl Accumulator for Pairs {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let [Value::Double(y), Value::Double(x)] = args {
            self.n += 1.0;
            let (dx, dy) = (x - self.mean.0, y - self.mean.1);
            self.mean.0 += dx / self.n;
            self.mean.1 += dy / self.n;
            self.squares.0 += dx * (x - self.mean.0);
            self.squares.1 += dy * (y - self.mean.1);
            self.product += dx * (y - self.mean.1);
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        let (sx, sy) = self.squares;
        let some = |ok: bool, value: f64| Ok(if ok { Value::Double(value) } else { Value::Null });
        match self.gives {
            Pair::Count => Ok(Value::Int64(self.n as i64)),
            Pair::AvgX => some(self.n > 0.0, self.mean.0),
            Pair::AvgY => some(self.n > 0.0, self.mean.1),
            Pair::Sxx => some(self.n > 0.0, sx),
            Pair::Sxy => some(self.n > 0.0, self.product),
            Pair::Syy => some(self.n > 0.0, sy),
            Pair::Corr => some(sx > 0.0 && sy > 0.0, self.product / (sx * sy).sqrt()),
            Pair::CovarPop => some(self.n > 0.0, self.product / self.n),
            Pair::CovarSamp => some(self.n > 1.0, self.product / (self.n - 1.0)),
            Pair::Slope => some(sx > 0.0, self.product / sx),
            Pair::Intercept => some(sx > 0.0, self.mean.1 - self.mean.0 * self.product / sx),
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
        let n = self.values.len();
        if n == 0 {
            return Ok(Value::Null);
        }
        let Some(continuous) = self.continuous else {
            return Ok(self.most_frequent());
        };
        let Value::Double(fraction) = self.fraction else {
            return Ok(Value::Null);
        };
        if !(0.0..=1.0).contains(&fraction) {
            return fail("22003", format!("percentile value {fraction} is not between 0 and 1"));
        }
        if !continuous {
            let at = ((fraction * n as f64).ceil() as usize).clamp(1, n) - 1;
            return Ok(self.values[at].clone());
        }
        let place = fraction * (n - 1) as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        Ok(match (&self.values[low], &self.values[high]) {
            (Value::Double(a), Value::Double(b)) => Value::Double(a + (b - a) * (place - low as f64)),
            (a, _) => a.clone(),
        })
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

impl Ordered {
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
            let name = if spread.root { "stddev" } else { "variance" };
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Moments {
                    spread,
                    n: 0.0,
                    mean: 0.0,
                    squares: 0.0,
                })
            };
            let ty = if numeric { Type::Numeric } else { Type::Float8 };
            plain(name, start, doubles(&args)?, ty)
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
            let fraction = coerce(fraction.clone(), &Type::Float8, Context::Implicit)?;
            let arg = match continuous {
                true => coerce(arg.clone(), &Type::Float8, Context::Assignment)?,
                false => arg.clone(),
            };
            let ty = arg.ty();
            let of = ty.clone();
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Ordered {
                    continuous: Some(continuous),
                    ty: of.clone(),
                    fraction: Value::Null,
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
                    mean: (0.0, 0.0),
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
