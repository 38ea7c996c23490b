//! What clients ask of the server itself, and of its catalog.

use super::Row;
use crate::types::{Type, integer, output};
use nestor_model::{Binary, Value};

fn oid(value: &Value) -> Option<Type> {
    integer(value)
        .and_then(|oid| u32::try_from(oid).ok())
        .and_then(Type::of_oid)
}

fn yes() -> nestor_model::Result<Value> {
    Ok(Value::Bool(true))
}

pub(super) const ROWS: &[Row] = &[
    ("pg_typeof", "?any->regtype", |_, _, args| {
        Ok(Value::Int64(i64::from(args[0].ty().oid())))
    }),
    ("format_type", "?oid,int4->text", |a, _, _| {
        Ok(match (&a[0], oid(&a[0])) {
            (Value::Null, _) => Value::Null,
            (_, None) => Value::String("???".into()),
            (_, Some(ty)) => {
                let modifier = integer(&a[1]).and_then(|n| i32::try_from(n).ok()).unwrap_or(-1);
                Value::String(ty.format(modifier).into())
            }
        })
    }),
    ("pg_encoding_to_char", "int4->name", |_, _, _| {
        Ok(Value::String("UTF8".into()))
    }),
    ("pg_table_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_type_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_function_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_relation_is_publishable", "regclass->bool", |_, _, _| {
        Ok(Value::Bool(false))
    }),
    ("pg_get_expr", "?text,oid->text", |a, _, _| Ok(a[0].clone())),
    ("pg_get_expr", "?text,oid,bool->text", |a, _, _| Ok(a[0].clone())),
    ("obj_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("col_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("shobj_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("pg_get_constraintdef", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("pg_get_statisticsobjdef_columns", "?any...->text", |_, _, _| {
        Ok(Value::Null)
    }),
    ("pg_get_partkeydef", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("gen_random_uuid", "!->uuid", |_, env, _| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&env.op.random_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&env.op.random_u64().to_be_bytes());
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        Ok(Value::Binary(Binary {
            subtype: 4,
            bytes: bytes.as_slice().into(),
        }))
    }),
    // What it means the query decides that groups (`bind/select.rs`); elsewhere there are no groups.
    ("grouping", "?any...->int4", |_, _, _| {
        crate::error::fail("42803", "GROUPING needs a GROUP BY")
    }),
    ("num_nulls", "?any...->int4", |a, _, _| {
        Ok(Value::Int32(
            a.iter().filter(|v| matches!(v, Value::Null)).count() as i32
        ))
    }),
    ("num_nonnulls", "?any...->int4", |a, _, _| {
        Ok(Value::Int32(
            a.iter().filter(|v| !matches!(v, Value::Null)).count() as i32
        ))
    }),
    ("to_number", "text,text->numeric", |a, _, _| {
        let kept: String = a[0]
            .as_str()
            .unwrap_or_default()
            .chars()
            .filter(|c| c.is_ascii_digit() || "+-.".contains(*c))
            .collect();
        crate::types::numeric::parse(&kept).map(Value::Decimal128)
    }),
    ("pg_column_size", "any->int4", |a, _, args| {
        Ok(Value::Int32(output::text(&args[0].ty(), &a[0]).len() as i32))
    }),
];
