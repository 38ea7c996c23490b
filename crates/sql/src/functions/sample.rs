//! What `TABLESAMPLE` decides by.

use super::Row;
use crate::error::fail;
use nestor_model::Value;

/// The function that a percentage goes through.
pub(crate) const PERCENT: &str = "sample percentage";
/// The function that the number of REPEATABLE goes through.
pub(crate) const SEED: &str = "sample seed";
/// Whether a record is one of the sample: its key, the percentage, the seed, and whether all of a block are together.
pub(crate) const TAKES: &str = "is of sample";

/// Bits of a record's number by which records of a block differ: blocks have 64 records.
const BLOCK_BITS: u8 = 6;

/// A number that all of these bytes and the seed have a say in, from 0 up to 1.
fn chance(bytes: &[u8], seed: f64) -> f64 {
    let mut hash = seed.to_bits() ^ 0x9E37_79B9_7F4A_7C15;
    for byte in bytes {
        hash = mixed(hash ^ u64::from(*byte));
    }
    (mixed(hash) >> 11) as f64 / (1u64 << 53) as f64
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators").
fn mixed(mut n: u64) -> u64 {
    n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

pub(super) const ROWS: &[Row] = &[
    (PERCENT, "?float8->float8", |a, _, _| match &a[0] {
        Value::Double(n) if (0.0..=100.0).contains(n) => Ok(a[0].clone()),
        Value::Null => fail("2202H", "TABLESAMPLE parameter cannot be null"),
        _ => fail("2202H", "sample percentage must be between 0 and 100"),
    }),
    (SEED, "?float8->float8", |a, _, _| match &a[0] {
        Value::Null => fail("2202G", "TABLESAMPLE REPEATABLE parameter cannot be null"),
        seed => Ok(seed.clone()),
    }),
    (TAKES, "bytea,float8,float8,bool->bool", |a, _, _| {
        let (Value::Binary(key), Value::Double(percent), Value::Double(seed), Value::Bool(by_block)) =
            (&a[0], &a[1], &a[2], &a[3])
        else {
            return Ok(Value::Null);
        };
        let mut key = key.bytes.to_vec();
        if let (true, Some(last)) = (*by_block, key.last_mut()) {
            *last >>= BLOCK_BITS;
        }
        Ok(Value::Bool(chance(&key, *seed) * 100.0 < *percent))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_spread() {
        let below = (0..10_000u64).filter(|n| chance(&n.to_be_bytes(), 0.5) < 0.3).count();
        assert!((2_700..3_300).contains(&below), "{below}");
        assert!(chance(b"a", 1.0) != chance(b"a", 2.0));
    }
}
