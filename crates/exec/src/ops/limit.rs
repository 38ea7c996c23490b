//! LIMIT: stops after some rows.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::row_batch::{Filled, RowBatch};
use nestor_model::{Document, Result, Value};
use nestor_planner::NodeKind;

/// Passes the first `limit` rows and then pulls no more.
pub struct Limit {
    input: BoxOperator,
    limit: u64,
    left: u64,
    counters: Counters,
}

impl Limit {
    /// The first `limit` rows of `input`.
    pub fn new(input: BoxOperator, limit: u64) -> Self {
        Self {
            input,
            limit,
            left: limit,
            counters: Counters::default(),
        }
    }
}

impl Operator for Limit {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.left == 0 {
            self.counters.works += 1;
            return Ok(self.counters.gave(Step::Eof));
        }
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        self.left -= u64::from(matches!(step, Step::Row(_)));
        Ok(self.counters.gave(step))
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let (before, left) = (out.len(), usize::try_from(self.left).unwrap_or(usize::MAX));
        let filled = match left {
            0 => Filled::Eof,
            _ => out.with_room(left, |out| self.input.next_batch(batch, out))?,
        };
        let rows = (out.len() - before) as u64;
        self.left -= rows;
        self.counters.pulled_batch(out.len() - before, filled);
        self.counters.advanced += rows;
        self.counters.is_eof |= filled == Filled::Eof;
        Ok(filled)
    }

    fn expect(&mut self, rows: usize) {
        self.input
            .expect(rows.min(usize::try_from(self.left).unwrap_or(usize::MAX)));
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Limit, &self.counters).over(&*self.input);
        report.explained_by(self)
    }
}

impl Explain for Limit {
    fn plan_fields(&self, out: &mut Document) {
        out.push("limitAmount", Value::count(self.limit));
    }
}
