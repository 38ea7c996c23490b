//! `$match` behind `$changeStream` goes into the stream, as far as its conditions are on what the log tells of a change before
//! the event is made: what kind it is, where, and of which document.
//!
//! Law: `σ p (stream)` is the stream that gives the events for which `p` holds. Only what is given changes: where the stream is,
//! whether it found the event that it resumes behind and whether it ended do not depend on `p`.

use super::{divide, fields_read};
use crate::plan::{CHANGE_HEADER, FilteredChanges, StageNode, StageOp};
use nestor_query::matcher::MatchExpr;
use std::sync::Arc;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some((stream, before)) = stages.get(at).and_then(StageNode::changes) else {
        return false;
    };
    let Some(filter) = stages.get(at + 1).and_then(StageNode::filter) else {
        return false;
    };
    let known = |condition: &MatchExpr| {
        let fields = fields_read(condition)?;
        fields
            .iter()
            .all(|f| CHANGE_HEADER.contains(&f.as_str()))
            .then(|| condition.clone())
    };
    let Some((first, rest)) = divide(filter, known) else {
        return false;
    };
    let filter = match before {
        Some(before) => Arc::new(MatchExpr::And(vec![(**before).clone(), (*first).clone()])),
        None => first,
    };
    let op = StageOp::FilteredChanges(Arc::new(FilteredChanges {
        stream: stream.clone(),
        filter,
    }));
    stages[at].op = op;
    match rest {
        Some(rest) => stages[at + 1] = StageNode::matching(rest),
        None => {
            stages.remove(at + 1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_on_what_the_log_tells_go_in() {
        for (before, after) in [
            (
                r#"[{"$changeStream":{}},{"$match":{"operationType":"insert","fullDocument.a":1}}]"#,
                r#"[{"$changeStream":{"filter":{"operationType":{"$eq":"insert"}}}},{"$match":{"fullDocument.a":{"$eq":1}}}]"#,
            ),
            (
                r#"[{"$changeStream":{}},{"$match":{"ns.coll":"a"}},{"$match":{"documentKey._id":1}}]"#,
                r#"[{"$changeStream":{"filter":{"$and":[{"ns.coll":{"$eq":"a"}},{"documentKey._id":{"$eq":1}}]}}}]"#,
            ),
            (
                r#"[{"$changeStream":{}},{"$match":{"$or":[{"ns.coll":"a"},{"clusterTime":1}]}}]"#,
                r#"[{"$changeStream":{}},{"$match":{"$or":[{"ns.coll":{"$eq":"a"}},{"clusterTime":{"$eq":1}}]}}]"#,
            ),
        ] {
            rewrites("match_into_changes", before, after);
        }
    }
}
