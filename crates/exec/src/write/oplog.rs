//! Oplog entries in MongoDB's format.
//!
//! ```text
//! {lsid, txnNumber, op, ns, ui, o, o2, stmtId, ts, t, v: 2, wall}
//! op  i insert   o the document            o2 {_id}
//!     u update   o new version, or {$v: 2, diff}   o2 {_id}
//!     d delete   o {_id}
//!     c command  o {create: ...}, {drop: ...}, ...   ns db.$cmd
//!     n nothing  o {msg}; before a retryable findAndModify, o the document that it returns
//! ```
//!
//! A findAndModify that is sent again returns what it returned before, after a restart too. So its oplog entry has the
//! document before it, in the same commit, in an entry of its own that changes nothing and has the same `lsid`, `txnNumber` and
//! `stmtId`. (MongoDB keeps these images in a collection and lets entries before version 5.0 refer to such entries of theirs.
//! Within the entry of the change, the image would make it larger than a document may be.)
//!
//! A transaction is one such entry, `o: {applyOps: [operation, ...]}`, or a chain of them if it does not fit into one document: all but
//! the last have `partialTxn: true` in `o`, the last the `count` of all operations, and each names the one before it in `prevOpTime`.
//!
//! Of a collection that keeps images for change streams the document before a change goes with the entry, and not into it
//! ([`WriteSet::oplog_with`]).
//!
//! An entry of several statements of a retryable write, as that of a time-series bucket which several measurements went into, has an array
//! as `stmtId`.
//!
//! `ts` and `t`, the term, are written as zero here and set at commit.

use nestor_model::{Binary, Document, Namespace, RawDoc, RawDocBuf, RawWriter, Result, Timestamp, Value, ValueRef};
use nestor_storage::{Collection, View, WriteSet};
use std::sync::{Arc, Mutex};

/// Which statement of a retryable write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retryable {
    /// `stmtId`.
    pub stmt_id: i32,
    /// The version that the statement returns, for an image in the oplog.
    pub image: Image,
}

/// Which statements of a retryable write an entry is of.
#[derive(Clone, Copy, Debug)]
pub enum Statements<'s> {
    /// None: it is no retryable write.
    None,
    /// One.
    One(Retryable),
    /// Those with these `stmtId`s, none of which returns a document.
    Several(&'s [i32]),
}

impl From<Option<Retryable>> for Statements<'_> {
    fn from(statement: Option<Retryable>) -> Self {
        statement.map_or(Self::None, Self::One)
    }
}

impl Statements<'_> {
    /// The statement that returns this version of the document.
    pub(super) fn returning(self, image: Image) -> Option<Retryable> {
        match self {
            Self::One(statement) if statement.image == image => Some(statement),
            _ => None,
        }
    }
}

/// Which version of a document a findAndModify returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// None.
    None,
    /// The one before.
    Before,
    /// The one after.
    After,
}

/// Bytes of operations in one `applyOps` entry, which may not be larger than a document.
const APPLY_OPS_BYTES_MAX: usize = 15 << 20;
/// The bytes that an array adds to an element at most: type, index and zero.
const ELEMENT_BYTES_MAX: usize = 1 + 10 + 1;
/// The bytes that most entries have beside the document.
const ENTRY_BYTES: usize = 256;
/// The bytes that an entry of an insert within a transaction has beside the document, about.
const SHORT_ENTRY_BYTES: usize = 128;

/// An operation of an open transaction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// An insert, whose entry is made at the commit: until then the document need not be there twice.
    Insert {
        /// Where.
        collection: Arc<Collection>,
        /// What.
        doc: RawDocBuf,
    },
    /// Any other.
    Entry {
        /// In the short form that `applyOps` holds: `{op, ns, ui, o, o2}`.
        entry: RawDocBuf,
        /// The document before it, if the collection keeps that.
        image: Option<RawDocBuf>,
    },
}

impl Operation {
    /// Whether the collection that was written to is there.
    pub fn is_in(&self, view: &dyn View) -> bool {
        let entry = match self {
            Self::Insert { collection, .. } => return view.catalog().by_id(collection.id).is_some(),
            Self::Entry { entry, .. } => entry.as_raw(),
        };
        let (Some(ns), Some(ValueRef::Binary { bytes, .. })) =
            (entry.get("ns").and_then(ValueRef::as_str), entry.get("ui"))
        else {
            return true;
        };
        let ns = Namespace::parse(ns);
        let is_it = |collection: &Arc<Collection>| collection.uuid.as_slice() == bytes;
        let named = view.catalog().get(&ns).is_some_and(is_it);
        named || view.catalog().collections().any(is_it)
    }

