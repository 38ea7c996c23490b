//! Rules that rewrite a pipeline into one with the same answer that costs less.
//!
//! One rule per file, each with the law that makes it right. A rule looks at the stages from one position on and changes them
//! or does not; [`rewrite`] tries all rules at all positions until none of them changes anything. Every rule makes progress
//! in one direction: conditions, limits and skips move towards the source, or there is one stage less. So that ends.
//!
//! What "the same answer" means: the same documents, in the same order where the pipeline has one. A rule may let a pipeline
//! compute less, so an error that a document would have raised which is left out anyway may be gone. Source for which rules a
//! user may expect: manual, "Aggregation Pipeline Optimization".
//!
//! The laws are tested with random pipelines over random documents, each rule alone against no rule
//! (`crates/testkit/tests/rule_laws.rs`).

mod adjacent_limits;
mod adjacent_matches;
mod limit_before_rows;
mod lookup_unwind;
mod lookup_unwind_match;
mod match_before_lookup;
mod match_before_mask;
mod match_before_projection;
mod match_before_public_buckets;
mod match_before_sort;
mod match_before_unwind;
mod match_into_changes;
mod match_into_unpack;
mod projection_into_group;
mod sort_limit;
#[cfg(test)]
pub(crate) mod testing;

use crate::plan::StageNode;
use nestor_query::expr::Deps;
use nestor_query::matcher::MatchExpr;
use std::sync::Arc;

/// A rule.
pub struct Rule {
    /// Its name: that of its file.
    pub name: &'static str,
    /// Rewrites the stages from the given position on; whether it changed any.
    pub apply: fn(&mut Vec<StageNode>, usize) -> bool,
}

/// All rules, in the order in which they are tried at a position.
pub static RULES: &[Rule] = &[
    Rule {
        name: "adjacent_matches",
        apply: adjacent_matches::apply,
    },
    Rule {
        name: "match_before_sort",
        apply: match_before_sort::apply,
    },
    Rule {
        name: "match_before_projection",
        apply: match_before_projection::apply,
    },
    Rule {
        name: "match_before_mask",
        apply: match_before_mask::apply,
    },
    Rule {
        name: "match_before_public_buckets",
        apply: match_before_public_buckets::apply,
    },
    Rule {
        name: "match_into_unpack",
        apply: match_into_unpack::apply,
    },
    Rule {
        name: "match_before_unwind",
        apply: match_before_unwind::apply,
    },
    Rule {
        name: "match_before_lookup",
        apply: match_before_lookup::apply,
    },
    Rule {
        name: "match_into_changes",
        apply: match_into_changes::apply,
    },
    Rule {
        name: "adjacent_limits",
        apply: adjacent_limits::apply,
    },
    Rule {
        name: "limit_before_rows",
        apply: |stages, at| limit_before_rows::apply(stages, at),
    },
    Rule {
        name: "projection_into_group",
        apply: projection_into_group::apply,
    },
    Rule {
        name: "sort_limit",
        apply: sort_limit::apply,
    },
    Rule {
        name: "lookup_unwind",
        apply: lookup_unwind::apply,
    },
    Rule {
        name: "lookup_unwind_match",
        apply: lookup_unwind_match::apply,
    },
];

/// Changes to one pipeline at most: a thousand conditions behind a thousand projections are not worth a million steps.
const CHANGES_MAX: usize = 20_000;

/// Applies `rules` until none of them changes anything, or until they changed enough.
pub fn rewrite(stages: &mut Vec<StageNode>, rules: &[Rule]) {
    let (mut at, mut changes) = (0, 0);
    while at < stages.len() && changes < CHANGES_MAX {
        if rules.iter().any(|rule| (rule.apply)(stages, at)) {
            changes += 1;
            // A stage that moved towards the source may go on there.
            at = at.saturating_sub(1);
        } else {
            at += 1;
        }
    }
}

/// The top-level fields that decide whether a condition holds; `None` when something else counts as well: the document as a
/// whole, metadata, chance.
pub fn fields_read(condition: &MatchExpr) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    note_fields(condition, &mut fields).then_some(fields)
}

fn note_fields(condition: &MatchExpr, fields: &mut Vec<String>) -> bool {
    match condition {
        MatchExpr::AlwaysTrue | MatchExpr::AlwaysFalse => true,
        MatchExpr::And(all) | MatchExpr::Or(all) | MatchExpr::Nor(all) => {
            all.iter().all(|child| note_fields(child, fields))
        }
        MatchExpr::Not(child) => note_fields(child, fields),
        MatchExpr::Leaf(leaf) => {
            fields.push(leaf.path.head().to_owned());
            true
        }
        MatchExpr::Expr(test) => {
            let mut deps = Deps::default();
            test.expr.dependencies(&mut deps);
            let heads = deps.paths.iter().filter_map(|path| path.split('.').next());
            fields.extend(heads.map(str::to_owned));
            !deps.whole_document && deps.metadata.is_empty() && !deps.volatile
        }
        MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => false,
    }
}

/// Whether a condition depends on top-level fields alone, and each of them satisfies `unchanged`.
fn reads_only(condition: &MatchExpr, unchanged: impl Fn(&str) -> bool) -> bool {
    fields_read(condition).is_some_and(|fields| fields.iter().all(|field| unchanged(field)))
}

/// A conjunction in two: what `moved` makes of the conditions for which it has something, and the others. `None` when it has
/// nothing for any of them.
fn divide(
    filter: &Arc<MatchExpr>,
    moved: impl Fn(&MatchExpr) -> Option<MatchExpr>,
) -> Option<(Arc<MatchExpr>, Option<Arc<MatchExpr>>)> {
    let conditions = match &**filter {
        MatchExpr::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for condition in conditions {
        match moved(condition) {
            Some(condition) => first.push(condition),
            None => rest.push(condition.clone()),
        }
    }
    if first.is_empty() {
        return None;
    }
    let rest = (!rest.is_empty()).then(|| conjunction(rest));
    Some((conjunction(first), rest))
}

fn conjunction(mut all: Vec<MatchExpr>) -> Arc<MatchExpr> {
    Arc::new(match all.len() {
        1 => all.swap_remove(0),
        _ => MatchExpr::And(all),
    })
}

/// Moves the part of the `$match` at `at + 1` for which `moved` has something in front of the stage at `at`; the stage and
/// the rest of the `$match` follow.
fn move_match(stages: &mut Vec<StageNode>, at: usize, moved: impl Fn(&MatchExpr) -> Option<MatchExpr>) -> bool {
    let Some(filter) = stages.get(at + 1).and_then(StageNode::filter) else {
        return false;
    };
    let Some((first, rest)) = divide(filter, moved) else {
        return false;
    };
    stages.remove(at + 1);
    if let Some(rest) = rest {
        stages.insert(at + 1, StageNode::matching(rest));
    }
    stages.insert(at, StageNode::matching(first));
    true
}
