//! IDHACK: the one record with an `_id`, or one for each of several.

use super::key_lookup::IndexKeys;
use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step, singly};
use crate::point;
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch};
use crate::{catalog, keys};
use nestor_model::statement::{ROW, work};
use nestor_model::{Document, Result, Value, doc};
use nestor_planner::NodeKind;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// `_id`s that are looked up together.
const TOGETHER: usize = 64;

/// Looks up one `_id` after the other, or some together.
pub struct IdLookup {
    collection: Arc<Collection>,
    ids: std::vec::IntoIter<Value>,
    filter: Option<Arc<MatchExpr>>,
    /// Nothing but the `_id` is wanted of the documents, as it was asked for.
    only_ids: bool,
    counters: Counters,
}

impl IdLookup {
    /// A lookup in `collection`.
    pub fn new(collection: Arc<Collection>, plan: &nestor_planner::plan::IdLookup) -> Self {
        Self {
            collection,
            ids: vec![plan.id.clone()].into_iter(),
            filter: plan.filter.clone(),
            only_ids: false,
            counters: Counters::default(),
        }
    }

    /// A lookup of several in `collection`, which are different and neither null, arrays nor regular expressions; with `only_ids` the rows have
    /// the `_id` alone, and that as it was asked for.
    pub fn of_all(collection: Arc<Collection>, ids: Vec<Value>, only_ids: bool) -> Self {
        Self {
            collection,
            ids: ids.into_iter(),
            filter: None,
            only_ids,
            counters: Counters::default(),
        }
    }

    /// The index whose entries say which of the `_id`s there are, if nothing else is wanted.
    fn told_by(&self) -> Option<&Arc<Index>> {
        let is_told = self.only_ids && !self.collection.is_clustered();
        self.collection.id_index().filter(|_| is_told)
    }
}

impl Operator for IdLookup {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let is_first = self.counters.works == 0;
            if self.ids.len() > 0 && !is_first && !batch.spend()? {
                return Ok(Step::Pause);
            }
            let Some(id) = self.ids.next() else {
                self.counters.is_eof = true;
                return Ok(Step::Eof);
            };
            self.counters.works += 1;
            self.counters.keys_examined += 1;
            if let Some(index) = self.told_by() {
                let key = keys::id_key(id.as_ref(), catalog::id_collation(&self.collection)?.as_ref());
                if batch.view.get(index.tree, &key)?.is_none() {
                    continue;
                }
                self.counters.advanced += 1;
                return Ok(Step::Row(Row::computed(doc! { "_id": id })));
            }
            let Some((key, bytes)) = point::by_id(batch.view, &self.collection, id.as_ref())? else {
                continue;
            };
            self.counters.docs_examined += 1;
            if let Some(filter) = &self.filter {
                if !filter.matches(bytes.document().as_doc(), batch.op)? {
                    continue;
                }
            }
            self.counters.advanced += 1;
            self.counters.is_eof = self.ids.len() == 0;
            return Ok(Step::Row(Row::stored(key, bytes)));
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let collection = self.collection.clone();
        let Some(index) = collection
            .id_index()
            .filter(|_| !collection.is_clustered() && self.filter.is_none())
        else {
            return singly(self, batch, out);
        };
        let collation = catalog::id_collation(&collection)?;
        while !out.is_full() {
            if self.ids.len() == 0 {
                self.counters.is_eof = true;
                return Ok(Filled::Eof);
            }
            if self.counters.works > 0 && !batch.spend()? {
                return Ok(Filled::Pause);
            }
            let ids: Vec<Value> = self.ids.by_ref().take(out.room().min(TOGETHER)).collect();
            let mut encoded = IndexKeys::default();
            for id in &ids {
                work(ROW)?;
                keys::with_id_key(id.as_ref(), collation.as_ref(), |key, _| encoded.add_key(key));
            }
            self.counters.works += ids.len() as u64;
            self.counters.keys_examined += ids.len() as u64;
            let encoded: Vec<&[u8]> = (0..ids.len()).map(|at| encoded.get(at)).collect();
            let entries = batch.view.get_many(index.tree, &encoded)?;
            if self.only_ids {
                for (id, _) in ids.iter().zip(&entries).filter(|(_, entry)| entry.is_some()) {
                    self.counters.advanced += 1;
                    out.push_tried(|writer| {
                        writer.append("_id", id.as_ref());
                        Ok(())
                    })?;
                }
                continue;
            }
            // A unique index keeps the record key before the type bits.
            let records: Vec<&[u8]> = entries
                .iter()
                .flatten()
                .map(|entry| entry.get(..point::RECORD_ID_BYTES).unwrap_or(entry))
                .collect();
            let found = batch.view.get_many(collection.records, &records)?;
            for bytes in found.iter().flatten() {
                self.counters.docs_examined += 1;
                self.counters.advanced += 1;
                out.push_stored(bytes, || Ok(bytes.clone()))?;
            }
        }
        Ok(Filled::Full)
    }

    fn save(&mut self) {}

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::IdLookup, &self.counters).explained_by(self)
    }
}

impl Explain for IdLookup {
    fn plan_fields(&self, out: &mut Document) {
        out.push("keyPattern", doc! { "_id": 1 });
        out.push("indexName", "_id_");
        out.push("keysExamined", Value::count(self.counters.keys_examined));
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
