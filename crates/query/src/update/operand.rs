//! Values as bytes, ready to be copied into a document.

use nestor_model::{RawDocBuf, RawWriter, ValueRef};
use std::ops::Range;

/// A value encoded once: a document with one field of empty name, so that type byte and value bytes can
/// be copied into any document without encoding them again.
///
/// ```text
/// int32 length | type byte | 0x00 (empty name) | value bytes | 0x00
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    doc: RawDocBuf,
    depth: usize,
}

const KIND_AT: usize = 4;
const VALUE_AT: usize = 6;

impl Operand {
    /// Encodes `value`. `Missing` must not come here.
    pub fn new<'a>(value: impl Into<ValueRef<'a>>) -> Self {
        let value = value.into();
        debug_assert!(!value.is_missing(), "an operand is a value");
        let mut writer = RawWriter::new();
        writer.append("", value);
        Self {
            doc: writer.into_doc(),
            depth: depth_of(value),
        }
    }

    /// The value.
    pub fn value(&self) -> ValueRef<'_> {
        self.doc.as_raw().get("").unwrap_or(ValueRef::Null)
    }

    /// The BSON type byte.
    pub fn kind(&self) -> u8 {
        self.doc.as_bytes()[KIND_AT]
    }

    /// The value's bytes.
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.doc.as_bytes();
        &bytes[VALUE_AT..bytes.len() - 1]
    }

    /// Levels of nesting inside.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The value as it is written into a document.
    pub fn encoded(&self) -> Encoded<'_> {
        Encoded {
            kind: self.kind(),
            depth: self.depth,
            bytes: Bytes::Borrowed(self.bytes()),
        }
    }
}

/// Bytes that are borrowed or part of a buffer made for them.
#[derive(Clone, Debug)]
pub(crate) enum Bytes<'u> {
    Borrowed(&'u [u8]),
    Owned(Vec<u8>, Range<usize>),
    /// Numbers and dates: no allocation.
    Small([u8; 16], u8),
}

impl Bytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Owned(bytes, range) => &bytes[range.clone()],
            Bytes::Small(bytes, len) => &bytes[..usize::from(*len)],
        }
    }

    pub fn len(&self) -> usize {
        self.as_slice().len()
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        let all = 0..bytes.len();
        Bytes::Owned(bytes, all)
    }
}

/// A value on its way into a document.
#[derive(Clone, Debug)]
pub(crate) struct Encoded<'u> {
    /// BSON type byte.
    pub kind: u8,
    /// Levels of nesting inside: 0 for a scalar, 1 for `{}` and `{a: 1}`.
    pub depth: usize,
    /// Value bytes, without type byte and name.
    pub bytes: Bytes<'u>,
}

impl Encoded<'_> {
    /// Encodes a computed value.
    pub fn new<'a>(value: impl Into<ValueRef<'a>>) -> Self {
        let value = value.into();
        let kind = value.bson_type() as u8;
        let small = |from: &[u8]| {
            let mut bytes = [0; 16];
            bytes[..from.len()].copy_from_slice(from);
            Bytes::Small(bytes, from.len() as u8)
        };
        let (depth, bytes) = match value {
            ValueRef::Int32(v) => (0, small(&v.to_le_bytes())),
            ValueRef::Int64(v) | ValueRef::DateTime(v) => (0, small(&v.to_le_bytes())),
            ValueRef::Double(v) => (0, small(&v.to_le_bytes())),
            ValueRef::Timestamp(v) => (0, small(&v.to_u64().to_le_bytes())),
            ValueRef::Decimal128(v) => (0, small(&v.to_bytes())),
            ValueRef::Null => (0, small(&[])),
            _ => {
                let mut writer = RawWriter::new();
                writer.append("", value);
                let bytes = writer.finish();
                let range = VALUE_AT..bytes.len() - 1;
                (depth_of(value), Bytes::Owned(bytes, range))
            }
        };
        Encoded { kind, depth, bytes }
    }

    /// A document or array whose whole bytes are given.
    pub fn container(kind: u8, depth: usize, bytes: Vec<u8>) -> Self {
        Encoded {
            kind,
            depth,
            bytes: bytes.into(),
        }
    }

    pub const NULL: Encoded<'static> = Encoded {
        kind: 0x0A,
        depth: 0,
        bytes: Bytes::Borrowed(&[]),
    };
}

/// Levels of nesting in a value: 0 for scalars.
pub(crate) fn depth_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(doc) => 1 + doc.iter().map(|(_, v)| depth_of(v)).max().unwrap_or(0),
        ValueRef::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        ValueRef::CodeWithScope { scope, .. } => 1 + scope.iter().map(|(_, v)| depth_of(v)).max().unwrap_or(0),
        _ => 0,
    }
}

/// Appends type byte, name and value bytes.
pub(crate) fn push_element(out: &mut Vec<u8>, kind: u8, name: &str, value: &[u8]) {
    out.push(kind);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(value);
}

/// Opens a document at the end of `out`; [`close`] ends it.
pub(crate) fn open(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Closes the document opened at `start`.
pub(crate) fn close(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// An array index as a field name.
pub(crate) fn index_name(index: usize) -> nestor_model::Str {
    let mut digits = [0u8; 20];
    let mut from = digits.len();
    let mut rest = index;
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[from..]).unwrap_or_default().into()
}
