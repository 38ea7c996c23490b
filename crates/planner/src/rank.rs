//! Ranking candidates by what they did in a trial run, and telling them apart.
//!
//! A candidate's score is `1 + productivity + tie breakers`, as explain prints it:
//!
//! | part | value |
//! |---|---|
//! | productivity | rows given / units of work, at most 1 |
//! | no fetch, no blocking sort, no index intersection | `epsilon` each |
//! | reached its end | 1 |
//!
//! where `epsilon` is a tenth of what one row is worth, and at most 0.0001. Among equal scores the order of
//! [`crate::candidates`] decides.

use crate::plan::{IndexScan, PlanNode, ScanPurpose};

/// Candidates that a trial runs at most; the rest of them looked least promising.
pub const CANDIDATES_MAX: usize = 64;

/// What a candidate did in its trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performance {
    /// Units of work it got.
    pub works: u64,
    /// Rows it gave.
    pub advanced: u64,
    /// It has no more rows.
    pub ended: bool,
}

/// The score of a plan that did so in a trial; more is better.
pub fn score(plan: &PlanNode, done: Performance) -> f64 {
    let works = done.works.max(1) as f64;
    let productivity = done.advanced as f64 / works;
    let epsilon = (1.0 / (10.0 * works)).min(1e-4);
    let bonus = |given: bool| if given { epsilon } else { 0.0 };
    // There are no intersections of indexes, so every plan has that bonus.
    let ties = bonus(!any(plan, &is_fetch)) + bonus(!any(plan, &is_sort)) + epsilon;
    1.0 + productivity + ties + if done.ended { 1.0 } else { 0.0 }
}

fn any(plan: &PlanNode, is: &dyn Fn(&PlanNode) -> bool) -> bool {
    is(plan) || plan.inputs().into_iter().any(|input| any(input, is))
}

fn is_fetch(plan: &PlanNode) -> bool {
    matches!(plan, PlanNode::Fetch { .. })
}

fn is_sort(plan: &PlanNode) -> bool {
    matches!(plan, PlanNode::Sort { .. })
}

/// What a plan does apart from literals: its stages, indexes and directions, as a hash. Plans of one query that do
/// different things have different signatures; a plan of the next query of the same shape has the same one.
pub fn signature(plan: &PlanNode) -> u64 {
    let mut hash = Fnv::default();
    sign(plan, &mut hash);
    hash.0
}

fn sign(plan: &PlanNode, hash: &mut Fnv) {
    hash.bytes(plan.stage().as_bytes());
    match plan {
        PlanNode::IndexScan(scan) => sign_scan(scan, hash),
        PlanNode::CollScan(scan) => hash.bytes(&[u8::from(scan.forward)]),
        PlanNode::Sort { limit, .. } => hash.bytes(&[u8::from(limit.is_some())]),
        _ => {}
    }
    hash.bytes(b"(");
    let mut before = None;
    for input in plan.inputs() {
        let own = signature(input);
        // One scan per point of a list: how many there are is a matter of literals.
        if before != Some(own) {
            hash.bytes(&own.to_le_bytes());
        }
        before = Some(own);
    }
    hash.bytes(b")");
}

fn sign_scan(scan: &IndexScan, hash: &mut Fnv) {
    hash.bytes(&scan.index.id.to_le_bytes());
    hash.bytes(&[u8::from(scan.forward)]);
    if let ScanPurpose::Distinct { parts } = scan.purpose {
        hash.bytes(&parts.to_le_bytes());
    }
    // A wildcard index is used for one of several paths.
    if scan.index.kind.needs_condition() {
        for part in &scan.index.parts {
            hash.bytes(part.path.as_str().as_bytes());
            hash.bytes(b",");
        }
    }
}

/// The key under which the plan chosen among `candidates` is kept: of their query's shape and of all of them, so that
/// it changes when indexes come or go that could serve the shape, or when literals leave another choice.
pub fn plan_cache_key(shape: u64, candidates: &[PlanNode]) -> u64 {
    let mut signatures: Vec<u64> = candidates.iter().map(signature).collect();
    signatures.sort_unstable();
    let mut hash = Fnv::default();
    hash.bytes(&shape.to_le_bytes());
    for one in signatures {
        hash.bytes(&one.to_le_bytes());
    }
    hash.0
}

/// FNV-1a with 64 bits: equal input gives equal hashes on every run and machine.
pub(crate) struct Fnv(pub(crate) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::FindQuery;
    use crate::plan::CollScan;
    use nestor_query::matcher::MatchExpr;
    use nestor_query::sort::SortSpec;
    use std::sync::Arc;

    fn scan(forward: bool) -> PlanNode {
        PlanNode::CollScan(CollScan {
            filter: None,
            forward,
            tailable: false,
        })
    }

    fn sorted() -> PlanNode {
        let mut query = FindQuery::all(Arc::new(MatchExpr::AlwaysTrue));
        let spec = nestor_model::doc! { "a": 1 };
        query.sort = Some(Arc::new(SortSpec::parse(spec.as_ref()).expect("a sort")));
        crate::find::finish(&query, scan(true), false)
    }

    fn did(works: u64, advanced: u64, ended: bool) -> Performance {
        Performance { works, advanced, ended }
    }

    #[test]
    fn productive_plans_win_then_those_without_extra_work() {
        let plain = |works, advanced, ended| score(&scan(true), did(works, advanced, ended));
        assert!(plain(10, 9, false) > plain(10, 8, false));
        assert!(
            plain(10, 1, true) > plain(10, 9, false),
            "the end counts for more than any rows"
        );
        // No tie breaker outweighs a row.
        for works in [1, 10, 10_000] {
            assert!(
                score(&sorted(), did(works, 1, false)) > plain(works, 0, false),
                "{works}"
            );
            assert!(
                score(&sorted(), did(works, 1, false)) < plain(works, 1, false),
                "{works}"
            );
        }
        assert!((plain(0, 0, false) - 1.0003).abs() < 1e-9);
    }

    #[test]
    fn signatures_tell_plans_apart_and_keys_do_not_depend_on_order() {
        assert_eq!(signature(&scan(true)), signature(&scan(true)));
        assert_ne!(signature(&scan(true)), signature(&scan(false)));
        assert_ne!(signature(&scan(true)), signature(&sorted()));
        let (a, b) = (scan(true), sorted());
        let key = |plans: &[PlanNode]| plan_cache_key(7, plans);
        assert_eq!(key(&[a.clone(), b.clone()]), key(&[b.clone(), a.clone()]));
        assert_ne!(key(&[a.clone(), b]), key(&[a]));
    }
}
