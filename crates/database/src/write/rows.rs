//! Writes of documents that somebody else has found or made, all in one commit: those of SQL's statements.
//!
//! The commands' statements find their documents by filters ([`super::update`], [`super::delete`]); an SQL statement joins, computes and
//! finds by itself, in the state of the write set, and hands over record keys and documents. What a write has to go through is
//! the same: validator, indexes, limits of capped collections, the oplog.

use super::prepare;
use super::{Progress, check_capped, check_document_namespace, check_writable};
use crate::masking;
use crate::statement::Statement;
use crate::write::validator::Validator;
use nestor_exec::write::{Changed, Writer, with_retry_within};
use nestor_model::{Error, ErrorCode, Namespace, RawDoc, RawDocBuf, Result, Value, bail};
use nestor_query::env::OpContext;
use nestor_query::update::{Applied, Update};
use nestor_storage::{Bytes, Collection, Index, StorageError, View as _, WriteSet, keys};
use std::sync::Arc;

/// Keeps a record as it is until the transaction ends: whoever changes or deletes it meanwhile conflicts with this write set, as if it had been
/// written, and so does who holds it, unless both do so `in_common`.
///
/// Errors: those of storage.
pub fn hold(ws: &mut WriteSet, collection: &Collection, record: &Bytes, in_common: bool) -> Result<()> {
    if ws.get(collection.records, record)?.is_some() {
        ws.require_collection(collection.id);
        ws.hold(collection.records, record.clone(), !in_common);
    }
    Ok(())
}

/// Holds that a collection has, or has no more, a document with these values at these paths: `alone` for who takes it away, in common for those
/// who rely on it. Who writes the document otherwise is in nobody's way.
pub fn hold_reference(ws: &mut WriteSet, collection: &Collection, (paths, values): (&[String], &[Value]), alone: bool) {
    let mut parts: Vec<(&String, &Value)> = paths.iter().zip(values).collect();
    parts.sort_by_key(|(path, _)| *path);
    let mut name = Vec::new();
    for (path, value) in parts {
        keys::encode_into(path.as_str(), false, &mut name);
        keys::encode_into(value, false, &mut name);
    }
    ws.require_collection(collection.id);
    ws.hold_name(collection.records, name, alone);
}

/// Holds something of a collection that has a name and values alone until the commit: who else holds the same waits, or conflicts.
pub fn hold_name(ws: &mut WriteSet, collection: &Collection, name: &str, values: &[Value]) {
    let mut whole = Vec::new();
    keys::encode_into(name, false, &mut whole);
    for value in values {
        keys::encode_into(value, false, &mut whole);
    }
    ws.require_collection(collection.id);
    ws.hold_name(collection.records, whole, true);
}

/// Keeps others from writing a key of an index until the commit, if they hold it as well: a key that no entry has is deleted, which all of
/// them write.
pub fn hold_key(ws: &mut WriteSet, collection: &Collection, index: &Index, values: &[Value]) {
    // Entries begin with the type of a value, which is never the greatest byte.
    let mut key = vec![0xFF];
    for value in values {
        keys::encode_into(value, false, &mut key);
    }
    ws.require_collection(collection.id);
    ws.delete(index.tree, key);
}

impl Statement<'_> {
    /// Runs `work`, which holds rows in the write set it is given: until the end of the transaction, or, outside of transactions, just to wait until nobody
    /// else holds them. It begins again after conflicts, as [`Statement::atomically`] does.
    ///
    /// Errors: those of `work`, 107 for transactions that wait for each other, those of the interrupt.
    pub fn holding<T>(&self, mut work: impl FnMut(&mut WriteSet) -> Result<T>) -> Result<T> {
        if self.txn.borrow().is_some() {
            return self.atomically(&mut Progress::default(), work);
        }
        let engine = &self.database.engine;
        with_retry_within(&self.interrupt, self.lock_timeout.get(), |obstacle| {
            let mut ws = engine.begin_transaction(engine.snapshot());
            let out = work(&mut ws)?;
            obstacle.claim(engine, &mut ws)?;
            Ok(out)
        })
    }

    /// Reserves the rows that a statement holds so far; false when somebody else has one of them.
    ///
    /// Errors: 112 when one of them was written since the state that was read.
    pub fn claim_held(&self, ws: &mut WriteSet) -> Result<bool> {
        match self.database.engine.claim(ws) {
            Err(StorageError::Reserved(_)) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }
}

/// Writes to one collection by records.
pub struct RowWriter<'w, 's> {
    statement: &'w Statement<'s>,
    writer: Writer<'w>,
    validator: Option<Validator<'s>>,
}

impl<'w, 's> RowWriter<'w, 's> {
    /// A writer to the collection at `ns`.
    ///
    /// Errors: 26 when there is none, 166 for views, 263 for capped collections in transactions, 73 for those that nobody writes to.
    pub fn open(statement: &'w Statement<'s>, ws: &'w mut WriteSet, ns: &Namespace, op: &'w OpContext) -> Result<Self> {
        Self::open_as(statement, ws, (ns, false), op)
    }

    /// The same, for documents that a validator keeps everybody else from writing.
    ///
    /// Errors: those of [`RowWriter::open`].
    pub fn open_beyond(
        statement: &'w Statement<'s>,
        ws: &'w mut WriteSet,
        ns: &Namespace,
        op: &'w OpContext,
    ) -> Result<Self> {
        Self::open_as(statement, ws, (ns, true), op)
    }

