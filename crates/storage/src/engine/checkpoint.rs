//! Checkpoints: the memtable goes into the base, in the background.
//!
//! ```text
//! freeze    under the sequencer's lock: a new active memtable; counts, ids, optime and the journal's place are noted
//! sync      the journal is made durable up to there, so that the base never knows more than the journal
//! apply     durable transactions of the base, in the order of keys; readers and writers go on meanwhile
//! publish   the base's new state replaces the old one, after the last transaction also the frozen memtable
//! free      journal segments beyond the oplog's size are removed
//! ```
//!
//! A crash between any two of them leaves a state that start-up understands: until the last transaction of `apply` is
//! durable the base's metadata names the old place, and everything since is replayed. Replaying puts and deletions again
//! that the base has already changes nothing; catalog, counts and dropped trees are in that last transaction.
//!
//! A large memtable takes several transactions because each holds old and new leaves in memory at one time: the memory of those
//! that one replaced is that of those that the next one makes.

use super::recovery::Meta;
use super::{Inner, Store};
use crate::base::{Base, BaseError, Change, ChangeSource, KeyRange, Packing};
use crate::catalog::{Catalog, entry};
use crate::journal::{Checkpoint, Position};
use crate::memtable::{Memtable, NewestEntries};
use crate::{Bytes, CollectionId, Result, StorageError, TreeId};
use nestor_model::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long to wait after a checkpoint failed before the next try.
const RETRY: Duration = Duration::from_secs(1);
/// How often to look whether buried memtables can be taken apart.
const SWEEP: Duration = Duration::from_millis(200);
/// Longest delay of a commit while the checkpoint lags behind.
const DELAY_MAX: Duration = Duration::from_millis(40);
/// Delay of a commit when the active memtable is at twice its size: of any, and in addition for each MiB.
const DELAY_EACH: Duration = Duration::from_millis(3);
const DELAY_PER_MIB: Duration = Duration::from_millis(40);
/// Delays too short to be worth a switch of threads.
const DELAY_MIN: Duration = Duration::from_micros(100);
/// Delays that others on the same thread should not have to share.
const DELAY_LONG: Duration = Duration::from_millis(1);
/// How far over its size a memtable may get, as a share of it, before commits wait for the checkpoint's end.
const OVER_MAX: f64 = 1.5;

/// State that commits and the background thread share.
#[derive(Default)]
pub(super) struct Checkpointer {
    /// A memtable frozen by a checkpoint that is under way or failed, and what was noted when it was.
    frozen: Mutex<Option<Frozen>>,
    /// Memtables that are in the base, kept by open snapshots.
    buried: Mutex<Vec<Arc<Memtable>>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: bool,
    /// Set when a memtable was buried since the thread last looked.
    buried: bool,
    stop: bool,
    failed: Option<StorageError>,
    done: u64,
    /// How many callers hold the base as it is.
    holds: u32,
    /// Set when the store closes: from then on no hold on the base counts.
    ended: bool,
    /// See [`Checkpointer::set_needed`].
    needed: Option<Position>,
    /// The journal that a running backup still has to copy begins here.
    backup: Option<Position>,
}

/// The input of a checkpoint.
struct Frozen {
    memtable: Arc<Memtable>,
    meta: Meta,
    /// How far the journal had been appended when the memtable was frozen.
    appended: u64,
    /// The collections and indexes that it has entries of.
    catalog: Arc<Catalog>,
    /// Entries of the catalog's tree that only checkpoints write, ascending.
    numbers: BTreeMap<CollectionId, Option<[u8; 24]>>,
}

