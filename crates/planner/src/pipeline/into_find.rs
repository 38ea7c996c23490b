//! The first stages of a pipeline as a find.

use crate::find::FindQuery;
use crate::plan::StageNode;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::SortBy;
use nestor_query::stage::Stage;
use std::sync::Arc;

/// The find that does the first stages of a pipeline, which are taken out: any number of `$match`, a `$sort`, then `$skip`s
/// and `$limit`s, then a `$project` or `$unset`.
///
/// Law: a find filters, sorts, skips, limits and projects, in this order. A limit before a skip leaves so much less of itself
/// behind it; one that the skip uses up stays a stage.
pub fn into_find(stages: &mut Vec<StageNode>) -> FindQuery {
    let mut at = 0;
    let mut conditions = Vec::new();
    while let Some(filter) = stages.get(at).and_then(StageNode::filter) {
        conditions.push((**filter).clone());
        at += 1;
    }
    let filter = match conditions.len() {
        0 => MatchExpr::AlwaysTrue,
        1 => conditions.swap_remove(0).normalize(),
        _ => MatchExpr::And(conditions).normalize(),
    };
    let mut query = FindQuery::all(Arc::new(filter));
    if let Some((spec, limit)) = stages.get(at).and_then(StageNode::sort) {
        let finds_scores = query.filter.text().is_some();
        let by_paths = spec.parts().iter().all(|part| match part.by {
            SortBy::Path(_) => true,
            SortBy::Meta(name) => finds_scores && name == "textScore",
        });
        if !by_paths || stages[at..].iter().any(StageNode::reads_sort_key) {
            stages.drain(..at);
            return query;
        }
        query.sort = Some(spec.clone());
        query.limit = limit;
        at += 1;
    }
    while let Some(stage) = stages.get(at).and_then(StageNode::parsed) {
        match (stage, query.limit) {
            (Stage::Limit(limit), before) => query.limit = Some(before.map_or(*limit, |before| before.min(*limit))),
            (Stage::Skip(skip), None) => match query.skip.checked_add(*skip) {
                Some(skip) => query.skip = skip,
                None => break,
            },
            (Stage::Skip(skip), Some(limit)) => {
                let Some(skipped) = query.skip.checked_add(*skip).filter(|_| *skip < limit) else {
                    break;
                };
                query.skip = skipped;
                query.limit = Some(limit - skip);
            }
            _ => break,
        }
        at += 1;
    }
    if let Some(projection) = stages.get(at).and_then(projected) {
        query.projection = Some(projection.clone());
        at += 1;
    }
    stages.drain(..at);
    query
}

/// The projection that a find can do for a stage. One that shows the key of a sort stays behind the sort that keeps it.
fn projected(stage: &StageNode) -> Option<&Arc<Projection>> {
    match stage.parsed()? {
        Stage::Project { name, projection } if matches!(*name, "$project" | "$unset") => {
            (!stage.reads_sort_key()).then_some(projection)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{parse, print};

    #[test]
    fn filters_sorts_skips_and_limits_become_a_find() {
        for (stages, sorted, window, rest) in [
            (r#"[{"$match":{"a":1}},{"$match":{"b":1}}]"#, false, (0, None), "[]"),
            (
                r#"[{"$sort":{"a":1}},{"$skip":3},{"$limit":5}]"#,
                true,
                (3, Some(5)),
                "[]",
            ),
            (r#"[{"$limit":5},{"$skip":3},{"$limit":4}]"#, false, (3, Some(2)), "[]"),
            (r#"[{"$limit":5},{"$skip":5}]"#, false, (0, Some(5)), r#"[{"$skip":5}]"#),
            (
                r#"[{"$skip":2},{"$skip":3},{"$match":{"a":1}}]"#,
                false,
                (5, None),
                r#"[{"$match":{"a":{"$eq":1}}}]"#,
            ),
            (
                r#"[{"$sort":{"a":1}},{"$project":{"k":{"$meta":"sortKey"}}}]"#,
                false,
                (0, None),
                r#"[{"$sort":{"sortKey":{"a":1}}},{"$project":{"k":{"$meta":"sortKey"}}}]"#,
            ),
            (
                r#"[{"$unwind":"$a"},{"$limit":1}]"#,
                false,
                (0, None),
                r#"[{"$unwind":{"path":"$a"}},{"$limit":1}]"#,
            ),
            (
                r#"[{"$match":{"a":1}},{"$limit":2},{"$project":{"a":1}},{"$unset":"b"}]"#,
                false,
                (0, Some(2)),
                r#"[{"$unset":"b"}]"#,
            ),
        ] {
            let mut nodes = parse(stages);
            let query = into_find(&mut nodes);
            assert_eq!(query.sort.is_some(), sorted, "{stages}");
            assert_eq!((query.skip, query.limit), window, "{stages}");
            assert_eq!(print(&nodes), rest, "{stages}");
        }
    }
}
