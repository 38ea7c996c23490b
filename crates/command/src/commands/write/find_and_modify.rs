//! `findAndModify`: updates, replaces or removes one document and returns it.

use super::WRITE_FLAGS;
use super::update::UpdateValue;
use crate::args::{CollectionName, HintValue, RawArray};
use crate::audited::Audited;
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use crate::write_reply;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::Operation;
use nestor_database::operation::query::check_positional;
use nestor_database::sessions::StatementResult;
use nestor_database::shape::{Shape, Words};
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_database::write::prepared::Prepared;
use nestor_database::write::statements::{DeleteOp, UpdateOp, WriteOp};
use nestor_database::write::timeseries;
use nestor_database::write::{Progress, Retryable};
use nestor_database::{masking, names, read};
use nestor_exec::write::oplog::Image;
use nestor_model::ArrayRef;
use nestor_model::{DocRef, Document, Namespace, RawDoc, RawDocBuf, RawWriter, Result, ValueRef, bail, raw};
use nestor_query::env::Env;
use nestor_query::projection::{Policy, Projection};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("findAndModify", "Changes or removes one document and returns it.")
    .aliases(&["findandmodify"])
    .flags(WRITE_FLAGS.and(Flags::USUALLY_SHORT).and(Flags::EXPLAINABLE))
    .op(OpKind::FindAndModify)
    .prepared_as(Preparation::FindAndModify)
    .needs(Needs::Usually(needs::find_and_modify))
    .audited(Audited::Documents)
    .runs(run);

crate::args! {
    /// Arguments of `findAndModify`.
    pub struct FindAndModifyArgs<'a>: "findAndModify" command {
        "findAndModify" => coll: CollectionName<'a>,
        "query" => query: Option<RawDoc<'a>>,
        "fields" => fields: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "hint" => hint: Option<HintValue<'a>>,
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
    let ns = namespace(context, &args)?;
    context.check_write_concern()?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    let stmt_id = args.stmt_id.unwrap_or(0);
    // A result that was read back from the oplog has the whole document; the command may ask for some fields only.
    if let Some(done) = retryable.executed(stmt_id).filter(|done| !done.recovered).cloned() {
        return again(context, reply, retryable, (stmt_id, &done, args.remove));
    }
    let shape = shape(&args, ns);
    context.admit_shape(&shape)?;
    context.describe(shape.clone());
    let read = context.current_view();
    let (mut operation, projection) = understand(context, read.view(), &args, shape)?;
    drop(read);
    let image = if args.new { Image::After } else { Image::Before };
    operation.log_as(retryable.logged(stmt_id, image));
    let project = |doc: RawDocBuf| project(doc, projection.as_ref(), &operation);
    if let Some(mut done) = retryable.executed(stmt_id).cloned() {
        done.value = done.value.map(|image| project(image.to_raw())).transpose()?;
        return again(context, reply, retryable, (stmt_id, &done, args.remove));
    }
    let mut progress = Progress::default();
    let mut written = operation.write(context, &mut progress)?;
    let shown = if args.new {
        written.new.take()
    } else {
        written.old.take()
    };
    let done = StatementResult {
        value: shown.map(project).transpose()?,
        ..written.into_result()
    };
    append(reply, args.remove, &done);
    statement(&args).observe(context, &done);
    context.figures.borrow_mut().returned = Some(u64::from(done.value.is_some()));
    retryable.remember(stmt_id, || done);
    drop(retryable);
    context.finish_write(progress, reply)
}

/// The collection that it is about, once its arguments were checked.
fn namespace(context: &Context<'_>, args: &FindAndModifyArgs<'_>) -> Result<Namespace> {
    let ns = names::collection(context.db(), args.coll.0)?;
    check(args)?;
    write::check_document_namespace(&ns)?;
    write_reply::refuse_encryption(args.encryption_information)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    Ok(ns)
}

