//! The sequencer: one commit after the other.
//!
//! For each commit of a group, in order: first-writer-wins check, sequence number, optime. Then the whole group goes to
//! the journal with one write, into the memtable, and is published at once. There are no holes: a number is used only
//! when the journal took the group, and a snapshot shows all commits up to its number.

use crate::base::BaseSnapshot;
use crate::catalog::{Catalog, Collection, ddl};
use crate::claims::{Claim, Claims, Wanted};
use crate::clock::{self, Clock};
use crate::engine::Prepared;
use crate::engine::recovery::Replayed;
use crate::faults::{Fault, strikes};
use crate::holds::{HeldNames, Hold};
use crate::memtable::{Live, Memtable};
use crate::recent::{Reads, RecentWrites};
use crate::snapshot::{Layers, Published};
use crate::watch::WatchState;
use crate::{Bytes, Commit, Lsn, Result, StorageError, TreeId, WriteSet};
use nestor_model::Timestamp;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};

/// Merged memtables kept so that write sets with older snapshots can be checked against them. A writer that is older
/// than all of them gets a write conflict.
const RETAINED_MAX: usize = 4;

/// State that only the holder of the sequencer's lock touches.
pub(crate) struct Sequencer {
    clock: Clock,
    /// Optimes are given from here on: at least the last one given, and any cluster time heard of.
    last_time: Timestamp,
    current: Arc<Published>,
    /// Published states that may still be held, oldest first.
    live: VecDeque<(u64, Weak<Published>)>,
    /// Length of `live` at which it is worth looking for dead entries in its middle.
    live_sweep: usize,
    /// Memtables merged into the base already, oldest first.
    retained: VecDeque<Arc<Memtable>>,
    /// Snapshots older than this cannot be checked any more.
    checkable_from: u64,
    /// Keys written by open transactions.
    claims: Arc<Claims>,
    /// The names that commits held.
    held: HeldNames,
    /// The keys that commits write while serializable transactions are open.
    recent: Arc<RecentWrites>,
    /// The watches that are told of records written.
    watches: Vec<Weak<WatchState>>,
    /// Whether what commits leave behind is noted, because no merge into a base takes it away.
    notes_waste: bool,
}

/// Versions in the memtable that only snapshots older than `seq` read.
#[derive(Default)]
pub(crate) struct Waste {
    pub(crate) seq: u64,
    /// Keys that were replaced or deleted, by tree.
    pub(crate) keys: Vec<(TreeId, Vec<Bytes>)>,
    /// Bytes of what they had before.
    pub(crate) bytes: usize,
    /// Trees that were dropped.
    pub(crate) trees: Vec<TreeId>,
}

impl Waste {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.trees.is_empty()
    }
}

/// A commit that passed its checks.
pub(crate) struct Accepted {
    pub(crate) prepared: Prepared,
    pub(crate) seq: u64,
    /// Optime of the first oplog entry.
    pub(crate) first: Timestamp,
    pub(crate) commit: Commit,
}

/// The state after the commits accepted so far, before it is published.
pub(crate) struct Group {
    pub(crate) accepted: Vec<Accepted>,
    seq: u64,
    time: Timestamp,
    catalog: Arc<Catalog>,
    written: HashSet<(TreeId, Bytes)>,
    held: HeldNames,
}

/// Keys that are written, which is as if they were held alone.
fn alone<'a>(keys: impl Iterator<Item = (TreeId, &'a Bytes)>) -> impl Iterator<Item = Wanted<'a>> {
    keys.map(|(tree, key)| (tree, key, true))
}

fn wanted(holds: &[Hold]) -> impl Iterator<Item = Wanted<'_>> {
    holds.iter().map(|hold| (hold.tree, &hold.key, hold.alone))
}

/// The keys of trees that are held.
fn held_keys(holds: &[Hold]) -> impl Iterator<Item = (TreeId, &Bytes)> {
    let keys = holds.iter().filter(|hold| !hold.is_name());
    keys.map(|hold| (hold.tree, &hold.key))
}

impl Sequencer {
    /// With `notes_waste`, [`Sequencer::apply`] tells what commits leave behind.
    pub(crate) fn new(clock: Clock, current: Arc<Published>, notes_waste: bool) -> Self {
        Self {
            clock,
            notes_waste,
            last_time: current.optime,
            checkable_from: current.seq,
            claims: Arc::default(),
            held: HeldNames::default(),
            recent: Arc::default(),
            current,
            live: VecDeque::new(),
            live_sweep: 64,
            retained: VecDeque::new(),
            watches: Vec::new(),
        }
    }

