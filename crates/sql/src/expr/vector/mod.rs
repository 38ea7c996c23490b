//! Expressions over chunks: the same values as row by row, computed column by column where there is a loop for the types.
//!
//! [`compare`], [`arithmetic`] and [`functions`] have such loops; [`logic`] computes the parts of an expression only for the rows that need them, as one
//! row does. What has none goes row by row: a function over the vectors of its arguments, and of one text that rows share once for all of them
//! ([`shared`]); anything else over the rows themselves. A loop
//! that meets what it cannot hold (an overflow, say) gives up, and the same is done row by row, which tells the error.

mod arithmetic;
mod compare;
mod functions;
mod logic;
mod shared;
mod side;

use super::{Expr, Node};
use crate::types::{Type, cast};
use nestor_model::statement::work;
use nestor_model::vector::{Data, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::each_row;
use nestor_planner::relation::{Chunk, Env, Scalar};
use std::sync::Arc;

/// Work of a row in a loop: some nanoseconds.
const ROWS_PER_UNIT: usize = 8;

/// The values of an expression for the rows of a chunk.
///
/// Errors: those of [`Scalar::value`] for any of the rows.
pub(super) fn vector(expr: &Expr, chunk: &Chunk, env: &Env<'_>) -> Result<Arc<Vector>> {
    let rows = chunk.rows;
    work(1 + rows / ROWS_PER_UNIT)?;
    let computed = match expr.node() {
        Node::Column { index, .. } => match chunk.columns.get(*index) {
            Some(column) => return Ok(column.clone()),
            None => Vector::same(Value::Null, rows),
        },
        Node::Const(value, _) => Vector::same(value.clone(), rows),
        Node::Outer { .. } | Node::Param(..) => Vector::same(expr.value(&[], env)?, rows),
        Node::Compare(op, a, b) => {
            let (x, y) = (vector(a, chunk, env)?, vector(b, chunk, env)?);
            compare::compare(*op, &a.ty(), &x, &y)?
        }
        Node::And(all) => logic::until(all, false, chunk, env)?,
        Node::Or(any) => logic::until(any, true, chunk, env)?,
        Node::Not(arg) => logic::not(&*vector(arg, chunk, env)?),
        Node::IsNull(arg, negated) if !matches!(arg.ty(), Type::Record | Type::Composite(_)) => {
            logic::is_null(&*vector(arg, chunk, env)?, *negated)
        }
        Node::Case {
            operand: None,
            arms,
            otherwise,
            ..
        } => logic::case(arms, otherwise.as_ref(), chunk, env)?,
        Node::Coalesce(items, _) => logic::coalesce(items, chunk, env)?,
        Node::InList(arg, items, negated) if items.iter().all(Scalar::is_literal) => {
            let arg = (arg.ty(), vector(arg, chunk, env)?);
            compare::is_in(&arg.0, &arg.1, items, *negated)?
        }
        Node::Call { function, args, .. } => {
            let args_of: Vec<Arc<Vector>> = args.iter().map(|arg| vector(arg, chunk, env)).collect::<Result<_>>()?;
            let quick = match args_of.as_slice() {
                [a, b] => arithmetic::both(function, a, b),
                _ => None,
            };
            let quick = quick.or_else(|| {
                let args: Vec<&Vector> = args_of.iter().map(|arg| &**arg).collect();
                functions::of(function, &args)
            });
            let run = |row: usize| {
                let values: Vec<Value> = args_of.iter().map(|arg| arg.value(row)).collect();
                match function.strict && values.iter().any(|value| matches!(value, Value::Null)) {
                    true => Ok(Value::Null),
                    false => (function.run)(&values, env, args),
                }
            };
            match quick {
                Some(quick) => quick,
                None => once_or_each(&args_of, function.volatile, rows, run)?,
            }
        }
        Node::Cast {
            arg,
            to,
            modifier,
            explicit,
        } => {
            let from = arg.ty();
            let values = vector(arg, chunk, env)?;
            if from == Type::Int2 && *to == Type::Int4 && matches!(values.data, Data::Int32(_)) {
                return Ok(values);
            }
            let quick = arithmetic::widened(&values, &from, to, *modifier);
            match quick.or_else(|| functions::as_timestamps(&values, &from, to, *modifier)) {
                Some(quick) => quick,
                None => {
                    let run = |row: usize| cast::cast(values.value(row), &from, to, *modifier, *explicit);
                    once_or_each(std::slice::from_ref(&values), false, rows, run)?
                }
            }
        }
        Node::Match(like) => {
            let (texts, patterns) = (vector(&like.text, chunk, env)?, vector(&like.pattern, chunk, env)?);
            match (&texts.data, &patterns.data) {
                (Data::Text(all), Data::Same(Value::String(pattern), _)) => {
                    let found = like.of_texts(all, texts.nulls.as_deref(), pattern)?;
                    Vector {
                        data: Data::Bool(found),
                        nulls: texts.nulls.clone(),
                    }
                }
                _ => each_row(rows, |row| like.of(&texts.value(row), &patterns.value(row)))?,
            }
        }
        _ => by_row(expr, chunk, env)?,
    };
    Ok(Arc::new(computed))
}

/// What `run` gives for each row; once for those of which it depends on the same.
fn once_or_each(
    args: &[Arc<Vector>],
    is_volatile: bool,
    rows: usize,
    mut run: impl FnMut(usize) -> Result<Value>,
) -> Result<Vector> {
    if is_volatile || rows == 0 {
        return each_row(rows, run);
    }
    let mut different = args.iter().filter(|arg| !matches!(arg.data, Data::Same(..)));
    match (different.next(), different.next()) {
        (None, _) => Ok(Vector::same(run(0)?, rows)),
        (Some(arg), None) => match shared::distinct(arg) {
            Some(texts) => {
                let of_texts = each_row(texts.first.len(), |at| run(texts.first[at] as usize))?;
                Ok(of_texts.gather(&texts.of_rows))
            }
            None => each_row(rows, run),
        },
        _ => each_row(rows, run),
    }
}

/// Row by row, over rows that have what the expression looks at.
fn by_row(expr: &Expr, chunk: &Chunk, env: &Env<'_>) -> Result<Vector> {
    let mut used = Vec::new();
    expr.for_each_column(&mut |column| used.push(column));
    let mut row = vec![Value::Null; chunk.columns.len()];
    each_row(chunk.rows, |at| {
        for column in &used {
            if let (Some(place), Some(values)) = (row.get_mut(*column), chunk.columns.get(*column)) {
                *place = values.value(at);
            }
        }
        expr.value(&row, env)
    })
}
