//! Type bits: what an index key does not say about the values it was made of.
//!
//! Numbers, strings and symbols are counted in the order they are written, nested ones included. Without a note one is
//! read as: zero and whole numbers that fit an int as int; other whole numbers that fit as long; numbers that are
//! exactly a double as double; the NaN `7FF8000000000000` as double; text as string. A note is made for each that
//! differs:
//!
//! ```text
//! note     varint (values without a note since the last one << 3 | kind) | more by kind
//! kind 0   long
//! kind 1   double
//! kind 2   decimal, not zero   exponent, 2 bytes, little-endian, signed
//! kind 3   symbol
//! kind 4   double -0
//! kind 5   decimal             16 bytes as in BSON: zeros, infinities, NaN
//! kind 6   double NaN          8 bytes, little-endian
//!
//! ["a", 1, Long(1)]            10           two without a note, then kind 0
//! Decimal("1.50")              02 FE FF
//! ```

use nestor_model::Decimal128;

pub(super) const INT64: u64 = 0;
pub(super) const DOUBLE: u64 = 1;
pub(super) const DECIMAL: u64 = 2;
pub(super) const SYMBOL: u64 = 3;
pub(super) const MINUS_ZERO: u64 = 4;
pub(super) const DECIMAL_RAW: u64 = 5;
pub(super) const DOUBLE_NAN: u64 = 6;

/// The NaN that needs no note.
pub(super) const PLAIN_NAN: u64 = 0x7FF8_0000_0000_0000;

/// Type bits being written.
#[derive(Clone, Default, Debug)]
pub struct TypeBits {
    bytes: Vec<u8>,
    skipped: u64,
}

impl TypeBits {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.skipped = 0;
    }

    pub(super) fn skip(&mut self) {
        self.skipped += 1;
    }

    fn note(&mut self, kind: u64) {
        let mut rest = self.skipped << 3 | kind;
        self.skipped = 0;
        while rest >= 0x80 {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    pub(super) fn int64(&mut self) {
        self.note(INT64);
    }

    pub(super) fn double(&mut self) {
        self.note(DOUBLE);
    }

    pub(super) fn double_zero(&mut self, negative: bool) {
        self.note(if negative { MINUS_ZERO } else { DOUBLE });
    }

    pub(super) fn double_nan(&mut self, value: f64) {
        if value.to_bits() == PLAIN_NAN {
            return self.skip();
        }
        self.note(DOUBLE_NAN);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn decimal(&mut self, exponent: i32) {
        self.note(DECIMAL);
        self.bytes.extend_from_slice(&(exponent as i16).to_le_bytes());
    }

    pub(super) fn decimal_raw(&mut self, value: Decimal128) {
        self.note(DECIMAL_RAW);
        self.bytes.extend_from_slice(&value.to_bytes());
    }

    pub(super) fn symbol(&mut self) {
        self.note(SYMBOL);
    }
}

/// Type bits being read. Bytes that end early or mean nothing read as if there were no notes: [`super::decode()`] then
/// finds types that do not fit their keys.
pub(super) struct Notes<'a> {
    rest: &'a [u8],
    /// Values before the next note, and its kind.
    next: Option<(u64, u64)>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut notes = Self {
            rest: bytes,
            next: None,
        };
        notes.read();
        notes
    }

    fn read(&mut self) {
        let mut value = 0u64;
        self.next = None;
        for shift in (0..63).step_by(7) {
            let Some((byte, rest)) = self.rest.split_first() else {
                return;
            };
            self.rest = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                self.next = Some((value >> 3, value & 7));
                return;
            }
        }
    }

    /// The note on the next value, if it has one. What belongs to its kind is read with [`Notes::take`]; then
    /// [`Notes::done`].
    pub(super) fn kind(&mut self) -> Option<u64> {
        match &mut self.next {
            Some((0, kind)) => Some(*kind),
            Some((skip, _)) => {
                *skip -= 1;
                None
            }
            None => None,
        }
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn done(&mut self) {
        self.read();
    }
}
