//! `$top`, `$bottom`, `$topN`, `$bottomN`.

use super::{items, value_bytes};
use crate::sort::SortSpec;
use nestor_model::{Value, ValueRef};
use std::cmp::Ordering;
use std::sync::Arc;

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
            ..Self::many(sort, top, 1)
        }
    }

    /// An array of at most `n` outputs.
    pub fn many(sort: Arc<SortSpec>, top: bool, n: usize) -> Self {
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
    pub fn add(&mut self, key: Vec<Value>, output: Value) {
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

    /// The output or outputs.
    pub fn result(&self) -> Value {
        if self.single {
            return self.held.first().map_or(Value::Missing, |(_, output)| output.clone());
        }
        self.held
            .iter()
            .map(|(_, output)| output.clone())
            .collect::<Vec<_>>()
            .into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The state: pairs of key and output, in the order of the sort.
    pub fn partial(&self) -> Value {
        let pair = |(key, output): &(Vec<Value>, Value)| Value::from(vec![key.clone().into(), output.clone()]);
        self.held.iter().map(pair).collect::<Vec<Value>>().into()
    }

    /// Takes what [`Top::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        for pair in items(partial) {
            let mut pair = items(pair);
            let (Some(key), Some(output)) = (pair.next(), pair.next()) else {
                continue;
            };
            let key: Vec<ValueRef<'_>> = items(key).collect();
            if self.would_keep(&key) {
                self.add(key.into_iter().map(ValueRef::to_value).collect(), output.to_value());
            }
        }
    }
}
