//! Index entries of written documents.
//!
//! In a unique index two documents with one key meet at one entry, so that first-writer-wins on keys also
//! catches duplicates that are written at the same time.

use super::Writer;
use crate::index_writer::{IndexWriter, duplicate_key};
use crate::keys;
use nestor_model::statement::{effort, note, work};
use nestor_model::{DocRef, Result, ValueRef};
use nestor_query::keys::MultikeyPaths;
use nestor_query::update::Touched;
use nestor_storage::{Bytes, View};

/// Units of work of an entry: a document with large arrays has a hundred thousand of them.
const ENTRY: usize = 4;

impl Writer<'_> {
    /// Adds the entries of a new document. Error 11000 when a unique index has one of its keys.
    pub(super) fn add_entries(&mut self, doc: DocRef<'_>, record: &Bytes) -> Result<()> {
        let indexes = self.indexes.clone();
        for writer in indexes.iter() {
            self.add_entries_of(writer, doc, record)?;
        }
        Ok(())
    }

    /// Adds the entries of a document to one index.
    pub fn add_entries_of(&mut self, writer: &IndexWriter, doc: DocRef<'_>, record: &Bytes) -> Result<()> {
        if writer.is_id {
            let id = doc.get("_id").unwrap_or(ValueRef::Null);
            return keys::with_id_key(id, writer.encoder.collation.as_ref(), |key, type_bits| {
                self.put_entry(writer, key, type_bits, record, doc)
            });
        }
        let (entries, multikey) = writer.entries(doc, self.op)?;
        for (key, type_bits) in &entries {
            self.put_entry(writer, key, type_bits, record, doc)?;
        }
        self.note_multikey(writer, &multikey)
    }

    /// Removes the entries of a document.
    pub(super) fn remove_entries(&mut self, doc: DocRef<'_>, record: &Bytes) -> Result<()> {
        let indexes = self.indexes.clone();
        for writer in indexes.iter() {
            if writer.is_id {
                let id = doc.get("_id").unwrap_or(ValueRef::Null);
                let collation = writer.encoder.collation.as_ref();
                keys::with_id_key(id, collation, |key, _| self.delete_entry(writer, key, record));
                continue;
            }
            let (entries, _) = writer.entries(doc, self.op)?;
            for key in entries.keys() {
                self.delete_entry(writer, key, record);
            }
        }
        Ok(())
    }

    /// Replaces the entries that differ between two versions of a document with the same `_id`. Indexes that
    /// `touched` does not reach are not looked at.
    pub(super) fn change_entries(
        &mut self,
        old: DocRef<'_>,
        new: DocRef<'_>,
        record: &Bytes,
        touched: &Touched,
    ) -> Result<()> {
        let indexes = self.indexes.clone();
        for writer in indexes.iter() {
            if !writer.is_touched_by(touched) {
                continue;
            }
            let (before, _) = writer.entries(old, self.op)?;
            let (after, multikey) = writer.entries(new, self.op)?;
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                self.delete_entry(writer, key, record);
            }
            for (key, type_bits) in &after {
                // The same key with other type bits (1 became 1.0) is written anew.
                if before.get(key) != Some(type_bits) {
                    self.put_entry(writer, key, type_bits, record, new)?;
                }
            }
            self.note_multikey(writer, &multikey)?;
        }
        Ok(())
    }

    /// Puts an entry. Error 11000 when another record has its key in an index that refuses that.
    pub(super) fn put_entry(
        &mut self,
        writer: &IndexWriter,
        key: &[u8],
        type_bits: &[u8],
        record: &Bytes,
        doc: DocRef<'_>,
    ) -> Result<()> {
        effort::made();
        work(ENTRY)?;
        let tree = writer.index.tree;
        let (entry_key, value) = writer.encoder.format.entry(key, type_bits, record);
        if writer.index.unique {
            if let Some(there) = self.ws.get(tree, &entry_key)? {
                if writer.encoder.format.split(&entry_key, &there)?.record != record.as_slice() {
                    self.ws.note_taken(tree, entry_key);
                    return Err(duplicate_key(&self.collection, writer, key, doc));
                }
            }
        }
        if writer.index.prepare_unique && self.has_other(writer, key, record)? {
            return Err(duplicate_key(&self.collection, writer, key, doc));
        }
        self.ws.put(tree, entry_key, value);
        self.keys_inserted += 1;
        Ok(())
    }

    /// Whether an entry of another record has this key, in an index that is not unique.
    fn has_other(&self, writer: &IndexWriter, key: &[u8], record: &Bytes) -> Result<bool> {
        let mut cursor = self.ws.cursor(writer.index.tree);
        let mut more = cursor.seek(key)?;
        while more && cursor.key().starts_with(key) {
            work(ENTRY)?;
            let entry = writer.encoder.format.split(cursor.key(), cursor.value()?)?;
            if entry.key != key {
                break;
            }
            if entry.record != record.as_slice() {
                return Ok(true);
            }
            more = cursor.next()?;
        }
        Ok(false)
    }

    pub(super) fn delete_entry(&mut self, writer: &IndexWriter, key: &[u8], record: &Bytes) {
        effort::made();
        note(ENTRY);
        let (entry_key, _) = writer.encoder.format.entry(key, &[], record);
        self.ws.delete(writer.index.tree, entry_key);
        self.keys_deleted += 1;
    }

    /// Records in the catalog that paths ran through arrays; does nothing when that is known.
    fn note_multikey(&mut self, writer: &IndexWriter, found: &MultikeyPaths) -> Result<()> {
        if found.is_multikey() {
            self.ws
                .set_multikey(self.collection.id, writer.index.id, &found.components)?;
        }
        Ok(())
    }
}
