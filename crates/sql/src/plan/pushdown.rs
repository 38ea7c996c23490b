//! Conditions go to where their columns come from, equalities between two inputs become keys of a join, and scans learn which
//! columns are looked at.

use super::estimate::Statistics;
use super::{Plan, fences, map, outward, unnest};
use crate::expr::{Comparison, Expr, Node};
use crate::types::Type;
use nestor_model::Value;
use nestor_planner::relation::{Apply, ApplyKind, Call, Join, JoinKind, Relation, SortKey};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Tells the scans of a plan which columns are looked at.
pub fn pruned(plan: Plan) -> Plan {
    let width = plan.width();
    let all = (0..width).collect();
    prune(plan, &all)
}

fn filtered(input: Plan, conditions: Vec<Expr>) -> Plan {
    match conditions.is_empty() {
        true => input,
        false => Relation::Filter {
            input: Box::new(input),
            condition: Expr::all(conditions),
        },
    }
}

/// Columns that an expression uses: the least, and one behind the largest; `None` for none.
fn span(expr: &Expr) -> Option<(usize, usize)> {
    let mut out: Option<(usize, usize)> = None;
    expr.for_each_column(&mut |index| {
        out = Some(out.map_or((index, index + 1), |(low, high)| (low.min(index), high.max(index + 1))));
    });
    out
}

fn split(conditions: Vec<Expr>, test: impl Fn(&Expr) -> bool) -> (Vec<Expr>, Vec<Expr>) {
    conditions
        .into_iter()
        .partition(|condition| !condition.is_volatile() && test(condition))
}

/// The plan with conditions on its rows, as deep as they can go; subqueries that can be joins are.
pub fn push(plan: Plan, mut conditions: Vec<Expr>, st: &dyn Statistics) -> Plan {
    match plan {
        Relation::Filter { input, condition } => {
            let own = common(condition.conjuncts());
            let mut all = own;
            all.append(&mut conditions);
            push(*input, all, st)
        }
        Relation::Scan(mut scan) => {
            let computes = st.computes(scan.table);
            let (mut down, _) = split(conditions.clone(), |condition| {
                is_for_scan(condition) || computes && is_computed(condition)
            });
            down.retain(|condition| !scan.conditions.iter().any(|own| own.is_same(condition)));
            scan.conditions.extend(down);
            filtered(Relation::Scan(scan), conditions)
        }
        Relation::Project { input, columns } => {
            let beneath = |condition: &Expr| condition.with_columns(&|index| columns.get(index).cloned());
            let (down, stay) = split(conditions, |condition| {
                let mut simple = true;
                condition.for_each_column(&mut |index| simple &= columns.get(index).is_some_and(|c| !c.is_volatile()));
                simple && !beneath(condition).is_large()
            });
            let down = down.iter().map(beneath).collect();
            let input = Box::new(push(*input, down, st));
            filtered(Relation::Project { input, columns }, stay)
        }
        Relation::Join(join) => push_join(*join, conditions, st),
        Relation::Apply(apply) => push_apply(*apply, conditions, st),
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => {
            let plain = sets.len() == 1 && sets[0].len() == groups.len() && !groups.is_empty();
            let beneath = |condition: &Expr| condition.with_columns(&|index| groups.get(index).cloned());
            let (down, stay) = split(conditions, |c| {
                let is_of_groups = plain && limit.is_none() && span(c).is_some_and(|(_, high)| high <= groups.len());
                is_of_groups && !beneath(c).is_large()
            });
            let down = down.iter().map(beneath).collect();
            let input = Box::new(push(*input, down, st));
            filtered(
                Relation::Aggregate {
                    input,
                    groups,
                    sets,
                    calls,
                    limit,
                },
                stay,
            )
        }
        Relation::Sort { input, keys, limit } => {
            // What holds rows, or has another effect, sees them in their order, and no more of them than are wanted.
            let (down, stay) = split(conditions, |_| limit.is_none());
            let input = Box::new(push(*input, down, st));
            filtered(Relation::Sort { input, keys, limit }, stay)
        }
        Relation::Window { input, window } => {
            let input = Box::new(push(*input, Vec::new(), st));
            filtered(Relation::Window { input, window }, conditions)
        }
        Relation::Limit {
            input,
            limit,
            offset,
            ties,
        } => {
            let is_fence = limit.is_none() && offset.is_none() && ties.is_empty();
            let (down, conditions) = split(conditions, |condition| is_fence && fences::passes(condition));
            let input = push(*input, down, st);
            let input = match &limit {
                Some(limit) if ties.is_empty() && !offset.iter().chain([limit]).any(Expr::is_volatile) => {
                    limited(input, &(offset.clone(), limit.clone()))
                }
                _ => input,
            };
            let limited = Relation::Limit {
                input: Box::new(input),
                limit,
                offset,
                ties,
            };
            filtered(limited, conditions)
        }
        Relation::Distinct { input, on } => {
            let input = Box::new(push(*input, Vec::new(), st));
            filtered(Relation::Distinct { input, on }, conditions)
        }
        Relation::Append { inputs } => {
            let inputs = inputs
                .into_iter()
                .map(|input| push(input, conditions.clone(), st))
                .collect();
            Relation::Append { inputs }
        }
        Relation::Intersect(mut both) => {
            both.left = push(both.left, Vec::new(), st);
            both.right = push(both.right, Vec::new(), st);
            filtered(Relation::Intersect(both), conditions)
        }
        Relation::Recursive(mut recursive) => {
            recursive.base = push(recursive.base, Vec::new(), st);
            recursive.step = push(recursive.step, Vec::new(), st);
            filtered(Relation::Recursive(recursive), conditions)
        }
        Relation::Shared { id, plan } => {
            let plan = Arc::new(push((*plan).clone(), Vec::new(), st));
            filtered(Relation::Shared { id, plan }, conditions)
        }
        other => filtered(other, conditions),
    }
}

