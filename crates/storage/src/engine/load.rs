//! Filling a tree that is not in use yet, without commits: what an index build needs of the engine.
//!
//! ```text
//! watch        a snapshot, and from it on the keys of records that commits write
//! load         sorted entries go into the base as they are: no journal frame, no memtable, full pages
//! commit_alone the last commit, which catches up with all writes so far while no other commit runs
//! ```
//!
//! `load` is right because of three things. The tree belongs to an index that is being built: it is in the catalog, and durably so
//! before its first entry is, so that a crash leaves nothing that start-up would not drop. Nobody else writes the tree, so
//! nothing newer of it is in a memtable when the base gets older entries. And it runs while no checkpoint does and looks whether
//! the index is still there, so that a checkpoint that deletes the dropped tree comes after it.

use super::checkpoint::Slice;
use super::{Inner, Store};
use crate::base::{Change, ChangeSource};
use crate::snapshot::View;
use crate::watch::{Touched, Watch, WatchState};
use crate::{CollectionId, Commit, Engine, IndexId, Result, Snapshot, StorageError, TreeId, WriteSet};
use nestor_model::ErrorCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of keys and values that go into the base at a time: checkpoints wait for as long as that takes.
const LOAD_BYTES: usize = 32 << 20;
/// Entries of one commit, for a store that lives in memory or is a member of a replica set.
const COMMIT_ENTRIES: usize = 4096;

/// The index whose tree entries go to.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) collection: CollectionId,
    pub(super) index: IndexId,
    pub(super) tree: TreeId,
}

impl Place {
    /// The tree of an index that is being built.
    pub(super) fn building(view: &dyn View, collection: CollectionId, index: IndexId) -> Result<Self> {
        let tree = building(view, (collection, index))?;
        Ok(Self {
            collection,
            index,
            tree,
        })
    }

    /// Whether the index is still there.
    fn is_there(&self, view: &dyn View) -> bool {
        let collection = view.catalog().by_id(self.collection);
        collection.is_some_and(|c| c.all_indexes().any(|index| index.id == self.index))
    }
}

/// A position in sorted entries that [`Engine::load`] writes to the tree of an index.
struct Part<'e> {
    entries: &'e mut dyn ChangeSource,
    tree: [u8; 4],
    /// Tree and key of the current entry.
    key: Vec<u8>,
}

impl<'e> Part<'e> {
    fn new(tree: TreeId, entries: &'e mut dyn ChangeSource) -> Self {
        let mut part = Self {
            entries,
            tree: tree.0.to_be_bytes(),
            key: Vec::new(),
        };
        part.fill();
        part
    }

    fn fill(&mut self) {
        if let Some(change) = self.entries.current() {
            self.key.clear();
            self.key.extend_from_slice(&self.tree);
            self.key.extend_from_slice(change.key);
        }
    }
}

impl ChangeSource for Part<'_> {
    fn current(&self) -> Option<Change<'_>> {
        let change = self.entries.current()?;
        Some(Change {
            key: &self.key,
            value: change.value,
        })
    }

    fn advance(&mut self) {
        self.entries.advance();
        self.fill();
    }
}

impl Engine {
    /// Begins to watch the records in `tree`. The snapshot is the moment from which on commits are noted.
    pub fn watch(&self, tree: TreeId) -> (Watch, Snapshot) {
        let state = Arc::new(WatchState::new(tree));
        let mut sequencer = self.inner.lock_sequencer();
        sequencer.watch(&state);
        let snapshot = self.snapshot();
        drop(sequencer);
        let brakes = self.inner.brakes.clone();
        (Watch { state, brakes }, snapshot)
    }

    /// Adds what was written since the watch began, or was last read, to `touched`. The snapshot is the moment up to
    /// which that is all.
    pub fn read_watch(&self, watch: &Watch, touched: &mut Touched) -> Snapshot {
        let sequencer = self.inner.lock_sequencer();
        let (new, now) = (watch.state.take(), self.snapshot());
        drop(sequencer);
        touched.merge(new);
        now
    }

    /// Writes some of `entries`, which ascend strictly, to the tree of an index that is being built, and returns whether
    /// there are more. Everything in `entries` has to go behind what was loaded before, and all loading comes before the
    /// first commit that writes the tree. What was loaded is durable; it may be called again at any time, or never.
    ///
    /// Errors: `IndexNotFound` if the index was dropped meanwhile; those of a commit.
    pub fn load(&self, collection: CollectionId, index: IndexId, entries: &mut dyn ChangeSource) -> Result<bool> {
        match &self.inner.store {
            Some(store) if self.loads_beside() => {
                let snapshot = self.snapshot();
                let place = Place::building(&snapshot, collection, index)?;
                // A number that the set does not know may be that of another tree one day.
                self.inner.reached.wait_committed(snapshot.lsn().0)?;
                self.inner.load(store, place, entries)?;
            }
            // Other members get what commits have.
            _ => self.load_by_commits((collection, index), entries)?,
        }
        Ok(entries.current().is_some())
    }

