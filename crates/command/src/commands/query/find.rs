//! `find`: documents of a collection by filter, sorted, projected, in batches.
//!
//! A filter that is one `_id` and nothing else takes the express path: parse, two gets, copy, of all fields or of those
//! that a simple projection keeps.

use crate::args::{NonNegative, NotNull, StrictBool};
use crate::batch::{self, Opening};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::concern::read::Level;
use nestor_database::names;
use nestor_database::observe::figures::IdLookup;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::pipeline::{Purpose, stages_over_view};
use nestor_database::operation::{Operation, Work, query};
use nestor_database::read;
use nestor_database::read::Target;
use nestor_database::shape::{Shape, Words};
use nestor_exec::catalog::{id_collation, index_info};
use nestor_exec::ops::{Eof, ShowRecordId};
use nestor_exec::{find as find_plan, point};
use nestor_model::{ArrayRef, BsonType, DocRef, Namespace, RawDoc, RawWriter, Result, ValueRef, bail, doc};
use nestor_planner::FindQuery;
use nestor_planner::find::{Wanted, reads_sort_key};
use nestor_planner::key_range::check as check_key_range;
use nestor_query::env::Scope;
use nestor_query::projection::{Policy, Projection};
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("find", "Documents that match a filter.")
    .flags(
        Flags::API_V1
            .and(Flags::TXN)
            .and(Flags::LONG)
            .and(Flags::FOR_REPLY)
            .and(Flags::READ_CONCERN)
            .and(Flags::PRIMARY_READ)
            .and(Flags::USUALLY_SHORT)
            .and(Flags::EXPLAINABLE),
    )
    .op(OpKind::Query)
    .outside_api(&[
        "awaitData",
        "max",
        "min",
        "noCursorTimeout",
        "oplogReplay",
        "returnKey",
        "showRecordId",
        "tailable",
    ])
    .prepared_as(Preparation::Find)
    .needs(Needs::Usually(needs::find))
    .runs(run);

crate::args! {
    /// Arguments of `find`.
    pub struct FindArgs<'a>: "find" command {
        "find" => target: Target<'a>,
        "filter" => filter: Option<NotNull<RawDoc<'a>>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "projection" => projection: Option<RawDoc<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "skip" => skip: Option<NonNegative>,
        "limit" => limit: Option<NonNegative>,
        "batchSize" => batch_size: Option<NonNegative>,
        "singleBatch" => single_batch: bool,
        "max" => max: Option<RawDoc<'a>>,
        "min" => min: Option<RawDoc<'a>>,
        "returnKey" => return_key: bool,
        "showRecordId" => show_record_id: bool,
        "tailable" => tailable: bool,
        "oplogReplay" => oplog_replay: bool,
        "noCursorTimeout" => no_cursor_timeout: bool,
        "awaitData" => await_data: bool,
        "allowPartialResults" => allow_partial_results: bool,
        "collation" => collation: Option<RawDoc<'a>>,
        "allowDiskUse" => allow_disk_use: Option<StrictBool>,
        "let" => variables: Option<RawDoc<'a>>,
        "includeQueryStatsMetrics" => include_query_stats_metrics: bool,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = FindArgs::parse(context.body, context.sequences)?;
    check(&args)?;
    let read = context.read_view()?;
    let view = read.view();
    let ns = context.namespace(view, args.target)?;
    names::check_readable(&ns)?;
    let collection = view.catalog().get(&ns).cloned();
    let shape = shape(&args, ns);
    context.admit_shape(&shape)?;
    if let Some(collection) = &collection {
        let is_piped = context.reads_by_pipeline(view, collection)?;
        let express = express_id(&args).filter(|_| !is_piped);
        if let Some((id, fields)) = express.and_then(|id| Some((id, Fields::of(args.projection)?))) {
            context.describe(shape);
            return answer_express(context, view, (collection, id), &fields, reply);
        }
    }
    context.look_up_settings(&shape)?;
    context.describe(shape.clone());
    let mut operation = prepare(context, view, &args, (shape, collection), Purpose::Run)?;
    context.restrict(&mut operation);
    let (root, collection) = match (&operation.work, &operation.collection) {
        (Work::Pipeline(piped), _) => (context.open_pipeline(view, &operation, piped)?, piped.bottom.clone()),
        (Work::Find(query), Some(collection)) => {
            let written = operation.shape.words.written();
            let cache = Some(&*context.service.plan_cache);
            // The number of a record is told of documents that are read.
            let columns = context.columns(view).filter(|_| !args.show_record_id);
            let root = find_plan(query, Wanted::Documents, written, collection, cache, columns)?;
            let root = match args.show_record_id {
                // Keys alone are returned.
                true if !args.return_key => Box::new(ShowRecordId::new(root)),
                _ => root,
            };
            (root, Some(collection.clone()))
        }
        _ => {
            let nothing = Eof::default();
            context.note_plan(&nothing);
            context.observe(&nothing);
            batch::empty(context, operation.ns(), reply);
            return Ok(());
        }
    };
    if let Work::Find(query) = operation.work {
        context.describe_query(query);
    }
    let opening = Opening {
        collection: collection.map(|c| (c.id, c.ns.clone())),
        ns: operation.shape.ns,
        root,
        op: operation.op,
        batch_size: args.batch_size.map(|n| n.0 as u64),
        single_batch: args.single_batch,
        tailable: args.tailable,
        await_data: args.await_data,
        no_timeout: args.no_cursor_timeout,
        disk_use: operation.disk_use,
        pinned: (context.terms.read_concern.level() == Level::Snapshot)
            .then(|| read.snapshot().cloned())
            .flatten(),
    };
    batch::first(context, view, opening, reply)
}

