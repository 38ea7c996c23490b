//! From documents to the entries of one index.

use crate::keys::KeyEncoder;
use nestor_model::statement::{BYTES_PER_UNIT, Scope, charge, effort, work};
use nestor_model::{DocRef, Document, Error, ErrorCode, Namespace, Result, Value, ValueRef, doc};
use nestor_planner::{IndexInfo, kinds};
use nestor_query::collation::{Collator, sort_key_text, stored};
use nestor_query::env::OpContext;
use nestor_query::keys::MultikeyPaths;
use nestor_query::update::Touched;
use nestor_storage::{Collection, Index};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An index, ready to make keys.
pub struct IndexWriter {
    /// The index.
    pub index: Arc<Index>,
    /// The same as plans see it, with its kind, which makes the keys.
    pub info: Arc<IndexInfo>,
    /// How its keys are encoded.
    pub encoder: KeyEncoder,
    /// It is the index on `_id`.
    pub is_id: bool,
}

/// Entries of one document in one index: the encoded key and the type bits that restore its values.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The memory that an entry takes beside its bytes.
const ENTRY_BYTES: usize = size_of::<(Vec<u8>, Vec<u8>)>();

impl IndexWriter {
    /// A writer of an index of `collection`, built or being built.
    ///
    /// Errors: those of [`kinds::open`].
    pub fn new(collection: &Collection, index: &Arc<Index>) -> Result<Self> {
        let info = Arc::new(kinds::open(index.id.0, &index.spec, &index.multikey)?);
        Ok(Self {
            encoder: KeyEncoder::new(index.entry_format(collection), &info),
            is_id: index.is_id(),
            index: index.clone(),
            info,
        })
    }

    /// The entries that `doc` has, and the paths that ran through arrays.
    ///
    /// Errors: 171 and others of making keys; 146 when they take too much memory.
    pub fn entries(&self, doc: DocRef<'_>, op: &OpContext) -> Result<(Entries, MultikeyPaths)> {
        let mut entries = Entries::new();
        // A large document has as many keys as it has values, and those of a wildcard index have paths.
        let _memory = Scope::begin();
        if let Some(partial) = &self.info.partial {
            if !partial.matches(doc, op)? {
                return Ok((entries, MultikeyPaths::default()));
            }
        }
        let multikey = self.info.kind.for_each_key(doc, &mut |values| {
            effort::made();
            let (key, type_bits) = self.encoder.encode(values);
            work(1 + key.len() / BYTES_PER_UNIT)?;
            charge(ENTRY_BYTES + key.len() + type_bits.len())?;
            entries.insert(key, type_bits);
            Ok(())
        })?;
        Ok((entries, multikey))
    }

    /// Whether two documents may not have the same key.
    pub fn refuses_duplicates(&self) -> bool {
        self.index.unique || self.index.prepare_unique
    }

    /// Whether a change of these paths can change the entries.
    pub fn is_touched_by(&self, touched: &Touched) -> bool {
        self.info.partial.is_some() || self.info.kind.is_touched_by(touched)
    }
}

/// The error 11000 for a document that has `key` in an index where it is taken.
pub fn duplicate_key(collection: &Collection, writer: &IndexWriter, key: &[u8], doc: DocRef<'_>) -> Error {
    let mut values = Document::new();
    // Makes the document's keys again to find the values of this one; they were made before, so it cannot fail.
    let _ = writer.info.kind.for_each_key(doc, &mut |row: &[ValueRef<'_>]| {
        if values.is_empty() && writer.encoder.encode(row).0 == key {
            values = row
                .iter()
                .zip(&writer.info.parts)
                .map(|(value, part)| {
                    let value = if value.is_missing() { ValueRef::Null } else { *value };
                    (part.path.as_str().into(), value.to_value())
                })
                .collect();
        }
        Ok(())
    });
    let pattern = writer.index.key_pattern.clone();
    let collation = writer.encoder.collation.as_ref();
    duplicate(&collection.ns, &writer.index.name, pattern, values, collation)
}

/// The error 11000 of a clustered collection, whose `_id` is the record key.
pub fn duplicate_id(collection: &Collection, id: ValueRef<'_>, collation: Option<&Collator>) -> Error {
    let (pattern, values) = (doc! { "_id": 1 }, doc! { "_id": id.to_value() });
    duplicate(&collection.ns, "_id_", pattern, values, collation)
}

/// The error 11000 for `values` that are in a unique index of `ns` already. With a collation it is sort keys that are the same,
/// and that are shown.
pub fn duplicate(
    ns: &Namespace,
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
    let shown = cut(ValueRef::Document(values.as_ref()));
    let shown = shown.as_document().map_or(values.as_ref(), Document::as_ref);
    let message = format!(
        "E11000 duplicate key error collection: {} index: {index}{under} dup key: {}",
        ns,
        crate::text::shell(shown)
    );
    let mut extra = doc! { "keyPattern": pattern, "keyValue": values };
    if let Some(spec) = spec {
        extra.push("collation", spec);
    }
    Error::new(ErrorCode::DuplicateKey, message).with_extra(extra)
}

/// Characters of a text that a message shows.
const SHOWN_MAX: usize = 150;

/// A value as messages show it: with the beginnings of long texts.
fn cut(value: ValueRef<'_>) -> Value {
    each_text(value, &|text| match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    })
}

/// A stored value with its sort keys in the form that is printed.
fn printed(stored: ValueRef<'_>) -> Value {
    each_text(stored, &|text| sort_key_text(text))
}

/// A value with other texts.
fn each_text(value: ValueRef<'_>, text: &dyn Fn(&str) -> String) -> Value {
    match value {
        ValueRef::String(own) => text(own).as_str().into(),
        ValueRef::Document(doc) => doc
            .iter()
            .map(|(name, value)| (name.into(), each_text(value, text)))
            .collect::<Document>()
            .into(),
        ValueRef::Array(items) => items
            .iter()
            .map(|item| each_text(item, text))
            .collect::<Vec<_>>()
            .into(),
        other => other.to_value(),
    }
}
