//! `explain`: how a command would run, and with `executionStats` how it did.

use super::aggregate::AggregateArgs;
use super::count::{self, CountArgs};
use super::distinct::{self, DistinctArgs};
use super::explain_pipeline;
use super::explain_trial::{all_plans, decide};
use super::find::FindArgs;
use crate::Context;
use crate::args::Arg;
use crate::commands::diagnostic::build_info;
use crate::dispatch::{CommandSpec, Flags};
use crate::parameters::Param;
use crate::query_shape;
use crate::read::{self, Target};
use crate::write::target::Selection;
use nestor_exec::multi_plan::Tried;
use nestor_exec::ops::Eof;
use nestor_exec::write::{Changed, Writer};
use nestor_exec::{BoxOperator, Figures, Operator, Reads, Row, RowDoc, Step};
use nestor_model::value::DocRef;
use nestor_model::{Document, Namespace, Path, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_planner::explain::plan_document;
use nestor_planner::shape::{Written, hash_text, plan_shape_hash};
use nestor_planner::{FindQuery, PlanNode, candidates};
use nestor_query::collation::Collator;
use nestor_query::env::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_query::update::{Applied, Update, UpdateOptions};
use nestor_storage::{Snapshot, View};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "explain",
    aliases: &[],
    flags: Flags::API_V1
        .and(Flags::LONG)
        .and(Flags::FOR_REPLY)
        .and(Flags::READ_CONCERN),
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
pub(super) enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}

/// The query that is explained.
pub(super) struct Subject {
    pub(super) ns: Namespace,
    pub(super) filter: Arc<MatchExpr>,
    /// What strings compare by.
    pub(super) collator: Option<Collator>,
    /// The plans it could run by, the one that it does run by first; none without a collection.
    pub(super) plans: Vec<PlanNode>,
    /// A filter of its shape restricted the indexes.
    pub(super) index_filter_set: bool,
    /// How many rows it wants.
    pub(super) limit: Option<u64>,
    /// Hash of what plans are shared by.
    pub(super) plan_shape: u64,
    /// Key of its plan in the cache.
    pub(super) cache_key: u64,
    /// Signature of the plan that is active there.
    pub(super) cached: Option<u64>,
    /// What the command is, literals by type.
    pub(super) query_shape: Document,
    /// What is set for queries of that shape.
    pub(super) settings: Option<Document>,
    pub(super) write: Option<Write>,
}

/// What a write command would do with what it finds.
pub(super) enum Write {
    Update {
        multi: bool,
        upsert: bool,
        update: Box<Update>,
    },
    Delete {
        multi: bool,
    },
}

/// What a write would have changed, counted by doing it in a write set that is thrown away.
#[derive(Default)]
struct Changes {
    found: i64,
    modified: i64,
    keys_inserted: u64,
    keys_deleted: u64,
}

impl Write {
    /// Does the write to one found record, counts, and undoes it.
    fn try_on(&self, row: &Row, filter: &MatchExpr, writer: &mut Writer<'_>, changes: &mut Changes) -> Result<()> {
        changes.found += 1;
        let (Some(record), RowDoc::Stored(bytes)) = (&row.record, &row.doc) else {
            return Ok(());
        };
        let old = bytes.document();
        let before = writer.ws.savepoint();
        match self {
            Self::Delete { .. } => writer.delete(record, old, None)?,
            Self::Update { update, .. } => {
                let position = match update.needs_position() {
                    true => filter
                        .matches_with_position(old.as_doc(), writer.op)?
                        .and_then(|d| d.position),
                    false => None,
                };
                if let Applied::Changed(new) = update.apply(old, position, writer.op)? {
                    changes.modified += 1;
                    let changed = Changed {
                        doc: new.doc,
                        diff: None,
                        touched: update.touched(),
                    };
                    writer.update(record, old, changed, None)?;
                }
            }
        }
        writer.ws.rollback_to(before);
        Ok(())
    }

