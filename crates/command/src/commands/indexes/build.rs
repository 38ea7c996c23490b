//! Making an index and filling it.

use crate::Context;
use nestor_exec::write::{IndexWriter, Writer};
use nestor_model::{Namespace, RawDocBuf, Result, bail};
use nestor_storage::{Bytes, View, WriteSet};

/// Makes the index `spec` and its entries in one write set, which conflicts with every write to the collection.
///
/// Errors: 11000 when a unique index finds a duplicate, those of making keys.
pub fn build(context: &Context<'_>, ws: &mut WriteSet, ns: &Namespace, spec: RawDocBuf) -> Result<()> {
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    ws.require_unwritten(collection.id);
    let index = ws.create_index(collection.id, spec, true)?;
    let now_ms = crate::clock::now_ms();
    collection.state.start_index_use(index.id, now_ms);
    let index_writer = IndexWriter::new(&collection, &index)?;
    let (op, _) = context.operation(None)?;
    let mut cursor = ws.cursor(collection.records);
    let mut writer = Writer::new(ws, collection, &op, None)?;
    let mut more = cursor.first()?;
    let mut seen = 0u32;
    while more {
        seen = seen.wrapping_add(1);
        if seen.is_multiple_of(128) {
            context.interrupt.check()?;
        }
        let record = Bytes::copy_from(cursor.key());
        let doc = cursor.value_bytes()?;
        writer.add_entries_of(&index_writer, doc.document().as_doc(), &record)?;
        more = cursor.next()?;
    }
    Ok(())
}
