//! `$unwind`: one row per element of an array.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use nestor_model::Result;
use nestor_planner::NodeKind;
use nestor_query::env::DocMeta;
use nestor_query::stage::{Unwind, Unwound};
use std::sync::Arc;

/// Unwinds each row.
pub(super) struct UnwindOp {
    input: BoxOperator,
    unwind: Arc<Unwind>,
    /// The rest of the last row.
    pending: Option<Unwound>,
    meta: Option<Box<DocMeta>>,
    counters: Counters,
}

impl UnwindOp {
    pub(super) fn new(input: BoxOperator, unwind: Arc<Unwind>) -> Self {
        Self {
            input,
            unwind,
            pending: None,
            meta: None,
            counters: Counters::default(),
        }
    }
}

impl Operator for UnwindOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some(unwound) = &mut self.pending {
                // A long array is much work for one row of the input.
                if !batch.spend()? {
                    return Ok(Step::Pause);
                }
                if let Some(doc) = self.unwind.next(unwound) {
                    self.counters.advanced += 1;
                    return Ok(Step::Row(Row {
                        doc: RowDoc::Owned(doc),
                        record: None,
                        meta: self.meta.clone(),
                    }));
                }
                self.pending = None;
            }
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => {
                    self.pending = Some(self.unwind.start(row.doc.into_document()));
                    self.meta = row.meta;
                }
                end => return Ok(self.counters.gave(end)),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.pending.as_ref().is_none_or(Unwound::is_done) && self.input.is_done()
    }
    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Unwind, &self.counters).over(&*self.input)
    }
}