    fn stage(&self) -> &'static str {
        match self {
            Self::Update { .. } => "UPDATE",
            Self::Delete { .. } => "DELETE",
        }
    }

    fn multi(&self) -> bool {
        match self {
            Self::Update { multi, .. } | Self::Delete { multi } => *multi,
        }
    }
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
        return explain_pipeline::aggregate(context, &inner, &ns, verbosity, args.command, reply);
    }
    let mut subject = subject(context, &snapshot, name, args.command)?;
    append(context, &snapshot, &mut subject, verbosity, reply)?;
    reply.append_raw("command", args.command);
    append_server(context, reply);
    Ok(())
}

fn subject(context: &Context<'_>, view: &dyn View, name: &str, command: RawDoc<'_>) -> Result<Subject> {
    let mut collator = None;
    let mut under = |given: Option<RawDoc<'_>>, ns: &Namespace| -> Result<Scope> {
        collator = read::collator(given, view.catalog().get(ns).map(|c| &**c))?;
        Ok(Scope::new().with_collator(collator.clone()))
    };
    let mut written = Written::default();
    let mut write = None;
    let mut loose_path = None;
    let part = |name: &str| command.get(name).and_then(ValueRef::as_document);
    let (ns, mut query) = match name {
        "find" => {
            let args = FindArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            let collection = view.catalog().get(&ns).cloned();
            let collator = under(args.collation, &ns)?.collator().cloned();
            let (_, mut scope) = context.operation_under(args.variables, collator)?;
            written = Written {
                filter: part("filter"),
                sort: part("sort"),
                projection: part("projection"),
                collation: part("collation"),
            };
            (ns, super::find::parse(&args, collection.as_deref(), &mut scope)?)
        }
        "count" => {
            let args = CountArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            let mut scope = under(args.collation, &ns)?;
            let mut query = hinted(view, &ns, args.query, args.hint, &mut scope)?;
            (query.limit, query.skip) = count::limits(&args)?;
            (ns, query)
        }
        "distinct" => {
            let args = DistinctArgs::parse(command, &[])?;
            let ns = context.namespace(view, args.target)?;
            loose_path = args.hint.is_none().then(|| Path::new(args.key));
            let mut scope = under(args.collation, &ns)?;
            (ns.clone(), hinted(view, &ns, args.query, args.hint, &mut scope)?)
        }
        "update" | "delete" | "findAndModify" | "findandmodify" => {
            let ns = context.namespace(view, write_target(command)?)?;
            let mut scope = under(statement_collation(name, command), &ns)?;
            let found = write_filter(name, command, &mut scope)?;
            let mut query = hinted(view, &ns, found.filter, found.hint, &mut scope)?;
            query.sort = Selection::parse(found.filter, found.sort, &mut scope)?.sort;
            query.limit = (!found.write.multi()).then_some(1);
            write = Some(found.write);
            (ns, query)
        }
        "" => bail!(CommandNotFound, "explain needs a command"),
        "insert" | "getMore" | "killCursors" | "create" | "drop" | "createIndexes" | "ping" | "hello"
        | "listCollections" => {
            bail!(IllegalOperation, "Explain cannot explain command: {name}")
        }
        other => bail!(CommandNotFound, "Explain failed due to unknown command: {other}"),
    };
    context.show_settings(name, &ns, command);
    let is_restricted = context.restrict_indexes(&ns, &mut query, written);
    let index_filter_set = is_restricted && !context.are_indexes_set(&ns);
    let plans = match view.catalog().get(&ns) {
        Some(collection) if !collection.is_view() => match (name, loose_path) {
            ("count", _) => count::plans(&query, collection)?,
            ("distinct", Some(path)) if !is_restricted => distinct::plans(context, view, &query, &path, collection)?,
            _ => candidates(&query, &nestor_exec::catalog::indexes(collection)?),
        },
        _ => vec![PlanNode::Eof],
    };
    if plans.is_empty() {
        return Err(nestor_planner::find::no_plan());
    }
    Ok(Subject {
        plans,
        limit: query.limit,
        plan_shape: plan_shape_hash(&written.shape(&query)),
        cache_key: 0,
        cached: None,
        filter: query.filter,
        collator,
        index_filter_set,
        query_shape: query_shape::of_command(name, &ns, command),
        settings: context.shown_settings(),
        ns,
        write,
    })
}

