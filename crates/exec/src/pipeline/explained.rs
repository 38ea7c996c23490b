//! Pipelines that are explained: it is decided by which plan each of them reads, and every stage has a [`Probe`](super::probe::Probe).
//!
//! The pipelines that stages run (`$unionWith`, `$facet`, `$rankFusion`) are explained with the one around them, before anything runs: explain
//! shows their plans also where they do not run. Those that were not planned with the one around it, because there are too many
//! (views that join views), are shown as they are written.

use super::depth::bounded;
use super::lower::{lower_probed, parts};
use super::open::Named;
use super::{PipelineSource, by_columns};
use crate::batch::Batch;
use crate::multi_plan::MultiPlan;
use crate::operator::{Bottom, BoxOperator, Within};
use crate::ops::Eof;
use nestor_model::{Document, Namespace, Result, doc};
use nestor_planner::pipeline::{self, PipelineQuery, Restrict};
use nestor_planner::plan::StageNode;
use nestor_planner::{Hint, PlanNode};
use nestor_query::stage::{Pipeline, UnionWith};

/// A pipeline that is explained.
pub struct Explained {
    /// The source that it reads.
    pub bottom: Bottom,
    /// Stages that stay on top of the plan.
    pub stages: usize,
    /// The pipeline, each stage with a probe: read them with [`report`](super::report()).
    pub root: BoxOperator,
}

impl Explained {
    /// The pipeline as part of the stage that runs it; `field` is where it is written in that stage.
    pub(super) fn within<'o>(&'o self, field: &'o str) -> Within<'o> {
        Within {
            field,
            bottom: &self.bottom,
            root: &*self.root,
        }
    }
}

/// As [`plan_stages`](super::plan_stages), to be explained: it is decided which plan the pipeline runs by, whatever the plan cache
/// has. The pipeline has to have been parsed with its text.
pub fn explain_stages(
    namespace: &Namespace,
    pipeline: &Pipeline,
    hint: &Hint,
    restrict: Restrict<'_>,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    let query = PipelineQuery {
        namespace: Some(namespace),
        stages: StageNode::all(&pipeline.stages, &pipeline.written),
        collation: context.collator.as_ref(),
        hint: Some(hint),
        restrict: Some(restrict),
        rules: context.rules,
        keeps_sort_keys: false,
        is_explained: true,
    };
    let named = Named {
        view: batch.view,
        plans: None,
        caller: context.caller.as_deref(),
    };
    let plan = by_columns::choose(pipeline::plan(query, &named)?, batch.view, context)?;
    explain_plan(&plan, namespace, None, &context.planned(batch.view), batch)
}

/// The pipeline of a `$unionWith` by the plan that was made with the one around it.
pub(super) fn explain_union(
    union: &UnionWith,
    plan: &PlanNode,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    explain_on(union.coll.as_ref().unwrap_or(&context.namespace), plan, context, batch)
}

/// A pipeline on a namespace by the plan that was made with the one around it.
pub(super) fn explain_on(
    namespace: &Namespace,
    plan: &PlanNode,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    let mut explained = explain_plan(plan, namespace, None, context, batch)?;
    explained.root = bounded(explained.root);
    Ok(explained)
}

/// A pipeline of a `$facet`, over `rows`.
pub(super) fn explain_facet(
    plan: &PlanNode,
    rows: BoxOperator,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    let mut explained = explain_plan(plan, &context.namespace, Some(rows), context, batch)?;
    explained.root = bounded(explained.root);
    Ok(explained)
}

/// Decides how a plan reads, and makes its operators. `given`: the rows that it reads where it says so.
fn explain_plan(
    plan: &PlanNode,
    namespace: &Namespace,
    given: Option<BoxOperator>,
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<Explained> {
    let (source, stages) = parts(plan);
    let mut bottom = Bottom::nothing(namespace);
    let shown = match &given {
        Some(_) => doc! { "$teeConsumer": doc! {} },
        None => Document::new(),
    };
    let mut reader = given.unwrap_or_else(|| Box::new(Eof::default()));
    if let PlanNode::Find(find) = source {
        bottom.find = (**find).clone();
        if let Some(collection) = batch.view.catalog().get(&find.namespace) {
            let mut multi = MultiPlan::new(find.plans.clone(), find.query.limit, collection);
            while !multi.decide(batch)? {}
            bottom.find.plans = multi.ranked();
            bottom.tried = multi.tried().to_vec();
            reader = Box::new(multi);
        }
    }
    Ok(Explained {
        bottom,
        stages: stages.len(),
        root: lower_probed(plan, (reader, shown), context, batch)?,
    })
}
