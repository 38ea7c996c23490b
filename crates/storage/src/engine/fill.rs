//! Entries of indexes that no commit has.
//!
//! ```text
//! B  the index is in the catalog as being built
//!    entries are loaded into the base; what is written meanwhile comes by commits      T(S) for some S between B and R
//!    the base says so: a mark with the number of the last commit                       before R is in the journal
//! R  the index is ready; from here on commits have its entries
//! ```
//!
//! So journal and log of the set have the definition of an index and what was written beside its build, and not its entries. Whoever repeats R
//! needs them from elsewhere: from the base, if it has the mark, and else they are made of the documents. That is so where
//!
//! - a member applies R: it makes them when it has everything before R, and then goes on with R ([`Engine::apply`]). It has begun with that at B, so that
//!   at R it only makes up for what was written since;
//! - a directory was put together of a base and a journal that is newer: a backup that was made during the build, an older one with the oplog
//!   behind it, a checkpoint of a set, a copy by a tool. They are made when it is opened, of what the journal's end shows.
//!
//! Either way the tree is emptied first, and gets T(S) of a state S at or before which nobody reads it, below what commits wrote to
//! it. These are right to be on top: of a key that any commit up to S wrote, the last one wrote what T(S) has, and what comes after S is newer. In
//! front of R they are what the primary made up for during its build; each key of these that R leaves as it is has its last value.
//!
//! How entries are made of documents the store does not know: [`MakeEntries`].

use super::load::Place;
use super::{Inner, Store};
use crate::base::{Change, ChangeSource, KeyRange, changes};
use crate::catalog::entry;
use crate::snapshot::View;
use crate::{Bytes, CollectionId, Engine, IndexId, Result, StorageError, TreeId};
use nestor_model::ErrorCode;
use std::sync::MutexGuard;

/// Makes the entries of indexes of the documents of a collection.
pub trait MakeEntries: Send + Sync {
    /// Fills the trees of indexes of a collection by [`Engine::fill`], each with the entries of all documents that the present snapshot shows. Nobody
    /// commits meanwhile.
    ///
    /// Errors: those of the store; [`StorageError::Entries`] of documents.
    fn fill(&self, engine: &Engine, collection: CollectionId, indexes: &[IndexId]) -> Result<()>;

    /// Begins to do so although commits go on, if it can: these indexes are being built, and their entries will be wanted. It does not wait for
    /// anything.
    fn begin(&self, _engine: &Engine, _collection: CollectionId, _indexes: &[IndexId]) -> Option<Box<dyn Begun>> {
        None
    }
}

/// Work that [`MakeEntries::begin`] has begun; dropping it ends it.
pub trait Begun: Send {
    /// Does what [`MakeEntries::fill`] does, with less left to do. False if that did not succeed, so that all is to be done again.
    ///
    /// Errors: those of the store.
    fn finish(self: Box<Self>, engine: &Engine) -> Result<bool>;
}

/// What a member has begun.
#[derive(Default)]
pub(super) struct Beginnings {
    /// Whether it has looked what is being built since it was opened.
    has_looked: bool,
    begun: Vec<OfCollection>,
}

/// The indexes of a collection that are being built, and the work for these, if any could be begun.
type OfCollection = (CollectionId, Vec<IndexId>, Option<Box<dyn Begun>>);

/// A tree that is being filled.
pub struct Filling<'e> {
    engine: &'e Engine,
    place: Place,
}

