//! IDHACK: the one record with an `_id`, or one for each of several.

use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::point;
use crate::row::Row;
use nestor_model::{Document, Result, Value, doc};
use nestor_planner::NodeKind;
use nestor_query::matcher::MatchExpr;
use nestor_storage::Collection;
use std::sync::Arc;

/// Looks up one `_id` after the other.
pub struct IdLookup {
    collection: Arc<Collection>,
    ids: std::vec::IntoIter<Value>,
    filter: Option<Arc<MatchExpr>>,
    counters: Counters,
}

impl IdLookup {
    /// A lookup in `collection`.
    pub fn new(collection: Arc<Collection>, plan: &nestor_planner::plan::IdLookup) -> Self {
        Self {
            collection,
            ids: vec![plan.id.clone()].into_iter(),
            filter: plan.filter.clone(),
            counters: Counters::default(),
        }
    }

    /// A lookup of several in `collection`, which are different and neither null, arrays nor regular expressions.
    pub fn of_all(collection: Arc<Collection>, ids: Vec<Value>) -> Self {
        Self {
            collection,
            ids: ids.into_iter(),
            filter: None,
            counters: Counters::default(),
        }
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