/// The query for what matches a filter, found as the hint says.
fn hinted(
    view: &dyn View,
    ns: &Namespace,
    filter: Option<RawDoc<'_>>,
    hint: Option<ValueRef<'_>>,
    scope: &mut Scope,
) -> Result<FindQuery> {
    let mut query = FindQuery::all(read::parse_filter(filter, scope)?);
    query.collation = scope.collator().cloned();
    let collection = view.catalog().get(ns).filter(|c| !c.is_view());
    read::check_hint(hint, collection.map(|c| &**c))?.apply(&mut query);
    Ok(query)
}

/// What a write command is about; of an update or delete, its only statement.
struct WriteSubject<'a> {
    filter: Option<RawDoc<'a>>,
    sort: Option<RawDoc<'a>>,
    hint: Option<ValueRef<'a>>,
    write: Write,
}

/// The collection of a write command.
fn write_target(command: RawDoc<'_>) -> Result<Target<'_>> {
    let at = crate::args::At {
        path: "explain",
        field: "explain",
    };
    let first = command.iter().next().map_or(ValueRef::Missing, |(_, value)| value);
    let Some(target) = Target::parse(first, at)? else {
        bail!(InvalidNamespace, "explain needs a collection");
    };
    Ok(target)
}

/// The collation of a write command's only statement, or of a findAndModify.
fn statement_collation<'a>(name: &str, command: RawDoc<'a>) -> Option<RawDoc<'a>> {
    let statement = match name {
        "update" => command.get("updates").and_then(ValueRef::as_array)?.get(0),
        "delete" => command.get("deletes").and_then(ValueRef::as_array)?.get(0),
        _ => Some(command.into()),
    };
    match statement?.as_document()?.get("collation")? {
        ValueRef::Document(DocRef::Raw(collation)) => Some(collation),
        _ => None,
    }
}

fn write_filter<'a>(name: &str, command: RawDoc<'a>, scope: &mut Scope) -> Result<WriteSubject<'a>> {
    let document = |value: Option<ValueRef<'a>>| match value {
        Some(ValueRef::Document(DocRef::Raw(doc))) => Some(doc),
        _ => None,
    };
    let list = match name {
        "update" => "updates",
        "delete" => "deletes",
        _ => {
            let remove = command.get("remove").is_some_and(ValueRef::truthy);
            let write = if remove {
                Write::Delete { multi: false }
            } else {
                update_of(command, "update", false, scope)?
            };
            return Ok(WriteSubject {
                filter: document(command.get("query")),
                sort: document(command.get("sort")),
                hint: command.get("hint"),
                write,
            });
        }
    };
    let Some(ValueRef::Array(statements)) = command.get(list) else {
        bail!(40414, "BSON field '{name}.{list}' is missing but a required field");
    };
    if statements.len() != 1 {
        bail!(InvalidLength, "explained write batches must be of size 1");
    }
    let statement = document(statements.get(0));
    let q = statement.and_then(|statement| document(statement.get("q")));
    let flag = |name: &str| statement.and_then(|statement| statement.get(name));
    let write = match name {
        "update" => match statement {
            Some(statement) => update_of(statement, "u", flag("multi").is_some_and(ValueRef::truthy), scope)?,
            None => bail!(TypeMismatch, "update.updates must hold documents"),
        },
        _ => Write::Delete {
            multi: !flag("limit").is_some_and(ValueRef::truthy),
        },
    };
    Ok(WriteSubject {
        filter: q,
        sort: document(flag("sort")),
        hint: flag("hint"),
        write,
    })
}

/// The update that a statement describes; `field` holds its modifiers.
fn update_of(statement: RawDoc<'_>, field: &str, multi: bool, scope: &mut Scope) -> Result<Write> {
    let Some(u) = statement.get(field) else {
        bail!(
            40414,
            "BSON field 'update.updates.{field}' is missing but a required field"
        );
    };
    let options = UpdateOptions {
        array_filters: statement.get("arrayFilters").and_then(ValueRef::as_array),
        constants: statement.get("c").and_then(ValueRef::as_document),
        multi,
    };
    Ok(Write::Update {
        multi,
        upsert: statement.get("upsert").is_some_and(ValueRef::truthy),
        update: Box::new(Update::parse(u, options, scope)?),
    })
}