    fn open_as(
        statement: &'w Statement<'s>,
        ws: &'w mut WriteSet,
        (ns, bypasses): (&Namespace, bool),
        op: &'w OpContext,
    ) -> Result<Self> {
        check_document_namespace(ns)?;
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            bail!(NamespaceNotFound, "ns does not exist: {ns}");
        };
        check_writable(&collection)?;
        check_capped(statement, &collection)?;
        let validator = Validator::of(statement, &collection, bypasses)?;
        let origin = statement.origin(&ns.db);
        Ok(Self {
            statement,
            writer: Writer::new(ws, collection, op, origin)?,
            validator,
        })
    }

    /// Goes on with another collection of the same database.
    ///
    /// Errors: those of [`RowWriter::open`].
    pub fn turn_to(&mut self, ns: &Namespace) -> Result<()> {
        if self.writer.collection.ns == *ns {
            return Ok(());
        }
        let Some(collection) = self.writer.ws.catalog().get(ns).cloned() else {
            bail!(NamespaceNotFound, "ns does not exist: {ns}");
        };
        check_writable(&collection)?;
        check_capped(self.statement, &collection)?;
        self.validator = Validator::of(self.statement, &collection, false)?;
        self.writer.turn_to(collection)
    }

    /// Sees that no other transaction is about to give up a record which is in the way of one that is to be written.
    ///
    /// Errors: 112 where one may be.
    pub fn check_stays(&mut self, record: Bytes) -> Result<()> {
        let records = self.writer.collection.records;
        self.writer.ws.note_taken(records, record);
        self.check_taken()
    }

    /// The same of the key that could not be put last.
    fn check_taken(&mut self) -> Result<()> {
        match self.statement.doubt(self.writer.ws) {
            None => Ok(()),
            doubt => {
                self.statement.note_obstacle(doubt);
                Err(StorageError::WriteConflict.into())
            }
        }
    }

    /// The statement that writes.
    pub fn statement(&self) -> &'w Statement<'s> {
        self.statement
    }

    /// The collection.
    pub fn collection(&self) -> &Arc<Collection> {
        &self.writer.collection
    }

    /// The write set, to read what was written so far.
    pub fn view(&self) -> &WriteSet {
        self.writer.ws
    }

    /// Lends the write set to statements within this one ([`Statement::lend`]).
    ///
    /// Errors: those of [`Statement::lend`].
    pub fn lend<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.statement.lend(self.writer.ws, work)
    }

    /// The document of a record.
    pub fn get(&self, record: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.writer.ws.get(self.writer.collection.records, record)?)
    }

    /// Inserts a document; its record key, and the document as it is stored, with its `_id`.
    ///
    /// Errors: 11000, 121, those of making keys, and those of documents that cannot be stored.
    pub fn insert(&mut self, doc: RawDoc<'_>) -> Result<(Bytes, RawDocBuf)> {
        masking::check_insert(&self.writer.collection, self.writer.op)?;
        let doc = prepare::for_insert(doc, self.writer.op, true)?;
        if let Some(validator) = &self.validator {
            validator.check(doc.as_raw(), self.writer.op)?;
        }
        let record = self.writer.insert(doc.clone(), None)?;
        Ok((record, doc))
    }

    /// As [`RowWriter::insert`]; a duplicate key leaves no trace, and is handed back beside errors that end the statement.
    ///
    /// Errors: those of [`RowWriter::insert`] but 11000, 112 where the key may be given up by another transaction.
    pub fn try_insert(&mut self, doc: RawDoc<'_>) -> Result<std::result::Result<(Bytes, RawDocBuf), Error>> {
        let savepoint = self.writer.ws.savepoint();
        let result = self.insert(doc);
        match &result {
            Ok(_) => self.writer.ws.release(savepoint),
            Err(_) => self.writer.ws.rollback_to(savepoint),
        }
        match result {
            Err(error) if error.code() == ErrorCode::DuplicateKey => self.check_taken().map(|()| Err(error)),
            other => other.map(Ok),
        }
    }

    /// Changes the document of a record, which is `before`; the document after, which `check` sees before the validator does.
    ///
    /// Errors: those of the update and of `check`, 11000, 121, those of making keys.
    pub fn update(
        &mut self,
        record: &Bytes,
        before: &Bytes,
        update: &Update,
        check: &mut dyn FnMut(RawDoc<'_>) -> Result<()>,
    ) -> Result<RawDocBuf> {
        let before = before.document();
        let changed = match update.apply(before, None, self.writer.op)? {
            Applied::NoChange => return Ok(before.to_buf()),
            Applied::Changed(changed) => changed,
        };
        check(changed.doc.as_raw())?;
        if let Some(validator) = &self.validator {
            validator.check_update(before, changed.doc.as_raw(), self.writer.op)?;
        }
        if let Some(limits) = &self.writer.collection.options.capped {
            super::update::check_capped_size(limits, before.len(), changed.doc.as_bytes().len())?;
        }
        let new = changed.doc.clone();
        let changed = Changed {
            doc: changed.doc,
            diff: changed.diff.as_ref().map(RawDocBuf::as_raw),
            touched: update.touched(),
        };
        self.writer.update(record, before, changed, None)?;
        Ok(new)
    }

    /// Deletes a record, whose document is `before`.
    ///
    /// Errors: those of storage.
    pub fn delete(&mut self, record: &Bytes, before: &Bytes) -> Result<()> {
        self.writer.delete(record, before.document(), None)
    }

    /// Tells those who count what was done.
    pub fn finish(self) {
        self.statement.observe_keys(&self.writer);
    }
}
