//! Lookups of one record.

use crate::{catalog, keys};
use nestor_model::{Result, ValueRef};
use nestor_query::collation::{Collator, equal};
use nestor_storage::{Bytes, Collection, View, record};

/// Bytes of a record id at the start of an `_id` entry's value.
pub(crate) const RECORD_ID_BYTES: usize = 8;

/// The record with that `_id`, by the collection's collation: its record key and its document. Two gets, or one in a
/// clustered collection.
pub fn by_id(view: &dyn View, collection: &Collection, id: ValueRef<'_>) -> Result<Option<(Bytes, Bytes)>> {
    let collation = catalog::id_collation(collection)?;
    keys::with_id_key(id, collation.as_ref(), |key, _| {
        let record = if collection.is_clustered() {
            Bytes::copy_from(key)
        } else {
            let Some(index) = collection.id_index() else {
                return scan_for(view, collection, id, collation.as_ref());
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

/// As [`by_id`], of a collection without an index on `_id`: looks at every record.
fn scan_for(
    view: &dyn View,
    collection: &Collection,
    id: ValueRef<'_>,
    collation: Option<&Collator>,
) -> Result<Option<(Bytes, Bytes)>> {
    let mut cursor = view.cursor(collection.records);
    let mut more = cursor.first()?;
    while more {
        let found = record::document(cursor.value()?);
        if found.get("_id").is_some_and(|own| equal(own, id, collation)) {
            return Ok(Some((Bytes::copy_from(cursor.key()), cursor.value_bytes()?)));
        }
        more = cursor.next()?;
    }
    Ok(None)
}
