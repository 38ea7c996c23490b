//! Index entries of documents.
//!
//! In a unique index two documents with one key meet at one entry, so that first-writer-wins on keys also
//! catches duplicates that are written at the same time.

use super::Writer;
use super::wildcard::WildcardKeys;
use crate::keys::{self, KeyEncoder};
use nestor_model::{DocRef, Document, Error, ErrorCode, Path, Result, Value, ValueRef, doc};
use nestor_query::collation::{Collator, sort_key_text, stored};
use nestor_query::env::{OpContext, Scope};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::matcher::MatchExpr;
use nestor_query::update::Touched;
use nestor_storage::{Bytes, Collection, Index, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An index, ready to make keys.
pub struct IndexWriter {
    /// The index.
    pub index: Arc<Index>,
    /// How its keys are encoded.
    pub encoder: KeyEncoder,
    paths: KeyPaths,
    wildcard: Option<WildcardKeys>,
    partial: Option<MatchExpr>,
    is_id: bool,
    /// Not unique yet, but refuses what would keep it from becoming so (`prepareUnique`).
    prepare_unique: bool,
}

/// Entries of one document in one index: the encoded key and the type bits that restore its values.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

impl IndexWriter {
    /// The writers of all indexes of a collection.
    pub fn all(collection: &Collection) -> Result<Vec<Self>> {
        collection
            .indexes
            .iter()
            .map(|index| Self::new(collection, index))
            .collect()
    }

    /// A writer of one index.
    pub fn new(collection: &Collection, index: &Arc<Index>) -> Result<Self> {
        let encoder = KeyEncoder::new(collection, index)?;
        let paths = KeyPaths::new(index.key_pattern.iter().map(|(name, _)| Path::new(name)));
        let partial = match &index.partial_filter {
            Some(filter) => {
                let mut scope = Scope::new().with_collator(encoder.collation.clone());
                Some(MatchExpr::parse(filter.as_ref(), &mut scope)?)
            }
            None => None,
        };
        let projection = index.spec.as_raw().get("wildcardProjection");
        Ok(Self {
            wildcard: WildcardKeys::new(index.key_pattern.as_ref(), projection.and_then(ValueRef::as_document)),
            paths,
            encoder,
            partial,
            is_id: index.is_id(),
            prepare_unique: !index.unique && index.spec.as_raw().get("prepareUnique").is_some_and(ValueRef::truthy),
            index: index.clone(),
        })
    }

    /// The entries that `doc` has, and the paths that ran through arrays.
    ///
    /// Errors: 171 and others of making keys.
    pub fn entries(&self, doc: DocRef<'_>, op: &OpContext) -> Result<(Entries, MultikeyPaths)> {
        let mut entries = Entries::new();
        if let Some(partial) = &self.partial {
            if !partial.matches(doc, op)? {
                return Ok((entries, MultikeyPaths::default()));
            }
        }
        if let Some(wildcard) = &self.wildcard {
            let multikey = wildcard.for_each_key(doc, &self.encoder, &mut |key, type_bits| {
                entries.insert(key, type_bits);
            })?;
            return Ok((entries, multikey));
        }
        let sparse = self.index.sparse;
        let multikey = self.paths.for_each_key(doc, &mut |values: &[ValueRef<'_>]| {
            if !(sparse && values.iter().all(|v| v.is_missing())) {
                let (key, type_bits) = self.encoder.encode(values);
                entries.insert(key, type_bits);
            }
            Ok(())
        })?;
        if self.encoder.hashed.is_some() && multikey.is_multikey() {
            return Err(Error::location(
                16766,
                format!(
                    "hashed indexes do not currently support array values. Index: {}",
                    self.index.name
                ),
            ));
        }
        Ok((entries, multikey))
    }

    /// Whether two documents may not have the same key.
    pub fn refuses_duplicates(&self) -> bool {
        self.index.unique || self.prepare_unique
    }

    /// Whether a change of these paths can change the entries.
    fn is_touched_by(&self, touched: &Touched) -> bool {
        self.partial.is_some() || self.wildcard.is_some() || self.paths.paths().iter().any(|path| touched.affects(path))
    }
}

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
        let tree = writer.index.tree;
        let (entry_key, value) = writer.encoder.format.entry(key, type_bits, record);
        if writer.index.unique {
            if let Some(there) = self.ws.get(tree, &entry_key)? {
                if writer.encoder.format.split(&entry_key, &there)?.record != record.as_slice() {
                    return Err(duplicate_key(&self.collection, writer, key, doc));
                }
            }
        }
        if writer.prepare_unique && self.has_other(writer, key, record)? {
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

/// The error 11000 for a document that has `key` in an index where it is taken.
pub fn duplicate_key(collection: &Collection, writer: &IndexWriter, key: &[u8], doc: DocRef<'_>) -> Error {
    let mut values = Document::new();
    let mut found = false;
    // Makes the document's keys again to find the values of this one; they were made before, so it cannot fail.
    let _ = writer.paths.for_each_key(doc, &mut |row: &[ValueRef<'_>]| {
        if !found && writer.encoder.encode(row).0 == key {
            found = true;
            for ((name, _), value) in writer.index.key_pattern.iter().zip(row) {
                values.push(
                    name,
                    if value.is_missing() {
                        Value::Null
                    } else {
                        value.to_value()
                    },
                );
            }
        }
        Ok(())
    });
    let pattern = writer.index.key_pattern.clone();
    let collation = writer.encoder.collation.as_ref();
    duplicate(collection, &writer.index.name, pattern, values, collation)
}

/// The error 11000 of a clustered collection, whose `_id` is the record key.
pub(super) fn duplicate_id(collection: &Collection, id: ValueRef<'_>, collation: Option<&Collator>) -> Error {
    let (pattern, values) = (doc! { "_id": 1 }, doc! { "_id": id.to_value() });
    duplicate(collection, "_id_", pattern, values, collation)
}

/// With a collation it is sort keys that are the same, and that are shown.
fn duplicate(
    collection: &Collection,
    index: &str,
    pattern: Document,
    values: Document,
    collation: Option<&Collator>,
) -> Error {
    let spec = collation.map(|collator| collator.collation().to_document());
    let stored = collation.and_then(|collator| stored(ValueRef::Document(values.as_ref()), collator));
    let values = match stored.map(|stored| printed(stored.as_ref())) {
        Some(Value::Document(printed)) => printed,
        _ => values,
    };
    let under = match &spec {
        Some(spec) => format!(" collation: {}", crate::text::shell(spec.as_ref())),
        None => String::new(),
    };
    let message = format!(
        "E11000 duplicate key error collection: {} index: {index}{under} dup key: {}",
        collection.ns,
        crate::text::shell(values.as_ref())
    );
    let mut extra = doc! { "keyPattern": pattern, "keyValue": values };
    if let Some(spec) = spec {
        extra.push("collation", spec);
    }
    Error::new(ErrorCode::DuplicateKey, message).with_extra(extra)
}

/// A stored value with its sort keys in the form that is printed.
fn printed(stored: ValueRef<'_>) -> Value {
    match stored {
        ValueRef::String(text) => sort_key_text(text).as_str().into(),
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| (name.into(), printed(value)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) => items.iter().map(printed).collect::<Vec<_>>().into(),
        other => other.to_value(),
    }
}
