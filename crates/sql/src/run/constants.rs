//! Parts of a plan that depend on no row and are errors: as in PostgreSQL, which computes them while it plans, a statement ends with them though there
//! may be no row.

use super::indexed;
use crate::error::state;
use crate::expr::{Expr, Node};
use crate::plan::{self, Plan};
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Relation;

/// The value of an expression if it is always the same; `None` of others.
///
/// Errors: those of its functions that are about data.
fn known(expr: &Expr) -> Result<Option<Value>> {
    if let Node::Const(value, _) = expr.node() {
        return Ok(Some(value.clone()));
    }
    if !expr.is_known() || expr.is_of_session() || indexed::check(expr).is_err() {
        return Ok(None);
    }
    match indexed::value(expr, &[]) {
        Ok(value) => Ok(Some(value)),
        Err(error) if state(&error).starts_with("22") => Err(error),
        Err(_) => Ok(None),
    }
}

/// Looks at what an expression computes for some row, in the order of its parts.
fn check(expr: &Expr) -> Result<()> {
    if matches!(expr.node(), Node::Const(..) | Node::Column { .. }) {
        return Ok(());
    }
    match expr.node() {
        Node::And(parts) => until(parts, &|value| matches!(value, Value::Bool(false))),
        Node::Or(parts) => until(parts, &|value| matches!(value, Value::Bool(true))),
        Node::Coalesce(parts, _) => until(parts, &|value| !matches!(value, Value::Null)),
        Node::Case {
            operand: None,
            arms,
            otherwise,
            ..
        } => {
            for (condition, result) in arms {
                check(condition)?;
                match known(condition)? {
                    Some(Value::Bool(true)) => return check(result),
                    Some(_) => {}
                    None => check(result)?,
                }
            }
            otherwise.as_ref().map_or(Ok(()), check)
        }
        // Which of its arms are reached is not known.
        Node::Case { .. } => Ok(()),
        _ => match known(expr)? {
            Some(_) => Ok(()),
            None => expr.parts().into_iter().try_for_each(check),
        },
    }
}

/// Looks at parts up to one that decides.
fn until(parts: &[Expr], decides: &dyn Fn(&Value) -> bool) -> Result<()> {
    for part in parts {
        check(part)?;
        if known(part)?.as_ref().is_some_and(decides) {
            break;
        }
    }
    Ok(())
}

/// A plan without the queries within it that no row reaches.
fn reached(plan: Plan) -> Plan {
    match plan {
        Relation::Apply(mut apply) => {
            let is_reached = match &apply.when {
                Some(when) => matches!(known(when), Ok(None | Some(Value::Bool(true)))),
                None => true,
            };
            if !is_reached {
                apply.inner = Relation::Values {
                    rows: Vec::new(),
                    width: 0,
                };
            }
            plan::with_inputs(Relation::Apply(apply), &mut reached)
        }
        plan => plan::with_inputs(plan, &mut reached),
    }
}

/// The error that a plan ends with before it has seen a row.
pub(crate) fn broken(plan: &Plan) -> Option<Error> {
    let mut found = None;
    plan::map(&reached(plan.clone()), 0, &mut |expr, _| {
        if found.is_none() {
            found = check(expr).err();
        }
        expr.clone()
    });
    found
}
