//! Conditions of domains, which are computed where nothing is known but the value.

use super::{Binder, Level, Scope, ScopeColumn};
use crate::catalog::Catalog;
use crate::catalog::nothing::Nothing;
use crate::error::{error, state, unsupported};
use crate::expr::Expr;
use crate::types::Type;
use crate::types::domain::{Check, Conditions, Judge};
use nestor_model::{Error, Result, Timestamp, Value};
use nestor_planner::relation::{Env, Scalar as _};
use nestor_query::env::OpContext;
use std::sync::{Arc, OnceLock};

/// What the value is called in conditions.
pub const VALUE: &str = "value";

/// Conditions, which are bound once they are asked for.
struct Kept {
    texts: Vec<String>,
    ty: Type,
    bound: OnceLock<std::result::Result<Vec<Expr>, (String, String)>>,
    op: OpContext,
}

/// Who computes conditions of values of a type.
pub fn judge(ty: &Type, checks: &[Check]) -> Judge {
    Judge(Arc::new(Kept {
        texts: checks.iter().map(|check| check.text.clone()).collect(),
        ty: ty.clone(),
        bound: OnceLock::new(),
        // What they compute is the same at all times.
        op: OpContext::new(0, Timestamp::default(), 0),
    }))
}

impl Conditions for Kept {
    fn broken(&self, value: &Value) -> Result<Option<usize>> {
        let bound = self.bound.get_or_init(|| {
            let each = self.texts.iter().map(|text| condition(&self.ty, text));
            let kept = |error: Error| (state(&error).to_owned(), error.message().to_owned());
            each.collect::<Result<Vec<_>>>().map_err(kept)
        });
        let bound = bound
            .as_ref()
            .map_err(|(state, message)| error(state, message.clone()))?;
        let env = Env {
            op: &self.op,
            params: &[],
            outer: None,
            effects: None,
            compared: None,
        };
        let row = std::slice::from_ref(value);
        for (at, condition) in bound.iter().enumerate() {
            // What is unknown breaks nothing.
            if matches!(condition.value(row, &env)?, Value::Bool(false)) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// A condition of values of a type.
///
/// Errors: those of [`condition_in`].
pub fn condition(ty: &Type, text: &str) -> Result<Expr> {
    condition_in(&Nothing, ty, text)
}

/// As [`condition`], with what a catalog knows.
///
/// Errors: those of binding it, 0A000 for subqueries.
pub fn condition_in(catalog: &dyn Catalog, ty: &Type, text: &str) -> Result<Expr> {
    let mut binder = Binder::new(catalog, Vec::new());
    binder.levels.push(Level::default());
    let scope = Scope {
        columns: vec![ScopeColumn::new(VALUE, ty.clone())],
    };
    let condition = binder.condition(&crate::parse::expression(text)?, &scope, "CHECK")?;
    let mut beyond = false;
    condition.for_each_column(&mut |index| beyond |= index > 0);
    if beyond {
        return unsupported("a subquery in CHECK");
    }
    Ok(condition)
}
