//! Collections, views and indexes as the catalog knows them.

use super::derived::{Derive, DerivedValues};
use super::state::CollectionState;
use crate::keys::EntryFormat;
use crate::{CollectionId, IndexId, StorageError, TreeId};
use nestor_model::{CollectionOptions, IndexSpec, Namespace, RawDocBuf, RecordId, TimeSeries};
use std::ops::Deref;
use std::sync::Arc;

/// A collection or view. Immutable: a change makes a new one with the same id.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Identity, kept through renames.
    pub id: CollectionId,
    /// The collection's name.
    pub ns: Namespace,
    /// The collection's UUID. Views have one too, but MongoDB does not show it.
    pub uuid: [u8; 16],
    /// The options that the collection was created with, as changed since.
    pub options: CollectionOptions,
    /// The tree of records: record key to document.
    pub records: TreeId,
    /// The indexes in order of creation, `_id_` first.
    pub indexes: Vec<Arc<Index>>,
    /// Indexes that are being built: only the build reads and maintains them. See [`crate::WriteSet::start_index`].
    pub building: Vec<Arc<Index>>,
    /// Counts and record id allocator.
    pub state: Arc<CollectionState>,
    /// See [`Collection::derived`].
    pub(crate) derived: DerivedValues,
}

impl Collection {
    /// True for a view.
    pub fn is_view(&self) -> bool {
        self.options.view.is_some()
    }

    /// The options of a time-series collection, which is a view of the collection of its buckets.
    pub fn timeseries(&self) -> Option<&TimeSeries> {
        self.options.timeseries.as_ref().filter(|_| self.is_view())
    }

    /// The options of the time-series collection whose buckets this collection has.
    pub fn buckets(&self) -> Option<&TimeSeries> {
        self.options.timeseries.as_ref().filter(|_| !self.is_view())
    }

    /// True for a capped collection.
    pub fn is_capped(&self) -> bool {
        self.options.capped.is_some()
    }

    /// True for a clustered collection: its record key is the encoded `_id`, and it has no `_id_` index.
    pub fn is_clustered(&self) -> bool {
        self.options.clustered.is_some()
    }

    /// The index of that name.
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The index of that id.
    pub fn index_by_id(&self, id: IndexId) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// The index of that id, if it is being built.
    pub fn building_by_id(&self, id: IndexId) -> Option<&Arc<Index>> {
        self.building.iter().find(|index| index.id == id)
    }

    /// Indexes with entries in the store, those being built included.
    pub fn all_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().chain(&self.building)
    }

    /// The index on `_id`; a clustered collection and a view have none.
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.index("_id_")
    }

    /// The value of type `T` that belongs to this version of the entry, computed at the first call.
    ///
    /// Errors: those of computing the value.
    pub fn derived<T: Derive>(&self) -> Result<&T, T::Error> {
        self.derived.get(self)
    }

    /// Whether writers who prepared for `other` fit this version of the entry: its name, options and indexes are the same. Where
    /// arrays were found (those who find one note it) and what is being built changes nothing for them.
    pub(crate) fn fits_writers_of(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&Arc<Index>, &Arc<Index>)| {
            Arc::ptr_eq(one, other)
                || one.id == other.id && one.spec.listed().as_bytes() == other.spec.listed().as_bytes()
        };
        self.id == other.id
            && self.ns == other.ns
            && self.indexes.len() == other.indexes.len()
            && self.indexes.iter().zip(&other.indexes).all(is_same)
            && self.options.listed().to_raw().as_bytes() == other.options.listed().to_raw().as_bytes()
    }

    /// The next record id, never given before.
    pub fn allocate_record_id(&self) -> RecordId {
        self.state.allocate_record_id()
    }
}

/// An index: a specification with a place in the store. Immutable, as its collection.
///
/// An index dereferences to its specification, because most code that looks at an index needs only that.
#[derive(Clone, Debug)]
pub struct Index {
    /// Identity.
    pub id: IndexId,
    /// The specification.
    pub spec: IndexSpec,
    /// The tree of entries.
    pub tree: TreeId,
    /// Per part of the key pattern, in order: bit `i` is set when the path's component `i` has held an array, so that a
    /// document may have several entries. Bits are never cleared.
    pub multikey: Vec<u64>,
}

impl Deref for Index {
    type Target = IndexSpec;

    fn deref(&self) -> &IndexSpec {
        &self.spec
    }
}

impl Index {
    /// Reads a specification. What the key parts and options mean and whether they go together is checked where the
    /// index is created.
    pub(crate) fn from_spec(
        id: IndexId,
        tree: TreeId,
        spec: RawDocBuf,
        multikey: Vec<u64>,
    ) -> Result<Self, StorageError> {
        let spec = IndexSpec::parse(spec).map_err(|error| StorageError::Undecodable(error.to_string()))?;
        Ok(Self::new(id, tree, spec, multikey))
    }

    /// An index of these parts.
    pub(crate) fn new(id: IndexId, tree: TreeId, spec: IndexSpec, mut multikey: Vec<u64>) -> Self {
        multikey.resize(spec.key.len(), 0);
        Self {
            id,
            spec,
            tree,
            multikey,
        }
    }

    /// Notes arrays, see [`crate::WriteSet::set_multikey`].
    pub(crate) fn add_multikey(&mut self, multikey: &[u64]) {
        for (bits, new) in self.multikey.iter_mut().zip(multikey) {
            *bits |= new;
        }
    }

    /// Whether any document may have several entries.
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|bits| *bits != 0)
    }

    /// The layout of the index's entries.
    pub fn entry_format(&self, collection: &Collection) -> EntryFormat {
        EntryFormat {
            unique: self.unique,
            clustered: collection.is_clustered(),
            descending: self.descending.clone(),
        }
    }
}
