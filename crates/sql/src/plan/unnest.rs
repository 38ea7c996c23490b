//! Subqueries that depend on the row of the query around them become joins.
//!
//! - `EXISTS (SELECT ... WHERE b.x = a.y AND ...)` and `a.z IN (SELECT ...)` as conditions of their own are semi joins, `NOT EXISTS` is an anti join.
//! - `(SELECT sum(b.v) FROM b WHERE b.x = a.y)` is a left join with `b` grouped by `x`. A row without a group has
//!   the aggregates of no rows: null, or what they begin with (`count` gives 0).
//!
//! The conditions that use the outer row are lifted to the top of the subquery first. Where one of them cannot be lifted, or where an index finds
//! the few rows of a group that are wanted, the subquery runs for each row as before.

use super::estimate::{self, SUBQUERY_COST, Statistics};
use super::{Plan, is_correlated, map, reaches_out};
use crate::expr::{Comparison, Expr, Node};
use crate::types::Type;
use nestor_model::Value;
use nestor_planner::relation::{Apply, ApplyKind, Join, JoinKind, Relation};
use std::collections::BTreeSet;

/// An expression of a subquery as the query around it sees it, whose row has `width` columns that stand before those of the subquery.
fn merged(expr: &Expr, width: usize) -> Expr {
    match expr.node() {
        Node::Column { index, name, ty } => Expr::column(index + width, name.clone(), ty.clone()),
        Node::Outer {
            levels: 1,
            index,
            name,
            ty,
        } => Expr::column(*index, name.clone(), ty.clone()),
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } => Node::Outer {
            levels: levels - 1,
            index: *index,
            name: name.clone(),
            ty: ty.clone(),
        }
        .into(),
        _ => expr.map(&mut |part| merged(part, width)),
    }
}

/// A plan that does not use the row directly around it, one level of enclosing queries nearer to the outermost.
pub fn nearer(plan: &Plan) -> Plan {
    fn lower(expr: &Expr, depth: usize) -> Expr {
        match expr.node() {
            Node::Outer {
                levels,
                index,
                name,
                ty,
            } if *levels > depth + 1 => Node::Outer {
                levels: levels - 1,
                index: *index,
                name: name.clone(),
                ty: ty.clone(),
            }
            .into(),
            _ => expr.map(&mut |part| lower(part, depth)),
        }
    }
    map(plan, 0, &mut |expr, depth| lower(expr, depth))
}

fn uses_outer(expr: &Expr) -> bool {
    let mut found = false;
    expr.for_each_outer(&mut |levels, _| found |= levels == 1);
    found
}

/// The plan without the conditions that use the outer row, and these over its columns. Columns that they need may stand behind its own.
fn lifted(plan: Plan) -> (Plan, Vec<Expr>) {
    match plan {
        Relation::Filter { input, condition } => {
            let (input, mut up) = lifted(*input);
            let (out, stay): (Vec<Expr>, Vec<Expr>) = condition
                .conjuncts()
                .into_iter()
                .partition(|c| uses_outer(c) && !c.is_volatile());
            up.extend(out);
            let plan = match stay.is_empty() {
                true => input,
                false => Relation::Filter {
                    input: Box::new(input),
                    condition: Expr::all(stay),
                },
            };
            (plan, up)
        }
        Relation::Project { input, mut columns } => {
            let (input, up) = lifted(*input);
            let mut wanted = BTreeSet::new();
            for condition in &up {
                condition.for_each_column(&mut |column| {
                    wanted.insert(column);
                });
            }
            let (own, wanted) = (columns.len(), Vec::from_iter(wanted));
            let mut types = vec![None; wanted.len()];
            up.iter().for_each(|c| note_types(c, &wanted, &mut types));
            for (column, found) in wanted.iter().zip(types) {
                let (name, ty) = found.unwrap_or_else(|| (String::new(), Type::Unknown));
                columns.push(Expr::column(*column, name, ty));
            }
            let up = up
                .iter()
                .map(|c| placed(c, &|column| wanted.iter().position(|w| *w == column).map(|at| own + at)));
            let up = up.collect();
            let input = Box::new(input);
            (Relation::Project { input, columns }, up)
        }
        other => (other, Vec::new()),
    }
}

