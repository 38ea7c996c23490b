//! Rows in an order.

use super::restrict::{Order, Restriction};
use super::rows::wanted;
use super::spilled::{self, BUFFER_BYTES, Merge, Written};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use crate::leading::{leading, rank};
use nestor_model::statement::{Scope, note, work};
use nestor_model::vector::{Data, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Env, Scalar, SortKey, Tuple};
use std::cmp::Ordering;
use std::sync::Arc;

/// Of an order of which more rows than these are wanted nothing is told to its input.
const LAST_KNOWN_MAX: usize = 10_000;

/// A row with the values that it is ordered by.
pub(super) type Keyed = (Vec<Value>, Tuple);

/// Rows that are put in order when the first is asked for.
pub(super) struct Sort<S> {
    input: BoxRows<S>,
    keys: Vec<SortKey<S>>,
    limit: Option<(Option<S>, S)>,
    kept: Kept,
    sorted: Option<Sorted>,
}

/// Where rows come from once it is known.
enum Sorted {
    /// The input has them in order.
    ByInput,
    /// They were put in order.
    Here(std::vec::IntoIter<Keyed>),
    /// In parts, of which most are in files; so many of them are wanted.
    Merged(Box<Merge>, usize),
}

/// Runs that are merged at a time.
const RUNS_MAX: usize = 16;

pub(super) fn sort<S: Scalar>(input: BoxRows<S>, keys: &[SortKey<S>], limit: Option<&(Option<S>, S)>) -> BoxRows<S> {
    Box::new(Sort::new(input, keys, limit))
}

/// The order of two values by a key of rows.
fn by_key<S: Scalar>(key: &SortKey<S>, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) if key.nulls_first => Ordering::Less,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) if key.nulls_first => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (a, b) if key.descending => key.by.compare(b, a),
        (a, b) => key.by.compare(a, b),
    }
}

