//! Window functions: rows of a partition side by side with what is computed of them.
//!
//! Rows come sorted by what they are partitioned and ordered by. Those of a partition are in a [`Store`], each with the values that it is ordered by behind its own
//! columns, and are given one after the other: what is computed of a row needs others of the partition by their numbers only, and goes on from what the row before
//! had where frames move forwards.

use super::aggregate::State;
use super::rows::small_enough;
use super::sort::{self, Keyed, Sort};
use super::store::{Store, Stored};
use super::{BoxRows, Rows, Run, row_done};
use crate::kept::Kept;
use nestor_model::{Error, Result, Value, doc};
use nestor_planner::relation::{
    Call, Env, FrameBound, FrameExclusion, FrameUnits, Scalar, SortKey, Tuple, Window, WindowCall, WindowFunction,
};
use std::cmp::Ordering;
use std::ops::Range;

struct Windowed<S> {
    sorted: Sort<S>,
    window: Window<S>,
    /// What rows are sorted by: first what they are partitioned by.
    by: Vec<SortKey<S>>,
    /// Columns of the input.
    width: usize,
    /// The first row of the next partition.
    next: Option<Keyed>,
    partition: Option<Partition>,
}

pub(super) fn window<S: Scalar>(input: BoxRows<S>, window: &Window<S>, width: usize) -> BoxRows<S> {
    let parts = window.partition.iter().map(|part| SortKey {
        by: part.clone(),
        descending: false,
        nulls_first: false,
    });
    let by: Vec<SortKey<S>> = parts.chain(window.order.iter().cloned()).collect();
    let input = small_enough(input, by.iter().map(|key| &key.by));
    Box::new(Windowed {
        sorted: Sort::new(input, &by, None),
        window: window.clone(),
        by,
        width,
        next: None,
        partition: None,
    })
}

impl<S: Scalar> Windowed<S> {
    /// Reads the rows of the next partition.
    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Partition>> {
        let first = match self.next.take() {
            None => self.sorted.next_keyed(run)?,
            next => next,
        };
        let Some((keys, mut row)) = first else {
            return Ok(None);
        };
        let parts = self.window.partition.len();
        let mut rows = Store::default();
        row.extend_from_slice(&keys[parts..]);
        rows.push(row, run)?;
        while let Some((mut own, mut row)) = self.sorted.next_keyed(run)? {
            row_done()?;
            if sort::compare(&self.by[..parts], &keys[..parts], &own[..parts]) != Ordering::Equal {
                self.next = Some((own, row));
                break;
            }
            row.extend(own.drain(parts..));
            rows.push(row, run)?;
        }
        rows.finish(run)?;
        let calls = &self.window.calls;
        Ok(Some(Partition {
            rows,
            width: self.width,
            at: 0,
            peers: (0, 0),
            group: 0,
            groups: Vec::new(),
            valued: None,
            frames: calls.iter().map(|_| 0..0).collect(),
            has_peers: calls.iter().any(|call| looks_at_peers(call)),
            moving: calls.iter().map(|_| None).collect(),
            kept: Kept::default(),
        }))
    }
}

impl<S: Scalar> Rows<S> for Windowed<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        loop {
            if let Some(partition) = &mut self.partition
                && let Some(row) = partition.next(&self.window, run)?
            {
                return Ok(Some(row));
            }
            self.partition = self.read(run)?;
            if self.partition.is_none() {
                return Ok(None);
            }
        }
    }
}

/// Whether it matters for a call which rows are equal.
fn looks_at_peers<S>(call: &WindowCall<S>) -> bool {
    match call.function {
        WindowFunction::RowNumber | WindowFunction::Ntile | WindowFunction::Lag | WindowFunction::Lead => false,
        WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::PercentRank | WindowFunction::CumeDist => {
            true
        }
        WindowFunction::FirstValue
        | WindowFunction::LastValue
        | WindowFunction::NthValue
        | WindowFunction::Aggregate(_) => {
            call.frame.units != FrameUnits::Rows
                || matches!(call.frame.exclusion, FrameExclusion::Group | FrameExclusion::Ties)
        }
    }
}

/// A partition in its order.
struct Partition {
    /// The rows, each with what it is ordered by behind its columns.
    rows: Store,
    width: usize,
    /// The current row.
    at: usize,
    /// First and behind the last of the rows that are equal to the current one, if that matters.
    peers: (usize, usize),
    /// The number of its group of equals.
    group: usize,
    /// Where each group begins, and the partition's length at the end; empty as long as nobody wants to know.
    groups: Vec<usize>,
    /// The rows whose first key is not null, likewise.
    valued: Option<Range<usize>>,
    /// The frames of the row before.
    frames: Vec<Range<usize>>,
    has_peers: bool,
    /// What aggregates had for the row before.
    moving: Vec<Option<Box<Moving>>>,
    kept: Kept,
}

