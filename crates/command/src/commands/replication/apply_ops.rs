//! `applyOps`: writes what oplog entries say, as mongorestore has it done with `--oplogReplay` and `--preserveUUID`.
//!
//! Entries that change documents only are one commit, all or none, unless `allowAtomic: false` is given; otherwise each is a
//! commit of its own, and those before one that fails stay. An insert of an `_id` that is there replaces the document and a
//! delete of one that is not there does nothing, so that a log may be replayed twice. What is written is logged as
//! if clients had written it.
//! Source: manual, "applyOps"; oplog entries as specified in [`nestor_exec::write::oplog`].

use crate::commands::collections::create;
use crate::connection::Connection;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::request::Request;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_database::write;
use nestor_database::write::validator::Validator;
use nestor_database::write::{Progress, prepare};
use nestor_exec::point;
use nestor_exec::write::{Changed, Writer};
use nestor_model::namespace::ADMIN;
use nestor_model::value::DocRef;
use nestor_model::{
    Array, Document, Error, ErrorCode, Namespace, RawDoc, RawDocBuf, RawWriter, Result, Value, ValueRef, bail, doc,
};
use nestor_query::env::{OpContext, Scope};
use nestor_query::timeseries::{Bucket, from_client};
use nestor_query::update::{Applied, Touched, Update, UpdateOptions, diff};
use nestor_storage::{Collection, View, WriteSet};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("applyOps", "Writes what oplog entries say.")
    .flags(
        Flags::ADMIN
            .and(Flags::WRITE)
            .and(Flags::LONG)
            .and(Flags::WRITE_CONCERN),
    )
    // Whatever it is told to do it does without asking further.
    .needs(Needs::server(Action::Internal))
    .runs(run);

/// The operation that an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Delete,
    Command,
    Nothing,
}

/// An entry, checked for form.
#[derive(Debug)]
struct Entry<'a> {
    kind: Kind,
    ns: Namespace,
    /// The collection's UUID, by which it is found whatever its name is now.
    uuid: Option<[u8; 16]>,
    /// The document, its `_id`, the change or the command.
    o: RawDoc<'a>,
    /// The `_id` of what is updated.
    o2: Option<RawDoc<'a>>,
    /// An update that finds nothing inserts (`b`).
    upsert: bool,
}

/// The results so far, for the reply.
#[derive(Debug, Default)]
struct Outcome {
    applied: i32,
    results: Vec<bool>,
}

impl Outcome {
    fn shown(&self) -> Array {
        self.results.iter().map(|done| Value::Bool(*done)).collect()
    }

    /// Adds a result and hands an error on, which then tells what was done before it.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        self.applied += 1;
        self.results.push(result.is_ok());
        self.tell(result)
    }

    /// Lets an error tell what was done.
    fn tell<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let mut extra = doc! { "applied": self.applied, "results": self.shown() };
            for (name, value) in error.extra().into_iter().flat_map(|extra| extra.iter()) {
                extra.push(name, value);
            }
            error.with_extra(extra)
        })
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let Some((_, list)) = context.body.iter().next() else {
        bail!(FailedToParse, "applyOps needs an array of operations");
    };
    let options = Options::parse(context.body)?;
    context.check_write_concern()?;
    let entries = entries(list)?;
    let mut progress = Progress::default();
    let mut outcome = Outcome::default();
    apply(context, &entries, options, &mut progress, &mut outcome)?;
    reply.append("applied", outcome.applied);
    reply.append("results", &Value::Array(outcome.shown()));
    context.finish_concern(progress.last, reply, false)?;
    // Commands among the entries committed on their own account.
    context.await_what_is_seen();
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Options {
    atomic: bool,
    bypass_validation: bool,
}

