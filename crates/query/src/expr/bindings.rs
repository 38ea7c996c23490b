//! `let` of a command: constants with names.

use super::{Deps, Expr};
use crate::env::{OpContext, Scope, check_user_variable};
use nestor_model::{DocRef, Error, Result};

/// Evaluates the variables of a command's `let` into [`OpContext::vars`] and returns the scope that names them.
/// A value may refer to the variables before it, but to no field and to no clock.
///
/// Errors: 9 a bad name, 17276 an unknown variable, 51144 `$$NOW` or `$$CLUSTER_TIME`, 4890500 a field.
pub fn bind_variables(variables: DocRef<'_>, op: &mut OpContext) -> Result<Scope> {
    let mut names = Vec::new();
    for (name, value) in variables {
        if matches!(name, "NOW" | "CLUSTER_TIME") {
            return Err(Error::location(
                4_738_901,
                format!("the system variable '{name}' cannot be set by a command"),
            ));
        }
        check_user_variable(name)?;
        let scope = Scope::with_vars(names.iter().copied()).with_collator(op.collator.clone());
        let expr = Expr::parse(value, &mut scope.without_clock())?;
        let mut deps = Deps::default();
        expr.dependencies(&mut deps);
        if !deps.is_independent_of_document() {
            return Err(Error::location(
                4_890_500,
                "command let expression tried to access a field, but this is not allowed",
            ));
        }
        let value = expr.eval_without_document(op)?;
        op.vars.push(value);
        names.push(name);
    }
    Ok(Scope::with_vars(names).with_collator(op.collator.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    #[test]
    fn variables_see_those_before_them() {
        let bind = |text: &str| {
            let doc = extjson::parse_document(text).expect("valid JSON");
            let mut op = OpContext::default();
            match bind_variables(doc.as_ref(), &mut op) {
                Ok(_) => format!("{:?}", op.vars),
                Err(e) => format!("error {}", e.code().number()),
            }
        };
        for (variables, expected) in [
            (r#"{"a": 1, "b": {"$add": ["$$a", 1]}}"#, "[1, 2]"),
            (r#"{"a": "$$b", "b": 1}"#, "error 17276"),
            (r#"{"a": "$x"}"#, "error 4890500"),
            (r#"{"a": "$$ROOT"}"#, "error 4890500"),
            (r#"{"a": "$$NOW"}"#, "error 51144"),
            (r#"{"A": 1}"#, "error 9"),
        ] {
            assert_eq!(bind(variables), expected, "{variables}");
        }
    }
}
