//! `delete`.

use super::WRITE_FLAGS;
use crate::Context;
use crate::args::{CollectionName, StrictBool, Uuid, safe_i64};
use crate::dispatch::CommandSpec;
use crate::profiler::record::Op;
use crate::sessions::StatementResult;
use crate::write::delete::{delete_many, delete_one};
use crate::write::insert::is_fatal;
use crate::write::target::Selection;
use crate::write::{self, Progress, Retryable, WriteError, statement_id};
use crate::{names, read};
use nestor_model::{Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::env::{OpContext, Scope};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "delete",
    aliases: &[],
    flags: WRITE_FLAGS,
    help: "Removes documents from a collection.",
    run,
};

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
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DeleteArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    write::check_count("delete", "deletes", args.deletes.len())?;
    write::check_statement_ids(args.stmt_id.is_some(), args.stmt_ids.as_deref(), args.deletes.len())?;
    write::check_document_namespace(&ns)?;
    write::refuse_encryption(args.encryption_information)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    context.check_write_concern()?;
    let items = args
        .deletes
        .iter()
        .map(|doc| {
            let item = DeleteItem::parse(*doc, &[])?;
            let multi = is_multi(item.limit)?;
            Ok((item, multi))
        })
        .collect::<Result<Vec<_>>>()?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    if retryable.is_on() && items.iter().any(|(_, multi)| *multi) {
        bail!(InvalidOptions, "Cannot use retryable writes with limit=0");
    }
    let (op, mut scope) = context.operation(args.variables)?;
    let mut progress = Progress::default();
    let mut n = 0i64;
    for (index, (item, multi)) in items.iter().enumerate() {
        let id = statement_id(args.stmt_id, args.stmt_ids.as_deref(), index);
        let result = match retryable.executed(id) {
            Some(done) => {
                progress.retried.push(id);
                Ok(done.n)
            }
            None => {
                let stmt_id = retryable.is_on().then_some(id);
                let done = run_item(context, &ns, item, *multi, (&op, &mut scope), stmt_id, &mut progress);
                context.figures.borrow_mut().deleted = done.as_ref().ok().copied();
                let command = || args.deletes[index].as_doc().to_document();
                context.finish_statement(Op::REMOVE, &ns, command, done.as_ref().err());
                done
            }
        };
        match result {
            Ok(count) => {
                n += count;
                retryable.remember(
                    id,
                    StatementResult {
                        n: count,
                        ..StatementResult::default()
                    },
                );
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                progress.errors.push(WriteError { index, error });
                if args.ordered.is_none_or(|ordered| ordered.0) {
                    break;
                }
            }
        }
    }
    write::append_count(reply, "n", n);
    drop(retryable);
    context.finish_write(progress, reply)
}

/// `limit`: 0 deletes all, 1 the first; nothing else.
fn is_multi(limit: ValueRef<'_>) -> Result<bool> {
    match safe_i64(limit) {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        Some(other) => bail!(
            FailedToParse,
            "The limit field in delete objects must be 0 or 1. Got {other}"
        ),
        None => Err(crate::args::wrong_type(
            "delete.deletes.limit",
            limit.bson_type(),
            crate::args::NUMBER_TYPES,
        )),
    }
}

fn run_item(
    context: &Context<'_>,
    ns: &Namespace,
    item: &DeleteItem<'_>,
    multi: bool,
    (op, scope): (&OpContext, &mut Scope),
    stmt_id: Option<i32>,
    progress: &mut Progress,
) -> Result<i64> {
    let collection = context.current_view().view().catalog().get(ns).cloned();
    let (own, mut scope) = read::statement(op, scope, item.collation, collection.as_deref())?;
    let op = own.as_ref().unwrap_or(op);
    let mut selection = Selection::parse(Some(item.q), None, &mut scope)?;
    selection.hint = read::check_hint(item.hint, collection.as_deref())?;
    if multi {
        delete_many(context, ns, &selection, op, progress)
    } else {
        Ok(i64::from(
            delete_one(context, ns, &selection, op, stmt_id, progress)?.is_some(),
        ))
    }
}
