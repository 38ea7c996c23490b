//! What a tree of operators did: in few words and sums for the profiler, the slow-query log and `currentOp`, in full
//! for explain.

use crate::figures::Figures;
use crate::operator::{Choice, Operator};
use crate::reads::Reads;
use crate::text::shell;
use nestor_model::Document;
use nestor_planner::NodeKind;
use nestor_storage::{Catalog, Collection, CollectionId, Index};
use std::sync::Arc;

/// A leaf of a running plan: where its rows come from.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The kind of operator.
    pub kind: NodeKind,
    /// The index it reads.
    pub index: Option<Arc<Index>>,
}

/// Sums over a tree of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Index keys read.
    pub keys_examined: u64,
    /// Records read from storage.
    pub docs_examined: u64,
    /// Some order came from sorting.
    pub has_sort_stage: bool,
    /// Something was written to temporary files.
    pub used_disk: bool,
    /// How one of several plans was chosen.
    pub choice: Option<Choice>,
}

impl Totals {
    /// Adds others.
    pub fn add(&mut self, other: Totals) {
        self.keys_examined += other.keys_examined;
        self.docs_examined += other.docs_examined;
        self.has_sort_stage |= other.has_sort_stage;
        self.used_disk |= other.used_disk;
        self.choice = self.choice.or(other.choice);
    }
}

/// Appends the leaves below `root` that read a collection, or that say there is none.
pub fn leaves(root: &dyn Operator, out: &mut Vec<Leaf>) {
    let report = root.report();
    let mut is_leaf = true;
    for input in report.inputs() {
        is_leaf = false;
        leaves(input, out);
    }
    if is_leaf && report.kind.is_access() {
        out.push(Leaf {
            kind: report.kind,
            index: report.index.cloned(),
        });
    }
}

/// An index that a tree reads and that there is no more. Most are of `collection`.
pub fn lost_index(root: &dyn Operator, catalog: &Catalog, collection: Option<CollectionId>) -> Option<Arc<Index>> {
    let mut all = Vec::new();
    leaves(root, &mut all);
    let is_there = |index: &Arc<Index>| {
        let has = |collection: &Arc<Collection>| collection.indexes.iter().any(|own| own.id == index.id);
        let own = collection.and_then(|id| catalog.by_id(id));
        own.is_some_and(has) || catalog.collections().any(has)
    };
    all.into_iter()
        .filter_map(|leaf| leaf.index)
        .find(|index| !is_there(index))
}

/// `planSummary`: the leaves, with the key pattern of what reads an index.
pub fn plan_summary(leaves: &[Leaf]) -> String {
    let mut out = String::new();
    for (i, leaf) in leaves.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(leaf.kind.name());
        if let Some(index) = &leaf.index {
            out.push(' ');
            out.push_str(&shell(index.key_pattern.as_ref()));
        }
    }
    out
}

/// Whether there is a node of a kind in a tree.
pub fn has_kind(root: &dyn Operator, kind: NodeKind) -> bool {
    let report = root.report();
    report.kind == kind || report.inputs().any(|input| has_kind(input, kind))
}

/// The sums over `root` and all below it, and over what its stages read of other collections.
pub fn totals(root: &dyn Operator) -> Totals {
    let report = root.report();
    let mut out = Totals {
        keys_examined: report.counters.keys_examined,
        docs_examined: report.counters.docs_examined,
        has_sort_stage: report.kind == NodeKind::Sort,
        choice: report.choice,
        used_disk: report.spilled.is_some_and(|spilled| spilled.spills > 0),
    };
    let mut read = |keys, docs| {
        out.keys_examined += keys;
        out.docs_examined += docs;
    };
    if let Some(reads) = report.reads {
        read(reads.keys_examined, reads.docs_examined);
    }
    if let Some(beside) = report.beside.map(totals) {
        read(beside.keys_examined, beside.docs_examined);
    }
    for input in report.inputs() {
        out.add(totals(input));
    }
    out
}

/// Records read by a tree of operators.
pub fn docs_examined(root: &dyn Operator) -> u64 {
    let report = root.report();
    let below: u64 = report.inputs().map(docs_examined).sum();
    report.counters.docs_examined + below
}

/// Bytes that a tree of operators holds in memory.
pub fn memory(root: &dyn Operator) -> usize {
    let report = root.report();
    let below: usize = report.inputs().chain(report.beside).map(memory).sum();
    report.memory + below
}

impl Reads {
    /// The figures that a tree has read so far, other collections that its stages read included.
    pub fn of(root: &dyn Operator) -> Self {
        let mut reads = Self::default();
        reads.add(root);
        reads
    }

    /// Adds what a tree read so far.
    pub fn add(&mut self, root: &dyn Operator) {
        let report = root.report();
        self.docs_examined += report.counters.docs_examined;
        self.keys_examined += report.counters.keys_examined;
        self.collection_scans += u64::from(report.kind == NodeKind::CollScan);
        if report.kind == NodeKind::IdLookup {
            self.indexes_used.insert("_id_".into());
        } else if let Some(index) = report.index {
            self.indexes_used.insert(index.name.to_string());
        }
        if let Some(reads) = report.reads {
            self.merge(reads);
        }
        for below in report.inputs().chain(report.beside) {
            self.add(below);
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
}

impl Figures {
    /// The figures of `root` and of those below it as they are now.
    pub fn of(root: &dyn Operator) -> Self {
        let report = root.report();
        let mut fields = Document::new();
        if let Some(explain) = report.explain {
            explain.plan_fields(&mut fields);
        }
        Self {
            kind: report.kind,
            counters: *report.counters,
            fields,
            inputs: report.inputs().map(Self::of).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::operator::{BoxOperator, Counters, Report, Step};
    use crate::spill::Spilled;
    use nestor_model::Result;

    struct Fake(NodeKind, Counters, Vec<BoxOperator>);

    impl Operator for Fake {
        fn next(&mut self, _: &mut Batch<'_>) -> Result<Step> {
            Ok(Step::Eof)
        }
        fn save(&mut self) {}
        fn report(&self) -> Report<'_> {
            let spilled = Spilled {
                spills: u64::from(self.0 == NodeKind::Sort),
                ..Spilled::default()
            };
            let report = Report::new(self.0, &self.1).over_all(&self.2);
            report.spilling(spilled).holding(10)
        }
    }

    fn fake(kind: NodeKind, keys: u64, docs: u64, inputs: Vec<BoxOperator>) -> BoxOperator {
        let counters = Counters {
            keys_examined: keys,
            docs_examined: docs,
            ..Counters::default()
        };
        Box::new(Fake(kind, counters, inputs))
    }

    #[test]
    fn sums_and_leaves() {
        let scans = vec![
            fake(NodeKind::IndexScan, 3, 0, vec![]),
            fake(NodeKind::CollScan, 0, 5, vec![]),
        ];
        let root = fake(NodeKind::Sort, 0, 0, vec![fake(NodeKind::Or, 0, 2, scans)]);
        let sums = totals(&*root);
        assert_eq!((sums.keys_examined, sums.docs_examined), (3, 7));
        assert!(sums.has_sort_stage && sums.used_disk);
        assert_eq!(memory(&*root), 40, "what every operator holds");
        let mut found = Vec::new();
        leaves(&*root, &mut found);
        assert_eq!(plan_summary(&found), "IXSCAN, COLLSCAN");
        assert!(!totals(&*fake(NodeKind::Fetch, 0, 0, vec![])).used_disk);
    }
}
