//! Explaining a pipeline: the plan that reads, then stage by stage what stays on top of it.
//!
//! A pipeline that a plan does as a whole is explained as a find. Otherwise:
//!
//! ```text
//! stages: [{$cursor: {queryPlanner, executionStats}, nReturned, executionTimeMillisEstimate},
//!          {$group: .., figures of the stage, nReturned, executionTimeMillisEstimate}, ..]
//! ```
//!
//! Stages are counted by probes that only an explained pipeline has. A pipeline that a stage runs is shown in the same form where it is
//! written: `{$unionWith: {coll, pipeline: [{$cursor: ..}, ..]}}`, `{$facet: {name: [{$teeConsumer: {}}, ..]}}`.

use super::explain::{Subject, Verbosity, cache_key, execution_stats, planner_document};
use crate::context::Context;
use nestor_database::operation::{Operation, Piped};
use nestor_database::read;
use nestor_database::shape::Words;
use nestor_database::write::merge::check_merge;
use nestor_exec::operator::Bottom;
use nestor_exec::pipeline::{Explained, PipelineReport, StageReport, explain_stages, report};
use nestor_exec::{Operator, Step};
use nestor_model::{DocRef, Document, Error, Namespace, RawDoc, RawWriter, Result, Value, doc};
use nestor_planner::FindQuery;
use nestor_planner::reuse::CacheKey;
use nestor_planner::shape::{Written, extended_shape};
use nestor_query::stage::{Pipeline, Stage};
use nestor_storage::{Snapshot, View};

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
    let relational_plan = context.relational_plan(snapshot, ns, pipeline)?;
    let mut source = context.pipeline_source(ns, collator);
    if verbosity > Verbosity::QueryPlanner {
        source.server = context.server_state(snapshot, ns, pipeline)?;
    }
    let mut batch = read::batch(context, snapshot, &operation.op, operation.disk_use);
    batch.explains = true;
    let mut explained = explain_stages(ns, pipeline, hint, &restrict, &source, &mut batch)?;
    if let Some(Stage::Merge(merge)) = pipeline.stages.last() {
        check_merge(snapshot, merge, collator)?;
    }
    if verbosity > Verbosity::QueryPlanner {
        while !matches!(explained.root.next(&mut batch)?, Step::Eof) {}
    }
    let shown = Shown {
        context,
        snapshot,
        verbosity,
        relational_plan,
    };
    shown.append(pipeline, &explained, &operation.shape.words, reply)
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

/// What explain shows, and the state that it reads.
struct Shown<'s, 'c> {
    context: &'s Context<'c>,
    snapshot: &'s Snapshot,
    verbosity: Verbosity,
    /// The plan of the `$sql` that the pipeline begins with.
    relational_plan: Option<Value>,
}

/// Whether the find at the bottom of a pipeline is that of `$geoNear`: no `$match` finds by distance.
fn measures(bottom: &Bottom) -> bool {
    bottom.find.query.filter.near().is_some()
}

impl Shown<'_, '_> {
    /// Appends the pipeline that the command names.
    fn append(
        &self,
        pipeline: &Pipeline,
        explained: &Explained,
        words: &Words<'_>,
        reply: &mut RawWriter,
    ) -> Result<()> {
        let (bottom, root) = (&explained.bottom, &*explained.root);
        let report = report(root);
        // $geoNear is shown as a stage even if nothing is done with the rows of its find.
        let stays = pipeline.writes() || measures(bottom);
        if let (Some((plan, ran)), 0, false) = (&report.plan, explained.stages, stays) {
            reply.append("queryPlanner", &planner_document(&self.subject(bottom, words)?));
            if let Some(stats) = self.stats(*plan, ran, bottom) {
                reply.append("executionStats", &stats);
            }
            return Ok(());
        }
        let mut stages = self.stages(report, bottom, words)?;
        if let (true, Some(stage), Some(written)) = (pipeline.writes(), pipeline.stages.last(), pipeline.written.last())
        {
            stages.push(stage.serialize(written).into());
        }
        reply.append("stages", &Value::from(stages));
        Ok(())
    }

