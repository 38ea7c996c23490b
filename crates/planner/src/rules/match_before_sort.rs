//! `$match` goes before `$sort`.
//!
//! Law: `σ p (τ s x) = τ s (σ p x)`: sorting fewer rows gives the same order of those. It does not hold for a condition that
//! asks for the key of the sort, nor for a sort of which only the first rows are wanted.

use super::{fields_read, move_match};
use crate::plan::StageNode;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    match stages.get(at).and_then(StageNode::parsed) {
        Some(Stage::Sort(_)) => move_match(stages, at, |condition| {
            fields_read(condition).is_some().then(|| condition.clone())
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_on_fields_go_before() {
        rewrites(
            "match_before_sort",
            r#"[{"$sort":{"a":1}},{"$match":{"b":1,"$expr":{"$gt":[{"$meta":"sortKey"},1]}}}]"#,
            r#"[{"$match":{"b":{"$eq":1}}},{"$sort":{"sortKey":{"a":1}}},{"$match":{"$expr":{"$gt":[{"$meta":"sortKey"},1]}}}]"#,
        );
        rewrites(
            "match_before_sort",
            r#"[{"$sort":{"a":1}},{"$limit":1},{"$match":{"b":1}}]"#,
            r#"[{"$sort":{"sortKey":{"a":1}}},{"$limit":1},{"$match":{"b":{"$eq":1}}}]"#,
        );
    }
}
