//! Arithmetic on BSON numbers: promotion and overflow.
//!
//! The result has the wider type of the two operands, in the order int, long, double, decimal. An int
//! result that does not fit becomes a long. What happens when a long does not fit depends on the caller:
//! expressions go on in double ([`Num::add`], ...), updates refuse ([`Num::checked_add`], ...).
//! Source: manual, `$add`, `$multiply`, `$inc`, `$mul`.

use crate::{Decimal128, Value, ValueRef};

/// A BSON number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Num {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

/// A number as a 64-bit integer: fractions of doubles are cut off, those of decimals round half to even, what is out of
/// range is clamped, NaN is 0. `None` for other types.
pub fn safe_i64(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(v) => Some(v.into()),
        ValueRef::Int64(v) => Some(v),
        ValueRef::Double(v) => Some(v as i64),
        // Only what does not fit takes the detour through a double, which would lose digits: a decimal just above one
        // half is 1.
        ValueRef::Decimal128(v) => Some(v.to_i64_rounded().unwrap_or_else(|| v.to_f64() as i64)),
        _ => None,
    }
}

/// Operands brought to one type, and whether both were int.
enum Pair {
    Int(i64, i64, bool),
    Double(f64, f64),
    Decimal(Decimal128, Decimal128),
}

impl Num {
    /// The number, if the value is one.
    pub fn from_ref(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Int32(v) => Some(Num::Int32(v)),
            ValueRef::Int64(v) => Some(Num::Int64(v)),
            ValueRef::Double(v) => Some(Num::Double(v)),
            ValueRef::Decimal128(v) => Some(Num::Decimal(v)),
            _ => None,
        }
    }

    /// As a double; longs and decimals may round.
    pub fn to_f64(self) -> f64 {
        match self {
            Num::Int32(v) => f64::from(v),
            Num::Int64(v) => v as f64,
            Num::Double(v) => v,
            Num::Decimal(v) => v.to_f64(),
        }
    }

    /// As a decimal; doubles round to 15 digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Num::Int32(v) => Decimal128::from_i32(v),
            Num::Int64(v) => Decimal128::from_i64(v),
            Num::Double(v) => Decimal128::from_f64(v),
            Num::Decimal(v) => v,
        }
    }

    /// The integer this is exactly, whatever its type: `2`, `2.0` and `Decimal("2.00")` are 2.
    pub fn to_i64_exact(self) -> Option<i64> {
        match self {
            Num::Int32(v) => Some(i64::from(v)),
            Num::Int64(v) => Some(v),
            Num::Double(v) => f64_to_i64_exact(v),
            Num::Decimal(v) => v.to_i64_exact(),
        }
    }

    /// True for NaN of either type.
    pub fn is_nan(self) -> bool {
        match self {
            Num::Double(v) => v.is_nan(),
            Num::Decimal(v) => v.is_nan(),
            _ => false,
        }
    }

    /// Neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        match self {
            Num::Double(v) => v.is_finite(),
            Num::Decimal(v) => v.is_finite(),
            _ => true,
        }
    }

    /// True for zero of any type and sign.
    pub fn is_zero(self) -> bool {
        match self {
            Num::Int32(v) => v == 0,
            Num::Int64(v) => v == 0,
            Num::Double(v) => v == 0.0,
            Num::Decimal(v) => v.is_zero(),
        }
    }

    fn pair(self, other: Self) -> Pair {
        match (self, other) {
            (Num::Decimal(_), _) | (_, Num::Decimal(_)) => Pair::Decimal(self.to_decimal(), other.to_decimal()),
            (Num::Double(_), _) | (_, Num::Double(_)) => Pair::Double(self.to_f64(), other.to_f64()),
            (Num::Int32(a), Num::Int32(b)) => Pair::Int(i64::from(a), i64::from(b), true),
            (Num::Int32(a), Num::Int64(b)) => Pair::Int(i64::from(a), b, false),
            (Num::Int64(a), Num::Int32(b)) => Pair::Int(a, i64::from(b), false),
            (Num::Int64(a), Num::Int64(b)) => Pair::Int(a, b, false),
        }
    }

    fn combine(
        self,
        other: Self,
        int: fn(i64, i64) -> Option<i64>,
        double: fn(f64, f64) -> f64,
        decimal: fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Option<Self> {
        Some(match self.pair(other) {
            Pair::Int(a, b, narrow) => Self::from_i64(int(a, b)?, narrow),
            Pair::Double(a, b) => Num::Double(double(a, b)),
            Pair::Decimal(a, b) => Num::Decimal(decimal(a, b)),
        })
    }

    /// An int when `narrow` and it fits, else a long.
    pub fn from_i64(value: i64, narrow: bool) -> Self {
        match i32::try_from(value) {
            Ok(v) if narrow => Num::Int32(v),
            _ => Num::Int64(value),
        }
    }

    /// Sum; `None` when a long overflows.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_add, |a, b| a + b, Decimal128::add)
    }

    /// Difference; `None` when a long overflows.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_sub, |a, b| a - b, Decimal128::sub)
    }

    /// Product; `None` when a long overflows.
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        self.combine(other, i64::checked_mul, |a, b| a * b, Decimal128::mul)
    }

    /// Sum; a long that overflows becomes a double.
    pub fn add(self, other: Self) -> Self {
        self.checked_add(other)
            .unwrap_or_else(|| Num::Double(self.to_f64() + other.to_f64()))
    }

    /// Difference; a long that overflows becomes a double.
    pub fn sub(self, other: Self) -> Self {
        self.checked_sub(other)
            .unwrap_or_else(|| Num::Double(self.to_f64() - other.to_f64()))
    }

    /// Product; a long that overflows becomes a double.
    pub fn mul(self, other: Self) -> Self {
        self.checked_mul(other)
            .unwrap_or_else(|| Num::Double(self.to_f64() * other.to_f64()))
    }

    /// Quotient: a decimal if one of both is one, else a double; `None` by zero.
    pub fn checked_div(self, other: Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        Some(match self.pair(other) {
            Pair::Decimal(a, b) => Num::Decimal(a.div(b)),
            Pair::Int(..) | Pair::Double(..) => Num::Double(self.to_f64() / other.to_f64()),
        })
    }

    /// Remainder, with the sign of the dividend; `None` by zero.
    pub fn checked_rem(self, other: Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        Some(match self.pair(other) {
            Pair::Int(a, b, narrow) => Self::from_i64(a.wrapping_rem(b), narrow),
            Pair::Double(a, b) => Num::Double(double_rem(a, b)),
            Pair::Decimal(a, b) => Num::Decimal(a.rem(b)),
        })
    }
}