fn note_types(expr: &Expr, wanted: &[usize], types: &mut [Option<(String, Type)>]) {
    if let Node::Column { index, name, ty } = expr.node()
        && let Some(at) = wanted.iter().position(|w| w == index)
    {
        types[at] = Some((name.clone(), ty.clone()));
    }
    expr.parts()
        .into_iter()
        .for_each(|part| note_types(part, wanted, types));
}

/// An expression whose columns stand at other places.
pub fn placed(expr: &Expr, at: &dyn Fn(usize) -> Option<usize>) -> Expr {
    match expr.node() {
        Node::Column { index, name, ty } => Expr::column(at(*index).unwrap_or(*index), name.clone(), ty.clone()),
        _ => expr.map(&mut |part| placed(part, at)),
    }
}

/// The sides of an equality of the subquery's row and the outer one: what it is of the former, and of the latter as its own columns.
fn equality(condition: &Expr) -> Option<(Expr, Expr)> {
    let Node::Compare(Comparison::Equal, a, b) = condition.node() else {
        return None;
    };
    let inner_alone = |e: &Expr| {
        let (mut columns, mut outer) = (false, false);
        e.for_each_column(&mut |_| columns = true);
        e.for_each_outer(&mut |_, _| outer = true);
        columns && !outer
    };
    let outer_alone = |e: &Expr| {
        let mut columns = false;
        e.for_each_column(&mut |_| columns = true);
        uses_outer(e) && !columns
    };
    match (inner_alone(a) && outer_alone(b), inner_alone(b) && outer_alone(a)) {
        (true, _) => Some((a.clone(), merged(b, 0))),
        (_, true) => Some((b.clone(), merged(a, 0))),
        _ => None,
    }
}

/// Whether running the subquery for each outer row costs less than a join, because an index finds what it reads.
fn is_cheap(outer: &Plan, inner: &Plan, conditions: &[Expr], statistics: &dyn Statistics) -> bool {
    // A view's projection stands between its table and the conditions.
    let mut at = inner;
    let scan = loop {
        match at {
            Relation::Project { input, .. } | Relation::Filter { input, .. } => at = input,
            Relation::Scan(scan) => break scan,
            _ => return false,
        }
    };
    let found = conditions.iter().filter_map(equality).any(|(own, _)| {
        let source = estimate::source(inner, &own);
        source.is_some_and(|(table, column)| statistics.is_indexed(table, column))
    });
    found && estimate::rows(outer, statistics) * SUBQUERY_COST < statistics.reads(scan.table)
}

/// The semi or anti join that a condition on the column of `apply` is; `None` where it has to stay what it is.
pub fn semi(apply: &Apply<Expr>, negated: bool) -> Option<Join<Expr>> {
    let width = apply.input.width();
    let keys = match &apply.kind {
        ApplyKind::Exists => Vec::new(),
        // What is not among rows with nulls is not known not to be among them.
        ApplyKind::In { probe } if !negated => {
            let keys = probe.iter().enumerate().map(|(i, probe)| {
                let own = Expr::column(width + i, format!("column{}", i + 1), probe.ty());
                (probe.clone(), own)
            });
            keys.collect()
        }
        _ => return None,
    };
    if apply.when.is_some() {
        return None;
    }
    let (inner, conditions) = match apply.correlated {
        true => lifted(apply.inner.clone()),
        // Without a condition on the outer row one look is enough for EXISTS.
        false if keys.is_empty() => return None,
        false => (apply.inner.clone(), Vec::new()),
    };
    if is_correlated(&inner) {
        return None;
    }
    let conditions: Vec<Expr> = conditions.iter().map(|c| merged(c, width)).collect();
    Some(Join {
        kind: if negated { JoinKind::Anti } else { JoinKind::Semi },
        left: apply.input.clone(),
        right: nearer(&inner),
        keys,
        condition: (!conditions.is_empty()).then(|| Expr::all(conditions)),
        left_first: false,
    })
}

