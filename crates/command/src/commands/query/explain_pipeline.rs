//! Explaining a pipeline: the plan that reads, then stage by stage what stays on top of it.
//!
//! A pipeline that a plan does as a whole is explained as a find. Otherwise:
//!
//! ```text
//! stages: [{$cursor: {queryPlanner, executionStats}, nReturned, executionTimeMillisEstimate},
//!          {$group: .., figures of the stage, nReturned, executionTimeMillisEstimate}, ..]
//! ```
//!
//! Stages are counted by probes that only an explained pipeline has.

use super::explain::{Subject, Verbosity, cache_key, execution_stats, planner_document};
use crate::context::Context;
use nestor_database::operation::{Operation, Piped};
use nestor_database::read;
use nestor_database::shape::Words;
use nestor_database::write::merge::check_merge;
use nestor_exec::Step;
use nestor_exec::pipeline::{Explained, StageReport, explain_stages, report};
use nestor_model::{DocRef, Error, Namespace, RawDoc, RawWriter, Result, Value, doc};
use nestor_planner::FindQuery;
use nestor_planner::reuse::CacheKey;
use nestor_planner::shape::{Written, extended_shape};
use nestor_query::stage::{Pipeline, Stage};
use nestor_storage::{Collection, Snapshot, View};

/// Stages that are part of a pipeline's plan shape.
const PLANNED_STAGES: [&str; 11] = [
    "$group",
    "$lookup",
    "$bucket",
    "$bucketAuto",
    "$replaceRoot",
    "$project",
    "$sort",
    "$count",
    "$sortByCount",
    "$densify",
    "$setWindowFields",
];

/// Appends the plan and the stages of an operation that runs as a pipeline.
pub(super) fn append(
    context: &Context<'_>,
    snapshot: &Snapshot,
    operation: &Operation<'_>,
    piped: &Piped,
    verbosity: Verbosity,
    reply: &mut RawWriter,
) -> Result<()> {
    let Piped { pipeline, hint, .. } = piped;
    check_verbosity(pipeline, verbosity)?;
    let (ns, collator) = (operation.ns(), operation.op.collator.as_ref());
    let restrict = |ns: &Namespace, query: &mut FindQuery| context.restrict_indexes(ns, query, Written::default());
    let source = context.pipeline_source(ns, collator);
    let mut batch = read::batch(context, snapshot, &operation.op, operation.disk_use);
    batch.explains = true;
    let mut explained = explain_stages(ns, pipeline, hint, &restrict, &source, &mut batch)?;
    if let Some(Stage::Merge(merge)) = pipeline.stages.last() {
        check_merge(snapshot, merge, collator)?;
    }
    if verbosity > Verbosity::QueryPlanner {
        while !matches!(explained.root.next(&mut batch)?, Step::Eof) {}
    }
    let collection = snapshot.catalog().get(&explained.namespace);
    let mut subject = subject(&explained, &operation.shape.words, collection.map(|c| &**c))?;
    subject.look_up(context, snapshot);
    subject.settings = context.shown_settings();
    subject.index_filter_set &= !context.are_indexes_set(&explained.namespace);
    append_plans(pipeline, &subject, &explained, verbosity, reply);
    Ok(())
}

/// Refuses to run a pipeline that ends in `$merge`. One that ends in `$out` runs, without that stage: explaining writes
/// nothing.
fn check_verbosity(pipeline: &Pipeline, verbosity: Verbosity) -> Result<()> {
    if verbosity > Verbosity::QueryPlanner && matches!(pipeline.stages.last(), Some(Stage::Merge(_))) {
        return Err(Error::location(
            51184,
            "explain of $merge is not allowed with verbosity executionStats or allPlansExecution",
        ));
    }
    Ok(())
}

fn append_plans(
    pipeline: &Pipeline,
    subject: &Subject,
    explained: &Explained,
    verbosity: Verbosity,
    reply: &mut RawWriter,
) {
    let report = report(&*explained.root);
    let planner = planner_document(subject);
    let stats = |plan, ran: &StageReport| {
        let wanted = verbosity > Verbosity::QueryPlanner;
        wanted.then(|| execution_stats(plan, ran.returned as i64, ran.elapsed, verbosity, &explained.tried))
    };
    if let (Some((plan, ran)), 0, false) = (&report.plan, explained.stages, pipeline.writes()) {
        reply.append("queryPlanner", &planner);
        if let Some(stats) = stats(*plan, ran) {
            reply.append("executionStats", &stats);
        }
        return;
    }
    let cursor = report.plan.map(|(plan, mut ran)| {
        let mut cursor = doc! { "queryPlanner": planner };
        cursor.push("executionStats", stats(plan, &ran));
        ran.shown = doc! { "$cursor": cursor };
        ran
    });
    let show = |stage: StageReport| match verbosity {
        Verbosity::QueryPlanner => stage.shown,
        _ => stage.into_document(),
    };
    let mut stages: Vec<Value> = cursor
        .into_iter()
        .chain(report.stages)
        .map(|stage| show(stage).into())
        .collect();
    if let (true, Some(stage), Some(written)) = (pipeline.writes(), pipeline.stages.last(), pipeline.written.last()) {
        stages.push(stage.serialize(written).into());
    }
    reply.append("stages", &Value::from(stages));
}

/// What of the pipeline is a query.
fn subject(explained: &Explained, words: &Words<'_>, collection: Option<&Collection>) -> Result<Subject> {
    let at = cache_key(&explained.query, Written::default(), collection)?;
    let stages = words.pipeline.into_iter().flat_map(RawDoc::iter).skip(1);
    // The stages that a plan takes part in.
    let names = stages.flat_map(|(_, stage)| stage.as_document().into_iter().flat_map(DocRef::iter));
    let names = names.map(|(name, _)| name).filter(|name| PLANNED_STAGES.contains(name));
    Ok(Subject {
        ns: explained.namespace.clone(),
        filter: explained.query.filter.clone(),
        collator: explained.query.collation.clone(),
        plans: explained.plans.clone(),
        index_filter_set: explained.restricted,
        limit: explained.query.limit,
        at,
        shown_at: CacheKey {
            shape: extended_shape(at.shape, names.clone()),
            key: extended_shape(at.key, names),
        },
        cached: None,
        settings: None,
        write: None,
        express: None,
    })
}
