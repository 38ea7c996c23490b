//! Which documents have a value: pairs of the value's hash and the document's position, in memory or in a file.
//!
//! ```text
//! file   pair*, ascending
//! pair   u64 hash | u64 position      big-endian
//! ```
//!
//! Of a file, memory holds the first hash of each block of [`BLOCK`] pairs, so finding a hash reads one block, mostly.

use crate::key_sorter::KeySorter;
use crate::spill;
use hashbrown::HashTable;
use nestor_model::sort::sort_copies_by;
use nestor_model::statement::work;
use nestor_model::{Error, ErrorCode, Result};
use nestor_storage::base::ChangeSource;
use nestor_storage::{Scratch, ScratchFile};
use std::io::{BufWriter, Write};

const PAIR_BYTES: usize = 16;
/// Pairs of a block.
const BLOCK: usize = 256;
const BUFFER_BYTES: usize = 64 << 10;

type Pair = (u64, u64);

/// The pairs while they are collected.
pub(super) enum Collected {
    Memory(Vec<Pair>),
    /// On their way into a file in this directory.
    Disk(Box<KeySorter>, Scratch),
}

impl Collected {
    pub(super) fn new() -> Self {
        Self::Memory(Vec::new())
    }

    /// Adds that the document at `at` has a value with this hash.
    pub(super) fn push(&mut self, hash: u64, at: u64) -> Result<()> {
        match self {
            Self::Memory(pairs) => pairs.push((hash, at)),
            Self::Disk(sorter, _) => push(sorter, (hash, at))?,
        }
        Ok(())
    }

    /// Bytes in memory, about: those of the hash table to come among them. What goes to a file is counted by the sorter.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Memory(pairs) => memory_bytes(pairs),
            Self::Disk(..) => 0,
        }
    }

    /// Lets the pairs go to a file in `dir`, of which at most `memory_max` bytes are in memory from now on.
    pub(super) fn leave_memory(&mut self, dir: &Scratch, memory_max: usize) -> Result<()> {
        if let Self::Memory(pairs) = self {
            let mut sorter = KeySorter::new(memory_max, dir.to_owned());
            for pair in std::mem::take(pairs) {
                work(1)?;
                push(&mut sorter, pair)?;
            }
            *self = Self::Disk(Box::new(sorter), dir.to_owned());
        }
        Ok(())
    }

    /// Makes them ready to be found.
    pub(super) fn seal(self) -> Result<Entries> {
        match self {
            Self::Memory(mut pairs) => {
                sort_copies_by(&mut pairs, Pair::cmp)?;
                let mut starts = HashTable::new();
                let mut before = None;
                for (at, (hash, _)) in pairs.iter().enumerate() {
                    if before.replace(*hash) != Some(*hash) {
                        work(1)?;
                        starts.insert_unique(*hash, at, |start| pairs[*start].0);
                    }
                }
                Ok(Entries::Memory { pairs, starts })
            }
            Self::Disk(sorter, dir) => write(*sorter, &dir),
        }
    }
}

fn push(sorter: &mut KeySorter, (hash, at): Pair) -> Result<()> {
    let mut key = [0; PAIR_BYTES];
    key[..8].copy_from_slice(&hash.to_be_bytes());
    key[8..].copy_from_slice(&at.to_be_bytes());
    sorter.push(&key, &[])
}

fn memory_bytes(pairs: &Vec<Pair>) -> usize {
    pairs.capacity() * PAIR_BYTES + pairs.len() * size_of::<usize>()
}

fn write(sorter: KeySorter, dir: &Scratch) -> Result<Entries> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, spill::temporary_file(dir)?);
    let (mut firsts, mut len) = (Vec::new(), 0);
    let mut sorted = sorter.finish()?;
    while let Some(entry) = sorted.current() {
        work(1)?;
        if len % BLOCK == 0 {
            firsts.push(pair(entry.key)?.0);
        }
        len += 1;
        out.write_all(entry.key).map_err(spill::io_error)?;
        sorted.advance();
    }
    if let Some(error) = sorted.take_error() {
        return Err(error);
    }
    let file = out.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
    Ok(Entries::Disk { file, firsts, len })
}

fn pair(bytes: &[u8]) -> Result<Pair> {
    let (hash, at) = bytes
        .split_first_chunk()
        .and_then(|(hash, at)| Some((u64::from_be_bytes(*hash), u64::from_be_bytes(at.try_into().ok()?))))
        .ok_or_else(|| Error::new(ErrorCode::DataCorruptionDetected, "a spilled hash does not decode"))?;
    Ok((hash, at))
}

