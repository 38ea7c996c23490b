//! SORT_MERGE: several inputs, each in order, into one order.

use super::dedup::Dedup;
use crate::batch::Batch;
use crate::keys::SortKeys;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use nestor_model::statement::work;
use nestor_model::{Document, Result};
use nestor_planner::NodeKind;
use nestor_query::sort::SortSpec;
use std::sync::Arc;

/// Merges its inputs; each record comes out once.
pub struct SortMerge {
    inputs: Vec<BoxOperator>,
    spec: Arc<SortSpec>,
    keys: SortKeys,
    /// `heads[i]` is the next row of input `i` with its sort key.
    heads: Vec<Head>,
    dedup: Dedup,
    counters: Counters,
}

enum Head {
    Unknown,
    Row(Vec<u8>, Box<Row>),
    Done,
}

impl SortMerge {
    /// The union of `inputs`, each of which is in the order of `spec`.
    pub fn new(inputs: Vec<BoxOperator>, spec: Arc<SortSpec>) -> Self {
        let heads = inputs.iter().map(|_| Head::Unknown).collect();
        Self {
            inputs,
            keys: SortKeys::new(&spec),
            spec,
            heads,
            dedup: Dedup::default(),
            counters: Counters::default(),
        }
    }

    fn key(&self, row: &Row) -> Result<Vec<u8>> {
        let (mut values, mut key) = (Vec::new(), Vec::new());
        match &row.doc {
            RowDoc::Key(entry) => {
                let doc = entry.as_nested_document()?;
                self.spec.key(doc.as_ref(), None, &mut values)?;
                self.keys.encode_stored(&values, &mut key);
            }
            doc => {
                self.spec.key(doc.as_doc(), None, &mut values)?;
                self.keys.encode(&values, &mut key);
            }
        }
        Ok(key)
    }
}

impl Operator for SortMerge {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            for at in 0..self.inputs.len() {
                if matches!(self.heads[at], Head::Unknown) {
                    self.heads[at] = match self.inputs[at].next(batch)? {
                        Step::Row(row) => Head::Row(self.key(&row)?, Box::new(row)),
                        Step::Eof => Head::Done,
                        Step::Pause => return Ok(Step::Pause),
                    };
                }
            }
            let mut least: Option<(usize, &Vec<u8>)> = None;
            for (at, head) in self.heads.iter().enumerate() {
                if let Head::Row(key, _) = head {
                    if least.is_none_or(|(_, best)| key < best) {
                        least = Some((at, key));
                    }
                }
            }
            work(1 + self.heads.len() / 8)?;
            self.counters.works += 1;
            let Some((at, _)) = least else {
                self.counters.is_eof = true;
                return Ok(Step::Eof);
            };
            let Head::Row(_, row) = std::mem::replace(&mut self.heads[at], Head::Unknown) else {
                continue;
            };
            if self.dedup.is_new(&row)? {
                self.counters.advanced += 1;
                return Ok(Step::Row(*row));
            }
        }
    }

    fn save(&mut self) {
        self.dedup.rest();
        self.inputs.iter_mut().for_each(|input| input.save());
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::SortMerge, &self.counters).over_all(&self.inputs);
        report.holding(self.dedup.memory()).explained_by(self)
    }
}

impl Explain for SortMerge {
    fn plan_fields(&self, out: &mut Document) {
        out.push("sortPattern", self.spec.serialize());
        self.dedup.plan_fields(out);
    }
}
