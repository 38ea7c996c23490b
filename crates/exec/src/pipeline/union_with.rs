//! `$unionWith`: the rows of another pipeline after the input's.

use super::depth::bounded;
use super::{PipelineSource, build, open};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::ops::Eof;
use nestor_model::Result;
use nestor_planner::NodeKind;
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
        if self.other.is_none() {
            match self.input.next(batch)? {
                Step::Eof => self.other = Some(self.open_other(batch)?),
                step => {
                    self.counters.pulled(&step);
                    return Ok(self.counters.gave(step));
                }
            }
        }
        let step = match &mut self.other {
            Some(other) => other.next(batch)?,
            None => Step::Eof,
        };
        self.counters.pulled(&step);
        Ok(self.counters.gave(step))
    }

    fn save(&mut self) {
        self.input.save();
        if let Some(other) = &mut self.other {
            other.save();
        }
    }

    fn report(&self) -> Report<'_> {
        Report {
            beside: self.other.as_deref(),
            ..Report::new(NodeKind::UnionWith, &self.counters).over(&*self.input)
        }
    }
}
