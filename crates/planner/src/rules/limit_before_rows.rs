//! `$limit` and `$skip` go before stages that make one document of each.
//!
//! Law: `limit n (map f x) = map f (limit n x)`, and the same of `skip`. `$project` and its kin, `$replaceRoot`, and `$lookup`
//! whose array stays are such maps.

use crate::plan::StageNode;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut [StageNode], at: usize) -> bool {
    let is_map = stages.get(at).is_some_and(StageNode::is_row_by_row);
    let limits = matches!(
        stages.get(at + 1).and_then(StageNode::parsed),
        Some(Stage::Limit(_) | Stage::Skip(_))
    );
    if is_map && limits {
        stages.swap(at, at + 1);
    }
    is_map && limits
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn limits_go_before_maps() {
        rewrites(
            "limit_before_rows",
            r#"[{"$sort":{"a":1}},{"$set":{"b":1}},{"$replaceRoot":{"newRoot":"$a"}},{"$limit":3},{"$unwind":"$x"},{"$skip":1}]"#,
            r#"[{"$sort":{"sortKey":{"a":1}}},{"$limit":3},{"$set":{"b":1}},{"$replaceRoot":{"newRoot":"$a"}},{"$unwind":{"path":"$x"}},{"$skip":1}]"#,
        );
    }
}
