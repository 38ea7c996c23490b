//! Replacing a document by a newer version of itself.

use super::Writer;
use super::oplog::{Image, Origin, Retryable, Statements};
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, Result, ValueRef, raw};
use nestor_query::update::Touched;
use nestor_storage::Bytes;

/// A change, for index upkeep and the oplog.
pub struct Changed<'c> {
    /// The new version.
    pub doc: RawDocBuf,
    /// `o` of the oplog entry: a `$v: 2` diff, or `None` for the whole new version.
    pub diff: Option<RawDoc<'c>>,
    /// Paths that may have changed.
    pub touched: &'c Touched,
}

impl Writer<'_> {
    /// Replaces `old`, the record at `record`, by its new version. The caller has made sure that `_id` is the same.
    ///
    /// Errors: 11000, those of making keys, `BSONObjectTooLarge`, and 15 when it is nested too deep.
    pub fn update(
        &mut self,
        record: &Bytes,
        old: RawDoc<'_>,
        changed: Changed<'_>,
        statement: Option<Retryable>,
    ) -> Result<()> {
        self.update_by(record, old, changed, statement.into())
    }

    /// As [`Writer::update`], for what several statements change together.
    pub fn update_by(
        &mut self,
        record: &Bytes,
        old: RawDoc<'_>,
        changed: Changed<'_>,
        statements: Statements<'_>,
    ) -> Result<()> {
        let new = changed.doc.as_raw();
        if new.len() > raw::DOCUMENT_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::BSONObjectTooLarge,
                format!(
                    "Resulting document after update is larger than {}",
                    raw::DOCUMENT_BYTES_MAX
                ),
            ));
        }
        if new.is_deeper_than(raw::STORED_DEPTH_MAX) {
            return Err(nestor_query::update::too_deep());
        }
        self.change_entries(old.as_doc(), new.as_doc(), record, changed.touched)?;
        let grown = new.len() as i64 - old.len() as i64;
        if let Some(origin) = &self.origin {
            let id = old.get("_id").unwrap_or(ValueRef::Null);
            for (image, version) in [(Image::Before, old), (Image::After, new)] {
                if let Some(statement) = statements.returning(image) {
                    origin.log_image(self.ws, &self.collection, version, statement, self.op.now_ms)?;
                }
            }
            let entry = origin.update(
                &self.collection,
                changed.diff.unwrap_or(new),
                id,
                statements,
                self.op.now_ms,
            );
            origin.log_with(self.ws, entry, Origin::image(&self.collection, old))?;
        }
        self.ws
            .put_document(self.collection.records, record.clone(), changed.doc);
        if grown != 0 {
            self.ws.add_count(self.collection.id, 0, grown);
        }
        Ok(())
    }
}
