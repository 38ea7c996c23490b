//! Making indexes and filling them: those of small collections with the commit that makes them, others beside the
//! writers.

use crate::Context;
use crate::parameters::Param;
use nestor_exec::write::build::{BuildOptions, build_indexes};
use nestor_exec::write::oplog::Origin;
use nestor_exec::write::{IndexWriter, Writer};
use nestor_model::{Document, Namespace, RawDocBuf, Result, bail, doc};
use nestor_storage::{Bytes, Collection, CollectionId, Commit, Index, View, WriteSet};
use std::sync::Arc;

/// Documents and bytes up to which a collection is small.
const SMALL_DOCUMENTS: i64 = 1000;
const SMALL_BYTES: i64 = 1 << 20;

/// Whether the indexes of a collection are made at once.
pub fn is_small(ws: &WriteSet, collection: &Collection) -> bool {
    let (documents, bytes) = ws.counts(collection);
    documents <= SMALL_DOCUMENTS && bytes <= SMALL_BYTES
}

/// Makes the index `spec` and its entries in one write set, which conflicts with every write to the collection.
///
/// Errors: 11000 when a unique index finds a duplicate, those of making keys.
pub fn at_once(context: &Context<'_>, ws: &mut WriteSet, ns: &Namespace, spec: RawDocBuf) -> Result<Arc<Index>> {
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    ws.require_unwritten(collection.id);
    let index = ws.create_index(collection.id, spec)?;
    collection.state.start_index_use(index.id, crate::clock::now_ms());
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
    Ok(index)
}

/// Fills indexes that [`WriteSet::start_index`] made, and makes them ready. They are gone if that fails.
///
/// Errors: see [`build_indexes`].
pub fn beside_writers(context: &Context<'_>, collection: CollectionId, indexes: &[Arc<Index>]) -> Result<Commit> {
    let service = context.service;
    let ids: Vec<_> = indexes.iter().map(|index| index.id).collect();
    let listed = service.index_builds.list(ids.clone(), service.new_uuid());
    crate::lock(&context.conn.slot.operation).build = Some(listed.build.clone());
    let (op, _) = context.operation(None)?;
    let megabytes = service.node.parameters.number(Param::IndexBuildMemoryMegabytes);
    let options = BuildOptions {
        memory_bytes_max: usize::try_from(megabytes).unwrap_or(usize::MAX).saturating_mul(1 << 20),
        spill_dir: service.spill_dir.clone(),
        interrupt: &context.interrupt,
        op: &op,
        progress: &listed.build.progress,
    };
    let result = build_indexes(&service.engine, collection, &ids, &options, |ws| {
        let Some(collection) = ws.catalog().by_id(collection).cloned() else {
            return Ok(());
        };
        for index in indexes {
            collection.state.start_index_use(index.id, crate::clock::now_ms());
            log(context, ws, &collection, index)?;
        }
        Ok(())
    });
    crate::lock(&context.conn.slot.operation).build = None;
    listed.end(&result);
    Ok(result?.commit)
}

/// Tells the oplog of a new index.
pub fn log(context: &Context<'_>, ws: &mut WriteSet, collection: &Collection, index: &Index) -> Result<()> {
    let ns = &collection.ns;
    if context.origin(&ns.db).is_some() {
        let mut command: Document = doc! { "createIndexes": ns.coll.clone() };
        for (name, value) in index.spec.as_raw().iter() {
            command.push(name, value);
        }
        let now_ms = crate::clock::now_ms();
        ws.oplog(Origin::default().command(&ns.db, Some(collection.uuid), &command, now_ms))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
