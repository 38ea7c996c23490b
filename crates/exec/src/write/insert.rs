//! Inserting a document.

use super::oplog::{Image, Retryable, Statements};
use super::{Writer, capped};
use crate::index_writer::duplicate_id;
use crate::keys;
use nestor_model::{RawDocBuf, Result, ValueRef, bail, raw};
use nestor_storage::{Bytes, View, record};

impl Writer<'_> {
    /// Inserts a document that has its `_id` first already. Returns its record key.
    ///
    /// Errors: 11000 for a duplicate in a unique index, 171 and others of making keys, 10334 when it does not
    /// fit a capped collection, 15 when it is nested too deep.
    pub fn insert(&mut self, doc: RawDocBuf, statement: Option<Retryable>) -> Result<Bytes> {
        self.insert_by(doc, statement.into())
    }

    /// As [`Writer::insert`], for what several statements insert together.
    pub fn insert_by(&mut self, doc: RawDocBuf, statements: Statements<'_>) -> Result<Bytes> {
        if doc.as_raw().is_deeper_than(raw::STORED_DEPTH_MAX) {
            let levels = raw::STORED_DEPTH_MAX + 1;
            bail!(
                Overflow,
                "cannot insert document because it exceeds {levels} levels of nesting"
            );
        }
        let id = doc.as_raw().get("_id").unwrap_or(ValueRef::Null);
        let record = if self.collection.is_clustered() {
            let key = keys::id_key(id, self.id_collation.as_ref());
            if self.ws.get(self.collection.records, &key)?.is_some() {
                self.ws.note_taken(self.collection.records, key);
                return Err(duplicate_id(&self.collection, id, self.id_collation.as_ref()));
            }
            key
        } else {
            Bytes::from(record::record_key(self.collection.allocate_record_id()))
        };
        self.add_entries(doc.as_raw().as_doc(), &record)?;
        let bytes = doc.as_bytes().len() as i64;
        if let Some(origin) = &self.origin {
            if let Some(statement) = statements.returning(Image::After) {
                origin.log_image(self.ws, &self.collection, doc.as_raw(), statement, self.op.now_ms)?;
            }
            origin.log_insert(self.ws, &self.collection, &doc, statements, self.op.now_ms)?;
        }
        self.ws.put_document(self.collection.records, record.clone(), doc);
        self.ws.add_count(self.collection.id, 1, bytes);
        if self.collection.is_capped() {
            capped::trim(self)?;
        }
        Ok(record)
    }
}
