//! IEEE 754-2008 decimal128 in BSON's binary integer (BID) encoding.

#![allow(unsafe_code)]

use dfp_number_sys::bid128_000::*;
use dfp_number_sys::{BID128, RND_NEAREST_EVEN};
use std::cmp::Ordering;
use std::fmt;

/// A decimal128. The bytes are kept exactly as given: trailing zeros, the sign of zero and NaN payloads
/// survive. Numeric comparison is [`Decimal128::total_cmp`]; `==` compares bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128 {
    low: u64,
    high: u64,
}

impl Decimal128 {
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

    pub(crate) fn bid(self) -> BID128 {
        BID128::new(self.low, self.high)
    }

    pub(crate) fn from_bid(value: BID128) -> Self {
        // SAFETY: `BID128` is a `repr(C)` wrapper of `[u64; 2]` (low word first), which it does not
        // let out otherwise; any bit pattern is a valid `u64`.
        let [low, high] = unsafe { std::mem::transmute::<BID128, [u64; 2]>(value) };
        Self { low, high }
    }

    /// Exact.
    pub fn from_i64(value: i64) -> Self {
        Self::from_bid(bid128_from_int64(value))
    }

    /// Nearest decimal with 34 digits: every digit of the double that fits.
    pub fn from_f64_exact(value: f64) -> Self {
        let mut flags = 0;
        let text = if value.is_finite() {
            format!("{value:.33e}")
        } else {
            format!("{value}")
        };
        Self::from_bid(bid128_from_string(&text, RND_NEAREST_EVEN, &mut flags))
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

    /// True for quiet and signalling NaN.
    pub fn is_nan(self) -> bool {
        bid128_is_nan(self.bid())
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

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", (u128::from(self.high) << 64) | u128::from(self.low))
    }
}