impl Checkpointer {
    /// Keeps checkpoints from running until the guard is dropped; waits for one that runs, and for those who hold the base.
    pub(super) fn pause(&self) -> impl Drop + '_ {
        self.begin()
    }

    /// Waits until no caller holds the base, and returns the right to change it.
    fn begin(&self) -> MutexGuard<'_, Option<Frozen>> {
        let held = |s: &mut State| s.holds > 0 && !s.ended;
        loop {
            let state = self.state.lock().expect("no holder of the lock panics");
            let state = self.changed.wait_while(state, held);
            drop(state.expect("no holder of the lock panics"));
            let frozen = self.frozen.lock().expect("no holder of the lock panics");
            if !held(&mut self.state.lock().expect("no holder of the lock panics")) {
                return frozen;
            }
        }
    }

    /// Holds the base as it is until [`Checkpointer::release`]; waits for a change that is under way.
    pub(super) fn hold(&self) {
        self.state.lock().expect("no holder of the lock panics").holds += 1;
        drop(self.frozen.lock().expect("no holder of the lock panics"));
    }

    pub(super) fn release(&self) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        state.holds -= 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Ends all holds on the base, present and future, because the store closes.
    pub(super) fn end_holds(&self) {
        self.state.lock().expect("no holder of the lock panics").ended = true;
        self.changed.notify_all();
    }

    /// Asks for a checkpoint.
    pub(super) fn request(&self) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        if !state.wanted {
            state.wanted = true;
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().expect("no holder of the lock panics").stop = true;
        self.changed.notify_all();
    }

    /// The background thread.
    pub(super) fn run(&self, inner: &Inner) {
        loop {
            let left = self.sweep(inner);
            let state = self.state.lock().expect("no holder of the lock panics");
            let idle = |s: &mut State| !s.wanted && !s.stop && !s.buried;
            let mut state = if left {
                let waited = self.changed.wait_timeout_while(state, SWEEP, idle);
                waited.expect("no holder of the lock panics").0
            } else {
                self.changed
                    .wait_while(state, idle)
                    .expect("no holder of the lock panics")
            };
            if state.stop {
                return;
            }
            state.buried = false;
            if !std::mem::take(&mut state.wanted) {
                continue;
            }
            drop(state);
            let result = inner.checkpoint(Inner::check_open);
            if let Err(StorageError::Closed) = result {
                return;
            }
            if let Err(error) = result {
                tracing::error!(%error, "a checkpoint failed; the journal keeps what it would have written");
                let mut state = self.state.lock().expect("no holder of the lock panics");
                state.wanted = true;
                let stopped = |s: &mut State| !s.stop;
                let waited = self.changed.wait_timeout_while(state, RETRY, stopped);
                drop(waited.expect("no holder of the lock panics"));
            }
        }
    }

    fn finish(&self, result: &Result<()>) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        state.failed = result.as_ref().err().cloned();
        state.done += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Holds a commit of `commit_bytes` back for a moment while the active memtable is over its size, because the one before
    /// it is still being merged or its own turn has not come: the longer the fuller it is, and the longer the more the commit
    /// would add, so that those who load wait for the checkpoint and not those who write a document beside them. Returns
    /// true when it is so full that the caller has to ask again; if the checkpoint failed, that is the answer then. `before`
    /// is called before a long wait.
    pub(super) fn hold_back(
        &self,
        bytes: usize,
        bytes_max: usize,
        commit_bytes: usize,
        before: impl FnOnce(),
    ) -> Result<bool> {
        let over = bytes.saturating_sub(bytes_max) as f64 / bytes_max.max(1) as f64;
        let is_full = over >= OVER_MAX;
        let delay = if is_full { DELAY_MAX } else { delay(over, commit_bytes) };
        if delay < DELAY_MIN {
            return Ok(false);
        }
        if delay >= DELAY_LONG {
            before();
        }
        let state = self.state.lock().expect("no holder of the lock panics");
        if let (true, Some(error)) = (is_full, &state.failed) {
            return Err(error.clone());
        }
        let done = state.done;
        let waited = self.changed.wait_timeout_while(state, delay, |s| s.done == done);
        drop(waited.expect("no holder of the lock panics"));
        Ok(is_full)
    }

    /// Where a start would begin to replay the journal, as of the last checkpoint.
    pub(super) fn set_needed(&self, needed: Position) {
        self.state.lock().expect("no holder of the lock panics").needed = Some(needed);
    }

    /// Keeps the journal from there on, for a backup that is being made.
    pub(super) fn keep_for_backup(&self, from: Option<Position>) {
        self.state.lock().expect("no holder of the lock panics").backup = from;
    }

    /// Removes what the log need not keep any more. Before the first checkpoint nothing is known to be dispensable, and while
    /// somebody holds the base nothing goes.
    pub(super) fn trim_log(&self, inner: &Inner) {
        let state = self.state.lock().expect("no holder of the lock panics");
        if let (Some(store), Some(needed), 0) = (&inner.store, state.needed, state.holds) {
            inner.retain(store, needed, state.backup);
        }
    }

    /// Leaves a memtable that is in the base to the background thread to take apart, once nobody reads it any more: that
    /// takes tens of milliseconds, which would be a pause for whoever happens to hold it last.
    pub(super) fn bury(&self, memtable: Arc<Memtable>) {
        self.buried.lock().expect("no holder of the lock panics").push(memtable);
        self.state.lock().expect("no holder of the lock panics").buried = true;
        self.changed.notify_all();
    }

    /// Bytes of memtables that are in the base and that somebody reads.
    pub(super) fn buried_bytes(&self) -> u64 {
        let buried = self.buried.lock().expect("no holder of the lock panics");
        buried.iter().map(|memtable| memtable.bytes() as u64).sum()
    }

    /// Takes apart what nobody else holds. Returns whether something is left.
    fn sweep(&self, inner: &Inner) -> bool {
        if self.buried.lock().expect("no holder of the lock panics").is_empty() {
            return false;
        }
        inner.lock_sequencer().trim_retained();
        let mut buried = self.buried.lock().expect("no holder of the lock panics");
        let (held, free): (Vec<_>, Vec<_>) = buried.drain(..).partition(|m| Arc::strong_count(m) > 1);
        *buried = held;
        let left = !buried.is_empty();
        drop(buried);
        drop(free);
        left
    }
}

