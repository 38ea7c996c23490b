//! `aggregate`: runs a pipeline.

use crate::api_strict;
use crate::args::{Arg, At, NonNegative, NotNull, RawArray, StrictBool};
use crate::batch::{self, Opening};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::generic::Generic;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::concern::read::Level;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Operation, Work};
use nestor_database::shape::{Shape, Words};
use nestor_database::uuid::Uuid;
use nestor_database::write::Progress;
use nestor_database::write::merge::write_merge;
use nestor_database::write::out::write_out;
use nestor_database::write::out_file::write_out_file;
use nestor_database::{names, read, write};
use nestor_model::value::ArrayRef;
use nestor_model::{Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::stage::{Pipeline, SourceStage, Stage};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("aggregate", "Runs a pipeline of stages.")
    .flags(
        Flags::API_V1
            .and(Flags::TXN)
            .and(Flags::LONG)
            .and(Flags::FOR_REPLY)
            .and(Flags::READ_CONCERN)
            .and(Flags::PRIMARY_READ)
            .and(Flags::WRITE_CONCERN)
            .and(Flags::USUALLY_SHORT)
            .and(Flags::EXPLAINABLE),
    )
    .op(OpKind::Read)
    .profiled_as("aggregate")
    .outside_api(&["explain"])
    .prepared_as(Preparation::Aggregate)
    .needs(Needs::Usually(needs::aggregate))
    .runs(run);

crate::args! {
    /// Arguments of `aggregate`.
    pub struct AggregateArgs<'a>: "aggregate" command {
        "aggregate" => target: AggregateTarget<'a>,
        "pipeline" => pipeline: NotNull<RawArray<'a>>,
        "explain" => explain: Option<NotNull<StrictBool>>,
        "allowDiskUse" => allow_disk_use: Option<NotNull<StrictBool>>,
        "cursor" => cursor: Option<NotNull<RawDoc<'a>>>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "let" => variables: Option<RawDoc<'a>>,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "needsMerge" => needs_merge: bool,
        "fromMongos" => from_mongos: bool,
        "exchange" => exchange: Option<RawDoc<'a>>,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        "includeQueryStatsMetrics" => include_query_stats_metrics: bool,
        "bypassEmptyTsReplacement" => bypass_empty_ts_replacement: bool,
    }
}

/// A collection, or `1` for a pipeline without one.
#[derive(Clone, Copy, Debug)]
pub struct AggregateTarget<'a>(pub Option<&'a str>);

impl<'a> Arg<'a> for AggregateTarget<'a> {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(name) | ValueRef::Symbol(name) => Ok(Some(Self(Some(name)))),
            number if <f64 as Arg>::parse(number, at).is_ok_and(|n| n == Some(1.0)) => Ok(Some(Self(None))),
            number if number.is_number() => bail!(
                BadValue,
                "Invalid command format: the 'aggregate' field must specify a collection name or 1"
            ),
            other => bail!(
                InvalidNamespace,
                "collection name has invalid type {}",
                other.bson_type().alias()
            ),
        }
    }
}

crate::args! {
    /// `cursor` of `aggregate`.
    pub struct AggregateCursor: "aggregate.cursor" nested {
        "batchSize" => batch_size: Option<NonNegative>,
    }
}

/// Refuses what an aggregate that is explained does not take, whether it says so itself or `explain` does.
pub(super) fn check_explained(generic: &Generic<'_>) -> Result<()> {
    if generic.has_write_concern {
        bail!(
            FailedToParse,
            "Aggregation explain does not support the 'writeConcern' option"
        );
    }
    Ok(())
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = AggregateArgs::parse(context.body, context.sequences)?;
    let shape = shape(context.db(), &args)?;
    let cursor = cursor(&args)?;
    if args.explain.is_some_and(|explain| explain.0.0) {
        check_explained(&context.generic)?;
        let snapshot = context.read_snapshot()?;
        let operation = prepare(context, &snapshot, &args, shape, Purpose::Explain)?;
        let verbosity = super::explain::Verbosity::QueryPlanner;
        return super::explain::explain(context, &snapshot, operation, verbosity, context.body, reply);
    }
    let Some(cursor) = cursor else {
        bail!(
            FailedToParse,
            "The 'cursor' option is required, except for aggregate with the explain argument"
        );
    };
    if writes(args.pipeline.0) {
        context.interrupt.outlive_client();
    }
    context.check_write_concern()?;
    context.admit_shape(&shape)?;
    context.look_up_settings(&shape)?;
    context.describe(shape.clone());
    if writes(args.pipeline.0) && !context.service.engine.is_writable() {
        return super::forward::run(context, reply);
    }
    let read = context.read_view()?;
    let view = read.view();
    let operation = prepare(context, view, &args, shape, Purpose::Run)?;
    let Work::Pipeline(piped) = &operation.work else {
        unreachable!("an aggregate is prepared as a pipeline");
    };
    let root = context.open_pipeline(view, &operation, piped)?;
    let ns = operation.ns();
    let reply_ns = match args.target.0 {
        Some(_) => ns.clone(),
        None => Namespace::new(context.db(), "$cmd.aggregate"),
    };
    if let Some(stage) = piped.pipeline.stages.last().filter(|_| piped.pipeline.writes()) {
        let mut progress = Progress::default();
        let (op, bypass) = (&operation.op, piped.bypass_validation);
        let target = match stage {
            Stage::Out(out) => Some(&out.target),
            Stage::Merge(merge) => Some(&merge.into),
            _ => None,
        };
        if let Some(target) = target {
            context.service.node.gates.check_user_write(&target.db)?;
        }
        match stage {
            Stage::Out(out) => write_out(context, view, root, op, out, bypass, &mut progress)?,
            Stage::OutFile(out) => write_out_file(context, view, root, op, out)?,
            Stage::Merge(merge) => write_merge(context, view, root, op, merge, bypass, &mut progress)?,
            _ => {}
        }
        drop(read);
        batch::empty(context, &reply_ns, reply);
        return context.finish_concern(progress.last, reply, false);
    }
    let of_changes = matches!(piped.pipeline.stages.first(), Some(Stage::ChangeStream(_)));
    let opening = Opening {
        tailable: of_changes,
        await_data: of_changes,
        collection: piped.bottom.as_ref().map(|c| (c.id, c.ns.clone())),
        batch_size: cursor.batch_size.map(|n| n.0 as u64),
        disk_use: operation.disk_use,
        pinned: (context.terms.read_concern.level() == Level::Snapshot)
            .then(|| read.snapshot().cloned())
            .flatten(),
        ..Opening::of_values(reply_ns, root, operation.op)
    };
    batch::first(context, view, opening, reply)
}

