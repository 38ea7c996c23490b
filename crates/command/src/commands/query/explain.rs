//! `explain`: how a command would run, and with `executionStats` how it did.

use super::aggregate::AggregateArgs;
use super::count::{CountArgs, as_find};
use super::distinct::DistinctArgs;
use super::find::FindArgs;
use crate::Context;
use crate::args::Arg;
use crate::dispatch::{CommandSpec, Flags};
use crate::read::{self, Target};
use nestor_exec::plan;
use nestor_exec::{BoxOperator, Operator, Step, build};
use nestor_model::value::DocRef;
use nestor_model::{ArrayRef, Document, Namespace, RawDoc, RawWriter, Result, ValueRef, bail, doc};
use nestor_planner::{FindQuery, PlanNode};
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Snapshot, View};
use std::sync::Arc;
use std::time::Instant;

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "explain",
    aliases: &[],
    flags: Flags::API_V1.and(Flags::LONG).and(Flags::READ_CONCERN),
    help: "How a command runs.",
    run,
};

crate::args! {
    /// Arguments of `explain`.
    pub struct ExplainArgs<'a>: "explain" command {
        "explain" => command: RawDoc<'a>,
        "verbosity" => verbosity: Option<&'a str>,
    }
}

/// How much explain says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}

/// The query that is explained.
struct Subject {
    ns: Namespace,
    filter: Arc<MatchExpr>,
    plan: Option<PlanNode>,
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
    let snapshot = context.read_snapshot()?;
    let name = args.command.iter().next().map_or("", |(name, _)| name);
    if name == "aggregate" {
        let inner = AggregateArgs::parse(args.command, &[])?;
        let ns = match inner.target.0 {
            Some(name) => crate::names::collection(context.db(), name)?,
            None => Namespace::new(context.db(), ""),
        };
        return aggregate(context, &inner, &ns, reply);
    }
    let subject = subject(context, &snapshot, name, args.command)?;
    append(context, &snapshot, &subject, verbosity, reply)?;
    reply.append_raw("command", args.command);
    append_server(context, reply);
    Ok(())
}

fn subject(context: &Context<'_>, view: &dyn View, name: &str, command: RawDoc<'_>) -> Result<Subject> {
    let (_, mut scope) = context.operation(None)?;
    let (ns, query) = match name {
        "find" => {
            let args = FindArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            let collection = view.catalog().get(&ns).cloned();
            let (_, mut scope) = context.operation(args.variables)?;
            (ns, super::find::parse(&args, collection.as_deref(), &mut scope)?)
        }
        "count" => {
            let args = CountArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            debug_assert!(
                as_find(&args).len() <= 1,
                "a count has a filter and nothing else that finds"
            );
            (ns, FindQuery::all(read::parse_filter(args.query, &mut scope)?))
        }
        "distinct" => {
            let args = DistinctArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            (ns, FindQuery::all(read::parse_filter(args.query, &mut scope)?))
        }
        "update" | "delete" | "findAndModify" | "findandmodify" => {
            let (target, filter) = write_filter(name, command)?;
            let ns = context.namespace(view, target)?;
            (ns, FindQuery::all(read::parse_filter(filter, &mut scope)?))
        }
        "" => bail!(FailedToParse, "explain needs a command"),
        other => bail!(CommandNotFound, "Explain failed due to unknown command: {other}"),
    };
    let plan = view.catalog().get(&ns).map(|found| plan(&query, found)).transpose()?;
    Ok(Subject {
        ns,
        filter: query.filter,
        plan,
    })
}

/// Collection and filter of a write command; of an update or delete, that of its only statement.
fn write_filter<'a>(name: &str, command: RawDoc<'a>) -> Result<(Target<'a>, Option<RawDoc<'a>>)> {
    let at = crate::args::At {
        path: "explain",
        field: "explain",
    };
    let first = command.iter().next().map_or(ValueRef::Missing, |(_, value)| value);
    let Some(target) = Target::parse(first, at)? else {
        bail!(InvalidNamespace, "explain needs a collection");
    };
    let document = |value: Option<ValueRef<'a>>| match value {
        Some(ValueRef::Document(DocRef::Raw(doc))) => Some(doc),
        _ => None,
    };
    let list = match name {
        "update" => "updates",
        "delete" => "deletes",
        _ => return Ok((target, document(command.get("query")))),
    };
    let Some(ValueRef::Array(statements)) = command.get(list) else {
        bail!(40414, "BSON field '{name}.{list}' is missing but a required field");
    };
    if statements.len() != 1 {
        bail!(InvalidLength, "explained write batches must be of size 1");
    }
    let q = document(statements.get(0)).and_then(|statement| document(statement.get("q")));
    Ok((target, q))
}

