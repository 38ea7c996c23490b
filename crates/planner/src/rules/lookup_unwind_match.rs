//! Conditions on the matches of a join that is unwound at once become part of the join.
//!
//! Law: `σ p (x ⋈ y) = x ⋈ (σ p' y)` where `p` reads fields of the match alone, and `p'` says the same of the match as a
//! document. It does not hold where an outer document may go out without a match, or with a position among all matches.

use super::{conjunction, divide};
use crate::plan::{LookupUnwind, StageNode, StageOp};
use nestor_query::matcher::MatchExpr;
use std::sync::Arc;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (Some(StageOp::LookupUnwind(join)), Some(filter)) = (
        stages.get(at).map(|node| &node.op),
        stages.get(at + 1).and_then(StageNode::filter),
    ) else {
        return false;
    };
    if join.unwind.preserves_empty() || join.unwind.index().is_some() {
        return false;
    }
    let Some((of_matches, rest)) = divide(filter, |condition| condition.within(&join.lookup.as_path)) else {
        return false;
    };
    let both = join
        .filter
        .iter()
        .chain([&of_matches])
        .map(|filter| MatchExpr::clone(filter));
    let joined = LookupUnwind {
        filter: Some(Arc::new(MatchExpr::clone(&conjunction(both.collect())).normalize())),
        ..LookupUnwind::clone(join)
    };
    stages[at].op = StageOp::LookupUnwind(Arc::new(joined));
    match rest {
        Some(rest) => stages[at + 1] = StageNode::matching(Arc::new(MatchExpr::clone(&rest).normalize())),
        None => {
            stages.remove(at + 1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{parse, print, rewrites};
    use crate::rules::{RULES, rewrite};

    #[test]
    fn conditions_on_matches_become_part_of_the_join() {
        let stages = |options: &str| {
            format!(
                r#"[{{"$lookup":{{"from":"c","localField":"k","foreignField":"_id","as":"x"}}}},
                    {{"$unwind":{{"path":"$x"{options}}}}},{{"$match":{{"x.a":1,"k":2,"x":{{"b":1}}}}}}]"#
            )
        };
        let mut nodes = parse(&stages(""));
        rewrite(&mut nodes, RULES);
        assert_eq!(
            print(&nodes),
            concat!(
                r#"[{"$match":{"k":{"$eq":2}}},{"$lookup":{"from":"c","localField":"k","foreignField":"_id","as":"x","#,
                r#""pipeline":[{"$match":{"a":{"$eq":1}}}],"unwinding":{"preserveNullAndEmptyArrays":false}}},"#,
                r#"{"$match":{"x":{"$eq":{"b":1}}}}]"#
            )
        );
        for options in [r#","includeArrayIndex":"i""#, r#","preserveNullAndEmptyArrays":true"#] {
            let mut nodes = parse(&stages(options));
            let unchanged = print(&nodes);
            rewrites("lookup_unwind_match", &stages(options), &unchanged);
            rewrite(&mut nodes, RULES);
            assert!(!print(&nodes).contains("pipeline"), "{options}");
        }
    }
}