impl Engine {
    /// Begins to fill the tree of an index, built or being built, of which nobody reads and nobody writes: what the base has of it goes.
    ///
    /// Errors: `IndexNotFound`; those of the base.
    pub fn fill(&self, collection: CollectionId, index: IndexId) -> Result<Filling<'_>> {
        let filling = self.go_on_filling(collection, index)?;
        let store = self.inner.store.as_ref().ok_or(StorageError::Closed)?;
        self.inner.empty(store, filling.place.tree)?;
        Ok(filling)
    }

    /// As [`Engine::fill`], with what was loaded before.
    pub fn go_on_filling(&self, collection: CollectionId, index: IndexId) -> Result<Filling<'_>> {
        if self.inner.store.is_none() {
            return Err(StorageError::catalog(
                ErrorCode::IllegalOperation,
                "a store that lives in memory has no trees to be filled",
            ));
        }
        let found = self.snapshot();
        let found = found.catalog().by_id(collection);
        let found = found.and_then(|c| c.all_indexes().find(|found| found.id == index).cloned());
        let Some(found) = found else {
            return Err(StorageError::catalog(ErrorCode::IndexNotFound, "the index is gone"));
        };
        let place = Place {
            collection,
            index,
            tree: found.tree,
        };
        Ok(Filling { engine: self, place })
    }

    /// Has somebody begin with the entries of indexes that are being built, and end what is not any more.
    pub(super) fn look_at_builds(&self, is_changed: bool) {
        let Some(entries) = &self.inner.options.entries else {
            return;
        };
        let mut beginnings = self.inner.beginnings();
        if beginnings.has_looked && !is_changed {
            return;
        }
        beginnings.has_looked = true;
        let snapshot = self.snapshot();
        let mut known = Vec::new();
        let mut ended = Vec::new();
        for (id, indexes, begun) in beginnings.begun.drain(..) {
            let collection = snapshot.catalog().by_id(id);
            let is_there = |index: &IndexId| collection.is_some_and(|c| c.building_by_id(*index).is_some());
            match indexes.iter().all(is_there) {
                true => known.push((id, indexes, begun)),
                false => ended.push(begun),
            }
        }
        for collection in snapshot.catalog().collections() {
            let is_known = |index: &IndexId| known.iter().any(|(_, indexes, _)| indexes.contains(index));
            let building = collection.building.iter().map(|index| index.id);
            let new: Vec<IndexId> = building.filter(|index| !is_known(index)).collect();
            if !new.is_empty() {
                let begun = entries.begin(self, collection.id, &new);
                known.push((collection.id, new, begun));
            }
        }
        beginnings.begun = known;
        drop(beginnings);
        drop(ended);
    }

    /// Ends what was begun for indexes that are being built: the member stops.
    pub fn end_beginnings(&self) {
        self.inner.end_beginnings();
    }

    /// Says that all that is to be loaded of an index is, as of the present commit. Without it a copy of the base does not count as one that has
    /// the entries.
    pub fn end_load(&self, collection: CollectionId, index: IndexId) -> Result<()> {
        match &self.inner.store {
            Some(store) if self.loads_beside() => {
                let place = Place::building(&self.snapshot(), collection, index)?;
                self.inner.mark_filled(store, place.tree)
            }
            _ => Ok(()),
        }
    }

    /// Has somebody make the entries that neither journal nor base have.
    pub(super) fn make_entries(&self, collection: CollectionId, indexes: &[IndexId]) -> Result<()> {
        let begun = {
            let mut beginnings = self.inner.beginnings();
            let found = beginnings.begun.iter_mut().find(|(_, known, _)| known == indexes);
            found.and_then(|(_, _, begun)| begun.take())
        };
        if let Some(begun) = begun
            && begun.finish(self)?
        {
            return Ok(());
        }
        tracing::info!(
            collection = collection.0,
            indexes = indexes.len(),
            "entries of indexes are made of the documents"
        );
        match &self.inner.options.entries {
            Some(entries) => entries.fill(self, collection, indexes),
            None => Err(StorageError::Entries(
                "the journal does not have them, and nobody makes them here".into(),
            )),
        }
    }
}

impl Filling<'_> {
    /// Writes some of `entries`, as [`Engine::load`]. Deletions are allowed: entries may come in several passes.
    pub fn load(&self, entries: &mut dyn ChangeSource) -> Result<bool> {
        let store = self.engine.inner.store.as_ref().ok_or(StorageError::Closed)?;
        self.engine.inner.load(store, self.place, entries)?;
        Ok(entries.current().is_some())
    }

    /// The tree has all entries of the documents of the present snapshot.
    pub fn end(self) -> Result<()> {
        let store = self.engine.inner.store.as_ref().ok_or(StorageError::Closed)?;
        self.engine.inner.mark_filled(store, self.place.tree)
    }
}

impl Inner {
    fn beginnings(&self) -> MutexGuard<'_, Beginnings> {
        self.beginnings.lock().expect("no holder of the lock panics")
    }

    pub(super) fn end_beginnings(&self) {
        let ended = std::mem::take(&mut self.beginnings().begun);
        // Whoever ends waits for a thread, which may ask for the lock.
        drop(ended);
    }

    /// Takes the mark of a tree away, and its entries.
    fn empty(&self, store: &Store, tree: TreeId) -> Result<()> {
        let key = catalog_key(&entry::filled_key(tree));
        let (start, end) = (tree.0.to_be_bytes(), tree.0.checked_add(1).map(u32::to_be_bytes));
        let range = KeyRange {
            start: &start,
            end: end.as_ref().map(|end| end.as_slice()),
        };
        let mut mark = changes([Change { key: &key, value: None }]);
        self.change_base(store, &[range], &mut mark)?;
        self.filled().remove(&tree);
        Ok(())
    }

    fn mark_filled(&self, store: &Store, tree: TreeId) -> Result<()> {
        let seq = self.current().seq;
        let key = catalog_key(&entry::filled_key(tree));
        let value = seq.to_le_bytes();
        let change = Change {
            key: &key,
            value: Some(&value),
        };
        self.change_base(store, &[], &mut changes([change]))?;
        self.filled().insert(tree, seq);
        Ok(())
    }

    /// Changes the base between two checkpoints.
    pub(super) fn change_base(
        &self,
        store: &Store,
        deletions: &[KeyRange<'_>],
        changes: &mut dyn ChangeSource,
    ) -> Result<()> {
        let _no_checkpoint = self.checkpointer.pause();
        self.check_open()?;
        // A checkpoint that failed has said to the history that it is about to change the base, which is as it was.
        let meta = store.base.snapshot().meta().to_vec();
        if let Err(error) = store.base.apply(deletions, changes, &meta) {
            return Err(store.base_failed(error));
        }
        self.change_layers(|sequencer| sequencer.rebased(store.base.snapshot()));
        Ok(())
    }
}

/// A key of the catalog's tree as the base has it.
fn catalog_key(key: &Bytes) -> Vec<u8> {
    [&TreeId::CATALOG.0.to_be_bytes()[..], key.as_slice()].concat()
}
