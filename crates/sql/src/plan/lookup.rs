//! A join whose left side has few rows and whose right side is a table with an index on the key looks rows up.
//!
//! `a JOIN b ON b.x = a.y` becomes, for each row of `a`, what a scan of `b` finds by `x`: the find layer chooses the index as
//! it does for any filter, and nothing is kept.

use super::estimate::{self, FOUND_COST, LOOKUP_COST, Statistics};
use super::{Plan, outward, pushdown, reaches_out};
use crate::expr::{Comparison, Expr, Node};
use nestor_planner::relation::{Apply, ApplyKind, Join, JoinKind, Relation};

/// Turns joins into lookups where that costs less.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, statistics));
    match plan {
        Relation::Join(join) if is_cheaper(&join, statistics) => looked_up(*join, statistics),
        other => other,
    }
}

fn is_cheaper(join: &Join<Expr>, statistics: &dyn Statistics) -> bool {
    if !matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
        return false;
    }
    let Some(scan) = estimate::scan_of(&join.right) else {
        return false;
    };
    // It would stand a level deeper in the queries.
    if reaches_out(&join.right, 1) {
        return false;
    }
    let width = join.left.width() as isize;
    let indexed = join.keys.iter().any(|(_, right)| {
        let source = estimate::source(&join.right, &right.shifted(-width));
        source.is_some_and(|(table, column)| statistics.is_indexed(table, column))
    });
    // What the scan reads, whatever its filter lets through.
    let read = statistics
        .reads(scan.table)
        .min(estimate::rows(&join.right, statistics) * LOOKUP_COST);
    indexed && {
        let left = estimate::rows(&join.left, statistics);
        let keys = join.keys.iter().map(|(a, b)| (a.clone(), b.shifted(-width)));
        // All that have the key are fetched, whatever the table's own conditions say of them then.
        let found = estimate::joined(
            (&join.left, left),
            (&join.right, statistics.rows(scan.table)),
            &keys.collect::<Vec<_>>(),
            statistics,
        );
        left * LOOKUP_COST + found * FOUND_COST < read
    }
}

fn looked_up(join: Join<Expr>, statistics: &dyn Statistics) -> Plan {
    let width = join.left.width();
    let keys = join.keys.into_iter();
    let keys = keys.map(|(left, right)| Expr::from(Node::Compare(Comparison::Equal, right, left)));
    let all = keys.chain(join.condition.iter().flat_map(Expr::conjuncts));
    let inner = all.map(|condition| pushdown::inward(&outward(&condition), width));
    let inner = inner.collect();
    Relation::Apply(Box::new(Apply {
        input: join.left,
        inner: pushdown::push(join.right, inner, statistics),
        kind: ApplyKind::Lateral {
            keeps: join.kind == JoinKind::Left,
        },
        correlated: true,
    }))
}
