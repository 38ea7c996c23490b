//! The rules in their order.

use super::estimate::Statistics;
use super::{
    Plan, counted, extreme, fences, lifted, lookup, loose, merged, order, partitions, presorted, pushdown, settled,
    sums,
};

/// Rewrites a plan: conditions go down and subqueries become joins, partitions are left out, joins are put in order, what an index finds is looked up,
/// and sorts ask scans for their order where an index has it.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = fences::opened(pushdown::push(plan, Vec::new(), statistics));
    let plan = partitions::rewrite(plan, statistics);
    let plan = lifted::rewrite(plan);
    let plan = order::rewrite(plan, statistics);
    let plan = lookup::rewrite(plan, statistics);
    let plan = merged::rewrite(plan);
    let plan = extreme::rewrite(plan, statistics);
    let plan = presorted::rewrite(plan, statistics);
    let plan = fences::gone(sums::rewrite(plan));
    loose::rewrite(counted::rewrite(settled::rewrite(pushdown::pruned(plan))))
}