/// A plan of whose rows only the first ones are wanted: a sort in it keeps no more than these, and groups are made until there are as many.
fn limited(plan: Plan, wanted: &(Option<Expr>, Expr)) -> Plan {
    match plan {
        Relation::Project { input, columns } => Relation::Project {
            input: Box::new(limited(*input, wanted)),
            columns,
        },
        Relation::Sort {
            input,
            keys,
            limit: None,
        } => Relation::Sort {
            input,
            keys,
            limit: Some(wanted.clone()),
        },
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit: None,
        } if is_each_a_group(&groups, &sets) && !calls.iter().any(is_volatile) => Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit: Some(wanted.clone()),
        },
        other => other,
    }
}

/// Whether all values that rows are grouped by tell groups apart.
fn is_each_a_group(groups: &[Expr], sets: &[Vec<usize>]) -> bool {
    let has_all = matches!(sets, [set] if (0..groups.len()).all(|at| set.contains(&at)));
    has_all && !groups.is_empty() && !groups.iter().any(Expr::is_volatile)
}

/// The columns of groups of which only some calls are left, where they stood before: nobody looks at the others.
fn placed_again(groups: &[Expr], is_left: &[bool]) -> Vec<Expr> {
    let of_groups = groups.iter().enumerate();
    let mut columns: Vec<Expr> = of_groups.map(|(at, by)| Expr::column(at, "group", by.ty())).collect();
    let mut at = groups.len();
    for is_left in is_left {
        columns.push(match is_left {
            true => Expr::column(at, "call", Type::Unknown),
            false => Expr::constant(Value::Null, Type::Unknown),
        });
        at += usize::from(*is_left);
    }
    columns.push(Expr::column(at, "set", Type::Int8));
    columns
}

fn is_volatile(call: &Call<Expr>) -> bool {
    let keys = call.order.iter().map(|key| &key.by);
    call.args.iter().chain(&call.filter).chain(keys).any(Expr::is_volatile)
}

