//! Rows, which operators pass up.

use nestor_model::value::EMPTY_DOC;
use nestor_model::{DocRef, Document, RawDocBuf, RawWriter};
use nestor_model::{Result, Value};
use nestor_query::env::DocMeta;
use nestor_storage::keys::{self, Entry, EntryFormat};
use nestor_storage::{Bytes, Index};
use std::sync::Arc;

/// A document on its way: as stored, as other bytes, or computed.
#[derive(Clone, Debug)]
pub enum RowDoc {
    /// The bytes of a stored record, untouched.
    Stored(Bytes),
    /// Other bytes.
    Raw(RawDocBuf),
    /// Computed.
    Owned(Document),
    /// No document: an index entry, on its way to be fetched or to be all that is needed.
    Key(Box<KeyRow>),
    /// No document yet: the record is all that is known and is about to be fetched.
    Unread,
}

/// An index entry where it stands.
#[derive(Clone, Copy)]
pub struct EntryRow<'e> {
    /// The entry.
    pub entry: Entry<'e>,
    /// How the key is encoded.
    pub format: &'e Arc<EntryFormat>,
    /// The index.
    pub index: &'e Arc<Index>,
}

impl EntryRow<'_> {
    /// A copy of it.
    pub fn to_key_row(self) -> KeyRow {
        KeyRow {
            key: Bytes::copy_from(self.entry.key),
            type_bits: Bytes::copy_from(self.entry.type_bits),
            format: self.format.clone(),
            index: self.index.clone(),
        }
    }
}

/// An index entry.
#[derive(Clone, Debug)]
pub struct KeyRow {
    /// The encoded key.
    pub key: Bytes,
    /// The type bits, which restore its values exactly.
    pub type_bits: Bytes,
    /// How the key is encoded.
    pub format: Arc<EntryFormat>,
    /// The index.
    pub index: Arc<Index>,
}

impl KeyRow {
    /// The values of the key, one per part.
    pub fn values(&self) -> Result<Vec<Value>> {
        Ok(keys::decode(&self.key, &self.type_bits, &self.format.descending)?.0)
    }

    /// The document that has just these values at these paths. Only of use where no path ran through an array.
    pub fn as_nested_document(&self) -> Result<Document> {
        let mut out = Document::new();
        for ((name, _), value) in self.index.key_pattern.iter().zip(self.values()?) {
            insert(&mut out, name, value);
        }
        Ok(out)
    }
}

fn insert(doc: &mut Document, path: &str, value: Value) {
    match path.split_once('.') {
        None => doc.set(path, value),
        Some((head, rest)) => {
            let mut inner = match doc.remove(head) {
                Some(Value::Document(inner)) => inner,
                _ => Document::new(),
            };
            insert(&mut inner, rest, value);
            doc.push(head, inner);
        }
    }
}

impl RowDoc {
    /// The view.
    pub fn as_doc(&self) -> DocRef<'_> {
        match self {
            Self::Stored(bytes) => bytes.document().as_doc(),
            Self::Raw(raw) => raw.as_raw().as_doc(),
            Self::Owned(doc) => doc.as_ref(),
            Self::Key(_) | Self::Unread => EMPTY_DOC,
        }
    }

    /// Size of its bytes, if it is bytes already.
    pub fn byte_len(&self) -> Option<usize> {
        match self {
            Self::Stored(bytes) => Some(bytes.len()),
            Self::Raw(raw) => Some(raw.as_bytes().len()),
            Self::Owned(doc) => match doc.as_ref() {
                DocRef::Raw(raw) => Some(raw.len()),
                DocRef::Fields(_) => None,
            },
            Self::Key(entry) => Some(entry.key.len() + entry.type_bits.len()),
            Self::Unread => Some(0),
        }
    }

    /// Bytes it takes, estimated when it is not bytes already: what memory limits count.
    pub fn size(&self) -> usize {
        match self {
            Self::Owned(doc) => doc.weight(),
            _ => self.byte_len().unwrap_or(0),
        }
    }

    /// Appends it as element `index` of the array that is open in `writer`.
    pub fn append_to(&self, writer: &mut RawWriter, index: usize) {
        writer.append_index(index, self.as_doc());
    }

    /// An owned document.
    pub fn into_document(self) -> Document {
        match self {
            Self::Stored(bytes) => bytes.document().to_buf().into(),
            Self::Raw(raw) => raw.into(),
            Self::Owned(doc) => doc,
            Self::Key(_) | Self::Unread => Document::new(),
        }
    }

    /// The document as bytes.
    pub fn to_raw(&self) -> RawDocBuf {
        match self {
            Self::Stored(bytes) => bytes.document().to_buf(),
            Self::Raw(raw) => raw.clone(),
            Self::Owned(doc) => doc.to_raw(),
            Self::Key(_) | Self::Unread => Document::new().to_raw(),
        }
    }
}

/// The row that operators pass up: a document, the record that it came from and the metadata attached to it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The document.
    pub doc: RowDoc,
    /// Key of the record it was read from; `None` once it is no stored document any more.
    pub record: Option<Bytes>,
    /// Metadata such as a text score; rare, so it costs a pointer.
    pub meta: Option<Box<DocMeta>>,
}

impl From<RowDoc> for Row {
    fn from(doc: RowDoc) -> Self {
        Self {
            doc,
            record: None,
            meta: None,
        }
    }
}

impl From<Document> for Row {
    fn from(doc: Document) -> Self {
        RowDoc::Owned(doc).into()
    }
}

impl Row {
    /// A stored record.
    pub fn stored(record: Bytes, bytes: Bytes) -> Self {
        Self {
            doc: RowDoc::Stored(bytes),
            record: Some(record),
            meta: None,
        }
    }

    /// A computed document.
    pub fn computed(doc: Document) -> Self {
        doc.into()
    }

    /// The document's view.
    pub fn as_doc(&self) -> DocRef<'_> {
        self.doc.as_doc()
    }
}
