//! Two `$match` in a row are one.
//!
//! Law: `σ p (σ q x) = σ (q ∧ p) x`. The conditions stay in their order, so a document that fails the first is not asked the
//! second.

use super::conjunction;
use crate::plan::StageNode;
use nestor_query::matcher::MatchExpr;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (Some(first), Some(second)) = (
        stages.get(at).and_then(StageNode::filter),
        stages.get(at + 1).and_then(StageNode::filter),
    ) else {
        return false;
    };
    let mut conditions = Vec::new();
    for filter in [first, second] {
        match &**filter {
            MatchExpr::And(all) => conditions.extend(all.iter().cloned()),
            MatchExpr::AlwaysTrue => {}
            one => conditions.push(one.clone()),
        }
    }
    let both = match conditions.is_empty() {
        true => first.clone(),
        false => conjunction(conditions),
    };
    stages.remove(at + 1);
    stages[at] = StageNode::matching(both);
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_are_joined_in_their_order() {
        rewrites(
            "adjacent_matches",
            r#"[{"$match":{"b":1,"c":1}},{"$match":{}},{"$match":{"a":1}},{"$limit":1},{"$match":{"a":2}}]"#,
            r#"[{"$match":{"$and":[{"b":{"$eq":1}},{"c":{"$eq":1}},{"a":{"$eq":1}}]}},{"$limit":1},{"$match":{"a":{"$eq":2}}}]"#,
        );
    }
}
