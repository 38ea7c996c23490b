//! Watches: which records were written since someone began to look.
//!
//! Whoever derives something from all records of a collection while they go on changing (an index build) reads a
//! snapshot and later makes up for what was written after it. A watch tells what that is: from the moment it begins, the
//! sequencer notes the key of every record that a commit puts or deletes. Beginning and reading it happen under the
//! sequencer's lock, together with taking a snapshot, so that for two snapshots taken with a watch the keys between them are exactly those
//! written by the commits after the first and up to the second.

use crate::cursor::Overlay;
use crate::{Bytes, TreeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A watch on the records of one tree; it ends when this is dropped.
pub struct Watch {
    pub(crate) state: Arc<WatchState>,
    pub(crate) brakes: Arc<Brakes>,
}

impl Watch {
    /// Makes commits wait that long for each record of the tree that they write, so that whoever watches can keep up
    /// with them, at most 50 milliseconds. Zero, and dropping the watch, let them go.
    pub fn slow_writers(&self, each: Duration) {
        let mut slowed = self.brakes.slowed.lock().expect("no holder of the lock panics");
        slowed.retain(|(state, _)| !Arc::ptr_eq(state, &self.state));
        if !each.is_zero() {
            slowed.push((self.state.clone(), each));
        }
        self.brakes.count.store(slowed.len(), Ordering::Release);
    }

    /// How many records were written since it was read last.
    pub fn noted(&self) -> usize {
        self.state.touched.lock().expect("no holder of the lock panics").len()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.slow_writers(Duration::ZERO);
    }
}

/// Longest time that a commit waits.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// The writers to be slowed down. While there are none it costs a commit one load.
#[derive(Default)]
pub(crate) struct Brakes {
    count: AtomicUsize,
    slowed: Mutex<Vec<(Arc<WatchState>, Duration)>>,
}

impl Brakes {
    /// Waits as long as a commit has to that writes `trees`. The caller holds no lock.
    pub(crate) fn wait(&self, trees: &BTreeMap<TreeId, Arc<Overlay>>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let slowed = self.slowed.lock().expect("no holder of the lock panics");
        let wait = slowed.iter().filter_map(|(state, each)| {
            let records = trees.get(&state.tree)?.len();
            Some(each.saturating_mul(u32::try_from(records).unwrap_or(u32::MAX)))
        });
        let wait = wait.max().unwrap_or_default().min(WAIT_MAX);
        drop(slowed);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }
}

/// What the sequencer knows of a watch.
pub(crate) struct WatchState {
    pub(crate) tree: TreeId,
    touched: Mutex<Touched>,
}

impl WatchState {
    pub(crate) fn new(tree: TreeId) -> Self {
        Self {
            tree,
            touched: Mutex::default(),
        }
    }

    pub(crate) fn note(&self, overlay: &Overlay) {
        let mut touched = self.touched.lock().expect("no holder of the lock panics");
        overlay.keys().for_each(|key| touched.insert(key));
    }

    pub(crate) fn note_keys<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let mut touched = self.touched.lock().expect("no holder of the lock panics");
        keys.for_each(|key| touched.insert(key));
    }

    pub(crate) fn take(&self) -> Touched {
        std::mem::take(&mut self.touched.lock().expect("no holder of the lock panics"))
    }
}

/// A set of record keys. Record ids take a bit each where neighbours are in the set too, so that what is inserted during a
/// long build costs next to nothing, and about 24 bytes where they are scattered; other keys are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Bit `i` of the word at `n` stands for the key of eight bytes that is the number `64 n + i`, big-endian.
    ids: BTreeMap<u64, u64>,
    keys: BTreeSet<Bytes>,
    len: usize,
}

impl Touched {
    /// Adds a key.
    pub fn insert(&mut self, key: &[u8]) {
        let added = match <[u8; 8]>::try_from(key) {
            Ok(id) => {
                let id = u64::from_be_bytes(id);
                let word = self.ids.entry(id / 64).or_default();
                let bit = 1 << (id % 64);
                let added = *word & bit == 0;
                *word |= bit;
                added
            }
            Err(_) => self.keys.insert(Bytes::copy_from(key)),
        };
        self.len += usize::from(added);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for key in other.iter() {
            self.insert(&key);
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The keys, each once.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        let ids = self.ids.iter().flat_map(|(high, word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| Bytes::from((high * 64 + bit).to_be_bytes()))
        });
        ids.chain(self.keys.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back_once() {
        let mut touched = Touched::default();
        let ids = [0u64, 1, 63, 64, 1 << 40, u64::MAX];
        let mut expected: Vec<Vec<u8>> = ids.iter().map(|id| id.to_be_bytes().to_vec()).collect();
        expected.extend([b"seven b".to_vec(), b"nine byte".to_vec(), Vec::new()]);
        for key in expected.iter().chain(&expected) {
            touched.insert(key);
        }
        let mut merged = Touched::default();
        merged.insert(&7u64.to_be_bytes());
        merged.merge(touched.clone());
        assert_eq!((touched.len(), merged.len()), (9, 10));
        let mut found: Vec<Vec<u8>> = touched.iter().map(|key| key.to_vec()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}
