//! `count`.

use crate::args::{Arg, At, NonNegative};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use crate::write_reply::append_count;
use nestor_database::concern::read::Level;
use nestor_database::names;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::pipeline::{Purpose, stages_over_view};
use nestor_database::operation::{Operation, Work};
use nestor_database::oplog;
use nestor_database::read;
use nestor_database::read::Target;
use nestor_database::shape::{Shape, Words};
use nestor_exec::catalog::{index_info, indexes};
use nestor_exec::{BoxOperator, count_rows, find};
use nestor_model::number::Num;
use nestor_model::{ArrayRef, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_planner::choose::candidates_for;
use nestor_planner::find::Wanted;
use nestor_planner::{FindQuery, PlanNode};
use nestor_query::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Engine, Index, View};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("count", "Number of documents that match.")
    .flags(
        Flags::API_V1
            .and(Flags::LONG)
            .and(Flags::FOR_REPLY)
            .and(Flags::READ_CONCERN)
            .and(Flags::PRIMARY_READ)
            .and(Flags::USUALLY_SHORT)
            .and(Flags::EXPLAINABLE),
    )
    .op(OpKind::Read)
    .prepared_as(Preparation::Count)
    .needs(Needs::Usually(needs::find))
    .runs(run);

crate::args! {
    /// Arguments of `count`.
    pub struct CountArgs<'a>: "count" command {
        "count" => target: Target<'a>,
        "query" => query: Option<RawDoc<'a>>,
        "limit" => limit: Option<Limit>,
        "skip" => skip: Option<NonNegative>,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "fields" => fields: Option<ValueRef<'a>>,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
        "collectionUUID" => collection_uuid: Option<nestor_database::uuid::Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CountArgs::parse(context.body, context.sequences)?;
    check_read_concern(context)?;
    let snapshot = context.read_snapshot()?;
    let mut operation = prepare(context, &snapshot, &args, Purpose::Run)?;
    context.admit_shape(&operation.shape)?;
    context.describe(operation.shape.clone());
    context.restrict(&mut operation);
    let mut root = match (&operation.work, &operation.collection) {
        (Work::Pipeline(piped), _) => context.open_pipeline(&snapshot, &operation, piped)?,
        (Work::Count(query), Some(collection)) => {
            if let Some(n) = known(&context.service.engine, query, collection)? {
                append_count(reply, "n", n);
                return Ok(());
            }
            let written = operation.shape.words.written();
            let cache = Some(&*context.service.plan_cache);
            let columns = context.columns(&snapshot);
            find(query, Wanted::Count, written, collection, cache, columns)?
        }
        _ => {
            append_count(reply, "n", 0);
            return Ok(());
        }
    };
    append_count(reply, "n", drain(context, &snapshot, &operation.op, &mut root)?);
    Ok(())
}

/// Error: 72 for the one read concern that counts do not have.
pub(crate) fn check_read_concern(context: &Context<'_>) -> Result<()> {
    if context.terms.read_concern.level() == Level::Snapshot {
        bail!(
            InvalidOptions,
            "Command count does not support readConcern level snapshot"
        );
    }
    Ok(())
}

/// Prepares a count; on a view it counts what a pipeline gives.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &CountArgs<'a>,
    purpose: Purpose,
) -> Result<Operation<'a>> {
    if args.query_settings.is_some() {
        bail!(NotImplemented, "querySettings are not supported");
    }
    if args.encryption_information.is_some() {
        bail!(NotImplemented, "encryptionInformation is not supported");
    }
    let ns = context.namespace(view, args.target)?;
    names::check_readable(&ns)?;
    nestor_database::write::check_uuid(context, &ns, args.collection_uuid)?;
    let (limit, skip) = limits(args);
    let words = Words {
        filter: args.query,
        collation: args.collation,
        skips: skip > 0,
        limits: limit.is_some(),
        ..Words::default()
    };
    let collection = view.catalog().get(&ns).cloned();
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, scope) = context.operation_under(None, collator)?;
    let mut scope = scope.without_clock();
    let work = match &collection {
        Some(found) if context.reads_by_pipeline(view, found)? => {
            let stages = stages_over_view(&words, skip, limit)?;
            let pipeline = (ArrayRef::Items(&stages), args.hint);
            Work::Pipeline(context.prepare_pipeline(view, &ns, pipeline, &mut scope, purpose)?)
        }
        _ => {
            let mut query = FindQuery::all(read::parse_filter(args.query, &mut scope)?);
            query.collation.clone_from(&op.collator);
            read::check_hint(args.hint, collection.as_deref())?.apply(&mut query);
            query.limit = limit;
            query.skip = skip;
            read::bind_text(&mut query, collection.as_deref())?;
            Work::Count(query)
        }
    };
    Ok(Operation {
        shape: Shape {
            command: SPEC.name,
            ns,
            is_settable: false,
            words,
        },
        collection,
        op,
        disk_use: true,
        work,
    })
}

/// How many documents are counted, when the collection knows without looking: all of them. An index that a hint names may
/// hold fewer.
fn known(engine: &Engine, query: &FindQuery, collection: &Collection) -> Result<Option<i64>> {
    let part = query.hint.as_deref().and_then(|name| collection.index(name));
    let is_whole =
        |index: &Index| matches!(index_info(collection, index), Ok(Some(info)) if info.holds_every_document());
    let whole = part.is_none_or(|index| is_whole(index));
    if !matches!(*query.filter, MatchExpr::AlwaysTrue) || !whole {
        return Ok(None);
    }
    let (documents, _) = oplog::sizes(engine, collection)?;
    let all = u64::try_from(documents).unwrap_or(0);
    let n = all.saturating_sub(query.skip).min(query.limit.unwrap_or(u64::MAX));
    Ok(Some(i64::try_from(n).unwrap_or(i64::MAX)))
}

/// The number of rows of a plan.
fn drain(context: &Context<'_>, view: &dyn View, op: &OpContext, root: &mut BoxOperator) -> Result<i64> {
    context.note_plan(&**root);
    let mut batch = read::batch(context, view, op, true);
    let rows = count_rows(&mut **root, &mut batch)?;
    context.observe(&**root);
    Ok(i64::try_from(rows).unwrap_or(i64::MAX))
}

/// How many documents are counted at most, and how many are left out before.
fn limits(args: &CountArgs<'_>) -> (Option<u64>, u64) {
    let limit = args.limit.map(|limit| limit.0).filter(|limit| *limit > 0);
    (limit, args.skip.map_or(0, |skip| skip.0 as u64))
}

/// The `limit` of a count: a whole number, of which the sign means nothing. Null is none.
///
/// Errors: 2 for other types and for the one number without an absolute value, 9 for fractions and what no long holds.
#[derive(Clone, Copy, Debug)]
pub struct Limit(u64);

impl<'a> Arg<'a> for Limit {
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        let Some(number) = Num::from_ref(value) else {
            bail!(BadValue, "limit value is not a valid number");
        };
        match number.to_i64_exact() {
            None => bail!(
                FailedToParse,
                "limit value {value:?} is not representable as a 64-bit integer"
            ),
            Some(i64::MIN) => bail!(BadValue, "limit value for count cannot be min long"),
            Some(limit) => Ok(Some(Self(limit.unsigned_abs()))),
        }
    }
}

/// The plans by which the documents of a query could be counted.
pub(super) fn plans(query: &FindQuery, collection: &Collection) -> Result<Vec<PlanNode>> {
    Ok(candidates_for(query, Wanted::Count, indexes(collection)?))
}
