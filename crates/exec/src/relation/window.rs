//! Window functions: rows of a partition side by side with what is computed of them.

use super::aggregate::State;
use super::{BoxRows, Drained, Rows, Run, row_done, sort, weight};
use crate::kept::Kept;
use nestor_model::statement::Scope;
use nestor_model::{Error, Result, Value, doc};
use nestor_planner::relation::{
    Env, FrameBound, FrameExclusion, FrameUnits, Scalar, SortKey, Tuple, Window, WindowCall, WindowFunction,
};
use std::cmp::Ordering;

struct Windowed<S> {
    input: BoxRows<S>,
    window: Window<S>,
    kept: Kept,
    rows: Option<std::vec::IntoIter<Tuple>>,
}

pub(super) fn window<S: Scalar>(input: BoxRows<S>, window: &Window<S>, _width: usize) -> BoxRows<S> {
    Box::new(Windowed {
        input,
        window: window.clone(),
        kept: Kept::default(),
        rows: None,
    })
}

/// A partition in its order.
struct Partition<'p, S> {
    rows: &'p [Tuple],
    /// What each row is ordered by.
    keys: &'p [Vec<Value>],
    order: &'p [SortKey<S>],
    /// First and behind the last of the rows that are equal to each row.
    peers: Vec<(usize, usize)>,
    /// The number of each row's group of equals.
    group: Vec<usize>,
    /// Where each group begins; the partition's length at the end.
    groups: Vec<usize>,
    /// First and behind the last of the rows whose first key is not null.
    valued: (usize, usize),
}

impl<S: Scalar> Windowed<S> {
    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Vec<Tuple>> {
        let by: Vec<SortKey<S>> = self
            .window
            .partition
            .iter()
            .map(|part| SortKey {
                by: part.clone(),
                descending: false,
                nulls_first: false,
            })
            .chain(self.window.order.iter().cloned())
            .collect();
        let mut rows = Vec::new();
        let mut input = Drained::default();
        while let Some(row) = input.next(|| self.input.next_chunk(run))? {
            row_done()?;
            let _values = Scope::begin();
            let keys = sort::values(&by, &row, &run.env)?;
            self.kept
                .grow(weight(&row) + weight(&keys) + self.window.calls.len() * size_of::<Value>())?;
            rows.push((keys, row));
        }
        rows.sort_by(|a, b| sort::compare(&by, &a.0, &b.0));
        let parts = self.window.partition.len();
        let (mut keys, rows): (Vec<Vec<Value>>, Vec<Tuple>) = rows.into_iter().unzip();
        let mut out = Vec::with_capacity(rows.len());
        let mut from = 0;
        while from < rows.len() {
            let same =
                |i: usize| sort::compare(&by[..parts], &keys[from][..parts], &keys[i][..parts]) == Ordering::Equal;
            let to = (from + 1..rows.len()).find(|i| !same(*i)).unwrap_or(rows.len());
            for key in &mut keys[from..to] {
                key.drain(..parts);
            }
            let partition = Partition::new(&rows[from..to], &keys[from..to], &self.window.order);
            let mut columns = Vec::with_capacity(self.window.calls.len());
            for call in &self.window.calls {
                columns.push(partition.compute(call, &run.env)?.into_iter());
            }
            for row in &rows[from..to] {
                let mut row = row.clone();
                row.extend(columns.iter_mut().map(|column| column.next().unwrap_or(Value::Null)));
                out.push(row);
            }
            from = to;
        }
        Ok(out)
    }
}

impl<S: Scalar> Rows<S> for Windowed<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.rows.is_none() {
            self.rows = Some(self.read(run)?.into_iter());
        }
        Ok(self.rows.as_mut().and_then(Iterator::next))
    }
}

fn wrong(state: &'static str, message: &str) -> Error {
    Error::bad_value(message).with_extra(doc! { "sqlState": state })
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int32(n) => Some(i64::from(*n)),
        Value::Int64(n) => Some(*n),
        _ => None,
    }
}

impl<'p, S: Scalar> Partition<'p, S> {
    fn new(rows: &'p [Tuple], keys: &'p [Vec<Value>], order: &'p [SortKey<S>]) -> Self {
        let is_null = |key: &Vec<Value>| matches!(key.first(), Some(Value::Null) | None);
        let first = keys.iter().position(|key| !is_null(key)).unwrap_or(keys.len());
        let last = keys
            .iter()
            .rposition(|key| !is_null(key))
            .map_or(first, |last| last + 1);
        let mut partition = Self {
            rows,
            keys,
            order,
            peers: Vec::with_capacity(rows.len()),
            group: Vec::with_capacity(rows.len()),
            groups: Vec::new(),
            valued: (first, last),
        };
        let mut from = 0;
        while from < rows.len() {
            let same = |i: usize| sort::compare(order, &keys[from], &keys[i]) == Ordering::Equal;
            let to = (from + 1..rows.len()).find(|i| !same(*i)).unwrap_or(rows.len());
            let number = partition.groups.len();
            partition.groups.push(from);
            for _ in from..to {
                partition.peers.push((from, to));
                partition.group.push(number);
            }
            from = to;
        }
        partition.groups.push(rows.len());
        partition
    }

