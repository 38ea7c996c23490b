//! `$cond`, `$ifNull`, `$switch`. Only the branch that is taken is evaluated.

use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::{OpDef, parse_list};
use nestor_model::{Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$cond", parse_cond),
    OpDef::custom("$ifNull", parse_if_null),
    OpDef::custom("$switch", parse_switch),
];

fn parse_cond(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = match value {
        ValueRef::Document(_) => Named {
            not_object: 17083,
            unknown: 17083,
            fields: &[("if", Some(17080)), ("then", Some(17081)), ("else", Some(17082))],
        }
        .parse(name, value, scope)?,
        _ => parse_list(name, value, 3, 3, scope)?,
    };
    Expr::call_of(name, cond, args)
}

fn cond<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let taken = if args[0].eval_ref(env)?.truthy() { 1 } else { 2 };
    args[taken].eval_ref(env)
}

fn parse_if_null(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = parse_list(name, value, 0, usize::MAX, scope)?;
    if args.len() < 2 {
        return Err(error(
            1_257_300,
            format!("$ifNull needs at least two arguments, had: {}", args.len()),
        ));
    }
    Expr::call_of(name, if_null, args)
}

fn if_null<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut value = Val::MISSING;
    for arg in args {
        value = arg.eval_ref(env)?;
        if !value.is_nullish() {
            break;
        }
    }
    Ok(value)
}

/// Arguments: the default (or absent), then case and result of each branch in turn.
fn parse_switch(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let ValueRef::Document(doc) = value else {
        return Err(error(
            40060,
            format!(
                "$switch requires an object as an argument, found: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let mut args = vec![Expr::ABSENT];
    for (field, value) in doc {
        match field {
            "branches" => {
                let ValueRef::Array(branches) = value else {
                    return Err(error(
                        40061,
                        format!(
                            "$switch expected an array for 'branches', found: {}",
                            value.bson_type().alias()
                        ),
                    ));
                };
                for branch in branches {
                    parse_branch(branch, scope, &mut args)?;
                }
            }
            "default" => args[0] = Expr::parse(value, scope)?,
            _ => return Err(error(40067, format!("$switch found an unknown argument: {field}"))),
        }
    }
    if args.len() == 1 {
        return Err(error(40068, "$switch requires at least one branch"));
    }
    prune(&mut args);
    Expr::call_of(name, switch, args.into())
}

/// Leaves out the branches whose constant case is false, and what follows one whose case is true, whose result becomes
/// the default. Errors in what is left out are not raised; one in the default that was written is.
fn prune(args: &mut Vec<Expr>) {
    if args[0].failure().is_some() {
        return;
    }
    let mut kept = vec![args[0].clone()];
    for branch in args[1..].chunks_exact(2) {
        match branch[0].constant().map(|case| case.as_ref().truthy()) {
            Some(false) => {}
            Some(true) => {
                kept[0] = branch[1].clone();
                break;
            }
            None => kept.extend_from_slice(branch),
        }
    }
    *args = kept;
}

fn parse_branch(branch: ValueRef<'_>, scope: &mut Scope, args: &mut Vec<Expr>) -> Result<()> {
    let ValueRef::Document(doc) = branch else {
        return Err(error(
            40062,
            format!(
                "$switch expected each branch to be an object, found: {}",
                branch.bson_type().alias()
            ),
        ));
    };
    let (mut case, mut then) = (None, None);
    for (field, value) in doc {
        match field {
            "case" => case = Some(Expr::parse(value, scope)?),
            "then" => then = Some(Expr::parse(value, scope)?),
            _ => {
                return Err(error(
                    40063,
                    format!("$switch found an unknown argument to a branch: {field}"),
                ));
            }
        }
    }
    args.push(case.ok_or_else(|| error(40064, "$switch requires each branch have a 'case' expression"))?);
    args.push(then.ok_or_else(|| error(40065, "$switch requires each branch have a 'then' expression"))?);
    Ok(())
}

fn switch<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    for branch in args[1..].chunks_exact(2) {
        if branch[0].eval_ref(env)?.truthy() {
            return branch[1].eval_ref(env);
        }
    }
    if args[0].is_absent() {
        return Err(error(
            40069,
            "$switch could not find a matching branch for an input, and no default was specified",
        ));
    }
    args[0].eval_ref(env)
}
