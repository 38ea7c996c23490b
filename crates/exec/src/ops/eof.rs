//! EOF: no rows.

use crate::batch::Batch;
use crate::operator::{Counters, Operator, Report, Step};
use nestor_model::Result;
use nestor_planner::NodeKind;

/// No rows: the collection does not exist, or nothing can match.
#[derive(Debug, Default)]
pub struct Eof(Counters);

impl Operator for Eof {
    fn next(&mut self, _: &mut Batch<'_>) -> Result<Step> {
        self.0.works += 1;
        Ok(self.0.gave(Step::Eof))
    }

    fn save(&mut self) {}

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Eof, &self.0)
    }
}
