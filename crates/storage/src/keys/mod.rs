//! Index keys: an encoding of BSON values whose byte order is the canonical order of values.
//!
//! `encode(a).cmp(encode(b)) == compare(a, b)` for [`nestor_model::compare`]. Values that compare equal have the same
//! bytes; what tells them apart (int or double, trailing zeros of a decimal, string or symbol, ...) goes into
//! [type bits](type_bits) stored beside the key, so that covered reads give back exactly what was stored.
//!
//! A value is a class byte and a body; every encoding is free of prefixes, so keys of several parts are concatenated.
//! A descending part has all its bytes inverted. Class bytes lie in `0x10..=0xEF`, also when inverted: a key followed by
//! `0x00` sorts before all keys that go on from there, followed by `0xFF` behind them.
//!
//! ```text
//! class      type                 body
//! 10         MinKey               -
//! 18 / 19    missing / undefined  -
//! 20         null                 -
//! 28         NaN                  -
//! 29 2A 2B   number < 0, 0, > 0   magnitude (see the number module); inverted for 29; nothing for 2A
//! 30         string, symbol       text
//! 38         object               for each field: class of its type, name as text, value; then 00
//! 40         array                for each item: value; then 00
//! 48         binary               length | subtype | bytes. Length: one byte below FF, else FF and four, big-endian
//! 50         ObjectId             12 bytes
//! 58 / 59    false / true         -
//! 60         date                 8 bytes, big-endian, sign bit inverted
//! 68         timestamp            8 bytes, big-endian
//! 70         regex                pattern as text | options as text
//! 78         DBPointer            length of namespace, 4 bytes, big-endian | namespace | 12 bytes
//! 80         code                 text
//! 88         code with scope      text | scope as object body
//! E0         MaxKey               -
//!
//! text       its bytes with 00 replaced by 00 FF; then 00 00
//! ```
//!
//! An index with a collation is given the sort keys of strings in their place, as strings of the characters U+0000 to
//! U+00FF, one per byte; the names of fields stay. Nothing here knows of that; what is stored of `"Ab"` under
//! `{locale: "en", strength: 2}`, whose sort key is `2B 2D 01 06`, say, is the text of these four characters.
//!
//! Examples (each is a test):
//!
//! ```text
//! null               20
//! "a"                30 61 00 00
//! "a\0b"             30 61 00 FF 62 00 00
//! "a" descending     CF 9E FF FF
//! 1                  2B 7F F0                  exponent 3FF: groups 0111111 1111000, the first with its "more" bit
//! -1                 29 80 0F
//! {a: null}          38 20 61 00 00 20 00
//! [true]             40 59 00
//! BinData(5, "x")    48 01 05 78
//! ```

mod decode;
mod entry;
mod number;
pub mod type_bits;

pub use decode::{decode, decode_onto, decode_part, part_bytes};
pub use entry::{Entry, EntryFormat};
pub use number::positive_double;
use type_bits::TypeBits;

use nestor_model::{BsonType, DocRef, ValueRef};

pub(crate) mod class {
    pub const MIN_KEY: u8 = 0x10;
    pub const MISSING: u8 = 0x18;
    pub const UNDEFINED: u8 = 0x19;
    pub const NULL: u8 = 0x20;
    pub const NAN: u8 = 0x28;
    pub const NEGATIVE: u8 = 0x29;
    pub const ZERO: u8 = 0x2A;
    pub const POSITIVE: u8 = 0x2B;
    pub const STRING: u8 = 0x30;
    pub const OBJECT: u8 = 0x38;
    pub const ARRAY: u8 = 0x40;
    pub const BINARY: u8 = 0x48;
    pub const OBJECT_ID: u8 = 0x50;
    pub const FALSE: u8 = 0x58;
    pub const TRUE: u8 = 0x59;
    pub const DATE: u8 = 0x60;
    pub const TIMESTAMP: u8 = 0x68;
    pub const REGEX: u8 = 0x70;
    pub const DB_POINTER: u8 = 0x78;
    pub const CODE: u8 = 0x80;
    pub const CODE_WITH_SCOPE: u8 = 0x88;
    pub const MAX_KEY: u8 = 0xE0;
    /// Ends objects and arrays: below every class.
    pub const END: u8 = 0x00;
}

/// The end of a text, and what follows a zero byte inside it.
const TEXT_END: u8 = 0x00;
const TEXT_ZERO: u8 = 0xFF;

/// Builds a key of one or more parts together with its type bits. Cleared and used again, it does not allocate.
#[derive(Clone, Default, Debug)]
pub struct KeyWriter {
    key: Vec<u8>,
    types: TypeBits,
}

impl KeyWriter {
    /// An empty key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Back to the empty key.
    pub fn clear(&mut self) {
        self.key.clear();
        self.types.clear();
    }

    /// Adds a part.
    pub fn push<'a>(&mut self, value: impl Into<ValueRef<'a>>, descending: bool) {
        let start = self.key.len();
        write_value(value.into(), &mut self.key, &mut self.types);
        if descending {
            invert(&mut self.key[start..]);
        }
    }

    /// The key so far.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its type bits: empty if every value is of the type that its key bytes suggest.
    pub fn type_bits(&self) -> &[u8] {
        self.types.as_bytes()
    }
}

