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
//! `ts` and `t`, the term, are written as zero here and set at commit.

use nestor_model::{Binary, Document, RawDoc, RawDocBuf, RawWriter, Result, Timestamp, Value, ValueRef};
use nestor_storage::{Collection, WriteSet};
use std::sync::{Arc, Mutex};

/// Which statement of a retryable write it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retryable {
    /// `stmtId`.
    pub stmt_id: i32,
    /// What the statement returns, for an image in the oplog.
    pub image: Image,
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

/// Who writes.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Session and transaction number of a retryable write: the `lsid` document (`{id, uid}`) and `txnNumber`.
    pub session: Option<(RawDocBuf, i64)>,
    /// Where the operations of a transaction are collected until it commits, in the short form that `applyOps`
    /// holds: `{op, ns, ui, o, o2}`.
    pub collect: Option<Arc<Mutex<Vec<RawDocBuf>>>>,
}

impl Origin {
    /// Puts an entry that this origin made where it belongs: into the write set, or to the transaction's operations.
    pub fn log(&self, ws: &mut WriteSet, entry: RawDocBuf) -> Result<()> {
        match &self.collect {
            Some(operations) => operations
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push(entry),
            None => ws.oplog(entry)?,
        }
        Ok(())
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

    fn end(&self, mut writer: RawWriter, statement: Option<Retryable>, now_ms: i64) -> RawDocBuf {
        if self.collect.is_some() {
            return writer.into_doc();
        }
        if let Some(statement) = statement.filter(|_| self.session.is_some()) {
            writer.append("stmtId", statement.stmt_id);
        }
        writer.append("ts", Timestamp::default());
        writer.append("t", 0i64);
        writer.append("v", 2i64);
        writer.append("wall", ValueRef::DateTime(now_ms));
        writer.into_doc()
    }

    fn target(writer: &mut RawWriter, collection: &Collection) {
        use std::fmt::Write as _;
        let mut ns = String::with_capacity(64);
        // Writing into a string cannot fail.
        let _ = write!(ns, "{}", collection.ns);
        writer.append("ns", ns.as_str());
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
        statement: Option<Retryable>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("i", doc.len() + 256);
        Self::target(&mut writer, collection);
        writer.append_raw("o", doc);
        writer.begin_document("o2");
        writer.append("_id", doc.get("_id").unwrap_or(ValueRef::Missing));
        writer.end();
        self.end(writer, statement, now_ms)
    }

    /// An update; `change` is the new version or a `$v: 2` diff.
    pub fn update(
        &self,
        collection: &Collection,
        change: RawDoc<'_>,
        id: ValueRef<'_>,
        statement: Option<Retryable>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("u", change.len() + 256);
        Self::target(&mut writer, collection);
        writer.append_raw("o", change);
        writer.begin_document("o2");
        writer.append("_id", id);
        writer.end();
        self.end(writer, statement, now_ms)
    }

    /// A delete.
    pub fn delete(
        &self,
        collection: &Collection,
        id: ValueRef<'_>,
        statement: Option<Retryable>,
        now_ms: i64,
    ) -> RawDocBuf {
        let mut writer = self.begin("d", 256);
        Self::target(&mut writer, collection);
        writer.begin_document("o");
        writer.append("_id", id);
        writer.end();
        self.end(writer, statement, now_ms)
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
        self.end(writer, None, now_ms)
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
        let entry = self.end(writer, Some(statement), now_ms);
        self.log(ws, entry)
    }

    /// An entry that changes nothing and only has a time.
    pub fn noop(&self, message: &str, now_ms: i64) -> RawDocBuf {
        let mut writer = self.begin("n", 128);
        writer.append("ns", "");
        writer.begin_document("o");
        writer.append("msg", message);
        writer.end();
        self.end(writer, None, now_ms)
    }
}
