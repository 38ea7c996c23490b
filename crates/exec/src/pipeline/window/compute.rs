//! Window functions over one partition.

use super::frame::{Frame, Frames};
use super::sliding::{SlidingCovariance, SlidingExtremum, divide};
use super::value_at;
use crate::kept::Kept;
use crate::pipeline::row_store::RowStore;
use nestor_model::number::Num;
use nestor_model::statement::{ROW, effort, work};
use nestor_model::{Error, ErrorCode, Path, Result, Value, ValueRef};
use nestor_query::Expr;
use nestor_query::accumulator::Accumulator;
use nestor_query::env::{Env, OpContext};
use nestor_query::expr::Unit;
use nestor_query::sort::{SortBy, SortSpec};
use nestor_query::stage::{AccumulatorSpec, Bounds, WindowFunction};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;

/// The rows of a partition, in order.
pub(super) struct Partition<'p> {
    pub(super) rows: &'p RowStore,
    pub(super) sort: Option<&'p SortSpec>,
    pub(super) op: &'p OpContext,
    /// Bytes that values of its functions may take beyond the size of a number each.
    pub(super) memory_bytes_max: usize,
    /// Bytes they take.
    pub(super) held: Cell<usize>,
    /// Memory of the values that the function at work looks at and makes.
    pub(super) values: RefCell<Kept>,
}

/// The deviation of a population of one number.
fn is_of_one(state: &Accumulator) -> bool {
    matches!(state, Accumulator::StdDev(deviation) if deviation.count() == 1)
}

