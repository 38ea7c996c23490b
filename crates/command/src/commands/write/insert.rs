//! `insert`.

use super::{WRITE_FLAGS, written};
use crate::args::{CollectionName, StrictBool};
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
use nestor_database::write::statements::{Namespaces, Recorded, StatementIds, WriteOp, WriteStatement, Writes};
use nestor_model::{RawDoc, RawWriter, Result};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("insert", "Adds documents to a collection.")
    .flags(WRITE_FLAGS.and(Flags::USUALLY_SHORT))
    .op(OpKind::Insert)
    .statements("documents")
    .prepared_as(Preparation::Insert)
    .needs(Needs::Usually(needs::insert))
    .audited(Audited::Documents)
    .runs(run);

crate::args! {
    /// Arguments of `insert`.
    pub struct InsertArgs<'a>: "insert" command {
        "insert" => coll: CollectionName<'a>,
        "documents" => documents: Vec<RawDoc<'a>>,
        "ordered" => ordered: Option<StrictBool>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "stmtId" => stmt_id: Option<i32>,
        "stmtIds" => stmt_ids: Option<Vec<i32>>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        "bypassEmptyTsReplacement" => bypass_empty_ts_replacement: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let writes = prepare(context, context.body, context.sequences)?;
    let mut totals = Totals::default();
    let progress = execute(context, &writes, &mut totals)?;
    context.figures.borrow_mut().inserted = Some(totals.n);
    totals.finish(context, progress, false, reply)
}

/// The statements of an insert command.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    body: RawDoc<'a>,
    sequences: &'a [Sequence<'a>],
) -> Result<Writes<'a>> {
    let args = InsertArgs::parse(body, sequences)?;
    let ids = StatementIds {
        first: args.stmt_id,
        each: args.stmt_ids,
    };
    Writes::check("insert", "documents", args.documents.len(), &ids)?;
    write_reply::refuse_encryption(args.encryption_information)?;
    let ns = written(context, args.coll.0, args.collection_uuid)?;
    let statement = |doc| WriteStatement {
        ns: 0,
        op: WriteOp::Insert(doc),
        sent: doc,
    };
    Ok(Writes {
        namespaces: Namespaces::One([ns]),
        uuids: Vec::new(),
        statements: args.documents.into_iter().map(statement).collect(),
        ordered: args.ordered.is_none_or(|ordered| ordered.0),
        bypass_validation: args.bypass_document_validation,
        keep_empty_times: args.bypass_empty_ts_replacement,
        variables: None,
        ids,
        recorded: Recorded::Together,
        ticks: false,
    })
}
