//! `$rand`, fresh ids, `$subtype`.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::{Binary, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$rand", |name, value, _| {
        no_arguments(name, value, 3_040_501)?;
        Ok(Expr::call_unfolded(name, rand, Box::default()))
    }),
    OpDef::custom("$createObjectId", |name, value, _| {
        no_arguments(name, value, 9_081_900)?;
        Ok(Expr::call_unfolded(name, create_object_id, Box::default()))
    }),
    OpDef::custom("$createUUID", |name, value, _| {
        no_arguments(name, value, 9_081_901)?;
        Ok(Expr::call_unfolded(name, create_uuid, Box::default()))
    }),
    OpDef::custom("$currentDate", |name, value, _| {
        no_arguments(name, value, 9_081_902)?;
        Ok(Expr::call_unfolded(name, current_date, Box::default()))
    }),
    OpDef::fixed("$subtype", 1, subtype),
];

/// Accepts `{}` and `[]` only. Errors: 10065 another type, `code` for contents.
fn no_arguments(op: &str, value: ValueRef<'_>, code: i32) -> Result<()> {
    let empty = match value {
        ValueRef::Document(doc) => doc.is_empty(),
        ValueRef::Array(items) => items.is_empty(),
        other => {
            return Err(error(
                10065,
                format!("{op} expected an object, found {}", other.bson_type().alias()),
            ));
        }
    };
    if !empty {
        return Err(error(code, format!("{op} does not currently accept arguments")));
    }
    Ok(())
}

fn rand<'a>(_: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(env.op.random_f64().into())
}

fn create_object_id<'a>(_: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(env.op.object_id().into())
}

/// Version 4, variant 1.
fn create_uuid<'a>(_: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&env.op.random_u64().to_le_bytes());
    bytes[8..].copy_from_slice(&env.op.random_u64().to_le_bytes());
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Ok(Value::from(Binary {
        subtype: 4,
        bytes: bytes.as_slice().into(),
    })
    .into())
}

fn current_date<'a>(_: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(Val::Ref(ValueRef::DateTime(env.op.now_ms)))
}

fn subtype<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::Binary { subtype, .. } => Ok(i32::from(subtype).into()),
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            10_389_300,
            format!(
                "$subtype requires a BinData argument, found: {}",
                other.bson_type().alias()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::{check, shown};

    #[test]
    fn fresh_values_and_refusals() {
        check(
            "{}",
            &[
                (r#"{"$type": {"$rand": {}}}"#, r#""double""#),
                (r#"{"$type": {"$createObjectId": {}}}"#, r#""objectId""#),
                (r#"{"$subtype": {"$createUUID": {}}}"#, "4"),
                (r#"{"$rand": 1}"#, "error 10065"),
                (r#"{"$rand": [1]}"#, "error 3040501"),
            ],
        );
        assert_ne!(shown("{}", r#"[{"$rand": {}}, 0]"#), "[0, 0]");
        let pair = shown("{}", r#"{"$eq": [{"$rand": {}}, {"$rand": {}}]}"#);
        assert_eq!(pair, "false");
    }
}
