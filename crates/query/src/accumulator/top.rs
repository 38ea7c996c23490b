//! `$top`, `$bottom`, `$topN`, `$bottomN`.

use super::{Accumulator, Argument, Definition, Settings, State, add_items, items, value_bytes};
use crate::env::Val;
use crate::sort::SortSpec;
use nestor_model::{Result, Value, ValueRef};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const TOP: Definition = Definition {
    name: "$top",
    argument: Argument::Sorted { with_n: false },
    start: |settings| Accumulator::Top(Box::new(Top::single(sort(settings), true))),
};

pub(super) const BOTTOM: Definition = Definition {
    name: "$bottom",
    argument: Argument::Sorted { with_n: false },
    start: |settings| Accumulator::Top(Box::new(Top::single(sort(settings), false))),
};

pub(super) const TOP_N: Definition = Definition {
    name: "$topN",
    argument: Argument::Sorted { with_n: true },
    start: |settings| Accumulator::Top(Box::new(Top::many(settings.n, sort(settings), true))),
};

pub(super) const BOTTOM_N: Definition = Definition {
    name: "$bottomN",
    argument: Argument::Sorted { with_n: true },
    start: |settings| Accumulator::Top(Box::new(Top::many(settings.n, sort(settings), false))),
};

fn sort(settings: Settings<'_>) -> Arc<SortSpec> {
    settings.sort.expect("arguments of this form have a sortBy")
}

/// The outputs of the first (or last) `n` documents of an order. Documents that sort alike keep the order
/// in which they came.
#[derive(Clone, Debug)]
pub struct Top {
    sort: Arc<SortSpec>,
    top: bool,
    n: usize,
    single: bool,
    /// Key and output, in the order of the sort, at most `n`.
    held: Vec<(Vec<Value>, Value)>,
    bytes: usize,
}

impl Top {
    /// One output, not an array.
    pub fn single(sort: Arc<SortSpec>, top: bool) -> Self {
        Self {
            single: true,
            ..Self::many(1, sort, top)
        }
    }

    /// An array of at most `n` outputs.
    pub fn many(n: usize, sort: Arc<SortSpec>, top: bool) -> Self {
        Self {
            sort,
            top,
            n,
            single: false,
            held: Vec::new(),
            bytes: 0,
        }
    }

    /// The order.
    pub fn sort(&self) -> Arc<SortSpec> {
        self.sort.clone()
    }

    /// False when a document of this key would be dropped at once; saves computing its output.
    pub fn would_keep(&self, key: &[ValueRef<'_>]) -> bool {
        if self.held.len() < self.n {
            return true;
        }
        let edge = if self.top { self.held.last() } else { self.held.first() };
        let Some((edge, _)) = edge else {
            return true;
        };
        let edge: Vec<ValueRef<'_>> = edge.iter().map(Value::as_ref).collect();
        match self.sort.compare(key, &edge) {
            Ordering::Less => self.top,
            Ordering::Equal => !self.top,
            Ordering::Greater => !self.top,
        }
    }

    /// Takes a document's key and output.
    pub fn insert(&mut self, key: Vec<Value>, output: Value) {
        let output = if output.is_missing() { Value::Null } else { output };
        let at = self
            .held
            .partition_point(|(held, _)| self.sort.compare_owned(held, &key) != Ordering::Greater);
        self.bytes += key.iter().chain([&output]).map(value_bytes).sum::<usize>();
        self.held.insert(at, (key, output));
        if self.held.len() > self.n {
            let (key, output) = if self.top {
                self.held.pop().expect("longer than n")
            } else {
                self.held.remove(0)
            };
            self.bytes -= key.iter().chain([&output]).map(value_bytes).sum::<usize>();
        }
    }
}

impl State for Top {
    /// Takes a key and an output as [`Top::partial`] pairs them. Stages, which know them apart, use [`Top::insert`].
    fn add(&mut self, pair: Val<'_>) -> Result<()> {
        let mut pair = items(pair.as_ref());
        if let (Some(key), Some(output)) = (pair.next(), pair.next()) {
            let key: Vec<ValueRef<'_>> = items(key).collect();
            if self.would_keep(&key) {
                self.insert(key.into_iter().map(ValueRef::to_value).collect(), output.to_value());
            }
        }
        Ok(())
    }

    /// The output or outputs.
    fn result(&self) -> Value {
        if self.single {
            return self.held.first().map_or(Value::Missing, |(_, output)| output.clone());
        }
        self.held
            .iter()
            .map(|(_, output)| output.clone())
            .collect::<Vec<_>>()
            .into()
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    /// Pairs of key and output, in the order of the sort.
    fn partial(&self) -> Value {
        let pair = |(key, output): &(Vec<Value>, Value)| Value::from(vec![key.clone().into(), output.clone()]);
        self.held.iter().map(pair).collect::<Vec<Value>>().into()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}
