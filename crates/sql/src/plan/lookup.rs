//! A join whose left side has few rows and whose right side is a table with an index on the key looks rows up.
//!
//! `a JOIN b ON b.x = a.y` becomes, for some rows of `a` at a time, what an index of `b` finds for their keys: the rest of `b` is not read.
//! So do semi and anti joins, which subqueries became. `a WHERE a.y IN (SELECT b.x ...)` may be looked up the other way round, too: the rows of
//! `a` for the different keys of few rows of `b`.

use super::Plan;
use super::estimate::{self, LOOKUP_COST, Statistics};
use super::unnest::placed;
use crate::expr::{Comparison, Expr, Node};
use crate::types::Type;
use nestor_planner::relation::{Join, JoinKind, Relation, Scan};

/// So many times as many rows make the others few.
const FEW_PART: f64 = 4.0;

/// Turns joins into lookups where that costs less.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    let plan = super::with_inputs(plan, &mut |input| rewrite(input, statistics));
    match plan {
        Relation::Join(join) => match looked_up(&join).filter(|(join, scans)| is_cheaper(join, scans, statistics)) {
            Some((join, _)) => Relation::Join(Box::new(join)),
            None => match from_the_right(&join, statistics) {
                Some(plan) => plan,
                None if statistics.switches().hashjoin && keeps_more(&join, statistics) => turned(*join),
                None => {
                    let left_first = is_for_few(&join, statistics);
                    Relation::Join(Box::new(unhashed(Join { left_first, ..*join }, statistics)))
                }
            },
        },
        other => other,
    }
}

/// A join without keys, whose rows are compared with each other, where hash tables are not wanted; full joins have no other way.
fn unhashed(mut join: Join<Expr>, statistics: &dyn Statistics) -> Join<Expr> {
    let switches = statistics.switches();
    if switches.hashjoin || !switches.nestloop || join.kind == JoinKind::Full || join.keys.is_empty() {
        return join;
    }
    let keys = join.keys.drain(..);
    let mut all: Vec<Expr> = keys
        .map(|(a, b)| Node::Compare(Comparison::Equal, a, b).into())
        .collect();
    all.extend(join.condition.iter().flat_map(Expr::conjuncts));
    join.condition = Some(Expr::all(all));
    join.left_first = false;
    join
}

/// Whether a join wants rows of its right input for rows of the left one only, and these are far fewer. Of many left rows some would be read that
/// nobody may want.
fn is_for_few(join: &Join<Expr>, statistics: &dyn Statistics) -> bool {
    let is_for_left = matches!(join.kind, JoinKind::Left | JoinKind::Semi | JoinKind::Anti);
    is_for_left && made_of(&join.right, statistics) > FEW_PART * estimate::rows(&join.left, statistics)
}

/// Of how many rows those of a plan are made, where groups and conditions leave few of them.
fn made_of(plan: &Plan, statistics: &dyn Statistics) -> f64 {
    match plan {
        Relation::Aggregate { input, .. } | Relation::Distinct { input, .. } | Relation::Project { input, .. } => {
            made_of(input, statistics)
        }
        Relation::Filter { input, .. } if !matches!(**input, Relation::Scan(_)) => made_of(input, statistics),
        Relation::Join(join) => {
            let inputs = made_of(&join.left, statistics).max(made_of(&join.right, statistics));
            inputs.max(estimate::rows(plan, statistics))
        }
        plan => estimate::rows(plan, statistics),
    }
}

/// Whether a join keeps many more rows than go by: its order was made for a lookup that costs more than it was thought to.
fn keeps_more(join: &Join<Expr>, statistics: &dyn Statistics) -> bool {
    let is_by_keys = join.kind == JoinKind::Inner && !join.keys.is_empty();
    is_by_keys && estimate::rows(&join.right, statistics) > FEW_PART * estimate::rows(&join.left, statistics)
}