/// What an aggregate has of a frame.
struct Moving {
    state: State,
    /// The state can give back rows of the frame that are not in the next one.
    slides: bool,
    /// The rows that the state has.
    rows: Range<usize>,
    /// What it gave for them, if that was computed.
    value: Option<Value>,
    bytes: usize,
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

/// The rows of a frame: before what is left out, the current row where that is not, and behind.
struct Frame([Range<usize>; 3]);

impl Frame {
    fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        self.0.clone().into_iter().flatten()
    }

    fn nth(&self, mut nth: usize) -> Option<usize> {
        for range in &self.0 {
            match range.len() {
                len if nth < len => return Some(range.start + nth),
                len => nth -= len,
            }
        }
        None
    }

    fn last(&self) -> Option<usize> {
        self.0.iter().rev().find_map(|range| range.clone().next_back())
    }
}

impl Partition {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, at: usize) -> Result<Stored<'_>> {
        let row = self.rows.get(at)?;
        Ok(row.unwrap_or(Stored::Here(&[])))
    }

    /// The next row with what is computed of it.
    fn next<S: Scalar>(&mut self, window: &Window<S>, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let at = self.at;
        if at >= self.len() {
            return Ok(None);
        }
        row_done()?;
        if self.has_peers && at >= self.peers.1 {
            self.group += usize::from(at > 0);
            self.peers = (at, self.behind_peers(at, &window.order)?);
        }
        let mut out = Vec::with_capacity(self.width + window.calls.len());
        out.extend_from_slice(&self.row(at)?[..self.width]);
        for (number, call) in window.calls.iter().enumerate() {
            out.push(self.value((number, call), window, &run.env)?);
        }
        self.at += 1;
        Ok(Some(out))
    }

    /// Behind the last of the rows that are equal to one, from which on they are.
    fn behind_peers<S: Scalar>(&self, from: usize, order: &[SortKey<S>]) -> Result<usize> {
        if order.is_empty() {
            return Ok(self.len());
        }
        let first = self.row(from)?;
        let mut to = from + 1;
        while to < self.len() {
            row_done()?;
            if sort::compare(order, &first[self.width..], &self.row(to)?[self.width..]) != Ordering::Equal {
                break;
            }
            to += 1;
        }
        Ok(to)
    }

    fn arg<S: Scalar>(&self, call: &WindowCall<S>, number: usize, row: usize, env: &Env<'_>) -> Result<Value> {
        match call.args.get(number) {
            Some(arg) => arg.value(&self.row(row)?, env),
            None => Ok(Value::Null),
        }
    }

    /// What a call has for the current row.
    fn value<S: Scalar>(
        &mut self,
        (number, call): (usize, &WindowCall<S>),
        window: &Window<S>,
        env: &Env<'_>,
    ) -> Result<Value> {
        let (i, n) = (self.at, self.len());
        let value_at = |own: &Self, at: Option<usize>| at.map_or(Ok(Value::Null), |at| own.arg(call, 0, at, env));
        match &call.function {
            WindowFunction::RowNumber => Ok(Value::Int64(i as i64 + 1)),
            WindowFunction::Rank => Ok(Value::Int64(self.peers.0 as i64 + 1)),
            WindowFunction::DenseRank => Ok(Value::Int64(self.group as i64 + 1)),
            WindowFunction::PercentRank => {
                let below = self.peers.0 as f64;
                Ok(Value::Double(if n > 1 { below / (n - 1) as f64 } else { 0.0 }))
            }
            WindowFunction::CumeDist => Ok(Value::Double(self.peers.1 as f64 / n as f64)),
            WindowFunction::Ntile => {
                let buckets = match self.arg(call, 0, 0, env)? {
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
            }
            WindowFunction::Lag | WindowFunction::Lead => {
                let offset = match call.args.get(1) {
                    None => 1,
                    Some(_) => match integer(&self.arg(call, 1, i, env)?) {
                        Some(offset) => offset,
                        None => return Ok(Value::Null),
                    },
                };
                let forward = matches!(call.function, WindowFunction::Lead);
                let by = i128::from(offset) * if forward { 1 } else { -1 };
                match usize::try_from(i as i128 + by).ok().filter(|at| *at < n) {
                    Some(at) => self.arg(call, 0, at, env),
                    None => self.arg(call, 2, i, env),
                }
            }
            WindowFunction::FirstValue => {
                let first = self.frame((number, call), window, env)?.nth(0);
                value_at(self, first)
            }
            WindowFunction::LastValue => {
                let last = self.frame((number, call), window, env)?.last();
                value_at(self, last)
            }
            WindowFunction::NthValue => {
                let nth = match self.arg(call, 1, i, env)? {
                    Value::Null => return Ok(Value::Null),
                    value => integer(&value)
                        .and_then(|nth| usize::try_from(nth).ok())
                        .filter(|nth| *nth > 0),
                };
                let Some(nth) = nth else {
                    return Err(wrong("22016", "argument of nth_value must be greater than zero"));
                };
                let at = self.frame((number, call), window, env)?.nth(nth - 1);
                value_at(self, at)
            }
            WindowFunction::Aggregate(of) if call.frame.exclusion != FrameExclusion::Nothing => {
                let mut state = State::new(of);
                for at in self.frame((number, call), window, env)?.rows() {
                    row_done()?;
                    state.add(of, &self.row(at)?, env)?;
                }
                state.result(of)
            }
            WindowFunction::Aggregate(of) => {
                let wanted = self.bounds((number, call), window, env)?;
                let known = self.moving[number].take();
                let mut moving = match known {
                    Some(moving) => moving,
                    None => Box::new(self.begin(call, of, wanted.start)),
                };
                let value = self.moved(&mut moving, (call, of), wanted, env);
                self.moving[number] = Some(moving);
                value
            }
        }
    }

    /// An aggregate without rows, of a frame that begins at one.
    fn begin<S: Scalar>(&mut self, call: &WindowCall<S>, of: &Call<S>, from: usize) -> Moving {
        let may_move = !matches!(call.frame.start, FrameBound::Unbounded);
        let sliding = State::sliding(of).filter(|_| may_move);
        Moving {
            slides: sliding.is_some(),
            state: sliding.unwrap_or_else(|| State::new(of)),
            rows: from..from,
            value: None,
            bytes: 0,
        }
    }

    /// The value of an aggregate for a frame, which mostly has rows that the one before had.
    fn moved<S: Scalar>(
        &mut self,
        moving: &mut Moving,
        (call, of): (&WindowCall<S>, &Call<S>),
        wanted: Range<usize>,
        env: &Env<'_>,
    ) -> Result<Value> {
        if let Some(value) = moving.value.as_ref().filter(|_| moving.rows == wanted) {
            return Ok(value.clone());
        }
        let known = moving.rows.clone();
        let goes_on = known.start <= wanted.start && wanted.start < known.end && known.end <= wanted.end;
        while goes_on && moving.slides && moving.rows.start < wanted.start {
            row_done()?;
            let Some(less) = moving.state.remove(of, &self.row(moving.rows.start)?, env)? else {
                break;
            };
            self.kept.shrink(less);
            moving.bytes -= less;
            moving.rows.start += 1;
        }
        if moving.rows.start != wanted.start || wanted.end < moving.rows.end {
            self.kept.shrink(moving.bytes);
            *moving = self.begin(call, of, wanted.start);
        }
        while moving.rows.end < wanted.end {
            row_done()?;
            let grown = moving.state.add(of, &self.row(moving.rows.end)?, env)?;
            self.kept.grow_spilling(grown)?;
            moving.bytes += grown;
            moving.rows.end += 1;
        }
        let value = moving.state.result(of)?;
        moving.value = Some(value.clone());
        Ok(value)
    }

    /// The rows of the current row's frame.
    fn frame<S: Scalar>(
        &mut self,
        (number, call): (usize, &WindowCall<S>),
        window: &Window<S>,
        env: &Env<'_>,
    ) -> Result<Frame> {
        let all = self.bounds((number, call), window, env)?;
        let (row, peers) = (self.at, self.peers);
        let within = |from: usize, to: usize| {
            let (from, to) = (from.max(all.start), to.min(all.end));
            from..to.max(from)
        };
        let nothing = within(0, 0);
        Ok(Frame(match call.frame.exclusion {
            FrameExclusion::Nothing => [all, nothing.clone(), nothing],
            FrameExclusion::Current => [within(0, row), nothing, within(row + 1, usize::MAX)],
            FrameExclusion::Group => [within(0, peers.0), nothing, within(peers.1, usize::MAX)],
            FrameExclusion::Ties => [within(0, peers.0), within(row, row + 1), within(peers.1, usize::MAX)],
        }))
    }

    /// Finds where groups of equals begin.
    fn find_groups<S: Scalar>(&mut self, order: &[SortKey<S>]) -> Result<()> {
        let mut at = 0;
        while self.groups.last() != Some(&self.len()) {
            self.groups.push(at);
            self.kept.grow_spilling(size_of::<usize>())?;
            if at < self.len() {
                at = self.behind_peers(at, order)?;
            }
        }
        Ok(())
    }

    /// Finds the rows whose first key is not null: null ones are at one end.
    fn find_valued<S: Scalar>(&mut self, order: &[SortKey<S>]) -> Result<()> {
        if self.valued.is_none() {
            let nulls_first = order.first().is_some_and(|key| key.nulls_first);
            let first = first_behind(0..self.len(), 0, |at| {
                let is_null = matches!(self.row(at)?.get(self.width), Some(Value::Null) | None);
                Ok(is_null == nulls_first)
            })?;
            self.valued = Some(if nulls_first { first..self.len() } else { 0..first });
        }
        Ok(())
    }

    /// First and behind the last row of a frame, before what is excluded.
    fn bounds<S: Scalar>(
        &mut self,
        (number, call): (usize, &WindowCall<S>),
        window: &Window<S>,
        env: &Env<'_>,
    ) -> Result<Range<usize>> {
        let (n, row) = (self.len(), self.at);
        let (frame, order) = (&call.frame, &window.order);
        let is_known = |bound: &FrameBound<S>| matches!(bound, FrameBound::Unbounded | FrameBound::Current);
        if !is_known(&frame.start) || !is_known(&frame.end) {
            match frame.units {
                FrameUnits::Rows => {}
                FrameUnits::Groups => self.find_groups(order)?,
                FrameUnits::Range => self.find_valued(order)?,
            }
        }
        let before = self.frames[number].clone();
        let offset = |expr: &S| -> Result<Value> {
            match expr.value(&self.row(row)?, env)? {
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
            let current = self.row(row)?;
            let base = current.get(self.width).unwrap_or(&Value::Null);
            let (Some(range), Some(_)) = (&frame.in_range, order.first()) else {
                return Err(wrong(
                    "0A000",
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for this type",
                ));
            };
            if matches!(base, Value::Null) {
                return Ok(if is_start { self.peers.0 } else { self.peers.1 });
            }
            // Nulls are no part of a frame with a bound of this kind.
            let hint = if is_start { before.start } else { before.end };
            first_behind(self.valued.clone().unwrap_or(0..n), hint, |at| {
                row_done()?;
                let value = &self.row(at)?[self.width];
                Ok(match is_start {
                    true => !range.not_before(value, base, &offset, after)?,
                    false => range.not_after(value, base, &offset, after)?,
                })
            })
        };
        let group = self.group;
        let group_at = |number: usize| self.groups.get(number).copied().unwrap_or(n);
        let start = match (&frame.start, frame.units) {
            (FrameBound::Unbounded, _) => 0,
            (FrameBound::Current, FrameUnits::Rows) => row,
            (FrameBound::Current, _) => self.peers.0,
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
            (FrameBound::Current, _) => self.peers.1,
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
        self.frames[number] = start..end;
        Ok(start.min(end)..end)
    }
}

/// The first of some places of which something does not hold: it holds of all before it, and of none behind it. Places near `hint` are
/// looked at first.
fn first_behind(places: Range<usize>, hint: usize, mut holds: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let Range {
        start: mut low,
        end: mut high,
    } = places;
    let hint = hint.clamp(low, high);
    let mut step = 1;
    if hint < high && holds(hint)? {
        low = hint + 1;
        while low < high {
            let at = low + step.min(high - low) - 1;
            if !holds(at)? {
                high = at;
                break;
            }
            (low, step) = (at + 1, step * 2);
        }
    } else {
        high = hint;
        while low < high {
            let at = high - step.min(high - low);
            if holds(at)? {
                low = at + 1;
                break;
            }
            (high, step) = (at, step * 2);
        }
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        match holds(middle)? {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_found_from_everywhere() {
        for len in [0, 1, 2, 7, 40] {
            for first in 3..=3 + len {
                for hint in 0..50 {
                    let mut looks = 0;
                    let found = first_behind(3..3 + len, hint, |at| {
                        looks += 1;
                        Ok(at < first)
                    });
                    assert_eq!(found.expect("no errors"), first, "{len} from {hint}");
                    let far = first.abs_diff(hint.clamp(3, 3 + len));
                    assert!(
                        looks <= 2 + 2 * (usize::BITS - far.leading_zeros()),
                        "{looks} looks from {hint} to {first}"
                    );
                }
            }
        }
    }
}
