//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` on ints and longs.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::{Error, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::variadic("$bitAnd", bit_and),
    OpDef::variadic("$bitOr", bit_or),
    OpDef::variadic("$bitXor", bit_xor),
    OpDef::fixed("$bitNot", 1, bit_not),
];

fn bit_and<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    combine(args, env, "$bitAnd", -1, |a, b| a & b)
}

fn bit_or<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    combine(args, env, "$bitOr", 0, |a, b| a | b)
}

fn bit_xor<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    combine(args, env, "$bitXor", 0, |a, b| a ^ b)
}

fn wrong_type(op: &str, value: ValueRef<'_>) -> Error {
    Error::type_mismatch(format!(
        "{op} only supports int and long operands, not {}",
        value.bson_type().alias()
    ))
}

/// A long if any operand is one, else an int; null if any operand is null.
fn combine<'a>(
    args: &'a [Expr],
    env: &mut Env<'a>,
    op: &str,
    start: i64,
    operator: fn(i64, i64) -> i64,
) -> Result<Val<'a>> {
    let (mut bits, mut long, mut null) = (start, false, false);
    for arg in args {
        let value = arg.eval_ref(env)?;
        match value.as_ref() {
            ValueRef::Int32(v) => bits = operator(bits, i64::from(v)),
            ValueRef::Int64(v) => {
                bits = operator(bits, v);
                long = true;
            }
            other if other.is_nullish() => null = true,
            other => return Err(wrong_type(op, other)),
        }
    }
    Ok(match (null, long) {
        (true, _) => Val::NULL,
        (false, true) => bits.into(),
        (false, false) => (bits as i32).into(),
    })
}

fn bit_not<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::Int32(v) => Ok((!v).into()),
        ValueRef::Int64(v) => Ok((!v).into()),
        other if other.is_nullish() => Ok(Val::NULL),
        other if other.is_number() => Err(wrong_type("$bitNot", other)),
        other => Err(error(
            28765,
            format!("$bitNot only supports numeric types, not {}", other.bson_type().alias()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn bits() {
        check(
            r#"{"l": {"$numberLong": "6"}, "n": null}"#,
            &[
                (r#"{"$bitAnd": [5, 3]}"#, "1"),
                (r#"{"$bitAnd": [5, "$l"]}"#, "Long(4)"),
                (r#"{"$bitAnd": []}"#, "-1"),
                (r#"{"$bitOr": [5, 2]}"#, "7"),
                (r#"{"$bitXor": [-1, 1]}"#, "-2"),
                (r#"{"$bitXor": [1, "$n"]}"#, "null"),
                (r#"{"$bitNot": 5}"#, "-6"),
                (r#"{"$bitNot": 5.0}"#, "error 14"),
                (r#"{"$bitNot": "x"}"#, "error 28765"),
            ],
        );
    }
}
