//! From a relation to running operators.

use super::rows::small_enough;
use super::{BoxRows, aggregate, apply, distinct, join, recursive, rows, scan, set, sort, window};
use nestor_planner::relation::{Relation, Scalar};

/// The operators of a plan. With `counts` each counts its rows, for EXPLAIN ANALYZE.
pub fn build<S: Scalar>(plan: &Relation<S>, counts: bool) -> BoxRows<S> {
    let mut number = 0;
    node(plan, &mut number, counts)
}

/// The operators of a plan whose root has the number `number` in the order of nodes; sets `number` to the one behind.
pub(super) fn node<S: Scalar>(plan: &Relation<S>, number: &mut usize, counts: bool) -> BoxRows<S> {
    let own = *number;
    *number += 1;
    let built: BoxRows<S> = match plan {
        Relation::Values { rows: values, .. } => Box::new(rows::Values {
            rows: values.clone(),
            next: 0,
        }),
        Relation::Scan(table) => scan::scan(table),
        Relation::Count(table) => scan::count(table),
        Relation::Function { call, args, .. } => Box::new(rows::Function {
            call: call.clone(),
            args: args.clone(),
            rows: None,
        }),
        Relation::Filter { input, condition } => Box::new(rows::Filter {
            input: node(input, number, counts),
            condition: condition.clone(),
        }),
        Relation::Project { input, columns } => {
            let input = small_enough(node(input, number, counts), columns.iter());
            rows::project(input, columns)
        }
        Relation::Join(plan) => {
            let left = node(&plan.left, number, counts);
            let of_right = *number;
            let right = node(&plan.right, number, counts);
            let left = small_enough(left, plan.keys.iter().map(|(key, _)| key));
            let right = small_enough(right, plan.keys.iter().map(|(_, key)| key));
            join::join(plan, left, right, (of_right, counts))
        }
        Relation::Apply(plan) => {
            let input = node(&plan.input, number, counts);
            let inner = *number;
            *number += count(&plan.inner);
            apply::apply(plan, input, (inner, counts))
        }
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => {
            let of_calls = calls.iter().flat_map(|call| {
                let keys = call.order.iter().map(|key| &key.by);
                call.args.iter().chain(&call.filter).chain(keys)
            });
            let input = small_enough(node(input, number, counts), groups.iter().chain(of_calls));
            aggregate::aggregate(input, (groups, sets, calls), limit.as_ref())
        }
        Relation::Window { input, window: plan } => {
            let width = input.width();
            window::window(node(input, number, counts), plan, width)
        }
        Relation::Sort { input, keys, limit } => {
            let input = small_enough(node(input, number, counts), keys.iter().map(|key| &key.by));
            sort::sort(input, keys, limit.as_ref())
        }
        Relation::Limit {
            input,
            limit,
            offset,
            ties,
        } => Box::new(rows::Limit {
            input: node(input, number, counts),
            limit: limit.clone(),
            offset: offset.clone(),
            ties: ties.clone(),
            left: None,
            last: None,
        }),
        Relation::Distinct { input, on } => {
            let input = small_enough(node(input, number, counts), on.iter());
            distinct::distinct(input, on)
        }
        Relation::Append { inputs } => Box::new(rows::Append {
            inputs: inputs.iter().map(|input| node(input, number, counts)).collect(),
            at: 0,
        }),
        Relation::Intersect(plan) => {
            let left = node(&plan.left, number, counts);
            let right = node(&plan.right, number, counts);
            set::intersect(plan, left, right)
        }
        Relation::Recursive(plan) => {
            let base = node(&plan.base, number, counts);
            let step = *number;
            *number += count(&plan.step);
            recursive::recursive(plan, base, (step, counts))
        }
        Relation::Working { id, .. } => recursive::working(*id),
        Relation::Shared { id, plan } => {
            let inner = *number;
            *number += count(plan);
            recursive::shared(*id, plan, (inner, counts))
        }
    };
    counted(built, own, counts)
}

/// The operator of a node, which counts its rows if that is wanted.
pub(super) fn counted<S: Scalar>(input: BoxRows<S>, number: usize, counts: bool) -> BoxRows<S> {
    match counts {
        true => Box::new(rows::Counted {
            input,
            number,
            begun: false,
        }),
        false => input,
    }
}

/// Number of nodes of a plan.
fn count<S>(plan: &Relation<S>) -> usize {
    1 + plan.inputs().into_iter().map(count).sum::<usize>()
}
