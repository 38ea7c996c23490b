//! `bulkWrite`: inserts, updates and deletes over several collections in one command.
//!
//! The results of the operations come as a cursor. `errorsOnly` leaves the successes out.

use super::WRITE_FLAGS;
use super::update::UpdateValue;
use crate::Context;
use crate::args::{InRange, NonNegative, RawArray, StrictBool, Uuid};
use crate::batch::{self, Opening};
use crate::dispatch::{CommandSpec, Flags};
use crate::profiler::record as profiler;
use crate::read;
use crate::sessions::StatementResult;
use crate::write::delete::{delete_many, delete_one};
use crate::write::insert::{InsertOptions, Statement, insert_all, is_fatal};
use crate::write::target::Selection;
use crate::write::update::{UpdateStatement, update_many, update_one};
use crate::write::{self, Progress, Retryable, statement_id};
use nestor_exec::ops::Values;
use nestor_model::value::ArrayRef;
use nestor_model::{DocRef, Document, Error, ErrorCode, Namespace, RawDoc, RawWriter, Result, ValueRef, bail, doc};
use nestor_query::env::{OpContext, Scope};
use nestor_query::update::{Update, UpdateOptions};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "bulkWrite",
    aliases: &[],
    flags: WRITE_FLAGS.and(Flags::ADMIN),
    help: "Writes to several collections.",
    run,
};

crate::args! {
    /// Arguments of `bulkWrite`.
    pub struct BulkWriteArgs<'a>: "bulkWrite" command {
        "bulkWrite" => marker: InRange<1, 1>,
        "ops" => ops: Vec<RawDoc<'a>>,
        "nsInfo" => ns_info: Vec<RawDoc<'a>>,
        "ordered" => ordered: Option<StrictBool>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "let" => variables: Option<RawDoc<'a>>,
        "errorsOnly" => errors_only: bool,
        "cursor" => cursor: Option<RawDoc<'a>>,
        "stmtId" => stmt_id: Option<i32>,
        "stmtIds" => stmt_ids: Option<Vec<i32>>,
        "bypassEmptyTsReplacement" => bypass_empty_ts_replacement: bool,
    }
}

crate::args! {
    struct NsInfo<'a>: "bulkWrite.nsInfo" nested {
        "ns" => ns: &'a str,
        "collectionUUID" => collection_uuid: Option<Uuid>,
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
    }
}

crate::args! {
    struct InsertOp<'a>: "bulkWrite.ops" nested {
        "insert" => ns: NonNegative,
        "document" => document: RawDoc<'a>,
    }
}

crate::args! {
    struct UpdateOp<'a>: "bulkWrite.ops" nested {
        "update" => ns: NonNegative,
        "filter" => filter: RawDoc<'a>,
        "updateMods" => update: UpdateValue<'a>,
        "multi" => multi: bool,
        "upsert" => upsert: bool,
        "arrayFilters" => array_filters: Option<RawArray<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "constants" => constants: Option<RawDoc<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
        "upsertSupplied" => upsert_supplied: bool,
    }
}

crate::args! {
    struct DeleteOp<'a>: "bulkWrite.ops" nested {
        "delete" => ns: NonNegative,
        "filter" => filter: RawDoc<'a>,
        "multi" => multi: bool,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
    }
}

crate::args! {
    struct CursorOptions: "bulkWrite.cursor" nested {
        "batchSize" => batch_size: Option<NonNegative>,
    }
}

/// Fields that only a sharded cluster's routers send.
fn refuse_router_fields(given: bool) -> Result<()> {
    if given {
        bail!(
            NotImplemented,
            "bulkWrite takes no fields of a sharded cluster's routers on one node"
        );
    }
    Ok(())
}