impl Options {
    /// Reads the arguments beside the entries. Those that nobody knows are passed over, as in MongoDB.
    fn parse(body: RawDoc<'_>) -> Result<Self> {
        let mut options = Self {
            atomic: true,
            bypass_validation: false,
        };
        for (name, value) in body.iter().skip(1) {
            match name {
                "allowAtomic" => options.atomic = value.is_nullish() || value.truthy(),
                "bypassDocumentValidation" => options.bypass_validation = value.truthy(),
                "alwaysUpsert" => match value {
                    ValueRef::Bool(false) => {}
                    ValueRef::Bool(true) => bail!(6711601, "alwaysUpsert is no longer supported"),
                    value if value.is_nullish() => {}
                    _ => bail!(TypeMismatch, "alwaysUpsert must be a boolean"),
                },
                "preCondition" => bail!(6711600, "preCondition is no longer supported"),
                "prepare" => bail!(BadValue, "The 'prepare' field of applyOps cannot be given by a client"),
                "partialTxn" => bail!(31056, "The 'partialTxn' field of applyOps cannot be given by a client"),
                "count" if value.is_number() => {
                    bail!(BadValue, "The 'count' field of applyOps cannot be given by a client")
                }
                "count" => bail!(TypeMismatch, "'count' must be a number"),
                _ => {}
            }
        }
        Ok(options)
    }
}

