//! IDHACK: the one record with an `_id`.

use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::point;
use crate::row::Row;
use nestor_model::{Document, Result, Value, doc};
use nestor_planner::NodeKind;
use nestor_query::matcher::MatchExpr;
use nestor_storage::Collection;
use std::sync::Arc;

/// Looks up one `_id`.
pub struct IdLookup {
    collection: Arc<Collection>,
    id: Value,
    filter: Option<Arc<MatchExpr>>,
    counters: Counters,
}

impl IdLookup {
    /// A lookup in `collection`.
    pub fn new(collection: Arc<Collection>, plan: &nestor_planner::plan::IdLookup) -> Self {
        Self {
            collection,
            id: plan.id.clone(),
            filter: plan.filter.clone(),
            counters: Counters::default(),
        }
    }
}

impl Operator for IdLookup {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.counters.is_eof {
            return Ok(Step::Eof);
        }
        self.counters.works += 1;
        self.counters.is_eof = true;
        self.counters.keys_examined += 1;
        let Some((key, bytes)) = point::by_id(batch.view, &self.collection, self.id.as_ref())? else {
            return Ok(Step::Eof);
        };
        self.counters.docs_examined += 1;
        if let Some(filter) = &self.filter {
            if !filter.matches(bytes.document().as_doc(), batch.op)? {
                return Ok(Step::Eof);
            }
        }
        self.counters.advanced += 1;
        Ok(Step::Row(Row::stored(key, bytes)))
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