enum Op<'a> {
    Insert(InsertOp<'a>),
    Update(UpdateOp<'a>),
    Delete(DeleteOp<'a>),
}

impl<'a> Op<'a> {
    fn parse(doc: RawDoc<'a>) -> Result<Self> {
        match doc.iter().next().map(|(name, _)| name) {
            Some("insert") => Ok(Self::Insert(InsertOp::parse(doc, &[])?)),
            Some("update") => {
                let update = UpdateOp::parse(doc, &[])?;
                refuse_router_fields(update.sample_id.is_some() || update.upsert_supplied)?;
                Ok(Self::Update(update))
            }
            Some("delete") => {
                let delete = DeleteOp::parse(doc, &[])?;
                refuse_router_fields(delete.sample_id.is_some())?;
                Ok(Self::Delete(delete))
            }
            Some(other) => bail!(
                FailedToParse,
                "Unrecognized op type '{other}', expected one of 'insert', 'update', 'delete'"
            ),
            None => bail!(FailedToParse, "Operation in 'ops' must not be empty"),
        }
    }

    /// What the profiler calls it.
    fn profiled(&self) -> profiler::Op {
        match self {
            Self::Insert(_) => profiler::Op::INSERT,
            Self::Update(_) => profiler::Op::UPDATE,
            Self::Delete(_) => profiler::Op::REMOVE,
        }
    }

    /// Tells the profiler what it did.
    fn observe(&self, context: &Context<'_>, done: &StatementResult) {
        match self {
            Self::Insert(_) => context.figures.borrow_mut().inserted = Some(done.n),
            Self::Update(_) => super::update::observe(context, done),
            Self::Delete(_) => context.figures.borrow_mut().deleted = Some(done.n),
        }
    }

    fn ns(&self) -> usize {
        match self {
            Self::Insert(op) => op.ns.0 as usize,
            Self::Update(op) => op.ns.0 as usize,
            Self::Delete(op) => op.ns.0 as usize,
        }
    }

    fn is_multi(&self) -> bool {
        match self {
            Self::Insert(_) => false,
            Self::Update(op) => op.multi,
            Self::Delete(op) => op.multi,
        }
    }
}

#[derive(Default)]
struct Totals {
    errors: i64,
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = BulkWriteArgs::parse(context.body, context.sequences)?;
    write::check_count("bulkWrite", "ops", args.ops.len())?;
    write::check_statement_ids(args.stmt_id.is_some(), args.stmt_ids.as_deref(), args.ops.len())?;
    let namespaces = namespaces(context, &args)?;
    let ops = args.ops.iter().map(|doc| Op::parse(*doc)).collect::<Result<Vec<_>>>()?;
    for op in &ops {
        if op.ns() >= namespaces.len() {
            bail!(BadValue, "BulkWrite ops entry has an invalid nsInfo index {}.", op.ns());
        }
    }
    let batch_size = match args.cursor {
        Some(cursor) => CursorOptions::parse(cursor, &[])?.batch_size.map(|n| n.0 as u64),
        None => None,
    };
    context.check_write_concern()?;
    let session = context.retry_session()?;
    let mut retryable = Retryable::begin(context, session.as_ref())?;
    if retryable.is_on() && ops.iter().any(Op::is_multi) {
        bail!(InvalidOptions, "Cannot use retryable writes with multi=true");
    }
    let (op_context, scope) = context.operation(args.variables)?;
    let ordered = args.ordered.is_none_or(|ordered| ordered.0);
    let mut progress = Progress::default();
    let mut totals = Totals::default();
    let mut results: Vec<Document> = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        let id = statement_id(args.stmt_id, args.stmt_ids.as_deref(), index);
        let outcome = match retryable.executed(id) {
            Some(done) => {
                progress.retried.push(id);
                Ok(done.clone())
            }
            None => {
                let stmt_id = retryable.is_on().then_some(id);
                let run = OneOp {
                    keep_empty_times: args.bypass_empty_ts_replacement,
                    ns: &namespaces[op.ns()],
                    op: &op_context,
                    own: None,
                    scope: scope.clone(),
                    stmt_id,
                    bypass_validation: args.bypass_document_validation,
                };
                let done = run.run(context, op, &mut progress);
                if let Ok(done) = &done {
                    op.observe(context, done);
                }
                let command = || args.ops[index].as_doc().to_document();
                context.finish_statement(op.profiled(), &namespaces[op.ns()], command, done.as_ref().err());
                done
            }
        };
        match outcome {
            Ok(done) => {
                totals.add(op, &done);
                if !args.errors_only {
                    results.push(success(index, op, &done));
                }
                retryable.remember(id, done);
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => {
                totals.errors += 1;
                results.push(failure(index, op, &error));
                if ordered {
                    break;
                }
            }
        }
    }
    drop(retryable);
    let opening = Opening {
        batch_size: Some(batch_size.unwrap_or(u64::MAX)),
        ..Opening::of_values(
            Namespace::new("admin", "$cmd.bulkWrite"),
            Box::new(Values::new(results)),
            op_context,
        )
    };
    let read = context.current_view();
    batch::first(context, read.view(), opening, reply)?;
    drop(read);
    totals.append(reply);
    context.finish_write(progress, reply)
}

fn namespaces(context: &Context<'_>, args: &BulkWriteArgs<'_>) -> Result<Vec<Namespace>> {
    let mut out = Vec::with_capacity(args.ns_info.len());
    for doc in &args.ns_info {
        let info = NsInfo::parse(*doc, &[])?;
        refuse_router_fields(info.is_timeseries_namespace)?;
        let ns = Namespace::parse(info.ns);
        if ns.coll.is_empty() {
            bail!(
                InvalidNamespace,
                "Invalid namespace specified for bulkWrite: '{}'",
                info.ns
            );
        }
        write::check_document_namespace(&ns)?;
        write::refuse_encryption(info.encryption_information)?;
        write::check_uuid(context, &ns, info.collection_uuid)?;
        out.push(ns);
    }
    Ok(out)
}

/// What running one operation needs.
struct OneOp<'o> {
    keep_empty_times: bool,
    ns: &'o Namespace,
    op: &'o OpContext,
    /// `op` under the statement's collation, if it has one.
    own: Option<OpContext>,
    scope: Scope,
    stmt_id: Option<i32>,
    bypass_validation: bool,
}

impl OneOp<'_> {
    fn op(&self) -> &OpContext {
        self.own.as_ref().unwrap_or(self.op)
    }

    fn run(mut self, context: &Context<'_>, op: &Op<'_>, progress: &mut Progress) -> Result<StatementResult> {
        match op {
            Op::Insert(insert) => self.insert(context, insert, progress),
            Op::Update(update) => self.update(context, update, progress),
            Op::Delete(delete) => self.delete(context, delete, progress),
        }
    }

    fn insert(&self, context: &Context<'_>, insert: &InsertOp<'_>, progress: &mut Progress) -> Result<StatementResult> {
        let statement = Statement {
            index: 0,
            doc: insert.document,
            stmt_id: self.stmt_id,
        };
        let options = InsertOptions {
            keep_empty_times: self.keep_empty_times,
            ordered: true,
            bypass_validation: self.bypass_validation,
        };
        insert_all(context, self.ns, self.op, &[statement], options, progress, |_, _| {})?;
        match progress.errors.pop() {
            Some(failed) => Err(failed.error),
            None => Ok(StatementResult {
                n: 1,
                ..StatementResult::default()
            }),
        }
    }

    fn selection(
        &mut self,
        context: &Context<'_>,
        filter: RawDoc<'_>,
        sort: Option<RawDoc<'_>>,
        hint: Option<ValueRef<'_>>,
        collation: Option<RawDoc<'_>>,
    ) -> Result<Selection> {
        let collection = context.current_view().view().catalog().get(self.ns).cloned();
        (self.own, self.scope) = read::statement(self.op, &self.scope, collation, collection.as_deref())?;
        let mut selection = Selection::parse(Some(filter), sort, &mut self.scope)?;
        selection.hint = read::check_hint(hint, collection.as_deref())?;
        Ok(selection)
    }

    fn update(
        &mut self,
        context: &Context<'_>,
        update: &UpdateOp<'_>,
        progress: &mut Progress,
    ) -> Result<StatementResult> {
        if update.multi && update.sort.is_some_and(|sort| !sort.is_empty()) {
            bail!(FailedToParse, "Cannot specify sort with multi=true");
        }
        let selection = self.selection(context, update.filter, update.sort, update.hint, update.collation)?;
        let options = UpdateOptions {
            array_filters: update.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
            constants: update.constants.map(DocRef::Raw),
            multi: update.multi,
        };
        let statement = UpdateStatement {
            selection,
            q: DocRef::Raw(update.filter),
            update: Update::parse(update.update.0, options, &mut self.scope)?,
            upsert: update.upsert,
            bypass_validation: self.bypass_validation,
            images: false,
            stmt_id: self.stmt_id,
            keep_versions: false,
        };
        let done = if update.multi {
            update_many(context, self.ns, &statement, self.op(), progress)?
        } else {
            update_one(context, self.ns, &statement, self.op(), progress)?
        };
        Ok(StatementResult {
            n: done.matched + i64::from(done.upserted.is_some()),
            n_modified: done.modified,
            upserted: done.upserted,
            value: None,
            recovered: false,
        })
    }

    fn delete(
        &mut self,
        context: &Context<'_>,
        delete: &DeleteOp<'_>,
        progress: &mut Progress,
    ) -> Result<StatementResult> {
        let selection = self.selection(context, delete.filter, None, delete.hint, delete.collation)?;
        let n = if delete.multi {
            delete_many(context, self.ns, &selection, self.op(), progress)?
        } else {
            let one = delete_one(context, self.ns, &selection, self.op(), self.stmt_id, progress)?;
            i64::from(one.is_some())
        };
        Ok(StatementResult {
            n,
            ..StatementResult::default()
        })
    }
}

