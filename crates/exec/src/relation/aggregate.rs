//! Groups and what is computed of them.

use super::key::{Keys, RowKey, hash_of};
use super::sort::{self, Keyed};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use hashbrown::HashTable;
use nestor_model::{Result, Value, values_equal};
use nestor_planner::relation::{Accumulator, Call, Env, Scalar, Tuple};
use std::collections::HashSet;
use std::hash::RandomState;

/// What one call has of one group.
pub(super) struct State {
    accumulator: Box<dyn Accumulator>,
    seen: Option<HashSet<RowKey>>,
    /// Rows that wait to be put in order.
    waiting: Vec<Keyed>,
    /// Where arguments are put together.
    args: Vec<Value>,
    weight: usize,
}

impl State {
    pub(super) fn new<S>(call: &Call<S>) -> Self {
        Self {
            accumulator: call.function.start(),
            seen: call.distinct.then(HashSet::new),
            waiting: Vec::new(),
            args: Vec::new(),
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
        let plain = self.seen.is_none() && call.order.is_empty();
        // The value of a column is looked at where it stands.
        if let [arg] = call.args.as_slice()
            && let Some(value) = arg.place().and_then(|place| row.get(place))
            && plain
        {
            return self.accumulate(std::slice::from_ref(value));
        }
        if plain {
            let mut args = std::mem::take(&mut self.args);
            args.clear();
            for arg in &call.args {
                args.push(arg.value(row, env)?);
            }
            let grown = self.accumulate(&args);
            self.args = args;
            return grown;
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
        Ok(grown + self.accumulate(&args)?)
    }

    /// The row with these arguments belongs to the group; returns by how many bytes the state grew.
    fn accumulate(&mut self, args: &[Value]) -> Result<usize> {
        self.accumulator.add(args)?;
        let now = self.accumulator.weight();
        let grown = now.saturating_sub(self.weight);
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
    groups: Keys<S>,
    sets: Vec<Vec<usize>>,
    calls: Vec<Call<S>>,
    kept: Kept,
    done: Option<std::vec::IntoIter<Group>>,
}

struct Group {
    hash: u64,
    set: usize,
    /// The values of the columns of its set; the others are null.
    values: Vec<Value>,
    /// Their keys, where these are other ones.
    keys: Vec<Value>,
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
        groups: Keys::new(groups.to_vec(), 0),
        sets: sets.to_vec(),
        calls: calls.to_vec(),
        kept: Kept::default(),
        done: None,
    })
}

impl<S: Scalar> Aggregated<S> {
    fn read(&mut self, run: &Run<'_, '_, S>) -> Result<Vec<Group>> {
        let keys = &self.groups;
        let hashes = RandomState::new();
        let mut places: HashTable<usize> = HashTable::new();
        let mut groups: Vec<Group> = Vec::new();
        let states = |calls: &[Call<S>]| calls.iter().map(State::new).collect::<Vec<_>>();
        let state_bytes = size_of::<Group>() + self.calls.len() * (size_of::<State>() + 64);
        for (number, set) in self.sets.iter().enumerate() {
            // An empty set has a group also without rows.
            if set.is_empty() {
                let hash = hash_of(&hashes, std::iter::empty());
                places.insert_unique(hash, groups.len(), |at| groups[*at].hash);
                groups.push(Group {
                    hash,
                    set: number,
                    values: vec![Value::Null; keys.len()],
                    keys: vec![Value::Null; if keys.is_exact() { 0 } else { keys.len() }],
                    states: states(&self.calls),
                });
            }
        }
        let mut computed = Vec::new();
        while let Some(row) = self.input.next(run)? {
            row_done()?;
            keys.compute(&row, &run.env, &mut computed)?;
            for (number, set) in self.sets.iter().enumerate() {
                let hash = hash_of(&hashes, set.iter().map(|i| keys.part(*i, &row, &computed)));
                let is_same = |at: &usize| {
                    let group = &groups[*at];
                    let known = if keys.is_exact() { &group.values } else { &group.keys };
                    let mut parts = set.iter();
                    group.hash == hash
                        && group.set == number
                        && parts.all(|i| values_equal(keys.part(*i, &row, &computed), &known[*i]))
                };
                let place = match places.find(hash, is_same) {
                    Some(place) => *place,
                    None => {
                        let mut values = vec![Value::Null; keys.len()];
                        let mut own = Vec::new();
                        for i in set {
                            values[*i] = keys.value(*i, &row, &computed, &run.env)?;
                        }
                        if !keys.is_exact() {
                            own.resize(keys.len(), Value::Null);
                            set.iter().for_each(|i| own[*i] = computed[*i].clone());
                        }
                        self.kept.grow(weight(&values) + weight(&own) + state_bytes)?;
                        let place = groups.len();
                        places.insert_unique(hash, place, |at| groups[*at].hash);
                        groups.push(Group {
                            hash,
                            set: number,
                            values,
                            keys: own,
                            states: states(&self.calls),
                        });
                        place
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
        let mut row = group.values;
        for (state, call) in group.states.iter_mut().zip(&self.calls) {
            row.push(state.result(call)?);
        }
        row.push(Value::Int64(group.set as i64));
        Ok(Some(row))
    }
}
