//! Projections that only pick columns go into what stands above them.
//!
//! Joins that were put in another order have a projection above them that gives every column its place back, most of which nobody looks
//! at. A projection above it reads the places beneath.

use super::Plan;
use super::unnest::placed;
use crate::expr::{Expr, Node};
use nestor_planner::relation::Relation;

/// Takes such projections out.
pub fn rewrite(plan: Plan) -> Plan {
    let plan = super::with_inputs(plan, &mut rewrite);
    match plan {
        Relation::Project { input, columns } => match *input {
            Relation::Project {
                input: below,
                columns: picked,
            } if columns.iter().all(|column| picks(column, &picked)) => Relation::Project {
                input: below,
                columns: columns.iter().map(|column| through(column, &picked)).collect(),
            },
            input => Relation::Project {
                input: Box::new(input),
                columns,
            },
        },
        other => other,
    }
}

/// Whether all columns that an expression uses are columns beneath.
fn picks(expr: &Expr, picked: &[Expr]) -> bool {
    let mut all = true;
    expr.for_each_column(&mut |column| {
        all &= picked
            .get(column)
            .is_some_and(|c| matches!(c.node(), Node::Column { .. }))
    });
    all
}

/// The expression over what is beneath.
fn through(expr: &Expr, picked: &[Expr]) -> Expr {
    placed(expr, &|column| match picked.get(column)?.node() {
        Node::Column { index, .. } => Some(*index),
        _ => None,
    })
}
