//! Groups and what is computed of them.
//!
//! The input is read chunk by chunk: [`Groups`] says to which group each row belongs, and the calls take the vectors of their arguments with
//! these numbers. Of a call whose rows have to differ the first of those that are alike are found as groups are. A call whose rows have an order takes them
//! one by one ([`state`]). What groups are made of that follows from others of it (`GROUP BY a, a - 1, 'x'`) is computed of each group.

mod state;

pub(super) use state::State;

use super::groups::{Groups, first_rows};
use super::restrict::Restriction;
use super::{BoxRows, Rows, Run, row_done};
use crate::kept::Kept;
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::{Call, Chunk, Grouped, Scalar, Tuple};
use std::sync::Arc;

struct Aggregated<S> {
    input: BoxRows<S>,
    groups: Vec<S>,
    /// The groups that the others follow from, with the columns that they are; `None` where all tell rows apart.
    leading: Option<Vec<(usize, usize)>>,
    sets: Vec<Vec<usize>>,
    calls: Vec<Call<S>>,
    kept: Kept,
    done: Option<Done<S>>,
}

/// All groups, and how many of them have been given.
struct Done<S> {
    groups: Groups<S>,
    states: Vec<States<S>>,
    given: usize,
}

/// What one call has of all groups.
enum States<S> {
    /// The vectors of its arguments are enough.
    Grouped(Box<dyn Grouped>),
    /// Its rows have to differ: those that were met, as groups within groups, or as such themselves where all rows are one group.
    Distinct(Box<Groups<S>>, Box<dyn Grouped>),
    /// Its rows have an order.
    Single(Vec<State>),
}

/// Bytes that a row takes that others have to differ from, beside its values.
const MET_BYTES: usize = 32;

pub(super) fn aggregate<S: Scalar>(
    mut input: BoxRows<S>,
    groups: &[S],
    sets: &[Vec<usize>],
    calls: &[Call<S>],
) -> BoxRows<S> {
    let is_one = groups.is_empty() && sets.len() == 1 && !calls.is_empty();
    let takes_extremes = |call: &Call<S>| {
        let is_plain = call.filter.is_none() && call.order.is_empty();
        is_plain && call.function.takes_extremes() && call.args.iter().all(|arg| arg.place().is_some())
    };
    if is_one && calls.iter().all(takes_extremes) {
        input.keep_extremes();
    }
    let is_plain = sets.len() == 1 && (0..groups.len()).all(|at| sets[0].contains(&at));
    Box::new(Aggregated {
        input,
        leading: leading(groups).filter(|_| is_plain),
        groups: groups.to_vec(),
        sets: sets.to_vec(),
        calls: calls.to_vec(),
        kept: Kept::default(),
        done: None,
    })
}

/// The groups that are columns, with these, if there are others and they follow from them.
fn leading<S: Scalar>(groups: &[S]) -> Option<Vec<(usize, usize)>> {
    let columns = groups.iter().enumerate();
    let columns: Vec<(usize, usize)> = columns.filter_map(|(at, by)| Some((at, by.place()?))).collect();
    let places: Vec<usize> = columns.iter().map(|(_, place)| *place).collect();
    let follows = |by: &S| by.place().is_some() || by.follows_from(&places);
    let is_fewer = !columns.is_empty() && columns.len() < groups.len();
    (is_fewer && groups.iter().all(follows)).then_some(columns)
}

impl<S: Scalar> States<S> {
    /// No groups; `is_one` when there will be only one.
    fn new(call: &Call<S>, is_one: bool) -> Self {
        match (call.distinct, call.order.is_empty()) {
            (_, false) => Self::Single(Vec::new()),
            (true, true) => {
                let sets: Vec<Vec<usize>> = is_one.then(|| (0..call.args.len()).collect()).into_iter().collect();
                Self::Distinct(Box::new(Groups::new(&call.args, &sets)), call.function.start_grouped())
            }
            (false, true) => Self::Grouped(call.function.start_grouped()),
        }
    }

    /// There are so many groups now.
    fn resize(&mut self, call: &Call<S>, groups: usize) {
        match self {
            Self::Grouped(states) | Self::Distinct(_, states) => states.resize(groups),
            Self::Single(states) => states.resize_with(groups, || State::new(call)),
        }
    }

    /// The rows of a chunk belong to `groups`; returns by how many bytes the states grew.
    fn add(&mut self, call: &Call<S>, groups: &[u32], chunk: &Chunk, run: &Run<'_, '_, S>) -> Result<usize> {
        let args_of = |chunk: &Chunk| -> Result<Vec<Arc<Vector>>> {
            call.args.iter().map(|arg| arg.vector(chunk, &run.env)).collect()
        };
        let places = match &call.filter {
            Some(filter) => filter.places(chunk, &run.env)?,
            None => None,
        };
        let (part, picked);
        let (chunk, groups) = match places {
            None => (chunk, groups),
            Some(places) => {
                picked = places.iter().map(|at| groups[*at as usize]).collect::<Vec<u32>>();
                part = chunk.gather(&places);
                (&part, picked.as_slice())
            }
        };
        match self {
            Self::Grouped(states) => {
                let before = states.weight();
                states.add(groups, &args_of(chunk)?)?;
                Ok(states.weight().saturating_sub(before))
            }
            Self::Distinct(met, states) => {
                work(ROW / 2 * chunk.rows)?;
                let keys = met.keys(chunk, &run.env)?;
                let (known, mut numbers) = (met.len(), Vec::new());
                let grown = match met.has_sets() {
                    true => met.find(0, &keys, chunk.rows, &mut numbers),
                    false => met.find_within(groups, &keys, &mut numbers),
                };
                let first = first_rows(&numbers, known);
                let groups: Vec<u32> = first.iter().map(|row| groups[*row as usize]).collect();
                let args: Vec<Arc<Vector>> = keys.values().iter().map(|own| Arc::new(own.gather(&first))).collect();
                let before = states.weight();
                states.add(&groups, &args)?;
                Ok(grown + first.len() * MET_BYTES + states.weight().saturating_sub(before))
            }
            Self::Single(states) => {
                let args = args_of(chunk)?;
                let keys = call.order.iter().map(|key| key.by.vector(chunk, &run.env));
                let keys: Vec<Arc<Vector>> = keys.collect::<Result<_>>()?;
                let mut grown = 0;
                for (row, group) in groups.iter().enumerate() {
                    row_done()?;
                    let values = |of: &[Arc<Vector>]| of.iter().map(|vector| vector.value(row)).collect();
                    grown += states[*group as usize].add_values(call, values(&args), values(&keys))?;
                }
                Ok(grown)
            }
        }
    }

