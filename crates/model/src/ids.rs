//! Object ids, timestamps and record ids.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A 12-byte BSON ObjectId: 4 bytes seconds (big-endian), 5 bytes of process identity, 3 bytes counter.
/// Ordered bytewise, as BSON orders it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// A fresh id made at `now_ms`, milliseconds since the Unix epoch. Ids that this process makes in one second ascend,
    /// except where the counter wraps around.
    ///
    /// Source: ObjectId specification of the drivers.
    pub fn generate(now_ms: i64) -> Self {
        /// The identity of the process and the first value of its counter are random.
        static PROCESS: LazyLock<([u8; 5], AtomicU32)> = LazyLock::new(|| {
            // The standard library's hasher is seeded from the system's randomness.
            let [a, b, c, d, e, counter @ ..] = RandomState::new().build_hasher().finish().to_be_bytes();
            (
                [a, b, c, d, e],
                AtomicU32::new(u32::from_be_bytes([0, counter[0], counter[1], counter[2]])),
            )
        });
        let (process, counter) = &*PROCESS;
        let mut id = [0; 12];
        id[..4].copy_from_slice(&(now_ms.div_euclid(1000) as u32).to_be_bytes());
        id[4..9].copy_from_slice(process);
        id[9..].copy_from_slice(&counter.fetch_add(1, Relaxed).to_be_bytes()[1..]);
        Self(id)
    }

    /// Parses 24 hexadecimal digits; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 24 {
            return None;
        }
        let mut out = [0u8; 12];
        for (i, pair) in bytes.chunks_exact(2).enumerate() {
            let hi = (pair[0] as char).to_digit(16)?;
            let lo = (pair[1] as char).to_digit(16)?;
            out[i] = (hi * 16 + lo) as u8;
        }
        Some(Self(out))
    }

    /// Seconds since the Unix epoch that the id carries.
    pub fn timestamp_secs(&self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId(\"{self}\")")
    }
}

/// A BSON timestamp: seconds and an increment within the second. Also the optime of an oplog entry.
/// Ordered by `secs`, then `inc`, both unsigned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Timestamp {
    /// Seconds since the Unix epoch.
    pub secs: u32,
    /// Ordinal within the second.
    pub inc: u32,
}

impl Timestamp {
    /// The 64-bit form BSON stores: seconds in the high half.
    pub fn to_u64(self) -> u64 {
        (u64::from(self.secs) << 32) | u64::from(self.inc)
    }

    /// Inverse of [`Timestamp::to_u64`].
    pub fn from_u64(bits: u64) -> Self {
        Self {
            secs: (bits >> 32) as u32,
            inc: bits as u32,
        }
    }
}

/// Identity of a record within its collection. Monotonic in insertion order, starts at 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RecordId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_object_ids_ascend() {
        let ids: Vec<ObjectId> = (0..100).map(|_| ObjectId::generate(1_700_000_000_999)).collect();
        assert!(ids.iter().all(|id| id.timestamp_secs() == 1_700_000_000));
        // Unless the counter wraps around just here.
        assert!(ids.windows(2).filter(|pair| pair[0] < pair[1]).count() >= 98);
    }

    #[test]
    fn object_id_text_round_trips() {
        let id = ObjectId::parse("507f1f77bcf86cd799439011").expect("valid hex");
        assert_eq!(id.to_string(), "507f1f77bcf86cd799439011");
        assert_eq!(id.timestamp_secs(), 0x507f_1f77);
        for bad in [
            "",
            "507f1f77bcf86cd79943901",
            "507f1f77bcf86cd79943901g",
            "507f1f77bcf86cd7994390111",
        ] {
            assert_eq!(ObjectId::parse(bad), None, "{bad}");
        }
    }
}