/// An inner join that keeps the rows of its left input, with its columns in their order.
fn turned(join: Join<Expr>) -> Plan {
    let (left, right) = (join.left.width(), join.right.width());
    let here = |expr: &Expr| placed(expr, &|at| Some(if at < left { at + right } else { at - left }));
    let keys = join.keys.iter().map(|(a, b)| (here(b), here(a)));
    let column = |i: usize| {
        let at = if i < left { i + right } else { i - left };
        Expr::column(at, format!("column{}", i + 1), Type::Unknown)
    };
    Relation::Project {
        columns: (0..left + right).map(column).collect(),
        input: Box::new(Relation::Join(Box::new(Join {
            kind: JoinKind::Inner,
            keys: keys.collect(),
            condition: join.condition.as_ref().map(here),
            left_first: false,
            left: join.right,
            right: join.left,
        }))),
    }
}

/// A semi join as a join of the different keys of its right input, few of them, with what an index finds of its left one.
fn from_the_right(join: &Join<Expr>, statistics: &dyn Statistics) -> Option<Plan> {
    if join.kind != JoinKind::Semi || join.condition.is_some() || join.keys.is_empty() {
        return None;
    }
    let (width, count) = (join.left.width(), join.keys.len());
    let own = join.keys.iter().map(|(_, right)| right.shifted(-(width as isize)));
    let key = |(i, (_, right)): (usize, &(Expr, Expr))| Expr::column(i, format!("column{}", i + 1), right.ty());
    let keys: Vec<Expr> = join.keys.iter().enumerate().map(key).collect();
    let different = Relation::Distinct {
        input: Box::new(Relation::Project {
            input: Box::new(join.right.clone()),
            columns: own.collect(),
        }),
        on: keys.clone(),
    };
    let lefts = join.keys.iter().map(|(left, _)| left.shifted(count as isize));
    let turned = Join {
        kind: JoinKind::Inner,
        left: different,
        right: join.left.clone(),
        keys: keys.into_iter().zip(lefts).collect(),
        condition: None,
        left_first: false,
    };
    let (made, _) = looked_up(&turned).filter(|(join, scans)| is_cheaper(join, scans, statistics))?;
    let column = |i: usize| Expr::column(count + i, format!("column{}", i + 1), Type::Unknown);
    Some(Relation::Project {
        input: Box::new(Relation::Join(Box::new(made))),
        columns: (0..width).map(column).collect(),
    })
}

/// The scans that a plan is, one or several one after the other, and the conditions that stand above each of them.
fn scans(plan: &Plan) -> Option<(Vec<Scan<Expr>>, Vec<Expr>)> {
    match plan {
        Relation::Scan(scan) => Some((vec![scan.clone()], Vec::new())),
        Relation::Append { inputs } => {
            let mut all = inputs.iter().map(filtered);
            let (first, conditions) = all.next()??;
            let mut out = vec![first];
            for input in all {
                let (scan, own) = input?;
                let is_same = own.len() == conditions.len() && own.iter().zip(&conditions).all(|(a, b)| a.is_same(b));
                out.extend(is_same.then_some(scan));
            }
            (out.len() == inputs.len()).then_some((out, conditions))
        }
        _ => None,
    }
}

/// The scan that an input is, below a filter or not.
fn filtered(plan: &Plan) -> Option<(Scan<Expr>, Vec<Expr>)> {
    match plan {
        Relation::Scan(scan) => Some((scan.clone(), Vec::new())),
        Relation::Filter { input, condition } => {
            let (scan, mut own) = filtered(input)?;
            own.extend(condition.conjuncts());
            Some((scan, own))
        }
        _ => None,
    }
}

