//! Floating-point numbers, bit by bit as they were: as decimal fractions, or as what they differ from the number before.
//!
//! Sensors report 21.5 or 1013.25: whole numbers of tenths or hundredths. Such lists are those whole numbers (the idea of ALP, Afroozeh
//! et al., SIGMOD 2023); the few numbers for which it does not hold stand apart.
//!
//! ```text
//! decimals     1 byte    0 to 15: each number is a whole number of 10^-decimals
//! apart        varint    how many are no such number
//!   index      varint    the distance from the one before, or from the beginning
//!   number     8 bytes
//! whole        as `ints` says; at the places of those that stand apart, the whole number before
//! ```
//!
//! Others are written as Gorilla does it (Pelkonen et al., VLDB 2015): a bit 0 for the same number again; bits 10 and the bits that
//! differ, within those that differed before; or bits 11, 6 bits for how many highest bits are alike, 6 bits for how many may differ less
//! one, and these. Bits are filled in from the lowest of a byte. The first number differs from 0.

use super::bits::{Reader, put_varint};
use super::ints;

const DECIMALS_MAX: usize = 15;
const POWERS: [f64; DECIMALS_MAX + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];
/// Whole numbers up to here are exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The whole number of 10^-decimals that `value` is.
fn whole(value: f64, decimals: usize) -> Option<i64> {
    let whole = (value * POWERS[decimals]).round();
    if whole.abs() > WHOLE_MAX || whole.is_nan() {
        return None;
    }
    let whole = whole as i64;
    ((whole as f64 / POWERS[decimals]).to_bits() == value.to_bits()).then_some(whole)
}

/// The numbers as decimal fractions, if that suits all but an eighth of them.
pub(super) fn encode_decimal(values: &[f64]) -> Option<Vec<u8>> {
    let sample = || values.iter().step_by((values.len() / 32).max(1));
    let misses = |decimals: usize| sample().filter(|v| whole(**v, decimals).is_none()).count();
    let decimals = (0..=DECIMALS_MAX).min_by_key(|decimals| misses(*decimals))?;
    if misses(decimals) * 8 > sample().count() {
        return None;
    }
    let (mut out, mut apart, mut last) = (vec![decimals as u8], Vec::new(), 0);
    let mut count = 0;
    let mut wholes: Vec<i64> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        match whole(*value, decimals) {
            Some(whole) => wholes.push(whole),
            None => {
                put_varint((index - last) as u64, &mut apart);
                apart.extend_from_slice(&value.to_le_bytes());
                last = index;
                count += 1;
                wholes.push(wholes.last().copied().unwrap_or(0));
            }
        }
    }
    put_varint(count, &mut out);
    out.extend_from_slice(&apart);
    ints::encode(&wholes, &mut out);
    Some(out)
}

/// Inverse of [`encode_decimal`]; `None` for bytes that are no such form.
pub(super) fn decode_decimal(bytes: &mut Reader<'_>, count: usize) -> Option<Vec<f64>> {
    let power = *POWERS.get(usize::from(bytes.byte()?))?;
    let apart = bytes.number(count)?;
    let mut others = Vec::with_capacity(apart);
    let mut index = 0usize;
    for _ in 0..apart {
        index = index.checked_add(bytes.number(count)?)?;
        others.push((index, f64::from_le_bytes(bytes.take(8)?.try_into().ok()?)));
    }
    let wholes = ints::decode(bytes, count)?;
    let mut out: Vec<f64> = wholes.into_iter().map(|whole| whole as f64 / power).collect();
    for (index, other) in others {
        *out.get_mut(index)? = other;
    }
    Some(out)
}

/// The numbers as what they differ from the one before.
pub(super) fn encode_xor(values: &[f64]) -> Vec<u8> {
    let mut out = BitWriter::default();
    // Which bits may differ: how many of the highest are alike, and how many follow.
    let (mut before, mut alike, mut len) = (0u64, 64, 0);
    for value in values {
        let differs = value.to_bits() ^ before;
        before = value.to_bits();
        if differs == 0 {
            out.put(0, 1);
            continue;
        }
        let (high, low) = (differs.leading_zeros(), differs.trailing_zeros());
        if high >= alike && low >= 64 - alike - len {
            out.put(0b01, 2);
        } else {
            (alike, len) = (high, 64 - high - low);
            out.put(0b11, 2);
            out.put(u64::from(alike), 6);
            out.put(u64::from(len - 1), 6);
        }
        out.put(differs >> (64 - alike - len), len);
    }
    out.finish()
}

