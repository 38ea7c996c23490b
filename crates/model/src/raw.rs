//! BSON as bytes: validation once at the edge, then cheap reading.
//!
//! ```text
//! document  int32 length (all bytes, itself included) | element* | 0x00
//! element   type byte | name bytes | 0x00 | value bytes
//! ```
//!
//! [`RawDoc`] is a promise: its bytes passed [`RawDoc::validate`] (structure, lengths, UTF-8 of strings
//! and names, nesting depth). Reading relies on it and checks nothing twice. This is one of the few
//! modules with `unsafe`: strings of validated bytes become `&str` without another UTF-8 check.

#![allow(unsafe_code)]

use crate::value::{ArrayRef, DocRef, ValueRef};
use crate::{Decimal128, ObjectId, Timestamp};
use std::fmt;
use std::sync::Arc;

/// Most levels of documents and arrays below the top one: MongoDB's limit of 200.
pub const DEPTH_MAX: usize = 200;
/// Most levels below the top one of a document that is stored: MongoDB's limit of 180 with the top one. The
/// difference to [`DEPTH_MAX`] is for what such a document is wrapped in: commands, oplog entries, change events.
pub const STORED_DEPTH_MAX: usize = 179;
/// Largest document a client may store, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why bytes are not BSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the offending byte from the start of the outermost document.
    pub offset: usize,
    /// What is wrong.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.reason, self.offset)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for crate::Error {
    fn from(m: Malformed) -> Self {
        if m.reason == TOO_DEEP {
            return crate::Error::new(
                crate::ErrorCode::Overflow,
                format!("exceeded maximum nested object depth: {DEPTH_MAX}"),
            );
        }
        crate::Error::new(crate::ErrorCode::InvalidBSON, format!("invalid BSON: {m}"))
    }
}

/// Levels that operators may put around documents of users in temporary files.
const SPILL_LEVELS: isize = 8;

const TOO_DEEP: &str = "nested too deep";

/// A validated BSON document (or array) as bytes. Copying it copies a slice.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawDoc<'a>(&'a [u8]);

/// The empty document.
pub const EMPTY: RawDoc<'static> = RawDoc(&[5, 0, 0, 0, 0]);

/// A level of nesting takes a type byte, the zero of an empty name, a length and a zero at least.
pub(crate) const LEVEL_BYTES: usize = 7;

impl<'a> RawDoc<'a> {
    /// Checks that `bytes` are exactly one document and keeps them. Below the top there may be [`DEPTH_MAX`] levels.
    pub fn validate(bytes: &'a [u8]) -> Result<Self, Malformed> {
        check_document(bytes, 0, bytes.len(), 1)?;
        Ok(Self(bytes))
    }

    /// As [`RawDoc::validate`], with a few levels more, which operators wrap around documents of users in temporary
    /// files.
    pub fn validate_spilled(bytes: &'a [u8]) -> Result<Self, Malformed> {
        check_document(bytes, 0, bytes.len(), 1 - SPILL_LEVELS)?;
        Ok(Self(bytes))
    }

    /// Checks a document at the start of `bytes` and returns it; what follows is not looked at.
    pub fn validate_prefix(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let length = read_len(bytes, 0, bytes.len())?;
        if length < 5 || length > bytes.len() {
            return Err(Malformed {
                offset: 0,
                reason: "document length out of range",
            });
        }
        Self::validate(&bytes[..length])
    }

    /// Takes bytes that were validated before.
    ///
    /// # Safety
    /// `bytes` must be a whole document that [`RawDoc::validate`] accepted (for instance read back from
    /// storage under a checksum).
    pub unsafe fn from_validated(bytes: &'a [u8]) -> Self {
        debug_assert!(
            RawDoc::validate(bytes).is_ok(),
            "callers pass only bytes that were validated"
        );
        Self(bytes)
    }

    /// The bytes, length prefix included.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Size in bytes.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// True when there are no fields.
    pub fn is_empty(self) -> bool {
        self.0.len() <= 5
    }

