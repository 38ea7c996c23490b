//! `system.profile`: where a database keeps what its profiler recorded.
//!
//! A capped collection without an index, whose documents have no `_id`. It belongs to this node alone: nothing of it is
//! in the oplog.

use crate::database::Database;
use nestor_exec::Interrupt;
use nestor_exec::write::{Writer, with_retry};
use nestor_model::{CollectionOptions, Document, Namespace, RawDocBuf, Result, bail, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Collection, View, WriteSet};
use std::sync::Arc;

/// Bytes of a `system.profile` that nobody made larger.
const SIZE: i64 = 1 << 20;

/// The name of the collection.
pub const COLLECTION: &str = "system.profile";

/// Makes the collection of a database, if there is none.
///
/// Errors: 48 when something else has its name; those of the interrupt, while `fsync` has locked writes out.
pub fn prepare(database: &Database, db: &str, interrupt: &Interrupt) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    if let Some(found) = database.engine.snapshot().catalog().get(&ns) {
        if !found.is_capped() {
            bail!(NamespaceExists, "{ns} exists but isn't capped");
        }
        return Ok(());
    }
    let uuid = database.new_uuid();
    with_retry(interrupt, |obstacle| {
        let _admitted = database.node.gates.admission.enter(interrupt)?;
        let mut ws = database.engine.begin();
        open(&mut ws, &ns, uuid)?;
        obstacle.commit(&database.engine, ws)?;
        Ok(())
    })
}

fn open(ws: &mut WriteSet, ns: &Namespace, uuid: [u8; 16]) -> Result<Arc<Collection>> {
    match ws.catalog().get(ns) {
        Some(found) => Ok(found.clone()),
        None => {
            let options = CollectionOptions::parse(doc! { "capped": true, "size": SIZE })?;
            Ok(ws.create_collection(ns, uuid, options)?)
        }
    }
}

/// Adds a document, unless `fsync` has locked writes out. It is in a commit of its own, whatever became of the operation it
/// describes.
pub fn insert(database: &Database, db: &str, doc: &Document) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    let uuid = database.new_uuid();
    let doc: RawDocBuf = doc.to_raw();
    let op = OpContext::new(crate::clock::now_ms(), database.last_time(), 0);
    with_retry(&Interrupt::default(), |obstacle| {
        let Some(_admitted) = database.node.gates.admission.try_enter() else {
            return Ok(());
        };
        let mut ws = database.engine.begin();
        let collection = open(&mut ws, &ns, uuid)?;
        Writer::new(&mut ws, collection, &op, None)?.insert(doc.clone(), None)?;
        obstacle.commit(&database.engine, ws)?;
        Ok(())
    })
}