/// Prepares a find of what stands at the shape's namespace; on a view it is a pipeline behind the view's own.
///
/// Errors: those of its arguments, and 2 for a tailable cursor on a collection that is not capped.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &FindArgs<'a>,
    (shape, collection): (Shape<'a>, Option<Arc<Collection>>),
    purpose: Purpose,
) -> Result<Operation<'a>> {
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, mut scope) = context.operation_under(args.variables, collator)?;
    let work = match &collection {
        Some(found) if context.reads_by_pipeline(view, found)? => {
            check_on_view(args)?;
            let limit = args.limit.map(|n| n.0 as u64).filter(|n| *n > 0);
            let stages = stages_over_view(&shape.words, args.skip.map_or(0, |n| n.0 as u64), limit)?;
            let pipeline = (ArrayRef::Items(&stages), args.hint);
            Work::Pipeline(context.prepare_pipeline(view, &shape.ns, pipeline, &mut scope, purpose)?)
        }
        _ => {
            let query = parse(args, &shape.words, collection.as_deref(), &mut scope)?;
            if let Some(collection) = &collection {
                check_tailable(args, collection)?;
            }
            Work::Find(query)
        }
    };
    Ok(Operation {
        shape,
        collection,
        op,
        disk_use: args
            .allow_disk_use
            .map_or_else(|| context.service.disk_use_by_default(), |b| b.0),
        work,
    })
}

/// The shape of a find on `ns`.
pub(crate) fn shape<'a>(args: &FindArgs<'a>, ns: Namespace) -> Shape<'a> {
    let is_given = |n: Option<NonNegative>| n.is_some_and(|n| n.0 > 0);
    Shape {
        command: SPEC.name,
        ns,
        is_settable: true,
        words: Words {
            filter: args.filter.map(|filter| filter.0),
            sort: args.sort,
            projection: args.projection,
            collation: args.collation,
            variables: args.variables,
            // Zero is as good as none.
            skips: is_given(args.skip),
            limits: is_given(args.limit),
            ..Words::default()
        },
    }
}

/// Refuses what a pipeline cannot do.
fn check_on_view(args: &FindArgs<'_>) -> Result<()> {
    if args.show_record_id {
        bail!(OptionNotSupportedOnView, "showRecordId is not supported on views");
    }
    if args.return_key {
        bail!(InvalidPipelineOperator, "returnKey is not supported on views");
    }
    if args.min.is_some_and(|key| !key.is_empty()) || args.max.is_some_and(|key| !key.is_empty()) {
        bail!(InvalidPipelineOperator, "min and max are not supported on views");
    }
    if args.tailable {
        bail!(InvalidPipelineOperator, "tailable cursors are not supported on views");
    }
    Ok(())
}

