//! The merging cursor: one ordered view over a write set, the memtables and the base.
//!
//! Layers are ordered, the topmost first. Each key shows the value of the topmost layer that knows it; a tombstone hides
//! what lies below. Layers without a table for the tree are left out when the cursor is made, and each of the others
//! reads runs of entries ahead, so that an upper layer with nothing in range costs one search for a whole scan.

use crate::memtable::{Entry, Table};
use crate::{Bytes, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Private changes to one tree; `None` is a tombstone.
pub(crate) type Overlay = BTreeMap<Bytes, Option<Bytes>>;

/// Entries an upper layer reads ahead at first and at most.
const RUN_MIN: usize = 4;
const RUN_MAX: usize = 128;

/// A position in the entries of one tree as a snapshot (and the write set on top of it) shows them, in key order.
///
/// A cursor is at an entry or at none. It is at none when new and after a call that returned `false` or an error;
/// `next` and `prev` from none stay at none: seek again. It keeps its snapshot alive and does not see changes made to
/// the write set after it was opened.
pub struct Cursor {
    layers: Vec<Layer>,
    forward: bool,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Nothing,
    Layer(usize),
}

impl Cursor {
    pub(crate) fn new(layers: Vec<Layer>) -> Self {
        Self {
            layers,
            forward: true,
            at: At::Nothing,
        }
    }

    /// Moves to the first entry with a key `>= key`; `false` if there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.forward = true;
        for layer in &mut self.layers {
            layer.seek(key);
        }
        self.settle()
    }

    /// Moves to the last entry with a key `<= key`; `false` if there is none.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        self.forward = false;
        for layer in &mut self.layers {
            layer.seek_back(Bound::Included(key));
        }
        self.settle()
    }

    /// Moves to the first entry.
    pub fn first(&mut self) -> Result<bool> {
        self.seek(&[])
    }

    /// Moves to the last entry.
    pub fn last(&mut self) -> Result<bool> {
        self.forward = false;
        for layer in &mut self.layers {
            layer.seek_back(Bound::Unbounded);
        }
        self.settle()
    }

    /// Moves to the next entry; `false` at the end.
    pub fn next(&mut self) -> Result<bool> {
        self.step(true)
    }

    /// Moves to the previous entry; `false` at the beginning.
    pub fn prev(&mut self) -> Result<bool> {
        self.step(false)
    }

    /// Whether the cursor is at an entry.
    pub fn is_valid(&self) -> bool {
        self.at != At::Nothing
    }

    /// Key of the current entry; empty when at none.
    pub fn key(&self) -> &[u8] {
        match self.at {
            At::Nothing => &[],
            At::Layer(i) => self.layers[i].current().map_or(&[], |(key, _)| key),
        }
    }

    /// Value of the current entry; empty when at none.
    pub fn value(&self) -> Result<&[u8]> {
        Ok(match self.at {
            At::Nothing => &[],
            At::Layer(i) => self.layers[i]
                .current()
                .and_then(|(_, value)| value.as_deref())
                .unwrap_or_default(),
        })
    }

    /// The value as a handle that outlives the position.
    pub fn value_bytes(&self) -> Result<Bytes> {
        Ok(match self.at {
            At::Nothing => Bytes::EMPTY,
            At::Layer(i) => self.layers[i]
                .current()
                .and_then(|(_, value)| value.clone())
                .unwrap_or(Bytes::EMPTY),
        })
    }

    fn step(&mut self, forward: bool) -> Result<bool> {
        if self.at == At::Nothing {
            return Ok(false);
        }
        if self.forward != forward {
            // Sources that lie beyond the current key in the old direction come back to it.
            let key = Bytes::copy_from(self.key());
            if forward {
                self.seek(&key)?;
            } else {
                self.seek_back(&key)?;
            }
        }
        self.pass_current();
        self.settle()
    }

    /// Moves every source that is at the current key past it.
    fn pass_current(&mut self) {
        let At::Layer(winner) = self.at else { return };
        let Some((key, _)) = self.layers[winner].current() else {
            return;
        };
        let key = key.clone();
        for layer in &mut self.layers {
            if layer.current().is_some_and(|(k, _)| *k == key) {
                layer.advance();
            }
        }
    }

    /// Chooses the nearest key among the sources, skipping what is deleted.
    fn settle(&mut self) -> Result<bool> {
        loop {
            let mut best: Option<usize> = None;
            for (i, layer) in self.layers.iter().enumerate() {
                let Some((key, _)) = layer.current() else { continue };
                let nearer = match best.and_then(|b| self.layers[b].current()) {
                    None => true,
                    Some((other, _)) if self.forward => key < other,
                    Some((other, _)) => key > other,
                };
                if nearer {
                    best = Some(i);
                }
            }
            let Some(best) = best else {
                self.at = At::Nothing;
                return Ok(false);
            };
            self.at = At::Layer(best);
            if self.layers[best].current().is_some_and(|(_, value)| value.is_some()) {
                return Ok(true);
            }
            self.pass_current();
        }
    }
}

