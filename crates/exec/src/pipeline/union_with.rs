//! `$unionWith`: the rows of another pipeline after the input's.

use super::PipelineSource;
use super::depth::bounded;
use super::explained::Explained;
use super::lower::lower;
use super::open::open;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step, Within};
use nestor_model::Result;
use nestor_planner::NodeKind;
use nestor_planner::plan::{InnerPlan, StageNode};
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
    /// The other pipeline, when it is explained.
    explained: Option<Explained>,
    is_input_over: bool,
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
            explained: None,
            is_input_over: false,
            counters: Counters::default(),
        }
    }

    /// The same with the other pipeline as it is explained, if it is.
    pub(super) fn explained(self, explained: Option<Explained>) -> Self {
        Self { explained, ..self }
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
        if !self.is_input_over {
            match self.input.next(batch)? {
                Step::Eof => self.is_input_over = true,
                step => {
                    self.counters.pulled(&step);
                    return Ok(self.counters.gave(step));
                }
            }
            if self.explained.is_none() {
                self.other = Some(self.open_other(batch)?);
            }
        }
        let explained = self.explained.as_mut().map(|explained| &mut explained.root);
        let step = match explained.or(self.other.as_mut()) {
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
        let explained = self.explained.as_ref().map(|explained| &*explained.root);
        let report = Report {
            beside: self.other.as_deref().or(explained),
            ..Report::new(NodeKind::UnionWith, &self.counters).over(&*self.input)
        };
        report.explained_by(self)
    }
}

impl Explain for UnionWithOp {
    fn within(&self) -> Vec<Within<'_>> {
        let explained = self.explained.iter();
        explained.map(|explained| explained.within("pipeline")).collect()
    }
}
