//! What `information_schema` says of types.

use super::{Row, text};
use crate::catalog::Column;
use crate::types::{Type, numeric_parts};
use nestor_model::Value;

/// Truth as the standard's views have it.
pub(super) fn truth(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// What is said of the type of a column, or of the one behind its domain.
pub(super) fn described(db: &str, column: &Column) -> Row {
    // Arrays of a domain are none of it.
    let domain = column.domain.as_ref().filter(|ty| matches!(ty, Type::Domain(_)));
    let (ty, modifier) = match domain {
        Some(Type::Domain(own)) => (&own.base, own.modifier),
        _ => (column.declared_type(), column.modifier),
    };
    let shown = match ty {
        Type::Array(_) => "ARRAY".to_owned(),
        ty if ty.made().is_some() || *ty == Type::Citext => "USER-DEFINED".to_owned(),
        ty => ty.to_string(),
    };
    let mut row: Row = vec![
        ("data_type", text(shown)),
        ("udt_catalog", text(db)),
        ("udt_schema", text(ty.schema())),
        ("udt_name", text(ty.name())),
        ("numeric_precision", Value::Null),
        ("character_maximum_length", Value::Null),
        ("character_octet_length", Value::Null),
        ("numeric_precision_radix", Value::Null),
        ("numeric_scale", Value::Null),
        ("datetime_precision", Value::Null),
        ("interval_precision", Value::Null),
        ("maximum_cardinality", Value::Null),
    ];
    if let Some(own) = domain {
        row.push(("domain_catalog", text(db)));
        row.push(("domain_schema", text(own.schema())));
        row.push(("domain_name", text(own.name())));
    }
    let mut set = |name: &'static str, value: i32| {
        row.retain(|(own, _)| *own != name);
        row.push((name, Value::Int32(value)));
    };
    match *ty {
        Type::Int2 | Type::Int4 | Type::Int8 => {
            set("numeric_precision", i32::from(ty.length()) * 8);
            set("numeric_precision_radix", 2);
            set("numeric_scale", 0);
        }
        Type::Float4 | Type::Float8 => {
            set("numeric_precision", if *ty == Type::Float4 { 24 } else { 53 });
            set("numeric_precision_radix", 2);
        }
        Type::Numeric => {
            set("numeric_precision_radix", 10);
            if let Some((precision, scale)) = numeric_parts(modifier) {
                set("numeric_precision", precision as i32);
                set("numeric_scale", scale as i32);
            }
        }
        Type::Text => set("character_octet_length", 1 << 30),
        Type::Varchar | Type::Bpchar if modifier >= 4 => {
            set("character_maximum_length", modifier - 4);
            set("character_octet_length", (modifier - 4) * 4);
        }
        Type::Date => set("datetime_precision", 0),
        Type::Time | Type::Timetz | Type::Timestamp | Type::Timestamptz if modifier >= 0 => {
            set("datetime_precision", modifier);
        }
        Type::Time | Type::Timetz | Type::Timestamp | Type::Timestamptz | Type::Interval => {
            set("datetime_precision", 6)
        }
        _ => {}
    }
    row
}
