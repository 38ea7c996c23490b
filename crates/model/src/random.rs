//! Numbers that look random, from a state that is handed in; not for secrets.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A splitmix64 sequence that threads may share. The same seed gives the same numbers for good.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Default)]
pub struct Random(AtomicU64);

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next UUID (version 4).
    pub fn next_uuid(&self) -> [u8; 16] {
        let (high, low) = (self.next(), self.next());
        uuid_of(high, low)
    }
}

impl Clone for Random {
    fn clone(&self) -> Self {
        Self::new(self.0.load(Relaxed))
    }
}

/// A UUID that is marked as version 4, variant 1 (RFC 9562, 5.4), of these bits.
pub fn uuid_of(high: u64, low: u64) -> [u8; 16] {
    let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // The first outputs of the paper's generator for seed 1234567.
        let random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn uuids_say_their_version() {
        let uuid = uuid_of(u64::MAX, u64::MAX);
        assert_eq!((uuid[6], uuid[8]), (0x4F, 0xBF));
        let uuid = Random::new(7).next_uuid();
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
    }
}