/// Conditions that stand in all branches of an OR hold by themselves: `(a AND b) OR (a AND c)` is `a AND (b OR c)`.
fn common(conditions: Vec<Expr>) -> Vec<Expr> {
    let each = conditions.into_iter().flat_map(|condition| {
        let Node::Or(branches) = condition.node() else {
            return vec![condition];
        };
        let mut lists: Vec<Vec<Expr>> = branches.iter().map(Expr::conjuncts).collect();
        let Some(first) = lists.first().cloned() else {
            return vec![condition];
        };
        let shared: Vec<Expr> = first
            .into_iter()
            .filter(|part| lists.iter().all(|list| list.iter().any(|other| other.is_same(part))))
            .collect();
        if shared.is_empty() {
            return vec![condition];
        }
        for list in &mut lists {
            list.retain(|part| !shared.iter().any(|other| other.is_same(part)));
        }
        let mut out = shared;
        // Where a branch has nothing else, the others add nothing.
        if lists.iter().all(|list| !list.is_empty()) {
            out.push(Node::Or(lists.into_iter().map(Expr::all).collect()).into());
        }
        out
    });
    each.collect()
}

/// Whether the find layer may be able to use a condition: it compares a column with what is the same for all rows.
fn is_for_scan(condition: &Expr) -> bool {
    let column = |expr: &Expr| matches!(expr.node(), Node::Column { .. } | Node::Field(..));
    match condition.node() {
        Node::Compare(op, a, b) => {
            let is_moment = |expr: &Expr| column(expr.as_moment());
            *op != Comparison::NotEqual && ((is_moment(a) && b.is_constant()) || (is_moment(b) && a.is_constant()))
        }
        Node::InList(a, items, false) => column(a) && items.iter().all(Expr::is_constant),
        Node::Quantified { op, arg, array, all } => {
            let is_within = column(arg) && array.is_constant() || arg.is_constant() && column(array);
            *op == Comparison::Equal && !all && is_within
        }
        Node::Call { function, args, .. } => match args.as_slice() {
            [a, b] => is_containment(function.name, a) && column(a) && b.is_constant(),
            _ => false,
        },
        Node::IsNull(a, _) => column(a),
        // A column of booleans alone.
        Node::Column { .. } | Node::Field(..) => true,
        Node::Not(a)
        | Node::IsBool {
            arg: a, negated: false, ..
        } => column(a),
        Node::Or(any) => any.iter().all(|part| part.conjuncts().iter().all(is_for_scan)),
        Node::Match(like) => column(&like.text) && matches!(like.pattern.node(), Node::Const(Value::String(_), _)),
        _ => false,
    }
}

/// Whether an operator looks into arrays, or into JSON, as indexes on what is within them do.
pub fn is_containment(operator: &str, of: &Expr) -> bool {
    match of.ty() {
        Type::Array(_) => matches!(operator, "@>" | "&&"),
        Type::Jsonb => operator == "@>",
        _ => false,
    }
}

/// Operators that look into values, as inverted indexes do.
const LOOKING: [&str; 13] = [
    "@@", "@@@", "@>", "<@", "&&", "?", "?|", "?&", "%", "<%", "%>", "<<%", "%>>",
];

