//! What conditions over several inputs say of single ones.
//!
//! - `a.x = b.y AND a.x = 5` says `b.y = 5`, and so do ranges and lists.
//! - `a.x = b.y AND a.z = b.y` says `a.x = a.z`.
//! - `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` says `a.x = 1 OR a.x = 3`.

use super::input::Input;
use crate::expr::{Comparison, Expr, Node};
use crate::plan::Plan;
use nestor_planner::relation::Relation;

/// What the branches of an OR say together of one input, whose conditions `is_own` knows.
pub fn by_branches(condition: &Expr, is_own: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let Node::Or(branches) = condition.node() else {
        return None;
    };
    let each = branches.iter().map(|branch| {
        let own: Vec<Expr> = branch.conjuncts().into_iter().filter(|part| is_own(part)).collect();
        (!own.is_empty()).then(|| Expr::all(own))
    });
    Some(Node::Or(each.collect::<Option<_>>()?).into())
}

/// The conditions at the top of a plan.
fn conditions(plan: &Plan) -> Vec<Expr> {
    match plan {
        Relation::Filter { condition, .. } => condition.conjuncts(),
        _ => Vec::new(),
    }
}

/// Whether a condition compares a column with what is the same for all rows of the query, and does nothing else.
fn compares(condition: &Expr, column: usize) -> bool {
    let is = |e: &Expr| matches!(e.node(), Node::Column { index, .. } if *index == column);
    match condition.node() {
        Node::Compare(op, a, b) => {
            *op != Comparison::NotEqual && (is(a) && b.is_constant() || is(b) && a.is_constant())
        }
        Node::InList(a, items, false) => is(a) && items.iter().all(Expr::is_constant),
        _ => false,
    }
}

/// Whether a column of a plan has one value.
pub fn is_fixed(plan: &Plan, expr: &Expr) -> bool {
    let Node::Column { index, .. } = expr.node() else {
        return false;
    };
    let mut all = conditions(plan).into_iter();
    all.any(|c| matches!(c.node(), Node::Compare(Comparison::Equal, ..)) && compares(&c, *index))
}

/// Adds to `own`, the conditions on single inputs, what the equality of `members` says of them.
pub fn by_equality(members: &[(usize, Expr)], inputs: &[Input], own: &mut [Vec<Expr>]) {
    let mut spread = Vec::new();
    for (at, (input, expr)) in members.iter().enumerate() {
        let local = inputs[*input].own(expr);
        if let Some((_, first)) = members[..at].iter().find(|(other, _)| other == input) {
            let first = inputs[*input].own(first);
            own[*input].push(Node::Compare(Comparison::Equal, first, local.clone()).into());
        }
        let Node::Column { index, .. } = local.node() else {
            continue;
        };
        let all = conditions(&inputs[*input].plan).into_iter().chain(own[*input].clone());
        spread.extend(all.filter(|c| compares(c, *index)).map(|c| (at, c)));
    }
    for (from, condition) in spread {
        for (at, (input, expr)) in members.iter().enumerate() {
            if at == from {
                continue;
            }
            let local = inputs[*input].own(expr);
            let said = condition.with_columns(&|_| Some(local.clone()));
            let known = conditions(&inputs[*input].plan);
            if !known.iter().chain(&own[*input]).any(|other| other.is_same(&said)) {
                own[*input].push(said);
            }
        }
    }
}