    fn compute(&self, call: &WindowCall<S>, env: &Env<'_>) -> Result<Vec<Value>> {
        let n = self.rows.len();
        let arg = |number: usize, row: usize| match call.args.get(number) {
            Some(arg) => arg.value(&self.rows[row], env),
            None => Ok(Value::Null),
        };
        let each = |f: &dyn Fn(usize) -> Result<Value>| {
            let values = (0..n).map(|i| {
                row_done()?;
                f(i)
            });
            values.collect::<Result<Vec<_>>>()
        };
        match &call.function {
            WindowFunction::RowNumber => each(&|i| Ok(Value::Int64(i as i64 + 1))),
            WindowFunction::Rank => each(&|i| Ok(Value::Int64(self.peers[i].0 as i64 + 1))),
            WindowFunction::DenseRank => each(&|i| Ok(Value::Int64(self.group[i] as i64 + 1))),
            WindowFunction::PercentRank => each(&|i| {
                let below = self.peers[i].0 as f64;
                Ok(Value::Double(if n > 1 { below / (n - 1) as f64 } else { 0.0 }))
            }),
            WindowFunction::CumeDist => each(&|i| Ok(Value::Double(self.peers[i].1 as f64 / n as f64))),
            WindowFunction::Ntile => each(&|i| {
                let buckets = match arg(0, 0)? {
                    Value::Null => return Ok(Value::Null),
                    value => integer(&value).filter(|b| *b > 0),
                };
                let Some(buckets) = buckets else {
                    return Err(wrong("22014", "argument of ntile must be greater than zero"));
                };
                let buckets = usize::try_from(buckets).unwrap_or(usize::MAX);
                let (size, larger) = (n / buckets, n % buckets);
                // The first `larger` buckets have one row more.
                let bucket = match i < larger * (size + 1) {
                    true => i / (size + 1),
                    false => larger + (i - larger * (size + 1)) / size.max(1),
                };
                Ok(Value::Int32(i32::try_from(bucket + 1).unwrap_or(i32::MAX)))
            }),
            WindowFunction::Lag | WindowFunction::Lead => each(&|i| {
                let offset = match call.args.get(1) {
                    None => 1,
                    Some(_) => match integer(&arg(1, i)?) {
                        Some(offset) => offset,
                        None => return Ok(Value::Null),
                    },
                };
                let forward = matches!(call.function, WindowFunction::Lead);
                let at = i as i128
                    + if forward {
                        i128::from(offset)
                    } else {
                        -i128::from(offset)
                    };
                match usize::try_from(at).ok().filter(|at| *at < n) {
                    Some(at) => arg(0, at),
                    None => arg(2, i),
                }
            }),
            WindowFunction::FirstValue => each(&|i| match self.frame(call, i, env)?.next() {
                Some(at) => arg(0, at),
                None => Ok(Value::Null),
            }),
            WindowFunction::LastValue => each(&|i| match self.frame(call, i, env)?.next_back() {
                Some(at) => arg(0, at),
                None => Ok(Value::Null),
            }),
            WindowFunction::NthValue => each(&|i| {
                let nth = match arg(1, i)? {
                    Value::Null => return Ok(Value::Null),
                    value => integer(&value)
                        .and_then(|nth| usize::try_from(nth).ok())
                        .filter(|nth| *nth > 0),
                };
                let Some(nth) = nth else {
                    return Err(wrong("22016", "argument of nth_value must be greater than zero"));
                };
                match self.frame(call, i, env)?.nth(nth - 1) {
                    Some(at) => arg(0, at),
                    None => Ok(Value::Null),
                }
            }),
            WindowFunction::Aggregate(of) => {
                let mut out: Vec<Value> = Vec::with_capacity(n);
                let is_whole = call.frame.exclusion == FrameExclusion::Nothing;
                // What the frame of the row before had: a frame that begins where that does, and ends no earlier, needs its other rows only.
                let mut state = State::new(of);
                let (mut start, mut upto) = (0, 0);
                for i in 0..n {
                    row_done()?;
                    if !is_whole {
                        let mut state = State::new(of);
                        for at in self.frame(call, i, env)? {
                            row_done()?;
                            state.add(of, &self.rows[at], env)?;
                        }
                        out.push(state.result(of)?);
                        continue;
                    }
                    let (from, to) = self.bounds(call, i, env)?;
                    if let Some(value) = out.last().filter(|_| (start, upto) == (from, to)) {
                        let value = value.clone();
                        out.push(value);
                        continue;
                    }
                    if from != start || to < upto {
                        state = State::new(of);
                        (start, upto) = (from, from);
                    }
                    while upto < to {
                        row_done()?;
                        state.add(of, &self.rows[upto], env)?;
                        upto += 1;
                    }
                    out.push(state.result(of)?);
                }
                Ok(out)
            }
        }
    }

