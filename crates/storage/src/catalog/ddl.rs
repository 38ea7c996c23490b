//! Catalog changes, as part of a write set.

use super::entry;
use super::names;
use super::{Catalog, Collection, CollectionState, Index};
use crate::{CollectionId, IndexId, Result, StorageError, TreeId, WriteSet};
use nestor_model::{CollectionOptions, ErrorCode, IndexSpec, Namespace, doc, raw};
use std::sync::Arc;

impl WriteSet {
    /// Makes a collection, or a view if the options say so. A collection that is not clustered gets its `_id_`
    /// index, with the collation of the options, but for those whose documents have no `_id`. The UUID is the caller's to
    /// draw. Whether the options make sense is the caller's to check.
    ///
    /// Errors: `InvalidNamespace`, `NamespaceExists`, `DatabaseDifferCase`.
    pub fn create_collection(
        &mut self,
        ns: &Namespace,
        uuid: [u8; 16],
        options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        names::check_new_collection(ns)?;
        self.check_free(ns)?;
        self.catalog.check_case(&ns.db)?;
        let id = self.ids.allocate();
        let mut collection = Collection {
            id: CollectionId(id),
            ns: ns.clone(),
            uuid,
            options,
            records: TreeId(id),
            indexes: Vec::new(),
            building: Vec::new(),
            state: Arc::new(CollectionState::new(0, 0, 1)),
            derived: Default::default(),
        };
        let has_id_index = !collection.is_view() && !collection.is_clustered() && !names::has_no_ids(ns);
        if has_id_index {
            let mut spec = doc! { "v": 2, "key": doc! { "_id": 1 }, "name": "_id_" };
            if let Some(collation) = &collection.options.collation {
                spec.push("collation", collation.clone());
            }
            let spec = IndexSpec::parse(spec.to_raw())
                .map_err(|error| StorageError::catalog(error.code(), error.message()))?;
            collection.indexes.push(Arc::new(self.new_index(spec)));
        }
        self.put_collection(collection)
    }

    /// The commit will conflict if the catalog's entry of this name appeared, changed or went after this write set's
    /// snapshot.
    pub fn require_namespace(&mut self, ns: &Namespace) {
        self.check_unchanged(TreeId::CATALOG, entry::collection_key(ns));
    }

    /// Drops a collection or view with all its records and indexes. Returns what it was.
    ///
    /// Errors: `NamespaceNotFound`.
    pub fn drop_collection(&mut self, ns: &Namespace) -> Result<Arc<Collection>> {
        let collection = self.existing(ns)?;
        self.change(TreeId::CATALOG, entry::collection_key(ns), None);
        Arc::make_mut(&mut self.catalog).remove(ns);
        self.drop_trees(&collection);
        Ok(collection)
    }

    /// Moves a collection to another namespace, also of another database; its id, UUID and contents stay. What is at
    /// `to` is dropped if `drop_target`.
    ///
    /// Errors: `NamespaceNotFound`, `NamespaceExists`, `InvalidNamespace`, `IllegalOperation` when both are the same,
    /// `DatabaseDifferCase`.
    pub fn rename_collection(
        &mut self,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
    ) -> Result<Arc<Collection>> {
        names::check_new_collection(to)?;
        let mut collection = (*self.existing(from)?).clone();
        if from == to {
            return Err(StorageError::catalog(
                ErrorCode::IllegalOperation,
                "Can't rename a collection to itself",
            ));
        }
        if self.catalog.get(to).is_some() {
            if !drop_target {
                return Err(StorageError::catalog(
                    ErrorCode::NamespaceExists,
                    "target namespace exists",
                ));
            }
            self.drop_collection(to)?;
        }
        self.catalog.check_case(&to.db)?;
        self.change(TreeId::CATALOG, entry::collection_key(from), None);
        Arc::make_mut(&mut self.catalog).remove(from);
        collection.ns = to.clone();
        self.put_collection(collection)
    }

    /// Adds an index with no entries, which reads use and writes maintain from this commit on. Whether the specification is valid
    /// and how it relates to the collection's other indexes is the caller's to check.
    ///
    /// Errors: `NamespaceNotFound`, `IndexAlreadyExists` for a name in use.
    pub fn create_index(&mut self, id: CollectionId, spec: IndexSpec) -> Result<Arc<Index>> {
        self.add_index(id, spec, |collection| &mut collection.indexes)
    }

    /// Adds an index that is being built ([`Collection::building`]): nobody else touches its tree, and a store that is
    /// opened drops it. [`WriteSet::finish_index`] makes it one of the collection's indexes.
    ///
    /// Errors: as [`WriteSet::create_index`].
    pub fn start_index(&mut self, id: CollectionId, spec: IndexSpec) -> Result<Arc<Index>> {
        self.add_index(id, spec, |collection| &mut collection.building)
    }

