//! Conditions that a scan was given are the scan's own matter: it knows whether the find layer settled them, and looks at each row only
//! where it did not. What stands in a filter above it is then left out there.

use super::Plan;
use crate::expr::Expr;
use nestor_planner::relation::{Relation, Scan};

/// Leaves scans to settle their conditions. Whoever estimates rows by filters has to do so before.
pub fn rewrite(plan: Plan) -> Plan {
    let plan = super::with_inputs(plan, &mut rewrite);
    match plan {
        Relation::Scan(scan) => Relation::Scan(Scan { settles: true, ..scan }),
        Relation::Filter { input, condition } => match *input {
            Relation::Scan(scan) => {
                let is_settled = |part: &Expr| scan.conditions.iter().any(|own| own.is_same(part));
                let rest: Vec<Expr> = condition
                    .conjuncts()
                    .into_iter()
                    .filter(|part| !is_settled(part))
                    .collect();
                let input = Relation::Scan(scan);
                match rest.is_empty() {
                    true => input,
                    false => Relation::Filter {
                        input: Box::new(input),
                        condition: Expr::all(rest),
                    },
                }
            }
            input => Relation::Filter {
                input: Box::new(input),
                condition,
            },
        },
        other => other,
    }
}
