//! Sorts of rows that an index has in order: the scan below is asked for that order.
//!
//! `SELECT a FROM t WHERE b > 1 ORDER BY b` reads what the index on `b` finds in its order, and with a limit stops there. The sort stays in the
//! plan: whether rows did come in order is known once the scan runs, and if not they are sorted as ever.

use super::Plan;
use super::estimate::{self, Given, Statistics};
use crate::expr::{Expr, Node};
use nestor_model::Value;
use nestor_planner::relation::{Relation, Scan, SortKey};

/// What reading a document that an index found costs, in documents that are read one after the other.
const FETCH_COST: f64 = 3.0;
/// Where no more rows than these are, it does not matter.
const ROWS_FEW: f64 = 1000.0;
/// The part of the rows that is wanted when a limit is a parameter.
const PART_WANTED: f64 = 0.1;

/// Asks scans for the order of the sorts above them where that costs less than sorting.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, statistics));
    match plan {
        Relation::Sort { input, keys, limit } => Relation::Sort {
            input: Box::new(match wants(&input, &keys, limit.as_ref(), statistics) {
                Some(order) => asking(*input, order),
                None => *input,
            }),
            keys,
            limit,
        },
        other => other,
    }
}

/// The order that the scan below a sort is to be asked for, if that is worth it.
pub fn wants(
    plan: &Plan,
    keys: &[SortKey<Expr>],
    limit: Option<&(Option<Expr>, Expr)>,
    statistics: &dyn Statistics,
) -> Option<Vec<SortKey<Expr>>> {
    let (scan, order) = below(plan, keys.to_vec())?;
    let asks = Scan { order, ..scan.clone() };
    let pays = match statistics.gives_order(&asks) {
        Given::No => false,
        Given::Part => true,
        Given::Whole if !statistics.switches().sort || !statistics.switches().seqscan => true,
        Given::Whole => limit.is_some_and(|(skip, limit)| {
            let found = estimate::rows(plan, statistics);
            let skipped = skip.as_ref().map_or(Some(0.0), number);
            let wanted = number(limit).zip(skipped).map(|(limit, skip)| limit + skip);
            let wanted = wanted.unwrap_or(found * PART_WANTED);
            statistics.rows(scan.table) <= ROWS_FEW || found >= wanted * FETCH_COST
        }),
    };
    pays.then_some(asks.order)
}

/// The scan that a plan is, and what rows of it are ordered by when those of the plan are by `keys`, columns all of them.
fn below(plan: &Plan, keys: Vec<SortKey<Expr>>) -> Option<(&Scan<Expr>, Vec<SortKey<Expr>>)> {
    match plan {
        Relation::Filter { input, .. } => below(input, keys),
        Relation::Project { input, columns } => {
            let each = keys.into_iter().map(|key| match key.by.node() {
                Node::Column { index, .. } => Some(SortKey {
                    by: columns.get(*index)?.clone(),
                    ..key
                }),
                _ => None,
            });
            let keys = each.collect::<Option<_>>()?;
            below(input, keys)
        }
        Relation::Scan(scan) => {
            let are_columns = keys.iter().all(|key| matches!(key.by.node(), Node::Column { .. }));
            (are_columns && !keys.is_empty()).then_some((scan, keys))
        }
        _ => None,
    }
}

/// The plan with its scan asked for an order.
fn asking(plan: Plan, order: Vec<SortKey<Expr>>) -> Plan {
    match plan {
        Relation::Scan(scan) => Relation::Scan(Scan { order, ..scan }),
        other => super::with_inputs(other, &mut |input| asking(input, order.clone())),
    }
}

/// The number that a limit is, as far as it is known.
fn number(limit: &Expr) -> Option<f64> {
    match limit.node() {
        Node::Const(Value::Int32(n), _) => Some(f64::from(*n)),
        Node::Const(Value::Int64(n), _) => Some(*n as f64),
        Node::Const(Value::Null, _) => Some(f64::MAX),
        Node::Cast { arg, .. } => number(arg),
        _ => None,
    }
}
