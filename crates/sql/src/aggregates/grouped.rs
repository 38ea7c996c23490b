//! States of many groups, side by side.

use crate::error::fail;
use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Accumulator, Aggregate, Grouped};
use std::any::Any;
use std::sync::Arc;

/// The state of a group that lies among those of others.
pub(super) trait State: Accumulator + Sized {
    /// Whether [`State::merge`] makes one state of those of two parts of the rows, as exact as one of all of them.
    const MERGES: bool = false;

    /// A state without rows that can give rows back ([`Aggregate::start_sliding`]).
    fn sliding(self) -> Option<Box<dyn Accumulator>> {
        None
    }

    /// The state of other rows of the group.
    fn merge(&mut self, _other: Self) -> Result<()> {
        Ok(())
    }

    /// Rows with these arguments belong to groups; returns by how many bytes the states grew besides themselves. A loop over the vectors may
    /// stand in its place.
    fn add_all(states: &mut [Self], groups: &[u32], args: &[Arc<Vector>]) -> Result<usize> {
        let mut grown = 0;
        let mut values: Vec<Value> = Vec::with_capacity(args.len());
        for (row, group) in groups.iter().enumerate() {
            values.clear();
            values.extend(args.iter().map(|arg| arg.value(row)));
            let state = &mut states[*group as usize];
            let before = state.weight();
            state.add(&values)?;
            grown += state.weight().saturating_sub(before);
        }
        Ok(grown)
    }
}

impl State for Box<dyn Accumulator> {}

/// The group that all rows belong to, if they do.
pub(super) fn only(groups: &[u32]) -> Option<usize> {
    let first = *groups.first()?;
    // Most chunks of many groups are told apart by their ends.
    let is_only = groups.last() == Some(&first) && groups.iter().all(|group| *group == first);
    is_only.then_some(first as usize)
}

struct States<T, F> {
    start: F,
    states: Vec<T>,
    bytes: usize,
}

impl<T: State + 'static, F: Fn() -> T + Clone + Send + 'static> Grouped for States<T, F> {
    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, &self.start);
    }

    fn add(&mut self, groups: &[u32], args: &[Arc<Vector>]) -> Result<()> {
        self.bytes += T::add_all(&mut self.states, groups, args)?;
        Ok(())
    }

    fn result(&self, group: usize) -> Result<Value> {
        self.states[group].result()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn merge(&mut self, other: Box<dyn Grouped>, groups: &[u32]) -> Result<()> {
        let other = match other.into_any().downcast::<Self>() {
            Ok(other) if T::MERGES => *other,
            _ => return fail("XX000", "states of different functions do not merge"),
        };
        self.bytes += other.bytes;
        let mut pairs = other.states.into_iter().zip(groups);
        pairs.try_for_each(|(state, group)| self.states[*group as usize].merge(state))
    }

    fn split(self: Box<Self>, parts: &[u8], count: usize) -> Vec<Box<dyn Grouped>> {
        let Self { start, states, .. } = *self;
        let none = |_| Self {
            start: start.clone(),
            states: Vec::new(),
            bytes: 0,
        };
        let mut out: Vec<Self> = (0..count).map(none).collect();
        for (state, part) in states.into_iter().zip(parts) {
            let own = &mut out[usize::from(*part)];
            own.bytes += state.weight();
            own.states.push(state);
        }
        out.into_iter().map(|own| Box::new(own) as Box<dyn Grouped>).collect()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A function made of a name and of what starts a state.
pub(super) struct Plain<F> {
    pub name: &'static str,
    pub start: F,
}

impl<F> std::fmt::Debug for Plain<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl<T: State + 'static, F: Fn() -> T + Clone + Send + Sync + 'static> Aggregate for Plain<F> {
    fn name(&self) -> &str {
        self.name
    }

    fn takes_extremes(&self) -> bool {
        matches!(self.name, "min" | "max")
    }

    fn merges(&self) -> bool {
        T::MERGES
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new((self.start)())
    }

    fn start_sliding(&self) -> Option<Box<dyn Accumulator>> {
        (self.start)().sliding()
    }

    fn start_grouped(&self) -> Box<dyn Grouped> {
        Box::new(States {
            start: self.start.clone(),
            states: Vec::new(),
            bytes: 0,
        })
    }
}
