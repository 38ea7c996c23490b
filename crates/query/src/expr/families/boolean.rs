//! `$and`, `$or`, `$not`.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::parse::OpDef;
use nestor_model::{Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::variadic("$and", and),
    OpDef::variadic("$or", or),
    OpDef::fixed("$not", 1, not),
];

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
