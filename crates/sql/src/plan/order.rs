//! The order of inner joins, by how many rows they give.
//!
//! `a JOIN b JOIN c` gives the same pairs in any order, so joins are made one by one, each time the one that gives the fewest rows among
//! those that have a key with what is there, and the smaller side becomes the one that is kept. A projection above gives the
//! columns the places that they had. Where the order is as it was, so is the plan.

use super::Plan;
use super::estimate::{self, LOOKUP_COST, Statistics};
use super::unnest::placed;
use crate::expr::{Comparison, Expr, Node};
use crate::types::Type;
use nestor_planner::relation::{Join, JoinKind, Relation};

/// Inputs of joins that are put in order at most; of more than these the order stays.
const INPUTS_MAX: usize = 16;

/// Puts the inner joins of a plan in order.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    match plan {
        Relation::Join(join) if is_inner(&join) => ordered(*join, statistics),
        other => super::with_inputs(other, &mut |input| rewrite(input, statistics)),
    }
}

fn is_inner(join: &Join<Expr>) -> bool {
    join.kind == JoinKind::Inner
}

/// An input of several joins.
struct Input {
    plan: Plan,
    /// The place of its first column among those of all inputs.
    first: usize,
    width: usize,
    rows: f64,
}

/// Inputs and conditions of the inner joins at the top of a plan; columns are numbered through all inputs.
fn flatten(plan: Plan, first: usize, inputs: &mut Vec<Plan>, conditions: &mut Vec<Expr>) {
    match plan {
        Relation::Join(join) if is_inner(&join) => {
            let width = join.left.width();
            let keys = join.keys.into_iter();
            let keys = keys.map(|(a, b)| Node::Compare(Comparison::Equal, a, b).into());
            let own = keys.chain(join.condition.iter().flat_map(Expr::conjuncts));
            conditions.extend(own.map(|c: Expr| c.shifted(first as isize)));
            flatten(join.left, first, inputs, conditions);
            flatten(join.right, first + width, inputs, conditions);
        }
        other => inputs.push(other),
    }
}

fn ordered(join: Join<Expr>, statistics: &dyn Statistics) -> Plan {
    let (mut plans, mut conditions) = (Vec::new(), Vec::new());
    let whole = Relation::Join(Box::new(join));
    flatten(whole.clone(), 0, &mut plans, &mut conditions);
    if plans.len() > INPUTS_MAX || conditions.iter().any(Expr::is_volatile) {
        return super::with_inputs(whole, &mut |input| rewrite(input, statistics));
    }
    let (mut inputs, mut first) = (Vec::new(), 0);
    for plan in plans {
        let plan = rewrite(plan, statistics);
        let width = plan.width();
        inputs.push(Input {
            first,
            width,
            rows: estimate::rows(&plan, statistics),
            plan,
        });
        first += width;
    }
    let all = first;
    let smallest = (0..inputs.len()).min_by(|a, b| inputs[*a].rows.total_cmp(&inputs[*b].rows));
    let Some(smallest) = smallest else {
        return whole;
    };
    let start = inputs.remove(smallest);
    let mut made = Made {
        places: (start.first..start.first + start.width).collect(),
        plan: start.plan,
        rows: start.rows,
    };
    while !inputs.is_empty() {
        let next = best(&made, &inputs, &conditions, statistics);
        let input = inputs.remove(next);
        made = made.join(input, &mut conditions, statistics);
    }
    if made.places.iter().copied().eq(0..all) {
        return made.plan;
    }
    let columns = (0..all).map(|column| {
        let at = made.places.iter().position(|place| *place == column).unwrap_or(column);
        Expr::column(at, format!("column{}", column + 1), Type::Unknown)
    });
    let columns = columns.collect();
    Relation::Project {
        input: Box::new(made.plan),
        columns,
    }
}

/// The input that gives the fewest rows next: one with a key if there is one.
fn best(made: &Made, inputs: &[Input], conditions: &[Expr], statistics: &dyn Statistics) -> usize {
    let costs = inputs.iter().enumerate().map(|(i, input)| {
        let (keys, _) = made.keys(input, conditions);
        let shifted: Vec<(Expr, Expr)> = keys
            .iter()
            .map(|(a, b)| (a.clone(), b.shifted(-(made.places.len() as isize))))
            .collect();
        let rows = estimate::joined((&made.plan, made.rows), (&input.plan, input.rows), &shifted, statistics);
        (i, keys.is_empty(), rows)
    });
    let least = costs.min_by(|a, b| a.1.cmp(&b.1).then(a.2.total_cmp(&b.2)));
    least.map_or(0, |(i, _, _)| i)
}

