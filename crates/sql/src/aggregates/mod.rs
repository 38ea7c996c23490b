//! Aggregate functions.

mod collect;
mod grouped;
mod hypothetical;
mod numbers;
mod ranges;
mod sliding;
mod statistics;

use self::grouped::{Plain, State};
pub use hypothetical::{bind as bind_hypothetical, is_hypothetical};

use crate::error::{error, fail};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::Context;
use crate::types::{Type, compare};
use nestor_model::vector::{Data, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Accumulator, Aggregate};
use std::cmp::Ordering;
use std::sync::Arc;

/// An aggregate function bound to its arguments.
pub struct Bound {
    /// The function.
    pub function: Arc<dyn Aggregate>,
    /// Its arguments, of the types that it takes.
    pub args: Vec<Expr>,
    /// The type of its result.
    pub ty: Type,
}

fn plain<T: State + 'static>(
    name: &'static str,
    start: impl Fn() -> T + Clone + Send + Sync + 'static,
    args: Vec<Expr>,
    ty: Type,
) -> Result<Bound> {
    Ok(Bound {
        function: Arc::new(Plain { name, start }),
        args,
        ty,
    })
}

/// Names of all aggregate functions.
const NAMES: &[&str] = &[
    "any_value",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "max",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "range_agg",
    "range_intersect_agg",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Whether there is an aggregate function of this name.
pub fn is_aggregate(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The largest or smallest value.
struct Extreme {
    ty: Type,
    largest: bool,
    found: Value,
}

impl Accumulator for Extreme {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let value = args.first().unwrap_or(&Value::Null);
        if matches!(value, Value::Null) {
            return Ok(());
        }
        let better = match &self.found {
            Value::Null => true,
            found => {
                let order = compare::compare(&self.ty, value, found);
                if self.largest { order.is_gt() } else { order.is_lt() }
            }
        };
        if better {
            self.found = value.clone();
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(self.found.clone())
    }

    fn weight(&self) -> usize {
        self.found.weight()
    }
}

/// The value that wins of those that are not null, the first of equal ones; `None` where there is none, or no loop.
fn best(arg: &Vector, ty: &Type, largest: bool) -> Option<Value> {
    fn of<T: Copy>(values: &[T], nulls: Option<&[bool]>, wins: impl Fn(T, T) -> bool) -> Option<usize> {
        let mut rows = (0..values.len()).filter(|row| nulls.is_none_or(|nulls| !nulls[*row]));
        let first = rows.next()?;
        Some(rows.fold(
            first,
            |best, row| if wins(values[row], values[best]) { row } else { best },
        ))
    }
    fn whole<T: Copy + Ord>(values: &[T], nulls: Option<&[bool]>, largest: bool) -> Option<T> {
        match (nulls, largest) {
            (None, true) => values.iter().copied().max(),
            (None, false) => values.iter().copied().min(),
            (Some(_), true) => of(values, nulls, |a, b| a > b).map(|row| values[row]),
            (Some(_), false) => of(values, nulls, |a, b| a < b).map(|row| values[row]),
        }
    }
    let nulls = arg.nulls.as_deref();
    match &arg.data {
        Data::Int32(values) => whole(values, nulls, largest).map(Value::Int32),
        Data::Int64(values) => whole(values, nulls, largest).map(Value::Int64),
        Data::Double(values) => {
            let wins = |a: f64, b: f64| match largest {
                // Not a number is larger than all others.
                true => a > b || a.is_nan() && !b.is_nan(),
                false => a < b || b.is_nan() && !a.is_nan(),
            };
            of(values, nulls, wins).map(|row| arg.value(row))
        }
        Data::Decimal { digits, .. } => {
            of(digits, nulls, |a, b| if largest { a > b } else { a < b }).map(|row| arg.value(row))
        }
        Data::Text(texts) if !matches!(ty, Type::Bpchar | Type::Citext) => {
            let rows = (0..texts.len()).filter(|row| !arg.is_null(*row));
            let wins = |a: &str, b: &str| if largest { a > b } else { a < b };
            let all = rows.map(|row| texts.get(row));
            let best = all.reduce(|best, text| if wins(text, best) { text } else { best });
            best.map(|text| Value::String(text.into()))
        }
        _ => None,
    }
}

impl State for Extreme {
    const MERGES: bool = true;

    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(sliding::Extremes::new(self.ty, self.largest)))
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.add(&[other.found])
    }

    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let [arg] = args else { return Ok(0) };
        let one = grouped::only(groups).and_then(|group| {
            let state = &mut states[group];
            best(arg, &state.ty, state.largest).map(|best| (state, best))
        });
        if let Some((state, best)) = one {
            let before = state.weight();
            state.add(&[best])?;
            return Ok(state.weight().saturating_sub(before));
        }
        let mut grown = 0;
        for (row, group) in groups.iter().enumerate() {
            let Self { ty, largest, found } = &mut states[*group as usize];
            // Numbers that do not win are told by a look at them.
            let order = match (&arg.data, &*found) {
                _ if arg.is_null(row) => continue,
                (Data::Int32(values), Value::Int32(found)) => values[row].cmp(found),
                (Data::Int64(values), Value::Int64(found)) => values[row].cmp(found),
                (Data::Text(texts), Value::String(found)) if !matches!(ty, Type::Bpchar | Type::Citext) => {
                    texts.get(row).cmp(found)
                }
                (_, Value::Null) if *largest => Ordering::Greater,
                (_, Value::Null) => Ordering::Less,
                (_, found) => compare::compare(ty, &arg.value(row), found),
            };
            if if *largest { order.is_gt() } else { order.is_lt() } {
                let before = found.weight();
                *found = arg.value(row);
                grown += found.weight().saturating_sub(before);
            }
        }
        Ok(grown)
    }
}

