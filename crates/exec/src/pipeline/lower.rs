//! From the plan of a pipeline to operators.

use super::by_columns::Gives;
use super::explained::explain_union;
use super::{
    PipelineSource, Probe, bucket_auto, by_columns, densify, depth, documents, facet, fusion, geo_near, graph_lookup,
    group, lookup, map, sample, search, union_with, unpack, unwind, window,
};
use crate::batch::Batch;
use crate::changes;
use crate::multi_plan::{run_checked, run_kept};
use crate::operator::BoxOperator;
use crate::ops::{Eof, Filter, Limit, Project, Skip, Sort};
use nestor_model::{Document, Error, ErrorCode, Result};
use nestor_planner::find::Wanted;
use nestor_planner::plan::{FindPlan, InnerPlan, StageNode, StageOp, StagePlan};
use nestor_planner::shape::Written;
use nestor_planner::{NodeKind, PlanNode};
use nestor_query::sort::SortSpec;
use nestor_query::stage::Stage;
use nestor_storage::View;
use std::sync::Arc;

/// The operators of a plan. `given`: the rows that it reads where it says so.
pub(super) fn lower(
    plan: &PlanNode,
    given: Option<BoxOperator>,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let (source, stages) = parts(plan);
    if let PlanNode::Changes { stage } = source {
        return lower_changes(stage, stages, context, None);
    }
    let context = &on_source(source, context);
    let gives = by_columns::gives(source);
    let source = match (source, given) {
        (PlanNode::Find(find), _) => lower_find(find, view)?,
        (PlanNode::Given, Some(given)) => given,
        (PlanNode::Made { stage, .. }, _) => made(stage, false, view, context)?,
        (PlanNode::Eof, _) => Box::new(Eof::default()),
        (other, _) => return Err(no_source(other)),
    };
    lower_stages(stages, (source, gives), context, None)
}

/// As [`lower`], with a [`Probe`] on the source and on each stage. `source`: what reads and how that is shown, unless the first
/// stage makes the documents. The trials of plans within stages are part of `batch`.
pub(super) fn lower_probed(
    plan: &PlanNode,
    (source, shown): (BoxOperator, Document),
    context: &PipelineSource,
    batch: &mut Batch<'_>,
) -> Result<BoxOperator> {
    let (from, stages) = parts(plan);
    if let PlanNode::Changes { stage } = from {
        return lower_changes(stage, stages, context, Some(batch));
    }
    let context = &on_source(from, context);
    let source = match from {
        PlanNode::Made { stage, .. } => Probe::new(made(stage, true, batch.view, context)?, stage.shown()),
        _ => Probe::new(source, shown),
    };
    lower_stages(
        stages,
        (Box::new(source), by_columns::gives(from)),
        context,
        Some(batch),
    )
}

/// The operators of a change stream.
fn lower_changes(
    stage: &StageNode,
    stages: &[StagePlan],
    context: &PipelineSource,
    probes: Option<&mut Batch<'_>>,
) -> Result<BoxOperator> {
    let is_probed = probes.is_some();
    let Some((stream, filter)) = stage.changes() else {
        return Err(no_source(&PlanNode::Changes { stage: stage.clone() }));
    };
    let (source, shared) = changes::Source::new(stream.clone(), filter.cloned())?;
    let source: BoxOperator = match is_probed {
        true => Box::new(Probe::new(Box::new(source), stage.shown())),
        false => Box::new(source),
    };
    let (splits, stages) = match stages.split_last() {
        Some((last, before)) if last.node.kind() == NodeKind::SplitLargeEvent => (Some(last), before),
        _ => (None, stages),
    };
    let mut root = lower_stages(stages, (source, Gives::Documents), context, probes)?;
    if let Some(split) = splits {
        root = Box::new(changes::Split::new(root, shared.clone()));
        if is_probed {
            root = Box::new(Probe::new(root, split.node.shown()));
        }
    }
    match is_probed {
        // Explain reads the probes from the top, and gives nobody a token.
        true => Ok(root),
        false => Ok(Box::new(changes::Resumable::new(root, shared))),
    }
}