    /// Tells `watch` of the records that commits from now on write.
    pub(crate) fn watch(&mut self, watch: &Arc<WatchState>) {
        self.watches.retain(|watch| watch.strong_count() > 0);
        self.watches.push(Arc::downgrade(watch));
    }

    /// Makes a write set one that claims its keys.
    pub(crate) fn open_claim(&self) -> Claim {
        self.claims.open()
    }

    /// All claims.
    pub(crate) fn claims(&self) -> &Arc<Claims> {
        &self.claims
    }

    /// Makes a write set on the newest state one that notes what it reads.
    pub(crate) fn open_reads(&self, seq: u64) -> Reads {
        debug_assert_eq!(seq, self.current.seq, "what was written before is not known");
        self.recent.open(seq)
    }

    /// The same of one that may stand on an older state, of which it then conflicts.
    pub(crate) fn open_reads_of(&self, seq: u64) -> Reads {
        self.recent.open(seq)
    }

    /// Claims what a transaction wrote since the last time, unless another transaction has or someone committed it
    /// after the transaction's snapshot.
    pub(crate) fn claim(&self, ws: &mut WriteSet) -> Result<()> {
        let seen = ws.snapshot.state.seq;
        let is_outdated = self.is_outdated(ws, &self.current.catalog);
        let Some(claim) = &mut ws.claim else { return Ok(()) };
        let written = || claim.fresh.iter().map(|(tree, key)| (*tree, key));
        let keys = || written().chain(held_keys(&claim.held));
        if is_outdated || self.written_after(seen, keys) || self.held_after(&self.held, seen, &claim.held) {
            return Err(StorageError::WriteConflict);
        }
        let wanted = alone(written()).chain(wanted(&claim.held));
        if let Some(reservation) = self.claims.conflict(Some(claim), wanted) {
            return Err(StorageError::Reserved(Box::new(reservation)));
        }
        claim.take();
        Ok(())
    }

    /// Whether a collection that a write set requires is another one in `catalog`.
    fn is_outdated(&self, ws: &WriteSet, catalog: &Arc<Catalog>) -> bool {
        let fits = |collection: &Arc<Collection>| {
            let now = catalog.by_id(collection.id);
            now.is_some_and(|now| Arc::ptr_eq(now, collection) || now.fits_writers_of(collection))
        };
        let is_unchanged = !ws.is_refreshed && Arc::ptr_eq(&ws.snapshot.state.catalog, catalog);
        !is_unchanged && !ws.required.iter().all(fits)
    }

