//! `$match` goes before `$lookup` and `$graphLookup`, as far as its conditions are not on the array of matches.
//!
//! Law: `σ p (x ⋈ y) = (σ p x) ⋈ y` where `p` reads fields of `x` alone. It holds whether the matches stay an array or are
//! unwound at once.

use super::{move_match, reads_only};
use crate::plan::{StageNode, StageOp};
use nestor_model::Path;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some(written) = stages.get(at).and_then(written) else {
        return false;
    };
    move_match(stages, at, |condition| {
        reads_only(condition, |field| written.iter().all(|path| path.head() != field)).then(|| condition.clone())
    })
}

/// The fields that a join writes.
fn written(node: &StageNode) -> Option<Vec<Path>> {
    match &node.op {
        StageOp::Parsed(Stage::Lookup(lookup)) => Some(vec![lookup.as_path.clone()]),
        StageOp::Parsed(Stage::GraphLookup(graph)) => Some(vec![graph.as_path.clone()]),
        StageOp::LookupUnwind(join) => {
            let index = join.unwind.index().cloned();
            Some([join.lookup.as_path.clone()].into_iter().chain(index).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_on_the_outer_documents_go_before() {
        let lookup = r#"{"$lookup":{"from":"c","localField":"k","foreignField":"_id","as":"x.y"}}"#;
        rewrites(
            "match_before_lookup",
            &format!(r#"[{lookup},{{"$match":{{"k":1,"x.z":1}}}}]"#),
            &format!(r#"[{{"$match":{{"k":{{"$eq":1}}}}}},{lookup},{{"$match":{{"x.z":{{"$eq":1}}}}}}]"#),
        );
    }
}
