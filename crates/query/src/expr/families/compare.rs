//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`: the canonical order over all types; a missing value
//! is below null.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::parse::OpDef;
use nestor_model::{Result, ValueRef};
use std::cmp::Ordering;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$eq", 2, eq),
    OpDef::fixed("$ne", 2, ne),
    OpDef::fixed("$gt", 2, gt),
    OpDef::fixed("$gte", 2, gte),
    OpDef::fixed("$lt", 2, lt),
    OpDef::fixed("$lte", 2, lte),
    OpDef::fixed("$cmp", 2, cmp),
];

/// A comparison operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
}

impl Expr {
    /// Operator and operands when this is `$eq`, `$gt` and so on: what a planner may turn into index bounds.
    pub fn comparison(&self) -> Option<(Comparison, &Expr, &Expr)> {
        let (name, args) = self.call()?;
        let operator = match name {
            "$eq" => Comparison::Eq,
            "$ne" => Comparison::Ne,
            "$gt" => Comparison::Gt,
            "$gte" => Comparison::Gte,
            "$lt" => Comparison::Lt,
            "$lte" => Comparison::Lte,
            _ => return None,
        };
        match args {
            [left, right] => Some((operator, left, right)),
            _ => None,
        }
    }
}

fn order<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Ordering> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    Ok(env.compare(left.as_ref(), right.as_ref()))
}

macro_rules! comparisons {
    ($($name:ident $test:ident),*) => {$(
        fn $name<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
            Ok(Val::Ref(ValueRef::Bool(order(args, env)?.$test())))
        }
    )*};
}
comparisons!(eq is_eq, ne is_ne, gt is_gt, gte is_ge, lt is_lt, lte is_le);

fn cmp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(Val::Ref(ValueRef::Int32(order(args, env)? as i32)))
}
