//! `$unionWith`: the rows of another pipeline after the input's.

use super::PipelineSource;
use super::depth::bounded;
use super::lower::lower;
use super::open::open;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use nestor_model::Result;
use nestor_planner::NodeKind;
use nestor_planner::pipeline::{InnerPlan, StageNode};
use nestor_query::stage::UnionWith;
use std::sync::Arc;

/// Pulls the input first, then the other pipeline.
pub(super) struct UnionWithOp {
    input: BoxOperator,
    union: Arc<UnionWith>,
    /// How the other pipeline was planned.
    inner: Option<Arc<InnerPlan>>,
    context: PipelineSource,
    /// Opened when the input is at its end.
    other: Option<BoxOperator>,
    counters: Counters,
}

impl UnionWithOp {
    pub(super) fn new(
        input: BoxOperator,
        union: Arc<UnionWith>,
        inner: Option<Arc<InnerPlan>>,
        context: PipelineSource,
    ) -> Self {
        Self {
            input,
            union,
            inner,
            context,
            other: None,
            counters: Counters::default(),
        }
    }

    fn open_other(&self, batch: &Batch<'_>) -> Result<BoxOperator> {
        if let Some(InnerPlan::Whole(plan)) = self.inner.as_deref().filter(|_| self.context.is_current(batch.view)) {
            return Ok(bounded(lower(plan, None, batch.view, &self.context)?));
        }
        let pipeline = &self.union.pipeline;
        let stages = StageNode::all(&pipeline.stages, &pipeline.written);
        let other = open(self.union.coll.as_ref(), stages, None, batch.view, &self.context)?;
        Ok(bounded(other))
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
