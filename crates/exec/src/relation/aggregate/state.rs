//! What one call has of one group, row by row.

use crate::relation::key::RowKey;
use crate::relation::sort::{self, Keyed};
use crate::relation::weight;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Accumulator, Call, Env, Scalar};
use std::collections::HashSet;

/// What one call has of one group.
pub(in crate::relation) struct State {
    accumulator: Box<dyn Accumulator>,
    seen: Option<HashSet<RowKey>>,
    /// Rows that wait to be put in order.
    waiting: Vec<Keyed>,
    /// Where arguments are put together.
    args: Vec<Value>,
    weight: usize,
}

impl State {
    pub(in crate::relation) fn new<S>(call: &Call<S>) -> Self {
        Self {
            accumulator: call.function.start(),
            seen: call.distinct.then(HashSet::new),
            waiting: Vec::new(),
            args: Vec::new(),
            weight: 0,
        }
    }

    /// One that can give rows back, of a function that can; `None` for others.
    pub(in crate::relation) fn sliding<S: Scalar>(call: &Call<S>) -> Option<Self> {
        let is_plain = !call.distinct && call.order.is_empty();
        let is_stable = is_plain && !call.args.iter().chain(&call.filter).any(S::is_volatile);
        let accumulator = is_stable.then(|| call.function.start_sliding()).flatten()?;
        Some(Self {
            accumulator,
            ..Self::new(call)
        })
    }

    /// Gives back the first of the rows that it has; by how many bytes it became smaller, `None` if it cannot.
    pub(in crate::relation) fn remove<S: Scalar>(
        &mut self,
        call: &Call<S>,
        row: &[Value],
        env: &Env<'_>,
    ) -> Result<Option<usize>> {
        if let Some(filter) = &call.filter
            && !filter.holds(row, env)?
        {
            return Ok(Some(0));
        }
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        for arg in &call.args {
            args.push(arg.value(row, env)?);
        }
        let removed = self.accumulator.remove(&args)?;
        self.args = args;
        let now = self.accumulator.weight().min(self.weight);
        let less = self.weight - now;
        self.weight = now;
        Ok(removed.then_some(less))
    }

    /// Takes a row; returns by how many bytes the state grew.
    pub(in crate::relation) fn add<S: Scalar>(
        &mut self,
        call: &Call<S>,
        row: &[Value],
        env: &Env<'_>,
    ) -> Result<usize> {
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
        let args = call.args.iter().map(|arg| arg.value(row, env)).collect::<Result<_>>()?;
        let keys = sort::values(&call.order, row, env)?;
        self.add_values(call, args, keys)
    }

    /// Takes the row with these arguments, which passes the filter and has these values to be ordered by; returns by how many bytes the
    /// state grew.
    pub(in crate::relation) fn add_values<S: Scalar>(
        &mut self,
        call: &Call<S>,
        args: Vec<Value>,
        keys: Vec<Value>,
    ) -> Result<usize> {
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
            grown += weight(&args) + weight(&keys);
            self.waiting.push((keys, args));
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

    pub(in crate::relation) fn result<S: Scalar>(&mut self, call: &Call<S>) -> Result<Value> {
        if !self.waiting.is_empty() {
            self.waiting.sort_by(|a, b| sort::compare(&call.order, &a.0, &b.0));
            for (_, args) in self.waiting.drain(..) {
                self.accumulator.add(&args)?;
            }
        }
        self.accumulator.result()
    }
}