    fn result(&mut self, call: &Call<S>, group: usize) -> Result<Value> {
        match self {
            Self::Grouped(states) | Self::Distinct(_, states) => states.result(group),
            Self::Single(states) => states[group].result(call),
        }
    }
}

impl<S: Scalar> Aggregated<S> {
    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Done<S>> {
        let mut groups = match &self.leading {
            None => Groups::new(&self.groups, &self.sets),
            Some(leading) => {
                let by: Vec<S> = leading.iter().map(|(at, _)| self.groups[*at].clone()).collect();
                Groups::new(&by, &[(0..by.len()).collect()])
            }
        };
        groups.add_empty();
        let mut states: Vec<States<S>> = {
            let is_one = self.groups.is_empty() && self.sets.len() == 1;
            self.calls.iter().map(|call| States::new(call, is_one)).collect()
        };
        // Of each group: its place and what the calls have of it.
        let group_bytes = 64 + 48 * self.calls.len();
        let mut numbers = Vec::new();
        let mut known = 0;
        loop {
            let count = groups.len();
            for (states, call) in states.iter_mut().zip(&self.calls) {
                states.resize(call, count);
            }
            self.kept.grow((count - known) * group_bytes)?;
            known = count;
            let Some(chunk) = self.input.next_chunk(run)? else {
                break;
            };
            let _values = Scope::begin();
            let keys = groups.keys(&chunk, &run.env)?;
            for set in 0..self.sets.len() {
                work(ROW / 2 * chunk.rows)?;
                self.kept.grow(groups.find(set, &keys, chunk.rows, &mut numbers))?;
                let count = groups.len();
                for (states, call) in states.iter_mut().zip(&self.calls) {
                    states.resize(call, count);
                    self.kept.grow(states.add(call, &numbers, &chunk, run)?)?;
                }
            }
        }
        Ok(Done {
            groups,
            states,
            given: 0,
        })
    }

    /// The columns of the groups of which `columns` are those that are looked for.
    fn columns(&self, columns: Vec<Arc<Vector>>, rows: usize, run: &Run<'_, '_, S>) -> Result<Vec<Arc<Vector>>> {
        let Some(leading) = &self.leading else {
            return Ok(columns);
        };
        let width = leading.iter().map(|(_, place)| place + 1).max().unwrap_or(0);
        let mut chunk = Chunk {
            columns: vec![Arc::new(Vector::same(Value::Null, rows)); width],
            rows,
        };
        let placed = leading.iter().zip(columns);
        placed.for_each(|((_, place), column)| chunk.columns[*place] = column);
        self.groups.iter().map(|by| by.vector(&chunk, &run.env)).collect()
    }

    fn done(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        if self.done.is_none() {
            self.done = Some(self.read(run)?);
        }
        Ok(())
    }
}

impl<S: Scalar> Rows<S> for Aggregated<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        self.done(run)?;
        let Some(done) = self.done.as_mut().filter(|done| done.given < done.groups.len()) else {
            return Ok(None);
        };
        row_done()?;
        let group = done.given;
        done.given += 1;
        let mut row = match self.leading {
            None => done.groups.values(group),
            Some(_) => {
                let own = done.groups.columns(group, group + 1);
                let columns = self.columns(own, 1, run)?;
                columns.iter().map(|column| column.value(0)).collect()
            }
        };
        let Some(done) = &mut self.done else { return Ok(None) };
        for (states, call) in done.states.iter_mut().zip(&self.calls) {
            row.push(states.result(call, group)?);
        }
        row.push(Value::Int64(done.groups.set(group) as i64));
        Ok(Some(row))
    }

    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        self.done(run)?;
        let Some(done) = self.done.as_mut().filter(|done| done.given < done.groups.len()) else {
            return Ok(None);
        };
        let from = done.given;
        let to = done.groups.len().min(from + ROWS);
        done.given = to;
        work(ROW * (to - from))?;
        let own = done.groups.columns(from, to);
        let mut columns = self.columns(own, to - from, run)?;
        let Some(done) = &mut self.done else { return Ok(None) };
        for (states, call) in done.states.iter_mut().zip(&self.calls) {
            let mut column = Builder::default();
            for group in from..to {
                column.push(states.result(call, group)?);
            }
            columns.push(Arc::new(column.finish()));
        }
        let mut sets = Builder::default();
        (from..to).for_each(|group| sets.push_int64(done.groups.set(group) as i64));
        columns.push(Arc::new(sets.finish()));
        Ok(Some(Chunk {
            columns,
            rows: to - from,
        }))
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        // Rows of a group have all the same value.
        let is_one = self.sets.len() == 1 && self.sets[0].contains(&place);
        if let Some(place) = self.groups.get(place).and_then(Scalar::place).filter(|_| is_one) {
            self.input.restrict(place, to);
        }
    }
}
