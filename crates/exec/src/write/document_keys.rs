//! Keys of stored documents, for the verifier of data directories.

use crate::index_writer::IndexWriter;
use crate::{catalog, keys};
use nestor_model::{DocRef, RawDoc, Result, TimeSeries, Timestamp, ValueRef};
use nestor_query::collation::Collator;
use nestor_query::env::OpContext;
use nestor_query::timeseries;
use nestor_storage::check::{DocumentKeys, IndexKeys};
use nestor_storage::{Bytes, Collection};
use std::sync::Arc;

/// The keys that documents of a collection have, made by the code that writes them.
struct StoredKeys {
    writers: Arc<Vec<IndexWriter>>,
    id_collation: Option<Collator>,
    /// The documents are the buckets of a time-series collection.
    buckets: Option<TimeSeries>,
    /// Partial filters refer to nothing of an operation, not even to its time.
    op: OpContext,
}

/// How documents of `collection` become keys.
///
/// Errors: 2 for collations that this version does not know, those of parsing partial filters.
pub fn document_keys(collection: &Collection) -> Result<Box<dyn DocumentKeys>> {
    let prepared = catalog::prepared(collection)?;
    Ok(Box::new(StoredKeys {
        writers: prepared.writers.clone(),
        id_collation: prepared.indexes.id_collation.clone(),
        buckets: collection.buckets().cloned(),
        op: OpContext::new(0, Timestamp::default(), 0),
    }))
}

impl DocumentKeys for StoredKeys {
    fn record_key(&self, doc: RawDoc<'_>) -> Bytes {
        let id = doc.get("_id").unwrap_or(ValueRef::Null);
        keys::id_key(id, self.id_collation.as_ref())
    }

    fn document_fault(&self, doc: RawDoc<'_>) -> Option<String> {
        let why = timeseries::fault(doc, self.buckets.as_ref()?)?;
        Some(format!("the time-series bucket is not sound: {why}"))
    }

    fn index_keys(&self, index: usize, doc: RawDoc<'_>) -> Result<IndexKeys> {
        let (entries, multikey) = self.writers[index].entries(DocRef::Raw(doc), &self.op)?;
        Ok(IndexKeys {
            entries,
            multikey: multikey.components,
        })
    }
}
