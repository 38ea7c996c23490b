//! `$sample`: the first rows of a random order.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::ops::{Limit, Sort};
use nestor_model::Result;
use nestor_query::sort::{SortBy, SortPart, SortSpec};
use std::sync::Arc;

/// Gives each row a random number, sorts by it and keeps `size`.
pub(super) fn build(input: BoxOperator, size: u64) -> BoxOperator {
    let spec = SortSpec::of(vec![SortPart {
        by: SortBy::Meta("randVal"),
        ascending: true,
    }]);
    let numbered = Box::new(Number {
        input,
        counters: Counters::default(),
    });
    let sorted = Box::new(Sort::new(numbered, Arc::new(spec), Some(size), false));
    Box::new(Limit::new(sorted, size))
}

struct Number {
    input: BoxOperator,
    counters: Counters,
}

impl Operator for Number {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.counters.works += 1;
        let step = self.input.next(batch)?;
        Ok(match step {
            Step::Row(mut row) => {
                row.meta.get_or_insert_default().rand_val = Some(batch.op.random_f64());
                self.counters.advanced += 1;
                Step::Row(row)
            }
            Step::Eof => {
                self.counters.is_eof = true;
                Step::Eof
            }
            Step::Pause => Step::Pause,
        })
    }

    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "$sample"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
