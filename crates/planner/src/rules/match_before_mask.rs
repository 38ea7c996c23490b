//! `$match` goes before the masking of a collection, as far as its conditions are on fields of which nothing is masked.
//!
//! Law: `σ p (mask x) = mask (σ p x)` where `mask` leaves the top-level fields that `p` reads as they are. A condition on a masked field
//! stays behind: it sees what its user sees, and no index can answer it.

use super::{move_match, reads_only};
use crate::plan::StageNode;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some(Stage::Mask(masking)) = stages.get(at).and_then(StageNode::parsed) else {
        return false;
    };
    let masking = masking.clone();
    move_match(stages, at, |condition| {
        reads_only(condition, |field| !masking.has_field(field)).then(|| condition.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::plan::StageNode;
    use crate::rules::testing::{parse, print};
    use nestor_model::doc;
    use nestor_query::masking::Masking;
    use nestor_query::stage::Stage;
    use std::sync::Arc;

    #[test]
    fn only_conditions_on_plain_fields_go_before() {
        let masking = Masking::parse(doc! { "a": "hide", "b.c": "hash" }.as_ref()).expect("a policy");
        let mut stages = parse(r#"[{"$match":{"a":1,"b.d":2,"e":3,"$expr":{"$eq":["$$ROOT",1]}}}]"#);
        stages.insert(0, StageNode::of(Stage::Mask(Arc::new(masking))));
        assert!(apply(&mut stages, 0));
        assert_eq!(print(&stages[..1]), r#"[{"$match":{"e":{"$eq":3}}}]"#);
        assert!(stages.len() == 3 && !apply(&mut stages, 1), "the others stay behind");
        let rest = print(&stages[2..]);
        for stays in [r#""a""#, r#""b.d""#, "$$ROOT"] {
            assert!(rest.contains(stays), "{rest}");
        }
    }
}
