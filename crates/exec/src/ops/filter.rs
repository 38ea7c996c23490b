//! MATCH: rows that satisfy a condition.

use crate::batch::Batch;
use crate::columns::filter::ColumnFilter;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Pull};
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch, RowRef, Wanted};
use nestor_model::{Document, Result};
use nestor_planner::NodeKind;
use nestor_query::matcher::{self, MatchExpr};
use std::sync::Arc;

/// Passes the rows that match.
pub type Filter = Each<Matching>;

/// The condition of a [`Filter`].
pub struct Matching {
    filter: matcher::Filter,
    /// Rows to look at when only the number of those that match is wanted.
    looked_at: Option<RowBatch>,
    /// The condition of rows of columns, where the input may give such.
    columns: Option<ColumnFilter>,
}

impl Filter {
    /// Rows of `input` that match `filter`.
    pub fn new(input: BoxOperator, filter: Arc<MatchExpr>) -> Self {
        Self::of(input, filter, None)
    }

    /// The same of rows of columns as well, where the consumer takes these.
    pub(crate) fn by_columns(input: BoxOperator, filter: Arc<MatchExpr>) -> Self {
        let columns = ColumnFilter::of(&filter);
        Self::of(input, filter, columns)
    }

    fn of(input: BoxOperator, filter: Arc<MatchExpr>, columns: Option<ColumnFilter>) -> Self {
        let each = Matching {
            filter: matcher::Filter::new(filter),
            looked_at: None,
            columns,
        };
        Self::over(input, each)
    }
}

impl Matching {
    /// Appends the rows of one batch of the input that match.
    fn some(&mut self, input: &mut BoxOperator, pull: &mut Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled> {
        let filter = &self.filter;
        let op = pull.batch.op;
        if out.wanted() == Wanted::Documents {
            let (from, slots) = (out.len(), out.slots());
            let filled = input.next_batch(pull.batch, out)?;
            pull.counters.pulled_batch(out.len() - from, filled);
            if let Some(columns) = self.columns.as_ref().filter(|_| out.takes_columns()) {
                let matches = |row: RowRef<'_>| filter.matches(row.doc, op);
                out.retain_with_columns(slots, matches, |rows| columns.narrow(rows, op))?;
                return Ok(filled);
            }
            out.retain_from(from, |row| filter.matches(row.doc, op))?;
            return Ok(filled);
        }
        let rows = self.looked_at.get_or_insert_with(|| RowBatch::new(Wanted::Documents));
        rows.clear();
        let filled = rows.with_room(out.room(), |rows| input.next_batch(pull.batch, rows))?;
        pull.counters.pulled_batch(rows.len(), filled);
        rows.retain_from(0, |row| filter.matches(row.doc, op))?;
        out.push_number(rows.len());
        Ok(filled)
    }
}

impl EachRow for Matching {
    fn kind(&self) -> NodeKind {
        NodeKind::Match
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        Ok(self.filter.matches(row.as_doc(), batch.op)?.then_some(row))
    }

    fn rows(&mut self, input: &mut BoxOperator, mut pull: Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled> {
        let before = out.len();
        loop {
            let filled = self.some(input, &mut pull, out)?;
            if filled != Filled::Full || out.len() > before {
                pull.counters.advanced += (out.len() - before) as u64;
                return Ok(filled);
            }
        }
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("filter", self.filter.expr().serialize());
    }
}
