//! `$match` goes before stored time-series buckets become public ones, as far as its conditions are on what is the same in both.
//!
//! Law: `σ p (public b) = public (σ p b)` where `p` reads nothing but `_id`, `meta`, `control.min` and `control.max`.

use super::move_match;
use crate::plan::StageNode;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let is_public = matches!(
        stages.get(at).and_then(StageNode::parsed),
        Some(Stage::PublicBuckets(_))
    );
    is_public && move_match(stages, at, |condition| reads_same(condition).then(|| condition.clone()))
}

fn reads_same(condition: &MatchExpr) -> bool {
    match condition {
        MatchExpr::AlwaysTrue | MatchExpr::AlwaysFalse => true,
        MatchExpr::And(all) | MatchExpr::Or(all) | MatchExpr::Nor(all) => all.iter().all(reads_same),
        MatchExpr::Not(child) => reads_same(child),
        MatchExpr::Leaf(leaf) => {
            let path = leaf.path.as_str();
            let limits = ["control.min", "control.max"];
            let is_limit = |limit: &&str| {
                path.strip_prefix(*limit)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            matches!(leaf.path.head(), "_id" | "meta") || limits.iter().any(is_limit)
        }
        MatchExpr::Expr(_) | MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::plan::StageNode;
    use crate::rules::testing::{parse, print};
    use nestor_model::TimeSeries;
    use nestor_model::timeseries::Bucketing;
    use nestor_query::stage::Stage;
    use std::sync::Arc;

    #[test]
    fn conditions_on_what_stays_go_before() {
        let series = TimeSeries::new("t", None, Bucketing::default()).expect("valid options");
        let mut stages = parse(r#"[{"$match":{"meta.a":1,"control.min.t":2,"control.minimum":3,"data.t.0":4}}]"#);
        stages.insert(0, StageNode::of(Stage::PublicBuckets(Arc::new(series))));
        assert!(apply(&mut stages, 0));
        assert_eq!(
            print(&stages[..1]),
            r#"[{"$match":{"$and":[{"meta.a":{"$eq":1}},{"control.min.t":{"$eq":2}}]}}]"#
        );
        assert!(stages.len() == 3 && !apply(&mut stages, 1), "the others stay behind");
    }
}