impl Store {
    /// The error for a failed change of the base.
    pub(super) fn base_failed(&self, error: BaseError) -> StorageError {
        match StorageError::from(error) {
            // The contents of the disk after a failed sync are unknown.
            error @ StorageError::ReadOnlyAfterFailure(_) => self.journal.syncer.fail(&error),
            other => other,
        }
    }
}

/// How long a commit of `commit_bytes` waits when the active memtable is over its size by this share of it.
fn delay(over: f64, commit_bytes: usize) -> Duration {
    let mib = commit_bytes as f64 / f64::from(1 << 20);
    (DELAY_EACH + DELAY_PER_MIB.mul_f64(mib))
        .mul_f64(over * over)
        .min(DELAY_MAX)
}

impl Inner {
    /// Merges everything committed so far into the base. Does nothing for a store that lives in memory. One at a time;
    /// a second waits. `may` is asked when its turn has come.
    pub(super) fn checkpoint(&self, may: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut frozen = self.checkpointer.begin();
        may(self)?;
        // A memtable that a failure left over comes first, then newer ones.
        let mut result = self.merge_frozen(store, &mut frozen);
        if result.is_ok() {
            *frozen = self.freeze(store);
            // Who saw the memtable that was frozen before may have asked for the one that is empty now: when that is large in its turn it
            // is asked for again.
            if frozen.is_none() {
                self.large.store(false, Ordering::Release);
            }
            result = self.merge_frozen(store, &mut frozen);
        }
        drop(frozen);
        self.checkpointer.finish(&result);
        result
    }

