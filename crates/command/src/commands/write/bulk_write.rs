//! `bulkWrite`: inserts, updates and deletes over several collections in one command.
//!
//! The results of the operations come as a cursor. `errorsOnly` leaves the successes out.

use super::WRITE_FLAGS;
use super::update::UpdateValue;
use crate::args::{HintValue, NonNegative, RawArray, StrictBool, unknown_field};
use crate::batch::{self, Opening};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::Needs;
use crate::request::Sequence;
use crate::spec::CommandSpec;
use crate::write_reply;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::writing::execute;
use nestor_database::sessions::StatementResult;
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_database::write::statements::{
    DeleteOp, Namespaces, Recorded, Report, StatementIds, UpdateOp, WriteOp, WriteStatement, Writes,
};
use nestor_exec::ops::Values;
use nestor_model::ArrayRef;
use nestor_model::namespace::ADMIN;
use nestor_model::{Document, Error, ErrorCode, Namespace, RawDoc, RawWriter, Result, ValueRef, bail, doc};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("bulkWrite", "Writes to several collections.")
    .flags(WRITE_FLAGS.and(Flags::ADMIN))
    .op(OpKind::BulkWrite)
    .profiled_as("bulkWrite")
    .prepared_as(Preparation::BulkWrite)
    .needs(Needs::Operation)
    .runs(run);

crate::args! {
    /// Arguments of `bulkWrite`.
    pub struct BulkWriteArgs<'a>: "bulkWrite" command {
        /// Any value: that the command is this one is said by the name alone.
        #[allow(dead_code)]
        "bulkWrite" => marker: ValueRef<'a>,
        "ops" => ops: Vec<RawDoc<'a>>,
        "nsInfo" => ns_info: Vec<RawDoc<'a>>,
        "ordered" => ordered: Option<StrictBool>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
        "let" => variables: Option<RawDoc<'a>>,
        "errorsOnly" => errors_only: StrictBool,
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
    struct UpdateItem<'a>: "bulkWrite.ops" nested {
        "update" => ns: NonNegative,
        "filter" => filter: RawDoc<'a>,
        "updateMods" => update: UpdateValue<'a>,
        "multi" => multi: StrictBool,
        "upsert" => upsert: StrictBool,
        "arrayFilters" => array_filters: Option<RawArray<'a>>,
        "hint" => hint: Option<HintValue<'a>>,
        "constants" => constants: Option<RawDoc<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "sampleId" => sample_id: Option<Uuid>,
        "upsertSupplied" => upsert_supplied: bool,
    }
}

crate::args! {
    struct DeleteItem<'a>: "bulkWrite.ops" nested {
        "delete" => ns: NonNegative,
        "filter" => filter: RawDoc<'a>,
        "multi" => multi: StrictBool,
        "hint" => hint: Option<HintValue<'a>>,
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

/// Reads one of `ops`; its collection is a place in `nsInfo`, which has `namespaces` of them.
fn statement(sent: RawDoc<'_>, namespaces: usize) -> Result<WriteStatement<'_>> {
    let (ns, op) = match sent.iter().next().map(|(name, _)| name) {
        Some("insert") => {
            let insert = InsertOp::parse(sent, &[])?;
            (insert.ns, WriteOp::Insert(insert.document))
        }
        Some("update") => {
            let update = UpdateItem::parse(sent, &[])?;
            refuse_router_fields(update.sample_id.is_some() || update.upsert_supplied)?;
            let op = UpdateOp {
                filter: update.filter,
                update: update.update.0,
                constants: update.constants,
                multi: update.multi.0,
                upsert: update.upsert.0,
                array_filters: update.array_filters.map(|filters| ArrayRef::Raw(filters.0)),
                hint: update.hint.map(|hint| hint.0),
                collation: update.collation,
                sort: update.sort,
            };
            (update.ns, WriteOp::Update(op))
        }
        Some("delete") => {
            let delete = DeleteItem::parse(sent, &[])?;
            refuse_router_fields(delete.sample_id.is_some())?;
            let op = DeleteOp {
                filter: delete.filter,
                multi: delete.multi.0,
                hint: delete.hint.map(|hint| hint.0),
                collation: delete.collation,
                sort: None,
            };
            (delete.ns, WriteOp::Delete(op))
        }
        Some(other) => return Err(unknown_field("bulkWrite.ops", other)),
        None => bail!(FailedToParse, "Operation in 'ops' must not be empty"),
    };
    let ns = ns.0 as usize;
    if ns >= namespaces {
        bail!(BadValue, "BulkWrite ops entry has an invalid nsInfo index {ns}.");
    }
    Ok(WriteStatement { ns, op, sent })
}

#[derive(Default)]
struct Totals {
    errors: i64,
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
    /// `errorsOnly`.
    errors_only: bool,
    /// Documents of the reply's cursor.
    results: Vec<Document>,
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = BulkWriteArgs::parse(context.body, context.sequences)?;
    let writes = writes(&args)?;
    // The operations in it count beside the command.
    for statement in &writes.statements {
        let kind = match statement.op {
            WriteOp::Insert(_) => OpKind::Insert,
            WriteOp::Update(_) => OpKind::Update,
            WriteOp::Delete(_) => OpKind::Delete,
        };
        context.service.node.counters.operations.count(kind.counter(), 1);
    }
    let batch_size = match args.cursor {
        Some(cursor) => CursorOptions::parse(cursor, &[])?.batch_size.map(|n| n.0 as u64),
        None => None,
    };
    let mut totals = Totals {
        errors_only: args.errors_only.0,
        ..Totals::default()
    };
    let progress = execute(context, &writes, &mut totals)?;
    let (op, _) = context.operation(None)?;
    let opening = Opening {
        batch_size: Some(batch_size.unwrap_or(u64::MAX)),
        ..Opening::of_values(
            Namespace::new(ADMIN, "$cmd.bulkWrite"),
            Box::new(Values::new(std::mem::take(&mut totals.results))),
            op,
        )
    };
    let read = context.current_view();
    batch::first(context, read.view(), opening, reply)?;
    drop(read);
    totals.append(reply);
    context.finish_write(progress, reply)
}

/// The statements of a bulkWrite command.
pub(crate) fn prepare<'a>(body: RawDoc<'a>, sequences: &'a [Sequence<'a>]) -> Result<Writes<'a>> {
    writes(&BulkWriteArgs::parse(body, sequences)?)
}

