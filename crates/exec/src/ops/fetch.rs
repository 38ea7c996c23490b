//! FETCH: the documents of rows that are index entries.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::{Row, RowDoc};
use nestor_model::{Document, Result, Value};
use nestor_query::matcher::MatchExpr;
use nestor_storage::{RecordReader, TreeId};
use std::sync::Arc;

/// Reads the record of each row and checks what the index could not.
pub struct Fetch {
    input: BoxOperator,
    records: RecordReader,
    filter: Option<Arc<MatchExpr>>,
    already_has: u64,
    counters: Counters,
}

impl Fetch {
    /// Documents of `records` for the rows of `input`, if they match.
    pub fn new(input: BoxOperator, records: TreeId, filter: Option<Arc<MatchExpr>>) -> Self {
        Self {
            input,
            records: RecordReader::new(records),
            filter,
            already_has: 0,
            counters: Counters::default(),
        }
    }

    /// The row with its document; `None` when the record is gone since the entry was read.
    fn fetch(&mut self, row: Row, batch: &Batch<'_>) -> Result<Option<Row>> {
        if !matches!(row.doc, RowDoc::Key(_) | RowDoc::Unread) {
            self.already_has += 1;
            return Ok(Some(row));
        }
        let Some(record) = &row.record else {
            return Ok(None);
        };
        self.counters.docs_examined += 1;
        let found = self.records.get(batch.view, record)?;
        Ok(found.map(|bytes| Row {
            doc: RowDoc::Stored(bytes),
            record: row.record,
            meta: row.meta,
        }))
    }
}

impl Operator for Fetch {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    let Some(row) = self.fetch(row, batch)? else {
                        continue;
                    };
                    if let Some(filter) = &self.filter {
                        if !filter.matches(row.as_doc(), batch.op)? {
                            continue;
                        }
                    }
                    self.counters.advanced += 1;
                    return Ok(Step::Row(row));
                }
                Step::Eof => {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
                Step::Pause => return Ok(Step::Pause),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.records.save();
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "FETCH"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        if let Some(filter) = &self.filter {
            out.push("filter", filter.serialize());
        }
        out.push("docsExamined", Value::count(self.counters.docs_examined));
        out.push("alreadyHasObj", Value::count(self.already_has));
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
