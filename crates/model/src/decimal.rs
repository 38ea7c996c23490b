//! IEEE 754-2008 decimal128 in BSON's binary integer (BID) encoding.
//!
//! Arithmetic is Intel's decimal floating-point library, rounding half to even; operands and results stay
//! in the encoding they have on the wire. Source of the text form: BSON Decimal128 specification.

#![allow(unsafe_code)]

use dfp_number_sys::bid128_000::*;
use dfp_number_sys::{BID128, RND_NEAREST_EVEN, RND_TOWARD_ZERO};
use std::cmp::Ordering;
use std::fmt;

/// Largest coefficient, 34 nines.
const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
const EXPONENT_BIAS: i32 = 6176;
/// Smallest exponent of the integer coefficient.
const EXPONENT_MIN: i32 = -EXPONENT_BIAS;
/// Largest exponent of the integer coefficient.
const EXPONENT_MAX: i32 = 6111;

const FLAG_INVALID: u32 = 0x01;
const FLAG_DIVIDE_BY_ZERO: u32 = 0x04;
const FLAG_OVERFLOW: u32 = 0x08;
const FLAG_UNDERFLOW: u32 = 0x10;
const FLAG_INEXACT: u32 = 0x20;

/// A decimal128. The bytes are kept exactly as given: trailing zeros, the sign of zero and NaN payloads
/// survive. Numeric comparison is [`Decimal128::total_cmp`]; `==` compares bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128 {
    low: u64,
    high: u64,
}

/// IEEE exception flags of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DecimalFlags(u32);

impl DecimalFlags {
    /// The operation had no defined result (or the text was no number).
    pub fn invalid(self) -> bool {
        self.0 & FLAG_INVALID != 0
    }
    /// Division of a finite number by zero.
    pub fn divide_by_zero(self) -> bool {
        self.0 & FLAG_DIVIDE_BY_ZERO != 0
    }
    /// Too large; the result is infinite.
    pub fn overflow(self) -> bool {
        self.0 & FLAG_OVERFLOW != 0
    }
    /// Too small; digits were lost.
    pub fn underflow(self) -> bool {
        self.0 & FLAG_UNDERFLOW != 0
    }
    /// The result was rounded.
    pub fn inexact(self) -> bool {
        self.0 & FLAG_INEXACT != 0
    }
}

/// A finite decimal taken apart: `(-1)^negative * coefficient * 10^exponent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecimalParts {
    /// Sign bit.
    pub negative: bool,
    /// At most 34 digits.
    pub coefficient: u128,
    /// Between -6176 and 6111.
    pub exponent: i32,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $f:ident),* $(,)?) => {$(
        $(#[$doc])*
        pub fn $name(self) -> Self {
            let mut flags = 0;
            Self::from_bid($f(self.bid(), RND_NEAREST_EVEN, &mut flags))
        }
    )*};
}

