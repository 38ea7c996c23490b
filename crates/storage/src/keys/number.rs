//! Numbers in keys: one order over int, long, double and decimal.
//!
//! A magnitude is written as the largest double that is not above it, and, when it is not exactly that double, a tail
//! that orders the values up to the next double. Only decimals and longs beyond 2^53 ever have a tail.
//!
//! ```text
//! double   63 bits (exponent and fraction) in groups of 7, the highest first, each in a byte: group << 1 | more.
//!          Groups of zeros at the end are left out; `more` says that another group or the tail follows.
//!          With a tail all nine groups are there.
//! tail     17 bytes: E + 0x4000 (2 bytes, big-endian) | coefficient of 34 digits (15 bytes, big-endian)
//!          for the value 0.d1d2...d34 * 10^E
//!
//! 1000                2B 81 8F A0               3FF + 9 | 111101000: groups 1000000 1000111 1010000
//! 0.5                 2B 7F E0
//! 2^53 + 1 (long)     2B 87 41 01 01 01 01 01 01 01 | 40 10 01 BC 16 D6 74 EC 80 0D E0 B6 B3 A7 64 00 00
//! ```
//!
//! Doubles compare with decimals as their first 34 digits, as [`nestor_model::compare`] has it; no two doubles share them.

use super::class;
use super::type_bits::TypeBits;
use nestor_model::Decimal128;

/// Groups of seven bits in 63.
const GROUPS: u32 = 9;
/// Digits of a decimal's coefficient.
const DIGITS: u32 = 34;
/// Bytes of a tail.
pub(super) const TAIL_BYTES: usize = 17;
const EXPONENT_BIAS: i32 = 0x4000;
/// Exponent bias of decimal128 (IEEE 754-2008).
const DECIMAL_BIAS: i32 = 6176;
const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
const COEFFICIENT_BITS: u32 = 113;
const EXACT_INTEGERS_END: u64 = 1 << 53;

/// `0.d1d2...d34 * 10^exponent`, `d1` not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tail {
    pub(super) exponent: i32,
    pub(super) coefficient: u128,
}

/// A decimal taken apart.
pub(super) enum Parts {
    Finite {
        negative: bool,
        coefficient: u128,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    NaN,
}

pub(super) fn write_i32(value: i32, out: &mut Vec<u8>, types: &mut TypeBits) {
    types.skip();
    write_exact(value < 0, f64::from(value).abs(), out);
}

pub(super) fn write_i64(value: i64, out: &mut Vec<u8>, types: &mut TypeBits) {
    if i32::try_from(value).is_ok() {
        types.int64();
    } else {
        types.skip();
    }
    let magnitude = value.unsigned_abs();
    if magnitude <= EXACT_INTEGERS_END {
        return write_exact(value < 0, magnitude as f64, out);
    }
    let (double, exact) = floor_double(magnitude);
    let tail = (!exact).then(|| Tail::new(u128::from(magnitude), 0));
    write_magnitude(value < 0, double, tail, out);
}

/// The double above zero that an ascending part begins with; `None` for anything else, and for what is between two doubles.
pub fn positive_double(part: &[u8]) -> Option<f64> {
    let (class::POSITIVE, groups) = part.split_first().map(|(class, rest)| (*class, rest))? else {
        return None;
    };
    let mut bits = 0;
    for (at, byte) in groups.iter().take(GROUPS as usize).enumerate() {
        bits |= u64::from(byte >> 1) << (7 * (GROUPS as usize - 1 - at));
        if byte & 1 == 0 {
            return Some(f64::from_bits(bits));
        }
    }
    None
}

/// The bits of the largest double not above `magnitude`, and whether it is that.
fn floor_double(magnitude: u64) -> (u64, bool) {
    let nearest = magnitude as f64;
    let back = nearest as u128;
    let bits = nearest.to_bits();
    match back.cmp(&u128::from(magnitude)) {
        std::cmp::Ordering::Equal => (bits, true),
        std::cmp::Ordering::Less => (bits, false),
        std::cmp::Ordering::Greater => (bits - 1, false),
    }
}

pub(super) fn write_f64(value: f64, out: &mut Vec<u8>, types: &mut TypeBits) {
    if value.is_nan() {
        types.double_nan(value);
        out.push(class::NAN);
        return;
    }
    if value == 0.0 {
        types.double_zero(value.is_sign_negative());
        out.push(class::ZERO);
        return;
    }
    if suggests_integer(value) {
        types.double();
    } else {
        types.skip();
    }
    write_exact(value < 0.0, value.abs(), out);
}

/// Whether a reader without type bits takes this double for an int or a long.
pub(super) fn suggests_integer(value: f64) -> bool {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    value.trunc() == value && (-TWO_63..TWO_63).contains(&value)
}

pub(super) fn write_decimal(value: Decimal128, out: &mut Vec<u8>, types: &mut TypeBits) {
    let (negative, coefficient, exponent) = match parts(value) {
        Parts::NaN => {
            types.decimal_raw(value);
            out.push(class::NAN);
            return;
        }
        Parts::Infinite { negative } => {
            types.decimal_raw(value);
            return write_exact(negative, f64::INFINITY, out);
        }
        Parts::Finite { coefficient: 0, .. } => {
            types.decimal_raw(value);
            out.push(class::ZERO);
            return;
        }
        Parts::Finite {
            negative,
            coefficient,
            exponent,
        } => (negative, coefficient, exponent),
    };
    types.decimal(exponent);
    let magnitude = absolute(value);
    let nearest = magnitude.to_f64();
    let bits = match Decimal128::from_f64_exact(nearest).total_cmp(magnitude) {
        std::cmp::Ordering::Equal => return write_exact(negative, nearest, out),
        std::cmp::Ordering::Less => nearest.to_bits(),
        std::cmp::Ordering::Greater => nearest.to_bits().saturating_sub(1),
    };
    write_magnitude(negative, bits, Some(Tail::new(coefficient, exponent)), out);
}

fn write_exact(negative: bool, magnitude: f64, out: &mut Vec<u8>) {
    if magnitude == 0.0 {
        out.push(class::ZERO);
    } else {
        write_magnitude(negative, magnitude.to_bits(), None, out);
    }
}

fn write_magnitude(negative: bool, bits: u64, tail: Option<Tail>, out: &mut Vec<u8>) {
    debug_assert!(bits >> 63 == 0, "a magnitude has no sign");
    debug_assert!(bits != 0 || tail.is_some(), "zero is written as its class alone");
    out.push(if negative { class::NEGATIVE } else { class::POSITIVE });
    let start = out.len();
    let groups = if tail.is_some() {
        GROUPS
    } else {
        GROUPS - bits.trailing_zeros() / 7
    };
    for i in 0..groups {
        let group = (bits >> (56 - 7 * i)) as u8 & 0x7F;
        let more = i + 1 < groups || tail.is_some();
        out.push(group << 1 | u8::from(more));
    }
    if let Some(tail) = tail {
        out.extend_from_slice(&tail.to_bytes());
    }
    if negative {
        super::invert(&mut out[start..]);
    }
}

impl Tail {
    /// Of `coefficient * 10^exponent`, not 0.
    pub(super) fn new(coefficient: u128, exponent: i32) -> Self {
        let digits = coefficient.ilog10() + 1;
        Self {
            exponent: exponent + digits as i32,
            coefficient: coefficient * 10u128.pow(DIGITS - digits),
        }
    }

