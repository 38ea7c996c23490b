//! Sizes on disk.

use nestor_model::Result;
use nestor_model::statement::work;
use nestor_storage::{Collection, Index, TreeId, View};

/// What sizes are multiples of.
const BLOCK_BYTES: i64 = 4096;

/// Bytes on disk of a collection whose documents have so many: packed, and without what was written since the last checkpoint, which is in the
/// journal. A block at least. The documents' own where nothing is on a disk, and of the oplog, which is the journal.
///
/// Errors: those of storage.
pub fn collection_bytes(view: &dyn View, collection: &Collection, bytes: i64) -> Result<i64> {
    match collection.ns.is_oplog() {
        true => Ok(bytes),
        false => Ok(stored_bytes(view, collection.records)?.unwrap_or(bytes)),
    }
}

/// The same of an index. Where nothing is on a disk its entries are counted, one by one.
///
/// Errors: those of storage, and when it is time to stop.
pub fn index_bytes(view: &dyn View, index: &Index) -> Result<i64> {
    if let Some(bytes) = stored_bytes(view, index.tree)? {
        return Ok(bytes);
    }
    let mut cursor = view.cursor(index.tree);
    let mut more = cursor.first()?;
    let mut bytes = 0;
    while more {
        work(1)?;
        bytes += (cursor.key().len() + cursor.value()?.len()) as i64;
        more = cursor.next()?;
    }
    Ok(bytes)
}

/// Bytes on disk of a tree as it was at the last checkpoint, in blocks; `None` where nothing is on a disk.
///
/// Errors: those of storage.
pub fn stored_bytes(view: &dyn View, tree: TreeId) -> Result<Option<i64>> {
    let stored = view.stored_bytes(tree)?;
    let blocks = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX / 2) / BLOCK_BYTES + 1;
    Ok(stored.map(|bytes| blocks(bytes) * BLOCK_BYTES))
}