fn append(
    context: &Context<'_>,
    snapshot: &Snapshot,
    subject: &Subject,
    verbosity: Verbosity,
    reply: &mut RawWriter,
) -> Result<()> {
    reply.append("explainVersion", "1");
    let plan = subject.plan.clone().unwrap_or(PlanNode::Eof);
    let planner = doc! {
        "namespace": subject.ns.to_string(),
        "parsedQuery": subject.filter.serialize(),
        "indexFilterSet": false,
        "optimizationTimeMillis": 0,
        "maxIndexedOrSolutionsReached": false,
        "maxIndexedAndSolutionsReached": false,
        "maxScansToExplodeReached": false,
        "prunedSimilarIndexes": false,
        "winningPlan": plan_document(&plan),
        "rejectedPlans": Vec::new(),
    };
    reply.append("queryPlanner", &planner);
    if verbosity == Verbosity::QueryPlanner {
        return Ok(());
    }
    let mut stats = doc! { "executionSuccess": true };
    let started = Instant::now();
    let (mut returned, mut keys, mut docs) = (0i64, 0i64, 0i64);
    let mut stages = doc! { "stage": "EOF", "nReturned": 0, "isEOF": 1 };
    if let Some(collection) = snapshot.catalog().get(&subject.ns) {
        let (op, _) = context.operation(None)?;
        let mut root: BoxOperator = build(&plan, collection)?;
        let mut batch = read::batch(context, snapshot, &op, true);
        loop {
            match root.next(&mut batch)? {
                Step::Row(_) => returned += 1,
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        sum(&*root, &mut keys, &mut docs);
        stages = stage_document(&*root);
    }
    stats.push("nReturned", returned as i32);
    stats.push("executionTimeMillis", started.elapsed().as_millis() as i32);
    stats.push("totalKeysExamined", keys as i32);
    stats.push("totalDocsExamined", docs as i32);
    stats.push("executionStages", stages);
    if verbosity == Verbosity::AllPlansExecution {
        stats.push("allPlansExecution", Vec::new());
    }
    reply.append("executionStats", &stats);
    Ok(())
}

fn plan_document(plan: &PlanNode) -> Document {
    let mut out = doc! { "isCached": false, "stage": plan.stage() };
    match plan {
        PlanNode::CollScan(scan) => {
            if let Some(filter) = &scan.filter {
                out.push("filter", filter.serialize());
            }
            out.push("direction", if scan.forward { "forward" } else { "backward" });
        }
        PlanNode::Limit { limit, .. } => out.push("limitAmount", *limit as i64),
        PlanNode::Skip { skip, .. } => out.push("skipAmount", *skip as i64),
        _ => {}
    }
    if let Some(input) = plan.input() {
        let mut inner = plan_document(input);
        inner.remove("isCached");
        out.push("inputStage", inner);
    }
    out
}

fn stage_document(operator: &dyn Operator) -> Document {
    let counters = operator.counters();
    let mut out = doc! {
        "stage": operator.stage(),
        "nReturned": counters.advanced as i32,
        "works": counters.works as i32,
        "advanced": counters.advanced as i32,
        "needTime": counters.works.saturating_sub(counters.advanced + u64::from(counters.is_eof)) as i32,
        "needYield": 0,
        "isEOF": i32::from(counters.is_eof),
    };
    operator.explain_fields(&mut out);
    if let Some(input) = operator.inputs().first() {
        out.push("inputStage", stage_document(*input));
    }
    out
}

fn sum(operator: &dyn Operator, keys: &mut i64, docs: &mut i64) {
    let counters = operator.counters();
    *keys += counters.keys_examined as i64;
    *docs += counters.docs_examined as i64;
    for input in operator.inputs() {
        sum(input, keys, docs);
    }
}

fn append_server(context: &Context<'_>, reply: &mut RawWriter) {
    let host = context.service.options.host.as_str();
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "0"));
    let info = doc! {
        "host": name,
        "port": port.parse::<i32>().unwrap_or(0),
        "version": crate::commands::diagnostic::build_info::VERSION,
        "gitVersion": "unknown",
    };
    reply.append("serverInfo", &info);
}

/// Explains a pipeline: the stages it was parsed into, over the plan that feeds them.
pub(super) fn aggregate(
    context: &mut Context<'_>,
    args: &AggregateArgs<'_>,
    ns: &Namespace,
    reply: &mut RawWriter,
) -> Result<()> {
    super::aggregate::check(args)?;
    let snapshot = context.read_snapshot()?;
    let (_, mut scope) = context.operation(args.variables)?;
    let pipeline = ArrayRef::Raw(args.pipeline.0);
    // Parsing and planning find every error that running would.
    context.plan_pipeline(&snapshot, ns, pipeline, &mut scope)?;
    let filter = match pipeline.iter().next() {
        Some(ValueRef::Document(stage)) => match stage.get("$match") {
            Some(ValueRef::Document(DocRef::Raw(filter))) => Some(filter),
            _ => None,
        },
        _ => None,
    };
    let query = FindQuery::all(read::parse_filter(filter, &mut scope)?);
    let subject = Subject {
        ns: ns.clone(),
        filter: query.filter.clone(),
        plan: snapshot
            .catalog()
            .get(ns)
            .map(|found| plan(&query, found))
            .transpose()?,
    };
    append(context, &snapshot, &subject, Verbosity::QueryPlanner, reply)?;
    reply.append_raw("command", context.body);
    append_server(context, reply);
    Ok(())
}
