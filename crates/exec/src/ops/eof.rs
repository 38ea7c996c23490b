//! EOF: no rows.

use crate::batch::Batch;
use crate::operator::{Counters, Operator, Step};
use nestor_model::Result;

/// No rows: the collection does not exist, or nothing can match.
#[derive(Debug, Default)]
pub struct Eof(Counters);

impl Operator for Eof {
    fn next(&mut self, _: &mut Batch<'_>) -> Result<Step> {
        self.0.works += 1;
        self.0.is_eof = true;
        Ok(Step::Eof)
    }
    fn save(&mut self) {}
    fn stage(&self) -> &'static str {
        "EOF"
    }
    fn counters(&self) -> &Counters {
        &self.0
    }
}
