//! `update`.

use super::WRITE_FLAGS;
use crate::Context;
use crate::args::{Arg, CollectionName, RawArray, StrictBool, Uuid};
use crate::dispatch::CommandSpec;
use crate::profiler::record::Op;
use crate::sessions::StatementResult;
use crate::write::insert::is_fatal;
use crate::write::target::Selection;
use crate::write::update::{UpdateStatement, Updated, update_many, update_one};
use crate::write::{self, Progress, Retryable, WriteError, statement_id};
use crate::{names, read};
use nestor_model::value::ArrayRef;
use nestor_model::{DocRef, Document, Namespace, RawDoc, RawWriter, Result, Value, ValueRef, bail};
use nestor_query::env::{OpContext, Scope};
use nestor_query::update::{Update, UpdateOptions};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "update",
    aliases: &[],
    flags: WRITE_FLAGS,
    help: "Changes documents of a collection.",
    run,
};

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
        "hint" => hint: Option<ValueRef<'a>>,
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
            ValueRef::Document(_) | ValueRef::Array(_) => Ok(Some(Self(value))),
            _ => bail!(FailedToParse, "Update argument must be either an object or an array"),
        }
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UpdateArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    write::check_count("update", "updates", args.updates.len())?;
    write::check_statement_ids(args.stmt_id.is_some(), args.stmt_ids.as_deref(), args.updates.len())?;
    write::check_document_namespace(&ns)?;
    write::refuse_encryption(args.encryption_information)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    context.check_write_concern()?;
    let items = args
        .updates
        .iter()
        .map(|doc| UpdateItem::parse(*doc, &[]))
        .collect::<Result<Vec<_>>>()?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    if retryable.is_on() && items.iter().any(|item| item.multi) {
        bail!(InvalidOptions, "Cannot use retryable writes with multi=true");
    }
    let (op, mut scope) = context.operation(args.variables)?;
    let mut progress = Progress::default();
    let (mut n, mut n_modified) = (0i64, 0i64);
    let mut upserted: Vec<(usize, Value)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let id = statement_id(args.stmt_id, args.stmt_ids.as_deref(), index);
        let result = match retryable.executed(id) {
            Some(done) => {
                progress.retried.push(id);
                Ok(done.clone())
            }
            None => {
                let stmt_id = retryable.is_on().then_some(id);
                let bypass = args.bypass_document_validation;
                let done = run_item(context, &ns, item, (&op, &mut scope), stmt_id, bypass, &mut progress);
                if let Ok(done) = &done {
                    observe(context, done);
                }
                let command = || described(args.updates[index]);
                context.finish_statement(Op::UPDATE, &ns, command, done.as_ref().err());
                done
            }
        };
        match result {
            Ok(done) => {
                n += done.n;
                n_modified += done.n_modified;
                if let Some(id) = &done.upserted {
                    upserted.push((index, id.clone()));
                }
                retryable.remember(id, done);
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
    append_upserted(reply, &upserted);
    write::append_count(reply, "nModified", n_modified);
    drop(retryable);
    context.finish_write(progress, reply)
}

fn append_upserted(reply: &mut RawWriter, upserted: &[(usize, Value)]) {
    if upserted.is_empty() {
        return;
    }
    reply.begin_array("upserted");
    for (i, (index, id)) in upserted.iter().enumerate() {
        reply.begin_document_at(i);
        reply.append("index", *index as i32);
        reply.append("_id", id);
        reply.end();
    }
    reply.end();
}

/// Tells the profiler what an update did.
pub(super) fn observe(context: &Context<'_>, done: &StatementResult) {
    let mut figures = context.figures.borrow_mut();
    figures.upsert = done.upserted.is_some();
    figures.matched = Some(done.n - i64::from(figures.upsert));
    figures.modified = Some(done.n_modified);
}

/// A statement as the profiler shows it: as it was sent, and what it left out.
fn described(statement: RawDoc<'_>) -> Document {
    let mut out = statement.as_doc().to_document();
    for name in ["multi", "upsert"] {
        if out.get(name).is_none() {
            out.push(name, false);
        }
    }
    out
}

fn run_item(
    context: &Context<'_>,
    ns: &Namespace,
    item: &UpdateItem<'_>,
    (op, scope): (&OpContext, &mut Scope),
    stmt_id: Option<i32>,
    bypass_validation: bool,
    progress: &mut Progress,
) -> Result<StatementResult> {
    if item.multi && item.sort.is_some_and(|sort| !sort.is_empty()) {
        bail!(FailedToParse, "Cannot specify sort with multi=true");
    }
    let collection = context.current_view().view().catalog().get(ns).cloned();
    let (own, mut scope) = read::statement(op, scope, item.collation, collection.as_deref())?;
    let op = own.as_ref().unwrap_or(op);
    let hint = read::check_hint(item.hint, collection.as_deref())?;
    let mut selection = Selection::parse(Some(item.q), item.sort, &mut scope)?;
    selection.hint = hint;
    let options = UpdateOptions {
        array_filters: item.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
        constants: item.constants.map(DocRef::Raw),
        multi: item.multi,
    };
    let statement = UpdateStatement {
        selection,
        q: DocRef::Raw(item.q),
        update: Update::parse(item.u.0, options, &mut scope)?,
        upsert: item.upsert,
        bypass_validation,
        images: false,
        stmt_id,
        keep_versions: false,
    };
    let done: Updated = if item.multi {
        update_many(context, ns, &statement, op, progress)?
    } else {
        update_one(context, ns, &statement, op, progress)?
    };
    Ok(StatementResult {
        n: done.matched + i64::from(done.upserted.is_some()),
        n_modified: done.modified,
        upserted: done.upserted,
        value: None,
        recovered: false,
    })
}