/// The source of a plan, and the stages on top of it.
pub(super) fn parts(plan: &PlanNode) -> (&PlanNode, &[StagePlan]) {
    match plan {
        PlanNode::Pipeline(pipeline) => (&pipeline.source, &pipeline.stages),
        other => (other, &[]),
    }
}

/// The context of stages over a source.
fn on_source(source: &PlanNode, context: &PipelineSource) -> PipelineSource {
    match source {
        PlanNode::Find(find) => context.on(find.namespace.clone()),
        PlanNode::Made {
            namespace: Some(namespace),
            ..
        } => context.on(namespace.clone()),
        _ => context.clone(),
    }
}

fn lower_find(find: &FindPlan, view: &dyn View) -> Result<BoxOperator> {
    let Some(collection) = view.catalog().get(&find.namespace) else {
        return Ok(Box::new(Eof::default()));
    };
    let (query, plans, written) = (&find.query, find.plans.clone(), Written::default());
    match find.kept {
        Some(kept) => run_kept(plans, kept, query, Wanted::Documents, written, collection),
        None => run_checked(plans, query, Wanted::Documents, written, collection),
    }
}

fn made(stage: &StageNode, is_explained: bool, view: &dyn View, context: &PipelineSource) -> Result<BoxOperator> {
    match stage.parsed() {
        Some(Stage::Documents(expr)) => Ok(Box::new(documents::DocumentsOp::of_expression(expr.clone()))),
        Some(Stage::Source(source)) => {
            let context = context.clone();
            Ok(Box::new(documents::DocumentsOp::of_server(source.clone(), context)))
        }
        Some(Stage::Search(stage)) => search::open(stage, is_explained, view, context),
        _ => Err(Error::new(
            ErrorCode::InternalError,
            "a stage that makes no documents is no source",
        )),
    }
}

fn no_source(plan: &PlanNode) -> Error {
    Error::new(
        ErrorCode::InternalError,
        format!("{} is no source of a pipeline", plan.stage()),
    )
}

fn misplaced(plan: &StagePlan) -> Error {
    let name = plan.node.kind().name();
    Error::new(
        ErrorCode::InternalError,
        format!("{name} stands where it has no operator"),
    )
}

/// One operator per stage. `gives`: what the source gives to who takes rows of columns. `probes`: what the pipelines within stages are tried in, when each stage gets a probe.
fn lower_stages(
    stages: &[StagePlan],
    (source, mut gives): (BoxOperator, Gives),
    context: &PipelineSource,
    mut probes: Option<&mut Batch<'_>>,
) -> Result<BoxOperator> {
    let mut node = source;
    let mut unchecked = depth::Unchecked::default();
    let mut below = None;
    for (at, stage) in stages.iter().enumerate() {
        let above = gives.clone().above(&stage.node.op, &stages[at + 1..]);
        node = lower_stage(stage, (node, below, gives, &above), context, probes.as_deref_mut())?;
        gives = above;
        below = stage.node.parsed();
        if probes.is_some() {
            node = Box::new(Probe::new(node, stage.node.shown()));
        }
        node = unchecked.after(&stage.node, node);
    }
    Ok(node)
}