impl Partition<'_> {
    /// The value of a function for each row.
    pub(super) fn column(&self, function: &WindowFunction) -> Result<Vec<Value>> {
        match function {
            WindowFunction::Accumulate(spec, bounds) => match spec.name() {
                // These need not look at all rows of a window.
                "$min" | "$max" => {
                    let values = self.evaluate(spec.input())?;
                    let mut sliding = SlidingExtremum::new(&values, spec.name() == "$min", self.op.collator.as_ref());
                    self.each_frame(bounds, |frame| Ok(sliding.slide(frame)))
                }
                "$first" | "$last" => {
                    let values = self.evaluate(spec.input())?;
                    let first = spec.name() == "$first";
                    self.each_frame(bounds, |(from, to)| {
                        let at = if first { from } else { to.saturating_sub(1) };
                        Ok(if from < to { values[at].clone() } else { Value::Null })
                    })
                }
                _ => self.accumulate(spec, bounds),
            },
            WindowFunction::Rank => self.rank(|position, _| position),
            WindowFunction::DenseRank => self.rank(|_, group| group),
            WindowFunction::DocumentNumber => Ok((1..=self.rows.len()).map(|n| count(n as i64)).collect()),
            WindowFunction::Shift { output, by, default } => self.shift(output, *by, default),
            WindowFunction::Derivative {
                input,
                sort,
                unit,
                bounds,
            } => {
                let points = self.points(input, sort, *unit, "$derivative")?;
                let slope = |frame: Frame| derivative(&points[frame.0..frame.1], *unit);
                self.each_frame(bounds, |frame| Ok(slope(frame)))
            }
            WindowFunction::Integral {
                input,
                sort,
                unit,
                bounds,
            } => {
                let points = self.points(input, sort, *unit, "$integral")?;
                self.each_frame(bounds, |frame| integral(&points[frame.0..frame.1], *unit))
            }
            WindowFunction::ExpMovingAvg { input, alpha } => self.moving_average(input, alpha),
            WindowFunction::Covariance { x, y, sample, bounds } => {
                let pairs: Vec<(Value, Value)> = self.evaluate(x)?.into_iter().zip(self.evaluate(y)?).collect();
                let mut sliding = SlidingCovariance::new(&pairs, *sample);
                self.each_frame(bounds, |frame| Ok(sliding.slide(frame)))
            }
            WindowFunction::LinearFill { input, sort } => self.linear_fill(input, sort),
            WindowFunction::Locf(input) => {
                let mut last = Value::Null;
                let values = self.evaluate(input)?.into_iter();
                Ok(values
                    .map(|value| {
                        if !value.is_nullish() {
                            last = value;
                        }
                        last.clone()
                    })
                    .collect())
            }
            WindowFunction::MinMaxScaler {
                input,
                min,
                max,
                bounds,
            } => {
                let values = self.evaluate(input)?;
                let mut at = 0;
                self.each_frame(bounds, |(from, to)| {
                    at += 1;
                    scale(&values[at - 1], &values[from..to], *min, *max)
                })
            }
        }
    }

    /// An expression on each row; a missing value is null.
    fn evaluate(&self, expr: &Expr) -> Result<Vec<Value>> {
        (0..self.rows.len())
            .map(|at| {
                work(ROW)?;
                let row = self.rows.get(at)?;
                let value = expr.eval(&mut Env::new(row.as_doc(), self.op))?;
                self.hold(if value.is_missing() { Value::Null } else { value })
            })
            .collect()
    }

    /// Counts a value that is kept until the partition is done. Error 146 when there is no memory for it.
    fn hold(&self, value: Value) -> Result<Value> {
        let weight = value.weight();
        self.values.borrow_mut().grow(weight)?;
        let held = self.held.get() + (weight - size_of::<Value>());
        self.held.set(held);
        if held > self.memory_bytes_max {
            let limit = self.memory_bytes_max;
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!("the values of $setWindowFields in one partition need more than {limit} bytes of memory"),
            ));
        }
        Ok(value)
    }

    fn sort_values(&self) -> Result<Vec<Value>> {
        match self.sort.map(SortSpec::parts) {
            Some([part]) => match &part.by {
                SortBy::Path(path) => self.values_at(path),
                SortBy::Meta(_) => Ok(vec![Value::Null; self.rows.len()]),
            },
            _ => Ok(vec![Value::Null; self.rows.len()]),
        }
    }

    fn values_at(&self, path: &Path) -> Result<Vec<Value>> {
        (0..self.rows.len())
            .map(|at| {
                work(ROW)?;
                self.hold(value_at(self.rows.get(at)?.as_doc(), path).to_value())
            })
            .collect()
    }

    fn each_frame(&self, bounds: &Bounds, mut value: impl FnMut(Frame) -> Result<Value>) -> Result<Vec<Value>> {
        let mut frames = Frames::new(bounds, self.rows.len(), || self.sort_values())?;
        let mut out = Vec::with_capacity(self.rows.len());
        let mut last = None;
        while let Some(frame) = frames.next()? {
            // Most functions look at every row of the frame.
            work(1 + (frame.1 - frame.0) / 16)?;
            let value = value(frame)?;
            // Rows with the same frame share its value.
            out.push(match last.replace(frame) == Some(frame) {
                true => value,
                false => self.hold(value)?,
            });
        }
        Ok(out)
    }

    /// Slides the window: rows are added at its end and taken out at its start where the accumulator can;
    /// otherwise it starts anew.
    fn accumulate(&self, spec: &AccumulatorSpec, bounds: &Bounds) -> Result<Vec<Value>> {
        let mut state = spec.start(&Value::Null, self.op)?;
        let mut current: Frame = (0, 0);
        let mut last: Option<Value> = None;
        self.each_frame(bounds, |target| {
            if let (Some(value), true) = (&last, target == current) {
                return Ok(value.clone());
            }
            let forward = target.0 >= current.0 && target.1 >= current.1 && target.0 <= current.1;
            if !(forward && self.take_out(spec, &mut state, current.0, target.0)?) {
                state = spec.start(&Value::Null, self.op)?;
                current = (target.0, target.0);
            }
            for at in current.1..target.1 {
                work(1)?;
                let row = self.rows.get(at)?;
                spec.accumulate(&mut state, &mut Env::new(row.as_doc(), self.op))?;
            }
            current = target;
            let value = match state.result() {
                Value::Missing => Value::Null,
                // Deviations of special numbers are NaN only where no row ever leaves the window.
                Value::Double(v) if v.is_nan() && matches!(state, Accumulator::StdDev(_)) && bounds.drops_rows() => {
                    Value::Null
                }
                // The deviation of one number is a whole zero there, as MongoDB has it.
                Value::Double(_) if bounds.drops_rows() && is_of_one(&state) => Value::Int32(0),
                value => value,
            };
            last = Some(value.clone());
            Ok(value)
        })
    }

    fn take_out(&self, spec: &AccumulatorSpec, state: &mut Accumulator, from: usize, to: usize) -> Result<bool> {
        for at in from..to {
            let row = self.rows.get(at)?;
            let mut env = Env::new(row.as_doc(), self.op);
            if !state.remove(spec.input().eval_ref(&mut env)?.as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// `pick(position of the first tie, number of distinct keys so far)`, both from 1.
    fn rank(&self, pick: fn(i64, i64) -> i64) -> Result<Vec<Value>> {
        let Some(sort) = self.sort else {
            return Ok(vec![Value::Null; self.rows.len()]);
        };
        let mut out = Vec::with_capacity(self.rows.len());
        let mut previous: Option<Vec<Value>> = None;
        let (mut position, mut group) = (0, 0);
        for at in 0..self.rows.len() {
            work(ROW)?;
            let row = self.rows.get(at)?;
            let mut key = Vec::new();
            sort.key(row.as_doc(), None, &mut key)?;
            let key: Vec<Value> = key.into_iter().map(ValueRef::to_value).collect();
            let tie = previous
                .as_ref()
                .is_some_and(|p| sort.compare_owned(p, &key) == Ordering::Equal);
            if !tie {
                position = at as i64 + 1;
                group += 1;
            }
            previous = Some(key);
            out.push(count(pick(position, group)));
        }
        Ok(out)
    }

    fn shift(&self, output: &Expr, by: i64, default: &Value) -> Result<Vec<Value>> {
        let len = self.rows.len() as i64;
        (0..len)
            .map(|at| {
                work(ROW)?;
                match at.checked_add(by).filter(|there| (0..len).contains(there)) {
                    Some(there) => {
                        let row = self.rows.get(there as usize)?;
                        let value = output.eval(&mut Env::new(row.as_doc(), self.op))?;
                        self.hold(if value.is_missing() { Value::Null } else { value })
                    }
                    None => Ok(default.clone()),
                }
            })
            .collect()
    }

    /// Pairs of x (the sort field) and y. With a unit x must be a date, without it must not.
    fn points(&self, input: &Expr, sort: &Path, unit: Option<Unit>, name: &str) -> Result<Vec<(Value, Value)>> {
        let xs = self.values_at(sort)?;
        let ys = self.evaluate(input)?;
        for x in &xs {
            match (x, unit) {
                (Value::DateTime(_), None) => {
                    return Err(Error::location(
                        5_624_901,
                        format!("{name} where the sortBy is a Date requires a 'unit'"),
                    ));
                }
                (Value::DateTime(_), Some(_)) => {}
                (x, None) if x.as_ref().is_number() || x.is_nullish() => {}
                (x, _) => {
                    return Err(Error::location(
                        5_624_900,
                        format!(
                            "{name} with 'unit' expects the sortBy field to be a Date, without it a number; found {}",
                            x.bson_type().alias()
                        ),
                    ));
                }
            }
        }
        Ok(xs.into_iter().zip(ys).collect())
    }

    fn moving_average(&self, input: &Expr, alpha: &Value) -> Result<Vec<Value>> {
        let alpha = Num::from_ref(alpha.as_ref()).unwrap_or(Num::Double(0.5));
        let rest = Num::Int32(1).sub(alpha);
        let mut average: Option<Num> = None;
        self.evaluate(input)?
            .iter()
            .map(|value| {
                work(2)?;
                Ok(match Num::from_ref(value.as_ref()) {
                    None => Value::Null,
                    Some(number) => {
                        let next = match (average, number) {
                            (None, Num::Decimal(_)) => number,
                            (None, _) => Num::Double(number.to_f64()),
                            (Some(average), _) => number.mul(alpha).add(average.mul(rest)),
                        };
                        average = Some(next);
                        next.into()
                    }
                })
            })
            .collect()
    }

    fn linear_fill(&self, input: &Expr, sort: &Path) -> Result<Vec<Value>> {
        let xs = self.values_at(sort)?;
        let mut ys = self.evaluate(input)?;
        let mut before: Option<usize> = None;
        for at in 0..ys.len() {
            if at > 0 && nestor_model::values_equal(&xs[at], &xs[at - 1]) {
                return Err(Error::location(
                    6_050_106,
                    "there can be no repeated values in the sort field of $linearFill",
                ));
            }
            if ys[at].is_nullish() {
                continue;
            }
            let Some(right) = Num::from_ref(ys[at].as_ref()) else {
                return Err(Error::type_mismatch(format!(
                    "value to be filled must be numeric or nullish, but found {}",
                    ys[at].bson_type().alias()
                )));
            };
            if let Some(from) = before.filter(|from| at - from > 1) {
                let left = Num::from_ref(ys[from].as_ref()).unwrap_or(Num::Int32(0));
                for hole in from + 1..at {
                    work(4)?;
                    ys[hole] = interpolate(left, right, x_of(&xs[from])?, x_of(&xs[at])?, x_of(&xs[hole])?);
                }
            }
            before = Some(at);
        }
        Ok(ys)
    }
}

fn count(n: i64) -> Value {
    Num::from_i64(n, true).into()
}

/// A sort value as a number; a date as its milliseconds.
fn x_of(value: &Value) -> Result<Num> {
    match value {
        Value::DateTime(ms) => Ok(Num::Int64(*ms)),
        _ => Num::from_ref(value.as_ref()).ok_or_else(|| {
            Error::type_mismatch(format!(
                "the sort field must be numeric or a date, but found {}",
                value.bson_type().alias()
            ))
        }),
    }
}

fn interpolate(left: Num, right: Num, x1: Num, x2: Num, x: Num) -> Value {
    let slope = divide(right.sub(left), x2.sub(x1));
    left.add(slope.mul(x.sub(x1))).into()
}

/// The distance of two x, in the unit when they are dates.
fn distance(from: &Value, to: &Value, unit: Option<Unit>) -> Option<Num> {
    match (from, to, unit.and_then(Unit::ms)) {
        (Value::DateTime(a), Value::DateTime(b), Some(unit)) => {
            Some(divide(Num::Int64(b.wrapping_sub(*a)), Num::Int64(unit)))
        }
        _ => Some(Num::from_ref(to.as_ref())?.sub(Num::from_ref(from.as_ref())?)),
    }
}

fn derivative(points: &[(Value, Value)], unit: Option<Unit>) -> Value {
    let ([(x1, y1), ..], [.., (x2, y2)]) = (points, points) else {
        return Value::Null;
    };
    let slope = || {
        let dy = Num::from_ref(y2.as_ref())?.sub(Num::from_ref(y1.as_ref())?);
        let dx = distance(x1, x2, unit).filter(|dx| !dx.is_zero())?;
        Some(divide(dy, dx))
    };
    if points.len() < 2 {
        Value::Null
    } else {
        slope().map_or(Value::Null, Value::from)
    }
}

fn integral(points: &[(Value, Value)], unit: Option<Unit>) -> Result<Value> {
    let mut area: Option<Num> = None;
    let mut left: Option<(&Value, Num)> = None;
    for (x, y) in points {
        effort::made();
        work(1)?;
        let Some(y) = Num::from_ref(y.as_ref()) else {
            continue;
        };
        let piece = match left {
            None => Num::Double(0.0),
            Some((x1, y1)) => match distance(x1, x, unit) {
                Some(dx) => divide(y1.add(y).mul(dx), Num::Int32(2)),
                None => Num::Double(0.0),
            },
        };
        area = Some(area.map_or(piece, |area| area.add(piece)));
        left = Some((x, y));
    }
    Ok(area.map_or(Value::Null, Value::from))
}

fn scale(value: &Value, window: &[Value], min: f64, max: f64) -> Result<Value> {
    let number = |value: &Value| {
        Num::from_ref(value.as_ref()).map(Num::to_f64).ok_or_else(|| {
            Error::type_mismatch(format!(
                "$minMaxScaler requires numbers, but found {}",
                value.bson_type().alias()
            ))
        })
    };
    let own = number(value)?;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in window {
        effort::made();
        work(1)?;
        let v = number(value)?;
        least = least.min(v);
        most = most.max(v);
    }
    let share = if most > least {
        (own - least) / (most - least)
    } else {
        0.0
    };
    Ok(Value::Double(share * (max - min) + min))
}
