//! OR: the rows of several inputs, each record once.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use nestor_model::{Document, Result};
use nestor_storage::Bytes;
use std::collections::HashSet;

/// Pulls its inputs one after the other.
pub struct Or {
    inputs: Vec<BoxOperator>,
    at: usize,
    seen: HashSet<Bytes>,
    dups_tested: u64,
    dups_dropped: u64,
    counters: Counters,
}

impl Or {
    /// The union of `inputs`, whose rows have record keys.
    pub fn new(inputs: Vec<BoxOperator>) -> Self {
        Self {
            inputs,
            at: 0,
            seen: HashSet::new(),
            dups_tested: 0,
            dups_dropped: 0,
            counters: Counters::default(),
        }
    }
}

impl Operator for Or {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            self.counters.works += 1;
            match input.next(batch)? {
                Step::Row(row) => {
                    if let Some(record) = &row.record {
                        self.dups_tested += 1;
                        if !self.seen.insert(record.clone()) {
                            self.dups_dropped += 1;
                            continue;
                        }
                    }
                    self.counters.advanced += 1;
                    return Ok(Step::Row(row));
                }
                Step::Eof => self.at += 1,
                Step::Pause => return Ok(Step::Pause),
            }
        }
        self.counters.is_eof = true;
        Ok(Step::Eof)
    }

    fn save(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.save());
    }
    fn stage(&self) -> &'static str {
        "OR"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn explain_fields(&self, out: &mut Document) {
        out.push("dupsTested", self.dups_tested as i64);
        out.push("dupsDropped", self.dups_dropped as i64);
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        self.inputs.iter().map(|input| &**input as &dyn Operator).collect()
    }
    fn memory(&self) -> usize {
        self.seen.len() * 48
    }
}
