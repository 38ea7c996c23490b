//! Relations over SQL's expressions: going through them, and the rules that rewrite them.

pub mod counted;
pub mod elements;
pub mod estimate;
pub mod extreme;
pub mod fences;
pub mod lifted;
pub mod lookup;
pub mod loose;
pub mod merged;
pub mod order;
pub mod partitions;
pub mod presorted;
pub mod pushdown;
pub mod rewrite;
pub mod settled;
pub mod sums;
pub mod switches;
pub mod unnest;

use crate::expr::{Expr, Node};
use nestor_planner::relation::{
    Apply, ApplyKind, Call, FrameBound, Intersect, Join, JoinKind, Recursive, Relation, Scan, SortKey, Window,
    WindowCall, WindowFrame, WindowFunction,
};
use std::sync::Arc;

/// A plan.
pub type Plan = Relation<Expr>;

/// The same plan with each expression replaced; `f` is told at how many levels of enclosed queries the expression stands.
pub fn map(plan: &Plan, depth: usize, f: &mut dyn FnMut(&Expr, usize) -> Expr) -> Plan {
    fn list(items: &[Expr], depth: usize, f: &mut dyn FnMut(&Expr, usize) -> Expr) -> Vec<Expr> {
        items.iter().map(|item| f(item, depth)).collect()
    }
    fn keys(keys: &[SortKey<Expr>], depth: usize, f: &mut dyn FnMut(&Expr, usize) -> Expr) -> Vec<SortKey<Expr>> {
        let each = keys.iter().map(|key| SortKey {
            by: f(&key.by, depth),
            ..key.clone()
        });
        each.collect()
    }
    fn call(call: &Call<Expr>, depth: usize, f: &mut dyn FnMut(&Expr, usize) -> Expr) -> Call<Expr> {
        Call {
            function: call.function.clone(),
            args: list(&call.args, depth, f),
            distinct: call.distinct,
            filter: call.filter.as_ref().map(|e| f(e, depth)),
            order: keys(&call.order, depth, f),
        }
    }
    fn wanted(
        limit: &Option<(Option<Expr>, Expr)>,
        depth: usize,
        f: &mut dyn FnMut(&Expr, usize) -> Expr,
    ) -> Option<(Option<Expr>, Expr)> {
        let (skip, limit) = limit.as_ref()?;
        Some((skip.as_ref().map(|e| f(e, depth)), f(limit, depth)))
    }
    fn scan(scan: &Scan<Expr>, depth: usize, f: &mut dyn FnMut(&Expr, usize) -> Expr) -> Scan<Expr> {
        Scan {
            conditions: list(&scan.conditions, depth, f),
            order: keys(&scan.order, depth, f),
            ..scan.clone()
        }
    }
    let boxed = |plan: &Plan, f: &mut dyn FnMut(&Expr, usize) -> Expr| Box::new(map(plan, depth, f));
    match plan {
        Relation::Values { rows, width } => Relation::Values {
            rows: rows.iter().map(|row| list(row, depth, f)).collect(),
            width: *width,
        },
        Relation::Scan(table) => Relation::Scan(scan(table, depth, f)),
        Relation::Count(table) => Relation::Count(scan(table, depth, f)),
        Relation::Function { call, args, width } => Relation::Function {
            call: call.clone(),
            args: list(args, depth, f),
            width: *width,
        },
        Relation::Filter { input, condition } => Relation::Filter {
            input: boxed(input, f),
            condition: f(condition, depth),
        },
        Relation::Project { input, columns } => Relation::Project {
            input: boxed(input, f),
            columns: list(columns, depth, f),
        },
        Relation::Join(join) => Relation::Join(Box::new(Join {
            kind: join.kind,
            left: map(&join.left, depth, f),
            right: map(&join.right, depth, f),
            keys: join.keys.iter().map(|(a, b)| (f(a, depth), f(b, depth))).collect(),
            condition: join.condition.as_ref().map(|e| f(e, depth)),
            left_first: join.left_first,
        })),
        Relation::Apply(apply) => Relation::Apply(Box::new(Apply {
            input: map(&apply.input, depth, f),
            inner: map(&apply.inner, depth + 1, f),
            kind: match &apply.kind {
                ApplyKind::In { probe } => ApplyKind::In {
                    probe: list(probe, depth, f),
                },
                other => other.clone(),
            },
            correlated: apply.correlated,
            // Columns may stand elsewhere now.
            told_by: None,
            when: apply.when.as_ref().map(|e| f(e, depth)),
        })),
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => Relation::Aggregate {
            input: boxed(input, f),
            groups: list(groups, depth, f),
            sets: sets.clone(),
            calls: calls.iter().map(|c| call(c, depth, f)).collect(),
            limit: wanted(limit, depth, f),
        },
        Relation::Window { input, window } => {
            let input = boxed(input, f);
            let bound = |bound: &FrameBound<Expr>, f: &mut dyn FnMut(&Expr, usize) -> Expr| match bound {
                FrameBound::Preceding(e) => FrameBound::Preceding(f(e, depth)),
                FrameBound::Following(e) => FrameBound::Following(f(e, depth)),
                other => other.clone(),
            };
            let calls = window.calls.iter().map(|c| WindowCall {
                function: match &c.function {
                    WindowFunction::Aggregate(of) => WindowFunction::Aggregate(call(of, depth, f)),
                    other => other.clone(),
                },
                args: list(&c.args, depth, f),
                frame: WindowFrame {
                    start: bound(&c.frame.start, f),
                    end: bound(&c.frame.end, f),
                    ..c.frame.clone()
                },
            });
            let calls = calls.collect();
            Relation::Window {
                input,
                window: Window {
                    partition: list(&window.partition, depth, f),
                    order: keys(&window.order, depth, f),
                    calls,
                },
            }
        }
        Relation::Sort { input, keys: by, limit } => Relation::Sort {
            input: boxed(input, f),
            keys: keys(by, depth, f),
            limit: wanted(limit, depth, f),
        },
        Relation::Limit {
            input,
            limit,
            offset,
            ties,
        } => Relation::Limit {
            input: boxed(input, f),
            limit: limit.as_ref().map(|e| f(e, depth)),
            offset: offset.as_ref().map(|e| f(e, depth)),
            ties: keys(ties, depth, f),
        },
        Relation::Distinct { input, on } => Relation::Distinct {
            input: boxed(input, f),
            on: list(on, depth, f),
        },
        Relation::Append { inputs } => Relation::Append {
            inputs: inputs.iter().map(|input| map(input, depth, f)).collect(),
        },
        Relation::Intersect(both) => Relation::Intersect(Box::new(Intersect {
            left: map(&both.left, depth, f),
            right: map(&both.right, depth, f),
            on: list(&both.on, depth, f),
            except: both.except,
            all: both.all,
        })),
        Relation::Recursive(recursive) => Relation::Recursive(Box::new(Recursive {
            id: recursive.id,
            base: map(&recursive.base, depth, f),
            step: map(&recursive.step, depth, f),
            distinct: recursive.distinct.as_ref().map(|on| list(on, depth, f)),
        })),
        Relation::Working { .. } => plan.clone(),
        Relation::Shared { id, plan } => Relation::Shared {
            id: *id,
            plan: Arc::new(map(plan, depth, f)),
        },
    }
}

