//! Ranking candidates by what they did in a trial run.
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

use crate::plan::PlanNode;

/// Candidates that a trial runs at most; the rest of them looked least promising.
pub const CANDIDATES_MAX: usize = 64;

/// The figures of a candidate's trial.
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
            clustered: None,
            columns: None,
        })
    }

    fn sorted() -> PlanNode {
        let mut query = FindQuery::all(Arc::new(MatchExpr::AlwaysTrue));
        let spec = nestor_model::doc! { "a": 1 };
        query.sort = Some(Arc::new(SortSpec::parse(spec.as_ref()).expect("a sort")));
        crate::finish::finish(&query, scan(true), false)
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
}
