//! Collections, views and indexes as the catalog knows them.

use super::derived::{Derive, DerivedValues};
use super::state::CollectionState;
use crate::keys::EntryFormat;
use crate::{CollectionId, IndexId, StorageError, TreeId};
use nestor_model::number::safe_i64;
use nestor_model::{CollectionOptions, DocRef, Document, Namespace, RawDocBuf, RecordId, Str, ValueRef};
use std::sync::Arc;

/// A collection or view. Immutable: a change makes a new one with the same id.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Identity, kept through renames.
    pub id: CollectionId,
    /// Where it is.
    pub ns: Namespace,
    /// Its UUID (views have one too, but MongoDB does not show it).
    pub uuid: [u8; 16],
    /// The options it was created with or has since been given.
    pub options: CollectionOptions,
    /// Its records: record key to document.
    pub records: TreeId,
    /// Its indexes in order of creation, `_id_` first.
    pub indexes: Vec<Arc<Index>>,
    /// Indexes whose entries are being made: nobody reads or maintains them but who makes them. See
    /// [`crate::WriteSet::start_index`].
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
    /// Errors: those of computing it.
    pub fn derived<T: Derive>(&self) -> Result<&T, T::Error> {
        self.derived.get(self)
    }

    /// The next record id, never given before.
    pub fn allocate_record_id(&self) -> RecordId {
        self.state.allocate_record_id()
    }
}

/// An index. Immutable, as its collection.
#[derive(Clone, Debug)]
pub struct Index {
    /// Identity.
    pub id: IndexId,
    /// Its name, unique within the collection.
    pub name: Str,
    /// The specification as listIndexes shows it: `v`, `key`, `name` and the options given.
    pub spec: RawDocBuf,
    /// `key` of the specification.
    pub key_pattern: Document,
    /// Its entries.
    pub tree: TreeId,
    /// No two documents may have the same key. Always true of `_id_`.
    pub unique: bool,
    /// Documents without any of the fields have no entry.
    pub sparse: bool,
    /// The planner may not use it.
    pub hidden: bool,
    /// Only documents that match have entries.
    pub partial_filter: Option<Document>,
    /// Documents expire that many seconds after the date in the key.
    pub expire_after_secs: Option<i64>,
    /// Collation of string keys, as given.
    pub collation: Option<Document>,
    /// Per key part, in order: bit `i` is set when the path's component `i` has held an array, so that a document may
    /// have several entries. Bits are never cleared.
    pub multikey: Vec<u64>,
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
        let doc = DocRef::Raw(spec.as_raw());
        let bad = |what: &str| StorageError::Undecodable(format!("index specification without {what}: {spec:?}"));
        let name: Str = doc
            .get("name")
            .and_then(ValueRef::as_str)
            .ok_or_else(|| bad("name"))?
            .into();
        let key_pattern = doc
            .get("key")
            .and_then(ValueRef::as_document)
            .ok_or_else(|| bad("key"))?
            .to_document();
        let document = |field: &str| doc.get(field).and_then(ValueRef::as_document).map(DocRef::to_document);
        let flag = |field: &str| doc.get(field).is_some_and(ValueRef::truthy);
        let mut multikey = multikey;
        multikey.resize(key_pattern.len(), 0);
        Ok(Self {
            id,
            tree,
            unique: name == "_id_" || flag("unique"),
            sparse: flag("sparse"),
            hidden: flag("hidden"),
            partial_filter: document("partialFilterExpression"),
            expire_after_secs: doc.get("expireAfterSeconds").and_then(safe_i64),
            collation: document("collation"),
            name,
            key_pattern,
            multikey,
            spec,
        })
    }

    /// Whether any document may have several entries.
    pub fn is_multikey(&self) -> bool {
        self.multikey.iter().any(|bits| *bits != 0)
    }

    /// Whether every document has an entry: not so when it is sparse, partial or over all fields there happen to be.
    pub fn holds_every_document(&self) -> bool {
        !self.sparse && self.partial_filter.is_none() && !self.is_wildcard()
    }

    /// Whether it is over all fields below some path (`$**`), not over given ones.
    pub fn is_wildcard(&self) -> bool {
        self.key_pattern.iter().any(|(path, _)| is_wildcard_path(path))
    }

    /// How its entries are laid out: a key part whose pattern value is a negative number descends.
    pub fn entry_format(&self, collection: &Collection) -> EntryFormat {
        let descends = |value: ValueRef<'_>| match value {
            ValueRef::Double(v) => v < 0.0,
            other => safe_i64(other).is_some_and(|v| v < 0),
        };
        EntryFormat {
            unique: self.unique,
            clustered: collection.is_clustered(),
            // A wildcard has two parts, its path ascends.
            descending: self
                .key_pattern
                .iter()
                .flat_map(|(path, value)| {
                    let path = is_wildcard_path(path).then_some(false);
                    path.into_iter().chain([descends(value)])
                })
                .collect(),
        }
    }

    /// Whether this is the index on `_id` that every collection has.
    pub fn is_id(&self) -> bool {
        self.name == "_id_"
    }
}

/// Whether a path of a key pattern stands for all fields: `$**` or `path.$**`.
pub fn is_wildcard_path(path: &str) -> bool {
    path == "$**" || path.ends_with(".$**")
}
