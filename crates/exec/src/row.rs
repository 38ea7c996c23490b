//! What operators pass up.

use nestor_model::{DocRef, Document, RawDocBuf, RawWriter};
use nestor_query::env::DocMeta;
use nestor_storage::Bytes;

/// A document on its way: as stored, as other bytes, or computed.
#[derive(Clone, Debug)]
pub enum RowDoc {
    /// The bytes of a stored record, untouched.
    Stored(Bytes),
    /// Other bytes.
    Raw(RawDocBuf),
    /// Computed.
    Owned(Document),
}

impl RowDoc {
    /// The view.
    pub fn as_doc(&self) -> DocRef<'_> {
        match self {
            Self::Stored(bytes) => bytes.document().as_doc(),
            Self::Raw(raw) => raw.as_raw().as_doc(),
            Self::Owned(doc) => doc.as_ref(),
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
        }
    }

    /// The document as bytes.
    pub fn to_raw(&self) -> RawDocBuf {
        match self {
            Self::Stored(bytes) => bytes.document().to_buf(),
            Self::Raw(raw) => raw.clone(),
            Self::Owned(doc) => doc.to_raw(),
        }
    }
}

/// What operators pass up: a document with where it came from and what was attached to it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The document.
    pub doc: RowDoc,
    /// Key of the record it was read from; `None` once it is no stored document any more.
    pub record: Option<Bytes>,
    /// Metadata such as a text score; rare, so it costs a pointer.
    pub meta: Option<Box<DocMeta>>,
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
        Self {
            doc: RowDoc::Owned(doc),
            record: None,
            meta: None,
        }
    }

    /// The document's view.
    pub fn as_doc(&self) -> DocRef<'_> {
        self.doc.as_doc()
    }
}
