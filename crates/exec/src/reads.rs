//! What a tree of operators read: the totals that explain prints for a plan and for the stages that read other
//! collections.

use crate::operator::Operator;
use crate::summary::totals;
use std::collections::BTreeSet;

/// Totals over operators.
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
    /// What a tree read so far, its stages' own reading of other collections included.
    pub fn of(root: &dyn Operator) -> Self {
        let mut reads = Self::default();
        reads.add(root);
        reads
    }

    /// Adds what a tree read so far.
    pub fn add(&mut self, root: &dyn Operator) {
        let counters = root.counters();
        self.docs_examined += counters.docs_examined;
        self.keys_examined += counters.keys_examined;
        self.collection_scans += u64::from(root.stage() == "COLLSCAN");
        if root.stage() == "IDHACK" {
            self.indexes_used.insert("_id_".into());
        } else if let Some(index) = root.index() {
            self.indexes_used.insert(index.name.to_string());
        }
        root.add_reads(self);
        for input in root.inputs() {
            self.add(input);
        }
    }

    /// As [`Reads::add`]; scans and names of indexes, which only explain shows, if it is `explained`.
    pub fn note(&mut self, root: &dyn Operator, explained: bool) {
        if explained {
            return self.add(root);
        }
        let totals = totals(root);
        self.docs_examined += totals.docs_examined;
        self.keys_examined += totals.keys_examined;
    }

    /// Adds other totals.
    pub fn merge(&mut self, other: &Self) {
        self.docs_examined += other.docs_examined;
        self.keys_examined += other.keys_examined;
        self.collection_scans += other.collection_scans;
        self.indexes_used.extend(other.indexes_used.iter().cloned());
    }
}