    fn to_bytes(self) -> [u8; TAIL_BYTES] {
        let mut out = [0; TAIL_BYTES];
        out[..2].copy_from_slice(&((self.exponent + EXPONENT_BIAS) as u16).to_be_bytes());
        out[2..].copy_from_slice(&self.coefficient.to_be_bytes()[1..]);
        out
    }

    pub(super) fn from_bytes(bytes: [u8; TAIL_BYTES]) -> Self {
        let mut wide = [0; 16];
        wide[1..].copy_from_slice(&bytes[2..]);
        Self {
            exponent: i32::from(u16::from_be_bytes([bytes[0], bytes[1]])) - EXPONENT_BIAS,
            coefficient: u128::from_be_bytes(wide),
        }
    }

    /// The coefficient at another exponent, if it is whole there and fits.
    pub(super) fn at_exponent(self, exponent: i32) -> Option<u128> {
        let digits = self.exponent.checked_sub(exponent)?;
        let digits = u32::try_from(digits).ok().filter(|d| *d <= DIGITS)?;
        let divisor = 10u128.pow(DIGITS - digits);
        self.coefficient
            .is_multiple_of(divisor)
            .then_some(self.coefficient / divisor)
    }
}

/// Takes a decimal128 (BID encoding) apart. Coefficients beyond 34 digits count as zero, as the standard says.
pub(super) fn parts(value: Decimal128) -> Parts {
    let bits = u128::from_le_bytes(value.to_bytes());
    let negative = bits >> 127 != 0;
    match (bits >> 122) as u8 & 0x1F {
        0x1F => Parts::NaN,
        0x1E => Parts::Infinite { negative },
        // The large form: its coefficient is always beyond the limit.
        combination if combination >> 3 == 3 => Parts::Finite {
            negative,
            coefficient: 0,
            exponent: 0,
        },
        _ => {
            let coefficient = bits & ((1 << COEFFICIENT_BITS) - 1);
            Parts::Finite {
                negative,
                coefficient: if coefficient > COEFFICIENT_MAX { 0 } else { coefficient },
                exponent: ((bits >> COEFFICIENT_BITS) as i32 & 0x3FFF) - DECIMAL_BIAS,
            }
        }
    }
}

/// Puts a decimal128 together; `None` if it does not fit.
pub(super) fn assemble(negative: bool, coefficient: u128, exponent: i32) -> Option<Decimal128> {
    let biased = u128::try_from(exponent + DECIMAL_BIAS).ok()?;
    if coefficient > COEFFICIENT_MAX || biased > 0x2FFF {
        return None;
    }
    let bits = u128::from(negative) << 127 | biased << COEFFICIENT_BITS | coefficient;
    Some(Decimal128::from_bytes(bits.to_le_bytes()))
}

fn absolute(value: Decimal128) -> Decimal128 {
    let mut bytes = value.to_bytes();
    bytes[15] &= 0x7F;
    Decimal128::from_bytes(bytes)
}
