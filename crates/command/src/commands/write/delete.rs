//! `delete`.

use super::{WRITE_FLAGS, written};
use crate::args::{CollectionName, HintValue, StrictBool};
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
    DeleteOp, Namespaces, Recorded, StatementIds, WriteOp, WriteStatement, Writes,
};
use nestor_model::number::safe_i64;
use nestor_model::order::values_equal;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("delete", "Removes documents from a collection.")
    .flags(WRITE_FLAGS.and(Flags::USUALLY_SHORT).and(Flags::EXPLAINABLE))
    .op(OpKind::Delete)
    .statements("deletes")
    .prepared_as(Preparation::Delete)
    .needs(Needs::Usually(needs::delete))
    .audited(Audited::Documents)
    .runs(run);

crate::args! {
    /// Arguments of `delete`.
    pub struct DeleteArgs<'a>: "delete" command {
        "delete" => coll: CollectionName<'a>,
        "deletes" => deletes: Vec<RawDoc<'a>>,
        "ordered" => ordered: Option<StrictBool>,
        "let" => variables: Option<RawDoc<'a>>,
        "stmtId" => stmt_id: Option<i32>,
        "stmtIds" => stmt_ids: Option<Vec<i32>>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        // Taken and without meaning here, as in MongoDB.
        "bypassDocumentValidation" => bypass_document_validation: bool,
    }
}

crate::args! {
    /// One statement of `delete`.
    pub struct DeleteItem<'a>: "delete.deletes" nested {
        "q" => q: RawDoc<'a>,
        "limit" => limit: ValueRef<'a>,
        "hint" => hint: Option<HintValue<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let writes = prepare(context, context.body, context.sequences)?;
    let mut totals = Totals::default();
    let progress = execute(context, &writes, &mut totals)?;
    totals.finish(context, progress, false, reply)
}

/// The statements of a delete command.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    body: RawDoc<'a>,
    sequences: &'a [Sequence<'a>],
) -> Result<Writes<'a>> {
    let args = DeleteArgs::parse(body, sequences)?;
    let ids = StatementIds {
        first: args.stmt_id,
        each: args.stmt_ids,
    };
    Writes::check("delete", "deletes", args.deletes.len(), &ids)?;
    write_reply::refuse_encryption(args.encryption_information)?;
    let ns = written(context, args.coll.0, args.collection_uuid)?;
    Ok(Writes {
        namespaces: Namespaces::One([ns]),
        uuids: Vec::new(),
        statements: args.deletes.iter().map(|doc| statement(*doc)).collect::<Result<_>>()?,
        ordered: args.ordered.is_none_or(|ordered| ordered.0),
        bypass_validation: args.bypass_document_validation,
        keep_empty_times: false,
        variables: args.variables,
        ids,
        recorded: Recorded::Apart(super::profiled),
        ticks: false,
    })
}

fn statement(sent: RawDoc<'_>) -> Result<WriteStatement<'_>> {
    let item = DeleteItem::parse(sent, &[])?;
    let op = WriteOp::Delete(DeleteOp {
        filter: item.q,
        multi: is_multi(item.limit)?,
        hint: item.hint.map(|hint| hint.0),
        collation: item.collation,
        sort: None,
    });
    Ok(WriteStatement { ns: 0, op, sent })
}

/// `limit`: 0 deletes all, 1 the first; nothing else.
fn is_multi(limit: ValueRef<'_>) -> Result<bool> {
    let whole = safe_i64(limit).filter(|whole| values_equal(limit, ValueRef::Int64(*whole)));
    let got = match (whole, limit) {
        (Some(0), _) => return Ok(true),
        (Some(1), _) => return Ok(false),
        (Some(other), _) => other.to_string(),
        (None, ValueRef::Double(other)) => other.to_string(),
        (None, ValueRef::Decimal128(other)) => other.to_string(),
        (None, _) => {
            return Err(crate::args::wrong_type(
                "delete.deletes.limit",
                limit.bson_type(),
                crate::args::NUMBER_TYPES,
            ));
        }
    };
    bail!(
        FailedToParse,
        "The limit field in delete objects must be 0 or 1. Got {got}"
    )
}
