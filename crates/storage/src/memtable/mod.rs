//! The memtable: what was committed since the last checkpoint, in memory, ordered, in versions.
//!
//! ```text
//! Memtable            one is active; at most one more is frozen and being merged into the base
//!   Filter            which (tree, key) may be here at all: point reads mostly stop at it
//!   TreeId -> Table   few are not empty
//!     key -> versions, newest first: (commit sequence, value or tombstone)
//! ```
//!
//! One writer (the sequencer) inserts; any number of readers look from the height of their snapshot's sequence number
//! and ignore newer versions. What nobody published yet is invisible because no snapshot reaches its number, so the
//! writer may let go of a table's lock in the middle of a batch.
//!
//! Why a `BTreeMap` behind a lock for each table and not a skip list: measured at 200,000 entries, a lookup costs half of
//! a lock-free skip list's (keys of up to 30 bytes lie inside the nodes), and readers take the lock for one lookup or
//! one run of entries, never across calls.

mod filter;
mod table;

pub(crate) use table::{Entry, NewestEntries, Table};

use crate::{Bytes, TreeId};
use filter::{Filter, RenewedFilter};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// Which snapshots are open, as far as dropping old versions needs it.
pub(crate) struct Live<'a> {
    /// The oldest sequence number any open snapshot reads at.
    pub(crate) oldest: u64,
    /// All of them, ascending; asked only for keys with many versions.
    pub(crate) all: &'a dyn Fn() -> Vec<u64>,
}

/// One memtable. See the module's description.
pub(crate) struct Memtable {
    tables: RwLock<HashMap<TreeId, Arc<Table>, BuildHasherDefault<TreeHasher>>>,
    filter: Front,
    bytes_max: usize,
    bytes: AtomicUsize,
    newest: AtomicU64,
    dropped: Mutex<Vec<TreeId>>,
}

/// Which filter a memtable has.
enum Front {
    /// As large as it will have to be.
    Once(Filter),
    Renewed(RenewedFilter),
}

impl Front {
    fn insert(&self, tree: TreeId, key: &[u8]) {
        match self {
            Front::Once(filter) => drop(filter.insert(tree, key)),
            Front::Renewed(filter) => filter.insert(tree, key),
        }
    }

    fn may_hold(&self, tree: TreeId, key: &[u8]) -> bool {
        match self {
            Front::Once(filter) => filter.may_hold(tree, key),
            Front::Renewed(filter) => filter.may_hold(tree, key),
        }
    }
}

/// Tree ids are numbers given one after the other: a multiplication spreads them well enough.
#[derive(Default)]
struct TreeHasher(u64);

impl Hasher for TreeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
}

