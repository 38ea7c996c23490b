//! `explain`: how a command would run, and with `executionStats` how it did.
//!
//! The command is prepared exactly as running it does; what is refused then is refused here with the same error.

use super::explain_trial::{all_plans, decide};
use super::explain_write::{Changes, stage, try_write, would_write};
use super::{aggregate, count, distinct, explain_express, explain_pipeline};
use crate::commands::diagnostic::build_info;
use crate::commands::query::prepare::{self, Command};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation, Table};
use crate::generic::{Generic, check_strict};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::operation::{Operation, Work};
use nestor_database::parameters::Param;
use nestor_database::read;
use nestor_exec::multi_plan::by_columns;
use nestor_exec::ops::Eof;
use nestor_exec::plan_cache::Tried;
use nestor_exec::{BoxOperator, Figures, Interrupt, Operator, Reads, Step};
use nestor_model::{DocRef, Document, Namespace, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc, number};
use nestor_planner::explain::plan_document;
use nestor_planner::find::Wanted;
use nestor_planner::reuse::CacheKey;
use nestor_planner::shape::{Written, hash_text};
use nestor_planner::{FindQuery, Indexes, NodeKind, PlanNode, candidates};
use nestor_query::collation::Collator;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Snapshot, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("explain", "How a command runs.")
    .flags(
        Flags::API_V1
            .and(Flags::LONG)
            .and(Flags::FOR_REPLY)
            .and(Flags::READ_CONCERN)
            .and(Flags::PRIMARY_READ),
    )
    .prepared_as(Preparation::Explain)
    .needs(Needs::Operation)
    .runs(run);

crate::args! {
    /// Arguments of `explain`.
    pub struct ExplainArgs<'a>: "explain" command {
        "explain" => command: RawDoc<'a>,
        "verbosity" => verbosity: Option<&'a str>,
    }
}

/// How much explain says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}

/// How much explain shows of a query's plans.
pub(super) struct Subject {
    pub(super) ns: Namespace,
    pub(super) filter: Arc<MatchExpr>,
    /// The collation that strings compare by.
    pub(super) collator: Option<Collator>,
    /// The plans it could run by, the one that it does run by first; none without a collection.
    pub(super) plans: Vec<PlanNode>,
    /// A filter of its shape restricted the indexes.
    pub(super) index_filter_set: bool,
    /// How many rows it wants.
    pub(super) limit: Option<u64>,
    /// Under what its plan is kept in the cache.
    pub(super) at: CacheKey,
    /// The same as it is shown: what a pipeline does with the rows is part of it.
    pub(super) shown_at: CacheKey,
    /// Signature of the plan that is active there.
    pub(super) cached: Option<u64>,
    /// The settings for queries of that shape.
    pub(super) settings: Option<Document>,
    /// The stage on top of its plans: of a write or a count.
    pub(super) top: Option<&'static str>,
    /// The stage that stands for its only plan, when that is a lookup of one `_id`.
    pub(super) express: Option<Document>,
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ExplainArgs::parse(context.body, context.sequences)?;
    let verbosity = match args.verbosity {
        None | Some("allPlansExecution") => Verbosity::AllPlansExecution,
        Some("executionStats") => Verbosity::ExecutionStats,
        Some("queryPlanner") => Verbosity::QueryPlanner,
        Some(other) => bail!(
            BadValue,
            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
        ),
    };
    let spec = explained(context.service.commands, args.command)?;
    take_arguments(context, spec, args.command)?;
    let snapshot = context.read_snapshot()?;
    let command = Command {
        facts: spec,
        body: args.command,
        sequences: &[],
    };
    let operation = prepare::explained(context, &snapshot, command)?;
    explain(context, &snapshot, operation, verbosity, args.command, reply)
}