/// The first value.
struct First(Value);

impl State for First {}

impl Accumulator for First {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let (Value::Null, Some(value)) = (&self.0, args.first()) {
            self.0 = value.clone();
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(self.0.clone())
    }
}

/// How often, of all rows or of those whose argument is not null.
struct Count {
    rows: bool,
    n: i64,
}

impl Accumulator for Count {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        self.n += i64::from(self.rows || !matches!(args.first(), Some(Value::Null)));
        Ok(())
    }

    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        self.n -= i64::from(self.rows || !matches!(args.first(), Some(Value::Null)));
        Ok(true)
    }

    fn result(&self) -> Result<Value> {
        Ok(Value::Int64(self.n))
    }
}

impl State for Count {
    const MERGES: bool = true;

    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(self))
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        self.n += other.n;
        Ok(())
    }

    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let arg = args.first().filter(|arg| arg.may_be_null());
        let counts_all = arg.is_none() || states.first().is_some_and(|state| state.rows);
        match (grouped::only(groups), counts_all) {
            (Some(group), true) => states[group].n += groups.len() as i64,
            (None, true) => groups.iter().for_each(|group| states[*group as usize].n += 1),
            (_, false) => {
                for (row, group) in groups.iter().enumerate() {
                    states[*group as usize].n += i64::from(arg.is_none_or(|arg| !arg.is_null(row)));
                }
            }
        }
        Ok(0)
    }
}

/// Whether all, or any, are true.
struct Truth {
    all: bool,
    found: Option<bool>,
}

impl Accumulator for Truth {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Bool(b)) = args.first() {
            let so_far = self.found.unwrap_or(self.all);
            self.found = Some(if self.all { so_far && *b } else { so_far || *b });
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(self.found.map_or(Value::Null, Value::Bool))
    }
}

impl State for Truth {
    const MERGES: bool = true;

    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        Some(Box::new(sliding::Truths::new(self.all)))
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        other.found.map_or(Ok(()), |found| self.add(&[Value::Bool(found)]))
    }
}

/// The aggregate function `name` on `args`; `star` for `count(*)`. The last of `args` of an ordered-set function is what it orders.
///
/// Errors: 42883 for arguments that it does not take.
pub fn bind(name: &str, args: Vec<Expr>, star: bool) -> Result<Bound> {
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let wrong = || {
        let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
        error("42883", format!("function {name}({}) does not exist", shown.join(", ")))
    };
    let to = |ty: Type, args: &[Expr]| -> Result<Vec<Expr>> {
        args.iter()
            .map(|arg| coerce(arg.clone(), &ty, Context::Implicit))
            .collect()
    };
    let one = |args: &[Expr]| match args {
        [arg] if arg.ty() == Type::Unknown => coerce(arg.clone(), &Type::Text, Context::Implicit),
        [arg] => Ok(arg.clone()),
        _ => Err(wrong()),
    };
    match name {
        "count" if star => plain("count", || Count { rows: true, n: 0 }, Vec::new(), Type::Int8),
        "count" if !args.is_empty() => plain("count", || Count { rows: false, n: 0 }, vec![one(&args)?], Type::Int8),
        "count" => fail(
            "42809",
            "count(*) must be used to call a parameterless aggregate function",
        ),
        "range_agg" | "range_intersect_agg" => ranges::bind(name, one(&args)?, &wrong),
        "max" | "min" => {
            let largest = name == "max";
            let arg = match one(&args)? {
                arg if arg.ty() == Type::Varchar => coerce(arg, &Type::Text, Context::Implicit)?,
                arg if arg.ty() == Type::Cidr => coerce(arg, &Type::Inet, Context::Implicit)?,
                arg => arg,
            };
            let ty = arg.ty();
            if matches!(ty, Type::Bool | Type::Bit | Type::Varbit | Type::Macaddr) || ty.is_ranges() {
                return Err(wrong());
            }
            let of = ty.clone();
            let start = move || Extreme {
                ty: of.clone(),
                largest,
                found: Value::Null,
            };
            plain(if largest { "max" } else { "min" }, start, vec![arg], ty)
        }
        "any_value" => {
            let arg = one(&args)?;
            let ty = arg.ty();
            plain("any_value", || First(Value::Null), vec![arg], ty)
        }
        "bool_and" | "every" | "bool_or" if !matches!(types.as_slice(), [Type::Bool | Type::Unknown]) => Err(wrong()),
        "bool_and" | "every" => plain(
            "bool_and",
            || Truth { all: true, found: None },
            to(Type::Bool, &[one(&args)?])?,
            Type::Bool,
        ),
        "bool_or" => plain(
            "bool_or",
            || Truth {
                all: false,
                found: None,
            },
            to(Type::Bool, &[one(&args)?])?,
            Type::Bool,
        ),
        "sum" | "avg" | "bit_and" | "bit_or" | "bit_xor" => numbers::bind(name, one(&args)?),
        "string_agg" | "array_agg" | "json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg" => {
            collect::bind(name, args, &wrong)
        }
        _ if is_aggregate(name) => statistics::bind(name, args, &wrong),
        _ => fail("42883", format!("function {name} does not exist")),
    }
}
