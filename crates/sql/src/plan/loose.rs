//! `SELECT DISTINCT a FROM t` wants each value of `a` once: its scan is told so, and may jump from value to value in an index.

use super::Plan;
use crate::expr::Node;
use nestor_planner::relation::{Relation, Scan};

/// Tells scans of whose rows only the different ones are wanted.
pub fn rewrite(plan: Plan) -> Plan {
    match super::with_inputs(plan, &mut rewrite) {
        Relation::Distinct { input, on } => Relation::Distinct {
            input: Box::new(told(*input)),
            on,
        },
        other => other,
    }
}

/// Rows that are equal as the scan gives them are equal still where columns are only chosen.
fn told(plan: Plan) -> Plan {
    match plan {
        Relation::Scan(scan) if scan.order.is_empty() => Relation::Scan(Scan { distinct: true, ..scan }),
        Relation::Project { input, columns } => {
            let plain = |expr: &crate::expr::Expr| matches!(expr.node(), Node::Column { .. } | Node::Const(..));
            let input = match columns.iter().all(plain) {
                true => Box::new(told(*input)),
                false => input,
            };
            Relation::Project { input, columns }
        }
        other => other,
    }
}
