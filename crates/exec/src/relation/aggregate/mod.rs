//! Groups and what is computed of them.
//!
//! The input is read chunk by chunk: [`Groups`] says to which group each row belongs, and the calls take the vectors of their arguments with
//! these numbers. Of a call whose rows have to differ the first of those that are alike are found as groups are. A call whose rows have an order takes them
//! one by one ([`state`]).

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
    /// Its rows have to differ: those that were met, as groups within groups.
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
    Box::new(Aggregated {
        input,
        groups: groups.to_vec(),
        sets: sets.to_vec(),
        calls: calls.to_vec(),
        kept: Kept::default(),
        done: None,
    })
}

impl<S: Scalar> States<S> {
    fn new(call: &Call<S>) -> Self {
        match (call.distinct, call.order.is_empty()) {
            (_, false) => Self::Single(Vec::new()),
            (true, true) => Self::Distinct(Box::new(Groups::new(&call.args, &[])), call.function.start_grouped()),
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
                let grown = met.find_within(groups, &keys, &mut numbers);
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
        let mut groups = Groups::new(&self.groups, &self.sets);
        groups.add_empty();
        let mut states: Vec<States<S>> = self.calls.iter().map(States::new).collect();
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
        let mut row = done.groups.values(group);
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
        let mut columns = done.groups.columns(from, to);
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
