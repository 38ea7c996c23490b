//! RETURN_KEY: the index keys by which rows were found.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::RowDoc;
use nestor_model::Result;

/// Each row becomes its index key, or an empty document when no index led to it.
pub struct ReturnKey {
    input: BoxOperator,
    counters: Counters,
}

impl ReturnKey {
    /// Over the rows of `input`, whose scans keep their keys.
    pub fn new(input: BoxOperator) -> Self {
        Self {
            input,
            counters: Counters::default(),
        }
    }
}

impl Operator for ReturnKey {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        let Step::Row(mut row) = step else {
            self.counters.is_eof |= matches!(step, Step::Eof);
            return Ok(step);
        };
        self.counters.advanced += 1;
        let key = row.meta.as_mut().and_then(|meta| meta.index_key.take());
        row.doc = RowDoc::Owned(key.unwrap_or_default());
        Ok(Step::Row(row))
    }

    fn is_done(&self) -> bool {
        self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "RETURN_KEY"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
