//! Lookups of one record.

use crate::keys;
use nestor_model::{Result, ValueRef};
use nestor_storage::{Bytes, Collection, View};

/// Bytes of a record id at the start of an `_id` entry's value.
const RECORD_ID_BYTES: usize = 8;

/// The record with that `_id`: its record key and its document. Two gets, or one in a clustered collection.
pub fn by_id(view: &dyn View, collection: &Collection, id: ValueRef<'_>) -> Result<Option<(Bytes, Bytes)>> {
    keys::with_id_key(id, |key, _| {
        let record = if collection.is_clustered() {
            Bytes::copy_from(key)
        } else {
            let Some(index) = collection.id_index() else {
                return Ok(None);
            };
            match view.get(index.tree, key)? {
                // A unique index keeps the record key before the type bits.
                Some(entry) => Bytes::copy_from(entry.get(..RECORD_ID_BYTES).unwrap_or(&entry)),
                None => return Ok(None),
            }
        };
        Ok(view.get(collection.records, &record)?.map(|bytes| (record, bytes)))
    })
}