    /// Its entry, and the document before it.
    fn into_entry(self) -> (RawDocBuf, Option<RawDocBuf>) {
        match self {
            Self::Insert { collection, doc } => {
                let mut writer = RawWriter::with_capacity(doc.as_bytes().len() + ENTRY_BYTES);
                writer.append("op", "i");
                Origin::describe_insert(&mut writer, &collection, doc.as_raw());
                (writer.into_doc(), None)
            }
            Self::Entry { entry, image } => (entry, image),
        }
    }
}

/// The origin of a write.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Session and transaction number of a retryable write: the `lsid` document (`{id, uid}`) and `txnNumber`.
    pub session: Option<(RawDocBuf, i64)>,
    /// Where the operations of a transaction are collected until it commits.
    pub collect: Option<Arc<Mutex<Vec<Operation>>>>,
}

impl Origin {
    /// Puts an entry that this origin made where it belongs: into the write set, or to the transaction's operations.
    pub fn log(&self, ws: &mut WriteSet, entry: RawDocBuf) -> Result<()> {
        self.log_with(ws, entry, None)
    }

    /// As [`Origin::log`], with the document before the change.
    pub fn log_with(&self, ws: &mut WriteSet, entry: RawDocBuf, image: Option<RawDocBuf>) -> Result<()> {
        match &self.collect {
            Some(operations) => {
                let image_bytes = image.as_ref().map_or(0, |image| image.as_bytes().len());
                ws.expect_oplog(entry.as_bytes().len() + image_bytes + size_of::<Operation>())?;
                collect(operations, Operation::Entry { entry, image });
            }
            None => ws.oplog_with(entry, image.map(|image| (0, image)).into_iter().collect())?,
        }
        Ok(())
    }

    /// As [`Origin::log`], for an insert.
    pub fn log_insert(
        &self,
        ws: &mut WriteSet,
        collection: &Arc<Collection>,
        doc: &RawDocBuf,
        statements: Statements<'_>,
        now_ms: i64,
    ) -> Result<()> {
        let Some(operations) = &self.collect else {
            let entry = self.insert(collection, doc.as_raw(), statements, now_ms);
            return self.log(ws, entry);
        };
        ws.expect_oplog(doc.as_bytes().len() + SHORT_ENTRY_BYTES)?;
        let insert = Operation::Insert {
            collection: collection.clone(),
            doc: doc.clone(),
        };
        collect(operations, insert);
        Ok(())
    }

    /// Puts the operations that a transaction collected into its write set, as `applyOps`. The origin has the session, and collects
    /// nothing. Returns the size of the operations in bytes.
    pub fn log_transaction(&self, ws: &mut WriteSet, operations: Vec<Operation>, now_ms: i64) -> Result<usize> {
        let count = operations.len() as i64;
        let mut rest = operations.into_iter().map(Operation::into_entry).peekable();
        let (mut is_first, mut bytes_of_all) = (true, 0);
        while rest.peek().is_some() {
            let mut writer = self.begin("c", 256);
            writer.append("ns", "admin.$cmd");
            writer.begin_document("o");
            writer.begin_array("applyOps");
            let (mut number, mut bytes, mut images) = (0, 0, Vec::new());
            let size = |operation: &(RawDocBuf, _)| operation.0.as_bytes().len() + ELEMENT_BYTES_MAX;
            while let Some(operation) = rest.next_if(|next| number == 0 || bytes + size(next) <= APPLY_OPS_BYTES_MAX) {
                bytes += size(&operation);
                let (entry, image) = operation;
                bytes_of_all += entry.as_bytes().len();
                writer.append_index(number, entry.as_raw());
                images.extend(image.map(|image| (number as u32, image)));
                number += 1;
            }
            writer.end();
            let is_last = rest.peek().is_none();
            let is_alone = is_first && is_last;
            if !is_last {
                writer.append("partialTxn", true);
            } else if !is_alone {
                writer.append("count", count);
            }
            writer.end();
            if !is_alone {
                writer.begin_document("prevOpTime");
                writer.append("ts", Timestamp::default());
                writer.append("t", -1i64);
                writer.end();
            }
            let entry = self.end(writer, Statements::None, now_ms);
            match is_first {
                true => ws.oplog_with(entry, images)?,
                false => ws.oplog_next(entry, images)?,
            }
            is_first = false;
        }
        Ok(bytes_of_all)
    }

    /// A document that is about to change, if its collection keeps such for change streams.
    pub fn image(collection: &Collection, before: RawDoc<'_>) -> Option<RawDocBuf> {
        collection.options.pre_and_post_images.then(|| before.to_buf())
    }

    fn begin(&self, op: &str, capacity: usize) -> RawWriter {
        let mut writer = RawWriter::with_capacity(capacity);
        if let (Some((lsid, txn_number)), None) = (&self.session, &self.collect) {
            writer.append_raw("lsid", lsid.as_raw());
            writer.append("txnNumber", *txn_number);
        }
        writer.append("op", op);
        writer
    }