    fn add_index(
        &mut self,
        id: CollectionId,
        spec: IndexSpec,
        list: impl FnOnce(&mut Collection) -> &mut Vec<Arc<Index>>,
    ) -> Result<Arc<Index>> {
        let mut collection = self.existing_by_id(id)?;
        let index = Arc::new(self.new_index(spec));
        if collection.all_indexes().any(|other| other.name == index.name) {
            return Err(StorageError::catalog(
                ErrorCode::IndexAlreadyExists,
                format!("index {} exists already", index.name),
            ));
        }
        list(&mut collection).push(index.clone());
        self.put_collection(collection)?;
        Ok(index)
    }

    /// Drops an index, built or being built, and its entries.
    ///
    /// Errors: `NamespaceNotFound`, `IndexNotFound`.
    pub fn drop_index(&mut self, id: CollectionId, index: IndexId) -> Result<Arc<Index>> {
        let mut collection = self.existing_by_id(id)?;
        let (list, at) = position(&mut collection, index)?;
        let dropped = list.remove(at);
        self.dropped.push(dropped.tree);
        self.put_collection(collection)?;
        Ok(dropped)
    }

    /// Makes an index that was being built, and whose tree is complete as of this commit, one of the collection's
    /// indexes.
    ///
    /// Errors: `NamespaceNotFound`, `IndexNotFound`.
    pub fn finish_index(&mut self, id: CollectionId, index: IndexId) -> Result<()> {
        let mut collection = self.existing_by_id(id)?;
        let Some(at) = collection.building.iter().position(|i| i.id == index) else {
            return Err(index_not_found());
        };
        let built = collection.building.remove(at);
        collection.indexes.push(built);
        self.put_collection(collection)?;
        Ok(())
    }

    /// Notes path components that hold arrays: `multikey[i]` belongs to key part `i`, see [`Index::multikey`]. Does
    /// nothing if all are known, so it may be called for every document. A transaction notes it for itself, and has to tell the others
    /// before it commits ([`Engine::publish_multikey`](crate::Engine::publish_multikey)): the entry of the catalog is none that transactions could have to themselves.
    ///
    /// Errors: `NamespaceNotFound`, `IndexNotFound`.
    pub fn set_multikey(&mut self, id: CollectionId, index: IndexId, multikey: &[u64]) -> Result<()> {
        let known = self
            .catalog
            .by_id(id)
            .and_then(|c| c.all_indexes().find(|i| i.id == index))
            .is_some_and(|index| index.multikey.iter().zip(multikey).all(|(old, new)| old | new == *old));
        if known {
            return Ok(());
        }
        if self.claim.is_some() && self.shares_entry(id) {
            let mut collection = self.existing_by_id(id)?;
            let (list, at) = position(&mut collection, index)?;
            Arc::make_mut(&mut list[at]).add_multikey(multikey);
            Arc::make_mut(&mut self.catalog).put(Arc::new(collection));
            self.multikey.push((id, index, multikey.to_vec()));
            return Ok(());
        }
        self.change_index(id, index, |index| {
            index.add_multikey(multikey);
            Ok(())
        })
    }

    /// Whether a transaction has found arrays that the others have not been told of.
    pub fn has_found_arrays(&self) -> bool {
        !self.multikey.is_empty()
    }

    /// Whether a collection was there before this write set, which has not changed its entry.
    fn shares_entry(&self, id: CollectionId) -> bool {
        let overlay = self.trees.get(&TreeId::CATALOG);
        let before = self.snapshot.state.catalog.by_id(id);
        before.is_some_and(|before| {
            overlay.is_none_or(|overlay| !overlay.contains_key(&entry::collection_key(&before.ns)[..]))
        })
    }

    /// Replaces an index's specification (`collMod` changes `hidden` and `expireAfterSeconds`). Name and key must stay.
    ///
    /// Errors: `NamespaceNotFound`, `IndexNotFound`.
    pub fn set_index_spec(&mut self, id: CollectionId, index: IndexId, spec: IndexSpec) -> Result<()> {
        self.change_index(id, index, |index| {
            *index = Index::new(index.id, index.tree, spec, index.multikey.clone());
            Ok(())
        })
    }

    /// Replaces a collection's or view's options.
    ///
    /// Errors: `NamespaceNotFound`.
    pub fn set_options(&mut self, id: CollectionId, options: CollectionOptions) -> Result<Arc<Collection>> {
        let mut collection = self.existing_by_id(id)?;
        collection.options = options;
        self.put_collection(collection)
    }

    fn new_index(&self, spec: IndexSpec) -> Index {
        let id = self.ids.allocate();
        Index::new(IndexId(id), TreeId(id), spec, Vec::new())
    }