impl Totals {
    fn add(&mut self, op: &Op<'_>, done: &StatementResult) {
        match op {
            Op::Insert(_) => self.inserted += done.n,
            Op::Delete(_) => self.deleted += done.n,
            Op::Update(_) => {
                let upserted = i64::from(done.upserted.is_some());
                self.matched += done.n - upserted;
                self.modified += done.n_modified;
                self.upserted += upserted;
            }
        }
    }

    fn append(&self, reply: &mut RawWriter) {
        for (name, count) in [
            ("nErrors", self.errors),
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ] {
            write::append_count(reply, name, count);
        }
    }
}

fn success(index: usize, op: &Op<'_>, done: &StatementResult) -> Document {
    let mut out = doc! { "ok": 1.0, "idx": index as i32, "n": done.n as i32 };
    if let Op::Update(_) = op {
        out.push("nModified", done.n_modified as i32);
        if let Some(id) = &done.upserted {
            out.push("upserted", doc! { "_id": id.clone() });
        }
    }
    out
}

fn failure(index: usize, op: &Op<'_>, error: &Error) -> Document {
    let mut out = doc! { "ok": 0.0, "idx": index as i32, "code": error.code().number() };
    if let Some(extra) = error.extra() {
        for (name, value) in extra.iter() {
            out.push(name, value);
        }
    }
    out.push("errmsg", error.message());
    out.push("n", 0);
    if let Op::Update(_) = op {
        out.push("nModified", 0);
    }
    debug_assert_ne!(error.code(), ErrorCode::OK, "failures have a code");
    out
}