    /// Fields in order. For an array the names are whatever the bytes say; only positions count.
    pub fn iter(self) -> RawIter<'a> {
        RawIter { bytes: self.0, at: 4 }
    }

    /// The first field of that name.
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        let mut at = 4;
        while at + 1 < self.0.len() {
            let kind = self.0[at];
            let name_end = find_nul(self.0, at + 1);
            let value_at = name_end + 1;
            if &self.0[at + 1..name_end] == name.as_bytes() {
                return Some(read_value(self.0, kind, value_at).0);
            }
            at = value_at + value_size(self.0, kind, value_at);
        }
        None
    }

    /// True when there are more than `levels` levels of documents and arrays below the top one. Looks only into those large enough
    /// for that, so that most documents cost nothing; it goes no deeper than `levels`.
    pub fn is_deeper_than(self, levels: usize) -> bool {
        if self.0.len() < EMPTY.0.len() + LEVEL_BYTES * (levels + 1) {
            return false;
        }
        self.iter().any(|(_, value)| match value {
            ValueRef::Document(DocRef::Raw(inner))
            | ValueRef::Array(ArrayRef::Raw(inner))
            | ValueRef::CodeWithScope {
                scope: DocRef::Raw(inner),
                ..
            } => levels == 0 || inner.is_deeper_than(levels - 1),
            _ => false,
        })
    }

    /// An owned copy.
    pub fn to_buf(self) -> RawDocBuf {
        RawDocBuf(self.0.into())
    }

    /// This document as the view shared with owned documents.
    pub fn as_doc(self) -> DocRef<'a> {
        DocRef::Raw(self)
    }

    /// Iterates with each element's whole bytes (type, name, value), for copying without decoding.
    pub fn elements(self) -> impl Iterator<Item = RawElement<'a>> {
        self.elements_from(4)
    }

    /// As [`RawDoc::elements`], from the element on whose type byte is at `offset`, or that would follow the one before.
    pub fn elements_from(self, offset: usize) -> impl Iterator<Item = RawElement<'a>> {
        let bytes = self.0;
        let mut at = offset;
        std::iter::from_fn(move || {
            if at + 1 >= bytes.len() {
                return None;
            }
            let start = at;
            let kind = bytes[at];
            let name_end = find_nul(bytes, at + 1);
            let value_at = name_end + 1;
            at = value_at + value_size(bytes, kind, value_at);
            Some(RawElement {
                bytes: &bytes[start..at],
                value_at: value_at - start,
                offset: start,
            })
        })
    }
}

/// One element as bytes.
#[derive(Clone, Copy)]
pub struct RawElement<'a> {
    bytes: &'a [u8],
    value_at: usize,
    offset: usize,
}

impl<'a> RawElement<'a> {
    /// Type byte, name and value, as they stand in the document.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Offset of the element's type byte within the document it came from.
    pub fn offset(&self) -> usize {
        self.offset
    }
    /// The type byte.
    pub fn kind(&self) -> u8 {
        self.bytes[0]
    }
    /// The field name.
    pub fn name(&self) -> &'a str {
        str_at(self.bytes, 1, self.value_at - 1)
    }
    /// The value's bytes.
    pub fn value_bytes(&self) -> &'a [u8] {
        &self.bytes[self.value_at..]
    }
    /// The value.
    pub fn value(&self) -> ValueRef<'a> {
        read_value(self.bytes, self.bytes[0], self.value_at).0
    }
}

impl fmt::Debug for RawDoc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_doc(), f)
    }
}

impl<'a> IntoIterator for RawDoc<'a> {
    type Item = (&'a str, ValueRef<'a>);
    type IntoIter = RawIter<'a>;
    fn into_iter(self) -> RawIter<'a> {
        self.iter()
    }
}

/// Iterator over a [`RawDoc`]'s fields.
#[derive(Clone)]
pub struct RawIter<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for RawIter<'a> {
    type Item = (&'a str, ValueRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at + 1 >= self.bytes.len() {
            return None;
        }
        let kind = self.bytes[self.at];
        let name_end = find_nul(self.bytes, self.at + 1);
        let name = str_at(self.bytes, self.at + 1, name_end);
        let (value, end) = read_value(self.bytes, kind, name_end + 1);
        self.at = end;
        Some((name, value))
    }
}

/// The name of a field, for [`RawIter::next_named`].
#[derive(Clone, Debug)]
pub struct FieldName {
    /// The name and its zero.
    bytes: Box<[u8]>,
    /// The first eight of them, and which bits of these count.
    word: u64,
    mask: u64,
    /// The last eight, of eight and more.
    last: u64,
}

impl FieldName {
    /// The name `name`.
    pub fn new(name: &str) -> Self {
        let bytes: Box<[u8]> = name.bytes().chain([0]).collect();
        let mut first = [0; 8];
        let len = bytes.len().min(8);
        first[..len].copy_from_slice(&bytes[..len]);
        let last = bytes.len().checked_sub(8).and_then(|at| word_at(&bytes, at));
        Self {
            word: u64::from_le_bytes(first),
            mask: u64::MAX >> (64 - 8 * len),
            last: last.unwrap_or_default(),
            bytes,
        }
    }

