//! From values to the bytes of index keys and sort keys.
//!
//! How values are encoded is the store's business ([`nestor_storage::keys`]); which values, in which
//! direction, is ours.

use nestor_model::{Document, Result, ValueRef};
use nestor_query::collation::{Collator, stored};
use nestor_query::expr::hashed_index_key;
use nestor_query::sort::SortSpec;
use nestor_storage::catalog::is_wildcard_path;
use nestor_storage::keys::{self, EntryFormat, KeyWriter};
use nestor_storage::{Bytes, Collection, Index};
use std::cell::RefCell;

/// Encodes the keys of one index.
#[derive(Clone, Debug)]
pub struct KeyEncoder {
    /// How entries are laid out.
    pub format: EntryFormat,
    /// The part that stores hashes of values, if there is one.
    pub hashed: Option<usize>,
    /// Strings are stored as the sort keys of this collation: see [`stored`].
    pub collation: Option<Collator>,
    /// The part that stores paths, if it is a wildcard index: these are not collated.
    path: Option<usize>,
}

impl KeyEncoder {
    /// For an index of `collection`.
    ///
    /// Errors: 2 for a collation that this version does not know.
    pub fn new(collection: &Collection, index: &Index) -> Result<Self> {
        Ok(Self {
            format: EntryFormat {
                unique: index.unique,
                clustered: collection.is_clustered(),
                descending: directions(&index.key_pattern),
            },
            hashed: index
                .key_pattern
                .iter()
                .position(|(_, kind)| matches!(kind, ValueRef::String("hashed"))),
            collation: match &index.collation {
                Some(collation) => Collator::parse(collation.as_ref())?,
                None => None,
            },
            path: index.key_pattern.iter().position(|(path, _)| is_wildcard_path(path)),
        })
    }

    /// The key of these values, one per part, and its type bits. A missing value is indexed as null.
    pub fn encode(&self, values: &[ValueRef<'_>]) -> (Vec<u8>, Vec<u8>) {
        let mut writer = KeyWriter::new();
        for (part, (value, descending)) in values.iter().zip(&self.format.descending).enumerate() {
            let value = if value.is_missing() { ValueRef::Null } else { *value };
            let collation = self.collation.as_ref().filter(|_| self.path != Some(part));
            let collated = collation.and_then(|collator| stored(value, collator));
            let value = collated.as_ref().map_or(value, ValueRef::from);
            if self.hashed == Some(part) {
                writer.push(hashed_index_key(value), *descending);
            } else {
                writer.push(value, *descending);
            }
        }
        (writer.key().to_vec(), writer.type_bits().to_vec())
    }
}

/// Which parts of keys descend: those with a negative number. A wildcard has two parts, its path ascends.
pub fn directions(pattern: &Document) -> Vec<bool> {
    pattern
        .iter()
        .flat_map(|(path, direction)| {
            let descends = match direction {
                ValueRef::Int32(v) => v < 0,
                ValueRef::Int64(v) => v < 0,
                ValueRef::Double(v) => v < 0.0,
                ValueRef::Decimal128(v) => v.to_f64() < 0.0,
                _ => false,
            };
            is_wildcard_path(path).then_some(false).into_iter().chain([descends])
        })
        .collect()
}

/// Encodes sort keys so that comparing them is comparing bytes.
#[derive(Clone, Debug)]
pub struct SortKeys {
    descending: Vec<bool>,
    collator: Option<Collator>,
}

impl SortKeys {
    /// For a sort.
    pub fn new(spec: &SortSpec) -> Self {
        Self {
            descending: spec.parts().iter().map(|part| !part.ascending).collect(),
            collator: spec.collator().cloned(),
        }
    }

    /// Appends the key of these values, one per part.
    pub fn encode(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) {
        for (value, descending) in values.iter().zip(&self.descending) {
            match self.collator.as_ref().and_then(|collator| stored(*value, collator)) {
                Some(collated) => keys::encode_into(&collated, *descending, key),
                None => keys::encode_into(*value, *descending, key),
            }
        }
    }

    /// The same for values from an index, which are in the order of the sort as they are.
    pub fn encode_stored(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) {
        for (value, descending) in values.iter().zip(&self.descending) {
            keys::encode_into(*value, *descending, key);
        }
    }
}

thread_local! {
    static ID_KEY: RefCell<KeyWriter> = RefCell::new(KeyWriter::new());
}

/// Calls `f` with the key of an `_id` and its type bits, without allocating for keys of ordinary length. The collation is
/// that of the collection.
pub fn with_id_key<T>(id: ValueRef<'_>, collation: Option<&Collator>, f: impl FnOnce(&[u8], &[u8]) -> T) -> T {
    let collated = collation.and_then(|collator| stored(id, collator));
    let id = collated.as_ref().map_or(id, ValueRef::from);
    ID_KEY.with(|shared| match shared.try_borrow_mut() {
        Ok(mut writer) => {
            writer.clear();
            writer.push(id, false);
            f(writer.key(), writer.type_bits())
        }
        // Used within `f` again: rare enough to allocate.
        Err(_) => {
            let mut writer = KeyWriter::new();
            writer.push(id, false);
            f(writer.key(), writer.type_bits())
        }
    })
}

/// The key of an `_id`: the key of its index entry, and the record key in a clustered collection.
pub fn id_key(id: ValueRef<'_>, collation: Option<&Collator>) -> Bytes {
    with_id_key(id, collation, |key, _| Bytes::copy_from(key))
}

/// The layout of `_id` index entries: unique, over record ids.
pub fn id_format() -> EntryFormat {
    EntryFormat {
        unique: true,
        clustered: false,
        descending: vec![false],
    }
}
