//! OR: the rows of several inputs, each record once.

use super::dedup::Dedup;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use nestor_model::{Document, Result};
use nestor_planner::NodeKind;

/// Pulls its inputs one after the other.
pub struct Or {
    inputs: Vec<BoxOperator>,
    at: usize,
    dedup: Dedup,
    counters: Counters,
}

impl Or {
    /// The union of `inputs`, whose rows have record keys.
    pub fn new(inputs: Vec<BoxOperator>) -> Self {
        Self {
            inputs,
            at: 0,
            dedup: Dedup::default(),
            counters: Counters::default(),
        }
    }
}

impl Operator for Or {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            let step = input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    if self.dedup.is_new(&row)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(row));
                    }
                }
                Step::Eof => self.at += 1,
                Step::Pause => return Ok(Step::Pause),
            }
        }
        self.counters.is_eof = true;
        Ok(Step::Eof)
    }

    fn save(&mut self) {
        self.dedup.rest();
        self.inputs.iter_mut().for_each(|input| input.save());
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Or, &self.counters).over_all(&self.inputs);
        report.holding(self.dedup.memory()).explained_by(self)
    }
}

impl Explain for Or {
    fn plan_fields(&self, out: &mut Document) {
        self.dedup.plan_fields(out);
    }
}
