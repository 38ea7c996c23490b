//! `$and`, `$or`, `$not`.

use crate::env::{Env, Scope, Val};
use crate::expr::parse::{OpDef, parse_list};
use crate::expr::{EvalFn, Expr};
use nestor_model::{Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$and", |name, value, scope| parse(name, value, scope, and, false)),
    OpDef::custom("$or", |name, value, scope| parse(name, value, scope, or, true)),
    OpDef::fixed("$not", 1, not),
];

/// A constant that decides the result makes it constant, wherever it stands: what stands before it is not evaluated.
fn parse(name: &'static str, value: ValueRef<'_>, scope: &mut Scope, eval: EvalFn, deciding: bool) -> Result<Expr> {
    let args = parse_list(name, value, 0, usize::MAX, scope)?;
    let decides = |arg: &Expr| arg.constant().is_some_and(|value| value.as_ref().truthy() == deciding);
    if args.iter().any(decides) && args.iter().all(|arg| arg.failure().is_none()) {
        return Ok(Expr::constant_of(deciding));
    }
    Expr::call_of(name, eval, args)
}

fn bool_val<'a>(v: bool) -> Val<'a> {
    Val::Ref(ValueRef::Bool(v))
}

fn and<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    for arg in args {
        if !arg.eval_ref(env)?.truthy() {
            return Ok(bool_val(false));
        }
    }
    Ok(bool_val(true))
}

fn or<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    for arg in args {
        if arg.eval_ref(env)?.truthy() {
            return Ok(bool_val(true));
        }
    }
    Ok(bool_val(false))
}

fn not<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(bool_val(!args[0].eval_ref(env)?.truthy()))
}