/// How many parts of a plan are such.
pub fn uses(plan: &Plan, is: &dyn Fn(&Plan) -> bool) -> usize {
    usize::from(is(plan)) + plan.inputs().into_iter().map(|input| uses(input, is)).sum::<usize>()
}

/// The same node over other inputs.
pub fn with_inputs(plan: Plan, f: &mut dyn FnMut(Plan) -> Plan) -> Plan {
    let mut boxed = |input: Box<Plan>| Box::new(f(*input));
    match plan {
        Relation::Filter { input, condition } => Relation::Filter {
            input: boxed(input),
            condition,
        },
        Relation::Project { input, columns } => Relation::Project {
            input: boxed(input),
            columns,
        },
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => Relation::Aggregate {
            input: boxed(input),
            groups,
            sets,
            calls,
            limit,
        },
        Relation::Window { input, window } => Relation::Window {
            input: boxed(input),
            window,
        },
        Relation::Sort { input, keys, limit } => Relation::Sort {
            input: boxed(input),
            keys,
            limit,
        },
        Relation::Limit {
            input,
            limit,
            offset,
            ties,
        } => Relation::Limit {
            input: boxed(input),
            limit,
            offset,
            ties,
        },
        Relation::Distinct { input, on } => Relation::Distinct {
            input: boxed(input),
            on,
        },
        Relation::Join(join) => {
            let Join {
                kind,
                left,
                right,
                keys,
                condition,
                left_first,
            } = *join;
            Relation::Join(Box::new(Join {
                kind,
                left: f(left),
                right: f(right),
                keys,
                condition,
                left_first,
            }))
        }
        Relation::Apply(apply) => {
            let apply = *apply;
            Relation::Apply(Box::new(Apply {
                input: f(apply.input),
                inner: f(apply.inner),
                ..apply
            }))
        }
        Relation::Append { inputs } => Relation::Append {
            inputs: inputs.into_iter().map(f).collect(),
        },
        Relation::Intersect(both) => {
            let both = *both;
            Relation::Intersect(Box::new(Intersect {
                left: f(both.left),
                right: f(both.right),
                ..both
            }))
        }
        Relation::Recursive(recursive) => {
            let recursive = *recursive;
            Relation::Recursive(Box::new(Recursive {
                base: f(recursive.base),
                step: f(recursive.step),
                ..recursive
            }))
        }
        Relation::Shared { id, plan } => Relation::Shared {
            id,
            plan: Arc::new(f((*plan).clone())),
        },
        plan @ (Relation::Values { .. }
        | Relation::Scan(_)
        | Relation::Count(_)
        | Relation::Function { .. }
        | Relation::Working { .. }) => plan,
    }
}

