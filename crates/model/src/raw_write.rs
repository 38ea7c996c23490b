//! Writing BSON bytes.

use crate::raw::RawDocBuf;
use crate::statement::note;
use crate::value::{ArrayRef, DocRef, ValueRef};
use crate::{Namespace, RawDoc};

/// Appends fields to a growing document; nested documents are opened and closed in place.
///
/// Legal order: any number of `append`/`begin_*`+`end` pairs, then [`RawWriter::finish`] with every
/// nested document closed. Inside an array the caller gives names too; [`RawWriter::append_index`] and
/// friends make them.
#[derive(Debug)]
pub struct RawWriter {
    bytes: Vec<u8>,
    /// Offsets of the length fields of the open documents, outermost first.
    open: Open,
}

/// Levels of open documents that need no memory of their own.
const SHALLOW: usize = 6;

/// A stack of offsets. Most documents are shallow, and some commands write several of them.
#[derive(Debug, Default)]
struct Open {
    levels: usize,
    first: [usize; SHALLOW],
    others: Vec<usize>,
}

impl Open {
    fn push(&mut self, offset: usize) {
        match self.first.get_mut(self.levels) {
            Some(place) => *place = offset,
            None => self.others.push(offset),
        }
        self.levels += 1;
    }

    fn pop(&mut self) -> Option<usize> {
        self.levels = self.levels.checked_sub(1)?;
        match self.first.get(self.levels) {
            Some(offset) => Some(*offset),
            None => self.others.pop(),
        }
    }

    /// The offset of the outermost document, if it is open.
    fn outermost(&self) -> Option<usize> {
        (self.levels > 0).then_some(self.first[0])
    }
}

impl Default for RawWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl RawWriter {
    /// An open, empty document.
    pub fn new() -> Self {
        Self::with_capacity(64)
    }

