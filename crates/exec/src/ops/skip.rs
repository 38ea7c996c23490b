//! SKIP: leaves out the first rows.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::Row;
use nestor_model::{Document, Result, Value};
use nestor_planner::NodeKind;

/// Leaves out the first rows.
pub type Skip = Each<Skipping>;

/// How many rows a [`Skip`] leaves out.
pub struct Skipping {
    skip: u64,
    left: u64,
}

impl Skip {
    /// Rows of `input` after the first `skip`.
    pub fn new(input: BoxOperator, skip: u64) -> Self {
        Self::over(input, Skipping { skip, left: skip })
    }
}

impl EachRow for Skipping {
    fn kind(&self) -> NodeKind {
        NodeKind::Skip
    }

    fn row(&mut self, row: Row, _: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        if self.left == 0 {
            return Ok(Some(row));
        }
        self.left -= 1;
        Ok(None)
    }

    fn plan_fields(&self, _: &Counters, out: &mut Document) {
        out.push("skipAmount", Value::count(self.skip));
    }
}