    /// Whether entries of indexes that are being built go into the base and into no commit.
    pub(super) fn loads_beside(&self) -> bool {
        !self.is_member() || self.inner.entries_left_out.load(Ordering::Acquire)
    }

    /// All members of the set know how to make entries that no commit has ([`super::fill`]).
    pub fn leave_entries_out(&self) {
        self.inner.entries_left_out.store(true, Ordering::Release);
    }

    fn load_by_commits(&self, place: (CollectionId, IndexId), entries: &mut dyn ChangeSource) -> Result<()> {
        let mut ws = self.begin();
        let tree = building(&ws, place)?;
        ws.require_collection(place.0);
        let mut overlay = crate::cursor::Overlay::new();
        while let (Some(change), true) = (entries.current(), overlay.len() < COMMIT_ENTRIES) {
            overlay.insert(change.key.into(), change.value.map(Into::into));
            entries.advance();
        }
        ws.trees.insert(tree, Arc::new(overlay));
        loop {
            let mut again = self.begin();
            building(&again, place)?;
            again.require_collection(place.0);
            again.trees.clone_from(&ws.trees);
            match self.commit(again) {
                Err(StorageError::WriteConflict | StorageError::Reserved(_)) => {}
                other => return other.map(|_| ()),
            }
        }
    }

    /// Commits what `work` writes on the newest state, before anyone else does: `work` runs while commits wait, so it has to be
    /// short. It gets that state and what the watch noted up to it; `None` commits nothing.
    ///
    /// Errors: those of `work` and of [`Engine::commit`]. A write conflict is one with an open transaction.
    pub fn commit_alone<E: From<StorageError>>(
        &self,
        watch: &Watch,
        work: impl FnOnce(Snapshot, Touched) -> Result<Option<WriteSet>, E>,
    ) -> Result<Option<Commit>, E> {
        let inner = &*self.inner;
        inner.make_room(0)?;
        let mut sequencer = inner.lock_sequencer();
        inner.check_open()?;
        let Some(ws) = work(self.snapshot(), watch.state.take())? else {
            return Ok(None);
        };
        let prepared = inner.prepare(Box::new(ws))?;
        let done = inner.run(&mut sequencer, Vec::new(), Some(prepared));
        drop(sequencer);
        let result = inner.finish(done).unwrap_or(Err(StorageError::Closed));
        Ok(Some(result?))
    }

    /// Drops the indexes that were being built when the store was closed or the process died.
    pub(super) fn drop_unfinished_indexes(&self) -> Result<()> {
        let mut ws = self.begin();
        let snapshot = self.snapshot();
        for collection in snapshot.catalog().collections() {
            for index in &collection.building {
                tracing::info!(ns = %collection.ns, index = %index.name, "an index build was interrupted; the index is dropped");
                ws.drop_index(collection.id, index.id)?;
            }
        }
        self.commit(ws).map(|_| ())
    }
}

impl Inner {
    pub(super) fn load(&self, store: &Store, place: Place, entries: &mut dyn ChangeSource) -> Result<()> {
        let _no_checkpoint = self.checkpointer.pause();
        self.check_open()?;
        let current = Snapshot { state: self.current() };
        if !place.is_there(&current) {
            return Err(gone());
        }
        // The base never knows more than the journal has on disk: it has that the index is being built.
        store.journal.syncer.wait(current.lsn().0)?;
        store.base.set_packing(self.packing(current.catalog()));
        drop(current);
        let meta = store.base.snapshot().meta().to_vec();
        let mut part = Part::new(place.tree, entries);
        if let Err(error) = store.base.apply(&[], &mut Slice::new(&mut part, LOAD_BYTES), &meta) {
            return Err(store.base_failed(error));
        }
        self.change_layers(|sequencer| sequencer.rebased(store.base.snapshot()));
        Ok(())
    }
}

/// The tree of an index that is being built.
fn building(view: &dyn View, (collection, index): (CollectionId, IndexId)) -> Result<TreeId> {
    let collection = view.catalog().by_id(collection);
    match collection.and_then(|c| c.building_by_id(index)) {
        Some(index) => Ok(index.tree),
        None => Err(gone()),
    }
}

fn gone() -> StorageError {
    StorageError::catalog(ErrorCode::IndexNotFound, "the index is not being built any more")
}

#[cfg(test)]
mod tests;