/// Whether an index on an expression may be able to use a condition: it compares what is computed of a row with what is the same for all.
fn is_computed(condition: &Expr) -> bool {
    let of_row = |expr: &Expr| {
        let mut has_columns = false;
        expr.for_each_column(&mut |_| has_columns = true);
        has_columns && !expr.is_volatile()
    };
    match condition.node() {
        Node::Compare(op, a, b) => {
            *op != Comparison::NotEqual && (of_row(a) && b.is_constant() || of_row(b) && a.is_constant())
        }
        Node::InList(a, items, false) => of_row(a) && items.iter().all(Expr::is_constant),
        Node::Quantified { op, arg, array, all } => {
            let is_within = of_row(arg) && array.is_constant() || of_row(array) && arg.is_constant();
            *op == Comparison::Equal && !all && is_within
        }
        Node::Call { function, args, .. } => match args.as_slice() {
            [a, b] => {
                let looks = LOOKING.contains(&function.name);
                looks && (of_row(a) && b.is_constant() || of_row(b) && a.is_constant())
            }
            _ => false,
        },
        Node::Match(like) => !like.negated && of_row(&like.text) && like.pattern.is_constant(),
        Node::Or(any) => {
            let may_serve = |own: &Expr| is_computed(own) || is_for_scan(own);
            any.iter().all(|part| part.conjuncts().iter().all(may_serve))
        }
        _ => false,
    }
}

/// The vector and the query of a condition that the one has what the other looks for.
pub fn is_search(condition: &Expr) -> Option<(&Expr, &Expr)> {
    let Node::Call { function, args, .. } = condition.node() else {
        return None;
    };
    match (function.name, args.as_slice()) {
        ("@@" | "@@@", [a, b]) => match (a.ty(), b.ty()) {
            (Type::TsVector, Type::TsQuery) => Some((a, b)),
            (Type::TsQuery, Type::TsVector) => Some((b, a)),
            _ => None,
        },
        _ => None,
    }
}

fn push_join(join: Join<Expr>, conditions: Vec<Expr>, st: &dyn Statistics) -> Plan {
    push_join_over(join, conditions, false, st)
}

/// As [`push_join`]; with `left_is_done` the left input has its conditions where they belong.
fn push_join_over(mut join: Join<Expr>, conditions: Vec<Expr>, left_is_done: bool, st: &dyn Statistics) -> Plan {
    let left_width = join.left.width();
    let is_left = |c: &Expr| span(c).is_none_or(|(_, high)| high <= left_width);
    let is_right = |c: &Expr| span(c).is_some_and(|(low, _)| low >= left_width);
    let own: Vec<Expr> = join.condition.take().map_or(Vec::new(), |c| common(c.conjuncts()));
    let (mut to_left, mut to_right, mut on, mut above) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let keeps_left = matches!(join.kind, JoinKind::Left | JoinKind::Full);
    let keeps_right = matches!(join.kind, JoinKind::Right | JoinKind::Full);
    // A condition that is not true of nulls makes an outer join an inner one.
    if conditions.iter().any(|c| is_right(c) && is_strict(c)) && join.kind == JoinKind::Left {
        join.kind = JoinKind::Inner;
        return push_join_again(join, own, conditions, st);
    }
    if conditions
        .iter()
        .any(|c| is_left(c) && span(c).is_some() && is_strict(c))
        && join.kind == JoinKind::Right
    {
        join.kind = JoinKind::Inner;
        return push_join_again(join, own, conditions, st);
    }
    for condition in conditions {
        if condition.is_volatile() {
            above.push(condition);
        } else if is_left(&condition) && !keeps_right {
            to_left.push(condition);
        } else if is_right(&condition) && !keeps_left {
            to_right.push(condition);
        } else if join.kind == JoinKind::Inner {
            on.push(condition);
        } else {
            above.push(condition);
        }
    }
    for condition in own {
        if is_left(&condition)
            && matches!(join.kind, JoinKind::Inner | JoinKind::Right | JoinKind::Semi)
            && !condition.is_volatile()
        {
            to_left.push(condition);
        } else if is_right(&condition) && !keeps_right && !condition.is_volatile() {
            to_right.push(condition);
        } else {
            on.push(condition);
        }
    }
    let mut rest = Vec::new();
    for condition in on {
        let key = match condition.node() {
            Node::Compare(Comparison::Equal, a, b) if span(a).is_some() && span(b).is_some() => {
                match (is_left(a), is_right(b)) {
                    (true, true) => Some((a.clone(), b.clone())),
                    _ if is_left(b) && is_right(a) => Some((b.clone(), a.clone())),
                    _ => None,
                }
            }
            _ => None,
        };
        match key {
            Some(key) => join.keys.push(key),
            None => rest.push(condition),
        }
    }
    join.condition = (!rest.is_empty()).then(|| Expr::all(rest));
    join.left = match left_is_done {
        true => filtered(join.left, to_left),
        false => push(join.left, to_left, st),
    };
    let to_right = to_right
        .into_iter()
        .map(|c| c.shifted(-(left_width as isize)))
        .collect();
    join.right = push(join.right, to_right, st);
    filtered(Relation::Join(Box::new(join)), above)
}

