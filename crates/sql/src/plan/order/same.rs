//! Inputs whose rows another input has beside the elements of an array in them.
//!
//! `orders o JOIN lines l ON l.order = o.id`, where `lines` are the elements of an array in `orders` and `id` is their key: each row of `l` has the
//! columns of its order already, so `o` need not be read.

use crate::expr::{Comparison, Expr, Node};
use crate::plan::estimate::{self, Statistics};
use crate::plan::{Plan, pushdown};
use nestor_planner::relation::Relation;

/// Takes an input out that another one has, if there is one. Gives the place that each column of all inputs had a value at, among those of the inputs
/// that are left.
pub fn without(plans: &mut Vec<Plan>, conditions: &mut Vec<Expr>, statistics: &dyn Statistics) -> Option<Vec<usize>> {
    let mut firsts = Vec::with_capacity(plans.len());
    let mut width = 0;
    for plan in plans.iter() {
        firsts.push(width);
        width += plan.width();
    }
    let input = |column: usize| firsts.iter().rposition(|first| *first <= column);
    let found = conditions.iter().enumerate().find_map(|(at, condition)| {
        let Node::Compare(Comparison::Equal, a, b) = condition.node() else {
            return None;
        };
        [(a, b), (b, a)].into_iter().find_map(|(key, other)| {
            let (Node::Column { index: own, .. }, Node::Column { index: other, .. }) = (key.node(), other.node())
            else {
                return None;
            };
            let (whole, elements) = (input(*own)?, input(*other)?);
            let columns = beside(&plans[whole], &plans[elements], statistics)?;
            let column = own - firsts[whole];
            let is_key = column == other - firsts[elements] && is_key(&plans[whole], column, statistics);
            let key = key.shifted(-(firsts[whole] as isize));
            (is_key && column < columns).then_some((at, whole, elements, key, columns))
        })
    });
    let (at, whole, elements, key, columns) = found?;
    // The document itself, and the key of its record, are behind the columns of either.
    let behind = plans[elements].width() - plans[whole].width();
    let of_elements = |local: usize| if local < columns { local } else { local + behind };
    let mut own = conditions_of(&plans[whole]);
    let (table, column) = estimate::source(&plans[whole], &key)?;
    if !statistics.is_never_null(table, column) {
        own.push(Node::IsNull(key, true).into());
    }
    let here = |expr: &Expr| crate::plan::unnest::placed(expr, &|local| Some(of_elements(local)));
    let own: Vec<Expr> = own.iter().map(here).collect();
    let removed = plans[whole].width();
    let beneath = std::mem::replace(
        &mut plans[elements],
        Relation::Values {
            rows: Vec::new(),
            width: 0,
        },
    );
    plans[elements] = pushdown::push(beneath, own, statistics);
    let place = |column: usize| {
        let first = firsts[whole];
        let kept = match column.checked_sub(first).filter(|local| *local < removed) {
            Some(local) => firsts[elements] + of_elements(local),
            None => column,
        };
        if kept >= first + removed { kept - removed } else { kept }
    };
    conditions.remove(at);
    for condition in conditions.iter_mut() {
        *condition = crate::plan::unnest::placed(condition, &|column| Some(place(column)));
    }
    plans.remove(whole);
    Some((0..width).map(place).collect())
}

/// How many columns of documents two inputs both have, if one has the rows of a collection and the other the elements of an array in them.
fn beside(whole: &Plan, elements: &Plan, statistics: &dyn Statistics) -> Option<usize> {
    let (whole, elements) = (estimate::scan_of(whole)?, estimate::scan_of(elements)?);
    statistics.elements_of(elements.table, whole.table)
}

fn is_key(plan: &Plan, column: usize, statistics: &dyn Statistics) -> bool {
    estimate::scan_of(plan).is_some_and(|scan| statistics.is_unique(scan.table, column))
}

/// The conditions of a scan and of the filters above it.
fn conditions_of(plan: &Plan) -> Vec<Expr> {
    match plan {
        Relation::Filter { input, condition } => {
            let mut all = conditions_of(input);
            for part in condition.conjuncts() {
                if !all.iter().any(|own| own.is_same(&part)) {
                    all.push(part);
                }
            }
            all
        }
        Relation::Scan(scan) => scan.conditions.clone(),
        _ => Vec::new(),
    }
}
