//! The rules in their order.

use super::estimate::Statistics;
use super::{Plan, lookup, order, pushdown};

/// Rewrites a plan: conditions go down and subqueries become joins, joins are put in order, and what an index finds is looked up.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = pushdown::push(plan, Vec::new(), statistics);
    let plan = order::rewrite(plan, statistics);
    let plan = lookup::rewrite(plan, statistics);
    pushdown::pruned(plan)
}