/// The order of two rows by the values that they are ordered by.
pub(super) fn compare<S: Scalar>(keys: &[SortKey<S>], a: &[Value], b: &[Value]) -> Ordering {
    note(1);
    let mut orders = keys.iter().zip(a.iter().zip(b)).map(|(key, (a, b))| by_key(key, a, b));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The order of a row of vectors and one of values, as [`compare`] has it.
fn compare_row<S: Scalar>(keys: &[SortKey<S>], (vectors, row): (&[Arc<Vector>], usize), values: &[Value]) -> Ordering {
    note(1);
    for (key, (vector, value)) in keys.iter().zip(vectors.iter().zip(values)) {
        let order = match (&vector.data, value) {
            _ if vector.is_null(row) => None,
            (Data::Int32(own), Value::Int32(value)) => Some(own[row].cmp(value)),
            (Data::Int64(own), Value::Int64(value)) => Some(own[row].cmp(value)),
            (Data::Text(own), Value::String(value)) if key.by.is_by_bytes() => Some(own.get(row).cmp(value)),
            _ => None,
        };
        let order = match order {
            Some(order) if key.descending => order.reverse(),
            Some(order) => order,
            None => by_key(key, &vector.value(row), value),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The values that a row is ordered by.
pub(super) fn values<S: Scalar>(keys: &[SortKey<S>], row: &[Value], env: &Env<'_>) -> Result<Vec<Value>> {
    keys.iter().map(|key| key.by.value(row, env)).collect()
}

impl<S: Scalar> Sort<S> {
    /// Of these rows, by these keys. Of more rows than are wanted the last may be left out.
    pub fn new(input: BoxRows<S>, keys: &[SortKey<S>], limit: Option<&(Option<S>, S)>) -> Self {
        Self {
            input,
            keys: keys.to_vec(),
            limit: limit.cloned(),
            kept: Kept::default(),
            sorted: None,
        }
    }

    /// The next row with what it is ordered by. Whoever asks for it does so from the first row on.
    ///
    /// Errors: those of [`Rows::next`].
    pub fn next_keyed(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Keyed>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.read(run)?);
        }
        match &mut self.sorted {
            Some(Sorted::Here(rows)) => {
                // The row is kept by somebody else from now on.
                self.kept.shrink_by_one_of(rows.len());
                Ok(rows.next())
            }
            Some(Sorted::Merged(merge, _)) => merge.next(&self.keys),
            Some(Sorted::ByInput) | None => Ok(None),
        }
    }

    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Sorted> {
        let keep = wanted(self.limit.as_ref(), run)?.unwrap_or(usize::MAX);
        let mut rows: Vec<Keyed> = Vec::new();
        if keep == 0 {
            return Ok(Sorted::Here(rows.into_iter()));
        }
        let room = run.batch.room();
        let mut runs = Vec::new();
        if keep <= LAST_KNOWN_MAX {
            self.tell(None);
        }
        // As many rows as are wanted have been put in order: no later one comes before the last of them unless its keys do.
        let mut is_full = false;
        let mut last: Option<Value> = None;
        loop {
            if let Some(last) = last.take() {
                self.tell(Some(last));
            }
            let Some(chunk) = self.input.next_chunk(run)? else {
                break;
            };
            let _values = Scope::begin();
            let by = self.keys.iter().map(|key| key.by.vector(&chunk, &run.env));
            let by: Vec<Arc<Vector>> = by.collect::<Result<_>>()?;
            let worst = rows
                .get(keep - 1)
                .filter(|_| is_full)
                .and_then(|(keys, _)| keys.first());
            let first = self.keys.first().zip(by.first());
            let places = first.and_then(|(key, by)| candidates(key, by, worst, keep));
            work(chunk.rows - places.as_ref().map_or(chunk.rows, Vec::len))?;
            let places = places.unwrap_or_else(|| (0..chunk.rows as u32).collect());
            for at in places.into_iter().map(|at| at as usize) {
                row_done()?;
                if is_full && compare_row(&self.keys, (&by, at), &rows[keep - 1].0) != Ordering::Less {
                    continue;
                }
                let keys: Vec<Value> = by.iter().map(|values| values.value(at)).collect();
                let row = chunk.row(at);
                let bytes = weight(&row) + weight(&keys);
                rows.push((keys, row));
                if room.is_some_and(|room| self.kept.bytes() + bytes > room) {
                    runs.push(self.write(std::mem::take(&mut rows), run)?);
                    is_full = false;
                    if runs.len() >= RUNS_MAX {
                        runs = vec![self.merged(runs, keep, run)?];
                    }
                    continue;
                }
                self.kept.grow(bytes)?;
                // Twice as many as are wanted are sorted at a time, so each costs what a heap would.
                if keep < usize::MAX / 4 && rows.len() >= (2 * keep).max(64) {
                    self.cut(&mut rows, keep)?;
                    is_full = true;
                    last = rows.last().and_then(|(keys, _)| keys.first()).cloned();
                }
            }
        }
        rows.sort_by(|a, b| compare(&self.keys, &a.0, &b.0));
        rows.truncate(keep);
        if runs.is_empty() {
            return Ok(Sorted::Here(rows.into_iter()));
        }
        self.kept.grow_spilling(runs.len() * BUFFER_BYTES)?;
        let merge = Merge::new(runs, rows, self.keys.len())?;
        Ok(Sorted::Merged(Box::new(merge), keep))
    }

    /// Writes rows in order, which are gone from memory then.
    fn write(&mut self, mut rows: Vec<Keyed>, run: &Run<'_, '_, S>) -> Result<Written> {
        rows.sort_by(|a, b| compare(&self.keys, &a.0, &b.0));
        let mut file = spilled::file(run)?;
        for (mut values, row) in rows {
            values.extend(row);
            file.push(values)?;
        }
        self.kept.clear();
        file.read(run)
    }

    /// Makes one run of several, of no more rows than are wanted.
    fn merged(&self, runs: Vec<Written>, keep: usize, run: &Run<'_, '_, S>) -> Result<Written> {
        let mut merge = Merge::new(runs, Vec::new(), self.keys.len())?;
        let mut file = spilled::file(run)?;
        for _ in 0..keep {
            let Some((mut values, row)) = merge.next(&self.keys)? else {
                break;
            };
            values.extend(row);
            file.push(values)?;
        }
        file.read(run)
    }

    /// Tells the input in which order rows are welcome, and by the first of its keys the last that are.
    fn tell(&mut self, last: Option<Value>) {
        let Some((key, place)) = self.keys.first().and_then(|key| Some((key, key.by.place()?))) else {
            return;
        };
        // Behind rows that are null there may be others still.
        if matches!(last, Some(Value::Null)) {
            return;
        }
        let order = Order {
            last,
            descending: key.descending,
            nulls: key.nulls_first,
            by_bytes: key.by.is_by_bytes(),
        };
        self.input.restrict(place, &Restriction::Order(order));
    }

    fn cut(&mut self, rows: &mut Vec<Keyed>, keep: usize) -> Result<()> {
        rows.sort_by(|a, b| compare(&self.keys, &a.0, &b.0));
        rows.truncate(keep);
        self.kept
            .set(rows.iter().map(|(keys, row)| weight(row) + weight(keys)).sum())
    }
}

/// The rows of a chunk that may be among the first `keep`, as far as the first key tells, whose `worst` value is known of as many rows; `None` for all of
/// them.
fn candidates<S: Scalar>(key: &SortKey<S>, by: &Vector, worst: Option<&Value>, keep: usize) -> Option<Vec<u32>> {
    let rank = |value: i64| rank(value, key.descending);
    let worst = match worst {
        None if keep >= by.len() => return None,
        None => None,
        Some(Value::Int32(value)) => Some(rank(i64::from(*value))),
        Some(Value::Int64(value)) => Some(rank(*value)),
        Some(_) => return None,
    };
    let ranked = |row: usize, value: i64| (!by.is_null(row)).then(|| rank(value));
    let ranks: Vec<Option<i64>> = match &by.data {
        Data::Int32(values) => (0..)
            .zip(values)
            .map(|(row, value)| ranked(row, i64::from(*value)))
            .collect(),
        Data::Int64(values) => (0..).zip(values).map(|(row, value)| ranked(row, *value)).collect(),
        _ => return None,
    };
    Some(leading(&ranks, worst, keep))
}

impl<S: Scalar> Rows<S> for Sort<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let sorted = match &mut self.sorted {
            Some(sorted) => sorted,
            None => {
                let found = match self.input.in_order(run)? {
                    true => Sorted::ByInput,
                    false => self.read(run)?,
                };
                self.sorted.insert(found)
            }
        };
        match sorted {
            Sorted::ByInput => self.input.next(run),
            Sorted::Here(rows) => Ok(rows.next().map(|(_, row)| row)),
            Sorted::Merged(_, 0) => Ok(None),
            Sorted::Merged(merge, left) => {
                *left -= 1;
                Ok(merge.next(&self.keys)?.map(|(_, row)| row))
            }
        }
    }
}
