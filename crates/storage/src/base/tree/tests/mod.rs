//! The tree against the model, and on bad days.

mod bad_bytes;
mod bad_days;
mod bad_structure;
pub(crate) mod disk;
mod model;
mod shape;

use std::collections::BTreeMap;
use std::path::Path;

use super::super::{ApplyStats, Base, BaseSnapshot, Change, KeyRange, Result, changes};
use super::{Tree, TreeOptions, empty_file};
use disk::Disk;

/// Numbers that look random and are the same in every run (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    /// Whether an event of this probability happens.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Bytes that do not pack, other ones for each seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..len).map(|_| (random.next() >> 20) as u8).collect()
}

/// Changes by key, as `apply` wants them.
type Batch = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The contents of a state.
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

const SMALL: TreeOptions = TreeOptions {
    cache_bytes_max: 1 << 20,
    read_only: false,
    page_bytes: 512,
    packs: false,
};

fn empty_disk() -> Disk {
    Disk::with(empty_file(SMALL.page_bytes, SMALL.packs))
}

fn open(disk: &Disk, options: TreeOptions) -> Result<Tree> {
    Tree::open_file(Box::new(disk.clone()), Path::new("base"), options)
}

fn apply(tree: &Tree, batch: &Batch, meta: &[u8]) -> Result<ApplyStats> {
    tree.apply(
        &[],
        &mut changes(batch.iter().map(|(key, value)| Change {
            key,
            value: value.as_deref(),
        })),
        meta,
    )
}

fn delete_range(tree: &Tree, start: &[u8], end: Option<&[u8]>) -> Result<ApplyStats> {
    tree.apply(&[KeyRange { start, end }], &mut changes([]), b"")
}

/// Everything that a cursor finds; each entry is also asked for by its key.
fn read_all(snapshot: &std::sync::Arc<dyn BaseSnapshot>) -> Result<Entries> {
    let mut entries = Entries::new();
    let mut cursor = snapshot.clone().cursor();
    let mut more = cursor.first()?;
    while more {
        let value = cursor.value()?.to_vec();
        assert_eq!(snapshot.get(cursor.key())?.as_deref(), Some(&value[..]));
        entries.insert(cursor.key().to_vec(), value);
        more = cursor.next()?;
    }
    Ok(entries)
}

/// What a state becomes.
fn with(entries: &Entries, batch: &Batch) -> Entries {
    let mut entries = entries.clone();
    for (key, value) in batch {
        match value {
            Some(value) => drop(entries.insert(key.clone(), value.clone())),
            None => drop(entries.remove(key)),
        }
    }
    entries
}

/// A batch of `len` changes to a thousand keys: a third removes, one in twenty has a value outside its leaf.
fn some_changes(random: &mut Random, len: usize) -> Batch {
    (0..len)
        .map(|_| {
            let key = format!("key {:03}", random.below(1_000)).into_bytes();
            let len = if random.percent(5) {
                300 + random.below(1_500)
            } else {
                random.below(80)
            };
            let byte = random.next() as u8;
            (key, (!random.percent(33)).then(|| vec![byte; len]))
        })
        .collect()
}
