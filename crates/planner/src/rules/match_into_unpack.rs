//! `$match` goes into the unpacking of time-series buckets: buckets are chosen before by what they tell of their measurements, and only
//! measurements that satisfy the rest of the condition come out.
//!
//! Law: `σ p (unpack b) = unpack p' (σ q b)`, where `q` holds for each bucket with a measurement that satisfies `p`, and `p'` is what is left of
//! `p` when conditions that hold for whole buckets are part of `q`.

use crate::plan::StageNode;
use crate::timeseries::divide;
use nestor_query::matcher::MatchExpr;
use nestor_query::stage::{Stage, Unpack};
use std::sync::Arc;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some(Stage::Unpack(unpack)) = stages.get(at).and_then(StageNode::parsed) else {
        return false;
    };
    let Some(filter) = stages.get(at + 1).and_then(StageNode::filter) else {
        return false;
    };
    let divided = divide(filter, &unpack.series);
    let filter = match (&unpack.filter, divided.measurements) {
        (before, None) => before.clone(),
        (None, Some(rest)) => Some(Arc::new(rest)),
        (Some(before), Some(rest)) => Some(Arc::new(MatchExpr::And(vec![(**before).clone(), rest]).normalize())),
    };
    let unpack = Unpack {
        filter,
        ..(**unpack).clone()
    };
    stages.remove(at + 1);
    stages[at] = StageNode::of(Stage::Unpack(Arc::new(unpack)));
    if !matches!(divided.buckets, MatchExpr::AlwaysTrue) {
        stages.insert(at, StageNode::matching(Arc::new(divided.buckets)));
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_become_those_of_buckets_and_of_what_comes_out() {
        rewrites(
            "match_into_unpack",
            r#"[{"$_internalUnpackBucket":{"timeField":"t","metaField":"m","bucketMaxSpanSeconds":60}},{"$match":{"m.a":1,"v":{"$exists":true}}}]"#,
            r#"[{"$match":{"meta.a":{"$eq":1}}},{"$_internalUnpackBucket":{"exclude":[],"timeField":"t","metaField":"m","bucketMaxSpanSeconds":60,"eventFilter":{"v":{"$exists":true}}}}]"#,
        );
    }
}