macro_rules! unary_exact {
    ($($(#[$doc:meta])* $name:ident = $f:ident),* $(,)?) => {$(
        $(#[$doc])*
        pub fn $name(self) -> Self {
            let mut flags = 0;
            Self::from_bid($f(self.bid(), &mut flags))
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $f:ident),* $(,)?) => {$(
        $(#[$doc])*
        pub fn $name(self, other: Self) -> Self {
            let mut flags = 0;
            Self::from_bid($f(self.bid(), other.bid(), RND_NEAREST_EVEN, &mut flags))
        }
    )*};
}

impl Decimal128 {
    /// Positive zero with exponent 0.
    pub const ZERO: Self = Self {
        low: 0,
        high: 0x3040_0000_0000_0000,
    };
    /// One.
    pub const ONE: Self = Self {
        low: 1,
        high: 0x3040_0000_0000_0000,
    };
    /// Positive infinity.
    pub const INFINITY: Self = Self {
        low: 0,
        high: 0x7800_0000_0000_0000,
    };
    /// Negative infinity.
    pub const NEG_INFINITY: Self = Self {
        low: 0,
        high: 0xF800_0000_0000_0000,
    };
    /// Quiet NaN.
    pub const NAN: Self = Self {
        low: 0,
        high: 0x7C00_0000_0000_0000,
    };

    /// From BSON's 16 little-endian bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let bits = u128::from_le_bytes(bytes);
        Self {
            low: bits as u64,
            high: (bits >> 64) as u64,
        }
    }

    /// BSON's 16 little-endian bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.high) << 64) | u128::from(self.low)).to_le_bytes()
    }

    fn bid(self) -> BID128 {
        BID128::new(self.low, self.high)
    }

    fn from_bid(value: BID128) -> Self {
        // SAFETY: `BID128` is a `repr(C)` wrapper of `[u64; 2]` (low word first), which it does not
        // let out otherwise; any bit pattern is a valid `u64`.
        let [low, high] = unsafe { std::mem::transmute::<BID128, [u64; 2]>(value) };
        Self { low, high }
    }

    /// Exact.
    pub fn from_i32(value: i32) -> Self {
        Self::from_bid(bid128_from_int32(value))
    }

    /// Exact.
    pub fn from_i64(value: i64) -> Self {
        Self::from_bid(bid128_from_int64(value))
    }

    /// Nearest decimal with 34 digits: every digit of the double that fits, and no zeros after the last one of the
    /// fraction. For comparing, and for sums of both types.
    pub fn from_f64_exact(value: f64) -> Self {
        let exact = Self::from_f64_digits(value, 33);
        let Some(mut parts) = exact.parts() else {
            return exact;
        };
        while parts.exponent < 0 && parts.coefficient % 10 == 0 {
            parts.coefficient /= 10;
            parts.exponent += 1;
        }
        Self::from_parts(parts).unwrap_or(exact)
    }

    /// Rounded to 15 digits, the precision a double is sure to have. MongoDB converts doubles this way
    /// in arithmetic and `$toDecimal`.
    pub fn from_f64(value: f64) -> Self {
        Self::from_f64_digits(value, 14)
    }

    fn from_f64_digits(value: f64, decimals: usize) -> Self {
        if value.is_nan() {
            return Self::NAN;
        }
        if value.is_infinite() {
            return if value > 0.0 {
                Self::INFINITY
            } else {
                Self::NEG_INFINITY
            };
        }
        if value == 0.0 {
            return if value.is_sign_negative() {
                Self::ZERO.negate()
            } else {
                Self::ZERO
            };
        }
        let mut flags = 0;
        let text = format!("{value:.decimals$e}");
        Self::from_bid(bid128_from_string(&text, RND_NEAREST_EVEN, &mut flags))
    }

    /// Reads the text form: digits with an optional point and exponent, `Infinity`, `inf`, `NaN`, any
    /// case, optional sign. `None` when the text is none of these. The flags tell about rounding,
    /// overflow and underflow.
    pub fn parse(text: &str) -> Option<(Self, DecimalFlags)> {
        Self::parse_rounding(text, RND_NEAREST_EVEN)
    }

    /// As [`Decimal128::parse`], with the digits after the 34th cut off instead of rounded.
    pub fn parse_truncating(text: &str) -> Option<(Self, DecimalFlags)> {
        Self::parse_rounding(text, RND_TOWARD_ZERO)
    }

    fn parse_rounding(text: &str, rounding: u32) -> Option<(Self, DecimalFlags)> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let negative = text.starts_with('-');
        match unsigned.to_ascii_lowercase().as_str() {
            "inf" | "infinity" => {
                return Some((
                    if negative { Self::NEG_INFINITY } else { Self::INFINITY },
                    DecimalFlags::default(),
                ));
            }
            "nan" => {
                return Some((
                    if negative { Self::NAN.negate() } else { Self::NAN },
                    DecimalFlags::default(),
                ));
            }
            _ => {}
        }
        if !is_decimal_literal(unsigned) {
            return None;
        }
        let mut flags = 0;
        let value = bid128_from_string(text, rounding, &mut flags);
        Some((Self::from_bid(value), DecimalFlags(flags)))
    }

    /// Coefficient and exponent of a finite number; `None` for infinities and NaN. A coefficient beyond
    /// 34 digits is non-canonical and counts as zero, as the standard says.
    pub fn parts(self) -> Option<DecimalParts> {
        let negative = self.high >> 63 == 1;
        if self.high & 0x7800_0000_0000_0000 == 0x7800_0000_0000_0000 {
            return None;
        }
        let (exponent, coefficient) = if self.high & 0x6000_0000_0000_0000 == 0x6000_0000_0000_0000 {
            // The large form: its coefficient would start at 2^113, above the largest.
            (((self.high >> 47) & 0x3FFF) as i32, 0)
        } else {
            let coefficient = (u128::from(self.high & 0x0001_FFFF_FFFF_FFFF) << 64) | u128::from(self.low);
            (((self.high >> 49) & 0x3FFF) as i32, coefficient)
        };
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Some(DecimalParts {
            negative,
            coefficient,
            exponent: exponent - EXPONENT_BIAS,
        })
    }

    /// Inverse of [`Decimal128::parts`]; `None` when a part is out of range.
    pub fn from_parts(parts: DecimalParts) -> Option<Self> {
        if parts.coefficient > COEFFICIENT_MAX || !(EXPONENT_MIN..=EXPONENT_MAX).contains(&parts.exponent) {
            return None;
        }
        let biased = (parts.exponent + EXPONENT_BIAS) as u64;
        let high = (u64::from(parts.negative) << 63) | (biased << 49) | (parts.coefficient >> 64) as u64;
        Some(Self {
            low: parts.coefficient as u64,
            high,
        })
    }

    /// The same number with as many digits as fit, 34 unless the exponent is too small; zero, infinities and NaN as they are.
    #[must_use]
    pub fn with_all_digits(self) -> Self {
        let Some(mut parts) = self.parts().filter(|parts| parts.coefficient > 0) else {
            return self;
        };
        while parts.coefficient <= COEFFICIENT_MAX / 10 && parts.exponent > EXPONENT_MIN {
            parts.coefficient *= 10;
            parts.exponent -= 1;
        }
        Self::from_parts(parts).unwrap_or(self)
    }

    /// Nearest double.
    pub fn to_f64(self) -> f64 {
        let mut flags = 0;
        bid128_to_binary64(self.bid(), RND_NEAREST_EVEN, &mut flags)
    }

    /// The integer this is exactly, if it is one that fits.
    pub fn to_i64_exact(self) -> Option<i64> {
        let mut flags = 0;
        let n = bid128_to_int64_xint(self.bid(), &mut flags);
        (flags == 0).then_some(n)
    }

    /// Truncated towards zero; `None` when it does not fit (NaN and infinities included).
    pub fn to_i64_truncated(self) -> Option<i64> {
        let mut flags = 0;
        let n = bid128_to_int64_int(self.bid(), &mut flags);
        (flags & FLAG_INVALID == 0).then_some(n)
    }

    /// Rounded half to even; `None` when it does not fit (NaN and infinities included).
    pub fn to_i64_rounded(self) -> Option<i64> {
        let mut flags = 0;
        let n = bid128_to_int64_rnint(self.bid(), &mut flags);
        (flags & FLAG_INVALID == 0).then_some(n)
    }

    /// True for quiet and signalling NaN.
    pub fn is_nan(self) -> bool {
        self.high & 0x7C00_0000_0000_0000 == 0x7C00_0000_0000_0000
    }

    /// True for both infinities.
    pub fn is_infinite(self) -> bool {
        self.high & 0x7C00_0000_0000_0000 == 0x7800_0000_0000_0000
    }

    /// Neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        self.parts().is_some()
    }

    /// True for zeros of either sign and any exponent.
    pub fn is_zero(self) -> bool {
        self.parts().is_some_and(|p| p.coefficient == 0)
    }

    /// The sign bit, also of zeros and NaN.
    pub fn is_negative(self) -> bool {
        self.high >> 63 == 1
    }

    /// Flips the sign bit.
    #[must_use]
    pub fn negate(self) -> Self {
        Self {
            low: self.low,
            high: self.high ^ (1 << 63),
        }
    }

    /// Clears the sign bit.
    #[must_use]
    pub fn abs(self) -> Self {
        Self {
            low: self.low,
            high: self.high & !(1 << 63),
        }
    }

    binary! {
        /// Sum.
        add = bid128_add,
        /// Difference.
        sub = bid128_sub,
        /// Product.
        mul = bid128_mul,
        /// Quotient; infinite or NaN for a zero divisor.
        div = bid128_div,
        /// Power.
        pow = bid128_pow,
        /// Arc tangent of `self / other` with the quadrant of the pair.
        atan2 = bid128_atan2,
    }

    unary! {
        /// Square root; NaN below zero.
        sqrt = bid128_sqrt,
        /// e to the power.
        exp = bid128_exp,
        /// Natural logarithm.
        ln = bid128_log,
        /// Logarithm to base 10.
        log10 = bid128_log10,
        /// Logarithm to base 2.
        log2 = bid128_log2,
        /// Sine.
        sin = bid128_sin,
        /// Cosine.
        cos = bid128_cos,
        /// Tangent.
        tan = bid128_tan,
        /// Arc sine.
        asin = bid128_asin,
        /// Arc cosine.
        acos = bid128_acos,
        /// Arc tangent.
        atan = bid128_atan,
        /// Hyperbolic sine.
        sinh = bid128_sinh,
        /// Hyperbolic cosine.
        cosh = bid128_cosh,
        /// Hyperbolic tangent.
        tanh = bid128_tanh,
        /// Inverse hyperbolic sine.
        asinh = bid128_asinh,
        /// Inverse hyperbolic cosine.
        acosh = bid128_acosh,
        /// Inverse hyperbolic tangent.
        atanh = bid128_atanh,
    }

    unary_exact! {
        /// Largest integer not above.
        floor = bid128_round_integral_negative,
        /// Smallest integer not below.
        ceil = bid128_round_integral_positive,
        /// Integer part.
        trunc = bid128_round_integral_zero,
        /// Nearest integer, half to even.
        round = bid128_round_integral_nearest_even,
    }

    /// Remainder of the truncated quotient, with the sign of `self`.
    pub fn rem(self, other: Self) -> Self {
        let mut flags = 0;
        Self::from_bid(bid128_fmod(self.bid(), other.bid(), &mut flags))
    }

    /// `self` with the exponent of `other`, rounded half to even; NaN when that takes over 34 digits.
    pub fn quantize(self, other: Self) -> Self {
        let mut flags = 0;
        Self::from_bid(bid128_quantize(self.bid(), other.bid(), RND_NEAREST_EVEN, &mut flags))
    }

    /// Numeric order with every NaN equal and below all numbers; -0 equals 0.
    pub fn total_cmp(self, other: Self) -> Ordering {
        match (self.is_nan(), other.is_nan()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let mut flags = 0;
        if bid128_quiet_less(self.bid(), other.bid(), &mut flags) {
            Ordering::Less
        } else if bid128_quiet_equal(self.bid(), other.bid(), &mut flags) {
            Ordering::Equal
        } else {
            Ordering::Greater
        }
    }
}

/// Digits with at most one point, at least one digit, and an optional exponent.
fn is_decimal_literal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let points = mantissa.bytes().filter(|b| *b == b'.').count();
    let exponent_good = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit())
    });
    digits > 0 && points <= 1 && digits + points == mantissa.len() && exponent_good
}

