//! MATCH: rows that satisfy a condition.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use nestor_model::{Document, Result};
use nestor_query::matcher::{self, MatchExpr};
use std::sync::Arc;

/// Passes the rows that match.
pub struct Filter {
    input: BoxOperator,
    filter: matcher::Filter,
    counters: Counters,
}

impl Filter {
    /// Rows of `input` that match `filter`.
    pub fn new(input: BoxOperator, filter: Arc<MatchExpr>) -> Self {
        Self {
            input,
            filter: matcher::Filter::new(filter),
            counters: Counters::default(),
        }
    }
}

impl Operator for Filter {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    if self.filter.matches(row.as_doc(), batch.op)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(row));
                    }
                }
                Step::Eof => {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
                Step::Pause => return Ok(Step::Pause),
            }
        }
    }

    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "MATCH"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        out.push("filter", self.filter.expr().serialize());
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
