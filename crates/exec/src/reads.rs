//! What a tree of operators read: the totals that explain prints for a plan and for the stages that read other
//! collections.

use std::collections::BTreeSet;

/// Totals over operators. [`Reads::of`] adds them up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Records read.
    pub docs_examined: u64,
    /// Index keys read.
    pub keys_examined: u64,
    /// Scans of whole collections.
    pub collection_scans: u64,
    /// Names of the indexes used.
    pub indexes_used: BTreeSet<String>,
}

impl Reads {
    /// Adds other totals.
    pub fn merge(&mut self, other: &Self) {
        self.docs_examined += other.docs_examined;
        self.keys_examined += other.keys_examined;
        self.collection_scans += other.collection_scans;
        self.indexes_used.extend(other.indexes_used.iter().cloned());
    }
}