fn push_join_again(mut join: Join<Expr>, own: Vec<Expr>, conditions: Vec<Expr>, st: &dyn Statistics) -> Plan {
    join.condition = (!own.is_empty()).then(|| Expr::all(own));
    push_join(join, conditions, st)
}

/// Whether a condition is never true when all of its columns are null.
fn is_strict(condition: &Expr) -> bool {
    match condition.node() {
        Node::Compare(_, a, b) => {
            let plain = |e: &Expr| matches!(e.node(), Node::Column { .. } | Node::Const(..) | Node::Param(..));
            plain(a) && plain(b)
        }
        Node::InList(a, ..) => matches!(a.node(), Node::Column { .. }),
        Node::IsNull(a, true) => matches!(a.node(), Node::Column { .. }),
        Node::Match(like) => matches!(like.text.node(), Node::Column { .. }),
        _ => false,
    }
}

fn push_apply(mut apply: Apply<Expr>, conditions: Vec<Expr>, st: &dyn Statistics) -> Plan {
    let width = apply.input.width();
    let (mut down, mut stay) = split(conditions, |c| span(c).is_none_or(|(_, high)| high <= width));
    // What a condition of its own asks of a subquery is a join.
    let asked = stay.iter().enumerate().find_map(|(at, condition)| {
        let is_answer = |e: &Expr| matches!(e.node(), Node::Column { index, .. } if *index == width);
        match condition.node() {
            Node::Not(arg) if is_answer(arg) => Some((at, true)),
            _ if is_answer(condition) => Some((at, false)),
            _ => None,
        }
    });
    // The outer rows are known only with the conditions on them.
    let asks = matches!(apply.kind, ApplyKind::Exists | ApplyKind::In { .. });
    let asked = asked.filter(|_| asks);
    let is_done = asked.is_some() || matches!(apply.kind, ApplyKind::Scalar);
    if is_done {
        apply.input = push(apply.input, std::mem::take(&mut down), st);
    }
    if let Some((at, negated)) = asked
        && let Some(join) = unnest::semi(&apply, negated)
    {
        stay.remove(at);
        // What stands above counts the answer as a column.
        let mut columns = names(width, &join.left);
        columns.push(Expr::bool(!negated));
        let joined = Relation::Project {
            input: Box::new(push_join_over(join, Vec::new(), true, st)),
            columns,
        };
        return filtered(joined, stay);
    }
    if let Some((join, value)) = unnest::scalar(&apply, st) {
        let mut columns = names(width, &join.left);
        columns.push(value);
        let joined = Relation::Project {
            input: Box::new(push_join_over(join, Vec::new(), true, st)),
            columns,
        };
        return filtered(joined, stay);
    }
    if let ApplyKind::Lateral { keeps: false } = apply.kind {
        let (inner, rest) = split(stay, |_| true);
        // Conditions on the inner rows may use the outer one.
        let inner_width = apply.inner.width();
        let (inner, more) = split(inner, |c| span(c).is_some_and(|(_, high)| high <= width + inner_width));
        let inner = inner
            .into_iter()
            .map(|c| {
                let moved = outward(&c);
                inward(&moved, width)
            })
            .collect();
        apply.input = push(apply.input, down, st);
        apply.inner = push(apply.inner, inner, st);
        apply.correlated = super::is_correlated(&apply.inner);
        let stay = rest.into_iter().chain(more).collect();
        return filtered(Relation::Apply(Box::new(apply)), stay);
    }
    if !is_done {
        apply.input = push(apply.input, down, st);
    }
    apply.inner = push(apply.inner, Vec::new(), st);
    filtered(Relation::Apply(Box::new(apply)), stay)
}