/// Inverse of [`encode_xor`], of all bytes that are left; `None` for bytes that are no such form.
pub(super) fn decode_xor(bytes: &mut Reader<'_>, count: usize) -> Option<Vec<f64>> {
    let mut bits = BitReader {
        bytes: bytes.take(bytes.0.len())?,
        bit: 0,
    };
    let mut out = Vec::with_capacity(count);
    let (mut value, mut alike, mut len) = (0u64, 64, 0);
    for _ in 0..count {
        if bits.get(1)? == 1 {
            if bits.get(1)? == 1 {
                alike = bits.get(6)? as u32;
                len = bits.get(6)? as u32 + 1;
            }
            let low = 64u32.checked_sub(alike + len)?;
            if len == 0 {
                return None;
            }
            value ^= bits.get(len)? << low;
        }
        out.push(f64::from_bits(value));
    }
    Some(out)
}

#[derive(Default)]
struct BitWriter {
    out: Vec<u8>,
    held: u128,
    bits: u32,
}

impl BitWriter {
    fn put(&mut self, value: u64, len: u32) {
        self.held |= u128::from(value) << self.bits;
        self.bits += len;
        while self.bits >= 8 {
            self.out.push(self.held as u8);
            self.held >>= 8;
            self.bits -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.bits > 0 {
            self.out.push(self.held as u8);
        }
        self.out
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl BitReader<'_> {
    /// The next `len` bits, 1 to 64.
    fn get(&mut self, len: u32) -> Option<u64> {
        if self.bit + len as usize > self.bytes.len() * 8 {
            return None;
        }
        let rest = &self.bytes[self.bit >> 3..];
        let mut word = [0; 16];
        let held = rest.len().min(9);
        word[..held].copy_from_slice(&rest[..held]);
        let value = (u128::from_le_bytes(word) >> (self.bit & 7)) as u64;
        self.bit += len as usize;
        Some(value & (u64::MAX >> (64 - len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(back: Option<Vec<f64>>, values: &[f64]) {
        let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|v| v.to_bits()).collect() };
        assert_eq!(back.as_deref().map(bits), Some(bits(values)));
    }

    #[test]
    fn decimal_fractions_come_back() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(2000 + i % 57) / 100.0).collect();
        let bytes = encode_decimal(&values).expect("decimal fractions");
        assert!(bytes.len() < 900, "{} bytes", bytes.len());
        same(decode_decimal(&mut Reader(&bytes), values.len()), &values);
        // A few others stand apart.
        let mut odd = values;
        odd[3] = f64::NAN;
        odd[700] = -0.0;
        odd[701] = 1.0 / 3.0;
        let bytes = encode_decimal(&odd).expect("decimal fractions but for three");
        same(decode_decimal(&mut Reader(&bytes), odd.len()), &odd);
    }

    #[test]
    fn others_come_back() {
        let values: Vec<f64> = (0..500).map(|i| (f64::from(i) / 7.0).sin()).collect();
        assert!(encode_decimal(&values).is_none());
        for values in [
            values.as_slice(),
            &[],
            &[0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 1.5, 1.5],
            &[f64::from_bits(u64::MAX), 0.0],
        ] {
            let bytes = encode_xor(values);
            same(decode_xor(&mut Reader(&bytes), values.len()), values);
        }
    }

    #[test]
    fn what_was_cut_off_is_refused() {
        let values = [1.1, 2.2, 1.0 / 3.0];
        let bytes = encode_xor(&values);
        assert!(decode_xor(&mut Reader(&bytes[..bytes.len() - 1]), 3).is_none());
        assert!(
            decode_xor(&mut Reader(&[0b01]), 1).is_none(),
            "no bits that may differ were told"
        );
        let bytes = encode_decimal(&values).map_or(Vec::new(), |bytes| bytes);
        for len in 0..bytes.len() {
            assert!(decode_decimal(&mut Reader(&bytes[..len]), 3).is_none(), "{len} bytes");
        }
    }
}
