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

use super::aggregate::AggregateArgs;
use super::explain::{Subject, Verbosity, append_server, execution_stats, planner_document};
use crate::Context;
use crate::query_shape;
use crate::read;
use crate::write::merge::check_merge;
use nestor_exec::Step;
use nestor_exec::pipeline::{Explained, StageReport, explain_stages, report, resolve};
use nestor_model::{ArrayRef, DocRef, Document, Error, Namespace, RawDoc, RawWriter, Result, Value, ValueRef, doc};
use nestor_planner::FindQuery;
use nestor_planner::shape::{Written, plan_shape_hash};
use nestor_query::stage::{ParseContext, Pipeline, Place, Stage};
use nestor_storage::View;

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

/// Explains `aggregate` with these arguments; `command` is what the reply repeats.
pub(super) fn aggregate(
    context: &Context<'_>,
    args: &AggregateArgs<'_>,
    ns: &Namespace,
    verbosity: Verbosity,
    command: RawDoc<'_>,
    reply: &mut RawWriter,
) -> Result<()> {
    super::aggregate::check(args)?;
    let snapshot = context.read_snapshot()?;
    context.show_settings("aggregate", ns, command);
    let collator = read::collator(args.collation, snapshot.catalog().get(ns).map(|c| &**c))?;
    let (op, mut scope) = context.operation_under(args.variables, collator)?;
    let text = ArrayRef::Raw(args.pipeline.0.0);
    let mut parsing = ParseContext::new(&mut scope, ns.clone(), Place::Top);
    parsing.keep_written = true;
    let pipeline = Pipeline::parse(text, &mut parsing)?;
    check_verbosity(&pipeline, verbosity)?;
    let hint = read::check_hint(
        args.hint,
        resolve(ns, &snapshot, op.collator.as_ref())?.collection.as_deref(),
    )?;
    let restrict = |ns: &Namespace, query: &mut FindQuery| context.restrict_indexes(ns, query, Written::default());
    let source = context.pipeline_source(ns, op.collator.as_ref());
    let disk_use = args
        .allow_disk_use
        .map_or_else(|| context.service.disk_use_by_default(), |b| b.0.0);
    let mut batch = read::batch(context, &snapshot, &op, disk_use);
    batch.explains = true;
    let mut explained = explain_stages(ns, &pipeline, &hint, &restrict, &source, &mut batch)?;
    if let Some(Stage::Merge(merge)) = pipeline.stages.last() {
        check_merge(&snapshot, merge, op.collator.as_ref())?;
    }
    if verbosity > Verbosity::QueryPlanner {
        while !matches!(explained.root.next(&mut batch)?, Step::Eof) {}
    }
    let mut subject = subject(&explained, text);
    subject.look_up(context, &snapshot);
    subject.settings = context.shown_settings();
    subject.index_filter_set &= !context.are_indexes_set(&explained.namespace);
    reply.append("explainVersion", "1");
    append_plans(&pipeline, &subject, &explained, verbosity, reply);
    let shape = query_shape::of_command("aggregate", ns, command);
    reply.append("queryShapeHash", query_shape::hash(&shape).as_str());
    reply.append_raw("command", command);
    append_server(context, reply);
    Ok(())
}

/// Explaining writes nothing, so a pipeline that writes cannot be run for it.
fn check_verbosity(pipeline: &Pipeline, verbosity: Verbosity) -> Result<()> {
    let (code, name) = match pipeline.stages.last() {
        Some(Stage::Out(_)) => (51029, "$out"),
        Some(Stage::Merge(_)) => (51184, "$merge"),
        _ => return Ok(()),
    };
    if verbosity > Verbosity::QueryPlanner {
        let error = format!("explain of {name} is not allowed with verbosity executionStats or allPlansExecution");
        return Err(Error::location(code, error));
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
fn subject(explained: &Explained, pipeline: ArrayRef<'_>) -> Subject {
    let mut plan_shape = Written::default().shape(&explained.query);
    let later = pipeline.iter().skip(1).filter_map(ValueRef::as_document);
    for (name, _) in later.flat_map(DocRef::iter) {
        // The stages that a plan takes part in.
        if PLANNED_STAGES.contains(&name) {
            plan_shape.push_str(name);
        }
    }
    Subject {
        ns: explained.namespace.clone(),
        filter: explained.query.filter.clone(),
        collator: explained.query.collation.clone(),
        plans: explained.plans.clone(),
        index_filter_set: explained.restricted,
        limit: explained.query.limit,
        plan_shape: plan_shape_hash(&plan_shape),
        cache_key: 0,
        cached: None,
        query_shape: Document::new(),
        settings: None,
        write: None,
    }
}
