//! Aggregation stages as operators.
//!
//! [`build()`] puts one operator per stage on top of a source. Stages that read other collections
//! (`$lookup`, `$graphLookup`, `$unionWith`) open them through [`open()`], which also resolves views. Stages
//! that read the server's own state ask [`ServerState`]; `$out` and `$merge` are no operators: whoever
//! drains the pipeline writes ([`Pipeline::writes`] tells).
//!
//! [`Pipeline::writes`]: nestor_query::stage::Pipeline::writes

mod bucket_auto;
mod densify;
mod documents;
mod facet;
mod graph_lookup;
mod group;
mod hash_join;
mod lookup;
mod map;
mod open;
mod probe;
mod sample;
mod union_with;
mod unwind;
mod window;

pub use open::{Explained, PipelineSource, Restrict, explain_stages, open, plan_stages, resolve};
pub use probe::{PipelineReport, Probe, StageReport, report};

use crate::operator::BoxOperator;
use crate::ops::{Filter, Limit, Project, Skip, Sort};
use nestor_model::{Document, Error, ErrorCode, Namespace, Result, doc};
use nestor_query::stage::{Pipeline, SourceStage, Stage, Written};
use nestor_storage::View;
use std::ops::Range;

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
    build_stages(&pipeline.stages, source, context)
}

/// As [`build`], for a part of a pipeline.
pub fn build_stages(stages: &[Stage], source: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    build_each(stages, source, context, &mut |node, _| node)
}

/// As [`build_stages`], with a [`Probe`] on the source and on each stage.
fn build_probed(
    stages: &[Stage],
    written: &[Written],
    source: BoxOperator,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let source = Box::new(Probe::new(source, Document::new()));
    build_each(stages, source, context, &mut |node, done| {
        Box::new(Probe::new(node, shown(&stages[done.clone()], &written[done])))
    })
}

/// Stages that run as one, as explain prints them.
fn shown(stages: &[Stage], written: &[Written]) -> Document {
    let (Some(stage), Some(first)) = (stages.first(), written.first()) else {
        return Document::new();
    };
    match (stage, stages.get(1)) {
        (Stage::Sort(spec), Some(Stage::Limit(limit))) => {
            doc! { "$sort": doc! { "sortKey": spec.serialize(), "limit": *limit as i64 } }
        }
        _ => stage.serialize(first),
    }
}

/// Builds stage by stage; `finish` is told which stages an operator does and what stands on top of it afterwards.
fn build_each(
    stages: &[Stage],
    source: BoxOperator,
    context: &PipelineSource,
    finish: &mut dyn FnMut(BoxOperator, Range<usize>) -> BoxOperator,
) -> Result<BoxOperator> {
    let mut node = source;
    let mut at = 0;
    while let Some(stage) = stages.get(at) {
        let begin = at;
        at += 1;
        let built: BoxOperator = match stage {
            Stage::Match(filter) => Box::new(Filter::new(node, filter.clone())),
            Stage::Project { projection, .. } => Box::new(Project::new(node, projection.clone(), None)),
            Stage::Sort(spec) => {
                // With a limit right behind only the best rows are kept.
                let limit = match stages.get(at) {
                    Some(Stage::Limit(limit)) => Some(*limit),
                    _ => None,
                };
                at += usize::from(limit.is_some());
                Box::new(Sort::new(node, spec.clone(), limit, true))
            }
            Stage::Limit(limit) => Box::new(Limit::new(node, *limit)),
            Stage::Skip(skip) => Box::new(Skip::new(node, *skip)),
            Stage::Sample(size) => sample::build(node, *size),
            Stage::Unwind(unwind) => Box::new(unwind::UnwindOp::new(node, unwind.clone())),
            Stage::ReplaceRoot(expr) => Box::new(map::Map::replace_root(node, expr.clone())),
            Stage::Redact(redact) => Box::new(map::Map::redact(node, redact.clone())),
            Stage::Group(group) => Box::new(group::GroupOp::new(node, group.clone())),
            Stage::BucketAuto(spec) => Box::new(bucket_auto::BucketAutoOp::new(node, spec.clone())?),
            Stage::Densify(spec) => Box::new(densify::DensifyOp::new(node, spec.clone())),
            Stage::SetWindowFields(spec) => Box::new(window::WindowOp::new(node, spec.clone())),
            Stage::Facet(facet) => Box::new(facet::FacetOp::new(node, facet.clone(), context.clone())),
            Stage::Lookup(lookup) => Box::new(lookup::LookupOp::new(node, lookup.clone(), context.clone())),
            Stage::GraphLookup(graph) => {
                Box::new(graph_lookup::GraphLookupOp::new(node, graph.clone(), context.clone()))
            }
            Stage::UnionWith(union) => Box::new(union_with::UnionWithOp::new(node, union.clone(), context.clone())),
            Stage::Documents(expr) => Box::new(documents::DocumentsOp::of_expression(expr.clone())),
            Stage::Source(source) => Box::new(documents::DocumentsOp::of_server(source.clone(), context.clone())),
            Stage::Out(_) | Stage::Merge(_) => return Ok(node),
        };
        node = finish(built, begin..at);
    }
    Ok(node)
}
