//! Capped collections: the oldest documents make room for new ones.

use super::Writer;
use nestor_model::{Result, ValueRef};
use nestor_storage::{Bytes, Collection, View, record};

/// The limits of a capped collection: bytes, and documents if limited.
pub fn limits(collection: &Collection) -> (i64, Option<i64>) {
    let number = |name: &str| match collection.options.get(name) {
        Some(ValueRef::Int32(v)) => Some(i64::from(v)),
        Some(ValueRef::Int64(v)) => Some(v),
        Some(ValueRef::Double(v)) => Some(v as i64),
        _ => None,
    };
    (number("size").unwrap_or(i64::MAX), number("max").filter(|max| *max > 0))
}

/// Deletes the oldest documents until the collection is within its limits. The newest document always stays.
pub(super) fn trim(writer: &mut Writer<'_>) -> Result<()> {
    let (bytes_max, documents_max) = limits(&writer.collection);
    let over = |writer: &Writer<'_>| {
        let (documents, bytes) = writer.ws.counts(&writer.collection);
        documents > 1 && (bytes > bytes_max || documents_max.is_some_and(|max| documents > max))
    };
    if !over(writer) {
        return Ok(());
    }
    let mut cursor = writer.ws.cursor(writer.collection.records);
    let mut more = cursor.first()?;
    while more && over(writer) {
        let key = Bytes::copy_from(cursor.key());
        let old = cursor.value_bytes()?;
        writer.remove_entries(record::document(&old).as_doc(), &key)?;
        // MongoDB logs these deletions as well, so that change streams and copies follow.
        if let Some(origin) = &writer.origin {
            let id = old.document().get("_id").unwrap_or(ValueRef::Null);
            let entry = origin.delete(&writer.collection, id, None, writer.op.now_ms);
            origin.log(writer.ws, entry)?;
        }
        writer.ws.delete(writer.collection.records, key);
        writer.ws.add_count(writer.collection.id, -1, -(old.len() as i64));
        more = cursor.next()?;
    }
    Ok(())
}