    /// Whether it is the name at `at`.
    #[inline]
    fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        let len = self.bytes.len();
        match word_at(bytes, at) {
            Some(word) if word & self.mask != self.word => false,
            Some(_) if len <= 8 => true,
            // Two words that overlap are all of it.
            Some(_) if len <= 16 => word_at(bytes, at + len - 8) == Some(self.last),
            _ => bytes
                .get(at..at + self.bytes.len())
                .is_some_and(|name| name == &*self.bytes),
        }
    }
}

/// A value that was passed by and not looked at.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    bytes: &'a [u8],
    kind: u8,
    at: usize,
}

impl<'a> Passed<'a> {
    /// The value.
    #[inline]
    pub fn read(self) -> ValueRef<'a> {
        let Self { bytes, kind, at } = self;
        // The commonest here, where they are used: a value that a call gives back is copied once more, and that waits for its parts.
        match kind {
            0x02 => {
                let end = at + 4 + i32_at(bytes, at) as usize;
                ValueRef::String(str_at(bytes, at + 4, end - 1))
            }
            0x09 => ValueRef::DateTime(i64::from_le_bytes(array_at(bytes, at))),
            0x10 => ValueRef::Int32(i32_at(bytes, at)),
            0x12 => ValueRef::Int64(i64::from_le_bytes(array_at(bytes, at))),
            0x13 => ValueRef::Decimal128(Decimal128::from_bytes(array_at(bytes, at))),
            _ => read_value(bytes, kind, at).0,
        }
    }
}

impl<'a> RawIter<'a> {
    /// The value of the next field if it has this name; `None`, and the iterator stays, when it has another one or there is none.
    #[inline]
    pub fn next_named(&mut self, name: &FieldName) -> Option<Passed<'a>> {
        if !name.is_at(self.bytes, self.at + 1) {
            return None;
        }
        let (kind, at) = (self.bytes[self.at], self.at + 1 + name.bytes.len());
        self.at = at + value_size(self.bytes, kind, at);
        Some(Passed {
            bytes: self.bytes,
            kind,
            at,
        })
    }
}

/// An owned validated document as bytes; clones share them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawDocBuf(Arc<[u8]>);

impl RawDocBuf {
    /// Validates and keeps.
    pub fn validate(bytes: impl Into<Arc<[u8]>>) -> Result<Self, Malformed> {
        let bytes = bytes.into();
        RawDoc::validate(&bytes)?;
        Ok(Self(bytes))
    }

    /// As [`RawDoc::validate_spilled`].
    pub fn validate_spilled(bytes: impl Into<Arc<[u8]>>) -> Result<Self, Malformed> {
        let bytes = bytes.into();
        RawDoc::validate_spilled(&bytes)?;
        Ok(Self(bytes))
    }

    pub(crate) fn from_writer(bytes: Vec<u8>) -> Self {
        debug_assert!(
            RawDoc::validate_any_depth(&bytes),
            "a writer builds only well-formed documents"
        );
        Self(bytes.into())
    }

    /// The document.
    pub fn as_raw(&self) -> RawDoc<'_> {
        RawDoc(&self.0)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The shared bytes.
    pub fn into_bytes(self) -> Arc<[u8]> {
        self.0
    }
}

impl fmt::Debug for RawDocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_raw(), f)
    }
}

impl RawDoc<'_> {
    fn validate_any_depth(bytes: &[u8]) -> bool {
        match RawDoc::validate(bytes) {
            Ok(_) => true,
            Err(e) => e.reason == TOO_DEEP,
        }
    }
}