/// The pairs in order, to be found by their hashes.
pub(super) enum Entries {
    Memory {
        pairs: Vec<Pair>,
        /// Where the pairs of each hash begin.
        starts: HashTable<usize>,
    },
    Disk {
        file: ScratchFile,
        /// The first hash of each block.
        firsts: Vec<u64>,
        len: usize,
    },
}

/// Where one is among the pairs of a hash.
pub(super) struct Place {
    hash: u64,
    /// The next pair to look at.
    next: usize,
    /// Positions that were read from a file and not given out, the next one last.
    read: Vec<u64>,
}

impl Entries {
    /// Bytes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Memory { pairs, .. } => memory_bytes(pairs),
            Self::Disk { firsts, .. } => firsts.capacity() * size_of::<u64>(),
        }
    }

    /// The number of pairs in a file, if they are in one, and their bytes.
    pub(super) fn on_disk(&self) -> Option<(u64, u64)> {
        match self {
            Self::Memory { .. } => None,
            Self::Disk { len, .. } => Some((*len as u64, (*len * PAIR_BYTES) as u64)),
        }
    }

    /// Before the pairs of a hash.
    pub(super) fn place(&self, hash: u64) -> Place {
        let next = match self {
            Self::Memory { pairs, starts } => {
                let start = starts.find(hash, |start| pairs[*start].0 == hash);
                start.map_or(pairs.len(), |start| *start)
            }
            // They may begin at the end of the block before.
            Self::Disk { firsts, .. } => firsts.partition_point(|first| *first < hash).saturating_sub(1) * BLOCK,
        };
        Place {
            hash,
            next,
            read: Vec::new(),
        }
    }

    /// The next position of a document that has a value with the hash; they ascend.
    pub(super) fn next(&self, place: &mut Place) -> Result<Option<u64>> {
        match self {
            Self::Memory { pairs, .. } => {
                let found = pairs.get(place.next).filter(|(hash, _)| *hash == place.hash);
                place.next += 1;
                Ok(found.map(|(_, at)| *at))
            }
            Self::Disk { file, len, .. } => {
                while place.read.is_empty() && place.next < *len {
                    let count = BLOCK.min(len - place.next);
                    read_block(file, place, count, *len)?;
                }
                Ok(place.read.pop())
            }
        }
    }
}

/// Reads the positions of the block at `place`, and moves it behind that or to the end, which is at `len`.
fn read_block(file: &ScratchFile, place: &mut Place, count: usize, len: usize) -> Result<()> {
    let mut bytes = [0; BLOCK * PAIR_BYTES];
    let bytes = &mut bytes[..count * PAIR_BYTES];
    work(BLOCK / 16)?;
    file.read_exact_at(bytes, (place.next * PAIR_BYTES) as u64)
        .map_err(spill::io_error)?;
    place.next += count;
    for bytes in bytes.chunks_exact(PAIR_BYTES) {
        let (hash, at) = pair(bytes)?;
        if hash == place.hash {
            place.read.push(at);
        } else if hash > place.hash {
            place.next = len;
            break;
        }
    }
    place.read.reverse();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few different hashes, so that those of one fill several blocks, and many.
    #[test]
    fn a_file_finds_what_memory_finds() {
        for hashes in [3u64, 1_000_000] {
            let (mut memory, mut disk) = (Collected::new(), Collected::new());
            disk.leave_memory(&Scratch::plain(std::env::temp_dir()), 4_000)
                .expect("nothing in it");
            let mut expected = std::collections::BTreeMap::<u64, Vec<u64>>::new();
            for at in 0..3_000u64 {
                let hash = at.wrapping_mul(7_919) % hashes * 11;
                memory.push(hash, at).expect("room");
                disk.push(hash, at).expect("room");
                expected.entry(hash).or_default().push(at);
            }
            let (memory, disk) = (memory.seal().expect("sorted"), disk.seal().expect("written"));
            assert_eq!(disk.on_disk(), Some((3_000, 48_000)));
            assert!(disk.bytes() < 200, "{}", disk.bytes());
            for entries in [&memory, &disk] {
                let find = |hash| {
                    let mut place = entries.place(hash);
                    std::iter::from_fn(|| entries.next(&mut place).expect("readable")).collect::<Vec<u64>>()
                };
                for (hash, positions) in &expected {
                    assert_eq!(find(*hash), *positions);
                    assert!(find(hash + 1).is_empty());
                }
                assert!(find(u64::MAX).is_empty());
            }
        }
    }
}