/// Whether a plan, which stands within another query, depends on a row of an enclosing query at this many levels or more.
pub fn reaches_out(plan: &Plan, least: usize) -> bool {
    let mut found = false;
    map(plan, 0, &mut |expr, depth| {
        expr.for_each_outer(&mut |levels, _| found |= levels >= depth + least);
        expr.clone()
    });
    found
}

/// Whether a plan has functions whose values are not the same for the same arguments, or that do something.
pub fn is_volatile(plan: &Plan) -> bool {
    let mut found = false;
    map(plan, 0, &mut |expr, _| {
        found |= expr.is_volatile();
        expr.clone()
    });
    found
}

/// Whether it depends on the row of the query directly around it.
pub fn is_correlated(plan: &Plan) -> bool {
    let mut found = false;
    map(plan, 0, &mut |expr, depth| {
        expr.for_each_outer(&mut |levels, _| found |= levels == depth + 1);
        expr.clone()
    });
    found
}

/// An expression as the query within sees it: its columns are those of the outer row.
pub fn outward(expr: &Expr) -> Expr {
    match expr.node() {
        Node::Column { index, name, ty } => Node::Outer {
            levels: 1,
            index: *index,
            name: name.clone(),
            ty: ty.clone(),
        }
        .into(),
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } => Node::Outer {
            levels: levels + 1,
            index: *index,
            name: name.clone(),
            ty: ty.clone(),
        }
        .into(),
        _ => expr.map(&mut |part| outward(part)),
    }
}

/// An expression with the columns of the row directly around (at `depth` levels of enclosed queries) replaced by what `column` gives.
pub fn replace_outer(expr: &Expr, depth: usize, column: &dyn Fn(usize, &str, &Type) -> Expr) -> Expr {
    match expr.node() {
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } if *levels == depth + 1 => {
            let mut out = column(*index, name, ty);
            for _ in 0..=depth {
                out = outward(&out);
            }
            out
        }
        _ => expr.map(&mut |part| replace_outer(part, depth, column)),
    }
}

use crate::types::Type;

/// Rows behind a fence: a condition on them goes no deeper unless it tells nothing of a row whatever that has, by an error or otherwise. It is a limit that
/// is none, so that every rule which knows nothing of it lets conditions stay above.
pub fn fenced(plan: Plan) -> Plan {
    Relation::Limit {
        input: Box::new(plan),
        limit: None,
        offset: None,
        ties: Vec::new(),
    }
}

/// What stands behind a fence; anything else as it is.
///
/// Errors: the plan, if it is no fence.
pub fn behind_fence(plan: Plan) -> std::result::Result<Plan, Plan> {
    match plan {
        Relation::Limit {
            input,
            limit: None,
            offset: None,
            ties,
        } if ties.is_empty() => Ok(*input),
        other => Err(other),
    }
}

/// The rows of both, each with each.
pub fn cross(left: Plan, right: Plan) -> Plan {
    if matches!(&left, Relation::Values { rows, width: 0 } if rows.len() == 1) {
        return right;
    }
    Relation::Join(Box::new(Join {
        kind: JoinKind::Inner,
        left,
        right,
        keys: Vec::new(),
        condition: None,
        left_first: false,
    }))
}