    /// The rows of a row's frame.
    fn frame(
        &self,
        call: &WindowCall<S>,
        row: usize,
        env: &Env<'_>,
    ) -> Result<impl DoubleEndedIterator<Item = usize> + use<S>> {
        let (start, end) = self.bounds(call, row, env)?;
        let peers = self.peers[row];
        let exclusion = call.frame.exclusion;
        Ok((start..end).filter(move |at| match exclusion {
            FrameExclusion::Nothing => true,
            FrameExclusion::Current => *at != row,
            FrameExclusion::Group => *at < peers.0 || *at >= peers.1,
            FrameExclusion::Ties => *at == row || *at < peers.0 || *at >= peers.1,
        }))
    }

    /// First and behind the last row of a frame, before what is excluded.
    fn bounds(&self, call: &WindowCall<S>, row: usize, env: &Env<'_>) -> Result<(usize, usize)> {
        let n = self.rows.len();
        let frame = &call.frame;
        let offset = |expr: &S| -> Result<Value> {
            match expr.value(&self.rows[row], env)? {
                Value::Null => Err(wrong("22004", "frame offset must not be null")),
                value => match integer(&value) {
                    Some(n) if n < 0 => Err(wrong("22013", "frame offset must not be negative")),
                    _ => Ok(value),
                },
            }
        };
        let rows = |expr: &S| -> Result<usize> {
            let value = offset(expr)?;
            let count = integer(&value).and_then(|n| usize::try_from(n).ok());
            count.ok_or_else(|| wrong("22013", "frame offset must be an integer"))
        };
        let in_range = |expr: &S, after: bool, is_start: bool| -> Result<usize> {
            let offset = offset(expr)?;
            let base = self.keys[row].first().unwrap_or(&Value::Null);
            let (Some(range), Some(_)) = (&frame.in_range, self.order.first()) else {
                return Err(wrong(
                    "0A000",
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for this type",
                ));
            };
            if matches!(base, Value::Null) {
                return Ok(if is_start { self.peers[row].0 } else { self.peers[row].1 });
            }
            // Nulls are no part of a frame with a bound of this kind.
            let (first, last) = self.valued;
            let (mut low, mut high) = (first, last);
            while low < high {
                let middle = (low + high) / 2;
                let value = &self.keys[middle][0];
                let before = match is_start {
                    true => !range.not_before(value, base, &offset, after)?,
                    false => range.not_after(value, base, &offset, after)?,
                };
                match before {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            Ok(low)
        };
        let group = self.group[row];
        let group_at = |number: usize| self.groups.get(number).copied().unwrap_or(n);
        let start = match (&frame.start, frame.units) {
            (FrameBound::Unbounded, _) => 0,
            (FrameBound::Current, FrameUnits::Rows) => row,
            (FrameBound::Current, _) => self.peers[row].0,
            (FrameBound::Preceding(by), FrameUnits::Rows) => row.saturating_sub(rows(by)?),
            (FrameBound::Following(by), FrameUnits::Rows) => row.saturating_add(rows(by)?),
            (FrameBound::Preceding(by), FrameUnits::Groups) => group_at(group.saturating_sub(rows(by)?)),
            (FrameBound::Following(by), FrameUnits::Groups) => group_at(group.saturating_add(rows(by)?)),
            (FrameBound::Preceding(by), FrameUnits::Range) => in_range(by, false, true)?,
            (FrameBound::Following(by), FrameUnits::Range) => in_range(by, true, true)?,
        };
        let end = match (&frame.end, frame.units) {
            (FrameBound::Unbounded, _) => n,
            (FrameBound::Current, FrameUnits::Rows) => row + 1,
            (FrameBound::Current, _) => self.peers[row].1,
            (FrameBound::Preceding(by), FrameUnits::Rows) => (row + 1).saturating_sub(rows(by)?),
            (FrameBound::Following(by), FrameUnits::Rows) => row.saturating_add(rows(by)?).saturating_add(1),
            (FrameBound::Preceding(by), FrameUnits::Groups) => match group.checked_sub(rows(by)?) {
                Some(group) => group_at(group + 1),
                None => 0,
            },
            (FrameBound::Following(by), FrameUnits::Groups) => {
                group_at(group.saturating_add(rows(by)?).saturating_add(1))
            }
            (FrameBound::Preceding(by), FrameUnits::Range) => in_range(by, false, false)?,
            (FrameBound::Following(by), FrameUnits::Range) => in_range(by, true, false)?,
        };
        let end = end.min(n);
        Ok((start.min(end), end))
    }
}