/// The join over the scans that its right input is, whose filters have become its condition.
fn looked_up(join: &Join<Expr>) -> Option<(Join<Expr>, Vec<Scan<Expr>>)> {
    if !matches!(
        join.kind,
        JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti
    ) {
        return None;
    }
    let width = join.left.width();
    // Of semi and anti joins nobody sees what a projection on the right makes.
    let is_filter = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
    let (mut keys, mut own, mut right) = (join.keys.clone(), Vec::new(), &join.right);
    let mut condition: Vec<Expr> = join.condition.iter().flat_map(Expr::conjuncts).collect();
    let scans = loop {
        match right {
            Relation::Scan(_) | Relation::Append { .. } => {
                let (scans, above) = self::scans(right)?;
                own.extend(above.iter().map(|c| c.shifted(width as isize)));
                break scans;
            }
            Relation::Filter { input, condition } => {
                own.extend(condition.conjuncts().iter().map(|c| c.shifted(width as isize)));
                right = input;
            }
            Relation::Project { input, columns } if is_filter => {
                let beneath = |expr: &Expr| {
                    expr.with_columns(&|at| {
                        let column = columns.get(at.checked_sub(width)?)?;
                        Some(column.shifted(width as isize))
                    })
                };
                keys.iter_mut().for_each(|(_, key)| *key = beneath(key));
                condition.iter_mut().for_each(|part| *part = beneath(part));
                own.iter_mut().for_each(|part| *part = beneath(part));
                let mut all = keys.iter().map(|(_, key)| key).chain(&condition).chain(&own);
                if all.any(Expr::is_large) {
                    return None;
                }
                right = input;
            }
            _ => return None,
        }
    };
    let is_column = |(_, key): &(Expr, Expr)| matches!(key.node(), Node::Column { index, .. } if *index >= width);
    if keys.is_empty() || !keys.iter().all(is_column) || own.iter().any(Expr::is_volatile) {
        return None;
    }
    if scans.iter().any(|scan| !scan.order.is_empty()) {
        return None;
    }
    // Each scan settles its own.
    let is_of = |scan: &Scan<Expr>, part: &Expr| {
        let mut all = scan.conditions.iter();
        all.any(|own| own.shifted(width as isize).is_same(part))
    };
    let is_own = |part: &Expr| scans.iter().all(|scan| is_of(scan, part));
    condition.extend(own.into_iter().filter(|part| !is_own(part)));
    let scans: Vec<Scan<Expr>> = scans
        .into_iter()
        .map(|scan| Scan {
            looked_up: true,
            // Whether there is a pair is seen by one of equal rows.
            distinct: is_filter,
            ..scan
        })
        .collect();
    let mut inputs: Vec<Plan> = scans.iter().cloned().map(Relation::Scan).collect();
    let right = match (inputs.len(), inputs.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            inputs.extend(last);
            Relation::Append { inputs }
        }
    };
    let made = Join {
        kind: join.kind,
        left: join.left.clone(),
        right,
        keys,
        condition: (!condition.is_empty()).then(|| Expr::all(condition)),
        left_first: false,
    };
    Some((made, scans))
}

fn is_cheaper(join: &Join<Expr>, scans: &[Scan<Expr>], statistics: &dyn Statistics) -> bool {
    let width = join.left.width() as isize;
    let left = estimate::rows(&join.left, statistics);
    let (mut cost, mut read) = (0.0, 0.0);
    for scan in scans {
        let right = Relation::Scan(scan.clone());
        let source = |key: &Expr| estimate::source(&right, &key.shifted(-width));
        let found_cost = |(_, key): &(Expr, Expr)| {
            let (table, column) = source(key)?;
            statistics.found_cost(table, column)
        };
        let Some(each) = join.keys.iter().filter_map(found_cost).min_by(f64::total_cmp) else {
            return false;
        };
        let keys = join.keys.iter().map(|(a, b)| (a.clone(), b.shifted(-width)));
        // All that have the key are fetched, whatever the table's own conditions say of them then.
        let found = estimate::joined(
            (&join.left, left),
            (&right, statistics.rows(scan.table)),
            &keys.collect::<Vec<_>>(),
            statistics,
        );
        read += estimate::reads(scan, estimate::rows(&right, statistics), statistics);
        cost += left * LOOKUP_COST + found * each;
    }
    let is_cheaper = cost < read || statistics.switches().always_looks_up();
    if let ([scan], true) = (scans, is_cheaper) {
        statistics.note_cost(scan.table, cost);
    }
    is_cheaper
}
