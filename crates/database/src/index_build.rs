//! Making indexes and filling them: those of small collections with the commit that makes them, others beside the
//! writers.

use crate::audit::changes::Change;
use crate::parameters::Param;
use crate::statement::Statement;
use nestor_exec::index_writer::IndexWriter;
use nestor_exec::write::Writer;
use nestor_exec::write::build::{BuildOptions, BuildProgress, Built, build_indexes};
use nestor_exec::write::oplog::Origin;
use nestor_model::{Document, Error, ErrorCode, IndexSpec, Namespace, Result, Value, bail, doc};
use nestor_storage::{Bytes, Collection, CollectionId, Commit, Index, IndexId, View, WriteSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
pub fn at_once(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, spec: IndexSpec) -> Result<Arc<Index>> {
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    ws.require_unwritten(collection.id);
    let index = ws.create_index(collection.id, spec)?;
    collection.state.start_index_use(index.id, crate::clock::now_ms());
    let index_writer = IndexWriter::new(&collection, &index)?;
    let (op, _) = statement.operation(None)?;
    let mut cursor = ws.cursor(collection.records);
    let mut writer = Writer::new(ws, collection, &op, None)?;
    let mut more = cursor.first()?;
    let mut interrupt = statement.interrupt.paced();
    while more {
        interrupt.check()?;
        let record = Bytes::copy_from(cursor.key());
        let doc = cursor.value_bytes()?;
        writer.add_entries_of(&index_writer, doc.document().as_doc(), &record)?;
        more = cursor.next()?;
    }
    Ok(index)
}

/// Fills indexes that [`WriteSet::start_index`] made, and makes them ready. They are gone if that fails, or as soon as there is
/// room for it.
///
/// Errors: see [`build_indexes`].
pub fn beside_writers(statement: &Statement<'_>, collection: CollectionId, indexes: &[Arc<Index>]) -> Result<Commit> {
    let database = statement.database;
    let ids: Vec<_> = indexes.iter().map(|index| index.id).collect();
    let listed = database.index_builds.list(ids.clone(), database.new_uuid());
    crate::lock(&statement.slot.operation).build = Some(listed.build.clone());
    let begun = Instant::now();
    let ns = database
        .engine
        .snapshot()
        .catalog()
        .by_id(collection)
        .map(|c| c.ns.clone());
    let result = build(statement, collection, indexes, &ids, &listed.build.progress);
    if result.is_err() {
        database.index_builds.leave(&database.engine, collection, &ids);
    }
    crate::lock(&statement.slot.operation).build = None;
    listed.end(&result);
    note_end(statement, collection, indexes, &result, begun.elapsed());
    audit_end(statement, &ns, indexes, result.as_ref().err().map(Error::code));
    Ok(result?.commit)
}

fn build(
    statement: &Statement<'_>,
    collection: CollectionId,
    indexes: &[Arc<Index>],
    ids: &[IndexId],
    progress: &BuildProgress,
) -> Result<Built> {
    let database = statement.database;
    let (op, _) = statement.operation(None)?;
    let megabytes = database.node.parameters.number(Param::IndexBuildMemoryMegabytes);
    let megabytes = usize::try_from(megabytes).unwrap_or(usize::MAX);
    let options = BuildOptions {
        memory_bytes_max: statement.build_bytes_max.unwrap_or(megabytes.saturating_mul(1 << 20)),
        spill_dir: database.spill_dir.clone(),
        interrupt: &statement.interrupt,
        lock_timeout: statement.lock_timeout.get(),
        op: &op,
        admission: &database.node.gates.admission,
        locks: &database.node.gates.collections,
        progress,
    };
    build_indexes(&database.engine, collection, ids, &options, |ws| {
        let Some(collection) = ws.catalog().by_id(collection).cloned() else {
            return Ok(());
        };
        for index in indexes {
            collection.state.start_index_use(index.id, crate::clock::now_ms());
            log(statement, ws, &collection, index)?;
        }
        Ok(())
    })
}

/// Tells the audit log how a build ended.
fn audit_end(statement: &Statement<'_>, ns: &Option<Namespace>, indexes: &[Arc<Index>], error: Option<ErrorCode>) {
    let Some(ns) = ns.as_ref().filter(|_| statement.database.node.audit().is_on()) else {
        return;
    };
    let ended = indexes.iter().map(|index| Change::BuildEnded {
        ns: ns.clone(),
        name: index.name.clone(),
        spec: index.spec.listed().clone().into(),
        error,
    });
    statement.catalog_changes.borrow_mut().extend(ended);
}

/// Tells the log how a build ended.
fn note_end(
    statement: &Statement<'_>,
    collection: CollectionId,
    indexes: &[Arc<Index>],
    result: &Result<Built>,
    elapsed: Duration,
) {
    let snapshot = statement.database.engine.snapshot();
    let ns = snapshot.catalog().by_id(collection).map(|c| c.ns.to_string());
    let names: Vec<_> = indexes.iter().map(|index| Value::from(index.name.clone())).collect();
    let mut attr = doc! { "namespace": ns, "indexes": names, "durationMillis": elapsed.as_millis() as i64 };
    let log = statement.database.node.log();
    let ctx = format!("conn{}", statement.slot.id);
    match result {
        Ok(built) => {
            attr.push("keys", built.keys as i64);
            attr.push("spilledBytes", built.spilled.0 as i64);
            attr.push("drainedRecords", built.drained.1 as i64);
            attr.push("drainRounds", i64::from(built.drained.0));
            log.info("INDEX", 20345, &ctx, "Index build: done building", attr);
        }
        Err(error) => {
            attr.push("error", error.to_string());
            log.info("INDEX", 4656003, &ctx, "Index build: failed", attr);
        }
    }
}

/// Tells the oplog of a new index.
pub fn log(statement: &Statement<'_>, ws: &mut WriteSet, collection: &Collection, index: &Index) -> Result<()> {
    let ns = &collection.ns;
    if statement.origin(&ns.db).is_some() {
        let mut command: Document = doc! { "createIndexes": ns.coll.clone() };
        for (name, value) in index.spec.listed().as_raw().iter() {
            command.push(name, value);
        }
        let now_ms = crate::clock::now_ms();
        ws.oplog(Origin::default().command(&ns.db, Some(collection.uuid), &command, now_ms))?;
    }
    Ok(())
}