/// Where an upper layer's entries come from.
pub(crate) enum Source {
    /// A memtable's table, at a sequence number.
    Table(Arc<Table>, u64),
    /// The changes of a write set.
    Overlay(Arc<Overlay>),
}

/// One upper layer and the run of entries it has read ahead.
pub(crate) struct Layer {
    source: Source,
    run: Vec<Entry>,
    at: usize,
    forward: bool,
    /// The run starts with the first entry from here on (in its direction); `None`: nothing was read yet.
    from: Option<Bound<Bytes>>,
    /// The run reaches to the end of the source.
    complete: bool,
    limit: usize,
}

impl Layer {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            run: Vec::new(),
            at: 0,
            forward: true,
            from: None,
            complete: false,
            limit: RUN_MIN,
        }
    }

    fn current(&self) -> Option<&Entry> {
        self.run.get(self.at)
    }

    fn seek(&mut self, key: &[u8]) {
        // The run answers if the target lies between where it starts and where it ends.
        let starts_before = match &self.from {
            Some(Bound::Included(from)) => self.forward && from.as_slice() <= key,
            Some(Bound::Excluded(from)) => self.forward && from.as_slice() < key,
            _ => false,
        };
        if starts_before && (self.complete || self.run.last().is_some_and(|(last, _)| last.as_slice() >= key)) {
            self.at = self.run.partition_point(|(k, _)| k.as_slice() < key);
            return;
        }
        self.forward = true;
        self.limit = RUN_MIN;
        self.read(Bound::Included(Bytes::copy_from(key)));
    }

    fn seek_back(&mut self, from: Bound<&[u8]>) {
        if let Bound::Included(key) = from {
            let starts_after = match &self.from {
                Some(Bound::Included(start)) => !self.forward && start.as_slice() >= key,
                Some(Bound::Excluded(start)) => !self.forward && start.as_slice() > key,
                Some(Bound::Unbounded) => !self.forward,
                None => false,
            };
            if starts_after && (self.complete || self.run.last().is_some_and(|(last, _)| last.as_slice() <= key)) {
                self.at = self.run.partition_point(|(k, _)| k.as_slice() > key);
                return;
            }
        }
        self.forward = false;
        self.limit = RUN_MIN;
        self.read(from.map(Bytes::copy_from));
    }

    fn advance(&mut self) {
        self.at += 1;
        if self.at < self.run.len() || self.complete {
            return;
        }
        if let Some((last, _)) = self.run.last() {
            let from = Bound::Excluded(last.clone());
            self.limit = (self.limit * 2).min(RUN_MAX);
            self.read(from);
        }
    }

    fn read(&mut self, from: Bound<Bytes>) {
        self.run.clear();
        self.at = 0;
        let start = from.as_ref().map(Bytes::as_slice);
        let (limit, run) = (self.limit, &mut self.run);
        self.complete = match (&self.source, self.forward) {
            (Source::Table(table, at), true) => table.ascending(start, *at, limit, run),
            (Source::Table(table, at), false) => table.descending(start, *at, limit, run),
            (Source::Overlay(map), true) => {
                let entries = map.range::<[u8], _>((start, Bound::Unbounded)).take(limit);
                run.extend(entries.map(|(k, v)| (k.clone(), v.clone())));
                run.len() < limit
            }
            (Source::Overlay(map), false) => {
                let entries = map.range::<[u8], _>((Bound::Unbounded, start)).rev().take(limit);
                run.extend(entries.map(|(k, v)| (k.clone(), v.clone())));
                run.len() < limit
            }
        };
        self.from = Some(from);
    }
}
