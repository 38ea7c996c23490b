//! Partitions that have no rows of which the conditions of their scans hold are left out, as far as constants tell. What parameters and rows of enclosing
//! queries tell is known when scans are opened.

use super::Plan;
use super::estimate::Statistics;
use nestor_planner::relation::Relation;

/// Leaves them out.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, statistics));
    let Relation::Append { mut inputs } = plan else {
        return plan;
    };
    let width = inputs.first().map_or(0, Relation::width);
    inputs.retain(|input| !is_excluded(input, statistics));
    match (inputs.len(), inputs.pop()) {
        (_, None) => Relation::Values {
            rows: Vec::new(),
            width,
        },
        (1, Some(only)) => only,
        (_, Some(last)) => {
            inputs.push(last);
            Relation::Append { inputs }
        }
    }
}

fn is_excluded(plan: &Plan, statistics: &dyn Statistics) -> bool {
    match plan {
        Relation::Filter { input, .. } => is_excluded(input, statistics),
        Relation::Scan(scan) => statistics.excludes(scan),
        _ => false,
    }
}
