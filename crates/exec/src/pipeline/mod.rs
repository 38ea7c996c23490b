//! Aggregation stages as operators.
//!
//! [`build()`] puts one operator per stage of a rewritten pipeline ([`nestor_planner::rules`]) on top of a source. Stages that
//! read other collections (`$lookup`, `$graphLookup`, `$unionWith`) open them through [`open()`], which also resolves views. Stages
//! that read the server's own state ask [`ServerState`]; `$out` and `$merge` are no operators: whoever
//! drains the pipeline writes ([`Pipeline::writes`] tells).
//!
//! [`Pipeline::writes`]: nestor_query::stage::Pipeline::writes

mod bucket_auto;
mod densify;
mod depth;
mod documents;
mod facet;
mod graph_lookup;
mod group;
mod hash_join;
mod lookup;
mod map;
mod open;
mod probe;
mod row_store;
mod sample;
mod union_with;
mod unwind;
mod window;

pub use open::{Explained, PipelineSource, Restrict, VIEW_DEPTH_MAX, explain_stages, open, plan_stages, resolve};
use probe::Probe;
pub use probe::{PipelineReport, StageReport, report};

use crate::operator::BoxOperator;
use crate::ops::{Filter, Limit, Project, Skip, Sort};
use nestor_model::{Document, Error, ErrorCode, Namespace, Result};
use nestor_planner::pipeline::{StageNode, StageOp};
use nestor_planner::rules::rewrite;
use nestor_query::stage::{Pipeline, SourceStage, Stage};
use nestor_storage::View;

/// Answers the stages that read the server's own state.
pub trait ServerState: Send + Sync {
    /// The documents of `stage` on `namespace`.
    fn documents(&self, stage: &SourceStage, namespace: &Namespace, view: &dyn View) -> Result<Vec<Document>>;
}

/// A server without state of its own: such stages are refused. For embedding and tests.
#[derive(Debug)]
pub struct NoServerState;

impl ServerState for NoServerState {
    fn documents(&self, _: &SourceStage, _: &Namespace, _: &dyn View) -> Result<Vec<Document>> {
        Err(Error::new(ErrorCode::CommandNotSupported, "this stage needs a server"))
    }
}

/// Puts the stages of a pipeline on top of `source`. Stages that write end the building.
pub fn build(pipeline: &Pipeline, source: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    // What stands behind may ask for the keys of a sort within.
    build_each(&rewritten(pipeline, context), source, context, true, &mut |node, _| {
        node
    })
}

/// The stages of a pipeline as they are best done.
fn rewritten(pipeline: &Pipeline, context: &PipelineSource) -> Vec<StageNode> {
    let mut stages = StageNode::all(&pipeline.stages, &pipeline.written);
    rewrite(&mut stages, context.rules);
    stages
}

/// As [`build`], for a part of a pipeline that was rewritten.
fn build_stages(stages: &[StageNode], source: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    build_each(stages, source, context, false, &mut |node, _| node)
}

/// As [`build_stages`], with a [`Probe`] on the source and on each stage.
fn build_probed(stages: &[StageNode], source: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    let source = Box::new(Probe::new(source, Document::new()));
    build_each(stages, source, context, false, &mut |node, stage| {
        Box::new(Probe::new(node, stage.shown()))
    })
}

/// Told of each operator and its stage; gives what stands on top of it from then on.
type Finish<'f> = dyn FnMut(BoxOperator, &StageNode) -> BoxOperator + 'f;

/// Builds operator by operator. `keep_sort_keys`: whoever pulls the rows may ask for the keys that sorts attached.
fn build_each(
    stages: &[StageNode],
    source: BoxOperator,
    context: &PipelineSource,
    keep_sort_keys: bool,
    finish: &mut Finish<'_>,
) -> Result<BoxOperator> {
    let mut node = source;
    let mut unchecked = depth::Unchecked::default();
    for (at, stage) in stages.iter().enumerate() {
        let keep_key = || keep_sort_keys || stages[at + 1..].iter().any(StageNode::may_read_sort_key);
        let built: BoxOperator = match &stage.op {
            StageOp::Parsed(Stage::Out(_) | Stage::Merge(_)) => return Ok(node),
            StageOp::Parsed(Stage::Sort(spec)) => Box::new(Sort::new(node, spec.clone(), None, keep_key())),
            StageOp::TopSort { spec, limit } => Box::new(Sort::new(node, spec.clone(), Some(*limit), keep_key())),
            StageOp::LookupUnwind(join) => Box::new(lookup::LookupUnwindOp::new(node, join, context.clone())),
            StageOp::Parsed(stage) => build_parsed(stage, node, context)?,
        };
        node = unchecked.after(stage, finish(built, stage));
    }
    Ok(node)
}

/// The operator of a stage that does not depend on others.
fn build_parsed(stage: &Stage, node: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    let collator = context.collator.as_ref();
    Ok(match stage {
        Stage::Match(filter) => Box::new(Filter::new(node, filter.clone())),
        Stage::Project { projection, .. } => Box::new(Project::new(node, projection.clone(), None)),
        Stage::Sort(spec) => Box::new(Sort::new(node, spec.clone(), None, true)),
        Stage::Limit(limit) => Box::new(Limit::new(node, *limit)),
        Stage::Skip(skip) => Box::new(Skip::new(node, *skip)),
        Stage::Sample(size) => sample::build(node, *size),
        Stage::Unwind(unwind) => Box::new(unwind::UnwindOp::new(node, unwind.clone())),
        Stage::ReplaceRoot(expr) => Box::new(map::Map::replace_root(node, expr.clone())),
        Stage::Redact(redact) => Box::new(map::Map::redact(node, redact.clone())),
        Stage::Group(group) => Box::new(group::GroupOp::new(node, group.clone())),
        Stage::BucketAuto(spec) => Box::new(bucket_auto::BucketAutoOp::new(node, spec.clone(), collator)?),
        Stage::Densify(spec) => Box::new(densify::DensifyOp::new(node, spec.clone(), collator)),
        Stage::SetWindowFields(spec) => Box::new(window::WindowOp::new(node, spec.clone(), collator)),
        Stage::Facet(facet) => Box::new(facet::FacetOp::new(node, facet.clone(), context.clone())),
        Stage::Lookup(lookup) => Box::new(lookup::LookupOp::new(node, lookup.clone(), context.clone())),
        Stage::GraphLookup(graph) => Box::new(graph_lookup::GraphLookupOp::new(node, graph.clone(), context.clone())),
        Stage::UnionWith(union) => Box::new(union_with::UnionWithOp::new(node, union.clone(), context.clone())),
        Stage::Documents(expr) => Box::new(documents::DocumentsOp::of_expression(expr.clone())),
        Stage::Source(source) => Box::new(documents::DocumentsOp::of_server(source.clone(), context.clone())),
        Stage::Out(_) | Stage::Merge(_) => node,
    })
}
