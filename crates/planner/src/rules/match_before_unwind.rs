//! `$match` goes before `$unwind`, as far as its conditions are on other fields.
//!
//! Law: `σ p (μ a x) = μ a (σ p x)` where `p` reads neither the unwound field nor the one for positions: all documents that
//! come of one agree in the fields that `p` reads.

use super::{move_match, reads_only};
use crate::plan::StageNode;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some(Stage::Unwind(unwind)) = stages.get(at).and_then(StageNode::parsed) else {
        return false;
    };
    let unwind = unwind.clone();
    let is_other =
        |field: &str| field != unwind.path.head() && unwind.index().is_none_or(|index| field != index.head());
    move_match(stages, at, |condition| {
        reads_only(condition, is_other).then(|| condition.clone())
    })
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_on_other_fields_go_before() {
        rewrites(
            "match_before_unwind",
            r#"[{"$unwind":{"path":"$a.b","includeArrayIndex":"i"}},{"$match":{"a.c":1,"i":1,"k":1}}]"#,
            r#"[{"$match":{"k":{"$eq":1}}},{"$unwind":{"path":"$a.b","includeArrayIndex":"i"}},{"$match":{"$and":[{"a.c":{"$eq":1}},{"i":{"$eq":1}}]}}]"#,
        );
    }
}
