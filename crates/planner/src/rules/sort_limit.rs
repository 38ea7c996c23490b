//! `$sort` keeps no more rows than a `$limit` behind it lets through, `$skip` between them included.
//!
//! Law: `limit m (skip n (τ s x)) = skip n (top (n + m) s x)`, where `top k s x` is the first `k` of `τ s x`.

use crate::plan::{StageNode, StageOp};
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (spec, before) = match stages.get(at).map(|node| &node.op) {
        Some(StageOp::Parsed(Stage::Sort(spec))) => (spec.clone(), None),
        Some(StageOp::TopSort { spec, limit }) => (spec.clone(), Some(*limit)),
        _ => return false,
    };
    let behind = |offset: usize| stages.get(at + offset).and_then(StageNode::parsed);
    let (wanted, limit_at) = match (behind(1), behind(2)) {
        (Some(Stage::Limit(limit)), _) => (Some(*limit), at + 1),
        (Some(Stage::Skip(skip)), Some(Stage::Limit(limit))) => (skip.checked_add(*limit), at + 2),
        _ => return false,
    };
    // The number is printed as a signed one.
    let Some(wanted) = wanted.filter(|wanted| i64::try_from(*wanted).is_ok()) else {
        return false;
    };
    stages.remove(limit_at);
    stages[at].op = StageOp::TopSort {
        spec,
        limit: before.map_or(wanted, |before| before.min(wanted)),
    };
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn sorts_have_limits() {
        for (before, after) in [
            (
                r#"[{"$sort":{"a":1}},{"$limit":3},{"$limit":2}]"#,
                r#"[{"$sort":{"sortKey":{"a":1},"limit":2}}]"#,
            ),
            (
                r#"[{"$sort":{"a":1}},{"$skip":3},{"$limit":2}]"#,
                r#"[{"$sort":{"sortKey":{"a":1},"limit":5}},{"$skip":3}]"#,
            ),
            (
                r#"[{"$sort":{"a":1}},{"$skip":9223372036854775807},{"$limit":2}]"#,
                r#"[{"$sort":{"sortKey":{"a":1}}},{"$skip":9223372036854775807},{"$limit":2}]"#,
            ),
        ] {
            rewrites("sort_limit", before, after);
        }
    }
}
