//! Capped collections: the oldest documents make room for new ones.

use super::Writer;
use super::oplog::{Origin, Statements};
use nestor_model::{Result, ValueRef};
use nestor_storage::{Bytes, View, record};

/// Deletes the oldest documents until the collection is within its limits. The newest document always stays.
pub(super) fn trim(writer: &mut Writer<'_>) -> Result<()> {
    let Some(limits) = writer.collection.options.capped else {
        return Ok(());
    };
    let over = |writer: &Writer<'_>| {
        let (documents, bytes) = writer.ws.counts(&writer.collection);
        documents > 1 && (bytes > limits.bytes_max || limits.documents_max.is_some_and(|max| documents > max))
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
            let entry = origin.delete(&writer.collection, id, Statements::None, writer.op.now_ms);
            origin.log_with(writer.ws, entry, Origin::image(&writer.collection, old.document()))?;
        }
        writer.ws.delete(writer.collection.records, key);
        writer.ws.add_count(writer.collection.id, -1, -(old.len() as i64));
        more = cursor.next()?;
    }
    Ok(())
}