/// Outer columns from `width` on are the inner relation's own.
pub fn inward(expr: &Expr, width: usize) -> Expr {
    match expr.node() {
        Node::Outer {
            levels: 1,
            index,
            name,
            ty,
        } if *index >= width => Expr::column(index - width, name.clone(), ty.clone()),
        _ => expr.map(&mut |part| inward(part, width)),
    }
}

/// The first columns of a plan, as they are.
fn names(width: usize, _plan: &Plan) -> Vec<Expr> {
    (0..width)
        .map(|i| Expr::column(i, format!("column{}", i + 1), crate::types::Type::Unknown))
        .collect()
}

/// Tells scans which columns are looked at. `used` are the columns of the plan's rows that somebody above looks at.
fn prune(plan: Plan, used: &BTreeSet<usize>) -> Plan {
    fn add(set: &mut BTreeSet<usize>, exprs: &[Expr]) {
        for expr in exprs {
            expr.for_each_column(&mut |index| {
                set.insert(index);
            });
        }
    }
    fn add_keys(set: &mut BTreeSet<usize>, keys: &[SortKey<Expr>]) {
        keys.iter().for_each(|key| add(set, std::slice::from_ref(&key.by)));
    }
    match plan {
        Relation::Scan(mut scan) => {
            let mut needed = used.clone();
            add(&mut needed, &scan.conditions);
            for (index, flag) in scan.needed.iter_mut().enumerate() {
                *flag = needed.contains(&index);
            }
            Relation::Scan(scan)
        }
        Relation::Filter { input, condition } => {
            let mut needed = used.clone();
            add(&mut needed, std::slice::from_ref(&condition));
            Relation::Filter {
                input: Box::new(prune(*input, &needed)),
                condition,
            }
        }
        Relation::Project { input, columns } => {
            // Columns that nobody looks at are not computed.
            let columns = columns
                .into_iter()
                .enumerate()
                .map(|(i, column)| match used.contains(&i) {
                    true => column,
                    false => Expr::constant(Value::Null, column.ty()),
                });
            let columns: Vec<Expr> = columns.collect();
            let mut needed = BTreeSet::new();
            add(&mut needed, &columns);
            Relation::Project {
                input: Box::new(prune(*input, &needed)),
                columns,
            }
        }
        Relation::Join(mut join) => {
            let width = join.left.width();
            let mut needed = used.clone();
            for (a, b) in &join.keys {
                add(&mut needed, &[a.clone(), b.clone()]);
            }
            add(&mut needed, join.condition.as_slice());
            join.left = prune(join.left, &needed.iter().copied().filter(|i| *i < width).collect());
            join.right = prune(
                join.right,
                &needed.iter().filter_map(|i| i.checked_sub(width)).collect(),
            );
            Relation::Join(join)
        }
        Relation::Apply(mut apply) => {
            let width = apply.input.width();
            let mut needed: BTreeSet<usize> = used.iter().copied().filter(|i| *i < width).collect();
            let gives_rows = matches!(apply.kind, ApplyKind::Lateral { .. });
            if !gives_rows && !used.contains(&width) && !super::is_volatile(&apply.inner) {
                // Nobody looks at what it gives.
                let mut columns = names(width, &apply.input);
                columns.push(Expr::constant(Value::Null, crate::types::Type::Unknown));
                return Relation::Project {
                    input: Box::new(prune(apply.input, &needed)),
                    columns,
                };
            }
            add(&mut needed, apply.when.as_slice());
            if let ApplyKind::In { probe } = &apply.kind {
                add(&mut needed, probe);
            }
            let mut told_by = BTreeSet::new();
            map(&apply.inner, 0, &mut |expr, depth| {
                expr.for_each_outer(&mut |levels, index| {
                    if levels == depth + 1 {
                        told_by.insert(index);
                    }
                });
                expr.clone()
            });
            needed.extend(&told_by);
            apply.told_by = (!super::is_volatile(&apply.inner)).then(|| told_by.into_iter().collect());
            let inner = match apply.kind {
                ApplyKind::Lateral { .. } => used.iter().filter_map(|i| i.checked_sub(width)).collect(),
                ApplyKind::Exists => BTreeSet::new(),
                _ => (0..apply.inner.width()).collect(),
            };
            apply.input = prune(apply.input, &needed);
            apply.inner = prune(apply.inner, &inner);
            Relation::Apply(apply)
        }
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => {
            let mut needed = BTreeSet::new();
            add(&mut needed, &groups);
            let count = calls.len();
            let is_wanted = |at: usize, call: &Call<Expr>| used.contains(&(groups.len() + at)) || is_volatile(call);
            let wanted: Vec<bool> = calls.iter().enumerate().map(|(at, call)| is_wanted(at, call)).collect();
            let mut left = wanted.iter();
            let calls: Vec<Call<Expr>> = calls.into_iter().filter(|_| left.next() == Some(&true)).collect();
            for call in &calls {
                add(&mut needed, &call.args);
                add(&mut needed, call.filter.as_slice());
                add_keys(&mut needed, &call.order);
            }
            let is_less = calls.len() < count;
            let width = groups.len();
            let columns = match is_less {
                true => placed_again(&groups, &wanted),
                false => Vec::new(),
            };
            let aggregate = Relation::Aggregate {
                input: Box::new(prune(*input, &needed)),
                groups,
                sets,
                calls,
                limit,
            };
            debug_assert!(!is_less || columns.len() == width + count + 1);
            match is_less {
                true => Relation::Project {
                    input: Box::new(aggregate),
                    columns,
                },
                false => aggregate,
            }
        }
        Relation::Sort { input, keys, limit } => {
            let mut needed = used.clone();
            add_keys(&mut needed, &keys);
            Relation::Sort {
                input: Box::new(prune(*input, &needed)),
                keys,
                limit,
            }
        }
        Relation::Limit {
            input,
            limit,
            offset,
            ties,
        } => {
            let mut needed = used.clone();
            add_keys(&mut needed, &ties);
            Relation::Limit {
                input: Box::new(prune(*input, &needed)),
                limit,
                offset,
                ties,
            }
        }
        Relation::Distinct { input, on } => {
            let mut needed = used.clone();
            add(&mut needed, &on);
            Relation::Distinct {
                input: Box::new(prune(*input, &needed)),
                on,
            }
        }
        Relation::Window { input, window } => {
            let all = (0..input.width()).collect();
            Relation::Window {
                input: Box::new(prune(*input, &all)),
                window,
            }
        }
        Relation::Append { inputs } => Relation::Append {
            inputs: inputs.into_iter().map(|input| prune(input, used)).collect(),
        },
        Relation::Intersect(mut both) => {
            let all = (0..both.left.width()).collect();
            both.left = prune(both.left, &all);
            both.right = prune(both.right, &all);
            Relation::Intersect(both)
        }
        Relation::Recursive(mut recursive) => {
            let all = (0..recursive.base.width()).collect();
            recursive.base = prune(recursive.base, &all);
            recursive.step = prune(recursive.step, &all);
            Relation::Recursive(recursive)
        }
        Relation::Shared { id, plan } => {
            let all = (0..plan.width()).collect();
            let plan = Arc::new(prune((*plan).clone(), &all));
            Relation::Shared { id, plan }
        }
        other => other,
    }
}