    fn end(&self, mut writer: RawWriter, statements: Statements<'_>, now_ms: i64) -> RawDocBuf {
        if self.collect.is_some() {
            return writer.into_doc();
        }
        match statements {
            Statements::None => {}
            _ if self.session.is_none() => {}
            Statements::One(Retryable { stmt_id, .. }) | Statements::Several(&[stmt_id]) => {
                writer.append("stmtId", stmt_id);
            }
            Statements::Several(stmt_ids) => {
                writer.begin_array("stmtId");
                for (index, stmt_id) in stmt_ids.iter().enumerate() {
                    writer.append_index(index, *stmt_id);
                }
                writer.end();
            }
        }
        writer.append("ts", Timestamp::default());
        writer.append("t", 0i64);
        writer.append("v", 2i64);
        writer.append("wall", ValueRef::DateTime(now_ms));
        writer.into_doc()
    }

    fn target(writer: &mut RawWriter, collection: &Collection) {
        writer.append_namespace("ns", &collection.ns);
        writer.append(
            "ui",
            ValueRef::Binary {
                subtype: 4,
                bytes: &collection.uuid,
            },
        );
    }

    /// An insert.
    pub fn insert(
        &self,
        collection: &Collection,
        doc: RawDoc<'_>,
        statements: Statements<'_>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("i", doc.len() + ENTRY_BYTES);
        Self::describe_insert(&mut writer, collection, doc);
        self.end(writer, statements, now_ms)
    }

    fn describe_insert(writer: &mut RawWriter, collection: &Collection, doc: RawDoc<'_>) {
        Self::target(writer, collection);
        writer.append_raw("o", doc);
        writer.begin_document("o2");
        writer.append("_id", doc.get("_id").unwrap_or(ValueRef::Missing));
        writer.end();
    }

    /// An update; `change` is the new version or a `$v: 2` diff.
    pub fn update(
        &self,
        collection: &Collection,
        change: RawDoc<'_>,
        id: ValueRef<'_>,
        statements: Statements<'_>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("u", change.len() + 256);
        Self::target(&mut writer, collection);
        writer.append_raw("o", change);
        writer.begin_document("o2");
        writer.append("_id", id);
        writer.end();
        self.end(writer, statements, now_ms)
    }

    /// A delete.
    pub fn delete(
        &self,
        collection: &Collection,
        id: ValueRef<'_>,
        statements: Statements<'_>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("d", 256);
        Self::target(&mut writer, collection);
        writer.begin_document("o");
        writer.append("_id", id);
        writer.end();
        self.end(writer, statements, now_ms)
    }

    /// A command on a database, such as `create`; `uuid` is the collection's.
    pub fn command(&self, db: &str, uuid: Option<[u8; 16]>, command: &Document, now_ms: i64) -> RawDocBuf {
        self.command_with(db, uuid, command, None, now_ms)
    }

    /// A command with `o2`, what it replaced.
    pub fn command_with(
        &self,
        db: &str,
        uuid: Option<[u8; 16]>,
        command: &Document,
        before: Option<&Document>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("c", 256);
        writer.append("ns", format!("{db}.$cmd").as_str());
        if let Some(uuid) = uuid {
            let ui = Value::Binary(Binary {
                subtype: 4,
                bytes: uuid.as_slice().into(),
            });
            writer.append("ui", &ui);
        }
        writer.append("o", command);
        if let Some(before) = before {
            writer.append("o2", before);
        }
        self.end(writer, Statements::None, now_ms)
    }

    /// Puts the image of a findAndModify where its change follows; nothing within transactions, whose commands are not sent
    /// again, and without a session.
    pub fn log_image(
        &self,
        ws: &mut WriteSet,
        collection: &Collection,
        image: RawDoc<'_>,
        statement: Retryable,
        now_ms: i64,
    ) -> Result<()> {
        if self.session.is_none() || self.collect.is_some() {
            return Ok(());
        }
        let mut writer = self.begin("n", image.len() + 256);
        Self::target(&mut writer, collection);
        writer.append_raw("o", image);
        let entry = self.end(writer, Statements::One(statement), now_ms);
        self.log(ws, entry)
    }

    /// An entry that changes nothing and only has a time.
    pub fn noop(&self, message: &str, now_ms: i64) -> RawDocBuf {
        let mut writer = self.begin("n", 128);
        writer.append("ns", "");
        writer.begin_document("o");
        writer.append("msg", message);
        writer.end();
        self.end(writer, Statements::None, now_ms)
    }
}