/// The shape of an aggregate; the collection is empty when it names none.
pub(crate) fn shape<'a>(db: &str, args: &AggregateArgs<'a>) -> Result<Shape<'a>> {
    let ns = match args.target.0 {
        Some(name) => names::collection(db, name)?,
        None => Namespace::new(db, ""),
    };
    Ok(Shape {
        command: SPEC.name,
        ns,
        is_settable: true,
        words: Words {
            pipeline: Some(args.pipeline.0.0),
            collation: args.collation,
            variables: args.variables,
            ..Words::default()
        },
    })
}

/// The options of the cursor, if any are given.
pub(crate) fn cursor(args: &AggregateArgs<'_>) -> Result<Option<AggregateCursor>> {
    let cursor = args.cursor.map(|cursor| AggregateCursor::parse(cursor.0, &[]));
    cursor.transpose()
}

/// Prepares an aggregate of that shape.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &AggregateArgs<'a>,
    shape: Shape<'a>,
    purpose: Purpose,
) -> Result<Operation<'a>> {
    if context.terms.strict_api {
        api_strict::check_pipeline(args.pipeline.0)?;
    }
    check(args)?;
    write::check_uuid(context, &shape.ns, args.collection_uuid)?;
    // Changes are compared by bytes unless the command says otherwise.
    let of_changes = matches!(args.pipeline.0.iter().next(), Some(ValueRef::Document(stage)) if stage.get("$changeStream").is_some());
    let collection = view.catalog().get(&shape.ns).cloned();
    let on = collection.as_deref().filter(|_| !of_changes);
    let (op, mut scope) = context.operation_under(args.variables, read::collator(args.collation, on)?)?;
    let pipeline = (ArrayRef::Raw(args.pipeline.0.0), args.hint);
    let mut piped = context.prepare_pipeline(view, &shape.ns, pipeline, &mut scope, purpose)?;
    piped.bypass_validation = args.bypass_document_validation;
    if let (true, Some(stage)) = (context.terms.in_transaction, piped.pipeline.outside_transactions()) {
        bail!(
            OperationNotSupportedInTransaction,
            "{stage} cannot be used in a transaction"
        );
    }
    if context.start_changes(&mut piped.pipeline, &shape.ns, view)? {
        // It lives on when its collection is gone, and reads none.
        piped.bottom = None;
    }
    check_read_concern(context.terms.read_concern.level(), &piped.pipeline)?;
    Ok(Operation {
        shape,
        collection,
        op,
        disk_use: args
            .allow_disk_use
            .map_or_else(|| context.service.disk_use_by_default(), |b| b.0.0),
        work: Work::Pipeline(piped),
    })
}

/// Whether it ends in a stage that writes, which goes on when its client has gone.
fn writes(pipeline: RawArray<'_>) -> bool {
    let last = pipeline.iter().last().and_then(ValueRef::as_document);
    last.is_some_and(|stage| stage.get("$out").is_some() || stage.get("$merge").is_some())
}

/// Refuses read concerns that a stage does not support.
fn check_read_concern(level: Level, pipeline: &Pipeline) -> Result<()> {
    if let (Level::Linearizable, Some(Stage::Out(_) | Stage::OutFile(_) | Stage::Merge(_))) =
        (level, pipeline.stages.last())
    {
        bail!(
            InvalidOptions,
            "a pipeline that writes cannot run with the readConcern 'linearizable'"
        );
    }
    let Some(Stage::Source(source)) = pipeline.stages.first() else {
        return Ok(());
    };
    // What they read is not kept in collections and has no past.
    let of_now = matches!(
        source,
        SourceStage::CurrentOp(_)
            | SourceStage::ListClusterCatalog { .. }
            | SourceStage::ListLocalSessions(_)
            | SourceStage::ListSearchIndexes { .. }
            | SourceStage::PlanCacheStats
    );
    if of_now && level != Level::Local {
        bail!(
            InvalidOptions,
            "{} cannot run with a readConcern other than 'local', and this one is '{}'",
            source.name(),
            level.name()
        );
    }
    Ok(())
}

/// Checks what does not depend on data.
fn check(args: &AggregateArgs<'_>) -> Result<()> {
    if args.query_settings.is_some() {
        bail!(NotImplemented, "querySettings are not supported");
    }
    if args.encryption_information.is_some() {
        bail!(NotImplemented, "encryptionInformation is not supported");
    }
    if args.needs_merge || args.from_mongos || args.exchange.is_some() {
        bail!(InvalidOptions, "options of sharded clusters are not supported");
    }
    read::check_hint(args.hint, None)?;
    Ok(())
}
