//! What a pipeline reads of the documents that its find gives it, so that an index which tells all of that need not fetch them.

use crate::plan::{PlanNode, StageNode};
use crate::rules::fields_read;
use nestor_model::{DocRef, Document, Result, Str};
use nestor_query::env::Scope;
use nestor_query::expr::{Deps, Expr};
use nestor_query::projection::{Mode, Policy, Projection};
use nestor_query::sort::SortBy;
use nestor_query::stage::Stage;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What stages look at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PathsRead {
    /// The only paths, none below another.
    pub all: Arc<[Str]>,
    /// Those of which it counts whether there is nothing or null, which an index does not tell apart.
    pub exactly: Arc<[Str]>,
    /// It counts, too, in which order documents have them, and what is a document without them: of what is not known to look at values alone.
    pub shape: bool,
}

/// What the stages look at of the documents that come in; `None` when documents come out of them, or when more counts than values at paths.
pub(super) fn paths_read(stages: &[StageNode]) -> Option<PathsRead> {
    let (mut deps, mut exactly) = (Deps::default(), Deps::default());
    let (by, is_cut) = stages
        .iter()
        .find_map(|stage| Some((stage, passes(stage, &mut deps, &mut exactly)?)))?;
    deps.paths.extend(exactly.paths.iter().cloned());
    let is_more = |deps: &Deps| deps.whole_document || !deps.metadata.is_empty();
    if !is_cut || is_more(&deps) || is_more(&exactly) {
        return None;
    }
    let is_below = |path: &String| {
        let mut dots = path.match_indices('.');
        dots.any(|(at, _)| deps.paths.contains(&path[..at]))
    };
    let top = |paths: &BTreeSet<String>| {
        paths
            .iter()
            .filter(|path| !is_below(path))
            .map(|path| path.as_str().into())
            .collect()
    };
    Some(PathsRead {
        all: top(&deps.paths),
        exactly: top(&exactly.paths),
        shape: !matches!(by.parsed(), Some(Stage::Group(_) | Stage::BucketAuto(_))),
    })
}

/// Accumulators to which nothing is the same as null.
const TAKE_NOTHING_FOR_NULL: [&str; 8] = [
    "$sum",
    "$avg",
    "$min",
    "$max",
    "$stdDevPop",
    "$stdDevSamp",
    "$first",
    "$last",
];

/// Notes what a stage reads, in `exactly` where it counts whether there is nothing or null. `None`: the document goes on; true: something else does;
/// false: this is not known.
fn passes(stage: &StageNode, deps: &mut Deps, exactly: &mut Deps) -> Option<bool> {
    if let Some((spec, _)) = stage.sort() {
        for part in spec.parts() {
            match &part.by {
                SortBy::Path(path) => deps.add_path(path),
                SortBy::Meta(_) => return Some(false),
            }
        }
        return None;
    }
    match stage.parsed() {
        Some(Stage::Group(group)) => {
            let of = match group.id.field_path() {
                Some(_) => &mut *deps,
                None => &mut *exactly,
            };
            group.id.dependencies(of);
            for field in &group.fields {
                let accumulator = &field.accumulator;
                let is_lax = TAKE_NOTHING_FOR_NULL.contains(&accumulator.name());
                let mut note = |expr: &Expr| match is_lax && expr.field_path().is_some() {
                    true => expr.dependencies(deps),
                    false => expr.dependencies(exactly),
                };
                accumulator.visit(&mut note, &mut |_| {});
                accumulator.sort_dependencies(exactly);
            }
            Some(true)
        }
        Some(Stage::Match(filter)) => match fields_read(filter) {
            Some(fields) => {
                exactly.paths.extend(fields);
                None
            }
            None => Some(false),
        },
        Some(Stage::Unwind(unwind)) => {
            exactly.add_path(&unwind.path);
            None
        }
        // Others of its fields go on as they are.
        Some(Stage::Project { projection, .. }) if projection.mode() == Mode::Exclusion => {
            projection.fields_read(exactly);
            None
        }
        Some(Stage::Limit(_) | Stage::Skip(_) | Stage::Sample(_)) => None,
        _ => Some(stage.dependencies(exactly)),
    }
}

