//! `aggregate`: runs a pipeline.

use crate::Context;
use crate::api_strict;
use crate::args::{Arg, At, NonNegative, NotNull, RawArray, StrictBool, Uuid, safe_i64};
use crate::batch::{self, Opening};
use crate::dispatch::{CommandSpec, Flags};
use crate::read_concern::Level;
use crate::write::Progress;
use crate::write::merge::write_merge;
use crate::write::out::write_out;
use crate::{names, read, write};
use nestor_model::value::ArrayRef;
use nestor_model::{Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::stage::{Pipeline, SourceStage, Stage};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "aggregate",
    aliases: &[],
    flags: Flags::API_V1
        .and(Flags::TXN)
        .and(Flags::LONG)
        .and(Flags::FOR_REPLY)
        .and(Flags::READ_CONCERN)
        .and(Flags::WRITE_CONCERN),
    help: "Runs a pipeline of stages.",
    run,
};

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
    fn parse(value: ValueRef<'a>, _: At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::String(name) => Ok(Some(Self(Some(name)))),
            number if safe_i64(number) == Some(1) => Ok(Some(Self(None))),
            number if number.is_number() => bail!(
                FailedToParse,
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

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = AggregateArgs::parse(context.body, context.sequences)?;
    if context.generic.api_strict {
        api_strict::check_pipeline(args.pipeline.0)?;
    }
    let ns = match args.target.0 {
        Some(name) => names::collection(context.db(), name)?,
        None => Namespace::new(context.db(), ""),
    };
    let cursor = match args.cursor {
        Some(cursor) => Some(AggregateCursor::parse(cursor.0, &[])?),
        None => None,
    };
    if args.explain.is_some_and(|explain| explain.0.0) {
        if context.generic.has_write_concern {
            bail!(
                FailedToParse,
                "Aggregation explain does not support the 'writeConcern' option"
            );
        }
        let verbosity = super::explain::Verbosity::QueryPlanner;
        return super::explain_pipeline::aggregate(context, &args, &ns, verbosity, context.body, reply);
    }
    let Some(cursor) = cursor else {
        bail!(
            FailedToParse,
            "The 'cursor' option is required, except for aggregate with the explain argument"
        );
    };
    check(&args)?;
    if writes(args.pipeline.0) {
        context.interrupt.outlive_client();
    }
    write::check_uuid(context, &ns, args.collection_uuid)?;
    context.check_write_concern()?;
    context.look_up_settings(&ns)?;
    let read = context.read_view()?;
    let view = read.view();
    // Changes are compared by bytes unless the command says otherwise.
    let of_changes = matches!(args.pipeline.0.iter().next(), Some(ValueRef::Document(stage)) if stage.get("$changeStream").is_some());
    let on = view.catalog().get(&ns).filter(|_| !of_changes);
    let collator = read::collator(args.collation, on.map(|c| &**c))?;
    let (op, mut scope) = context.operation_under(args.variables, collator)?;
    let pipeline = ArrayRef::Raw(args.pipeline.0.0);
    let running = context.plan_pipeline_hinted(view, &ns, pipeline, &mut scope, args.hint)?;
    check_read_concern(context.generic.read_concern.level(), &running.pipeline)?;
    let writes = running.pipeline.writes();
    if writes && context.generic.read_concern.level() == Level::Linearizable {
        bail!(
            InvalidOptions,
            "$out and $merge cannot be used with a 'linearizable' read concern level"
        );
    }
    if let Some(stage) = running.pipeline.stages.last().filter(|_| writes) {
        if context.generic.in_transaction {
            bail!(
                OperationNotSupportedInTransaction,
                "$out and $merge cannot be used in a transaction"
            );
        }
        let mut progress = Progress::default();
        let bypass = args.bypass_document_validation;
        let target = match stage {
            Stage::Out(out) => &out.target,
            Stage::Merge(merge) => &merge.into,
            _ => &ns,
        };
        context.service.node.gates.check_user_write(&target.db)?;
        match stage {
            Stage::Out(out) => write_out(context, view, running.root, &op, out, bypass, &mut progress)?,
            Stage::Merge(merge) => write_merge(context, view, running.root, &op, merge, bypass, &mut progress)?,
            _ => {}
        }
        drop(read);
        batch::empty(context, &ns, reply);
        return context.finish_concern(progress.last, reply, false);
    }
    let reply_ns = match args.target.0 {
        Some(_) => ns,
        None => Namespace::new(context.db(), "$cmd.aggregate"),
    };
    let opening = Opening {
        collection: running.collection,
        batch_size: cursor.batch_size.map(|n| n.0 as u64),
        disk_use: args
            .allow_disk_use
            .map_or_else(|| context.service.disk_use_by_default(), |b| b.0.0),
        pinned: (context.generic.read_concern.level() == Level::Snapshot)
            .then(|| read.snapshot().cloned())
            .flatten(),
        ..Opening::of_values(reply_ns, running.root, op)
    };
    batch::first(context, view, opening, reply)
}

/// Whether it ends in a stage that writes, which goes on when its client has gone.
fn writes(pipeline: RawArray<'_>) -> bool {
    let last = pipeline.iter().last().and_then(ValueRef::as_document);
    last.is_some_and(|stage| stage.get("$out").is_some() || stage.get("$merge").is_some())
}

/// Refuses read concerns that a stage does not support.
fn check_read_concern(level: Level, pipeline: &Pipeline) -> Result<()> {
    let refused = match (pipeline.stages.first(), pipeline.stages.last()) {
        (_, Some(Stage::Out(_) | Stage::Merge(_))) => level == Level::Linearizable,
        (
            Some(Stage::Source(
                SourceStage::CurrentOp(_) | SourceStage::ListLocalSessions(_) | SourceStage::PlanCacheStats,
            )),
            _,
        ) => level != Level::Local,
        _ => false,
    };
    if refused {
        bail!(
            InvalidOptions,
            "a stage of the pipeline does not support this readConcern level"
        );
    }
    Ok(())
}

/// Checks what does not depend on data.
pub(super) fn check(args: &AggregateArgs<'_>) -> Result<()> {
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