fn collect(operations: &Mutex<Vec<Operation>>, operation: Operation) {
    let mut operations = operations.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    operations.push(operation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{Changed, Writer};
    use nestor_model::{CollectionOptions, Namespace, doc};
    use nestor_query::OpContext;
    use nestor_query::update::Touched;
    use nestor_storage::log::{Change, Interest, Kinds, LogPosition, LogStep, Scope, Upto};
    use nestor_storage::{Engine, EngineOptions};

    fn engine(images: bool) -> (Engine, Arc<Collection>) {
        let engine = Engine::ephemeral(EngineOptions::at_time(100));
        let mut ws = engine.begin();
        let options = doc! { "changeStreamPreAndPostImages": doc! { "enabled": images } };
        let options = CollectionOptions::parse(options).expect("options");
        let ns = Namespace::new("d", "c");
        let made = ws.create_collection(&ns, [1; 16], options).expect("free");
        engine.commit(ws).expect("committed");
        (engine, made)
    }

    fn changes(engine: &Engine) -> Vec<Change> {
        let interest = Interest::new(Scope::Everything, Kinds::CHANGES, Upto::Accepted).with_images();
        let mut reader = engine.read_log(LogPosition::default(), interest);
        let mut found = Vec::new();
        loop {
            match reader.next().expect("the log can be read") {
                LogStep::Change(change) => found.push(*change),
                LogStep::Passed => {}
                LogStep::End => return found,
            }
        }
    }

    #[test]
    fn images_are_kept_where_the_collection_says_so() {
        for (images, in_transaction) in [(true, false), (true, true), (false, false), (false, true)] {
            let (engine, collection) = engine(images);
            let collected: Arc<Mutex<Vec<Operation>>> = Arc::default();
            let collect = in_transaction.then(|| collected.clone());
            let session = Some((doc! { "id": 1 }.to_raw(), 1));
            let origin = Origin {
                session: session.clone(),
                collect,
            };
            let op = OpContext::default();
            let mut ws = engine.begin();
            let [one, two] = [1, 2].map(|n| doc! { "_id": 1, "n": n }.to_raw());
            let mut writer = Writer::new(&mut ws, collection.clone(), &op, Some(origin)).expect("prepared");
            let key = writer.insert(one.clone(), None).expect("inserted");
            let changed = Changed {
                doc: two.clone(),
                diff: None,
                touched: &Touched::All,
            };
            writer.update(&key, one.as_raw(), changed, None).expect("updated");
            writer.delete(&key, two.as_raw(), None).expect("deleted");
            if in_transaction {
                let origin = Origin { session, collect: None };
                let operations = std::mem::take(&mut *collected.lock().expect("alone"));
                origin.log_transaction(&mut ws, operations, 7).expect("logged");
            }
            engine.commit(ws).expect("committed");
            let found: Vec<_> = changes(&engine).into_iter().map(|change| change.before).collect();
            let expected = if images {
                [None, Some(one), Some(two)]
            } else {
                [None, None, None]
            };
            assert_eq!(found, expected, "images: {images}, in a transaction: {in_transaction}");
        }
    }

    #[test]
    fn a_transaction_that_fits_into_no_document_is_a_chain() {
        let (engine, collection) = engine(true);
        let session = Some((doc! { "id": 1 }.to_raw(), 3));
        let origin = Origin { session, collect: None };
        let short = Origin {
            collect: Some(Arc::default()),
            ..origin.clone()
        };
        let long = "x".repeat(1 << 20);
        let operation = |id: i32| {
            let doc = doc! { "_id": id, "text": long.as_str() }.to_raw();
            Operation::Entry {
                entry: short.insert(&collection, doc.as_raw(), Statements::None, 0),
                image: (id % 7 == 0).then(|| doc! { "_id": id }.to_raw()),
            }
        };
        let mut ws = engine.begin();
        origin
            .log_transaction(&mut ws, (0..40).map(operation).collect(), 7)
            .expect("logged");
        let commit = engine.commit(ws).expect("committed");
        let mut cursor = engine.oplog_cursor(Timestamp::default());
        let mut entries = Vec::new();
        while let Some(entry) = cursor.next().expect("read") {
            assert!(entry.as_raw().len() <= nestor_model::raw::DOCUMENT_BYTES_MAX);
            let Some(ValueRef::Document(o)) = entry.as_raw().get("o") else {
                panic!("no o")
            };
            let count = match o.get("count") {
                Some(ValueRef::Int64(count)) => count,
                _ => 0,
            };
            entries.push((o.get("partialTxn").is_some(), count));
        }
        assert_eq!(entries, [(true, 0), (true, 0), (false, 40)]);
        let changes = changes(&engine);
        assert_eq!(changes.len(), 40);
        for (at, change) in changes.iter().enumerate() {
            let (optime, index) = (commit.optime, at as u32);
            assert_eq!(change.position, LogPosition { optime, index });
            assert_eq!(change.before.is_some(), at % 7 == 0);
            assert_eq!(change.transaction.as_ref().map(|t| t.number), Some(3));
        }
    }
}