    /// Freezes the active memtable, unless it is empty.
    fn freeze(&self, store: &Store) -> Option<Frozen> {
        let mut sequencer = self.lock_sequencer();
        let current = sequencer.current().clone();
        let memtable = current.layers.active.clone();
        if memtable.newest() == 0 {
            return None;
        }
        let mut numbers: BTreeMap<CollectionId, Option<[u8; 24]>> = BTreeMap::new();
        for tree in memtable.dropped_trees() {
            numbers.insert(CollectionId(tree.0), None);
        }
        for collection in current.catalog.collections() {
            let state = &collection.state;
            let value = entry::encode_numbers(state.documents(), state.bytes(), state.next_record());
            numbers.insert(collection.id, Some(value));
        }
        let meta = Meta {
            next_id: self.ids.next(),
            checkpoint: Checkpoint {
                seq: current.seq,
                optime: current.optime,
                position: store.journal.position(),
                last: store.journal.last(),
            },
        };
        let now_secs = (self.options.clock)();
        self.history.begin(store.base.snapshot(), current.optime, now_secs);
        sequencer.freeze();
        self.publish(&sequencer);
        Some(Frozen {
            memtable,
            meta,
            appended: store.journal.appended(),
            catalog: current.catalog.clone(),
            numbers,
        })
    }

    fn merge_frozen(&self, store: &Store, slot: &mut Option<Frozen>) -> Result<()> {
        let Some(frozen) = slot else { return Ok(()) };
        self.reached.wait_committed(frozen.meta.checkpoint.seq)?;
        store.journal.syncer.wait(frozen.meta.checkpoint.seq)?;
        store.base.set_packing(self.packing(&frozen.catalog));
        let rebase = || self.change_layers(|sequencer| sequencer.rebased(store.base.snapshot()));
        let freed = |bytes| self.history.freed(bytes);
        let known = self.unneeded_marks(&frozen.catalog);
        self.changed.begin(&frozen.memtable, store.base.snapshot().state());
        if let Err(error) = apply(&*store.base, frozen, &known, self.options.slice_bytes, freed, rebase) {
            return Err(store.base_failed(error));
        }
        self.changed.end(store.base.snapshot().state());
        self.filled().retain(|tree, _| !known.contains(tree));
        self.change_layers(|sequencer| sequencer.merged(store.base.snapshot()));
        let position = frozen.meta.checkpoint.position;
        tracing::debug!(
            seq = frozen.meta.checkpoint.seq,
            bytes = frozen.memtable.bytes(),
            "checkpoint"
        );
        self.checkpointer.bury(frozen.memtable.clone());
        self.replay_from.store(frozen.appended, Ordering::Relaxed);
        *slot = None;
        self.large.store(false, Ordering::Release);
        self.checkpointer.set_needed(position);
        let backup = self
            .checkpointer
            .state
            .lock()
            .expect("no holder of the lock panics")
            .backup;
        self.retain(store, position, backup);
        self.history.end(self);
        Ok(())
    }

    /// Trees whose marks ([`super::fill`]) say nothing any more once `catalog` is that of the base: it has the index as ready, or the index is gone.
    fn unneeded_marks(&self, catalog: &Catalog) -> Vec<TreeId> {
        let filled = self.filled();
        if filled.is_empty() {
            return Vec::new();
        }
        let current = self.current();
        let trees = |catalog: &Catalog, with_building: bool| -> BTreeSet<TreeId> {
            let all = catalog.collections().flat_map(|c| {
                let building = c.building.iter().filter(|_| with_building);
                c.indexes.iter().chain(building).map(|index| index.tree)
            });
            all.collect()
        };
        let (ready, there) = (trees(catalog, false), trees(&current.catalog, true));
        let is_unneeded = |tree: &&TreeId| ready.contains(tree) || !there.contains(tree);
        filled.keys().filter(is_unneeded).copied().collect()
    }

    /// What is packed in the base: what each collection and index says, else what the options of the store say.
    pub(super) fn packing(&self, catalog: &Catalog) -> Packing {
        let usual = self.options.packs;
        let mut except = Vec::new();
        for collection in catalog.collections() {
            let options = &collection.options;
            let mut note = |tree: TreeId, packs: Option<bool>| {
                if packs == Some(!usual) {
                    except.push(tree.0.to_be_bytes());
                }
            };
            note(collection.records, options.packs);
            for index in collection.all_indexes() {
                note(index.tree, index.packs.or(options.packs_indexes).or(options.packs));
            }
        }
        except.sort_unstable();
        Packing { usual, except }
    }