fn writes<'a>(args: &BulkWriteArgs<'a>) -> Result<Writes<'a>> {
    let ids = StatementIds {
        first: args.stmt_id,
        each: args.stmt_ids.clone(),
    };
    Writes::check("bulkWrite", "ops", args.ops.len(), &ids)?;
    let (namespaces, uuids) = namespaces(args)?;
    let statements = args.ops.iter().map(|doc| statement(*doc, namespaces.len()));
    Ok(Writes {
        statements: statements.collect::<Result<_>>()?,
        namespaces: Namespaces::Many(namespaces),
        uuids,
        ordered: args.ordered.is_none_or(|ordered| ordered.0),
        bypass_validation: args.bypass_document_validation,
        keep_empty_times: args.bypass_empty_ts_replacement,
        variables: args.variables,
        ids,
        recorded: Recorded::Apart(|sent| sent.as_doc().to_document()),
        ticks: true,
    })
}

/// The collections of `nsInfo` and what their UUIDs have to be.
fn namespaces(args: &BulkWriteArgs<'_>) -> Result<(Vec<Namespace>, Vec<Option<Uuid>>)> {
    let mut out = Vec::with_capacity(args.ns_info.len());
    let mut uuids = Vec::with_capacity(args.ns_info.len());
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
        write_reply::refuse_encryption(info.encryption_information)?;
        // A UUID that does not match fails the statements about the collection, not the command.
        uuids.push(info.collection_uuid);
        out.push(ns);
    }
    Ok((out, uuids))
}

impl Report for Totals {
    fn done(&mut self, index: usize, op: &WriteOp<'_>, done: &StatementResult) {
        match op {
            WriteOp::Insert(_) => self.inserted += done.n,
            WriteOp::Delete(_) => self.deleted += done.n,
            WriteOp::Update(_) => {
                let upserted = i64::from(done.upserted.is_some());
                self.matched += done.n - upserted;
                self.modified += done.n_modified;
                self.upserted += upserted;
            }
        }
        if !self.errors_only {
            self.results.push(success(index, op, done));
        }
    }

    fn failed(&mut self, index: usize, op: &WriteOp<'_>, error: Error) {
        self.errors += 1;
        self.results.push(failure(index, op, &error));
    }
}

impl Totals {
    fn append(&self, reply: &mut RawWriter) {
        for (name, count) in [
            ("nErrors", self.errors),
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ] {
            write_reply::append_count(reply, name, count);
        }
    }
}

fn success(index: usize, op: &WriteOp<'_>, done: &StatementResult) -> Document {
    let mut out = doc! { "ok": 1.0, "idx": index as i32, "n": done.n as i32 };
    if let WriteOp::Update(_) = op {
        out.push("nModified", done.n_modified as i32);
        if let Some(id) = &done.upserted {
            out.push("upserted", doc! { "_id": id.clone() });
        }
    }
    out
}

fn failure(index: usize, op: &WriteOp<'_>, error: &Error) -> Document {
    let mut out = doc! { "ok": 0.0, "idx": index as i32, "code": error.code().number() };
    if let Some(extra) = error.extra() {
        for (name, value) in extra.iter() {
            out.push(name, value);
        }
    }
    out.push("errmsg", error.message());
    out.push("n", 0);
    if let WriteOp::Update(_) = op {
        out.push("nModified", 0);
    }
    debug_assert_ne!(error.code(), ErrorCode::OK, "failures have a code");
    out
}
