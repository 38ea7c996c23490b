//! FETCH: the documents of rows that are index entries.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::{Document, Result, Value};
use nestor_planner::NodeKind;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{RecordReader, TreeId};
use std::sync::Arc;

/// Reads the record of each row and checks what the index could not.
pub type Fetch = Each<Fetching>;

/// The work of a [`Fetch`] on a row.
pub struct Fetching {
    records: RecordReader,
    filter: Option<Arc<MatchExpr>>,
    already_has: u64,
}

impl Fetch {
    /// Documents of `records` for the rows of `input`, if they match.
    pub fn new(input: BoxOperator, records: TreeId, filter: Option<Arc<MatchExpr>>) -> Self {
        let each = Fetching {
            records: RecordReader::new(records),
            filter,
            already_has: 0,
        };
        Self::over(input, each)
    }
}

impl EachRow for Fetching {
    fn kind(&self) -> NodeKind {
        NodeKind::Fetch
    }

    fn row(&mut self, mut row: Row, batch: &Batch<'_>, counters: &mut Counters) -> Result<Option<Row>> {
        if matches!(row.doc, RowDoc::Key(_) | RowDoc::Unread) {
            let Some(record) = &row.record else {
                return Ok(None);
            };
            counters.docs_examined += 1;
            // The record may be gone since the entry was read.
            let Some(bytes) = self.records.get(batch.view, record)? else {
                return Ok(None);
            };
            row.doc = RowDoc::Stored(bytes);
        } else {
            self.already_has += 1;
        }
        match &self.filter {
            Some(filter) => Ok(filter.matches(row.as_doc(), batch.op)?.then_some(row)),
            None => Ok(Some(row)),
        }
    }

    fn save(&mut self) {
        self.records.save();
    }

    fn plan_fields(&self, counters: &Counters, out: &mut Document) {
        if let Some(filter) = &self.filter {
            out.push("filter", filter.serialize());
        }
        out.push("docsExamined", Value::count(counters.docs_examined));
        out.push("alreadyHasObj", Value::count(self.already_has));
    }
}