fn shape<'a>(args: &FindAndModifyArgs<'a>, ns: Namespace) -> Shape<'a> {
    Shape {
        command: SPEC.name,
        ns,
        is_settable: false,
        words: Words {
            filter: args.query,
            collation: args.collation,
            variables: args.variables,
            sort: args.sort,
            ..Words::default()
        },
    }
}

/// Prepares it on what there is at the shape's namespace, with the projection of what it returns.
fn understand<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &FindAndModifyArgs<'a>,
    shape: Shape<'a>,
) -> Result<(Operation<'a>, Option<Projection>)> {
    let collection = view.catalog().get(&shape.ns).cloned();
    let bottom = timeseries::bottom_of(view, collection.as_ref());
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, mut scope) = context.operation_under(args.variables, collator)?;
    let mut prepared = Prepared::new(
        &statement(args),
        shape.words,
        (collection.as_deref(), bottom.as_deref()),
        &mut scope,
    )?;
    prepared.bypass_validation = args.bypass_document_validation;
    prepared.images = true;
    let projection = match args.fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => Some(Projection::parse(DocRef::Raw(fields), &mut scope, Policy::Find)?),
        None => None,
    };
    if let Some(projection) = &projection {
        check_positional(projection, &prepared.selection.query.filter)?;
    }
    if projection.as_ref().is_some_and(|p| p.needs_match_details()) && args.new {
        bail!(
            2,
            "The positional projection cannot be used with findAndModify that returns the new document"
        );
    }
    Ok((Operation::of_write(shape, collection, op, prepared)?, projection))
}

/// Prepares it to be explained, or for its rights to be looked at.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &FindAndModifyArgs<'a>,
) -> Result<Operation<'a>> {
    let ns = namespace(context, args)?;
    if let Some(collection) = view.catalog().get(&ns) {
        write::check_writable(collection)?;
    }
    let (operation, _) = understand(context, view, args, shape(args, ns))?;
    Ok(operation)
}

/// Answers as an earlier attempt of the same write did.
fn again(
    context: &mut Context<'_>,
    reply: &mut RawWriter,
    retryable: Retryable<'_>,
    (stmt_id, done, remove): (i32, &StatementResult, bool),
) -> Result<()> {
    append(reply, remove, done);
    drop(retryable);
    let progress = Progress {
        retried: vec![stmt_id],
        ..Progress::default()
    };
    context.finish_write(progress, reply)
}

/// The change that it makes to the document it finds.
fn statement<'a>(args: &FindAndModifyArgs<'a>) -> WriteOp<'a> {
    let filter = args.query.unwrap_or(raw::EMPTY);
    // The collation is the command's: its variables are under it too.
    match args.update {
        Some(update) => WriteOp::Update(UpdateOp {
            filter,
            update: update.0,
            constants: None,
            multi: false,
            upsert: args.upsert,
            array_filters: args.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
            hint: args.hint.map(|hint| hint.0),
            collation: None,
            sort: args.sort,
        }),
        None => WriteOp::Delete(DeleteOp {
            filter,
            multi: false,
            hint: args.hint.map(|hint| hint.0),
            collation: None,
            sort: args.sort,
        }),
    }
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
    Ok(())
}

fn project(doc: RawDocBuf, projection: Option<&Projection>, operation: &Operation<'_>) -> Result<Document> {
    let doc = masking::shown(doc, operation.collection.as_deref(), &operation.op)?;
    let Some(projection) = projection else {
        return Ok(doc.into());
    };
    let raw = doc.as_raw();
    if projection.is_simple() {
        return Ok(projection.apply_raw_to_buf(raw).into());
    }
    let op = &operation.op;
    let details = match operation.query() {
        Some(query) if projection.needs_match_details() => query.filter.matches_with_position(raw.as_doc(), op)?,
        _ => None,
    };
    projection.apply(&mut Env::new(raw.as_doc(), op), details.as_ref())
}

fn append(reply: &mut RawWriter, remove: bool, done: &StatementResult) {
    reply.begin_document("lastErrorObject");
    write_reply::append_count(reply, "n", done.n);
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
