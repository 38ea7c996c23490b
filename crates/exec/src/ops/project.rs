//! PROJECTION: what becomes of each row.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::{DocRef, Document, Error, Result};
use nestor_planner::NodeKind;
use nestor_query::env::Env;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use std::sync::Arc;

/// Applies a projection to each row.
pub type Project = Each<Projecting>;

/// What a [`Project`] does with a row.
pub struct Projecting {
    projection: Arc<Projection>,
    positional: Option<Arc<MatchExpr>>,
    /// The projection has `{$meta: "recordId"}`.
    reads_record_id: bool,
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

impl EachRow for Projecting {
    fn kind(&self) -> NodeKind {
        NodeKind::of_projection(&self.projection)
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        let row = self.apply(row, batch);
        row.map(Some)
            .map_err(|error: Error| error.context("Executor error during find command"))
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("transformBy", self.projection.specification().to_buf());
    }
}
