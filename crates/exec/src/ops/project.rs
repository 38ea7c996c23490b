//! PROJECTION: what becomes of each row.

use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::columns::made::Shape;
use crate::columns::projected::projected;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Pull, one_by_one};
use crate::row::{Row, RowDoc};
use crate::row_batch::{Content, Filled, RowBatch, RowRef, Wanted};
use nestor_model::statement::{ROW, work};
use nestor_model::{DocRef, Document, Error, Result, bail};
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
    /// The input may give rows of columns that were computed, and the consumer takes such.
    by_columns: bool,
    /// What was computed of the last of them.
    kept: Kept,
}

impl Project {
    /// Projects the rows of `input`; `positional` is the filter whose array position the projection uses.
    pub fn new(input: BoxOperator, projection: Arc<Projection>, positional: Option<Arc<MatchExpr>>) -> Self {
        Self::over(input, Projecting::new(projection, positional))
    }

    /// The same over an input that gives rows of columns that were computed to who takes such, as its own consumer does.
    pub(crate) fn by_columns(input: BoxOperator, projection: Arc<Projection>) -> Self {
        let each = Projecting {
            by_columns: true,
            ..Projecting::new(projection, None)
        };
        Self::over(input, each)
    }
}

impl Projecting {
    fn new(projection: Arc<Projection>, positional: Option<Arc<MatchExpr>>) -> Self {
        let mut deps = Deps::default();
        projection.dependencies(&mut deps);
        Self {
            projection,
            positional,
            reads_record_id: deps.metadata.contains("recordId"),
            looked_at: None,
            by_columns: false,
            kept: Kept::default(),
        }
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

impl Projecting {
    /// Projects rows of columns: as such, or as documents where they have to be.
    fn push_columns(&mut self, rows: &ColumnRows, batch: &Batch<'_>, out: &mut RowBatch) -> Result<()> {
        if let Some(made) = projected(&self.projection, rows)? {
            self.kept.set(made.segment.bytes())?;
            out.push_columns(made);
            return Ok(());
        }
        let shape = Shape::of_computed(&rows.segment);
        let Some(maker) = shape.maker(&rows.segment) else {
            bail!(InternalError, "rows of columns that were not computed");
        };
        for places in rows.chunks() {
            for row in places.map(|row| row) {
                work(ROW)?;
                let document = maker.document(row);
                let row = RowRef {
                    doc: DocRef::Raw(document.as_raw()),
                    meta: None,
                    record: None,
                };
                self.push(row, batch, out)?;
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
            if self.by_columns && out.takes_columns() {
                rows.take_columns();
            }
            let filled = rows.with_room(out.room(), |rows| input.next_batch(batch, rows))?;
            for content in rows.contents() {
                let pushed = match content {
                    Content::Row(row) => self.push(row, batch, out),
                    Content::Columns(rows) => self.push_columns(rows, batch, out),
                    Content::Bucket(_) => bail!(InternalError, "a bucket that nobody asked for"),
                };
                pushed.map_err(in_find)?;
            }
            self.looked_at = Some(rows);
            filled
        };
        counters.pulled_batch(out.len() - before, filled);
        counters.advanced += (out.len() - before) as u64;
        Ok(filled)
    }

    fn save(&mut self) {
        self.kept.rest();
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("transformBy", self.projection.specification().to_buf());
    }
}