/// The left join that a subquery with aggregates is, and the expression over its rows that is the subquery's value.
pub fn scalar(apply: &Apply<Expr>, statistics: &dyn Statistics) -> Option<(Join<Expr>, Expr)> {
    if !matches!(apply.kind, ApplyKind::Scalar) || !apply.correlated {
        return None;
    }
    let width = apply.input.width();
    let mut at = &apply.inner;
    let mut value = Expr::column(0, "column1", Type::Unknown);
    while let Relation::Project { input, columns } = at {
        value = value.with_columns(&|index| columns.get(index).cloned());
        if value.is_large() {
            return None;
        }
        at = input;
    }
    let Relation::Aggregate {
        input,
        groups,
        sets,
        calls,
        ..
    } = at
    else {
        return None;
    };
    if !groups.is_empty() || sets.len() > 1 || value.is_volatile() {
        return None;
    }
    // They are computed of rows that no outer row asks for, too.
    if !calls
        .iter()
        .all(|call| call.args.iter().chain(&call.filter).all(cannot_fail))
    {
        return None;
    }
    // And for rows that do not want it.
    if apply.when.is_some() {
        let mut may_fail = false;
        super::map(&apply.inner, 0, &mut |expr, _| {
            may_fail |= !cannot_fail(expr);
            expr.clone()
        });
        if may_fail {
            return None;
        }
    }
    let (inner, conditions) = lifted((**input).clone());
    let pairs: Vec<(Expr, Expr)> = conditions.iter().map(equality).collect::<Option<_>>()?;
    if pairs.is_empty() || is_cheap(&apply.input, &inner, &conditions, statistics) {
        return None;
    }
    let groups: Vec<Expr> = pairs.iter().map(|(own, _)| own.clone()).collect();
    let aggregate = Relation::Aggregate {
        input: Box::new(inner),
        sets: vec![(0..groups.len()).collect()],
        groups,
        calls: calls.clone(),
        limit: None,
    };
    if reaches_out(&aggregate, 1) {
        return None;
    }
    let keys = pairs.iter().enumerate().map(|(i, (own, outer))| {
        let own = Expr::column(width + i, format!("column{}", i + 1), own.ty());
        (outer.clone(), own)
    });
    let keys: Vec<(Expr, Expr)> = keys.collect();
    let mut empty = Vec::new();
    for call in calls {
        empty.push(call.function.start().result().ok()?);
    }
    let value = merged(&value, width);
    let value = over_groups(&value, width, pairs.len(), &empty);
    let join = Join {
        kind: JoinKind::Left,
        left: apply.input.clone(),
        right: aggregate,
        keys,
        condition: None,
        left_first: false,
    };
    Some((join, value))
}

/// Whether an expression has a value for whatever row, but for numbers out of range.
fn cannot_fail(expr: &Expr) -> bool {
    let own = match expr.node() {
        Node::Call { function, .. } => matches!(function.name, "+" | "-" | "*"),
        Node::Cast { explicit, .. } => !explicit,
        Node::Subscript(..) | Node::Slice(..) | Node::Field(..) | Node::Match(_) => false,
        _ => true,
    };
    own && expr.parts().into_iter().all(cannot_fail)
}

/// An expression over aggregates as one over the groups that are joined, which are not there for outer rows without any.
fn over_groups(value: &Expr, width: usize, groups: usize, empty: &[Value]) -> Expr {
    match value.node() {
        Node::Column { index, name, ty } if *index >= width => {
            let column = Expr::column(index + groups, name.clone(), ty.clone());
            match empty.get(index - width) {
                None | Some(Value::Null) => column,
                Some(start) => {
                    let start = Expr::constant(start.clone(), ty.clone());
                    Node::Coalesce(vec![column, start], ty.clone()).into()
                }
            }
        }
        _ => value.map(&mut |part| over_groups(part, width, groups, empty)),
    }
}
