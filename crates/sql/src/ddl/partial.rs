//! The predicate of an index as a filter that finds just the rows of which it holds.

use crate::bind::Binder;
use crate::catalog::Table;
use crate::catalog::partial::{condition, group, joined};
use crate::error::{fail, unsupported};
use crate::expr::{Comparison, Expr, Node};
use crate::run::find;
use crate::run::tables::Reading;
use crate::types::Type;
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::relation::Env;
use sqlparser::ast::Expr as Ast;
use std::sync::Arc;

/// The filter of a predicate over a table.
///
/// Errors: those of binding it; 42P17 for what is not always the same, 0A000 for what no filter can say.
pub(super) fn filter(reading: &Reading<'_, '_>, table: &Arc<Table>, predicate: &Ast) -> Result<Document> {
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
        // What compares so with a label is one of some labels.
        Node::Compare(op, a, b) if matches!(a.ty(), Type::Enum(_)) && a.ty() == b.ty() => {
            let (column, value, op) = match (column(a), column(b)) {
                (Some(column), None) => (column, b, *op),
                (None, Some(column)) => (column, a, op.mirrored()),
                _ => return unsupported("the predicate of this index"),
            };
            let (Type::Enum(own), Node::Const(Value::Int32(place), _)) = (&column.ty, value.node()) else {
                return unsupported("the predicate of this index");
            };
            let fits = |(other, _): &(i32, &String)| op.of(other.cmp(place));
            let all = (0..).zip(&own.labels);
            let labels: Vec<Value> = all.filter(fits).map(|(_, label)| label.as_str().into()).collect();
            return Ok(match labels.as_slice() {
                [only] => condition(&column.path, "$eq", only.clone()),
                _ => condition(&column.path, "$in", Value::Array(Array::new(labels))),
            });
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

fn leaf(expr: &Expr, table: &Table, env: &Env<'_>) -> Result<Document> {
    let found = find::filter(std::slice::from_ref(expr), table, env)?;
    match found.exact && !found.filter.is_empty() && found.filter.get("$alwaysFalse").is_none() {
        true => Ok(found.filter),
        false => unsupported("the predicate of this index"),
    }
}
