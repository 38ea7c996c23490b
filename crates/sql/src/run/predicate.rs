//! The predicate of an index: a filter that finds just the rows of which it holds, and what no filter can say.

use crate::bind::Binder;
use crate::catalog::Table;
use crate::catalog::partial::{condition, group, joined};
use crate::error::{fail, state, unsupported};
use crate::expr::{Comparison, Expr, Node};
use crate::run::find;
use crate::run::indexed;
use crate::run::tables::Reading;
use crate::types::Type;
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::relation::{Env, Scalar};
use sqlparser::ast::{BinaryOperator, Expr as Ast};
use std::sync::Arc;

/// A predicate.
#[derive(Debug, Default)]
pub struct Predicate {
    /// What a filter says of it; empty, where none says anything.
    pub filter: Document,
    /// The conditions that no filter says, as they are written, and what they are over the table.
    pub conditions: Vec<(String, Expr)>,
}

/// The conditions that one consists of.
fn conjuncts<'a>(ast: &'a Ast, out: &mut Vec<&'a Ast>) {
    match ast {
        Ast::Nested(inner) => conjuncts(inner, out),
        Ast::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(left, out);
            conjuncts(right, out);
        }
        other => out.push(other),
    }
}

/// A predicate over a table.
///
/// Errors: those of binding it; 42P17 for what is not always the same, 0A000 for conditions on types that a statement has made which no filter says.
pub fn of(reading: &Reading<'_, '_>, table: &Arc<Table>, predicate: &Ast) -> Result<Predicate> {
    let mut asked = Vec::new();
    conjuncts(predicate, &mut asked);
    let (mut filters, mut conditions) = (Vec::new(), Vec::new());
    for ast in asked {
        match filter(reading, table, ast) {
            Ok(filter) => filters.push(filter),
            Err(error) if state(&error) == "0A000" => {
                conditions.push((ast.to_string(), indexed::condition(table, ast)?));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Predicate {
        filter: joined(filters),
        conditions,
    })
}

/// The filter of a condition over a table.
///
/// Errors: as [`of`], and 0A000 for what no filter can say.
fn filter(reading: &Reading<'_, '_>, table: &Arc<Table>, predicate: &Ast) -> Result<Document> {
    let bound = Binder::new(reading, Vec::new()).predicate(table, predicate)?;
    check_same(&bound)?;
    let env = Env {
        op: reading.op,
        params: &[],
        outer: None,
        effects: None,
        compared: None,
    };
    let each = bound.conjuncts();
    let each = each.iter().map(|part| one(part, table, &env));
    Ok(joined(each.collect::<Result<_>>()?))
}

/// Values are the same whenever somebody asks.
fn check_same(expr: &Expr) -> Result<()> {
    if let Node::Call { function, .. } = expr.node() {
        if function.volatile || function.name == "now" {
            return fail("42P17", "functions in index predicate must be marked IMMUTABLE");
        }
        if !function.is_operator() {
            return unsupported("a function in the predicate of an index");
        }
    }
    expr.parts().into_iter().try_for_each(check_same)
}

fn one(expr: &Expr, table: &Table, env: &Env<'_>) -> Result<Document> {
    let column = |expr: &Expr| match expr.node() {
        Node::Column { index, .. } => table.columns.get(*index),
        _ => None,
    };
    let is_joined = matches!(expr.node(), Node::And(_) | Node::Or(_) | Node::IsNull(..));
    if let Some(labels) = labels(expr, table, env).filter(|_| !is_joined) {
        return labels;
    }
    match expr.node() {
        Node::And(parts) => {
            let parts = parts.iter().map(|part| one(part, table, env));
            return Ok(group("$and", parts.collect::<Result<_>>()?));
        }
        Node::Or(parts) => {
            let parts = parts.iter().map(|part| one(part, table, env));
            return Ok(group("$or", parts.collect::<Result<_>>()?));
        }
        Node::Column { .. } => {
            if let Some(column) = column(expr) {
                return Ok(condition(&column.path, "$eq", Value::Bool(true)));
            }
        }
        // What is known to be false of all, or of one of them.
        Node::Not(arg) if matches!(arg.node(), Node::And(_) | Node::Or(_)) => {
            let parts = arg
                .parts()
                .into_iter()
                .map(|part| one(&Node::Not(part.clone()).into(), table, env));
            let joined = if matches!(arg.node(), Node::Or(_)) {
                "$and"
            } else {
                "$or"
            };
            return Ok(group(joined, parts.collect::<Result<_>>()?));
        }
        Node::Not(arg) => {
            if let Some(column) = column(arg) {
                return Ok(condition(&column.path, "$eq", Value::Bool(false)));
            }
        }
        Node::IsNull(arg, is_not) => {
            if let Some(column) = column(arg).filter(|column| column.ty != Type::Jsonb) {
                return Ok(match is_not {
                    // Once it is what a unique key says by itself.
                    true => {
                        let there = || condition(&column.path, "$exists", Value::Bool(true));
                        group("$and", vec![there(), there()])
                    }
                    false => condition(&column.path, "$eq", Value::Null),
                });
            }
        }
        // Not a number is unequal and, to a filter, neither larger nor smaller.
        Node::Compare(Comparison::NotEqual, a, b) if !matches!(a.ty(), Type::Float4 | Type::Float8 | Type::Numeric) => {
            let side = |op| leaf(&Node::Compare(op, a.clone(), b.clone()).into(), table, env);
            let sides = vec![side(Comparison::Less)?, side(Comparison::Greater)?];
            return Ok(group("$or", sides));
        }
        _ => {}
    }
    leaf(expr, table, env)
}

/// What a condition on one column of an enum says: the labels of which it holds, as there are so few of them. `None` for other conditions.
fn labels(expr: &Expr, table: &Table, env: &Env<'_>) -> Option<Result<Document>> {
    let mut used = Vec::new();
    expr.for_each_column(&mut |at| used.push(at));
    used.dedup();
    let [at] = used.as_slice() else { return None };
    let column = table.columns.get(*at)?;
    let Type::Enum(own) = &column.ty else { return None };
    let mut row = vec![Value::Null; table.columns.len()];
    let mut holds = |value: Value| -> Result<bool> {
        row[*at] = value;
        expr.holds(&row, env)
    };
    let mut found = || -> Result<Document> {
        let mut of: Vec<Value> = Vec::new();
        if holds(Value::Null)? {
            of.push(Value::Null);
        }
        for (place, label) in (0..).zip(&own.labels) {
            if holds(Value::Int32(place))? {
                of.push(label.as_str().into());
            }
        }
        Ok(match of.as_slice() {
            [] => return unsupported("the predicate of this index"),
            [only] => condition(&column.path, "$eq", only.clone()),
            _ => condition(&column.path, "$in", Value::Array(Array::new(of))),
        })
    };
    Some(found())
}

/// A filter that finds all rows of which conditions hold, perhaps among others.
///
/// Errors: those of values.
pub fn said(conditions: &[Expr], table: &Table, env: &Env<'_>) -> Result<Document> {
    let each = conditions.iter().map(|own| match one(own, table, env) {
        Err(error) if state(&error) == "0A000" => Ok(find::filter(std::slice::from_ref(own), table, env)?.filter),
        said => said,
    });
    let each = each.collect::<Result<Vec<_>>>()?;
    Ok(joined(each.into_iter().filter(|filter| !filter.is_empty()).collect()))
}

fn leaf(expr: &Expr, table: &Table, env: &Env<'_>) -> Result<Document> {
    let found = find::filter(std::slice::from_ref(expr), table, env)?;
    match found.exact && !found.filter.is_empty() && found.filter.get("$alwaysFalse").is_none() {
        true => Ok(found.filter),
        false => unsupported("the predicate of this index"),
    }
}