/// The projection to these paths, which says what a covered plan keeps; `None` for none, which no projection says.
///
/// Errors: those of projections.
pub(super) fn projection_to(paths: &[Str]) -> Result<Option<Arc<Projection>>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut spec: Document = paths.iter().map(|path| (path.clone(), 1.into())).collect();
    if !paths.iter().any(|path| path.split('.').next() == Some("_id")) {
        spec.push("_id", 0);
    }
    let projection = Projection::parse(DocRef::from(&spec), &mut Scope::default(), Policy::Find)?;
    Ok(Some(Arc::new(projection)))
}

/// The plan, which keeps of index entries what the projection keeps, if nothing above the entries needs more.
pub(super) fn keeping(plan: PlanNode, projection: &Arc<Projection>) -> PlanNode {
    match plan {
        PlanNode::Covered {
            input,
            projection: None,
        } => PlanNode::Covered {
            input,
            projection: Some(projection.clone()),
        },
        PlanNode::Limit { input, limit } => PlanNode::Limit {
            input: Box::new(keeping(*input, projection)),
            limit,
        },
        PlanNode::Skip { input, skip } => PlanNode::Skip {
            input: Box::new(keeping(*input, projection)),
            skip,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::parse;

    #[test]
    fn stages_read_paths_until_one_makes_other_documents() {
        for (stages, expected) in [
            (r#"[{"$group":{"_id":"$a","n":{"$sum":"$b.c"}}}]"#, Some("a,b.c; ")),
            (r#"[{"$group":{"_id":"$a","n":{"$push":"$b.c"}}}]"#, Some("a,b.c; b.c")),
            (r#"[{"$group":{"_id":"$a.b","n":{"$max":"$a"}}}]"#, Some("a; ")),
            (
                r#"[{"$group":{"_id":"$a","n":{"$top":{"sortBy":{"b":1},"output":"$c"}}}}]"#,
                Some("a,b,c; b,c"),
            ),
            (
                r#"[{"$group":{"_id":null,"n":{"$sum":1}}},{"$match":{"x":1}}]"#,
                Some("; "),
            ),
            (
                r#"[{"$unwind":"$a"},{"$match":{"b.c":1}},{"$sort":{"d":1}},{"$limit":3},{"$group":{"_id":"$e"}}]"#,
                Some("a,b,d,e; a,b"),
            ),
            (
                r#"[{"$unwind":"$a"},{"$project":{"x":"$b","c":1}}]"#,
                Some("_id,a,b,c; _id,a,b,c"),
            ),
            (r#"[{"$project":{"a":0}},{"$group":{"_id":"$b"}}]"#, Some("a,b; a")),
            (
                r#"[{"$addFields":{"x":"$a","n.y":"$c"}},{"$group":{"_id":"$b"}}]"#,
                Some("a,b,c,n; a,c,n"),
            ),
            (r#"[{"$addFields":{"x":"$$ROOT"}},{"$group":{"_id":"$b"}}]"#, None),
            (r#"[{"$replaceRoot":{"newRoot":"$a"}}]"#, Some("a; a")),
            (r#"[{"$group":{"_id":"$a","all":{"$push":"$$ROOT"}}}]"#, None),
            (r#"[{"$match":{"a":1}}]"#, None),
            (r#"[{"$group":{"_id":{"$meta":"recordId"}}}]"#, None),
            (r#"[]"#, None),
        ] {
            let paths =
                paths_read(&parse(stages)).map(|read| format!("{}; {}", read.all.join(","), read.exactly.join(",")));
            assert_eq!(paths.as_deref(), expected, "{stages}");
        }
    }
}
