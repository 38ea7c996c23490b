//! `count`.

use crate::Context;
use crate::args::safe_i64;
use crate::dispatch::{CommandSpec, Flags};
use crate::read::{self, Target};
use crate::read_concern::Level;
use crate::write::append_count;
use nestor_exec::catalog::indexes;
use nestor_exec::{BoxOperator, Step, run_one_of};
use nestor_model::{ArrayRef, DocRef, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_planner::choose::for_count;
use nestor_planner::shape::Written;
use nestor_planner::{FindQuery, PlanNode, candidates};
use nestor_query::matcher::MatchExpr;
use nestor_query::{OpContext, Scope};
use nestor_storage::{Collection, View};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "count",
    aliases: &[],
    flags: Flags::API_V1
        .and(Flags::LONG)
        .and(Flags::FOR_REPLY)
        .and(Flags::READ_CONCERN),
    help: "Number of documents that match.",
    run,
};

crate::args! {
    /// Arguments of `count`.
    pub struct CountArgs<'a>: "count" command {
        "count" => target: Target<'a>,
        "query" => query: Option<RawDoc<'a>>,
        "limit" => limit: Option<ValueRef<'a>>,
        "skip" => skip: Option<ValueRef<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "fields" => fields: Option<ValueRef<'a>>,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
        "collectionUUID" => collection_uuid: Option<crate::args::Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CountArgs::parse(context.body, context.sequences)?;
    if context.generic.read_concern.level() == Level::Snapshot {
        bail!(
            InvalidOptions,
            "Command count does not support readConcern level snapshot"
        );
    }
    let snapshot = context.read_snapshot()?;
    let ns = context.namespace(&snapshot, args.target)?;
    crate::write::check_uuid(context, &ns, args.collection_uuid)?;
    let (limit, skip) = limits(&args)?;
    let collection = snapshot.catalog().get(&ns).cloned();
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, scope) = context.operation_under(None, collator)?;
    let mut scope = scope.without_clock();
    let filter = read::parse_filter(args.query, &mut scope)?;
    let Some(collection) = collection else {
        append_count(reply, "n", 0);
        return Ok(());
    };
    if collection.is_view() {
        let n = count_view(context, &snapshot, &ns, &args, (limit.unwrap_or(0), skip), &op)?;
        append_count(reply, "n", n);
        return Ok(());
    }
    let hint = read::check_hint(args.hint, Some(&collection))?;
    // The collection knows how many documents it has; an index that a hint names may hold fewer.
    let part = hint.index.as_deref().and_then(|name| collection.index(name));
    let whole = part.is_none_or(|index| index.holds_every_document());
    if matches!(*filter, MatchExpr::AlwaysTrue) && whole {
        let all = u64::try_from(collection.state.documents())
            .unwrap_or(0)
            .saturating_sub(skip);
        let n = all.min(limit.unwrap_or(u64::MAX));
        append_count(reply, "n", i64::try_from(n).unwrap_or(i64::MAX));
        return Ok(());
    }
    let mut query = FindQuery::all(filter);
    query.collation.clone_from(&op.collator);
    hint.apply(&mut query);
    query.limit = limit;
    query.skip = skip;
    let written = Written {
        filter: args.query.map(DocRef::Raw),
        collation: args.collation.map(DocRef::Raw),
        ..Written::default()
    };
    context.apply_index_filter(&ns, &mut query, written);
    let mut root = run_one_of(plans(&query, &collection)?, &query, written, &collection)?;
    append_count(reply, "n", drain(context, &snapshot, &op, &mut root)?);
    Ok(())
}

/// The number of rows of a plan.
fn drain(context: &Context<'_>, view: &dyn View, op: &OpContext, root: &mut BoxOperator) -> Result<i64> {
    context.note_plan(&**root);
    let mut batch = read::batch(context, view, op, true);
    let mut n = 0i64;
    loop {
        match root.next(&mut batch)? {
            Step::Row(_) => n += 1,
            Step::Pause => {}
            Step::Eof => break,
        }
    }
    context.observe(&**root);
    Ok(n)
}

/// How many documents are counted at most, and how many are left out before.
pub(super) fn limits(args: &CountArgs<'_>) -> Result<(Option<u64>, u64)> {
    // A negative limit means its absolute value.
    let limit = number("limit", args.limit)?.unsigned_abs();
    match u64::try_from(number("skip", args.skip)?) {
        Ok(skip) => Ok((Some(limit).filter(|limit| *limit > 0), skip)),
        Err(_) => bail!(BadValue, "BSON field 'skip' value must be >= 0"),
    }
}

/// The plans by which the documents of a query could be counted.
pub(super) fn plans(query: &FindQuery, collection: &Collection) -> Result<Vec<PlanNode>> {
    let found = candidates(query, &indexes(collection)?);
    Ok(found.into_iter().map(for_count).collect())
}

fn number(name: &str, value: Option<ValueRef<'_>>) -> Result<i64> {
    match value {
        None => Ok(0),
        Some(ValueRef::Null | ValueRef::Undefined) if name == "skip" => Ok(0),
        Some(ValueRef::Null | ValueRef::Undefined) => bail!(BadValue, "limit must be a number"),
        Some(value) => match safe_i64(value) {
            Some(v) => Ok(v),
            None => Err(crate::args::wrong_type(
                format_args!("count.{name}"),
                value.bson_type(),
                crate::args::NUMBER_TYPES,
            )),
        },
    }
}

/// Counts what a view shows, as a pipeline.
fn count_view(
    context: &Context<'_>,
    view: &dyn View,
    ns: &nestor_model::Namespace,
    args: &CountArgs<'_>,
    (limit, skip): (u64, u64),
    op: &OpContext,
) -> Result<i64> {
    let mut stages: Vec<Value> = Vec::new();
    if let Some(query) = args.query {
        stages.push(Value::from(doc! { "$match": query }));
    }
    if skip > 0 {
        stages.push(Value::from(doc! { "$skip": skip as i64 }));
    }
    if limit > 0 {
        stages.push(Value::from(doc! { "$limit": limit as i64 }));
    }
    let mut scope = Scope::new().with_collator(op.collator.clone());
    let running = context.plan_pipeline_hinted(view, ns, ArrayRef::Items(&stages), &mut scope, args.hint)?;
    let mut root = running.root;
    drain(context, view, op, &mut root)
}
