//! Keys that write sets hold without writing them, alone or in common.
//!
//! A key that is held is as it was in the write set's snapshot, and stays so until the write set has gone: who writes it meanwhile finds a claim, as of a
//! key that was written. A *name* is no key of a tree but stands for something that statements agree on, as a row that others refer to. What its holders read
//! and write depends on each other, so a commit leaves its names here: who holds one of them with an older state conflicts, unless both held it in common.
//! Names are kept by hash, as claims are, until no snapshot is older than their commits.

use crate::{Bytes, TreeId};
use std::collections::HashMap;

/// Names that are kept at most; write sets older than those that were forgotten conflict.
const NAMES_MAX: usize = 1 << 20;
/// Names from which on it is worth looking for those that nobody asks for any more.
const SWEEP: usize = 1024;
/// Set in the number of a tree whose names, not keys, are meant.
const OF_NAMES: u32 = 1 << 31;

/// A key or a name that a write set holds.
#[derive(Clone)]
pub(crate) struct Hold {
    pub(crate) tree: TreeId,
    pub(crate) key: Bytes,
    /// Nobody else holds it.
    pub(crate) alone: bool,
}

impl Hold {
    /// A name, of those that go with a tree.
    pub(crate) fn name(tree: TreeId, name: Bytes, alone: bool) -> Self {
        debug_assert!(tree.0 & OF_NAMES == 0, "so many trees are never made");
        Self {
            tree: TreeId(tree.0 | OF_NAMES),
            key: name,
            alone,
        }
    }

    pub(crate) fn is_name(&self) -> bool {
        self.tree.0 & OF_NAMES != 0
    }
}

/// The numbers of the last commits that held a name in common and alone.
#[derive(Clone, Copy, Default)]
struct Last {
    shared: u64,
    alone: u64,
}

/// The names that commits held, by hash.
#[derive(Default)]
pub(crate) struct HeldNames {
    last: HashMap<u64, Last>,
    sweep: usize,
    /// Commits up to this one may be forgotten.
    from: u64,
}

impl HeldNames {
    /// Notes a name that the commit `seq` held.
    pub(crate) fn note(&mut self, seq: u64, name: u64, alone: bool) {
        let last = self.last.entry(name).or_default();
        match alone {
            true => last.alone = seq,
            false => last.shared = seq,
        }
    }

    /// Whether a commit after `seen` held a name in a way that does not go together with holding it.
    pub(crate) fn is_in_the_way(&self, seen: u64, name: u64, alone: bool) -> bool {
        let last = self.last.get(&name).copied().unwrap_or_default();
        seen < self.from || last.alone > seen || alone && last.shared > seen
    }

    /// Forgets what no snapshot from `oldest` on asks for.
    pub(crate) fn sweep(&mut self, oldest: u64, newest: u64) {
        if self.last.len() <= self.sweep.max(SWEEP) {
            return;
        }
        self.last.retain(|_, last| last.shared.max(last.alone) > oldest);
        if self.last.len() > NAMES_MAX {
            self.last.clear();
            self.from = newest;
        }
        self.last.shrink_to(2 * SWEEP);
        self.sweep = 2 * self.last.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_held_in_common_are_in_nobody_elses_way() {
        let mut names = HeldNames::default();
        names.note(5, 1, false);
        names.note(7, 2, true);
        let asked = [
            (4, 1, false),
            (4, 1, true),
            (5, 1, true),
            (6, 2, false),
            (6, 2, true),
            (7, 2, true),
        ];
        let ways = asked.map(|(seen, name, alone)| names.is_in_the_way(seen, name, alone));
        assert_eq!(ways, [false, true, false, true, true, false]);
    }

    #[test]
    fn what_no_snapshot_asks_for_is_forgotten() {
        let mut names = HeldNames::default();
        for name in 0..5000 {
            names.note(name + 1, name, true);
        }
        names.sweep(4990, 5000);
        assert_eq!(names.last.len(), 10);
        assert!(names.is_in_the_way(4999, 4999, true) && !names.is_in_the_way(5000, 4999, true));
        for name in 0..=NAMES_MAX as u64 {
            names.note(9_000_000, name, false);
        }
        names.sweep(0, 9_000_000);
        assert!(names.last.is_empty());
        assert!(names.is_in_the_way(8_999_999, 1, false) && !names.is_in_the_way(9_000_000, 1, true));
    }
}
