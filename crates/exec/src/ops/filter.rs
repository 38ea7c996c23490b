//! MATCH: rows that satisfy a condition.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::Row;
use nestor_model::{Document, Result};
use nestor_planner::NodeKind;
use nestor_query::matcher::{self, MatchExpr};
use std::sync::Arc;

/// Passes the rows that match.
pub type Filter = Each<Matching>;

/// The condition of a [`Filter`].
pub struct Matching(matcher::Filter);

impl Filter {
    /// Rows of `input` that match `filter`.
    pub fn new(input: BoxOperator, filter: Arc<MatchExpr>) -> Self {
        Self::over(input, Matching(matcher::Filter::new(filter)))
    }
}

impl EachRow for Matching {
    fn kind(&self) -> NodeKind {
        NodeKind::Match
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        Ok(self.0.matches(row.as_doc(), batch.op)?.then_some(row))
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("filter", self.0.expr().serialize());
    }
}
