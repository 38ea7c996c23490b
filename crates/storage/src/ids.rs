//! Numbers that name things of the store.

use std::fmt;

/// One ordered key space: the records of a collection, or one index. Never used again once dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(pub u32);

impl TreeId {
    /// The key space that holds the durable catalog.
    pub const CATALOG: TreeId = TreeId(0);
}

/// Identity of a collection or view, kept through renames. Never used again once dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CollectionId(pub u32);

/// Identity of an index. Never used again once dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexId(pub u32);

/// Position of a commit in the order of all commits: 1 for the first, no holes. What a commit is durable up to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