impl Memtable {
    /// An empty one, to be merged into the base when it has about `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self::with_filter(bytes_max, Front::Once(Filter::new(bytes_max)))
    }

    /// An empty one that is never merged into a base.
    pub(crate) fn lasting() -> Self {
        Self::with_filter(usize::MAX, Front::Renewed(RenewedFilter::new()))
    }

    fn with_filter(bytes_max: usize, filter: Front) -> Self {
        Self {
            tables: RwLock::default(),
            filter,
            bytes_max,
            bytes: AtomicUsize::new(0),
            newest: AtomicU64::new(0),
            dropped: Mutex::default(),
        }
    }

    /// The size it was made for, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Memory taken by entries, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sequence number of the newest commit in here; 0 when there is none.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Notes that commit `seq` is in here, even if it changed no key.
    pub(crate) fn note_commit(&self, seq: u64) {
        self.newest.store(seq, Ordering::Release);
    }

    /// The table of `tree`, if anything was written to it.
    pub(crate) fn table(&self, tree: TreeId) -> Option<Arc<Table>> {
        let tables = self.tables.read().expect("no holder of the lock panics");
        tables.get(&tree).cloned()
    }

    /// All tables, by ascending tree.
    pub(crate) fn tables(&self) -> Vec<(TreeId, Arc<Table>)> {
        let tables = self.tables.read().expect("no holder of the lock panics");
        let mut all: Vec<_> = tables.iter().map(|(id, table)| (*id, table.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// The value of `key` at sequence number `at`: `None` if this table does not know, `Some(None)` if it was deleted.
    pub(crate) fn get(&self, tree: TreeId, key: &[u8], at: u64) -> Option<Option<Bytes>> {
        if !self.filter.may_hold(tree, key) {
            return None;
        }
        let tables = self.tables.read().expect("no holder of the lock panics");
        tables.get(&tree)?.get(key, at)
    }

    /// As [`Memtable::get`] for each of some keys that `found` knows nothing of yet.
    pub(crate) fn get_many(&self, tree: TreeId, keys: &[&[u8]], at: u64, found: &mut [Option<Option<Bytes>>]) {
        let Some(table) = self.table(tree) else { return };
        table.get_many(keys, |i| self.filter.may_hold(tree, keys[i]), at, found);
    }

    /// False only if `key` is not here.
    #[cfg(test)]
    pub(crate) fn may_hold(&self, tree: TreeId, key: &[u8]) -> bool {
        self.filter.may_hold(tree, key)
    }

    /// Sequence number of the newest version of `key`; 0 if there is none here.
    pub(crate) fn newest_of(&self, tree: TreeId, key: &[u8]) -> u64 {
        if !self.filter.may_hold(tree, key) {
            return 0;
        }
        let tables = self.tables.read().expect("no holder of the lock panics");
        tables.get(&tree).map_or(0, |table| table.newest_of(key))
    }

    /// Adds a commit's changes to one tree. Called by the sequencer only, with ascending `seq`.
    pub(crate) fn insert<'a>(
        &self,
        tree: TreeId,
        seq: u64,
        changes: impl ExactSizeIterator<Item = (&'a Bytes, &'a Option<Bytes>)>,
        live: &Live<'_>,
        waste: impl FnMut(&Bytes, usize),
    ) {
        let table = self.table(tree).unwrap_or_else(|| {
            let mut tables = self.tables.write().expect("no holder of the lock panics");
            tables.entry(tree).or_insert_with(|| Arc::new(Table::new(seq))).clone()
        });
        let added = table.insert(seq, changes, live, |key| self.filter.insert(tree, key), waste);
        self.count(added);
    }

    /// Whether its filter passes too much because there are more keys than it was made for.
    pub(crate) fn is_filter_full(&self) -> bool {
        match &self.filter {
            Front::Once(_) => false,
            Front::Renewed(filter) => filter.is_full(),
        }
    }

    /// Makes the filter anew if it passes too much, be it for keys that are there or for those that were.
    pub(crate) fn renew_filter(&self) {
        let Front::Renewed(filter) = &self.filter else { return };
        let live = self.tables().iter().map(|(_, table)| table.len()).sum();
        if !filter.is_full() && !filter.is_stale(live) {
            return;
        }
        // The tables are asked for only when others note keys in the new filter: who made one before has noted its keys
        // before, or holds its lock until they are there.
        filter.renew(live, |note| {
            for (tree, table) in self.tables() {
                table.for_each_key(|key| note(tree, key));
            }
        });
    }

    fn count(&self, change: isize) {
        // Pruning may free more than was added.
        if change >= 0 {
            self.bytes.fetch_add(change as usize, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(change.unsigned_abs(), Ordering::Relaxed);
        }
    }

    /// Drops what no snapshot at `oldest` or later reads of these keys. There must be no base below.
    pub(crate) fn prune(&self, tree: TreeId, keys: &[Bytes], oldest: u64) {
        if let Some(table) = self.table(tree) {
            self.count(table.prune(keys, oldest));
        }
    }

    /// Takes a tree out that was dropped before any snapshot that is open. There must be no base below.
    pub(crate) fn take_tree(&self, tree: TreeId) -> Option<Arc<Table>> {
        let taken = self
            .tables
            .write()
            .expect("no holder of the lock panics")
            .remove(&tree)?;
        self.count(-taken.bytes());
        Some(taken)
    }

    /// Notes that everything in `tree` is gone for good.
    pub(crate) fn drop_tree(&self, tree: TreeId) {
        self.dropped.lock().expect("no holder of the lock panics").push(tree);
    }

    /// The trees dropped by commits in here, ascending.
    pub(crate) fn dropped_trees(&self) -> Vec<TreeId> {
        let mut dropped = self.dropped.lock().expect("no holder of the lock panics").clone();
        dropped.sort();
        dropped.dedup();
        dropped
    }
}
