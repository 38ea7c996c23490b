//! Writes of single documents: record, index entries, counts and oplog entry in one write set.
//!
//! Reading order: [`Writer`] (what all writes share), `insert`, `update`, `delete`, `entries` (index
//! upkeep), [`oplog`] (the entries), `capped`, [`build`] (indexes of filled collections), [`admission`] (who
//! may commit), [`collection_locks`] (who may change a collection), `document_keys` (what the verifier of data directories needs to know).
//!
//! Nothing here but [`build`] commits. A failed write may have changed part of the write set: the caller takes a
//! savepoint before, or drops the write set.

pub mod admission;
pub mod build;
mod capped;
pub mod collection_locks;
mod delete;
mod document_keys;
mod entries;
mod insert;
pub mod oplog;
mod retry;
mod update;

pub use document_keys::document_keys;
pub use retry::{Obstacle, check_wait, with_retry, with_retry_within};
pub use update::Changed;

use crate::catalog;
use crate::index_writer::IndexWriter;
use nestor_model::Result;
use nestor_query::collation::Collator;
use nestor_query::env::OpContext;
use nestor_storage::{Collection, WriteSet};
use oplog::Origin;
use std::sync::Arc;

/// Writes to one collection through one write set.
pub struct Writer<'w> {
    /// Where the changes go.
    pub ws: &'w mut WriteSet,
    /// The collection.
    pub collection: Arc<Collection>,
    /// Its indexes, ready to make keys; one per index of the collection, in its order.
    pub indexes: Arc<Vec<IndexWriter>>,
    /// The collation by which it tells `_id`s apart.
    id_collation: Option<Collator>,
    /// Time of the operation.
    pub op: &'w OpContext,
    /// The origin of the writes, for the oplog; `None` leaves no oplog entry (collections of database `local`).
    pub origin: Option<Origin>,
    /// Index entries added by this writer.
    pub keys_inserted: u64,
    /// Index entries removed by this writer.
    pub keys_deleted: u64,
}

impl<'w> Writer<'w> {
    /// A writer to `collection`. The commit conflicts when the collection's catalog entry changes meanwhile.
    pub fn new(
        ws: &'w mut WriteSet,
        collection: Arc<Collection>,
        op: &'w OpContext,
        origin: Option<Origin>,
    ) -> Result<Self> {
        let prepared = catalog::prepared(&collection)?;
        let (indexes, id_collation) = (prepared.writers.clone(), prepared.indexes.id_collation.clone());
        ws.require_collection(collection.id);
        Ok(Self {
            ws,
            collection,
            indexes,
            id_collation,
            op,
            origin,
            keys_inserted: 0,
            keys_deleted: 0,
        })
    }

    /// Goes on with another collection of the same database.
    ///
    /// Errors: those of its indexes.
    pub fn turn_to(&mut self, collection: Arc<Collection>) -> Result<()> {
        let prepared = catalog::prepared(&collection)?;
        self.indexes = prepared.writers.clone();
        self.id_collation = prepared.indexes.id_collation.clone();
        self.ws.require_collection(collection.id);
        self.collection = collection;
        Ok(())
    }
}