/// Joins made so far.
struct Made {
    plan: Plan,
    /// Which column of all inputs stands at each place.
    places: Vec<usize>,
    rows: f64,
}

impl Made {
    /// An expression over columns of all inputs as one over the rows of a join with `input` at the right; `None` if it uses others.
    fn placed(&self, expr: &Expr, input: Option<&Input>) -> Option<Expr> {
        let at = |column: usize| {
            let here = self.places.iter().position(|place| *place == column);
            here.or_else(|| {
                let input = input?;
                let own = column.checked_sub(input.first).filter(|own| *own < input.width)?;
                Some(self.places.len() + own)
            })
        };
        let mut known = true;
        expr.for_each_column(&mut |column| known &= at(column).is_some());
        known.then(|| placed(expr, &at))
    }

    /// The keys of a join with `input`, and what else of `conditions` can be told of its rows; by their places there.
    fn keys(&self, input: &Input, conditions: &[Expr]) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        let width = self.places.len();
        for condition in conditions {
            let Some(placed) = self.placed(condition, Some(input)) else {
                continue;
            };
            let side = |expr: &Expr| {
                let (mut left, mut right) = (false, false);
                expr.for_each_column(&mut |column| match column < width {
                    true => left = true,
                    false => right = true,
                });
                (left, right)
            };
            match placed.node() {
                Node::Compare(Comparison::Equal, a, b) if side(a) == (true, false) && side(b) == (false, true) => {
                    keys.push((a.clone(), b.clone()));
                }
                Node::Compare(Comparison::Equal, a, b) if side(a) == (false, true) && side(b) == (true, false) => {
                    keys.push((b.clone(), a.clone()));
                }
                _ => rest.push(placed),
            }
        }
        (keys, rest)
    }

    fn join(self, input: Input, conditions: &mut Vec<Expr>, statistics: &dyn Statistics) -> Self {
        let (keys, rest) = self.keys(&input, conditions);
        conditions.retain(|condition| self.placed(condition, Some(&input)).is_none());
        let (left_width, right_width) = (self.places.len(), input.width);
        let own = input.first..input.first + input.width;
        let own_keys = keys.iter().map(|(a, b)| (a.clone(), b.shifted(-(left_width as isize))));
        let own_keys: Vec<(Expr, Expr)> = own_keys.collect();
        let rows = estimate::joined(
            (&self.plan, self.rows),
            (&input.plan, input.rows),
            &own_keys,
            statistics,
        );
        let found = own_keys.iter().any(|(_, b)| {
            let source = estimate::scan_of(&input.plan).and_then(|_| estimate::source(&input.plan, b));
            source.is_some_and(|(table, column)| statistics.is_indexed(table, column))
        });
        // The right side is kept; one whose rows an index finds need not be.
        let swaps = input.rows > self.rows && !(found && self.rows * LOOKUP_COST < input.rows);
        let condition = |rest: Vec<Expr>| (!rest.is_empty()).then(|| Expr::all(rest));
        if !swaps {
            return Self {
                plan: Relation::Join(Box::new(Join {
                    kind: JoinKind::Inner,
                    left: self.plan,
                    right: input.plan,
                    keys,
                    condition: condition(rest),
                })),
                places: self.places.into_iter().chain(own).collect(),
                rows,
            };
        }
        let turned = |column: usize| match column < left_width {
            true => Some(column + right_width),
            false => Some(column - left_width),
        };
        Self {
            plan: Relation::Join(Box::new(Join {
                kind: JoinKind::Inner,
                left: input.plan,
                right: self.plan,
                keys: keys
                    .iter()
                    .map(|(a, b)| (placed(b, &turned), placed(a, &turned)))
                    .collect(),
                condition: condition(rest.iter().map(|c| placed(c, &turned)).collect()),
            })),
            places: own.chain(self.places).collect(),
            rows,
        }
    }
}
