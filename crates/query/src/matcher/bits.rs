//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`.
//!
//! Bit 0 is the least significant. Numbers count as 64-bit two's complement, sign-extended without end;
//! binary data is little-endian by bytes, zero-extended.

use nestor_model::number::whole_number;
use nestor_model::{BsonType, Error, Result, Value, ValueRef, bail};

/// The condition on the tested bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum BitOp {
    AllSet,
    AnySet,
    AllClear,
    AnyClear,
}

impl BitOp {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllSet => "$bitsAllSet",
            Self::AnySet => "$bitsAnySet",
            Self::AllClear => "$bitsAllClear",
            Self::AnyClear => "$bitsAnyClear",
        }
    }
}

/// A bit test: the operator and the positions it looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTest {
    op: BitOp,
    /// Positions below 64 as a mask.
    low: u64,
    /// Positions from 64 on, ascending, distinct.
    high: Box<[u32]>,
}

impl BitTest {
    /// Parses a mask (a number not negative, or binary data) or an array of positions.
    ///
    /// # Errors
    /// 2 for an operand of another type or a bad position, 9 for a number that is not a whole one or is negative.
    pub fn parse(op: BitOp, value: ValueRef<'_>) -> Result<Self> {
        let name = op.name();
        let mut low = 0;
        let mut high = Vec::new();
        match value {
            ValueRef::Array(items) => {
                for item in items {
                    let position = position(name, item)?;
                    match position {
                        0..64 => low |= 1 << position,
                        _ => high.push(position),
                    }
                }
            }
            ValueRef::Binary { bytes, .. } => {
                for (i, byte) in bytes.iter().enumerate() {
                    if i < 8 {
                        low |= u64::from(*byte) << (8 * i);
                    } else {
                        let base = (i as u32).saturating_mul(8);
                        high.extend((0..8).filter(|bit| byte >> bit & 1 == 1).map(|bit| base + bit));
                    }
                }
            }
            _ if value.is_number() => match whole_number(value) {
                Some(mask @ 0..) => low = mask as u64,
                Some(_) => bail!(FailedToParse, "expected a non-negative number in: {name}: {value:?}"),
                None => bail!(FailedToParse, "expected an integer in: {name}: {value:?}"),
            },
            _ => bail!(
                BadValue,
                "{name} takes an array, a number, or a BinData but received: {}",
                value.bson_type().alias()
            ),
        }
        high.sort_unstable();
        high.dedup();
        Ok(Self {
            op,
            low,
            high: high.into(),
        })
    }

    /// The operator.
    pub fn op(&self) -> BitOp {
        self.op
    }

    /// The positions, ascending, as explain prints them.
    pub fn positions(&self) -> impl Iterator<Item = u32> {
        (0..64)
            .filter(|p| self.low >> p & 1 == 1)
            .chain(self.high.iter().copied())
    }

    /// The positions as an array value.
    pub fn positions_value(&self) -> Value {
        Value::Array(self.positions().map(|p| Value::Int32(p as i32)).collect())
    }

    /// Whether a value passes. Only whole numbers that fit 64 bits and binary data can.
    pub fn matches(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Binary { bytes, .. } => {
                let mut word = [0; 8];
                let n = bytes.len().min(8);
                word[..n].copy_from_slice(&bytes[..n]);
                let bit = |p: u32| bytes.get(p as usize / 8).is_some_and(|b| b >> (p % 8) & 1 == 1);
                self.decide(u64::from_le_bytes(word), || self.high.iter().map(|p| bit(*p)))
            }
            _ if value.is_number() => match whole_number(value) {
                Some(n) => self.decide(n as u64, || self.high.iter().map(move |_| n < 0)),
                None => false,
            },
            _ => false,
        }
    }

    fn decide<I: Iterator<Item = bool>>(&self, word: u64, high: impl Fn() -> I) -> bool {
        match self.op {
            BitOp::AllSet => word & self.low == self.low && high().all(|b| b),
            BitOp::AnySet => word & self.low != 0 || high().any(|b| b),
            BitOp::AllClear => word & self.low == 0 && !high().any(|b| b),
            BitOp::AnyClear => word & self.low != self.low || high().any(|b| !b),
        }
    }
}

fn position(name: &str, item: ValueRef<'_>) -> Result<u32> {
    let bad = |what: &str| Error::bad_value(format!("bit positions {what} but got: {name}: {item:?}"));
    if !item.is_number() {
        return Err(bad("must be an integer"));
    }
    match whole_number(item) {
        Some(n) if n < 0 => Err(bad("must be >= 0")),
        Some(n) => match i32::try_from(n) {
            Ok(n) => Ok(n as u32),
            Err(_) => Err(bad("must fit a 32-bit signed integer")),
        },
        None if item.bson_type() == BsonType::Double => Err(bad("must be an integer")),
        None => Err(bad("must be an integer that fits 32 bits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Binary, Decimal128};

    fn test(op: BitOp, operand: &Value, value: &Value) -> bool {
        BitTest::parse(op, operand.as_ref())
            .expect("valid")
            .matches(value.as_ref())
    }

    fn binary(bytes: &[u8]) -> Value {
        Value::Binary(Binary {
            subtype: 0,
            bytes: bytes.into(),
        })
    }

    #[test]
    fn numbers_and_binary_data() {
        use BitOp::*;
        let at = |positions: &[i32]| Value::Array(positions.iter().map(|p| Value::from(*p)).collect());
        let fifty_four = Value::from(54); // 0b110110
        assert!(test(AllSet, &at(&[1, 5]), &fifty_four) && !test(AllSet, &at(&[0, 1]), &fifty_four));
        assert!(test(AnySet, &at(&[0, 1]), &fifty_four) && !test(AnySet, &at(&[0, 3]), &fifty_four));
        assert!(test(AllClear, &at(&[0, 3]), &fifty_four) && !test(AllClear, &at(&[0, 1]), &fifty_four));
        assert!(test(AnyClear, &at(&[0, 1]), &fifty_four) && !test(AnyClear, &at(&[1, 2]), &fifty_four));
        assert!(test(AllSet, &at(&[200]), &Value::Int64(-1)) && !test(AllSet, &at(&[200]), &Value::Int64(i64::MAX)));
        assert!(test(
            AllSet,
            &binary(&[0, 0, 0, 0, 0, 0, 0, 0, 2]),
            &binary(&[1, 0, 0, 0, 0, 0, 0, 0, 6])
        ));
        assert!(test(AllClear, &at(&[80]), &binary(&[255])));
        assert!(test(AllSet, &3.into(), &Value::Decimal128(Decimal128::from_i64(7))));
        assert!(!test(AllSet, &0.into(), &1.5.into()) && !test(AllClear, &0.into(), &"1".into()));
        // Of no positions, all are set and all are clear.
        assert!(test(AllSet, &at(&[]), &0.into()) && test(AllClear, &at(&[]), &0.into()));
        assert!(!test(AnySet, &at(&[]), &0.into()) && !test(AnyClear, &at(&[]), &0.into()));
    }

    #[test]
    fn errors() {
        let code = |v: Value| {
            BitTest::parse(BitOp::AllSet, v.as_ref())
                .expect_err("invalid")
                .code()
                .number()
        };
        assert_eq!(code("x".into()), 2);
        assert_eq!(code((-1).into()), 9);
        assert_eq!(code(1.5.into()), 9);
        for position in [Value::from(-1), 1.5.into(), "x".into(), Value::Int64(1 << 31)] {
            assert_eq!(code(vec![position].into()), 2);
        }
    }
}
