//! Calls whose last arguments are the elements of an array: `format(a, VARIADIC b)`.

use super::{TABLE, coerce};
use crate::error::{fail, no_function};
use crate::expr::function::{Function, Param};
use crate::expr::{Expr, Node};
use crate::types::cast::Context;
use crate::types::{Type, arrays};
use nestor_model::{Result, Value};
use nestor_planner::relation::Env;
use std::sync::LazyLock;

/// Its arguments are the name of the function, which of those with this name it is, the first arguments and the array.
static SPREAD: LazyLock<Function> = LazyLock::new(|| Function {
    name: "variadic call",
    args: vec![Param::Any],
    variadic: true,
    result: Param::Any,
    strict: false,
    volatile: false,
    of_session: false,
    run,
});

/// The function `name` applied to `leading` and the elements of `array`.
///
/// Errors: 42804 for what is no array, 42883 where no such function takes any number of arguments.
pub fn call(name: &str, leading: Vec<Expr>, array: Expr) -> Result<Expr> {
    let types: Vec<String> = leading.iter().chain([&array]).map(|arg| arg.ty().to_string()).collect();
    let unknown = || no_function(format!("{name}({})", types.join(", ")));
    let candidates = TABLE.get(name).ok_or_else(unknown)?;
    let fits = |function: &Function| function.variadic && function.args.len() == leading.len() + 1;
    let Some(at) = candidates.iter().position(fits) else {
        return Err(unknown());
    };
    let function = &candidates[at];
    let array = match function.args.last() {
        Some(Param::Type(ty)) => coerce(array, &ty.clone().array(), Context::Implicit)?,
        _ => array,
    };
    if array.ty().element().is_none() {
        return fail("42804", "VARIADIC argument must be an array");
    }
    let mut args = vec![
        Expr::constant(Value::String(name.into()), Type::Text),
        Expr::constant(Value::Int32(at as i32), Type::Int4),
    ];
    for (arg, param) in leading.into_iter().zip(&function.args) {
        args.push(match param {
            Param::Type(ty) => coerce(arg, ty, Context::Implicit)?,
            _ if arg.ty() == Type::Unknown => coerce(arg, &Type::Text, Context::Implicit)?,
            _ => arg,
        });
    }
    args.push(array);
    let ty = match &function.result {
        Param::Type(ty) => ty.clone(),
        _ => return Err(unknown()),
    };
    Ok(Node::Call {
        function: &SPREAD,
        args,
        ty,
    }
    .into())
}

fn run(values: &[Value], env: &Env<'_>, exprs: &[Expr]) -> Result<Value> {
    let ([Value::String(name), Value::Int32(at), leading @ .., array], Some(last)) = (values, exprs.last()) else {
        return Ok(Value::Null);
    };
    let function = TABLE
        .get(name.as_str())
        .and_then(|all| all.get(usize::try_from(*at).ok()?));
    let Some(function) = function else {
        return fail("XX000", "a function of any number of arguments is missing");
    };
    let ty = last.ty();
    let mut element = ty.element().unwrap_or(&ty);
    while let Some(deeper) = element.element() {
        element = deeper;
    }
    let (mut all, mut args) = (leading.to_vec(), exprs[2..exprs.len() - 1].to_vec());
    match array {
        Value::Array(items) => all.extend(arrays::leaves(items.clone()).iter().map(|item| item.to_value())),
        // No array is one without elements to it.
        _ if function.name == "format" => {}
        _ => return Ok(Value::Null),
    }
    args.resize(all.len(), Expr::constant(Value::Null, element.clone()));
    if function.strict && all.iter().any(|value| matches!(value, Value::Null)) {
        return Ok(Value::Null);
    }
    (function.run)(&all, env, &args)
}