    /// An open, empty document with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self::onto(Vec::with_capacity(bytes))
    }

    /// Opens a document at the end of `bytes`, which may already hold other things (a message header).
    pub fn onto(mut bytes: Vec<u8>) -> Self {
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        let mut open = Open::default();
        open.push(start);
        Self { bytes, open }
    }

    /// Bytes written so far, whatever stood before included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when nothing was written: never, as the length field is.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a field. `Missing` is left out. A zero byte in `name` ends the name there, so callers
    /// refuse such names before.
    pub fn append<'a>(&mut self, name: &str, value: impl Into<ValueRef<'a>>) {
        self.element(name.as_bytes(), value.into());
    }

    /// Appends an array element at `index`.
    pub fn append_index<'a>(&mut self, index: usize, value: impl Into<ValueRef<'a>>) {
        self.element(IndexName::new(index).as_bytes(), value.into());
    }

    /// Appends a namespace as the string `db.collection`, or `db` if it names only a database.
    pub fn append_namespace(&mut self, name: &str, ns: &Namespace) {
        self.header(0x02, name.as_bytes());
        let parts = match ns.coll.is_empty() {
            true => [ns.db.as_str(), "", ""],
            false => [ns.db.as_str(), ".", ns.coll.as_str()],
        };
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        self.bytes.extend_from_slice(&(length as i32 + 1).to_le_bytes());
        for part in parts {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.bytes.push(0);
    }

    /// Appends an element's bytes (type, name, value) as they are.
    pub fn append_element_bytes(&mut self, element: &[u8]) {
        self.bytes.extend_from_slice(element);
    }

    /// Appends a document that is already bytes.
    pub fn append_raw(&mut self, name: &str, doc: RawDoc<'_>) {
        self.header(0x03, name.as_bytes());
        self.bytes.extend_from_slice(doc.as_bytes());
    }

    /// Opens a nested document.
    pub fn begin_document(&mut self, name: &str) {
        self.header(0x03, name.as_bytes());
        self.begin();
    }

    /// Opens a nested array.
    pub fn begin_array(&mut self, name: &str) {
        self.header(0x04, name.as_bytes());
        self.begin();
    }

    /// Opens a document as array element `index`.
    pub fn begin_document_at(&mut self, index: usize) {
        self.header(0x03, IndexName::new(index).as_bytes());
        self.begin();
    }

    /// Opens an array as array element `index`.
    pub fn begin_array_at(&mut self, index: usize) {
        self.header(0x04, IndexName::new(index).as_bytes());
        self.begin();
    }

    /// Closes the innermost open document or array.
    pub fn end(&mut self) {
        self.bytes.push(0);
        let start = self.open.pop().expect("end() pairs with a begin");
        let length = (self.bytes.len() - start) as i32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Closes the outermost document and returns all bytes (whatever stood before included).
    pub fn finish(mut self) -> Vec<u8> {
        debug_assert_eq!(self.open.levels, 1, "every nested document was closed");
        self.end();
        self.bytes
    }

    /// Gives up the document and returns what stood before it.
    pub fn abandon(mut self) -> Vec<u8> {
        let start = self.open.outermost().unwrap_or(0);
        self.bytes.truncate(start);
        self.bytes
    }

    /// Closes the outermost document, which must be all there is.
    pub fn into_doc(self) -> RawDocBuf {
        debug_assert_eq!(
            self.open.outermost(),
            Some(0),
            "the writer started with nothing before it"
        );
        RawDocBuf::from_writer(self.finish())
    }

    fn begin(&mut self) {
        self.open.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn element(&mut self, name: &[u8], value: ValueRef<'_>) {
        if matches!(value, ValueRef::Missing) {
            return;
        }
        self.header(value.bson_type() as u8, name);
        self.value(value);
    }

    fn header(&mut self, kind: u8, name: &[u8]) {
        self.bytes.push(kind);
        let upto = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        self.bytes.extend_from_slice(&name[..upto]);
        self.bytes.push(0);
    }

    fn string(&mut self, text: &str) {
        self.bytes.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    fn doc(&mut self, doc: DocRef<'_>) {
        match doc {
            DocRef::Raw(raw) => self.bytes.extend_from_slice(raw.as_bytes()),
            DocRef::Fields(fields) => {
                self.begin();
                for (name, value) in fields {
                    self.append(name, value.as_ref());
                }
                self.end();
            }
        }
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Missing | ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => {}
            ValueRef::Double(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::String(v) | ValueRef::Code(v) | ValueRef::Symbol(v) => self.string(v),
            ValueRef::Document(doc) => self.doc(doc),
            ValueRef::Array(ArrayRef::Raw(raw)) => self.bytes.extend_from_slice(raw.as_bytes()),
            ValueRef::Array(ArrayRef::Items(items)) => {
                note(items.len() / 4);
                self.begin();
                for (i, item) in items.iter().enumerate() {
                    // An array has no holes: a missing item is written as null.
                    let item = if matches!(item, crate::Value::Missing) {
                        ValueRef::Null
                    } else {
                        item.as_ref()
                    };
                    self.append_index(i, item);
                }
                self.end();
            }
            ValueRef::Binary { subtype, bytes } => {
                self.bytes.extend_from_slice(&(bytes.len() as i32).to_le_bytes());
                self.bytes.push(subtype);
                self.bytes.extend_from_slice(bytes);
            }
            ValueRef::ObjectId(id) => self.bytes.extend_from_slice(&id.0),
            ValueRef::Bool(v) => self.bytes.push(u8::from(v)),
            ValueRef::DateTime(v) | ValueRef::Int64(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Regex { pattern, options } => {
                for text in [pattern, options] {
                    self.bytes.extend(text.bytes().take_while(|b| *b != 0));
                    self.bytes.push(0);
                }
            }
            ValueRef::DbPointer { namespace, id } => {
                self.string(namespace);
                self.bytes.extend_from_slice(&id.0);
            }
            ValueRef::CodeWithScope { code, scope } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&[0; 4]);
                self.string(code);
                self.doc(scope);
                let length = (self.bytes.len() - start) as i32;
                self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }
            ValueRef::Int32(v) => self.bytes.extend_from_slice(&v.to_le_bytes()),
            ValueRef::Timestamp(v) => self.bytes.extend_from_slice(&v.to_u64().to_le_bytes()),
            ValueRef::Decimal128(v) => self.bytes.extend_from_slice(&v.to_bytes()),
        }
    }
}

/// An array index as text, without allocating.
struct IndexName {
    digits: [u8; 20],
    from: usize,
}

impl IndexName {
    fn new(mut index: usize) -> Self {
        let mut digits = [b'0'; 20];
        let mut from = digits.len();
        loop {
            from -= 1;
            digits[from] = b'0' + (index % 10) as u8;
            index /= 10;
            if index == 0 {
                break;
            }
        }
        Self { digits, from }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.digits[self.from..]
    }
}
