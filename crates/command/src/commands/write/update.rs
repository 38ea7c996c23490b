//! `update`.

use super::{WRITE_FLAGS, written};
use crate::args::{Arg, CollectionName, HintValue, RawArray, StrictBool};
use crate::audited::Audited;
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::{self, Needs};
use crate::request::Sequence;
use crate::spec::CommandSpec;
use crate::write_reply::{self, Totals};
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::writing::execute;
use nestor_database::uuid::Uuid;
use nestor_database::write::statements::{
    Namespaces, Recorded, StatementIds, UpdateOp, WriteOp, WriteStatement, Writes,
};
use nestor_model::ArrayRef;
use nestor_model::{Document, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::update::check_pipeline_form;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("update", "Changes documents of a collection.")
    .flags(WRITE_FLAGS.and(Flags::USUALLY_SHORT).and(Flags::EXPLAINABLE))
    .op(OpKind::Update)
    .statements("updates")
    .prepared_as(Preparation::Update)
    .needs(Needs::Usually(needs::update))
    .audited(Audited::Documents)
    .runs(run);

crate::args! {
    /// Arguments of `update`.
    pub struct UpdateArgs<'a>: "update" command {
        "update" => coll: CollectionName<'a>,
        "updates" => updates: Vec<RawDoc<'a>>,
        "ordered" => ordered: Option<StrictBool>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "let" => variables: Option<RawDoc<'a>>,
        "stmtId" => stmt_id: Option<i32>,
        "stmtIds" => stmt_ids: Option<Vec<i32>>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        "bypassEmptyTsReplacement" => bypass_empty_ts_replacement: bool,
    }
}

crate::args! {
    /// One statement of `update`.
    pub struct UpdateItem<'a>: "update.updates" nested {
        "q" => q: RawDoc<'a>,
        "u" => u: UpdateValue<'a>,
        "c" => constants: Option<RawDoc<'a>>,
        "multi" => multi: bool,
        "upsert" => upsert: bool,
        "arrayFilters" => array_filters: Option<RawArray<'a>>,
        "hint" => hint: Option<HintValue<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
        "upsertSupplied" => upsert_supplied: bool,
    }
}

/// The `u` of an update: a document or a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct UpdateValue<'a>(pub ValueRef<'a>);

impl<'a> Arg<'a> for UpdateValue<'a> {
    fn parse(value: ValueRef<'a>, _: crate::args::At<'_>) -> Result<Option<Self>> {
        match value {
            ValueRef::Document(_) => Ok(Some(Self(value))),
            // An array that is no pipeline fails the command; a stage that updates may not have fails the statement.
            ValueRef::Array(stages) => {
                check_pipeline_form(stages)?;
                Ok(Some(Self(value)))
            }
            _ => bail!(FailedToParse, "Update argument must be either an object or an array"),
        }
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let writes = prepare(context, context.body, context.sequences)?;
    let mut totals = Totals::default();
    let progress = execute(context, &writes, &mut totals)?;
    totals.finish(context, progress, true, reply)
}

/// The statements of an update command.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    body: RawDoc<'a>,
    sequences: &'a [Sequence<'a>],
) -> Result<Writes<'a>> {
    let args = UpdateArgs::parse(body, sequences)?;
    let ids = StatementIds {
        first: args.stmt_id,
        each: args.stmt_ids,
    };
    Writes::check("update", "updates", args.updates.len(), &ids)?;
    write_reply::refuse_encryption(args.encryption_information)?;
    let ns = written(context, args.coll.0, args.collection_uuid)?;
    Ok(Writes {
        namespaces: Namespaces::One([ns]),
        uuids: Vec::new(),
        statements: args.updates.iter().map(|doc| statement(*doc)).collect::<Result<_>>()?,
        ordered: args.ordered.is_none_or(|ordered| ordered.0),
        bypass_validation: args.bypass_document_validation,
        keep_empty_times: args.bypass_empty_ts_replacement,
        variables: args.variables,
        ids,
        recorded: Recorded::Apart(described),
        ticks: false,
    })
}

fn statement(sent: RawDoc<'_>) -> Result<WriteStatement<'_>> {
    let op = WriteOp::Update(UpdateItem::parse(sent, &[])?.into());
    Ok(WriteStatement { ns: 0, op, sent })
}

impl<'a> From<UpdateItem<'a>> for UpdateOp<'a> {
    fn from(item: UpdateItem<'a>) -> Self {
        Self {
            filter: item.q,
            update: item.u.0,
            constants: item.constants,
            multi: item.multi,
            upsert: item.upsert,
            array_filters: item.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
            hint: item.hint.map(|hint| hint.0),
            collation: item.collation,
            sort: item.sort,
        }
    }
}

/// A statement as the profiler shows it: as it was sent, and what it left out.
fn described(statement: RawDoc<'_>) -> Document {
    let mut out = super::profiled(statement);
    for name in ["multi", "upsert"] {
        if out.get(name).is_none() {
            out.push(name, false);
        }
    }
    out
}