    /// Removes what the log need not keep, as long as it lies before `needed` and before what a backup has to copy.
    fn retain(&self, store: &Store, needed: Position, backup: Option<Position>) {
        let is_older = |backup: &Position| backup.segment < needed.segment;
        let needed = backup.filter(is_older).unwrap_or(needed);
        let retention = self.retention.get();
        let now = (self.options.clock)();
        let age_min = u32::try_from(retention.age_min.as_secs()).unwrap_or(u32::MAX);
        let young = Timestamp {
            secs: now.saturating_sub(age_min),
            inc: 0,
        };
        let young = if age_min == 0 {
            Timestamp::from_u64(u64::MAX)
        } else {
            young
        };
        let started = Instant::now();
        let removed = store.journal.retain(retention.bytes_max, young, needed);
        self.retention.note_removed(removed, started.elapsed());
    }
}

/// Merges a frozen memtable into `base`, and takes marks away. `freed` is told what each transaction freed, in bytes, and `rebase` is called after each but the
/// last.
fn apply(
    base: &dyn Base,
    frozen: &Frozen,
    unneeded_marks: &[TreeId],
    slice_bytes: usize,
    freed: impl Fn(u64),
    rebase: impl Fn(),
) -> Result<(), BaseError> {
    let dropped = frozen.memtable.dropped_trees();
    let bounds: Vec<([u8; 4], Option<[u8; 4]>)> = dropped
        .iter()
        .map(|tree| (tree.0.to_be_bytes(), tree.0.checked_add(1).map(u32::to_be_bytes)))
        .collect();
    let deletions: Vec<KeyRange<'_>> = bounds
        .iter()
        .map(|(start, end)| KeyRange {
            start,
            end: end.as_ref().map(|e| e.as_slice()),
        })
        .collect();
    let tables = frozen.memtable.tables();
    let guards: Vec<_> = tables
        .iter()
        .filter(|(tree, _)| dropped.binary_search(tree).is_err())
        .map(|(tree, table)| (*tree, table.read()))
        .collect();
    let numbers: Vec<(Bytes, Option<Bytes>)> = frozen
        .numbers
        .iter()
        .map(|(id, value)| (entry::numbers_key(*id), value.map(Bytes::from)))
        .collect();
    // The catalog's own entries sort before marks, and these before the numbers.
    let catalog = guards.iter().find(|(tree, _)| *tree == TreeId::CATALOG);
    let marks: Vec<(Bytes, Option<Bytes>)> = unneeded_marks
        .iter()
        .map(|tree| (entry::filled_key(*tree), None))
        .collect();
    let numbers: NewestEntries<'_> = Box::new(marks.iter().chain(&numbers).map(|(key, value)| (key, value)));
    let first: NewestEntries<'_> = match catalog {
        Some((_, table)) => Box::new(table.newest().chain(numbers)),
        None => numbers,
    };
    let rest = guards.iter().filter(|(tree, _)| *tree != TreeId::CATALOG);
    let mut rest = Merged::new(rest.map(|(tree, table)| (*tree, table.newest())));
    if frozen.memtable.bytes() > slice_bytes {
        let meta = base.snapshot().meta().to_vec();
        while rest.current().is_some() {
            freed(
                base.apply(&[], &mut Slice::new(&mut rest, slice_bytes), &meta)?
                    .bytes_freed,
            );
            rebase();
        }
    }
    let mut first = Merged::new(std::iter::once((TreeId::CATALOG, first)));
    let stats = base.apply(&deletions, &mut Chain(&mut first, &mut rest), &frozen.meta.encode())?;
    freed(stats.bytes_freed);
    Ok(())
}

