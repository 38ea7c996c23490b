//! From values to the bytes of index keys and sort keys.
//!
//! How values are encoded is the store's business ([`nestor_storage::keys`]); which values, in which
//! direction, is ours.

use nestor_model::{Document, ValueRef};
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
}

impl KeyEncoder {
    /// For an index of `collection`.
    pub fn new(collection: &Collection, index: &Index) -> Self {
        Self {
            format: EntryFormat {
                unique: index.unique,
                clustered: collection.is_clustered(),
                descending: directions(&index.key_pattern),
            },
            hashed: index
                .key_pattern
                .iter()
                .position(|(_, kind)| matches!(kind, ValueRef::String("hashed"))),
        }
    }

    /// The key of these values, one per part, and its type bits. A missing value is indexed as null.
    pub fn encode(&self, values: &[ValueRef<'_>]) -> (Vec<u8>, Vec<u8>) {
        let mut writer = KeyWriter::new();
        for (part, (value, descending)) in values.iter().zip(&self.format.descending).enumerate() {
            let value = if value.is_missing() { ValueRef::Null } else { *value };
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
pub struct SortKeys(Vec<bool>);

impl SortKeys {
    /// For a sort.
    pub fn new(spec: &SortSpec) -> Self {
        Self(spec.parts().iter().map(|part| !part.ascending).collect())
    }

    /// Appends the key of these values, one per part.
    pub fn encode(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) {
        for (value, descending) in values.iter().zip(&self.0) {
            keys::encode_into(*value, *descending, key);
        }
    }
}

thread_local! {
    static ID_KEY: RefCell<KeyWriter> = RefCell::new(KeyWriter::new());
}

/// Calls `f` with the key of an `_id` and its type bits, without allocating for keys of ordinary length.
pub fn with_id_key<T>(id: ValueRef<'_>, f: impl FnOnce(&[u8], &[u8]) -> T) -> T {
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
pub fn id_key(id: ValueRef<'_>) -> Bytes {
    with_id_key(id, |key, _| Bytes::copy_from(key))
}

/// The layout of `_id` index entries: unique, over record ids.
pub fn id_format() -> EntryFormat {
    EntryFormat {
        unique: true,
        clustered: false,
        descending: vec![false],
    }
}
