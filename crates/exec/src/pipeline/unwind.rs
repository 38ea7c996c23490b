//! `$unwind`: one row per element of an array.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::row::{Row, RowDoc};
use nestor_model::{Document, Result};
use nestor_query::env::DocMeta;
use nestor_query::stage::Unwind;
use std::collections::VecDeque;
use std::sync::Arc;

/// Unwinds each row.
pub(super) struct UnwindOp {
    input: BoxOperator,
    unwind: Arc<Unwind>,
    /// What is left of the last row.
    pending: VecDeque<Document>,
    meta: Option<Box<DocMeta>>,
    counters: Counters,
}

impl UnwindOp {
    pub(super) fn new(input: BoxOperator, unwind: Arc<Unwind>) -> Self {
        Self {
            input,
            unwind,
            pending: VecDeque::new(),
            meta: None,
            counters: Counters::default(),
        }
    }
}

impl Operator for UnwindOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some(doc) = self.pending.pop_front() {
                self.counters.advanced += 1;
                return Ok(Step::Row(Row {
                    doc: RowDoc::Owned(doc),
                    record: None,
                    meta: self.meta.clone(),
                }));
            }
            self.counters.works += 1;
            match self.input.next(batch)? {
                Step::Row(row) => {
                    let pending = &mut self.pending;
                    self.unwind.apply(row.as_doc(), |doc| {
                        pending.push_back(doc);
                        Ok(())
                    })?;
                    self.meta = row.meta;
                }
                Step::Eof => {
                    self.counters.is_eof = true;
                    return Ok(Step::Eof);
                }
                Step::Pause => return Ok(Step::Pause),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.pending.is_empty() && self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }
    fn stage(&self) -> &'static str {
        "$unwind"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
