//! `$unionWith`: the rows of another pipeline after the input's.

use super::depth::bounded;
use super::{PipelineSource, build, open};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Step};
use crate::ops::Eof;
use crate::reads::Reads;
use nestor_model::Result;
use nestor_query::stage::UnionWith;
use std::sync::Arc;

/// Pulls the input first, then the other pipeline.
pub(super) struct UnionWithOp {
    input: BoxOperator,
    union: Arc<UnionWith>,
    context: PipelineSource,
    /// Opened when the input is at its end.
    other: Option<BoxOperator>,
    counters: Counters,
}

impl UnionWithOp {
    pub(super) fn new(input: BoxOperator, union: Arc<UnionWith>, context: PipelineSource) -> Self {
        Self {
            input,
            union,
            context,
            other: None,
            counters: Counters::default(),
        }
    }

    fn open_other(&self, batch: &Batch<'_>) -> Result<BoxOperator> {
        let (source, context): (BoxOperator, _) = match &self.union.coll {
            Some(ns) => (open(ns, None, batch.view, &self.context)?, self.context.on(ns.clone())),
            None => (Box::new(Eof::default()), self.context.clone()),
        };
        Ok(bounded(build(&self.union.pipeline, source, &context)?))
    }
}

impl Operator for UnionWithOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.counters.works += 1;
        if self.other.is_none() {
            match self.input.next(batch)? {
                Step::Eof => self.other = Some(self.open_other(batch)?),
                step => {
                    self.counters.advanced += u64::from(matches!(step, Step::Row(_)));
                    return Ok(step);
                }
            }
        }
        let step = match &mut self.other {
            Some(other) => other.next(batch)?,
            None => Step::Eof,
        };
        match step {
            Step::Row(_) => self.counters.advanced += 1,
            Step::Eof => self.counters.is_eof = true,
            Step::Pause => {}
        }
        Ok(step)
    }

    fn save(&mut self) {
        self.input.save();
        if let Some(other) = &mut self.other {
            other.save();
        }
    }
    fn stage(&self) -> &'static str {
        "$unionWith"
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn add_reads(&self, reads: &mut Reads) {
        if let Some(other) = &self.other {
            reads.add(&**other);
        }
    }
    fn inputs(&self) -> Vec<&dyn Operator> {
        vec![&*self.input]
    }
}