    fn change_index(
        &mut self,
        id: CollectionId,
        index: IndexId,
        change: impl FnOnce(&mut Index) -> Result<()>,
    ) -> Result<()> {
        let mut collection = self.existing_by_id(id)?;
        let (list, at) = position(&mut collection, index)?;
        change(Arc::make_mut(&mut list[at]))?;
        self.put_collection(collection)?;
        Ok(())
    }

    /// Errors: 15 when its options or indexes are nested so deep that the entry could not be read back.
    fn put_collection(&mut self, collection: Collection) -> Result<Arc<Collection>> {
        let value = entry::encode(&collection);
        if value.as_raw().is_deeper_than(raw::DEPTH_MAX) {
            let message = format!(
                "the options or indexes of {} exceed the maximum nested object depth",
                collection.ns
            );
            return Err(StorageError::catalog(ErrorCode::Overflow, message));
        }
        self.change(
            TreeId::CATALOG,
            entry::collection_key(&collection.ns),
            Some(value.into()),
        );
        let collection = Arc::new(collection);
        Arc::make_mut(&mut self.catalog).put(collection.clone());
        Ok(collection)
    }

    fn drop_trees(&mut self, collection: &Collection) {
        // With its tree, which for a view is empty, a collection's numbers go.
        self.dropped.push(collection.records);
        self.dropped.extend(collection.all_indexes().map(|index| index.tree));
        self.counts.retain(|change| change.id != collection.id);
    }

    fn check_free(&self, ns: &Namespace) -> Result<()> {
        let Some(found) = self.catalog.get(ns) else {
            return Ok(());
        };
        let what = if found.is_view() { "view" } else { "collection" };
        Err(StorageError::catalog(
            ErrorCode::NamespaceExists,
            format!("{what} already exists. NS: {ns}"),
        ))
    }

    fn existing(&self, ns: &Namespace) -> Result<Arc<Collection>> {
        self.catalog
            .get(ns)
            .cloned()
            .ok_or_else(|| StorageError::catalog(ErrorCode::NamespaceNotFound, format!("ns not found: {ns}")))
    }

    fn existing_by_id(&self, id: CollectionId) -> Result<Collection> {
        match self.catalog.by_id(id) {
            Some(collection) => Ok((**collection).clone()),
            None => Err(StorageError::catalog(
                ErrorCode::NamespaceNotFound,
                "collection dropped",
            )),
        }
    }

    /// The collections and views that this write set makes different for those who use them: dropped, renamed, with other options or
    /// indexes. New ones are none of them.
    pub fn altered_collections(&self) -> Vec<CollectionId> {
        let before = &self.snapshot.state.catalog;
        let changes = self.catalog_changes();
        let altered = changes.iter().filter_map(|(ns, now)| {
            let before = before.get(ns)?;
            let fits = now.as_ref().is_some_and(|now| now.fits_writers_of(before));
            (!fits).then_some(before.id)
        });
        altered.collect()
    }

    /// Whether the commit changes what the catalog says of any collection, but for arrays found and builds under way.
    pub(crate) fn changes_catalog(&self) -> bool {
        let before = &self.snapshot.state.catalog;
        self.catalog_changes()
            .iter()
            .any(|(ns, now)| match (before.get(ns), now) {
                (Some(before), Some(now)) => !now.fits_writers_of(before),
                (None, None) => false,
                _ => true,
            })
    }

    /// The changes of the catalog by this write set: the collection (or nothing) at each namespace it touched.
    pub(crate) fn catalog_changes(&self) -> Vec<(Namespace, Option<Arc<Collection>>)> {
        let Some(overlay) = self.trees.get(&TreeId::CATALOG) else {
            return Vec::new();
        };
        overlay
            .keys()
            .filter_map(|key| entry::collection_ns(key))
            .map(|ns| {
                let now = self.catalog.get(&ns).cloned();
                (ns, now)
            })
            .collect()
    }
}

/// `catalog` with `changes` made: removals first, so that a rename ends where it goes to.
pub(crate) fn apply_changes(catalog: &mut Catalog, changes: Vec<(Namespace, Option<Arc<Collection>>)>) {
    for (ns, now) in &changes {
        if now.is_none() {
            catalog.remove(ns);
        }
    }
    for (_, now) in changes {
        if let Some(collection) = now {
            catalog.put(collection);
        }
    }
}

/// The list an index is in, and its place there.
fn position(collection: &mut Collection, index: IndexId) -> Result<(&mut Vec<Arc<Index>>, usize)> {
    [&mut collection.indexes, &mut collection.building]
        .into_iter()
        .find_map(|list| {
            let at = list.iter().position(|i| i.id == index)?;
            Some((list, at))
        })
        .ok_or_else(index_not_found)
}

fn index_not_found() -> StorageError {
    StorageError::catalog(ErrorCode::IndexNotFound, "index not found")
}
