//! `$project`, `$addFields`, `$set` and `$unset` become part of a `$group` behind them, which computes from what goes into them.
//!
//! Law: `γ e (π x) = γ e' x`, where `e'` is `e` with what `π` computes in the place of the fields. What is computed is named by the group once, or is a
//! field or a constant, so nothing is computed twice; what gives another value each time stays where it is. Of a field that was
//! computed nothing but the whole value is read: fields below one are those of a field that only got another name.

use crate::plan::{StageNode, StageOp};
use nestor_model::{Path, Str};
use nestor_query::expr::{Deps, Expr};
use nestor_query::projection::{Effect, Mode, Projection};
use nestor_query::stage::{Group, GroupField, Stage};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (Some(first), Some(second)) = (stages.get(at), stages.get(at + 1)) else {
        return false;
    };
    let (Some(Stage::Project { projection, .. }), Some(Stage::Group(group))) = (first.parsed(), second.parsed()) else {
        return false;
    };
    // What only keeps fields goes into the find below, where explain shows it as MongoDB's does.
    if projection.is_top_level() && projection.mode() == Mode::Inclusion {
        return false;
    }
    let Some(group) = within(projection, group) else {
        return false;
    };
    let projected = first.shown();
    let second = &mut stages[at + 1];
    second.op = StageOp::Parsed(Stage::Group(Arc::new(group)));
    second.computed.insert(0, projected);
    stages.remove(at);
    true
}

/// The group of what goes into the projection.
fn within(projection: &Projection, group: &Group) -> Option<Group> {
    let mut named = HashSet::new();
    let mut of = |path: &Path| before(projection, path, &mut named);
    let id = group.id.substituted(&mut of)?;
    let fields = group.fields.iter().map(|field| {
        Some(GroupField {
            name: field.name.clone(),
            accumulator: field.accumulator.substituted(&mut of)?,
        })
    });
    Some(Group {
        fields: fields.collect::<Option<_>>()?,
        id,
    })
}

/// What is at a path of what comes out, of what goes in.
fn before(projection: &Projection, path: &Path, named: &mut HashSet<Str>) -> Option<Expr> {
    let (head, below) = (path.head(), &path.as_str()[path.head().len()..]);
    match projection.effect(head) {
        Effect::Keeps => Expr::field(path.as_str()).ok(),
        Effect::Renames(old) => Expr::field(&format!("{old}{below}")).ok(),
        Effect::Changes if below.is_empty() => {
            let expr = projection.computed(head)?;
            let mut deps = Deps::default();
            expr.dependencies(&mut deps);
            let is_light = expr.constant().is_some() || expr.field_path().is_some();
            let is_once = is_light || named.insert(head.into());
            (is_once && !deps.volatile && !deps.whole_document).then(|| expr.clone())
        }
        Effect::Changes => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{parse, print};

    #[test]
    fn groups_compute_from_what_goes_into_projections() {
        for (stages, is_one) in [
            (
                r#"[{"$addFields":{"x":{"$add":["$a",1]}}},{"$group":{"_id":"$x","n":{"$sum":"$b.c"}}}]"#,
                true,
            ),
            (
                r#"[{"$project":{"x":"$a","b":1}},{"$group":{"_id":"$x.y","n":{"$sum":"$b"}}}]"#,
                true,
            ),
            (r#"[{"$unset":"a"},{"$group":{"_id":"$b","n":{"$sum":1}}}]"#, true),
            // Computed once for two uses.
            (
                r#"[{"$set":{"x":{"$add":["$a",1]}}},{"$group":{"_id":"$x","n":{"$sum":"$x"}}}]"#,
                false,
            ),
            (r#"[{"$set":{"x":{"$rand":{}}}},{"$group":{"_id":"$x"}}]"#, false),
            (r#"[{"$unset":"a"},{"$group":{"_id":"$a"}}]"#, false),
            (r#"[{"$project":{"a":1}},{"$group":{"_id":"$a"}}]"#, false),
            (r#"[{"$project":{"a.b":1}},{"$group":{"_id":"$a.b"}}]"#, false),
            (
                r#"[{"$project":{"x":{"$add":["$a",1]}}},{"$group":{"_id":"$x.y"}}]"#,
                false,
            ),
            (
                r#"[{"$project":{"x":1}},{"$group":{"_id":null,"all":{"$push":"$$ROOT"}}}]"#,
                false,
            ),
            (
                r#"[{"$set":{"x":"$a"}},{"$group":{"_id":null,"all":{"$top":{"sortBy":{"x":1},"output":"$b"}}}}]"#,
                false,
            ),
        ] {
            let mut nodes = parse(stages);
            let changed = super::apply(&mut nodes, 0);
            assert_eq!(
                (changed, nodes.len()),
                (is_one, if is_one { 1 } else { 2 }),
                "{}",
                print(&nodes)
            );
        }
    }
}