/// The specification's text: plain digits when the exponent is at most 0 and the number is not tiny,
/// scientific otherwise.
impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parts) = self.parts() else {
            return f.write_str(match (self.is_nan(), self.is_negative()) {
                (true, _) => "NaN",
                (false, true) => "-Infinity",
                (false, false) => "Infinity",
            });
        };
        if parts.negative {
            f.write_str("-")?;
        }
        let digits = parts.coefficient.to_string();
        let count = digits.len() as i32;
        let adjusted = parts.exponent + count - 1;
        if parts.exponent > 0 || adjusted < -6 {
            f.write_str(&digits[..1])?;
            if count > 1 {
                write!(f, ".{}", &digits[1..])?;
            }
            return write!(f, "E{adjusted:+}");
        }
        let point = count + parts.exponent;
        if parts.exponent == 0 {
            f.write_str(&digits)
        } else if point > 0 {
            let (whole, fraction) = digits.split_at(point as usize);
            write!(f, "{whole}.{fraction}")
        } else {
            write!(f, "0.{}{digits}", "0".repeat(-point as usize))
        }
    }
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(text: &str) -> Decimal128 {
        Decimal128::parse(text).expect("a decimal").0
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "0",
            "-0",
            "1",
            "-1",
            "0.1",
            "1.10",
            "1E+3",
            "1.0E+3",
            "0.000001",
            "1E-7",
            "1.234E-7",
            "Infinity",
            "-Infinity",
            "NaN",
            "9999999999999999999999999999999999",
            "1E-6176",
            "9.999999999999999999999999999999999E+6144",
            "0E+3",
            "0.00",
        ] {
            assert_eq!(dec(text).to_string(), text);
        }
        for (text, shown) in [
            ("inf", "Infinity"),
            ("-INF", "-Infinity"),
            ("+1", "1"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1e3", "1E+3"),
        ] {
            assert_eq!(dec(text).to_string(), shown, "{text}");
        }
        for bad in [
            "", "-", "1a", "e3", "1e", ".", "1.2.3", "0x1", " 1", "1 ", "--1", "infinit",
        ] {
            assert!(Decimal128::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn parts_round_trip() {
        let parts = DecimalParts {
            negative: true,
            coefficient: 123_450,
            exponent: -3,
        };
        let value = Decimal128::from_parts(parts).expect("in range");
        assert_eq!(value.to_string(), "-123.450");
        assert_eq!(value.parts(), Some(parts));
        assert_eq!(Decimal128::NAN.parts(), None);
        assert_eq!(Decimal128::ONE.parts(), Decimal128::from_i64(1).parts());
    }

    #[test]
    fn arithmetic_is_ieee() {
        assert_eq!(dec("0.1").add(dec("0.2")).to_string(), "0.3");
        assert_eq!(
            dec("1").div(dec("3")).to_string(),
            "0.3333333333333333333333333333333333"
        );
        assert_eq!(dec("7").rem(dec("-3")).to_string(), "1");
        assert_eq!(dec("2.5").round().to_string(), "2");
        assert_eq!(dec("-2.5").floor().to_string(), "-3");
        assert_eq!(dec("4").sqrt().to_string(), "2");
        assert!(dec("1").div(Decimal128::ZERO).is_infinite());
        assert!(Decimal128::ZERO.div(Decimal128::ZERO).is_nan());
    }

    #[test]
    fn conversions() {
        assert_eq!(Decimal128::from_f64(0.1).to_string(), "0.100000000000000");
        assert_eq!(
            Decimal128::from_f64_exact(0.1).to_string(),
            "0.1000000000000000055511151231257827"
        );
        assert_eq!(dec("2.5").to_i64_exact(), None);
        assert_eq!(dec("2.0").to_i64_exact(), Some(2));
        assert_eq!(dec("-2.9").to_i64_truncated(), Some(-2));
        assert_eq!(dec("9223372036854775808").to_i64_truncated(), None);
        assert_eq!(Decimal128::NAN.to_i64_truncated(), None);
        assert!(Decimal128::parse("1E+7000").expect("a literal").1.overflow());
        assert!(Decimal128::parse("1E-7000").expect("a literal").1.underflow());
    }
}
