//! From values to the bytes of index keys and sort keys.
//!
//! How values are encoded is the store's business ([`nestor_storage::keys`]); which values, in which
//! direction, is ours.

use nestor_model::ValueRef;
use nestor_planner::IndexInfo;
use nestor_query::collation::{Collator, stored};
use nestor_query::sort::SortSpec;
use nestor_storage::Bytes;
use nestor_storage::keys::{self, EntryFormat, KeyWriter};
use std::cell::RefCell;

/// Encodes the keys of one index.
#[derive(Clone, Debug)]
pub struct KeyEncoder {
    /// How entries are laid out.
    pub format: EntryFormat,
    /// Strings are stored as the sort keys of this collation: see [`stored`].
    pub collation: Option<Collator>,
    /// Of each stored part whether that is so.
    collated: Vec<bool>,
}

impl KeyEncoder {
    /// For an index that is laid out so.
    pub fn new(format: EntryFormat, info: &IndexInfo) -> Self {
        debug_assert_eq!(
            format.descending.len(),
            info.parts.len(),
            "a kind stores the parts it says"
        );
        Self {
            format,
            collation: info.collation.clone(),
            collated: info.parts.iter().map(|part| part.collated).collect(),
        }
    }

    /// The key of these values, one per part, and its type bits. A missing value is indexed as null.
    pub fn encode(&self, values: &[ValueRef<'_>]) -> (Vec<u8>, Vec<u8>) {
        let mut writer = KeyWriter::new();
        let parts = values.iter().zip(&self.collated).zip(&self.format.descending);
        for ((value, collated), descending) in parts {
            let value = if value.is_missing() { ValueRef::Null } else { *value };
            let collation = self.collation.as_ref().filter(|_| *collated);
            let stored = collation.and_then(|collator| stored(value, collator));
            writer.push(stored.as_ref().map_or(value, ValueRef::from), *descending);
        }
        (writer.key().to_vec(), writer.type_bits().to_vec())
    }
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
