//! `$type`, `$isNumber`, `$bsonSize`, `$binarySize`, `$tsSecond`, `$tsIncrement`.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::{Result, Timestamp, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$type", 1, type_of),
    OpDef::fixed("$isNumber", 1, is_number),
    OpDef::fixed("$bsonSize", 1, bson_size),
    OpDef::fixed("$binarySize", 1, binary_size),
    OpDef::fixed("$tsSecond", 1, ts_second),
    OpDef::fixed("$tsIncrement", 1, ts_increment),
];

fn type_of<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let alias = args[0].eval_ref(env)?.as_ref().bson_type().alias();
    Ok(Val::Ref(ValueRef::String(alias)))
}

fn is_number<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let number = args[0].eval_ref(env)?.as_ref().is_number();
    Ok(Val::Ref(ValueRef::Bool(number)))
}

fn bson_size<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::Document(doc) => Ok((doc.to_raw().as_bytes().len() as i32).into()),
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            31393,
            format!(
                "$bsonSize requires a document input, found: {}",
                other.bson_type().alias()
            ),
        )),
    }
}

fn binary_size<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::String(text) => Ok((text.len() as i32).into()),
        ValueRef::Binary { bytes, .. } => Ok((bytes.len() as i32).into()),
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            51276,
            format!(
                "$binarySize requires a string or BinData argument, found: {}",
                other.bson_type().alias()
            ),
        )),
    }
}

fn timestamp<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str, code: i32) -> Result<Option<Timestamp>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::Timestamp(ts) => Ok(Some(ts)),
        other if other.is_nullish() => Ok(None),
        other => Err(error(
            code,
            format!(
                "argument to {op} must be a timestamp, but is {}",
                other.bson_type().alias()
            ),
        )),
    }
}

fn ts_second<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(timestamp(args, env, "$tsSecond", 5_687_301)?.map_or(Val::NULL, |ts| i64::from(ts.secs).into()))
}

fn ts_increment<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(timestamp(args, env, "$tsIncrement", 5_687_302)?.map_or(Val::NULL, |ts| i64::from(ts.inc).into()))
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn kinds_and_sizes() {
        check(
            r#"{"a": 1, "t": {"$timestamp": {"t": 7, "i": 3}}}"#,
            &[
                (r#"{"$type": "$a"}"#, r#""int""#),
                (r#"{"$type": "$zz"}"#, r#""missing""#),
                (r#"{"$isNumber": "$a"}"#, "true"),
                (r#"{"$bsonSize": {}}"#, "5"),
                (r#"{"$bsonSize": "$a"}"#, "error 31393"),
                (r#"{"$binarySize": "é"}"#, "2"),
                (r#"{"$tsSecond": "$t"}"#, "Long(7)"),
                (r#"{"$tsIncrement": "$t"}"#, "Long(3)"),
                (r#"{"$tsSecond": 1}"#, "error 5687301"),
            ],
        );
    }
}