/// The command that is explained.
pub(crate) fn explained(commands: &Table, command: RawDoc<'_>) -> Result<&'static Facts> {
    let Some((name, _)) = command.iter().next() else {
        bail!(CommandNotFound, "explain needs a command");
    };
    match commands.lookup(name) {
        Some(spec) => Ok(spec),
        None => bail!(CommandNotFound, "Explain failed due to unknown command: {name}"),
    }
}

/// Takes over the arguments that every command has from the command that is explained, checked as for running it. Those
/// of `explain` itself hold where it gives none.
fn take_arguments(context: &mut Context<'_>, spec: &Facts, command: RawDoc<'_>) -> Result<()> {
    let mut own = Generic::parse(command, spec, context.conn.identity.owner())?;
    if context.terms.strict_api {
        check_strict(command, spec)?;
    }
    if !own.terms.db.is_empty() && own.terms.db != context.db() {
        bail!(
            InvalidNamespace,
            "Mismatched $db in explain command. Expected {} but got {}",
            context.db(),
            own.terms.db
        );
    }
    if spec.name == aggregate::SPEC.name {
        aggregate::check_explained(&own)?;
    }
    if own.terms.in_transaction {
        bail!(
            OperationNotSupportedInTransaction,
            "Cannot run 'explain' in a multi-document transaction."
        );
    }
    if own.terms.read_concern.is_default() {
        own.terms.read_concern = context.terms.read_concern;
        own.check_concerns(spec)?;
    }
    context.terms.read_concern = own.terms.read_concern;
    if let (Some(ms), None) = (own.max_time_ms.filter(|ms| *ms > 0), context.generic.max_time_ms) {
        context.generic.max_time_ms = own.max_time_ms;
        let deadline = context.statement_started.get() + Duration::from_millis(ms.into());
        context.interrupt = Interrupt::new(context.conn.slot.kill.clone(), Some(deadline));
        nestor_model::statement::stop_by(&context.interrupt);
    }
    Ok(())
}

/// Writes the reply: the plans of `operation`, and how they did; `command` is what it repeats.
pub(super) fn explain(
    context: &Context<'_>,
    snapshot: &Snapshot,
    mut operation: Operation<'_>,
    verbosity: Verbosity,
    command: RawDoc<'_>,
    reply: &mut RawWriter,
) -> Result<()> {
    context.show_settings(&operation.shape);
    let is_restricted = context.restrict(&mut operation);
    reply.append("explainVersion", "1");
    match &operation.work {
        Work::Pipeline(piped) => explain_pipeline::append(context, snapshot, &operation, piped, verbosity, reply)?,
        _ => append(context, snapshot, &operation, is_restricted, verbosity, reply)?,
    }
    reply.append("queryShapeHash", operation.shape.hash().as_str());
    reply.append_raw("command", command);
    append_server(context, reply);
    Ok(())
}

/// The plans that an operation could run by.
fn plans(
    context: &Context<'_>,
    view: &dyn View,
    operation: &Operation<'_>,
    is_restricted: bool,
) -> Result<Vec<PlanNode>> {
    let (Some(query), Some(collection)) = (operation.query(), &operation.collection) else {
        return Ok(vec![PlanNode::Eof]);
    };
    let plans = match &operation.work {
        Work::Count(_) => count::plans(query, collection)?,
        Work::Distinct { .. } => distinct::plans(context, view, operation, is_restricted)?,
        _ => candidates(query, nestor_exec::catalog::indexes(collection)?),
    };
    let wanted = match &operation.work {
        Work::Count(_) => Wanted::Count,
        Work::Distinct { .. } => Wanted::Distinct,
        Work::Find(_) | Work::Write(_) | Work::Pipeline(_) => Wanted::Documents,
    };
    let columns = context
        .columns(view)
        .filter(|_| !matches!(operation.work, Work::Write(_)));
    match plans.is_empty() {
        true => Err(nestor_planner::find::no_plan(query, &collection.ns)),
        false => by_columns(plans, query, wanted, collection, columns),
    }
}

fn subject(
    context: &Context<'_>,
    view: &dyn View,
    operation: &Operation<'_>,
    is_restricted: bool,
) -> Result<Option<Subject>> {
    let Some(query) = operation.query() else {
        return Ok(None);
    };
    let plans = plans(context, view, operation, is_restricted)?;
    let at = cache_key(query, operation.shape.words.written(), operation.collection.as_deref())?;
    Ok(Some(Subject {
        express: explain_express::stage(operation, plans.first()),
        plans,
        limit: query.limit,
        at,
        shown_at: at,
        cached: None,
        filter: query.filter.clone(),
        collator: query.collation.clone(),
        index_filter_set: is_restricted && !context.are_indexes_set(operation.ns()),
        settings: context.shown_settings(),
        ns: operation.ns().clone(),
        top: match &operation.work {
            Work::Write(write) => Some(stage(write)),
            Work::Count(_) if operation.collection.is_some() => Some(NodeKind::Count.name()),
            _ => None,
        },
    }))
}

/// Under what the plan of a query is kept.
pub(super) fn cache_key(query: &FindQuery, written: Written<'_>, collection: Option<&Collection>) -> Result<CacheKey> {
    let indexes = match collection {
        Some(collection) => nestor_exec::catalog::indexes(collection)?,
        None => &Indexes::default(),
    };
    Ok(CacheKey::of(query, written, indexes))
}

fn append(
    context: &Context<'_>,
    snapshot: &Snapshot,
    operation: &Operation<'_>,
    is_restricted: bool,
    verbosity: Verbosity,
    reply: &mut RawWriter,
) -> Result<()> {
    let Some(mut subject) = subject(context, snapshot, operation, is_restricted)? else {
        return Ok(());
    };
    let started = Instant::now();
    let mut batch = read::batch(context, snapshot, &operation.op, operation.disk_use);
    let multi = decide(
        context,
        snapshot,
        &mut subject,
        operation.collection.as_ref(),
        &mut batch,
    )?;
    let tried = multi.as_ref().map_or_else(Vec::new, |multi| multi.tried().to_vec());
    reply.append("queryPlanner", &planner_document(&subject));
    if verbosity == Verbosity::QueryPlanner {
        return Ok(());
    }
    let mut root: BoxOperator = match multi {
        Some(multi) => Box::new(multi),
        None => Box::<Eof>::default(),
    };
    let mut returned = 0i64;
    let mut changes = None;
    match (&operation.work, &operation.collection) {
        (Work::Write(write), Some(collection)) => {
            changes = Some(try_write(
                context,
                snapshot,
                (write, collection),
                &mut root,
                &mut batch,
            )?);
        }
        _ => loop {
            match root.next(&mut batch)? {
                Step::Row(_) => returned += 1,
                Step::Pause => {}
                Step::Eof => break,
            }
        },
    }
    let mut stats = execution_stats(&*root, returned, started.elapsed(), verbosity, &tried);
    let changes: Changes = changes.unwrap_or_default();
    let write = match &operation.work {
        Work::Write(write) => Some((write, &changes)),
        _ => None,
    };
    if let Some(stage) = &subject.express {
        let stages = explain_express::executed(stage, &Reads::of(&*root), returned, write);
        stats.set("executionStages", stages);
    } else if let Some((write, changes)) = write {
        let input = stats
            .remove("executionStages")
            .and_then(|stages| stages.as_document().cloned());
        stats.push(
            "executionStages",
            would_write(write, changes, below_limits(input.unwrap_or_default())),
        );
    } else if let (Work::Count(query), Some(_)) = (&operation.work, subject.top) {
        let input = stats
            .get("executionStages")
            .and_then(ValueRef::as_document)
            .map(DocRef::to_document);
        let stages = counted(query.skip, returned, below_limits(input.unwrap_or_default()));
        stats.set("nReturned", 0);
        stats.set("executionStages", stages);
    }
    reply.append("executionStats", &stats);
    Ok(())
}

/// `executionStats` of a plan that ran.
pub(super) fn execution_stats(
    root: &dyn Operator,
    returned: i64,
    elapsed: Duration,
    verbosity: Verbosity,
    tried: &[Tried],
) -> Document {
    let reads = Reads::of(root);
    let mut stats = doc! {
        "executionSuccess": true,
        "nReturned": returned as i32,
        "executionTimeMillis": elapsed.as_millis() as i32,
        "totalKeysExamined": reads.keys_examined as i32,
        "totalDocsExamined": reads.docs_examined as i32,
        "executionStages": Figures::of(root).document(),
    };
    if verbosity == Verbosity::AllPlansExecution {
        stats.push("allPlansExecution", all_plans(tried));
    }
    stats
}

/// A whole plan: the write on top of it, if there is one.
fn whole_plan(plan: &PlanNode, subject: &Subject) -> Document {
    let mut found = subject.express.clone().unwrap_or_else(|| plan_document(plan));
    let fields = std::mem::take(found.fields_mut());
    let mut out = doc! { "isCached": subject.is_cached(plan) };
    match subject.top {
        Some(stage) if subject.express.is_none() => {
            out.push("stage", stage);
            out.push("inputStage", below_limits(fields.into_iter().collect()));
        }
        _ => out.fields_mut().extend(fields),
    }
    out
}

/// What finds the documents that are written or counted. How many of them are wanted is no stage.
fn below_limits(mut found: Document) -> Document {
    loop {
        let stage = found.get("stage").and_then(ValueRef::as_str);
        if ![NodeKind::Limit, NodeKind::Skip]
            .iter()
            .any(|kind| stage == Some(kind.name()))
        {
            return found;
        }
        match found.remove("inputStage") {
            Some(Value::Document(input)) => found = input,
            _ => return found,
        }
    }
}

/// The stage that counts, with what it found.
fn counted(skip: u64, returned: i64, input: Document) -> Document {
    let found = input.get("nReturned").and_then(number::safe_i64).unwrap_or(0);
    let works = input.get("works").and_then(number::safe_i64).unwrap_or(0);
    let skipped = i64::try_from(skip).unwrap_or(i64::MAX).min(found);
    doc! {
        "stage": NodeKind::Count.name(),
        "nReturned": 0,
        "works": works as i32,
        "advanced": 0,
        "needTime": works.saturating_sub(1) as i32,
        "needYield": 0,
        "isEOF": 1,
        "nCounted": returned,
        "nSkipped": skipped,
        "inputStage": input,
    }
}

/// `queryPlanner`: how the documents are read.
pub(super) fn planner_document(subject: &Subject) -> Document {
    let plan = subject.plans.first().cloned().unwrap_or(PlanNode::Eof);
    let shape_hash = hash_text(subject.shown_at.shape);
    let rejected: Vec<Value> = subject
        .plans
        .iter()
        .skip(1)
        .map(|plan| whole_plan(plan, subject).into())
        .collect();
    let mut out = doc! {
        "namespace": subject.ns.to_string(),
        "parsedQuery": subject.filter.serialize(),
        "collation": subject.collator.as_ref().map(|collator| collator.collation().to_document()),
        "indexFilterSet": subject.index_filter_set,
        "queryHash": shape_hash.as_str(),
        "planCacheShapeHash": shape_hash.as_str(),
        "planCacheKey": hash_text(subject.shown_at.key),
        "optimizationTimeMillis": 0,
        "maxIndexedOrSolutionsReached": false,
        "maxIndexedAndSolutionsReached": false,
        "maxScansToExplodeReached": false,
        "prunedSimilarIndexes": false,
        "winningPlan": whole_plan(&plan, subject),
        "rejectedPlans": rejected,
    };
    if let Some(settings) = &subject.settings {
        out.push("querySettings", settings.clone());
    }
    out
}

pub(super) fn append_server(context: &Context<'_>, reply: &mut RawWriter) {
    let host = context.service.options.host.as_str();
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    let info = doc! {
        "host": name,
        "port": port.parse::<i32>().unwrap_or(0),
        "version": build_info::VERSION,
        "gitVersion": build_info::GIT_VERSION,
    };
    reply.append("serverInfo", &info);
    let parameters = &context.service.node.parameters;
    let limits = doc! {
        "internalDocumentSourceGroupMaxMemoryBytes": parameters.number(Param::GroupMemoryBytes),
        "internalQueryMaxBlockingSortMemoryUsageBytes": parameters.number(Param::SortMemoryBytes),
    };
    reply.append("serverParameters", &limits);
}
