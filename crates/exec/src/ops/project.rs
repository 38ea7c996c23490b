//! PROJECTION: what becomes of each row.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::{Row, RowDoc};
use nestor_model::{DocRef, Document, Error, Result};
use nestor_query::env::Env;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use std::sync::Arc;

/// Applies a projection to each row.
pub struct Project {
    input: BoxOperator,
    projection: Arc<Projection>,
    positional: Option<Arc<MatchExpr>>,
    /// The projection has `{$meta: "recordId"}`.
    reads_record_id: bool,
    counters: Counters,
}

impl Project {
    /// Projects the rows of `input`; `positional` is the filter whose array position the projection uses.
    pub fn new(input: BoxOperator, projection: Arc<Projection>, positional: Option<Arc<MatchExpr>>) -> Self {
        let mut deps = Deps::default();
        projection.dependencies(&mut deps);
        Self {
            input,
            projection,
            positional,
            reads_record_id: deps.metadata.contains("recordId"),
            counters: Counters::default(),
        }
    }

    fn apply(&self, mut row: Row, batch: &Batch<'_>) -> Result<Row> {
        if self.reads_record_id {
            let id = row
                .record
                .as_deref()
                .and_then(|key| key.try_into().ok())
                .map(u64::from_be_bytes);
            row.meta.get_or_insert_default().record_id = id;
        }
        let details = match &self.positional {
            Some(filter) => filter.matches_with_position(row.as_doc(), batch.op)?,
            None => None,
        };
        let doc = match row.as_doc() {
            DocRef::Raw(raw) if self.projection.is_simple() => RowDoc::Raw(self.projection.apply_raw_to_buf(raw)),
            doc => {
                let mut env = Env::new(doc, batch.op).with_meta(row.meta.as_deref());
                RowDoc::Owned(self.projection.apply(&mut env, details.as_ref())?)
            }
        };
        Ok(Row {
            doc,
            record: row.record,
            meta: row.meta,
        })
    }
}

impl Operator for Project {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        match step {
            Step::Row(row) => {
                let row = self
                    .apply(row, batch)
                    .map_err(|error: Error| error.context("Executor error during find command"))?;
                self.counters.advanced += 1;
                Ok(Step::Row(row))
            }
            Step::Eof => {
                self.counters.is_eof = true;
                Ok(Step::Eof)
            }
            Step::Pause => Ok(Step::Pause),
        }
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }

    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        self.projection.stage()
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        out.push("transformBy", self.projection.specification().to_buf());
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
