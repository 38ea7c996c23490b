//! The read set of a serializable transaction: ranges of keys.
//!
//! A look-up reads its key, whether it is there or not. A cursor reads everything from where it was put to where it stands in
//! the end, both included: that nothing else lay between is part of what it saw, so a key that another commit puts
//! there (a phantom) counts as well as one that it changes or removes. Since a scan stops at the first key behind its bounds, the
//! gap up to there counts as read, too.
//!
//! Memory is bounded: when a set has grown too large, neighbouring ranges become one with what lies between them. That only
//! makes more commits conflict.

use crate::{Bytes, TreeId};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;

/// About how many bytes the ranges of one set may take.
const BYTES_MAX: usize = 4 << 20;
/// The memory that a range takes beside its keys.
const RANGE_BYTES: usize = 64;

/// From a key, included, to another, included, or (`None`) to the end of the tree.
type Ranges = BTreeMap<Bytes, Option<Bytes>>;

/// Ranges of keys by tree, which are disjoint.
#[derive(Debug)]
pub(crate) struct ReadSet {
    trees: BTreeMap<TreeId, Ranges>,
    bytes: usize,
    bytes_max: usize,
}

/// A set that cursors and look-ups of one write set add to.
pub(crate) type SharedReads = Mutex<ReadSet>;

impl Default for ReadSet {
    fn default() -> Self {
        Self::new(BYTES_MAX)
    }
}

impl ReadSet {
    fn new(bytes_max: usize) -> Self {
        Self {
            trees: BTreeMap::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Adds one key.
    pub(crate) fn add_key(&mut self, tree: TreeId, key: &[u8]) {
        if !self.contains(tree, key) {
            let key = Bytes::copy_from(key);
            self.add(tree, key.clone(), Some(key));
        }
    }

    /// Adds all keys from `from` on, or from the first one, up to `to`, or the last one.
    pub(crate) fn add_range(&mut self, tree: TreeId, from: Option<&[u8]>, to: Option<&[u8]>) {
        self.add(
            tree,
            Bytes::copy_from(from.unwrap_or_default()),
            to.map(Bytes::copy_from),
        );
    }

    fn add(&mut self, tree: TreeId, mut from: Bytes, mut to: Option<Bytes>) {
        let ranges = self.trees.entry(tree).or_default();
        // Ranges that it touches become part of it: one that begins before it, and those that begin in it.
        if let Some((start, end)) = ranges.range::<Bytes, _>(..=&from).next_back() {
            if reaches(end.as_ref(), &from) {
                from = start.clone();
            }
        }
        let end = to.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let inside: Vec<Bytes> = ranges
            .range::<Bytes, _>((Bound::Included(&from), end))
            .map(|(start, _)| start.clone())
            .collect();
        for start in inside {
            let Some(end) = ranges.remove(&start) else { continue };
            self.bytes -= weight(&start, end.as_ref());
            to = match (to, end) {
                (Some(to), Some(end)) => Some(to.max(end)),
                _ => None,
            };
        }
        self.bytes += weight(&from, to.as_ref());
        ranges.insert(from, to);
        while self.bytes > self.bytes_max && self.coarsen() {}
    }

    /// Makes one of every two neighbouring ranges of the tree that has most; false if none has two.
    fn coarsen(&mut self) -> bool {
        let largest = self.trees.values_mut().max_by_key(|ranges| ranges.len());
        let Some(ranges) = largest.filter(|ranges| ranges.len() > 1) else {
            return false;
        };
        let mut old = std::mem::take(ranges).into_iter();
        while let Some((from, mut to)) = old.next() {
            self.bytes -= weight(&from, to.as_ref());
            if let Some((next, end)) = old.next() {
                self.bytes -= weight(&next, end.as_ref());
                to = end;
            }
            self.bytes += weight(&from, to.as_ref());
            ranges.insert(from, to);
        }
        true
    }

    /// Whether `key` was read.
    pub(crate) fn contains(&self, tree: TreeId, key: &[u8]) -> bool {
        let Some(ranges) = self.trees.get(&tree) else {
            return false;
        };
        let mut before = ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        before.next_back().is_some_and(|(_, end)| reaches(end.as_ref(), key))
    }

    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }
}

fn reaches(end: Option<&Bytes>, key: &[u8]) -> bool {
    end.is_none_or(|end| end.as_slice() >= key)
}

fn weight(from: &Bytes, to: Option<&Bytes>) -> usize {
    RANGE_BYTES + from.len() + to.map_or(0, |to| to.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeId = TreeId(7);

    fn ranges(reads: &ReadSet) -> Vec<(String, Option<String>)> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let ranges = reads.trees.get(&TREE).into_iter().flatten();
        ranges.map(|(from, to)| (text(from), to.as_ref().map(text))).collect()
    }

    fn range(from: &str, to: &str) -> (String, Option<String>) {
        (from.into(), Some(to.into()))
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut reads = ReadSet::default();
        for (from, to) in [("d", "f"), ("k", "m"), ("a", "b"), ("f", "g"), ("c", "c")] {
            reads.add_range(TREE, Some(from.as_bytes()), Some(to.as_bytes()));
        }
        reads.add_key(TREE, b"e");
        assert_eq!(
            ranges(&reads),
            [range("a", "b"), range("c", "c"), range("d", "g"), range("k", "m")]
        );
        reads.add_range(TREE, Some(b"b"), Some(b"l"));
        assert_eq!(ranges(&reads), [range("a", "m")]);
        reads.add_range(TREE, Some(b"z"), None);
        reads.add_range(TREE, None, Some(b"0"));
        assert_eq!(ranges(&reads), [range("", "0"), range("a", "m"), ("z".into(), None)]);
        reads.add_range(TREE, None, None);
        assert_eq!(ranges(&reads), [("".into(), None)]);
    }

    #[test]
    fn a_range_contains_its_ends_and_what_lies_between() {
        let mut reads = ReadSet::default();
        reads.add_range(TREE, Some(b"d"), Some(b"f"));
        reads.add_key(TREE, b"x");
        let inside = ["d", "da", "e", "f", "x"];
        let outside = ["", "c", "cz", "f0", "w", "x0"];
        assert!(inside.iter().all(|key| reads.contains(TREE, key.as_bytes())));
        assert!(!outside.iter().any(|key| reads.contains(TREE, key.as_bytes())));
        assert!(!reads.contains(TreeId(8), b"e"));
    }

    /// However much is read, the set stays small and forgets nothing.
    #[test]
    fn a_large_set_is_coarsened() {
        let mut reads = ReadSet::new(10_000);
        let key = |i: u64| (i * 7919 % 100_003).to_be_bytes();
        for i in 0..5_000 {
            reads.add_key(TreeId(3 + (i % 2) as u32), &key(i));
        }
        assert!(reads.bytes <= 10_000);
        let ranges = reads.trees.values().flatten();
        assert_eq!(
            reads.bytes,
            ranges.map(|(from, to)| weight(from, to.as_ref())).sum::<usize>()
        );
        assert!((0..5_000).all(|i| reads.contains(TreeId(3 + (i % 2) as u32), &key(i))));
        let long = vec![b'x'; 20_000];
        reads.add_key(TREE, &long);
        assert!(reads.contains(TREE, &long), "a single key may be longer than the limit");
    }
}
