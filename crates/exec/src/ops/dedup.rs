//! Deduplication, for operators that may meet a record several times: it comes out once.

use crate::kept::Kept;
use crate::row::Row;
use nestor_model::{Document, Result, Value};
use nestor_storage::Bytes;
use std::collections::{HashMap, HashSet};

/// The records that came out so far.
#[derive(Debug, Default)]
pub(crate) struct Dedup {
    seen: Seen,
    tested: u64,
    dropped: u64,
}

/// A set of record keys, and the memory it takes.
#[derive(Debug, Default)]
struct Seen {
    /// Record ids by all but their last two bytes.
    ids: HashMap<u64, Chunk>,
    /// Keys that are no record ids: those of clustered collections.
    keys: HashSet<Bytes>,
    kept: Kept,
}

/// The last two bytes of record ids: as a sorted list, or as a bit for each once that takes less.
///
/// So the records of a collection take at most a bit each, and few records some bytes each.
#[derive(Debug)]
enum Chunk {
    Few(Vec<u16>),
    Many(Box<[u64; CHUNK_WORDS]>),
}

const CHUNK_WORDS: usize = (1 << 16) / 64;
/// As many take as much as bits would.
const FEW_MAX: usize = CHUNK_WORDS * size_of::<u64>() / size_of::<u16>();
/// The memory that a chunk takes beside its contents, and that of a key, about.
const CHUNK_BYTES: usize = 64;
const KEY_BYTES: usize = 64;

impl Dedup {
    /// Whether the row is the first one of its record. Rows without a record are no duplicates.
    ///
    /// Errors: those of [`Kept::grow`]. There is no limit of its own: with a bit for each record there is little to limit.
    pub(crate) fn is_new(&mut self, row: &Row) -> Result<bool> {
        match &row.record {
            Some(record) => self.is_new_record(record),
            None => Ok(true),
        }
    }

    /// Whether the record did not come out before. Errors as those of [`Dedup::is_new`].
    pub(crate) fn is_new_record(&mut self, record: &[u8]) -> Result<bool> {
        self.tested += 1;
        let new = self.seen.insert(record)?;
        self.dropped += u64::from(!new);
        Ok(new)
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.seen.ids.clear();
        self.seen.keys.clear();
        self.seen.kept.clear();
    }

    /// `dupsTested` and `dupsDropped` of explain.
    pub(super) fn plan_fields(&self, out: &mut Document) {
        out.push("dupsTested", Value::count(self.tested));
        out.push("dupsDropped", Value::count(self.dropped));
    }

    /// Bytes it holds, about.
    pub(super) fn memory(&self) -> usize {
        self.seen.kept.bytes()
    }

    /// The operator that has it is saved.
    pub(crate) fn rest(&mut self) {
        self.seen.kept.rest();
    }
}

impl Seen {
    /// Adds a key; `false` when it was there.
    fn insert(&mut self, record: &[u8]) -> Result<bool> {
        let Ok(id) = record.try_into().map(u64::from_be_bytes) else {
            if self.keys.contains(record) {
                return Ok(false);
            }
            self.keys.insert(Bytes::copy_from(record));
            self.kept.grow(KEY_BYTES + record.len())?;
            return Ok(true);
        };
        let mut grown = 0;
        let chunk = self.ids.entry(id >> 16).or_insert_with(|| {
            grown = CHUNK_BYTES;
            Chunk::Few(Vec::new())
        });
        let before = chunk.bytes();
        let is_new = chunk.insert(id as u16);
        grown += chunk.bytes() - before;
        if grown > 0 {
            self.kept.grow(grown)?;
        }
        Ok(is_new)
    }
}

impl Chunk {
    fn insert(&mut self, id: u16) -> bool {
        let bit = |id: u16| (usize::from(id / 64), 1u64 << (id % 64));
        match self {
            Self::Few(ids) => {
                // Records mostly come in the order of their ids, or in none.
                let at = match ids.last() {
                    Some(last) if *last < id => ids.len(),
                    _ => match ids.binary_search(&id) {
                        Ok(_) => return false,
                        Err(at) => at,
                    },
                };
                if ids.len() < FEW_MAX {
                    ids.insert(at, id);
                    return true;
                }
                let mut bits = Box::new([0; CHUNK_WORDS]);
                for id in ids.iter().chain([&id]) {
                    let (word, bit) = bit(*id);
                    bits[word] |= bit;
                }
                *self = Self::Many(bits);
                true
            }
            Self::Many(bits) => {
                let (word, bit) = bit(id);
                let is_new = bits[word] & bit == 0;
                bits[word] |= bit;
                is_new
            }
        }
    }

    /// Bytes of its contents; they only become more.
    fn bytes(&self) -> usize {
        match self {
            Self::Few(ids) => ids.capacity() * size_of::<u16>(),
            Self::Many(_) => FEW_MAX * size_of::<u16>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_set_of_records() {
        let mut random = 1u64;
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        // Neighbours in order, and ids far from each other.
        for range in [70_000u64, u64::MAX] {
            let (mut dedup, mut expected) = (Dedup::default(), BTreeSet::new());
            for at in 0..80_000u64 {
                let id = match at % 2 {
                    0 => at / 2 % range,
                    _ => next().wrapping_mul(next()) % range,
                };
                let is_new = dedup.is_new_record(&id.to_be_bytes()).expect("room");
                assert_eq!(is_new, expected.insert(id), "{id}");
            }
            for id in &expected {
                assert!(!dedup.is_new_record(&id.to_be_bytes()).expect("room"));
            }
        }
    }

    #[test]
    fn a_record_of_a_collection_takes_a_bit() {
        let mut dedup = Dedup::default();
        for id in 0..200_000u64 {
            dedup.is_new_record(&id.to_be_bytes()).expect("room");
        }
        assert!(dedup.memory() < 4 * 9_000, "{}", dedup.memory());
        dedup.clear();
        assert_eq!(dedup.memory(), 0);
    }

    #[test]
    fn keys_that_are_no_record_ids_are_counted() {
        let mut dedup = Dedup::default();
        for at in 0..10 {
            let key = format!("key number {at}");
            assert!(dedup.is_new_record(key.as_bytes()).expect("room"));
            assert!(!dedup.is_new_record(key.as_bytes()).expect("room"));
        }
        assert_eq!(dedup.memory(), 10 * (KEY_BYTES + 12));
    }
}