/// The key of a single ascending value, without type bits.
pub fn encode<'a>(value: impl Into<ValueRef<'a>>) -> Vec<u8> {
    let mut key = Vec::with_capacity(24);
    encode_into(value, false, &mut key);
    key
}

/// Appends one part to `key`, without type bits: for bounds and look-ups.
pub fn encode_into<'a>(value: impl Into<ValueRef<'a>>, descending: bool, key: &mut Vec<u8>) {
    let start = key.len();
    write_value(value.into(), key, &mut TypeBits::default());
    if descending {
        invert(&mut key[start..]);
    }
}

pub(crate) fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|b| *b = !*b);
}

fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>, types: &mut TypeBits) {
    use ValueRef as V;
    match value {
        V::Missing => out.push(class::MISSING),
        V::Undefined => out.push(class::UNDEFINED),
        V::Null => out.push(class::NULL),
        V::MinKey => out.push(class::MIN_KEY),
        V::MaxKey => out.push(class::MAX_KEY),
        V::Int32(v) => number::write_i32(v, out, types),
        V::Int64(v) => number::write_i64(v, out, types),
        V::Double(v) => number::write_f64(v, out, types),
        V::Decimal128(v) => number::write_decimal(v, out, types),
        V::String(v) => {
            types.skip();
            out.push(class::STRING);
            write_text(v, out);
        }
        V::Symbol(v) => {
            types.symbol();
            out.push(class::STRING);
            write_text(v, out);
        }
        V::Document(doc) => {
            out.push(class::OBJECT);
            write_object(doc, out, types);
        }
        V::Array(items) => {
            out.push(class::ARRAY);
            for item in items {
                write_value(item, out, types);
            }
            out.push(class::END);
        }
        V::Binary { subtype, bytes } => {
            out.push(class::BINARY);
            // Documents have at most 16 MiB, so lengths fit.
            match u8::try_from(bytes.len()) {
                Ok(len) if len < 0xFF => out.push(len),
                _ => {
                    out.push(0xFF);
                    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                }
            }
            out.push(subtype);
            out.extend_from_slice(bytes);
        }
        V::ObjectId(id) => {
            out.push(class::OBJECT_ID);
            out.extend_from_slice(&id.0);
        }
        V::Bool(false) => out.push(class::FALSE),
        V::Bool(true) => out.push(class::TRUE),
        V::DateTime(ms) => {
            out.push(class::DATE);
            out.extend_from_slice(&((ms as u64) ^ (1 << 63)).to_be_bytes());
        }
        V::Timestamp(ts) => {
            out.push(class::TIMESTAMP);
            out.extend_from_slice(&ts.to_u64().to_be_bytes());
        }
        V::Regex { pattern, options } => {
            out.push(class::REGEX);
            write_text(pattern, out);
            write_text(options, out);
        }
        V::DbPointer { namespace, id } => {
            out.push(class::DB_POINTER);
            out.extend_from_slice(&(namespace.len() as u32).to_be_bytes());
            out.extend_from_slice(namespace.as_bytes());
            out.extend_from_slice(&id.0);
        }
        V::Code(code) => {
            out.push(class::CODE);
            write_text(code, out);
        }
        V::CodeWithScope { code, scope } => {
            out.push(class::CODE_WITH_SCOPE);
            write_text(code, out);
            write_object(scope, out, types);
        }
    }
}

fn write_object(doc: DocRef<'_>, out: &mut Vec<u8>, types: &mut TypeBits) {
    for (name, value) in doc {
        out.push(type_class(value.bson_type()));
        write_text(name, out);
        write_value(value, out, types);
    }
    out.push(class::END);
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if bytes.contains(&0) {
        for byte in bytes {
            out.push(*byte);
            if *byte == 0 {
                out.push(TEXT_ZERO);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&[0, TEXT_END]);
}

/// What fields of an object compare by first: one byte for all types of one canonical class.
fn type_class(kind: BsonType) -> u8 {
    match kind {
        BsonType::MinKey => class::MIN_KEY,
        BsonType::Missing | BsonType::Undefined => class::MISSING,
        BsonType::Null => class::NULL,
        BsonType::Double | BsonType::Int | BsonType::Long | BsonType::Decimal => class::NAN,
        BsonType::String | BsonType::Symbol => class::STRING,
        BsonType::Object => class::OBJECT,
        BsonType::Array => class::ARRAY,
        BsonType::BinData => class::BINARY,
        BsonType::ObjectId => class::OBJECT_ID,
        BsonType::Bool => class::FALSE,
        BsonType::Date => class::DATE,
        BsonType::Timestamp => class::TIMESTAMP,
        BsonType::Regex => class::REGEX,
        BsonType::DbPointer => class::DB_POINTER,
        BsonType::Javascript => class::CODE,
        BsonType::JavascriptWithScope => class::CODE_WITH_SCOPE,
        BsonType::MaxKey => class::MAX_KEY,
    }
}

#[cfg(test)]
mod tests;