/// Checks what does not depend on data.
pub(crate) fn check(args: &FindArgs<'_>) -> Result<()> {
    if args.await_data && !args.tailable {
        bail!(FailedToParse, "Cannot set 'awaitData' without also setting 'tailable'");
    }
    if args.tailable && args.single_batch {
        bail!(BadValue, "Cannot use tailable option with the 'singleBatch' option");
    }
    if args.tailable {
        if let Some(sort) = args.sort.filter(|sort| !sort.is_empty()) {
            if read::natural(DocRef::Raw(sort))? != Some(true) {
                bail!(
                    BadValue,
                    "cannot use tailable option with a sort other than {{$natural: 1}}"
                );
            }
        }
    }
    let bounded = args.min.is_some_and(|d| !d.is_empty()) || args.max.is_some_and(|d| !d.is_empty());
    if bounded && args.hint.is_none() {
        bail!(
            51173,
            "When using min()/max() a hint of which index to use must be provided"
        );
    }
    if args.query_settings.is_some() {
        bail!(NotImplemented, "querySettings are not supported");
    }
    Ok(())
}

fn check_tailable(args: &FindArgs<'_>, collection: &Collection) -> Result<()> {
    if args.tailable && !collection.is_capped() {
        bail!(
            BadValue,
            "error processing query: tailable cursor requested on non capped collection: {}",
            collection.ns
        );
    }
    Ok(())
}

fn parse(
    args: &FindArgs<'_>,
    words: &Words<'_>,
    collection: Option<&Collection>,
    scope: &mut Scope,
) -> Result<FindQuery> {
    let hint = read::check_hint(args.hint, collection)?;
    let mut query = read::filtered(words, &hint, scope)?;
    key_range(args, collection, &mut query)?;
    query::ordered(words, &mut query, scope)?;
    query.return_key = args.return_key;
    if query.return_key && query.projection.as_ref().is_some_and(|p| reads_sort_key(p)) {
        bail!(
            NotImplemented,
            "returnKey with a sortKey $meta projection is not supported"
        );
    }
    query.skip = args.skip.map_or(0, |n| n.0 as u64);
    query.limit = args.limit.map(|n| n.0 as u64).filter(|n| *n > 0);
    query.tailable = args.tailable;
    if query.tailable && query.by_columns {
        bail!(BadValue, "tailable cursors cannot be used with a $columns hint");
    }
    read::bind_text(&mut query, collection)?;
    Ok(query)
}

/// Reads `min` and `max`, keys of the index that the hint names.
///
/// Errors: 51174, 51175, 2 with `$natural`, 238 for indexes whose keys are not the values of fields.
fn key_range(args: &FindArgs<'_>, collection: Option<&Collection>, query: &mut FindQuery) -> Result<()> {
    let key = |given: Option<RawDoc<'_>>| {
        given
            .filter(|key| !key.is_empty())
            .map(|key| DocRef::Raw(key).to_document())
    };
    let (min, max) = (key(args.min), key(args.max));
    if min.is_none() && max.is_none() {
        return Ok(());
    }
    if query.natural.is_some() {
        bail!(BadValue, "min() and max() cannot be used with a $natural hint");
    }
    if query.by_columns {
        bail!(BadValue, "min() and max() cannot be used with a $columns hint");
    }
    let index = query.hint.as_deref().and_then(|name| collection?.index(name));
    let Some(index) = index else {
        if collection.is_none() {
            return Ok(());
        }
        // The other thing that a hint can name is the key of a clustered collection.
        let collation = collection.map(id_collation).transpose()?.flatten();
        let (pattern, of_query) = (doc! { "_id": 1 }, query.collation.as_ref());
        check_key_range(
            pattern.as_ref(),
            collation.as_ref(),
            of_query,
            min.as_ref(),
            max.as_ref(),
        )?;
        query.min = min;
        query.max = max;
        return Ok(());
    };
    let info = collection.map(|collection| index_info(collection, index)).transpose()?;
    if index.key.iter().any(|part| part.is_wildcard()) {
        bail!(
            51174,
            "min and max cannot be keys of a wildcard index: '{}'",
            index.name
        );
    }
    let Some(info) = info.flatten().filter(|info| info.has_key_ranges()) else {
        bail!(
            NotImplemented,
            "min and max are not supported for index '{}'",
            index.name
        );
    };
    let (pattern, of_query) = (index.key_pattern.as_ref(), query.collation.as_ref());
    check_key_range(pattern, info.collation.as_ref(), of_query, min.as_ref(), max.as_ref())?;
    query.min = min;
    query.max = max;
    Ok(())
}

