//! `$lookup` and the `$unwind` of its array are one.
//!
//! Law: `μ a (x ⋈[a] y)` is the flat join of `x` and `y`: the array need not be made to be taken apart.

use crate::plan::{LookupUnwind, StageNode, StageOp};
use nestor_query::stage::Stage;
use std::sync::Arc;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (Some(Stage::Lookup(lookup)), Some(Stage::Unwind(unwind))) = (
        stages.get(at).and_then(StageNode::parsed),
        stages.get(at + 1).and_then(StageNode::parsed),
    ) else {
        return false;
    };
    if *unwind.path() != lookup.as_path {
        return false;
    }
    let joined = LookupUnwind {
        lookup: lookup.clone(),
        unwind: unwind.clone(),
        filter: None,
    };
    stages.remove(at + 1);
    stages[at].op = StageOp::LookupUnwind(Arc::new(joined));
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn joins_are_unwound_at_once() {
        let lookup = |unwinding: &str| {
            format!(r#"{{"$lookup":{{"from":"c","localField":"k","foreignField":"_id","as":"x"{unwinding}}}}}"#)
        };
        rewrites(
            "lookup_unwind",
            &format!(
                r#"[{},{{"$unwind":"$y"}},{},{{"$unwind":"$x"}}]"#,
                lookup(""),
                lookup("")
            ),
            &format!(
                r#"[{},{{"$unwind":{{"path":"$y"}}}},{}]"#,
                lookup(""),
                lookup(r#","unwinding":{"preserveNullAndEmptyArrays":false}"#)
            ),
        );
    }
}