/// Offset of the first zero byte from `from` on. There is one.
fn find_nul(bytes: &[u8], from: usize) -> usize {
    // Names are short, and a call into memchr costs more than most of them. Eight bytes at once are enough for the rest.
    let mut at = from;
    while let Some(word) = word_at(bytes, at) {
        let zeros = zero_bytes(word);
        if zeros != 0 {
            return at + zeros.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes[at] != 0 {
        at += 1;
    }
    at
}

/// The eight bytes at `at`, the first one lowest, if there are as many.
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

/// The top bit of each byte that is zero; above the lowest of these also of some others.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & TOP_BITS
}

/// The top bit of each byte.
const TOP_BITS: u64 = 0x8080_8080_8080_8080;

fn str_at(bytes: &[u8], from: usize, to: usize) -> &str {
    // SAFETY: `bytes` lie in a validated document, where every name and string is UTF-8.
    unsafe { std::str::from_utf8_unchecked(&bytes[from..to]) }
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(array_at(bytes, at))
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Size in bytes of a value of type `kind` at `at` of a validated document.
fn value_size(bytes: &[u8], kind: u8, at: usize) -> usize {
    match kind {
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x02 | 0x0D | 0x0E => 4 + i32_at(bytes, at) as usize,
        0x03 | 0x04 | 0x0F => i32_at(bytes, at) as usize,
        0x05 => 5 + i32_at(bytes, at) as usize,
        0x07 => 12,
        0x08 => 1,
        0x0B => {
            let middle = find_nul(bytes, at);
            find_nul(bytes, middle + 1) + 1 - at
        }
        0x0C => 4 + i32_at(bytes, at) as usize + 12,
        0x10 => 4,
        0x13 => 16,
        _ => 0,
    }
}

/// The value of type `kind` at `at`, and the offset after it.
fn read_value(bytes: &[u8], kind: u8, at: usize) -> (ValueRef<'_>, usize) {
    // One match and not a second one for the size: each scan of documents and each command comes through here.
    let string = |from: usize| {
        let end = from + 4 + i32_at(bytes, from) as usize;
        (str_at(bytes, from + 4, end - 1), end)
    };
    let document = || {
        let end = at + i32_at(bytes, at) as usize;
        (RawDoc(&bytes[at..end]), end)
    };
    match kind {
        0x01 => (ValueRef::Double(f64::from_le_bytes(array_at(bytes, at))), at + 8),
        0x02 => {
            let (text, end) = string(at);
            (ValueRef::String(text), end)
        }
        0x03 => {
            let (doc, end) = document();
            (ValueRef::Document(DocRef::Raw(doc)), end)
        }
        0x04 => {
            let (doc, end) = document();
            (ValueRef::Array(ArrayRef::Raw(doc)), end)
        }
        0x05 => {
            let end = at + 5 + i32_at(bytes, at) as usize;
            let value = ValueRef::Binary {
                subtype: bytes[at + 4],
                bytes: &bytes[at + 5..end],
            };
            (value, end)
        }
        0x06 => (ValueRef::Undefined, at),
        0x07 => (ValueRef::ObjectId(ObjectId(array_at(bytes, at))), at + 12),
        0x08 => (ValueRef::Bool(bytes[at] != 0), at + 1),
        0x09 => (ValueRef::DateTime(i64::from_le_bytes(array_at(bytes, at))), at + 8),
        0x0A => (ValueRef::Null, at),
        0x0B => {
            let middle = find_nul(bytes, at);
            let end = find_nul(bytes, middle + 1);
            let value = ValueRef::Regex {
                pattern: str_at(bytes, at, middle),
                options: str_at(bytes, middle + 1, end),
            };
            (value, end + 1)
        }
        0x0C => {
            let (namespace, id_at) = string(at);
            let id = ObjectId(array_at(bytes, id_at));
            (ValueRef::DbPointer { namespace, id }, id_at + 12)
        }
        0x0D => {
            let (text, end) = string(at);
            (ValueRef::Code(text), end)
        }
        0x0E => {
            let (text, end) = string(at);
            (ValueRef::Symbol(text), end)
        }
        0x0F => {
            let end = at + i32_at(bytes, at) as usize;
            let (code, scope_at) = string(at + 4);
            let scope = DocRef::Raw(RawDoc(&bytes[scope_at..end]));
            (ValueRef::CodeWithScope { code, scope }, end)
        }
        0x10 => (ValueRef::Int32(i32_at(bytes, at)), at + 4),
        0x11 => {
            let time = Timestamp::from_u64(u64::from_le_bytes(array_at(bytes, at)));
            (ValueRef::Timestamp(time), at + 8)
        }
        0x12 => (ValueRef::Int64(i64::from_le_bytes(array_at(bytes, at))), at + 8),
        0x13 => {
            let number = Decimal128::from_bytes(array_at(bytes, at));
            (ValueRef::Decimal128(number), at + 16)
        }
        0x7F => (ValueRef::MaxKey, at),
        _ => (ValueRef::MinKey, at),
    }
}

fn read_len(bytes: &[u8], at: usize, end: usize) -> Result<usize, Malformed> {
    if at + 4 > end {
        return Err(Malformed {
            offset: at,
            reason: "length cut off",
        });
    }
    usize::try_from(i32_at(bytes, at)).map_err(|_| Malformed {
        offset: at,
        reason: "negative length",
    })
}

fn check_document(bytes: &[u8], at: usize, end: usize, depth: isize) -> Result<(), Malformed> {
    // The top level is 1 here.
    if depth > DEPTH_MAX as isize + 1 {
        return Err(Malformed {
            offset: at,
            reason: TOO_DEEP,
        });
    }
    if read_len(bytes, at, end)? != end - at {
        return Err(Malformed {
            offset: at,
            reason: "document length does not fit",
        });
    }
    if end - at < 5 || bytes[end - 1] != 0 {
        return Err(Malformed {
            offset: end.saturating_sub(1),
            reason: "document does not end in zero",
        });
    }
    let last = end - 1;
    let mut at = at + 4;
    while at < last {
        let kind = bytes[at];
        let name_end = check_cstring(bytes, at + 1, last)?;
        at = check_value(bytes, kind, name_end + 1, last, depth)?;
    }
    Ok(())
}

/// Checks a zero-terminated UTF-8 string; returns the offset of the zero.
fn check_cstring(bytes: &[u8], at: usize, end: usize) -> Result<usize, Malformed> {
    let rest = bytes.get(at..end).unwrap_or_default();
    // Most names are ASCII and end within eight bytes: seeing that costs less than asking.
    if let Some(word) = word_at(rest, 0) {
        let zeros = zero_bytes(word);
        // All bits below the top bit of the first zero.
        let name = (zeros & zeros.wrapping_neg()).wrapping_sub(1);
        if zeros != 0 && word & name & TOP_BITS == 0 {
            return Ok(at + zeros.trailing_zeros() as usize / 8);
        }
    }
    let Some(length) = rest.iter().position(|byte| *byte == 0) else {
        return Err(Malformed {
            offset: at,
            reason: "name not terminated",
        });
    };
    check_utf8(bytes, at, at + length)?;
    Ok(at + length)
}

fn check_utf8(bytes: &[u8], from: usize, to: usize) -> Result<(), Malformed> {
    match std::str::from_utf8(&bytes[from..to]) {
        Ok(_) => Ok(()),
        Err(e) => Err(Malformed {
            offset: from + e.valid_up_to(),
            reason: "text is not UTF-8",
        }),
    }
}

/// Checks a length-prefixed string; returns the offset after it.
fn check_string(bytes: &[u8], at: usize, end: usize) -> Result<usize, Malformed> {
    let length = read_len(bytes, at, end)?;
    let stop = at + 4 + length;
    if length == 0 || stop > end || bytes[stop - 1] != 0 {
        return Err(Malformed {
            offset: at,
            reason: "string length does not fit",
        });
    }
    check_utf8(bytes, at + 4, stop - 1)?;
    Ok(stop)
}

/// Checks the value of type `kind` at `at`; returns the offset after it.
fn check_value(bytes: &[u8], kind: u8, at: usize, end: usize, depth: isize) -> Result<usize, Malformed> {
    let fixed = |size: usize| {
        if at + size > end {
            Err(Malformed {
                offset: at,
                reason: "value cut off",
            })
        } else {
            Ok(at + size)
        }
    };
    match kind {
        0x01 | 0x09 | 0x11 | 0x12 => fixed(8),
        0x06 | 0x0A | 0x7F | 0xFF => Ok(at),
        0x07 => fixed(12),
        0x10 => fixed(4),
        0x13 => fixed(16),
        0x08 => {
            let stop = fixed(1)?;
            if bytes[at] > 1 {
                Err(Malformed {
                    offset: at,
                    reason: "boolean is neither 0 nor 1",
                })
            } else {
                Ok(stop)
            }
        }
        0x02 | 0x0D | 0x0E => check_string(bytes, at, end),
        0x03 | 0x04 => {
            let stop = at + read_len(bytes, at, end)?;
            if stop > end {
                return Err(Malformed {
                    offset: at,
                    reason: "document length does not fit",
                });
            }
            check_document(bytes, at, stop, depth + 1)?;
            Ok(stop)
        }
        0x05 => check_binary(bytes, at, end),
        0x0B => {
            let middle = check_cstring(bytes, at, end)?;
            Ok(check_cstring(bytes, middle + 1, end)? + 1)
        }
        0x0C => {
            let stop = check_string(bytes, at, end)? + 12;
            if stop > end {
                Err(Malformed {
                    offset: at,
                    reason: "value cut off",
                })
            } else {
                Ok(stop)
            }
        }
        0x0F => {
            let stop = at + read_len(bytes, at, end)?;
            if stop > end {
                return Err(Malformed {
                    offset: at,
                    reason: "code with scope length does not fit",
                });
            }
            let scope = check_string(bytes, at + 4, stop)?;
            check_document(bytes, scope, stop, depth + 1)?;
            Ok(stop)
        }
        _ => Err(Malformed {
            offset: at,
            reason: "unknown type",
        }),
    }
}

fn check_binary(bytes: &[u8], at: usize, end: usize) -> Result<usize, Malformed> {
    let length = read_len(bytes, at, end)?;
    let stop = at + 5 + length;
    if stop > end {
        return Err(Malformed {
            offset: at,
            reason: "binary length does not fit",
        });
    }
    if bytes[at + 4] == 2 && (length < 4 || i32_at(bytes, at + 5) as usize != length - 4) {
        // Subtype 2 repeats its length inside.
        return Err(Malformed {
            offset: at,
            reason: "old binary length does not fit",
        });
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::FieldName;
    use crate::{Document, RawDoc, Value, doc};

    #[test]
    fn names_of_all_lengths_end_where_they_end() {
        for length in 0..40 {
            for pad in 0..20 {
                for odd in ["", "\u{80}", "é", "\u{1}", "\u{7f}", "\u{10FFFF}"] {
                    let name = format!("{}{odd}", "n".repeat(length));
                    let mut expected = Document::new();
                    expected.push(name.as_str(), 1);
                    expected.push("pad", "x".repeat(pad));
                    let bytes = expected.to_raw();
                    let raw = RawDoc::validate(bytes.as_bytes()).expect("well formed");
                    assert_eq!(raw.iter().next().map(|(name, _)| name), Some(name.as_str()));
                    assert!(raw.get(&name).is_some() && raw.get("pad").is_some());
                    let (own, pad_name) = (FieldName::new(&name), FieldName::new("pad"));
                    let mut fields = raw.iter();
                    assert!(fields.next_named(&pad_name).is_none());
                    assert!(fields.next_named(&FieldName::new(&format!("{name}n"))).is_none());
                    let one = fields.next_named(&own).map(|value| value.read().to_value());
                    assert!(matches!(one, Some(Value::Int32(1))), "{name}");
                    assert!(fields.next_named(&own).is_none());
                    let text = fields.next_named(&pad_name).map(|value| value.read().to_value());
                    assert_eq!(text.as_ref().and_then(Value::as_str).map(str::len), Some(pad));
                    assert!(fields.next_named(&FieldName::new("")).is_none() && fields.next().is_none());
                    // Half a character, and no end.
                    let mut broken = bytes.as_bytes().to_vec();
                    broken[5 + length] = 0xC3;
                    broken[6 + length] = 0;
                    assert_eq!(
                        RawDoc::validate(&broken).map_err(|e| e.reason),
                        Err("text is not UTF-8")
                    );
                    let mut endless = vec![b'n'; broken.len()];
                    endless[..5].copy_from_slice(&broken[..5]);
                    *endless.last_mut().expect("not empty") = 0;
                    assert_eq!(
                        RawDoc::validate(&endless).map_err(|e| e.reason),
                        Err("name not terminated")
                    );
                }
            }
        }
    }

    #[test]
    fn depth_is_told_exactly() {
        let tight = |levels: usize| {
            (0..levels).fold(Document::new(), |inner, _| {
                let mut outer = Document::new();
                outer.push("", inner);
                outer
            })
        };
        let wide = |levels: usize| {
            (0..levels).fold(doc! { "pad": "x".repeat(5000) }, |inner, i| match i % 2 {
                0 => doc! { "before": 1, "inner": vec![inner.into(), Value::Int32(1)] },
                _ => doc! { "inner": inner, "after": 1 },
            })
        };
        for levels in 0..50_usize {
            let arrays = levels.div_ceil(2);
            for (document, depth) in [(tight(levels), levels), (wide(levels), levels + arrays)] {
                let raw = document.to_raw();
                assert!(!raw.as_raw().is_deeper_than(depth), "{levels}");
                assert!(depth == 0 || raw.as_raw().is_deeper_than(depth - 1), "{levels}");
            }
        }
    }
}
