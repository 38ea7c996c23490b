//! `insert`.

use super::WRITE_FLAGS;
use crate::Context;
use crate::args::{CollectionName, StrictBool, Uuid};
use crate::dispatch::CommandSpec;
use crate::names;
use crate::sessions::StatementResult;
use crate::write::insert::{InsertOptions, Statement, insert_all};
use crate::write::{self, Progress, Retryable, statement_id};
use nestor_model::{RawDoc, RawWriter, Result};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "insert",
    aliases: &[],
    flags: WRITE_FLAGS,
    help: "Adds documents to a collection.",
    run,
};

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
    let args = InsertArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    write::check_count("insert", "documents", args.documents.len())?;
    write::check_statement_ids(args.stmt_id.is_some(), args.stmt_ids.as_deref(), args.documents.len())?;
    write::check_document_namespace(&ns)?;
    write::refuse_encryption(args.encryption_information)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    context.check_write_concern()?;
    let (op, _) = context.operation(None)?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    let mut progress = Progress::default();
    let mut n = 0i64;
    let mut statements = Vec::with_capacity(args.documents.len());
    for (index, doc) in args.documents.iter().enumerate() {
        let id = statement_id(args.stmt_id, args.stmt_ids.as_deref(), index);
        match retryable.executed(id) {
            Some(done) => {
                n += done.n;
                progress.retried.push(id);
            }
            None => statements.push(Statement {
                index,
                doc: *doc,
                stmt_id: retryable.is_on().then_some(id),
            }),
        }
    }
    let options = InsertOptions {
        keep_empty_times: args.bypass_empty_ts_replacement,
        ordered: args.ordered.is_none_or(|ordered| ordered.0),
        bypass_validation: args.bypass_document_validation,
    };
    insert_all(
        context,
        &ns,
        &op,
        &statements,
        options,
        &mut progress,
        |statement, _| {
            n += 1;
            if let Some(id) = statement.stmt_id {
                let done = StatementResult {
                    n: 1,
                    ..StatementResult::default()
                };
                retryable.remember(id, done);
            }
        },
    )?;
    write::append_count(reply, "n", n);
    context.figures.borrow_mut().inserted = Some(n);
    drop(retryable);
    context.finish_write(progress, reply)
}
