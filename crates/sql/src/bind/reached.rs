//! For which rows the subqueries of expressions are wanted.
//!
//! A subquery within `CASE`, `COALESCE`, `AND` and `OR` may not be reached, and then it is not to run: it costs, and it may fail. Its node in the plan
//! has the condition under which it is, made of what is looked at before it.

use crate::expr::{Expr, Node};
use crate::types::Type;
use nestor_model::Value;
use std::collections::BTreeSet;

/// When an expression comes to look at a column.
enum Reach {
    Never,
    Always,
    /// If this holds.
    When(Expr),
}

/// Which of the columns `wanted`, which stand for subqueries, gets its place in the plan first, and for which rows, if not for all. That is the first whose
/// condition looks at none of the others.
pub fn next(wanted: &BTreeSet<usize>, exprs: &[Expr]) -> Option<(usize, Option<Expr>)> {
    for column in wanted {
        let reach = any(exprs.iter(), *column);
        let Reach::When(when) = reach else {
            return Some((*column, None));
        };
        let mut waits = false;
        when.for_each_column(&mut |index| waits |= wanted.contains(&index));
        if !waits && !when.is_volatile() && !when.is_large() {
            return Some((*column, Some(when)));
        }
    }
    wanted.first().map(|first| (*first, None))
}

/// An expression that is only looked at if `when` holds.
pub fn guarded(when: &Expr, expr: &Expr) -> Expr {
    case(None, vec![(when.clone(), expr.clone())], None, expr.ty())
}

/// The expression of a [`guarded`] one.
pub fn unguarded(expr: &Expr) -> Expr {
    match expr.node() {
        Node::Case { arms, .. } => arms.first().map_or_else(|| expr.clone(), |(_, own)| own.clone()),
        _ => expr.clone(),
    }
}

fn is_true(condition: &Expr) -> Expr {
    Node::IsBool {
        arg: condition.clone(),
        is: true,
        negated: false,
    }
    .into()
}

fn case(operand: Option<&Expr>, arms: Vec<(Expr, Expr)>, otherwise: Option<Expr>, ty: Type) -> Expr {
    Node::Case {
        operand: operand.cloned(),
        arms,
        otherwise,
        ty,
    }
    .into()
}

/// Under which condition one of some expressions, all of which are computed, looks at a column.
fn any<'e>(exprs: impl Iterator<Item = &'e Expr>, column: usize) -> Reach {
    let mut found = Vec::new();
    for expr in exprs {
        match reach(expr, column) {
            Reach::Never => {}
            Reach::Always => return Reach::Always,
            Reach::When(when) => found.push(when),
        }
    }
    one_of(found)
}

fn one_of(mut conditions: Vec<Expr>) -> Reach {
    match conditions.len() {
        0 => Reach::Never,
        1 => conditions.pop().map_or(Reach::Never, Reach::When),
        _ => Reach::When(Node::Or(conditions).into()),
    }
}

/// Under which condition an expression looks at a column. Where it does so after it may have done it before, that is always.
fn reach(expr: &Expr, column: usize) -> Reach {
    let mut is_there = false;
    expr.for_each_column(&mut |index| is_there |= index == column);
    if !is_there {
        return Reach::Never;
    }
    match expr.node() {
        Node::Column { .. } => Reach::Always,
        Node::And(items) => in_turn(items, column, |item| Node::Not(item.clone()).into()),
        Node::Or(items) => in_turn(items, column, Expr::clone),
        Node::Coalesce(items, _) => in_turn(items, column, |item| {
            Node::Distinct(item.clone(), Expr::constant(Value::Null, item.ty()), false).into()
        }),
        Node::Case {
            operand,
            arms,
            otherwise,
            ..
        } => {
            if let Some(Reach::Always) = operand.as_ref().map(|operand| reach(operand, column)) {
                return Reach::Always;
            }
            let mut steps = Vec::new();
            for (condition, result) in arms {
                steps.push(Step::Look(condition));
                steps.push(Step::Leave(condition.clone(), Some(result)));
            }
            steps.extend(otherwise.as_ref().map(Step::Look));
            through(operand.as_ref(), &steps, column)
        }
        _ => any(expr.parts().into_iter(), column),
    }
}

/// What is computed one after the other until one settles what comes of all, which `settles` says of it.
fn in_turn(items: &[Expr], column: usize, settles: impl Fn(&Expr) -> Expr) -> Reach {
    let steps: Vec<Step<'_>> = items
        .iter()
        .flat_map(|item| [Step::Look(item), Step::Leave(settles(item), None)])
        .collect();
    through(None, &steps, column)
}

/// A step of what is computed in turn.
enum Step<'e> {
    /// This is computed.
    Look(&'e Expr),
    /// If the condition holds this one is computed, and no other step.
    Leave(Expr, Option<&'e Expr>),
}

fn through(operand: Option<&Expr>, steps: &[Step<'_>], column: usize) -> Reach {
    let (no, yes) = (Expr::bool(false), Expr::bool(true));
    let mut found = Vec::new();
    let mut before: Vec<(Expr, Expr)> = Vec::new();
    for step in steps {
        let (own, to) = match step {
            Step::Look(own) => (reach(own, column), None),
            Step::Leave(to, Some(own)) => (reach(own, column), Some(to)),
            Step::Leave(_, None) => (Reach::Never, None),
        };
        let condition = match (own, to) {
            (Reach::Never, _) => None,
            (Reach::Always, None) if before.is_empty() => return Reach::Always,
            (Reach::Always, to) => Some(to.cloned().unwrap_or_else(|| yes.clone())),
            (Reach::When(when), None) => Some(when),
            (Reach::When(when), Some(to)) => Some(Node::And(vec![is_true(to), when]).into()),
        };
        if let Some(condition) = condition {
            let mut arms = before.clone();
            arms.push((condition, yes.clone()));
            found.push(case(operand, arms, Some(no.clone()), Type::Bool));
        }
        if let Step::Leave(to, _) = step {
            before.push((to.clone(), no.clone()));
        }
    }
    let mut again = false;
    for condition in &found {
        condition.for_each_column(&mut |index| again |= index == column);
    }
    match again {
        true => Reach::Always,
        false => one_of(found),
    }
}
