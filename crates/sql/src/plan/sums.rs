//! Sums of a column and different constants are one sum and one count.
//!
//! `sum(x + 1), sum(x + 2)` is `s + 1 * n` and `s + 2 * n` over `sum(x) AS s, count(x) AS n`. That holds where no single addition can overflow,
//! which the types tell: a `smallint` beside an `integer` that leaves room for it, an `integer` beside such a `bigint`.

use super::Plan;
use crate::aggregates;
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::types::Type;
use crate::types::cast::Context;
use nestor_model::Value;
use nestor_planner::relation::{Call, Relation};

/// Sums columns once where their sums with constants are wanted.
pub fn rewrite(plan: Plan) -> Plan {
    let plan = super::with_inputs(plan, &mut rewrite);
    match plan {
        Relation::Aggregate {
            input,
            groups,
            sets,
            calls,
            limit,
        } => {
            let once = once(&groups, &calls);
            let (calls, columns) = match once {
                Some((calls, columns)) => (calls, Some(columns)),
                None => (calls, None),
            };
            let aggregate = Relation::Aggregate {
                input,
                groups,
                sets,
                calls,
                limit,
            };
            match columns {
                Some(columns) => Relation::Project {
                    input: Box::new(aggregate),
                    columns,
                },
                None => aggregate,
            }
        }
        other => other,
    }
}

/// A sum of what a column and a constant make.
struct Shifted {
    /// What is summed once.
    base: Expr,
    /// The constant, and what the sum is counted in.
    constant: i64,
    /// It is taken from the constant.
    is_negated: bool,
    ty: Type,
}

/// The calls with each column summed once, and the columns of the calls before made of these; `None` where nothing is saved.
fn once(groups: &[Expr], calls: &[Call<Expr>]) -> Option<(Vec<Call<Expr>>, Vec<Expr>)> {
    let shifted: Vec<Option<Shifted>> = calls.iter().map(shifted).collect();
    let is_same = |a: &Shifted, (call, b): (&Call<Expr>, &Shifted), own: &Call<Expr>| {
        let filters = match (&own.filter, &call.filter) {
            (None, None) => true,
            (Some(own), Some(other)) => own.is_same(other),
            _ => false,
        };
        filters && a.ty == b.ty && a.base.is_same(&b.base)
    };
    let mut out: Vec<Call<Expr>> = Vec::new();
    let mut columns: Vec<Expr> = groups
        .iter()
        .enumerate()
        .map(|(at, by)| Expr::column(at, "group", by.ty()))
        .collect();
    // Of each base that has been summed the first call with it, and where its sum stands.
    let mut bases: Vec<(usize, usize)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let one = shifted[at].as_ref();
        let alike = one.map_or(0, |one| {
            let others = calls
                .iter()
                .zip(&shifted)
                .filter_map(|(call, other)| Some((call, other.as_ref()?)));
            others.filter(|other| is_same(one, *other, call)).count()
        });
        let Some(one) = one.filter(|_| alike > 2) else {
            columns.push(Expr::column(
                groups.len() + out.len(),
                call.function.name(),
                Type::Unknown,
            ));
            out.push(call.clone());
            continue;
        };
        let known = bases.iter().find(|(first, _)| {
            shifted[*first]
                .as_ref()
                .is_some_and(|other| is_same(one, (&calls[*first], other), call))
        });
        let sum = match known {
            Some((_, sum)) => *sum,
            None => {
                let sum = out.len();
                for name in ["sum", "count"] {
                    let bound = aggregates::bind(name, vec![one.base.clone()], false).ok()?;
                    out.push(Call {
                        function: bound.function,
                        args: bound.args,
                        ..call.clone()
                    });
                }
                bases.push((at, sum));
                sum
            }
        };
        columns.push(one.of(groups.len() + sum)?);
    }
    columns.push(Expr::column(groups.len() + out.len(), "set", Type::Int8));
    (!bases.is_empty()).then_some((out, columns))
}

/// What a call sums, if it is a column and a constant that cannot overflow.
fn shifted(call: &Call<Expr>) -> Option<Shifted> {
    let is_plain = call.function.name() == "sum" && !call.distinct && call.order.is_empty();
    let ([arg], true) = (call.args.as_slice(), is_plain) else {
        return None;
    };
    let Node::Call { function, args, ty } = arg.node() else {
        return None;
    };
    let [a, b] = args.as_slice() else { return None };
    let (base, constant, is_negated) = match (function.name, constant(a), constant(b)) {
        ("+", None, Some(constant)) => (a, constant, false),
        ("+", Some(constant), None) => (b, constant, false),
        ("-", None, Some(constant)) => (a, constant.checked_neg()?, false),
        ("-", Some(constant), None) => (b, constant, true),
        _ => return None,
    };
    let Node::Cast { arg: base, .. } = base.node() else {
        return None;
    };
    let room = match (base.ty(), ty) {
        (Type::Int2, Type::Int4) => i64::from(i32::MAX) - i64::from(u16::MAX),
        (Type::Int4, Type::Int8) => i64::MAX - i64::from(u32::MAX),
        _ => return None,
    };
    let is_fit = constant.checked_abs()? <= room && !base.is_volatile();
    is_fit.then(|| Shifted {
        base: base.clone(),
        constant,
        is_negated,
        ty: match ty {
            Type::Int4 => Type::Int8,
            _ => Type::Numeric,
        },
    })
}

fn constant(expr: &Expr) -> Option<i64> {
    match expr.node() {
        Node::Const(Value::Int32(value), _) => Some(i64::from(*value)),
        Node::Const(Value::Int64(value), _) => Some(*value),
        _ => None,
    }
}

impl Shifted {
    /// The sum, made of that of the base in a column and of the count behind it.
    fn of(&self, sum: usize) -> Option<Expr> {
        let to = |expr: Expr| coerce(expr, &self.ty, Context::Implicit).ok();
        let constant = to(Expr::constant(Value::Int64(self.constant), Type::Int8))?;
        let count = to(Expr::column(sum + 1, "count", Type::Int8))?;
        let sum = to(Expr::column(sum, "sum", Type::Int8))?;
        let times = functions::call("*", vec![constant, count]).ok()?;
        match self.is_negated {
            true => functions::call("-", vec![times, sum]).ok(),
            false => functions::call("+", vec![sum, times]).ok(),
        }
    }
}