fn append(
    context: &Context<'_>,
    snapshot: &Snapshot,
    subject: &mut Subject,
    verbosity: Verbosity,
    reply: &mut RawWriter,
) -> Result<()> {
    reply.append("explainVersion", "1");
    let started = Instant::now();
    let multi = decide(context, snapshot, subject)?;
    let tried = multi.as_ref().map_or_else(Vec::new, |multi| multi.tried().to_vec());
    reply.append("queryPlanner", &planner_document(subject));
    reply.append("queryShapeHash", query_shape::hash(&subject.query_shape).as_str());
    if verbosity == Verbosity::QueryPlanner {
        return Ok(());
    }
    let mut returned = 0i64;
    let mut changes = Changes::default();
    let mut root: BoxOperator = match multi {
        Some(multi) => Box::new(multi),
        None => Box::<Eof>::default(),
    };
    let (op, _) = context.operation_under(None, subject.collator.clone())?;
    let mut batch = read::batch(context, snapshot, &op, true);
    if let Some(collection) = snapshot.catalog().get(&subject.ns) {
        let mut ws = context.service.engine.begin_at(snapshot.clone());
        let mut writer = match subject.write {
            Some(_) => Some(Writer::new(&mut ws, collection.clone(), &op, None)?),
            None => None,
        };
        loop {
            match (root.next(&mut batch)?, &subject.write, &mut writer) {
                (Step::Row(row), Some(write), Some(writer)) => {
                    write.try_on(&row, &subject.filter, writer, &mut changes)?;
                }
                (Step::Row(_), ..) => returned += 1,
                (Step::Pause, ..) => {}
                (Step::Eof, ..) => break,
            }
        }
        if let Some(writer) = writer {
            changes.keys_inserted = writer.keys_inserted;
            changes.keys_deleted = writer.keys_deleted;
        }
    } else {
        root.next(&mut batch)?;
    }
    let mut stats = execution_stats(&*root, returned, started.elapsed(), verbosity, &tried);
    if let Some(write) = &subject.write {
        let input = stats
            .remove("executionStages")
            .and_then(|stages| stages.as_document().cloned());
        stats.push(
            "executionStages",
            would_write(write, &changes, input.unwrap_or_default()),
        );
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
    let mut found = plan_document(plan);
    let fields = std::mem::take(found.fields_mut());
    let mut out = doc! { "isCached": subject.is_cached(plan) };
    match &subject.write {
        Some(write) => {
            out.push("stage", write.stage());
            out.push("inputStage", fields.into_iter().collect::<Document>());
        }
        None => out.fields_mut().extend(fields),
    }
    out
}

/// Explaining changes nothing: the stage tells what the write would have done.
fn would_write(write: &Write, changes: &Changes, input: Document) -> Document {
    let mut out = doc! {
        "stage": write.stage(),
        "nReturned": 0,
        "works": changes.found as i32 + 1,
        "advanced": 0,
        "needTime": changes.found as i32,
        "needYield": 0,
        "isEOF": 1,
    };
    match write {
        Write::Update { upsert, .. } => {
            out.push("nMatched", changes.found as i32);
            out.push("nWouldModify", changes.modified as i32);
            out.push("nWouldUpsert", i32::from(*upsert && changes.found == 0));
        }
        Write::Delete { .. } => out.push("nWouldDelete", changes.found as i32),
    }
    out.push("keysInserted", Value::count(changes.keys_inserted));
    out.push("keysDeleted", Value::count(changes.keys_deleted));
    out.push("inputStage", input);
    out
}

/// `queryPlanner`: how the documents are read.
pub(super) fn planner_document(subject: &Subject) -> Document {
    let plan = subject.plans.first().cloned().unwrap_or(PlanNode::Eof);
    let shape_hash = hash_text(subject.plan_shape);
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
        "planCacheKey": hash_text(subject.cache_key),
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