    /// The plan that reads and the stages on top of it.
    fn stages(&self, report: PipelineReport<'_>, bottom: &Bottom, words: &Words<'_>) -> Result<Vec<Value>> {
        let mut stages = Vec::with_capacity(report.stages.len() + 1);
        if let Some((plan, mut ran)) = report.plan {
            let mut cursor = doc! { "queryPlanner": planner_document(&self.subject(bottom, words)?) };
            cursor.push("executionStats", self.stats(plan, &ran, bottom));
            ran.shown = match measures(bottom) {
                true => doc! { "$geoNearCursor": cursor },
                false => doc! { "$cursor": cursor },
            };
            stages.push(self.stage(ran)?);
        }
        // The fields that $geoNear sets belong to its cursor.
        let is_shown = |stage: &StageReport<'_>| stage.shown.get("$geoNear").is_none();
        for stage in report.stages.into_iter().filter(is_shown) {
            stages.push(self.stage(stage)?);
        }
        Ok(stages)
    }

    /// A stage, with the pipelines that it runs.
    fn stage(&self, mut stage: StageReport<'_>) -> Result<Value> {
        for within in std::mem::take(&mut stage.within) {
            // Inner pipelines are grouped by the shape of the whole pipeline.
            let stages = self.stages(report(within.root), within.bottom, &Words::default())?;
            set_within(&mut stage.shown, within.field, stages.into());
        }
        if let (Some(plan), Some(_)) = (&self.relational_plan, stage.shown.get("$sql")) {
            stage.planned.push("queryPlan", plan.clone());
        }
        Ok(match self.verbosity {
            Verbosity::QueryPlanner => {
                stage.shown.fields_mut().append(stage.planned.fields_mut());
                stage.shown.into()
            }
            _ => stage.into_document().into(),
        })
    }

    fn stats(&self, plan: &dyn Operator, ran: &StageReport<'_>, bottom: &Bottom) -> Option<Document> {
        let wanted = self.verbosity > Verbosity::QueryPlanner;
        wanted.then(|| execution_stats(plan, ran.returned as i64, ran.elapsed, self.verbosity, &bottom.tried))
    }

    /// The part of a pipeline that is planned as a query.
    fn subject(&self, bottom: &Bottom, words: &Words<'_>) -> Result<Subject> {
        let find = &bottom.find;
        let (query, ns) = (&find.query, &find.namespace);
        let collection = self.snapshot.catalog().get(ns);
        let at = cache_key(query, Written::default(), collection.map(|c| &**c))?;
        let stages = words.pipeline.into_iter().flat_map(RawDoc::iter).skip(1);
        // The stages that a plan takes part in.
        let names = stages.flat_map(|(_, stage)| stage.as_document().into_iter().flat_map(DocRef::iter));
        let names = names.map(|(name, _)| name).filter(|name| PLANNED_STAGES.contains(name));
        let mut subject = Subject {
            ns: ns.clone(),
            filter: query.filter.clone(),
            collator: query.collation.clone(),
            plans: find.plans.clone(),
            index_filter_set: find.restricted && !self.context.are_indexes_set(ns),
            limit: query.limit,
            at,
            shown_at: CacheKey {
                shape: extended_shape(at.shape, names.clone()),
                key: extended_shape(at.key, names),
            },
            cached: None,
            settings: self.context.shown_settings(),
            top: None,
            express: None,
        };
        subject.look_up(self.context, self.snapshot);
        Ok(subject)
    }
}

/// Puts a pipeline where it is written in a stage, at a dotted path. `{$unionWith: "c"}` stands for one with an empty pipeline.
fn set_within(stage: &mut Document, field: &str, pipeline: Value) {
    let Some((_, written)) = stage.fields_mut().first_mut() else {
        return;
    };
    if let Value::Document(spec) = written {
        set_at(spec, field, pipeline);
        return;
    }
    let mut spec = doc! { "coll": std::mem::replace(written, Value::Null) };
    spec.push(field, pipeline);
    *written = spec.into();
}

fn set_at(spec: &mut Document, path: &str, value: Value) {
    let Some((head, rest)) = path.split_once('.') else {
        return spec.set(path, value);
    };
    for (name, inner) in spec.fields_mut() {
        if let (true, Value::Document(inner)) = (name == head, inner) {
            return set_at(inner, rest, value);
        }
    }
}