/// `a % b`: of whole numbers by a division of these, which is ten times as fast.
pub fn double_rem(a: f64, b: f64) -> f64 {
    /// Whole numbers up to this are exact.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    let (whole_a, whole_b) = (a as i64, b as i64);
    let is_whole = |value: f64, whole: i64| value.abs() <= WHOLE_MAX && whole as f64 == value;
    match is_whole(a, whole_a) && is_whole(b, whole_b) && whole_b != 0 {
        true => ((whole_a % whole_b) as f64).copysign(a),
        false => a % b,
    }
}

impl From<Num> for Value {
    fn from(n: Num) -> Self {
        match n {
            Num::Int32(v) => Value::Int32(v),
            Num::Int64(v) => Value::Int64(v),
            Num::Double(v) => Value::Double(v),
            Num::Decimal(v) => Value::Decimal128(v),
        }
    }
}

impl From<Num> for ValueRef<'_> {
    fn from(n: Num) -> Self {
        match n {
            Num::Int32(v) => ValueRef::Int32(v),
            Num::Int64(v) => ValueRef::Int64(v),
            Num::Double(v) => ValueRef::Double(v),
            Num::Decimal(v) => ValueRef::Decimal128(v),
        }
    }
}

/// A number that is a whole one in the range of `i64`; `None` for other numbers and other types.
pub fn whole_number(value: ValueRef<'_>) -> Option<i64> {
    Num::from_ref(value).and_then(Num::to_i64_exact)
}

/// The integer a double is exactly, if it is one that fits.
pub fn f64_to_i64_exact(v: f64) -> Option<i64> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    (v.trunc() == v && (-TWO_63..TWO_63).contains(&v)).then_some(v as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_of_doubles_are_those_of_the_machine() {
        let big = 9_007_199_254_740_993.0;
        let all = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            24.0,
            -24.0,
            25.5,
            1e300,
            big,
            -big,
            7.0,
            f64::INFINITY,
            f64::NAN,
        ];
        for a in all {
            for b in all {
                let same = (double_rem(a, b).to_bits() == (a % b).to_bits()) || (a % b).is_nan();
                assert!(same, "{a} % {b}");
            }
        }
    }

    #[test]
    fn promotion_and_overflow() {
        let (int, long, double) = (Num::Int32, Num::Int64, Num::Double);
        assert_eq!(int(1).add(int(2)), int(3));
        assert_eq!(int(i32::MAX).add(int(1)), long(2_147_483_648));
        assert_eq!(int(1).add(long(1)), long(2));
        assert_eq!(long(i64::MAX).checked_add(int(1)), None);
        assert_eq!(long(i64::MAX).add(int(1)), double(9_223_372_036_854_775_808.0));
        assert_eq!(int(2).mul(double(0.5)), double(1.0));
        assert_eq!(long(i64::MIN).checked_sub(int(1)), None);
        assert_eq!(
            Value::from(double(0.5).add(Num::Decimal(Decimal128::ONE))).bson_type(),
            crate::BsonType::Decimal
        );
        assert_eq!(double(2.0).to_i64_exact(), Some(2));
        assert_eq!(double(9.3e18).to_i64_exact(), None);
        assert_eq!(double(f64::NAN).to_i64_exact(), None);
    }
}
