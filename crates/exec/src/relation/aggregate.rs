//! Groups and what is computed of them.

use super::key::RowKey;
use super::sort::{self, Keyed};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Accumulator, Call, Env, Scalar, Tuple};
use std::collections::{HashMap, HashSet};

/// What one call has of one group.
pub(super) struct State {
    accumulator: Box<dyn Accumulator>,
    seen: Option<HashSet<RowKey>>,
    /// Rows that wait to be put in order.
    waiting: Vec<Keyed>,
    weight: usize,
}

impl State {
    pub(super) fn new<S>(call: &Call<S>) -> Self {
        Self {
            accumulator: call.function.start(),
            seen: call.distinct.then(HashSet::new),
            waiting: Vec::new(),
            weight: 0,
        }
    }

    /// Takes a row; returns by how many bytes the state grew.
    pub(super) fn add<S: Scalar>(&mut self, call: &Call<S>, row: &[Value], env: &Env<'_>) -> Result<usize> {
        if let Some(filter) = &call.filter
            && !filter.holds(row, env)?
        {
            return Ok(0);
        }
        let mut args: Vec<Value> = call.args.iter().map(|arg| arg.value(row, env)).collect::<Result<_>>()?;
        let mut grown = 0;
        if let Some(seen) = &mut self.seen {
            let by = call.args.iter().zip(&args).map(|(arg, value)| arg.key(value.clone()));
            let key = RowKey(by.collect());
            let bytes = weight(&key.0);
            if !seen.insert(key) {
                return Ok(0);
            }
            grown += bytes;
        }
        if !call.order.is_empty() {
            let keys = sort::values(&call.order, row, env)?;
            grown += weight(&args) + weight(&keys);
            self.waiting.push((keys, std::mem::take(&mut args)));
            return Ok(grown);
        }
        self.accumulator.add(&args)?;
        let now = self.accumulator.weight();
        grown += now.saturating_sub(self.weight);
        self.weight = now;
        Ok(grown)
    }

    pub(super) fn result<S: Scalar>(&mut self, call: &Call<S>) -> Result<Value> {
        if !self.waiting.is_empty() {
            self.waiting.sort_by(|a, b| sort::compare(&call.order, &a.0, &b.0));
            for (_, args) in self.waiting.drain(..) {
                self.accumulator.add(&args)?;
            }
        }
        self.accumulator.result()
    }
}

struct Aggregated<S> {
    input: BoxRows<S>,
    groups: Vec<S>,
    sets: Vec<Vec<usize>>,
    calls: Vec<Call<S>>,
    kept: Kept,
    done: Option<std::vec::IntoIter<Group>>,
}

struct Group {
    keys: Vec<Value>,
    set: usize,
    states: Vec<State>,
}

pub(super) fn aggregate<S: Scalar>(
    input: BoxRows<S>,
    groups: &[S],
    sets: &[Vec<usize>],
    calls: &[Call<S>],
) -> BoxRows<S> {
    Box::new(Aggregated {
        input,
        groups: groups.to_vec(),
        sets: sets.to_vec(),
        calls: calls.to_vec(),
        kept: Kept::default(),
        done: None,
    })
}

impl<S: Scalar> Aggregated<S> {
    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Vec<Group>> {
        let mut places: HashMap<RowKey, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let states = |calls: &[Call<S>]| calls.iter().map(State::new).collect::<Vec<_>>();
        let state_bytes = size_of::<Group>() + self.calls.len() * (size_of::<State>() + 64);
        for (number, set) in self.sets.iter().enumerate() {
            // An empty set has a group also without rows.
            if set.is_empty() {
                let mut key = vec![Value::Null; self.groups.len()];
                key.push(Value::Int64(number as i64));
                places.insert(RowKey(key), groups.len());
                groups.push(Group {
                    keys: vec![Value::Null; self.groups.len()],
                    set: number,
                    states: states(&self.calls),
                });
            }
        }
        while let Some(row) = self.input.next(run)? {
            row_done()?;
            let values: Vec<Value> = self
                .groups
                .iter()
                .map(|by| by.value(&row, &run.env))
                .collect::<Result<_>>()?;
            for (number, set) in self.sets.iter().enumerate() {
                let mut key: Vec<Value> = vec![Value::Null; values.len()];
                for place in set {
                    key[*place] = self.groups[*place].key(values[*place].clone());
                }
                key.push(Value::Int64(number as i64));
                let key = RowKey(key);
                let place = match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        let mut keys = vec![Value::Null; values.len()];
                        for place in set {
                            keys[*place] = values[*place].clone();
                        }
                        self.kept.grow(2 * weight(&keys) + state_bytes)?;
                        places.insert(key, groups.len());
                        groups.push(Group {
                            keys,
                            set: number,
                            states: states(&self.calls),
                        });
                        groups.len() - 1
                    }
                };
                let mut grown = 0;
                for (state, call) in groups[place].states.iter_mut().zip(&self.calls) {
                    grown += state.add(call, &row, &run.env)?;
                }
                if grown > 0 {
                    self.kept.grow(grown)?;
                }
            }
        }
        Ok(groups)
    }
}

impl<S: Scalar> Rows<S> for Aggregated<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.done.is_none() {
            self.done = Some(self.read(run)?.into_iter());
        }
        let Some(mut group) = self.done.as_mut().and_then(Iterator::next) else {
            return Ok(None);
        };
        row_done()?;
        let mut row = group.keys;
        for (state, call) in group.states.iter_mut().zip(&self.calls) {
            row.push(state.result(call)?);
        }
        row.push(Value::Int64(group.set as i64));
        Ok(Some(row))
    }
}
