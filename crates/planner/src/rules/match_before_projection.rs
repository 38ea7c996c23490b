//! `$match` goes before `$project`, `$addFields`, `$set` and `$unset`, as far as its conditions are on fields that the
//! projection keeps or renames.
//!
//! Law: `σ p (π x) = π (σ p' x)` where `π` leaves the top-level fields that `p` reads as they are, and `p'` is `p` with the
//! renamed ones under their old names. Fields below a changed one do not count as kept, although some are: a dotted
//! inclusion drops scalars from arrays, and a dotted computed field makes documents of them, which conditions can tell.

use super::{move_match, reads_only};
use crate::plan::StageNode;
use nestor_model::Path;
use nestor_query::matcher::{Leaf, MatchExpr};
use nestor_query::projection::{Effect, Projection};
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let Some(Stage::Project { projection, .. }) = stages.get(at).and_then(StageNode::parsed) else {
        return false;
    };
    let projection = projection.clone();
    move_match(stages, at, |condition| before(condition, &projection))
}

/// The condition on what goes into the projection.
fn before(condition: &MatchExpr, projection: &Projection) -> Option<MatchExpr> {
    if reads_only(condition, |field| projection.effect(field) == Effect::Keeps) {
        return Some(condition.clone());
    }
    renamed(condition, projection)
}

/// The condition with renamed fields under their old names; there is none for expressions.
fn renamed(condition: &MatchExpr, projection: &Projection) -> Option<MatchExpr> {
    let each = |children: &[MatchExpr]| -> Option<Vec<MatchExpr>> {
        children.iter().map(|child| renamed(child, projection)).collect()
    };
    Some(match condition {
        MatchExpr::AlwaysTrue | MatchExpr::AlwaysFalse => condition.clone(),
        MatchExpr::And(children) => MatchExpr::And(each(children)?),
        MatchExpr::Or(children) => MatchExpr::Or(each(children)?),
        MatchExpr::Nor(children) => MatchExpr::Nor(each(children)?),
        MatchExpr::Not(child) => MatchExpr::Not(Box::new(renamed(child, projection)?)),
        MatchExpr::Leaf(leaf) => MatchExpr::Leaf(Leaf {
            path: match projection.effect(leaf.path.head()) {
                Effect::Keeps => leaf.path.clone(),
                Effect::Renames(old) => {
                    let below = &leaf.path.as_str()[leaf.path.head().len()..];
                    Path::new(&format!("{old}{below}"))
                }
                Effect::Changes => return None,
            },
            predicate: leaf.predicate.clone(),
        }),
        MatchExpr::Expr(_) | MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn conditions_on_kept_and_renamed_fields_go_before() {
        for (before, after) in [
            (
                r#"[{"$project":{"a":1,"x":"$b","y":{"$add":["$c",1]}}},{"$match":{"a":1,"x.z":2,"y":3,"_id":4}}]"#,
                r#"[{"$match":{"$and":[{"a":{"$eq":1}},{"b.z":{"$eq":2}},{"_id":{"$eq":4}}]}},{"$project":{"a":1,"x":"$b","y":{"$add":["$c",1]}}},{"$match":{"y":{"$eq":3}}}]"#,
            ),
            (
                r#"[{"$unset":["a","b.c"]},{"$match":{"$or":[{"d":1},{"e":1}],"b.d":1}}]"#,
                r#"[{"$match":{"$or":[{"d":{"$eq":1}},{"e":{"$eq":1}}]}},{"$unset":["a","b.c"]},{"$match":{"b.d":{"$eq":1}}}]"#,
            ),
            (
                r#"[{"$set":{"a":"$b"}},{"$match":{"$expr":{"$eq":["$b","$c"]}}}]"#,
                r#"[{"$match":{"$expr":{"$eq":["$b","$c"]}}},{"$set":{"a":"$b"}}]"#,
            ),
            (
                r#"[{"$set":{"a":"$b"}},{"$match":{"$expr":{"$eq":["$a","$$ROOT"]}}}]"#,
                r#"[{"$set":{"a":"$b"}},{"$match":{"$expr":{"$eq":["$a","$$ROOT"]}}}]"#,
            ),
        ] {
            rewrites("match_before_projection", before, after);
        }
    }
}
