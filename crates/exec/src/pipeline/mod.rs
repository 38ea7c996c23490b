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
use nestor_model::{Document, Error, ErrorCode, Namespace, Result, Value, ValueRef, doc};
use nestor_planner::pipeline::reads_sort_key;
use nestor_query::matcher::MatchExpr;
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
    // What stands behind may ask for the keys of a sort within.
    build_each(&pipeline.stages, source, context, true, &mut |node, _, _| node)
}

/// As [`build`], for a part of a pipeline.
pub fn build_stages(stages: &[Stage], source: BoxOperator, context: &PipelineSource) -> Result<BoxOperator> {
    build_each(stages, source, context, false, &mut |node, _, _| node)
}

/// As [`build_stages`], with a [`Probe`] on the source and on each stage.
fn build_probed(
    stages: &[Stage],
    written: &[Written],
    source: BoxOperator,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let source = Box::new(Probe::new(source, Document::new()));
    build_each(stages, source, context, false, &mut |node, done, filter| {
        let shown = shown(&stages[done.clone()], &written[done], filter);
        Box::new(Probe::new(node, shown))
    })
}

/// Stages that run as one, as explain prints them.
fn shown(stages: &[Stage], written: &[Written], filter: Option<&MatchExpr>) -> Document {
    let (Some(stage), Some(first)) = (stages.first(), written.first()) else {
        return Document::new();
    };
    match (stage, stages.get(1)) {
        (Stage::Sort(spec), Some(Stage::Limit(limit))) => {
            doc! { "$sort": doc! { "sortKey": spec.serialize(), "limit": *limit as i64 } }
        }
        (Stage::Lookup(_), Some(Stage::Unwind(unwind))) => {
            let mut spec = match &first.value {
                Value::Document(spec) => spec.clone(),
                _ => Document::new(),
            };
            if let Some(filter) = filter {
                let stages = spec.get("pipeline").and_then(ValueRef::as_array);
                let mut stages: Vec<Value> = stages.into_iter().flatten().map(ValueRef::to_value).collect();
                stages.push(doc! { "$match": filter.serialize() }.into());
                spec.set("pipeline", Value::from(stages));
            }
            let mut unwinding = unwind.serialize();
            unwinding.remove("path");
            unwinding.set("preserveNullAndEmptyArrays", Value::Bool(unwind.preserves_empty()));
            spec.push("unwinding", unwinding);
            doc! { "$lookup": spec }
        }
        (Stage::Match(_), _) => match filter {
            Some(filter) => doc! { "$match": filter.serialize() },
            None => stage.serialize(first),
        },
        _ => stage.serialize(first),
    }
}

/// Told of each operator, which stages it does, and which part of a `$match` when not the whole; gives what stands on
/// top of it from then on.
type Finish<'f> = dyn FnMut(BoxOperator, Range<usize>, Option<&MatchExpr>) -> BoxOperator + 'f;

/// Builds operator by operator; stages that are better done together become one. `keep_sort_keys`: whoever pulls the rows
/// may ask for the keys that sorts attached.
fn build_each(
    stages: &[Stage],
    source: BoxOperator,
    context: &PipelineSource,
    keep_sort_keys: bool,
    finish: &mut Finish<'_>,
) -> Result<BoxOperator> {
    let mut node = source;
    let mut unchecked = depth::Unchecked::default();
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
                let keep_key = keep_sort_keys || stages[at..].iter().any(may_read_sort_key);
                Box::new(Sort::new(node, spec.clone(), limit, keep_key))
            }
            Stage::Limit(limit) => Box::new(Limit::new(node, *limit)),
            Stage::Skip(skip) => Box::new(Skip::new(node, *skip)),
            Stage::Sample(size) => sample::build(node, *size),
            Stage::Unwind(unwind) => Box::new(unwind::UnwindOp::new(node, unwind.clone())),
            Stage::ReplaceRoot(expr) => Box::new(map::Map::replace_root(node, expr.clone())),
            Stage::Redact(redact) => Box::new(map::Map::redact(node, redact.clone())),
            Stage::Group(group) => Box::new(group::GroupOp::new(node, group.clone())),
            Stage::BucketAuto(spec) => Box::new(bucket_auto::BucketAutoOp::new(
                node,
                spec.clone(),
                context.collator.as_ref(),
            )?),
            Stage::Densify(spec) => Box::new(densify::DensifyOp::new(node, spec.clone(), context.collator.as_ref())),
            Stage::SetWindowFields(spec) => {
                Box::new(window::WindowOp::new(node, spec.clone(), context.collator.as_ref()))
            }
            Stage::Facet(facet) => Box::new(facet::FacetOp::new(node, facet.clone(), context.clone())),
            Stage::Lookup(lookup) => match stages.get(at) {
                Some(Stage::Unwind(unwind)) if *unwind.path() == lookup.as_path => {
                    at += 1;
                    let absorbed = match stages.get(at) {
                        Some(Stage::Match(filter)) => lookup::absorb(lookup, unwind, filter),
                        _ => None,
                    };
                    let (filter, rest) = absorbed.map_or((None, None), |(filter, rest)| (Some(filter), rest));
                    let fused = lookup::LookupUnwindOp::new(
                        node,
                        lookup.clone(),
                        unwind.clone(),
                        filter.clone(),
                        context.clone(),
                    );
                    let part = begin..at;
                    at += usize::from(filter.is_some());
                    node = finish(Box::new(fused), part, filter.as_deref());
                    node = unchecked.after(stage, node);
                    if let Some(rest) = rest {
                        node = finish(Box::new(Filter::new(node, rest.clone())), at - 1..at, Some(&rest));
                    }
                    continue;
                }
                _ => Box::new(lookup::LookupOp::new(node, lookup.clone(), context.clone())),
            },
            Stage::GraphLookup(graph) => {
                Box::new(graph_lookup::GraphLookupOp::new(node, graph.clone(), context.clone()))
            }
            Stage::UnionWith(union) => Box::new(union_with::UnionWithOp::new(node, union.clone(), context.clone())),
            Stage::Documents(expr) => Box::new(documents::DocumentsOp::of_expression(expr.clone())),
            Stage::Source(source) => Box::new(documents::DocumentsOp::of_server(source.clone(), context.clone())),
            Stage::Out(_) | Stage::Merge(_) => return Ok(node),
        };
        node = finish(built, begin..at, None);
        node = unchecked.after(stage, node);
    }
    Ok(node)
}

/// False for stages that certainly do not ask for the key that a sort attached.
fn may_read_sort_key(stage: &Stage) -> bool {
    match stage {
        Stage::Project { .. } | Stage::ReplaceRoot(_) | Stage::Group(_) => reads_sort_key(stage),
        Stage::Match(filter) => !matches!(**filter, MatchExpr::Leaf(_)),
        Stage::Sort(_) | Stage::Limit(_) | Stage::Skip(_) | Stage::Sample(_) | Stage::Unwind(_) => false,
        _ => true,
    }
}
