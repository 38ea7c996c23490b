//! LIMIT: stops after some rows.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use nestor_model::{Document, Result, Value};

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
            self.counters.is_eof = true;
            return Ok(Step::Eof);
        }
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        match &step {
            Step::Row(_) => {
                self.left -= 1;
                self.counters.advanced += 1;
            }
            Step::Eof => self.counters.is_eof = true,
            Step::Pause => {}
        }
        Ok(step)
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "LIMIT"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        out.push("limitAmount", Value::count(self.limit));
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
