//! Deleting a document.

use super::Writer;
use nestor_model::{RawDoc, Result, ValueRef};
use nestor_storage::Bytes;

impl Writer<'_> {
    /// Deletes `old`, the record at `record`.
    pub fn delete(&mut self, record: &Bytes, old: RawDoc<'_>, stmt_id: Option<i32>) -> Result<()> {
        self.remove_entries(old.as_doc(), record)?;
        if let Some(origin) = &self.origin {
            let id = old.get("_id").unwrap_or(ValueRef::Null);
            let entry = origin.delete(&self.collection, id, stmt_id, self.op.now_ms);
            origin.log(self.ws, entry)?;
        }
        self.ws.delete(self.collection.records, record.clone());
        self.ws.add_count(self.collection.id, -1, -(old.len() as i64));
        Ok(())
    }
}