    /// Whether any of `keys` was committed after `seen`.
    fn written_after<'a, I>(&self, seen: u64, keys: impl Fn() -> I) -> bool
    where
        I: Iterator<Item = (TreeId, &'a Bytes)>,
    {
        if seen < self.checkable_from {
            return !strikes(Fault::MissedConflict);
        }
        let memtables = self.current.layers.memtables().chain(&self.retained);
        memtables
            .filter(|memtable| memtable.newest() > seen)
            .any(|memtable| keys().any(|(tree, key)| memtable.newest_of(tree, key) > seen))
            && !strikes(Fault::MissedConflict)
    }

    /// Whether commits after `seen` held names of `holds` in a way that does not go together with these.
    fn held_after(&self, names: &HeldNames, seen: u64, holds: &[Hold]) -> bool {
        let mut own = holds.iter().filter(|hold| hold.is_name());
        own.any(|hold| names.is_in_the_way(seen, self.claims.hash(hold.tree, &hold.key), hold.alone))
    }

    /// Notes the names that a commit held.
    fn note_held(claims: &Claims, names: &mut HeldNames, seq: u64, holds: &[Hold]) {
        for hold in holds.iter().filter(|hold| hold.is_name()) {
            names.note(seq, claims.hash(hold.tree, &hold.key), hold.alone);
        }
    }

    /// The published state, or, until [`crate::engine`] shows it under the same lock, the one to publish.
    pub(crate) fn current(&self) -> &Arc<Published> {
        &self.current
    }

    /// Optimes given from now on are after `heard`.
    pub(crate) fn advance_clock(&mut self, heard: Timestamp) {
        self.last_time = self.last_time.max(heard);
    }

    pub(crate) fn begin_group(&self) -> Group {
        Group {
            accepted: Vec::new(),
            seq: self.current.seq,
            time: self.last_time,
            catalog: self.current.catalog.clone(),
            written: HashSet::new(),
            held: HeldNames::default(),
        }
    }

    /// Checks a write set against everything committed after its snapshot and the group so far, and gives it its number
    /// and optime. `more` says that others of the group follow.
    pub(crate) fn accept(&self, group: &mut Group, prepared: Prepared, more: bool) -> Result<()> {
        let ws = &prepared.ws;
        self.check(group, ws)?;
        let seq = group.seq + 1;
        let count = u32::try_from(ws.oplog.len().max(1)).unwrap_or(u32::MAX);
        let first = clock::next_optime(group.time, (self.clock)(), count);
        let last = Timestamp {
            secs: first.secs,
            inc: first.inc.saturating_add(count - 1),
        };
        let changes = ws.catalog_changes();
        if !changes.is_empty() {
            ddl::apply_changes(Arc::make_mut(&mut group.catalog), changes);
        }
        for collection in &ws.required {
            collection.state.note_write(seq);
        }
        if more {
            for (tree, overlay) in ws.kept_trees() {
                group.written.extend(overlay.keys().map(|key| (tree, key.clone())));
            }
            Self::note_held(&self.claims, &mut group.held, seq, &ws.held);
        }
        (group.seq, group.time) = (seq, last);
        group.accepted.push(Accepted {
            prepared,
            seq,
            first,
            commit: Commit {
                optime: last,
                lsn: Lsn(seq),
            },
        });
        Ok(())
    }

    fn check(&self, group: &Group, ws: &WriteSet) -> Result<()> {
        let conflict = Err(StorageError::WriteConflict);
        let written = || {
            ws.kept_trees()
                .flat_map(|(tree, map)| map.keys().map(move |key| (tree, key)))
        };
        let wanted = alone(written()).chain(wanted(&ws.held));
        if let Some(reservation) = self.claims.conflict(ws.claim.as_ref(), wanted) {
            return Err(StorageError::Reserved(Box::new(reservation)));
        }
        // Of an older state than the snapshot, if that is a newer one by now.
        if ws.unwritten.iter().any(|(state, seen)| state.last_write() > *seen) {
            return conflict;
        }
        let seen = ws.snapshot.state.seq;
        if seen == group.seq && !ws.is_refreshed {
            return Ok(());
        }
        if self.is_outdated(ws, &group.catalog) {
            return conflict;
        }
        if seen == group.seq {
            return Ok(());
        }
        let keys = || {
            let unchanged = ws.unchanged.iter().map(|(tree, key)| (*tree, key));
            unchanged.chain(written()).chain(held_keys(&ws.held))
        };
        let is_held = |names: &HeldNames| self.held_after(names, seen, &ws.held);
        if self.written_after(seen, keys) || is_held(&self.held) || is_held(&group.held) {
            return conflict;
        }
        if !group.written.is_empty() && keys().any(|(tree, key)| group.written.contains(&(tree, key.clone()))) {
            return conflict;
        }
        match &ws.reads {
            Some(reads) => reads.check_last(&group.accepted),
            None => Ok(()),
        }
    }

    /// Puts a group that the journal took into the memtable. Returns the commits, for the caller to drop when nobody
    /// waits, and what they left behind.
    pub(crate) fn apply(&mut self, group: Group) -> (Vec<Accepted>, Waste) {
        let mut waste = Waste {
            seq: group.seq,
            ..Waste::default()
        };
        self.recent.note(&group.accepted);
        let oldest = self.oldest_live();
        let all = || self.live_seqs();
        let live = Live { oldest, all: &all };
        let active = &self.current.layers.active;
        for accepted in &group.accepted {
            for (tree, overlay) in accepted.prepared.ws.kept_trees() {
                if !self.notes_waste {
                    active.insert(tree, accepted.seq, overlay.iter(), &live, |_, _| {});
                    continue;
                }
                let mut keys = Vec::new();
                active.insert(tree, accepted.seq, overlay.iter(), &live, |key, bytes| {
                    keys.push(key.clone());
                    waste.bytes += bytes;
                });
                if !keys.is_empty() {
                    waste.keys.push((tree, keys));
                }
            }
            for tree in &accepted.prepared.ws.dropped {
                match self.notes_waste {
                    true => waste.trees.push(*tree),
                    false => active.drop_tree(*tree),
                }
            }
            for watch in self.watches.iter().filter_map(Weak::upgrade) {
                if let Some(overlay) = accepted.prepared.ws.trees.get(&watch.tree) {
                    watch.note(overlay);
                }
            }
            active.note_commit(accepted.seq);
            for change in &accepted.prepared.ws.counts {
                change.state.add(change.documents, change.bytes);
            }
        }
        for accepted in &group.accepted {
            Self::note_held(&self.claims, &mut self.held, accepted.seq, &accepted.prepared.ws.held);
        }
        self.held.sweep(oldest, group.seq);
        self.last_time = self.last_time.max(group.time);
        if !self.retained.is_empty() {
            self.trim_retained();
        }
        self.replace(Published {
            seq: group.seq,
            optime: group.time,
            layers: self.current.layers.clone(),
            catalog: group.catalog,
        });
        (group.accepted, waste)
    }

    /// Puts commits that another member made into the memtable, as `apply` does with those of this one, with their numbers. They are shown
    /// together.
    pub(crate) fn repeat(&mut self, commits: &[(u64, Replayed)], optime: Timestamp, catalog: Arc<Catalog>) {
        let oldest = self.oldest_live();
        let all = || self.live_seqs();
        let live = Live { oldest, all: &all };
        let active = &self.current.layers.active;
        let mut last = self.current.seq;
        for (seq, replayed) in commits {
            for (tree, changes) in &replayed.trees {
                let changes = changes.iter().map(|(key, value)| (key, value));
                active.insert(*tree, *seq, changes, &live, |_, _| {});
            }
            replayed.dropped.iter().for_each(|tree| active.drop_tree(*tree));
            for watch in self.watches.iter().filter_map(Weak::upgrade) {
                if let Some(changes) = replayed.trees.get(&watch.tree) {
                    watch.note_keys(changes.iter().map(|(key, _)| key.as_slice()));
                }
            }
            active.note_commit(*seq);
            last = *seq;
        }
        self.last_time = self.last_time.max(optime);
        if !self.retained.is_empty() {
            self.trim_retained();
        }
        self.replace(Published {
            seq: last,
            optime,
            layers: self.current.layers.clone(),
            catalog,
        });
    }

    /// The numbers of all states that somebody holds, and of the present one.
    fn live_seqs(&self) -> Vec<u64> {
        let held = self.live.iter().filter(|(_, state)| state.strong_count() > 0);
        held.map(|(seq, _)| *seq).chain([self.current.seq]).collect()
    }

    /// Puts a new memtable on top; the one before is merged into the base by the caller.
    pub(crate) fn freeze(&mut self) {
        let layers = &self.current.layers;
        debug_assert!(layers.frozen.is_none(), "one memtable is merged at a time");
        let next = Layers {
            active: Arc::new(Memtable::new(layers.active.bytes_max())),
            frozen: Some(layers.active.clone()),
            base: layers.base.clone(),
        };
        self.replace_layers(next);
    }

    /// The frozen memtable is in `base`.
    pub(crate) fn merged(&mut self, base: Arc<dyn BaseSnapshot>) {
        let layers = &self.current.layers;
        self.retained.extend(layers.frozen.clone());
        let next = Layers {
            active: layers.active.clone(),
            frozen: None,
            base: Some(base),
        };
        self.replace_layers(next);
        self.trim_retained();
    }

    /// The base changed below the memtables.
    pub(crate) fn rebased(&mut self, base: Arc<dyn BaseSnapshot>) {
        let layers = &self.current.layers;
        let next = Layers {
            active: layers.active.clone(),
            frozen: layers.frozen.clone(),
            base: Some(base),
        };
        self.replace_layers(next);
    }

    fn replace_layers(&mut self, layers: Layers) {
        self.replace(Published {
            seq: self.current.seq,
            optime: self.current.optime,
            layers: Arc::new(layers),
            catalog: self.current.catalog.clone(),
        });
    }

    /// Forgets merged memtables that no open snapshot is older than, and those too many.
    pub(crate) fn trim_retained(&mut self) {
        let oldest = self.oldest_live();
        while let Some(front) = self.retained.front() {
            if front.newest() > oldest && self.retained.len() <= RETAINED_MAX {
                break;
            }
            self.checkable_from = self.checkable_from.max(front.newest());
            self.retained.pop_front();
        }
    }

    /// Makes `next` the current state.
    fn replace(&mut self, next: Published) {
        let old = std::mem::replace(&mut self.current, Arc::new(next));
        self.live.push_back((old.seq, Arc::downgrade(&old)));
    }

    /// How many states are held that are older than the present one, and the oldest of them.
    pub(crate) fn held(&mut self) -> (u64, Option<Arc<Published>>) {
        let present = self.current.seq;
        let held: Vec<_> = self.live.iter().filter_map(|(_, state)| state.upgrade()).collect();
        let mut held = held.into_iter().filter(|state| state.seq < present).peekable();
        let oldest = held.peek().cloned();
        (held.count() as u64, oldest)
    }

    /// Sequence number of the oldest state anybody holds.
    pub(crate) fn oldest_live(&mut self) -> u64 {
        while self.live.front().is_some_and(|(_, state)| state.strong_count() == 0) {
            self.live.pop_front();
        }
        if self.live.len() > self.live_sweep {
            self.live.retain(|(_, state)| state.strong_count() > 0);
            self.live_sweep = self.live.len() * 2 + 64;
        }
        self.live.front().map_or(self.current.seq, |(seq, _)| *seq)
    }
}
