//! Deleting a document.

use super::Writer;
use super::oplog::{Image, Origin, Retryable, Statements};
use nestor_model::{RawDoc, Result, ValueRef};
use nestor_storage::Bytes;

impl Writer<'_> {
    /// Deletes `old`, the record at `record`.
    pub fn delete(&mut self, record: &Bytes, old: RawDoc<'_>, statement: Option<Retryable>) -> Result<()> {
        self.remove_entries(old.as_doc(), record)?;
        if let Some(origin) = &self.origin {
            let id = old.get("_id").unwrap_or(ValueRef::Null);
            let statements = Statements::from(statement);
            if let Some(statement) = statements.returning(Image::Before) {
                origin.log_image(self.ws, &self.collection, old, statement, self.op.now_ms)?;
            }
            let entry = origin.delete(&self.collection, id, statements, self.op.now_ms);
            origin.log_with(self.ws, entry, Origin::image(&self.collection, old))?;
        }
        self.ws.delete(self.collection.records, record.clone());
        self.ws.add_count(self.collection.id, -1, -(old.len() as i64));
        Ok(())
    }
}
