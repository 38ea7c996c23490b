//! `count(*)` of a table, with conditions that its scan settles, is asked of the scan: often it need not look at documents.

use super::Plan;
use crate::expr::Expr;
use crate::types::Type;
use nestor_model::Value;
use nestor_planner::relation::Relation;

/// Asks scans for the number of their rows where nothing else of them is wanted.
pub fn rewrite(plan: Plan) -> Plan {
    let plan = super::with_inputs(plan, &mut rewrite);
    let Relation::Aggregate {
        input,
        groups,
        sets,
        calls,
        limit,
    } = plan
    else {
        return plan;
    };
    let plain = calls.iter().all(|call| {
        let counts = call.function.name() == "count" && call.args.is_empty();
        counts && !call.distinct && call.filter.is_none() && call.order.is_empty()
    });
    match *input {
        Relation::Scan(scan) if plain && !calls.is_empty() && groups.is_empty() && sets.len() == 1 => {
            let each = calls.iter().map(|_| Expr::column(0, "count", Type::Int8));
            let set = Expr::constant(Value::Int64(0), Type::Int8);
            Relation::Project {
                columns: each.chain([set]).collect(),
                input: Box::new(Relation::Count(scan)),
            }
        }
        input => Relation::Aggregate {
            input: Box::new(input),
            groups,
            sets,
            calls,
            limit,
        },
    }
}