/// The next changes of a source, of about as many bytes as it may be.
pub(super) struct Slice<'a> {
    source: &'a mut dyn ChangeSource,
    left: usize,
}

impl<'a> Slice<'a> {
    pub(super) fn new(source: &'a mut dyn ChangeSource, bytes: usize) -> Self {
        Self { source, left: bytes }
    }
}

impl ChangeSource for Slice<'_> {
    fn current(&self) -> Option<Change<'_>> {
        self.source.current().filter(|_| self.left > 0)
    }

    fn advance(&mut self) {
        if let Some(change) = self.source.current() {
            let bytes = change.key.len() + change.value.map_or(0, <[u8]>::len) + 1;
            self.left = self.left.saturating_sub(bytes);
        }
        self.source.advance();
    }
}

/// All changes of one source, then those of another, whose keys are greater.
struct Chain<'a>(&'a mut dyn ChangeSource, &'a mut dyn ChangeSource);

impl ChangeSource for Chain<'_> {
    fn current(&self) -> Option<Change<'_>> {
        self.0.current().or_else(|| self.1.current())
    }

    fn advance(&mut self) {
        match self.0.current() {
            Some(_) => self.0.advance(),
            None => self.1.advance(),
        }
    }
}

/// The entries of several tables as changes of the base.
struct Merged<'a, I> {
    tables: I,
    tree: TreeId,
    entries: Option<NewestEntries<'a>>,
    key: Vec<u8>,
    value: Option<&'a [u8]>,
    done: bool,
}

impl<'a, I: Iterator<Item = (TreeId, NewestEntries<'a>)>> Merged<'a, I> {
    fn new(tables: I) -> Self {
        let mut merged = Self {
            tables,
            tree: TreeId::CATALOG,
            entries: None,
            key: Vec::new(),
            value: None,
            done: false,
        };
        merged.advance();
        merged
    }
}

impl<'a, I: Iterator<Item = (TreeId, NewestEntries<'a>)>> ChangeSource for Merged<'a, I> {
    fn current(&self) -> Option<Change<'_>> {
        (!self.done).then_some(Change {
            key: &self.key,
            value: self.value,
        })
    }

    fn advance(&mut self) {
        while !self.done {
            if let Some((key, value)) = self.entries.as_mut().and_then(|entries| entries.next()) {
                self.key.clear();
                self.key.extend_from_slice(&self.tree.0.to_be_bytes());
                self.key.extend_from_slice(key);
                self.value = value.as_deref();
                return;
            }
            match self.tables.next() {
                Some((tree, entries)) => (self.tree, self.entries) = (tree, Some(entries)),
                None => self.done = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_waits_are_announced() {
        let (checkpointer, mib) = (Checkpointer::default(), 1 << 20);
        let hold = |bytes, commit_bytes| {
            let mut announced = false;
            let is_full = checkpointer.hold_back(bytes, mib, commit_bytes, || announced = true);
            (is_full.unwrap(), announced)
        };
        assert_eq!(hold(mib + mib / 8, 400), (false, false));
        assert_eq!(hold(mib + mib / 2, mib), (false, true));
        assert_eq!(hold(3 * mib, 400), (true, true));
        checkpointer.state.lock().unwrap().failed = Some(StorageError::Closed);
        let failed = checkpointer.hold_back(3 * mib, mib, 400, || ());
        assert!(matches!(failed, Err(StorageError::Closed)));
    }

    #[test]
    fn delays_grow_with_fill_and_size() {
        let load = 600 << 10;
        let short = |over| delay(over, 400);
        assert_eq!(delay(0.0, load), Duration::ZERO);
        assert!(short(0.3) < Duration::from_micros(300));
        assert!(short(1.0) < Duration::from_millis(4));
        assert!(delay(1.0, load) > 6 * short(1.0));
        assert_eq!(delay(1.4, 16 << 20), DELAY_MAX);
        for over in [0.1, 0.5, 1.0] {
            assert!(delay(over, load) < delay(over + 0.1, load));
        }
    }
}
