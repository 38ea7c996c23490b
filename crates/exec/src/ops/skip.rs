//! SKIP: leaves out the first rows.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use nestor_model::{Document, Result, Value};

/// Leaves out the first `skip` rows.
pub struct Skip {
    input: BoxOperator,
    skip: u64,
    left: u64,
    counters: Counters,
}

impl Skip {
    /// Rows of `input` after the first `skip`.
    pub fn new(input: BoxOperator, skip: u64) -> Self {
        Self {
            input,
            skip,
            left: skip,
            counters: Counters::default(),
        }
    }
}

impl Operator for Skip {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(_) if self.left > 0 => self.left -= 1,
                Step::Row(row) => {
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

    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "SKIP"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        out.push("skipAmount", Value::count(self.skip));
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
