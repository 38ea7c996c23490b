//! Projections that only pick columns go above the joins and filters of what they pick from.
//!
//! A view's query has a projection on top. Beneath it joins of views could neither be put in order with others nor be looked up; above all of the
//! joins it picks the same columns.

use super::Plan;
use super::unnest::placed;
use crate::expr::{Expr, Node};
use crate::types::Type;
use nestor_planner::relation::{Join, JoinKind, Relation};

/// Lifts such projections.
pub fn rewrite(plan: Plan) -> Plan {
    let plan = super::with_inputs(plan, &mut rewrite);
    match plan {
        Relation::Join(join) => over_join(*join),
        Relation::Filter { input, condition } => match *input {
            Relation::Project { input, columns } if picks(&columns) => Relation::Project {
                input: Box::new(Relation::Filter {
                    input,
                    condition: placed(&condition, &|at| place(&columns, at)),
                }),
                columns,
            },
            input => Relation::Filter {
                input: Box::new(input),
                condition,
            },
        },
        Relation::Project { input, columns } => match *input {
            Relation::Project { input, columns: picked } if picks(&picked) => Relation::Project {
                input,
                columns: columns.iter().map(|c| placed(c, &|at| place(&picked, at))).collect(),
            },
            input => Relation::Project {
                input: Box::new(input),
                columns,
            },
        },
        other => other,
    }
}

/// Whether a projection only picks columns.
fn picks(columns: &[Expr]) -> bool {
    columns
        .iter()
        .all(|column| matches!(column.node(), Node::Column { .. }))
}

/// The column that one of a projection is.
fn place(columns: &[Expr], at: usize) -> Option<usize> {
    match columns.get(at)?.node() {
        Node::Column { index, .. } => Some(*index),
        _ => None,
    }
}

/// What a side of a join picks from, and what it picks.
fn beneath(side: Plan) -> (Plan, Vec<Expr>, bool) {
    match side {
        Relation::Project { input, columns } if picks(&columns) => (*input, columns, true),
        side => {
            let name = |i: usize| Expr::column(i, format!("column{}", i + 1), Type::Unknown);
            let columns = (0..side.width()).map(name).collect();
            (side, columns, false)
        }
    }
}

fn over_join(join: Join<Expr>) -> Plan {
    let ((left, of_left, lifts_left), (right, of_right, lifts_right)) = (beneath(join.left), beneath(join.right));
    if !lifts_left && !lifts_right {
        return Relation::Join(Box::new(Join { left, right, ..join }));
    }
    let width = left.width() as isize;
    let picked: Vec<Expr> = of_left
        .iter()
        .cloned()
        .chain(of_right.iter().map(|column| column.shifted(width)))
        .collect();
    let here = |expr: &Expr| placed(expr, &|at| place(&picked, at));
    let made = Join {
        kind: join.kind,
        left,
        right,
        keys: join.keys.iter().map(|(a, b)| (here(a), here(b))).collect(),
        condition: join.condition.as_ref().map(here),
        left_first: join.left_first,
    };
    let columns = match join.kind {
        JoinKind::Semi | JoinKind::Anti => of_left,
        _ => picked,
    };
    Relation::Project {
        input: Box::new(Relation::Join(Box::new(made))),
        columns,
    }
}