/// Reads the array of entries; nothing is written unless all of them are well-formed.
fn entries(list: ValueRef<'_>) -> Result<Vec<Entry<'_>>> {
    let ValueRef::Array(items) = list else {
        return Err(crate::args::wrong_type("applyOps", list.bson_type(), "array"));
    };
    items
        .iter()
        .map(|item| match item {
            ValueRef::Document(DocRef::Raw(doc)) => Entry::parse(doc),
            other => Err(crate::args::wrong_type("applyOps", other.bson_type(), "object")),
        })
        .collect()
}

impl<'a> Entry<'a> {
    fn parse(doc: RawDoc<'a>) -> Result<Self> {
        let kind = match doc.get("op") {
            None => bail!(NoSuchKey, "Missing expected field \"op\""),
            Some(ValueRef::String(op)) => match op {
                "i" => Kind::Insert,
                "u" => Kind::Update,
                "d" => Kind::Delete,
                "c" => Kind::Command,
                "n" => Kind::Nothing,
                "" => bail!(IllegalOperation, "the 'op' field of an operation must not be empty"),
                other => bail!(BadValue, "applyOps does not know the operation type '{other}'"),
            },
            Some(other) => return Err(crate::args::wrong_type("op", other.bson_type(), "string")),
        };
        let ns = match doc.get("ns") {
            _ if kind == Kind::Nothing => Namespace::new("", ""),
            Some(ValueRef::String(ns)) if !ns.is_empty() => Namespace::parse(ns),
            _ => bail!(IllegalOperation, "the 'ns' field of an operation must be a namespace"),
        };
        let object = |name: &str| match doc.get(name) {
            Some(ValueRef::Document(DocRef::Raw(o))) => Ok(Some(o)),
            None | Some(ValueRef::Null | ValueRef::Undefined) => Ok(None),
            Some(other) => Err(crate::args::wrong_type(name, other.bson_type(), "object")),
        };
        let Some(o) = object("o")? else {
            bail!(40414, "BSON field 'OplogEntry.o' is missing but a required field");
        };
        let uuid = match doc.get("ui") {
            None | Some(ValueRef::Null | ValueRef::Undefined) => None,
            Some(ValueRef::Binary { subtype: 4, bytes }) => match bytes.try_into() {
                Ok(uuid) => Some(uuid),
                Err(_) => bail!(InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype"),
            },
            Some(other) => return Err(crate::args::wrong_type("ui", other.bson_type(), "binData")),
        };
        let entry = Self {
            kind,
            ns,
            uuid,
            o,
            o2: object("o2")?,
            upsert: doc.get("b").is_some_and(|b| b.truthy()),
        };
        if matches!(kind, Kind::Insert | Kind::Update | Kind::Delete) {
            write::check_document_namespace(&entry.ns)?;
            entry.id()?;
        }
        Ok(entry)
    }

    /// The `_id` of the document that it changes.
    fn id(&self) -> Result<ValueRef<'a>> {
        let of = if self.kind == Kind::Update {
            self.o2.unwrap_or(self.o)
        } else {
            self.o
        };
        match of.get("_id") {
            Some(id) => Ok(id),
            None => bail!(NoSuchKey, "the operation on {} has no _id", self.ns),
        }
    }

    fn is_document_change(&self) -> bool {
        self.kind != Kind::Command
    }
}

fn apply(
    context: &Context<'_>,
    entries: &[Entry<'_>],
    options: Options,
    progress: &mut Progress,
    outcome: &mut Outcome,
) -> Result<()> {
    let (op, _) = context.operation(None)?;
    if options.atomic && entries.iter().all(Entry::is_document_change) {
        let changes = || entries.iter().filter(|entry| entry.kind != Kind::Nothing);
        let result = context.atomically(progress, |ws| {
            changes().try_for_each(|entry| {
                context.interrupt.check()?;
                entry.write(context, ws, &op, options)
            })
        });
        outcome.results.extend(changes().map(|_| result.is_ok()));
        if result.is_ok() {
            outcome.applied += i32::try_from(changes().count()).unwrap_or(i32::MAX);
        }
        return outcome.tell(result);
    }
    for entry in entries {
        context.interrupt.check()?;
        let result = match entry.kind {
            Kind::Nothing => continue,
            Kind::Command => entry.run(context, options, progress),
            _ => context.atomically(progress, |ws| entry.write(context, ws, &op, options)),
        };
        outcome.note(result)?;
    }
    Ok(())
}

impl Entry<'_> {
    /// Changes the document.
    fn write(&self, context: &Context<'_>, ws: &mut WriteSet, op: &OpContext, options: Options) -> Result<()> {
        let found = match &self.uuid {
            Some(uuid) => ws.catalog().by_uuid(uuid),
            None => ws.catalog().get(&self.ns),
        };
        let Some(collection) = found.cloned() else {
            bail!(
                NamespaceNotFound,
                "Failed to apply operation due to missing collection ({})",
                self.ns
            );
        };
        write::check_writable(&collection)?;
        let found = point::by_id(ws, &collection, self.id()?)?;
        // A bucket is checked as it is brought into its stored form; the validator is for the form that clients see.
        let validator = match collection.buckets() {
            Some(_) => None,
            None => Validator::of(context, &collection, options.bypass_validation)?,
        };
        let origin = context.origin(&collection.ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        match (self.kind, found) {
            (Kind::Delete, Some((record, old))) => writer.delete(&record, old.document(), None)?,
            (Kind::Delete, None) => {}
            (kind, Some((record, old))) => {
                let before = old.document();
                let new = match kind {
                    Kind::Update => self.changed(before, &writer.collection, op)?,
                    _ => self.whole(&writer.collection, op)?,
                };
                if new.as_bytes() == before.as_bytes() {
                    return Ok(());
                }
                if let Some(validator) = &validator {
                    validator.check_update(before, new.as_raw(), op)?;
                }
                let changed = Changed {
                    doc: new,
                    diff: None,
                    touched: &Touched::All,
                };
                writer.update(&record, before, changed, None)?;
            }
            (Kind::Update, None) if !self.upsert || self.is_change() => bail!(
                UnknownError,
                "Failed to apply update due to missing _id: {:?}",
                self.id()?
            ),
            (_, None) => {
                let new = self.whole(&writer.collection, op)?;
                if let Some(validator) = &validator {
                    validator.check(new.as_raw(), op)?;
                }
                writer.insert(new, None)?;
            }
        }
        context.observe_keys(&writer);
        Ok(())
    }

    /// `o` of an update says what changes, and is not the new version.
    fn is_change(&self) -> bool {
        self.o.iter().next().is_some_and(|(name, _)| name.starts_with('$'))
    }

    /// The document that `o` is, as the collection stores it.
    fn whole(&self, collection: &Collection, op: &OpContext) -> Result<RawDocBuf> {
        match collection.buckets() {
            Some(series) => from_client(self.o, series),
            None => prepare::for_insert(self.o, op, false),
        }
    }

    /// The new version of a document.
    fn changed(&self, before: RawDoc<'_>, collection: &Collection, op: &OpContext) -> Result<RawDocBuf> {
        if !self.is_change() {
            return self.whole(collection, op);
        }
        let Some(series) = collection.buckets() else {
            return self.changed_by(before, op);
        };
        // A log of MongoDB's adds measurements to the form of a bucket that has them one by one.
        let changed = match self.adds_measurements() {
            true => {
                let public = Bucket::decode(before, series)?.to_public(before)?.to_raw();
                self.changed_by(public.as_raw(), op)?
            }
            false => self.changed_by(before, op)?,
        };
        from_client(changed.as_raw(), series)
    }

    /// The diff changes something inside of a bucket's columns, which only the form with single measurements has.
    fn adds_measurements(&self) -> bool {
        fn inside<'d>(doc: RawDoc<'d>, name: &str) -> Option<RawDoc<'d>> {
            match doc.get(name) {
                Some(ValueRef::Document(DocRef::Raw(inner))) => Some(inner),
                _ => None,
            }
        }
        let data = inside(self.o, "diff").and_then(|diff| inside(diff, "sdata"));
        data.is_some_and(|data| data.iter().any(|(name, _)| name.starts_with('s')))
    }

    /// `before` with the change that `o` is.
    fn changed_by(&self, before: RawDoc<'_>, op: &OpContext) -> Result<RawDocBuf> {
        if self.o.get("diff").is_some() {
            return diff::apply(before, self.o);
        }
        // Logs of versions before 4.4 have modifiers, with or without a version.
        let mut modifiers = self.o.as_doc().to_document();
        modifiers.remove("$v");
        let update = Update::parse(
            ValueRef::Document(modifiers.as_ref()),
            UpdateOptions::default(),
            &mut Scope::new(),
        )?;
        Ok(match update.apply(before, None, op)? {
            Applied::NoChange => before.to_buf(),
            Applied::Changed(changed) => changed.doc,
        })
    }

    /// Runs the command.
    fn run(&self, context: &Context<'_>, options: Options, progress: &mut Progress) -> Result<()> {
        let Some((name, value)) = self.o.iter().next() else {
            bail!(FailedToParse, "the command of an operation on {} is empty", self.ns);
        };
        if self.ns.coll != "$cmd" {
            bail!(BadValue, "invalid namespace of a command: {}", self.ns);
        }
        let db = self.ns.db.as_str();
        let whole = || self.o.as_doc().to_document();
        match name {
            "applyOps" => {
                let inner = entries(value)?;
                apply(context, &inner, options, progress, &mut Outcome::default())
            }
            "create" => match self.uuid {
                Some(uuid) => create::with_uuid(context, db, self.o, uuid, progress),
                None => run_command(context, db, whole()),
            },
            "drop" => run_command(context, db, doc! { "drop": value }),
            "dropDatabase" => run_command(context, db, doc! { "dropDatabase": 1 }),
            "collMod" | "convertToCapped" => run_command(context, db, whole()),
            "dropIndexes" | "deleteIndexes" | "dropIndex" | "deleteIndex" => {
                let index = self.o.get("index").unwrap_or(ValueRef::Missing);
                run_command(context, db, doc! { "dropIndexes": value, "index": index })
            }
            "renameCollection" => {
                let to = self.o.get("to").unwrap_or(ValueRef::Missing);
                // The log has the UUID of what was dropped.
                let drop_target = self.o.get("dropTarget").is_some_and(|target| target.truthy());
                let command = doc! { "renameCollection": value, "to": to, "dropTarget": drop_target };
                run_command(context, ADMIN, command)
            }
            "createIndexes" => {
                let spec = self.o.as_doc().iter().skip(1);
                let spec: Document = spec.map(|(name, value)| (name.into(), value.to_value())).collect();
                run_command(
                    context,
                    db,
                    doc! { "createIndexes": value, "indexes": vec![Value::from(spec)] },
                )
            }
            "commitIndexBuild" => {
                let indexes = self.o.get("indexes").unwrap_or(ValueRef::Missing);
                run_command(context, db, doc! { "createIndexes": value, "indexes": indexes })
            }
            // The index is there once its build is committed.
            "startIndexBuild" | "abortIndexBuild" => Ok(()),
            other => bail!(BadValue, "applyOps does not run the command '{other}'"),
        }
    }
}

/// Runs a command of the log as if a client had sent it.
fn run_command(context: &Context<'_>, db: &str, mut command: Document) -> Result<()> {
    names::check_database(db)?;
    command.remove("$db");
    command.push("$db", db);
    let mut conn = Connection::new(context.service, "");
    let outcome = context.service.run(&mut conn, Request::new(command.to_raw().as_raw()));
    let reply = RawDocBuf::validate(outcome.reply.get(outcome.reply_at..).unwrap_or_default())?;
    let reply = reply.as_raw();
    if reply.get("ok").is_some_and(|ok| ok.truthy()) {
        return Ok(());
    }
    let code = reply.get("code").and_then(nestor_model::number::safe_i64).unwrap_or(0);
    let code = ErrorCode::location(i32::try_from(code).unwrap_or(0));
    let message = reply.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default();
    Err(Error::new(code, message.to_owned()))
}