/// `gives`: what the input gives to who takes rows of columns; `above`: what the stage gives then.
fn lower_stage(
    plan: &StagePlan,
    (node, below, gives, above): (BoxOperator, Option<&Stage>, Gives, &Gives),
    context: &PipelineSource,
    probes: Option<&mut Batch<'_>>,
) -> Result<BoxOperator> {
    let collator = context.collator.as_ref();
    let sort = |node, spec: &Arc<SortSpec>, limit| Sort::new(node, spec.clone(), limit, plan.keep_sort_key);
    let stage = match &plan.node.op {
        StageOp::TopSort { spec, limit } => {
            let sort = sort(node, spec, Some(*limit));
            return Ok(Box::new(match gives {
                Gives::Made(_) => sort.over_columns(None),
                _ => sort,
            }));
        }
        StageOp::LookupUnwind(join) => {
            let inner = plan.inner.clone();
            return Ok(Box::new(lookup::LookupUnwindOp::new(
                node,
                join,
                inner,
                context.clone(),
            )));
        }
        StageOp::FilteredChanges(_) => return Err(misplaced(plan)),
        StageOp::Parsed(stage) => stage,
    };
    Ok(match stage {
        Stage::Match(filter) if *above != Gives::Documents => Box::new(Filter::by_columns(node, filter.clone())),
        Stage::Match(filter) => Box::new(Filter::new(node, filter.clone())),
        Stage::Project { projection, .. } if *above != Gives::Documents => {
            Box::new(Project::by_columns(node, projection.clone()))
        }
        Stage::Project { projection, .. } => Box::new(Project::new(node, projection.clone(), None)),
        Stage::Sort(spec) => Box::new(sort(node, spec, None)),
        Stage::Limit(limit) => Box::new(Limit::new(node, *limit)),
        Stage::Skip(skip) => Box::new(Skip::new(node, *skip)),
        Stage::Sample(size) => sample::build(node, *size),
        Stage::Unwind(unwind) => Box::new(unwind::UnwindOp::new(node, unwind.clone())),
        Stage::ReplaceRoot(expr) => Box::new(map::Map::replace_root(node, expr.clone())),
        Stage::Mask(masking) => Box::new(map::Map::mask(node, masking.clone())),
        Stage::Unpack(unpack) => Box::new(unpack::UnpackOp::new(node, unpack.clone())),
        Stage::PublicBuckets(series) => Box::new(map::Map::public_buckets(node, series.clone())),
        Stage::Redact(redact) => Box::new(map::Map::redact(node, redact.clone())),
        Stage::Group(group) => {
            let series = match below {
                Some(Stage::Unpack(unpack)) => Some(&unpack.series),
                _ => None,
            };
            let by_columns = gives != Gives::Documents;
            Box::new(group::GroupOp::new(node, group.clone(), series, by_columns))
        }
        Stage::BucketAuto(spec) => Box::new(bucket_auto::BucketAutoOp::new(node, spec.clone(), collator)?),
        Stage::GeoNear(spec) => Box::new(geo_near::build(node, spec.clone())),
        Stage::Densify(spec) => Box::new(densify::DensifyOp::new(node, spec.clone(), collator)),
        Stage::SetWindowFields(spec) => Box::new(window::WindowOp::new(node, spec.clone(), collator)),
        Stage::Lookup(lookup) => Box::new(lookup::LookupOp::new(
            node,
            lookup.clone(),
            plan.inner.clone(),
            context.clone(),
        )),
        Stage::GraphLookup(graph) => Box::new(graph_lookup::GraphLookupOp::new(
            node,
            graph.clone(),
            plan.inner.clone(),
            context.clone(),
        )),
        Stage::UnionWith(union) => {
            let inner = plan.inner.clone();
            let explained = match (probes, inner.as_deref()) {
                (Some(batch), Some(InnerPlan::Whole(plan))) => Some(explain_union(union, plan, context, batch)?),
                _ => None,
            };
            let other = union_with::UnionWithOp::new(node, union.clone(), inner, context.clone());
            Box::new(other.explained(explained))
        }
        Stage::Facet(_) => match &plan.inner {
            Some(inner) => Box::new(facet::FacetOp::new(node, inner.clone(), context.clone(), probes)?),
            None => return Err(misplaced(plan)),
        },
        Stage::Fusion(fusion) => {
            let inner = plan.inner.clone();
            Box::new(fusion::FusionOp::new(
                node,
                fusion.clone(),
                inner,
                context.clone(),
                probes,
            )?)
        }
        // They are sources.
        Stage::Documents(_) | Stage::Source(_) | Stage::Search(_) | Stage::ChangeStream(_) | Stage::SplitLargeEvent => {
            return Err(misplaced(plan));
        }
        // The consumer of the pipeline writes.
        Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_) => node,
    })
}
