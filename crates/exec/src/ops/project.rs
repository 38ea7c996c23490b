//! PROJECTION: what becomes of each row.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Pull, one_by_one};
use crate::row::{Row, RowDoc};
use crate::row_batch::{Filled, RowBatch, RowRef, Wanted};
use nestor_model::{DocRef, Document, Error, Result};
use nestor_planner::NodeKind;
use nestor_query::env::Env;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use std::sync::Arc;

/// Applies a projection to each row.
pub type Project = Each<Projecting>;

/// The work of a [`Project`] on a row.
pub struct Projecting {
    projection: Arc<Projection>,
    positional: Option<Arc<MatchExpr>>,
    /// The projection has `{$meta: "recordId"}`.
    reads_record_id: bool,
    /// Rows of the input that are looked at together.
    looked_at: Option<RowBatch>,
}

impl Project {
    /// Projects the rows of `input`; `positional` is the filter whose array position the projection uses.
    pub fn new(input: BoxOperator, projection: Arc<Projection>, positional: Option<Arc<MatchExpr>>) -> Self {
        let mut deps = Deps::default();
        projection.dependencies(&mut deps);
        let each = Projecting {
            projection,
            positional,
            reads_record_id: deps.metadata.contains("recordId"),
            looked_at: None,
        };
        Self::over(input, each)
    }
}

impl Projecting {
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

impl Projecting {
    fn push(&self, row: RowRef<'_>, batch: &Batch<'_>, out: &mut RowBatch) -> Result<()> {
        match row.doc {
            DocRef::Raw(raw) if self.projection.is_simple() && row.meta.is_none() => {
                out.push_written(|writer| self.projection.apply_raw(raw, writer));
            }
            DocRef::Raw(raw) if self.projection.is_written() && row.meta.is_none() => {
                let mut env = Env::new(row.doc, batch.op);
                out.push_tried(|writer| self.projection.write(raw, &mut env, writer))?;
            }
            doc => {
                let mut env = Env::new(doc, batch.op).with_meta(row.meta);
                let doc = self.projection.apply(&mut env, None)?;
                out.push(Row {
                    doc: RowDoc::Owned(doc),
                    record: None,
                    meta: row.meta.cloned().map(Box::new),
                });
            }
        }
        Ok(())
    }
}

fn in_find(error: Error) -> Error {
    error.context("Executor error during find command")
}

impl EachRow for Projecting {
    fn kind(&self) -> NodeKind {
        NodeKind::of_projection(&self.projection)
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let row = self.apply(row, batch);
        row.map(Some).map_err(in_find)
    }

    fn rows(&mut self, input: &mut BoxOperator, pull: Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled> {
        // Rows of a batch have no records.
        if self.reads_record_id || self.positional.is_some() {
            return one_by_one(self, input, pull, out);
        }
        let Pull { batch, counters } = pull;
        let before = out.len();
        // Without expressions nothing can go wrong, and as many rows go out as come in.
        let filled = if out.wanted() == Wanted::Number && self.projection.is_simple() {
            input.next_batch(batch, out)?
        } else {
            let mut rows = self
                .looked_at
                .take()
                .unwrap_or_else(|| RowBatch::new(Wanted::Documents));
            rows.clear();
            let filled = rows.with_room(out.room(), |rows| input.next_batch(batch, rows))?;
            for row in rows.iter() {
                self.push(row, batch, out).map_err(in_find)?;
            }
            self.looked_at = Some(rows);
            filled
        };
        counters.pulled_batch(out.len() - before, filled);
        counters.advanced += (out.len() - before) as u64;
        Ok(filled)
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("transformBy", self.projection.specification().to_buf());
    }
}
