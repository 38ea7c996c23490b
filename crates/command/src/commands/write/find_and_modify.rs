//! `findAndModify`: updates, replaces or removes one document and returns it.

use super::WRITE_FLAGS;
use super::update::{UpdateValue, observe};
use crate::Context;
use crate::args::{CollectionName, RawArray, Uuid};
use crate::dispatch::CommandSpec;
use crate::sessions::StatementResult;
use crate::write::delete::delete_one;
use crate::write::target::Selection;
use crate::write::update::{UpdateStatement, update_one};
use crate::write::{self, Progress, Retryable};
use crate::{names, read};
use nestor_model::value::ArrayRef;
use nestor_model::{DocRef, Document, RawDoc, RawDocBuf, RawWriter, Result, ValueRef, bail};
use nestor_query::env::{Env, OpContext};
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::{Policy, Projection};
use nestor_query::update::{Update, UpdateOptions};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "findAndModify",
    aliases: &["findandmodify"],
    flags: WRITE_FLAGS,
    help: "Changes or removes one document and returns it.",
    run,
};

crate::args! {
    /// Arguments of `findAndModify`.
    pub struct FindAndModifyArgs<'a>: "findAndModify" command {
        "findAndModify" => coll: CollectionName<'a>,
        "query" => query: Option<RawDoc<'a>>,
        "fields" => fields: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "arrayFilters" => array_filters: Option<RawArray<'a>>,
        "remove" => remove: bool,
        "update" => update: Option<UpdateValue<'a>>,
        "upsert" => upsert: bool,
        "new" => new: bool,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "let" => variables: Option<RawDoc<'a>>,
        "stmtId" => stmt_id: Option<i32>,
        "sampleId" => sample_id: Option<Uuid>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        "bypassEmptyTsReplacement" => bypass_empty_ts_replacement: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = FindAndModifyArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    check(&args)?;
    write::check_document_namespace(&ns)?;
    write::refuse_encryption(args.encryption_information)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    context.check_write_concern()?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    let stmt_id = args.stmt_id.unwrap_or(0);
    let mut progress = Progress::default();
    if let Some(done) = retryable.executed(stmt_id) {
        if done.recovered {
            bail!(
                IncompleteTransactionHistory,
                "the document that this findAndModify returned before the restart is not known any more"
            );
        }
        append(reply, args.remove, done);
        progress.retried.push(stmt_id);
        drop(retryable);
        return context.finish_write(progress, reply);
    }
    let collection = context.current_view().view().catalog().get(&ns).cloned();
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, mut scope) = context.operation_under(args.variables, collator)?;
    let mut selection = Selection::parse(args.query, args.sort, &mut scope)?;
    selection.hint = read::check_hint(args.hint, collection.as_deref())?;
    let projection = match args.fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => Some(Projection::parse(DocRef::Raw(fields), &mut scope, Policy::Find)?),
        None => None,
    };
    if projection.as_ref().is_some_and(|p| p.needs_match_details()) && args.new {
        bail!(
            2,
            "The positional projection cannot be used with findAndModify that returns the new document"
        );
    }
    let logged = retryable.is_on().then_some(stmt_id);
    let project = |doc: RawDocBuf| project(doc, projection.as_ref(), &selection.filter, &op);
    let done = if args.remove {
        let removed = delete_one(context, &ns, &selection, &op, logged, &mut progress)?;
        StatementResult {
            n: i64::from(removed.is_some()),
            value: removed.map(project).transpose()?,
            ..StatementResult::default()
        }
    } else {
        let update = args.update.map_or(ValueRef::Missing, |u| u.0);
        let options = UpdateOptions {
            array_filters: args.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
            constants: None,
            multi: false,
        };
        let statement = UpdateStatement {
            selection: selection.clone(),
            q: args.query.map_or(nestor_model::value::EMPTY_DOC, DocRef::Raw),
            update: Update::parse(update, options, &mut scope)?,
            upsert: args.upsert,
            bypass_validation: args.bypass_document_validation,
            images: true,
            stmt_id: logged,
            keep_versions: true,
        };
        let updated = update_one(context, &ns, &statement, &op, &mut progress)?;
        let shown = if args.new { updated.new } else { updated.old };
        StatementResult {
            n: updated.matched + i64::from(updated.upserted.is_some()),
            n_modified: updated.modified,
            upserted: updated.upserted,
            value: shown.map(project).transpose()?,
            recovered: false,
        }
    };
    append(reply, args.remove, &done);
    if args.remove {
        context.figures.borrow_mut().deleted = Some(done.n);
    } else {
        observe(context, &done);
    }
    context.figures.borrow_mut().returned = Some(u64::from(done.value.is_some()));
    retryable.remember(stmt_id, done);
    drop(retryable);
    context.finish_write(progress, reply)
}

fn check(args: &FindAndModifyArgs<'_>) -> Result<()> {
    if args.remove {
        if args.update.is_some() {
            bail!(FailedToParse, "Cannot specify both an update and remove=true");
        }
        if args.upsert {
            bail!(FailedToParse, "Cannot specify both upsert=true and remove=true");
        }
        if args.new {
            bail!(
                FailedToParse,
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            );
        }
        if args.array_filters.is_some() {
            bail!(FailedToParse, "Cannot specify arrayFilters and remove=true");
        }
    } else if args.update.is_none() {
        bail!(FailedToParse, "Either an update or remove=true must be specified");
    }
    if matches!(args.hint, Some(ValueRef::Null)) {
        bail!(FailedToParse, "Hint must be a string or an object, found null");
    }
    Ok(())
}

fn project(doc: RawDocBuf, projection: Option<&Projection>, filter: &MatchExpr, op: &OpContext) -> Result<Document> {
    let Some(projection) = projection else {
        return Ok(doc.into());
    };
    let raw = doc.as_raw();
    if projection.is_simple() {
        return Ok(projection.apply_raw_to_buf(raw).into());
    }
    let details = if projection.needs_match_details() {
        filter.matches_with_position(raw.as_doc(), op)?
    } else {
        None
    };
    projection.apply(&mut Env::new(raw.as_doc(), op), details.as_ref())
}

fn append(reply: &mut RawWriter, remove: bool, done: &StatementResult) {
    reply.begin_document("lastErrorObject");
    write::append_count(reply, "n", done.n);
    if !remove {
        reply.append("updatedExisting", done.n > 0 && done.upserted.is_none());
        if let Some(id) = &done.upserted {
            reply.append("upserted", id);
        }
    }
    reply.end();
    match &done.value {
        Some(value) => reply.append("value", value),
        None => reply.append("value", ValueRef::Null),
    }
}
