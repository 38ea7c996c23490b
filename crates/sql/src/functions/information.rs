//! The functions by which PostgreSQL's `information_schema` tells what a type and its modifier say: clients ask them for what is no column.

use super::Row;
use super::args::int;
use crate::types::{Type, numeric_parts};
use nestor_model::{Result, Value};

fn number(n: impl Into<i64>) -> Result<Value> {
    Ok(i32::try_from(n.into()).map_or(Value::Null, Value::Int32))
}

/// The type of an OID, and its modifier if that is one.
fn of(args: &[Value]) -> (Option<Type>, Option<i64>) {
    let ty = u32::try_from(int(&args[0])).ok().and_then(Type::of_oid);
    (ty, Some(int(&args[1])).filter(|modifier| *modifier >= 0))
}

/// The characters, or bits, that values of a type have at most.
fn length(args: &[Value]) -> Option<i64> {
    match of(args) {
        (Some(Type::Varchar | Type::Bpchar), Some(modifier)) => Some(modifier - 4),
        (Some(Type::Bit | Type::Varbit), Some(modifier)) => Some(modifier),
        _ => None,
    }
}

fn precision(args: &[Value]) -> Option<(i64, i64, i64)> {
    let (ty, modifier) = of(args);
    Some(match ty? {
        Type::Int2 => (16, 2, 0),
        Type::Int4 => (32, 2, 0),
        Type::Int8 => (64, 2, 0),
        Type::Numeric => {
            let (digits, scale) = numeric_parts(i32::try_from(modifier?).ok()?)?;
            (i64::from(digits), 10, i64::from(scale))
        }
        _ => return None,
    })
}

fn or_null(n: Option<i64>) -> Result<Value> {
    n.map_or(Ok(Value::Null), number)
}

pub(super) const ROWS: &[Row] = &[
    ("_pg_char_max_length", "oid,int4->int4", |a, _, _| or_null(length(a))),
    ("_pg_char_octet_length", "oid,int4->int4", |a, _, _| match of(a) {
        (Some(Type::Text | Type::Varchar | Type::Bpchar), None) => number(1 << 30),
        (Some(Type::Varchar | Type::Bpchar), _) => or_null(length(a).map(|length| length * 4)),
        _ => Ok(Value::Null),
    }),
    ("_pg_numeric_precision", "oid,int4->int4", |a, _, _| match of(a).0 {
        Some(Type::Float4) => number(24),
        Some(Type::Float8) => number(53),
        _ => or_null(precision(a).map(|(digits, ..)| digits)),
    }),
    ("_pg_numeric_precision_radix", "oid,int4->int4", |a, _, _| {
        match of(a).0 {
            Some(Type::Float4 | Type::Float8) => number(2),
            Some(Type::Numeric) => number(10),
            _ => or_null(precision(a).map(|(_, radix, _)| radix)),
        }
    }),
    ("_pg_numeric_scale", "oid,int4->int4", |a, _, _| {
        or_null(precision(a).map(|(.., scale)| scale))
    }),
    ("_pg_datetime_precision", "oid,int4->int4", |a, _, _| match of(a) {
        (Some(Type::Date), _) => number(0),
        (Some(Type::Time | Type::Timetz | Type::Timestamp | Type::Timestamptz), modifier) => {
            number(modifier.unwrap_or(6))
        }
        (Some(Type::Interval), modifier) => {
            let digits = modifier.map(|modifier| modifier & 0xFFFF);
            number(digits.filter(|digits| *digits != 0xFFFF).unwrap_or(6))
        }
        _ => Ok(Value::Null),
    }),
];
