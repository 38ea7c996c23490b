//! The least and the largest value of a column that an index has in order are those of the first row in that order.
//!
//! `SELECT min(a), max(b) FROM t` is the pair of `min` over `(SELECT a FROM t ORDER BY a LIMIT 1)` and `max` over
//! `(SELECT b FROM t ORDER BY b DESC NULLS LAST LIMIT 1)`. Nulls come last, so a null is first where there is nothing else.

use super::estimate::Statistics;
use super::{Plan, presorted};
use crate::expr::Expr;
use crate::types::Type;
use nestor_model::Value;
use nestor_planner::relation::{Call, Relation, SortKey};

/// Aggregates of a query whose rows are read once for each of them.
const CALLS_MAX: usize = 8;

/// Reads one row for each least or largest value where an index has it.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, statistics));
    let split = match &plan {
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            ..
        } if groups.is_empty() && sets.len() == 1 && (1..=CALLS_MAX).contains(&calls.len()) => {
            split(input, calls, statistics)
        }
        _ => None,
    };
    split.unwrap_or(plan)
}

fn split(input: &Plan, calls: &[Call<Expr>], statistics: &dyn Statistics) -> Option<Plan> {
    let firsts = calls.iter().map(|call| first(input, call, statistics));
    let mut firsts = firsts.collect::<Option<Vec<Plan>>>()?.into_iter();
    let joined = firsts.next()?;
    let joined = firsts.fold(joined, super::cross);
    if calls.len() == 1 {
        return Some(joined);
    }
    // Each of them has the number of its grouping set behind its value.
    let values = calls.iter().enumerate().map(|(i, call)| {
        let ty = call.args.first().map_or(Type::Unknown, Expr::ty);
        Expr::column(2 * i, call.function.name(), ty)
    });
    let set = Expr::column(1, "set", Type::Int8);
    Some(Relation::Project {
        columns: values.chain([set]).collect(),
        input: Box::new(joined),
    })
}

/// A call over the one row that decides it, if an index has that.
fn first(input: &Plan, call: &Call<Expr>, statistics: &dyn Statistics) -> Option<Plan> {
    let descending = match call.function.name() {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let [by] = call.args.as_slice() else { return None };
    if call.filter.is_some() {
        return None;
    }
    let keys = vec![SortKey {
        by: by.clone(),
        descending,
        nulls_first: false,
    }];
    let one = Expr::constant(Value::Int64(1), Type::Int8);
    let limit = Some((None, one.clone()));
    presorted::wants(input, &keys, limit.as_ref(), statistics)?;
    let sorted = Relation::Sort {
        input: Box::new(input.clone()),
        keys,
        limit,
    };
    Some(Relation::Aggregate {
        input: Box::new(Relation::Limit {
            input: Box::new(sorted),
            limit: Some(one),
            offset: None,
            ties: Vec::new(),
        }),
        groups: Vec::new(),
        sets: vec![Vec::new()],
        calls: vec![call.clone()],
        limit: None,
    })
}