/// The `_id`, when the command asks for one document by `_id` and, its projection aside, for nothing that needs a plan.
pub(crate) fn express_id<'a>(args: &FindArgs<'a>) -> Option<ValueRef<'a>> {
    let plain = args.sort.is_none()
        && args.hint.is_none()
        && args.min.is_none()
        && args.max.is_none()
        && args.skip.is_none_or(|n| n.0 == 0)
        && args.batch_size.is_none_or(|n| n.0 > 1)
        && args.variables.is_none()
        && args.collation.is_none_or(|collation| collation.is_empty())
        && !args.show_record_id
        && !args.return_key
        && !args.tailable;
    if !plain {
        return None;
    }
    let mut fields = args.filter?.0.iter();
    let (Some(("_id", id)), None) = (fields.next(), fields.next()) else {
        return None;
    };
    let simple = match id {
        // Operators, and database references, are for the parser.
        ValueRef::Document(doc) => doc.iter().next().is_none_or(|(name, _)| !name.starts_with('$')),
        other => !matches!(
            other.bson_type(),
            BsonType::Array | BsonType::Regex | BsonType::Undefined | BsonType::Null
        ),
    };
    simple.then_some(id)
}

/// The result of the express path.
enum Fields {
    All,
    Projected(Projection),
}

impl Fields {
    /// `None` for a projection that more than keeps or leaves out top-level fields, and for a wrong one: that is planned.
    fn of(projection: Option<RawDoc<'_>>) -> Option<Self> {
        let Some(spec) = projection.filter(|spec| !spec.is_empty()) else {
            return Some(Self::All);
        };
        let is_plain = |(name, value): (&str, ValueRef<'_>)| {
            !name.contains(['.', '$']) && (value.is_number() || matches!(value, ValueRef::Bool(_)))
        };
        if !spec.iter().all(is_plain) {
            return None;
        }
        let projection = Projection::parse(spec.into(), &mut Scope::new(), Policy::Find).ok()?;
        projection.is_top_level().then_some(Self::Projected(projection))
    }

    fn write(&self, doc: RawDoc<'_>, reply: &mut RawWriter) {
        match self {
            Self::All => reply.append_raw("0", doc),
            Self::Projected(projection) => {
                reply.begin_document("0");
                projection.apply_raw(doc, reply);
                reply.end();
            }
        }
    }
}

fn answer_express(
    context: &Context<'_>,
    view: &dyn View,
    (collection, id): (&Collection, ValueRef<'_>),
    fields: &Fields,
    reply: &mut RawWriter,
) -> Result<()> {
    if let Some(index) = collection.id_index() {
        collection.state.note_index_use(index.id);
    }
    reply.begin_document("cursor");
    reply.begin_array("firstBatch");
    let found = point::by_id(view, collection, id)?;
    context.observe_id_lookup(IdLookup::express(collection), found.is_some());
    context.observe_batch(u64::from(found.is_some()), 0);
    if let Some((_, bytes)) = found {
        fields.write(bytes.document(), reply);
    }
    reply.end();
    reply.append("id", 0i64);
    reply.append_namespace("ns", &collection.ns);
    batch::append_time(context, reply);
    reply.end();
    Ok(())
}
