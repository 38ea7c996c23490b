//! What a tree of operators did, in few words and sums: for the profiler, the slow-query log and `currentOp`.

use crate::operator::{Choice, Operator};
use crate::reads::Reads;
use crate::text::shell;
use nestor_storage::Index;
use std::sync::Arc;

/// A leaf of a running plan: where its rows come from.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Name of the stage as explain prints it.
    pub stage: &'static str,
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
    let inputs = root.inputs();
    if inputs.is_empty()
        && matches!(
            root.stage(),
            "COLLSCAN" | "IXSCAN" | "COUNT_SCAN" | "DISTINCT_SCAN" | "IDHACK" | "EOF"
        )
    {
        out.push(Leaf {
            stage: root.stage(),
            index: root.index().cloned(),
        });
    }
    for input in inputs {
        leaves(input, out);
    }
}

/// `planSummary`: the leaves, with the key pattern of what reads an index.
pub fn plan_summary(leaves: &[Leaf]) -> String {
    let mut out = String::new();
    for (i, leaf) in leaves.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(leaf.stage);
        if let Some(index) = &leaf.index {
            out.push(' ');
            out.push_str(&shell(index.key_pattern.as_ref()));
        }
    }
    out
}

/// The sums over `root` and all below it, and over what its stages read of other collections.
pub fn totals(root: &dyn Operator) -> Totals {
    let counters = root.counters();
    let mut others = Reads::default();
    root.add_reads(&mut others);
    let mut out = Totals {
        keys_examined: counters.keys_examined + others.keys_examined,
        docs_examined: counters.docs_examined + others.docs_examined,
        has_sort_stage: root.stage() == "SORT",
        choice: root.choice(),
        used_disk: root.spilled().is_some_and(|spilled| spilled.spills > 0),
    };
    for input in root.inputs() {
        out.add(totals(input));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::operator::{BoxOperator, Counters, Step};
    use crate::spill::Spilled;
    use nestor_model::Result;

    struct Fake(&'static str, Counters, Vec<BoxOperator>);

    impl Operator for Fake {
        fn next(&mut self, _: &mut Batch<'_>) -> Result<Step> {
            Ok(Step::Eof)
        }
        fn save(&mut self) {}
        fn stage(&self) -> &'static str {
            self.0
        }
        fn counters(&self) -> &Counters {
            &self.1
        }
        fn spilled(&self) -> Option<Spilled> {
            let spills = u64::from(self.0 == "SORT");
            Some(Spilled {
                spills,
                ..Spilled::default()
            })
        }
        fn inputs(&self) -> Vec<&dyn Operator> {
            self.2.iter().map(|input| &**input).collect()
        }
    }

    fn fake(stage: &'static str, keys: u64, docs: u64, inputs: Vec<BoxOperator>) -> BoxOperator {
        let counters = Counters {
            keys_examined: keys,
            docs_examined: docs,
            ..Counters::default()
        };
        Box::new(Fake(stage, counters, inputs))
    }

    #[test]
    fn sums_and_leaves() {
        let scans = vec![fake("IXSCAN", 3, 0, vec![]), fake("COLLSCAN", 0, 5, vec![])];
        let root = fake("SORT", 0, 0, vec![fake("OR", 0, 2, scans)]);
        let sums = totals(&*root);
        assert_eq!((sums.keys_examined, sums.docs_examined), (3, 7));
        assert!(sums.has_sort_stage && sums.used_disk);
        let mut found = Vec::new();
        leaves(&*root, &mut found);
        assert_eq!(plan_summary(&found), "IXSCAN, COLLSCAN");
        assert!(!totals(&*fake("FETCH", 0, 0, vec![])).used_disk);
    }
}
