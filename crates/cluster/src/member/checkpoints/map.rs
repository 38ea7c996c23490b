//! Where the blocks of a checkpoint's base are: in packs, objects of up to 512 blocks of this checkpoint or of those before it.
//!
//! | size | meaning |
//! |---|---|
//! | 8 | `NestorBM` |
//! | 4 | format version: 1 |
//! | 4 | number of packs |
//! | | for each pack: the address of the log beside which it is (2 bytes of length; empty for this one) and its name (2 bytes of length) |
//! | 4 | number of runs |
//! | 12 each | a run of blocks, of which the first follows the last of the run before: the pack, the first block's place in it, their number |
//!
//! Numbers are little-endian. Bytes of an example: `tests::bytes_of_a_map`.

use crate::LogError;
use nestor_storage::BLOCK_BYTES;

/// Most blocks in a pack.
pub(super) const PACK_BLOCKS: u32 = 512;
/// Most bytes of a pack.
pub(super) const PACK_BYTES: usize = PACK_BLOCKS as usize * BLOCK_BYTES;
const MAGIC: &[u8; 8] = b"NestorBM";
const VERSION: u32 = 1;

/// An object that has blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Pack {
    /// The address of the log beside which it is; empty for the one whose checkpoint this is.
    pub(super) store: String,
    /// Its name among the files of that log.
    pub(super) name: String,
}

/// Where a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Which of the map's packs.
    pub(super) pack: u32,
    /// Which block of it.
    pub(super) slot: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    first: Place,
    count: u32,
}

/// The blocks of a base, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct BlockMap {
    pub(super) packs: Vec<Pack>,
    runs: Vec<Run>,
}

impl BlockMap {
    /// Says where the next block is.
    pub(super) fn push(&mut self, place: Place) {
        if let Some(Run { first, count }) = self.runs.last_mut()
            && first.pack == place.pack
            && first.slot + *count == place.slot
        {
            *count += 1;
            return;
        }
        let first = place;
        self.runs.push(Run { first, count: 1 });
    }

    /// Where the blocks are, from the first one on.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let place = |run: &Run, at| Place {
            pack: run.first.pack,
            slot: run.first.slot + at,
        };
        self.runs
            .iter()
            .flat_map(move |run| (0..run.count).map(move |at| place(run, at)))
    }

    /// For each pack the number of its blocks that the base has.
    pub(super) fn used(&self) -> Vec<u32> {
        let mut used = vec![0; self.packs.len()];
        for Run { first, count } in &self.runs {
            used[first.pack as usize] += count;
        }
        used
    }

    /// For each pack its pieces: the number of the first block in the base, its place in the pack, and the number of blocks.
    pub(super) fn pieces(&self) -> Vec<Vec<(u64, u32, u32)>> {
        let mut pieces = vec![Vec::new(); self.packs.len()];
        let mut number = 0;
        for Run { first, count } in &self.runs {
            pieces[first.pack as usize].push((number, first.slot, *count));
            number += u64::from(*count);
        }
        pieces
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let number = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u32).to_le_bytes());
        number(&mut out, VERSION as usize);
        number(&mut out, self.packs.len());
        for Pack { store, name } in &self.packs {
            for text in [store, name] {
                out.extend_from_slice(&(text.len() as u16).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
        number(&mut out, self.runs.len());
        for Run { first, count } in &self.runs {
            for n in [first.pack, first.slot, *count] {
                out.extend_from_slice(&n.to_le_bytes());
            }
        }
        out
    }

    /// Errors: [`LogError::Damaged`] for bytes of something else.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, LogError> {
        let damaged = || LogError::Damaged("the map of a checkpoint's blocks".into());
        let mut left = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        if number(&mut left) != Some(VERSION) {
            return Err(damaged());
        }
        let map = contents(&mut left).ok_or_else(damaged)?;
        match left.is_empty() {
            true => Ok(map),
            false => Err(damaged()),
        }
    }
}

fn number(left: &mut &[u8]) -> Option<u32> {
    let (number, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(u32::from_le_bytes(*number))
}

fn text(left: &mut &[u8]) -> Option<String> {
    let (length, rest) = left.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *left = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn contents(left: &mut &[u8]) -> Option<BlockMap> {
    let mut map = BlockMap::default();
    for _ in 0..number(left)? {
        let (store, name) = (text(left)?, text(left)?);
        map.packs.push(Pack { store, name });
    }
    for _ in 0..number(left)? {
        let (pack, slot, count) = (number(left)?, number(left)?, number(left)?);
        let is_sound = (pack as usize) < map.packs.len() && slot.checked_add(count)? <= PACK_BLOCKS && count > 0;
        if !is_sound {
            return None;
        }
        let first = Place { pack, slot };
        map.runs.push(Run { first, count });
    }
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> BlockMap {
        let pack = |store: &str, name: &str| Pack {
            store: store.into(),
            name: name.into(),
        };
        let mut map = BlockMap {
            packs: vec![pack("", "packs/b/0"), pack("s3://o/x", "packs/a/7")],
            runs: Vec::new(),
        };
        for (pack, slot) in [(1, 0), (1, 1), (0, 0), (1, 3), (0, 1)] {
            map.push(Place { pack, slot });
        }
        map
    }

    #[test]
    fn bytes_of_a_map() {
        let mut expected = b"NestorBM\x01\0\0\0\x02\0\0\0".to_vec();
        expected.extend_from_slice(b"\0\0\x09\0packs/b/0\x08\0s3://o/x\x09\0packs/a/7");
        expected.extend_from_slice(b"\x04\0\0\0");
        for run in [[1, 0, 2], [0, 0, 1], [1, 3, 1], [0, 1, 1]] {
            run.iter()
                .for_each(|n: &u32| expected.extend_from_slice(&n.to_le_bytes()));
        }
        assert_eq!(example().encode(), expected);
    }

    #[test]
    fn it_is_read_as_it_was_written_or_refused() {
        let map = example();
        let bytes = map.encode();
        assert_eq!(BlockMap::decode(&bytes), Ok(map.clone()));
        assert_eq!(map.used(), [2, 3]);
        assert_eq!(map.pieces(), [vec![(2, 0, 1), (4, 1, 1)], vec![(0, 0, 2), (3, 3, 1)]]);
        let places: Vec<_> = map.places().map(|place| (place.pack, place.slot)).collect();
        assert_eq!(places, [(1, 0), (1, 1), (0, 0), (1, 3), (0, 1)]);
        for end in 0..bytes.len() {
            assert!(BlockMap::decode(&bytes[..end]).is_err(), "cut off at {end}");
        }
        let mut wrong = map;
        wrong.push(Place { pack: 2, slot: 0 });
        assert!(BlockMap::decode(&wrong.encode()).is_err(), "there is no such pack");
    }
}
