//! Values of documents as values of a type, and back.
//!
//! A document's value becomes one of its column's type when nothing is lost: whole numbers widen, a number becomes `numeric` or
//! `double precision`, anything becomes `jsonb`, and anything but documents and arrays becomes text. Any other value is an error (22P02 with
//! its path) and never silently null. What is missing, null or undefined is null. Only in columns that were declared as
//! `jsonb` a null that is there is JSON's ([`crate::catalog::Column::read`]).

use super::style::Style;
use super::{Type, datetime, integer, interval::Interval, json};
use crate::error::fail;
use nestor_model::vector::Builder;
use nestor_model::{Array, Decimal128, Result, Value, ValueRef};

/// The value of a column of type `ty` that a document holds.
///
/// Errors: 22P02 when it is of another type, 22003 when it is out of range.
pub fn read(ty: &Type, value: ValueRef<'_>, path: &str) -> Result<Value> {
    use ValueRef as V;
    Ok(match (ty, value) {
        (_, V::Missing | V::Null | V::Undefined) => Value::Null,
        (Type::Domain(own), value) => return read(own.bottom().0, value, path),
        (Type::Enum(own), V::String(label)) => own.value(label)?,
        (Type::Composite(own), value @ V::Document(_)) => own.read(value, path)?,
        (Type::Bool, V::Bool(b)) => Value::Bool(b),
        (Type::Int2 | Type::Int4, V::Int32(n)) => Value::Int32(n),
        (Type::Int8 | Type::Oid | Type::Tid | Type::Regconfig | Type::Regdictionary, V::Int32(n)) => {
            Value::Int64(i64::from(n))
        }
        (Type::Int8 | Type::Oid | Type::Tid | Type::Regconfig | Type::Regdictionary, V::Int64(n)) => Value::Int64(n),
        (Type::Int2 | Type::Int4, V::Int64(n)) => match i32::try_from(n) {
            Ok(n) => Value::Int32(n),
            Err(_) => return mismatch(ty, value, path),
        },
        (Type::Int2 | Type::Int4 | Type::Int8, V::Double(n)) if n.trunc() == n => {
            match nestor_model::number::f64_to_i64_exact(n) {
                Some(n) => return read(ty, V::Int64(n), path),
                None => return mismatch(ty, value, path),
            }
        }
        (Type::Float4 | Type::Float8, V::Int32(n)) => Value::Double(f64::from(n)),
        (Type::Float4 | Type::Float8, V::Int64(n)) => Value::Double(n as f64),
        (Type::Float4 | Type::Float8, V::Double(n)) => Value::Double(n),
        (Type::Float4 | Type::Float8, V::Decimal128(n)) => Value::Double(n.to_f64()),
        (Type::Numeric, V::Int32(n)) => Value::Decimal128(Decimal128::from_i32(n)),
        (Type::Numeric, V::Int64(n)) => Value::Decimal128(Decimal128::from_i64(n)),
        (Type::Numeric, V::Double(n)) => Value::Decimal128(Decimal128::from_f64(n)),
        (Type::Numeric, V::Decimal128(n)) => Value::Decimal128(n),
        (Type::Date, V::DateTime(ms)) => match i32::try_from(ms.div_euclid(86_400_000)) {
            Ok(days) => Value::Int32(days),
            Err(_) => return mismatch(ty, value, path),
        },
        (Type::Timestamp | Type::Timestamptz, V::DateTime(i64::MAX)) => Value::Int64(datetime::INFINITY),
        (Type::Timestamp | Type::Timestamptz, V::DateTime(i64::MIN)) => Value::Int64(datetime::NEGATIVE_INFINITY),
        (Type::Timestamp | Type::Timestamptz, V::DateTime(ms)) => match ms.checked_mul(1000) {
            Some(us) => Value::Int64(us),
            None => return mismatch(ty, value, path),
        },
        (Type::Time, V::Int64(us)) => Value::Int64(us),
        (Type::Interval, V::String(text)) => {
            let _neutral = Style::neutral();
            Interval::parse(text, "second")?.to_value()
        }
        (Type::Timetz | Type::Inet | Type::Cidr | Type::Macaddr, V::String(text)) => {
            return super::input::text(ty, text);
        }
        (ty, V::String(text)) if ty.is_ranges() => {
            let _neutral = Style::neutral();
            return super::input::text(ty, text);
        }
        (Type::TsVector | Type::TsQuery, V::String(text)) => return super::input::text(ty, text),
        (Type::Bit | Type::Varbit | Type::Jsonpath | Type::Refcursor, V::String(text)) => Value::String(text.into()),
        (Type::Uuid, V::Binary { subtype: 3 | 4, bytes }) if bytes.len() == 16 => Value::Binary(nestor_model::Binary {
            subtype: 4,
            bytes: bytes.into(),
        }),
        (Type::Bytea, V::Binary { bytes, .. }) => Value::Binary(nestor_model::Binary {
            subtype: 0,
            bytes: bytes.into(),
        }),
        (Type::ObjectId, V::ObjectId(id)) => Value::ObjectId(id),
        (Type::Json, V::String(text)) => Value::String(text.into()),
        (Type::Json, value) => {
            let mut out = String::new();
            json::print(value, &mut out);
            Value::String(out.into())
        }
        (Type::Jsonb, value) => value.to_value(),
        (Type::Array(element), V::Array(items)) => {
            let items = items.iter().map(|item| match item {
                // Arrays of several dimensions are arrays within arrays.
                V::Array(_) if !is_json(element) => read(ty, item, path),
                item => read(element, item, path),
            });
            Value::Array(Array::new(items.collect::<Result<_>>()?))
        }
        (ty, V::String(text)) if ty.is_text() => Value::String(text.into()),
        (ty, V::Document(_) | V::Array(_)) if ty.is_text() => return mismatch(ty, value, path),
        (ty, value) if ty.is_text() => Value::String(json::text(value).into()),
        _ => return mismatch(ty, value, path),
    })
}

/// Adds the value of a column of type `ty` to a vector.
///
/// Errors: those of [`read`].
pub fn read_into(ty: &Type, value: &ValueRef<'_>, path: &str, into: &mut Builder) -> Result<()> {
    use ValueRef as V;
    match (ty, value) {
        (_, V::Missing | V::Null | V::Undefined) => into.push_null(),
        (Type::Bool, V::Bool(b)) => into.push_bool(*b),
        (Type::Int2 | Type::Int4, V::Int32(n)) => into.push_int32(*n),
        (Type::Int8 | Type::Oid | Type::Tid, V::Int32(n)) => into.push_int64(i64::from(*n)),
        (Type::Int8 | Type::Oid | Type::Tid, V::Int64(n)) => into.push_int64(*n),
        (Type::Float4 | Type::Float8, V::Double(n)) => into.push_double(*n),
        (Type::Numeric, V::Decimal128(n)) => into.push_decimal(*n),
        (ty, V::String(text)) if ty.is_text() => into.push_text(text),
        (ty, value) => into.push(read(ty, *value, path)?),
    }
    Ok(())
}

fn mismatch<T>(ty: &Type, value: ValueRef<'_>, path: &str) -> Result<T> {
    let kind = value.bson_type().alias();
    fail(
        "22P02",
        format!("document has a value of type {kind} at \"{path}\", which is no {ty}"),
    )
}

fn is_json(ty: &Type) -> bool {
    matches!(ty, Type::Json | Type::Jsonb)
}

/// A value of a type as documents hold it. Timestamps are rounded to milliseconds, as `timestamp(3)` is.
pub fn write(ty: &Type, value: Value) -> Value {
    match (ty, value) {
        (Type::Domain(own), value) => write(own.bottom().0, value),
        (Type::Enum(own), value @ Value::Int32(_)) => Value::String(own.label(&value).into()),
        (Type::Date, Value::Int32(days)) => Value::DateTime(i64::from(days).saturating_mul(86_400_000)),
        (Type::Timestamp | Type::Timestamptz, Value::Int64(us)) => match us {
            datetime::INFINITY | datetime::NEGATIVE_INFINITY => Value::DateTime(us),
            us => Value::DateTime(us.saturating_add(500).div_euclid(1000)),
        },
        (Type::Interval, value @ Value::Binary(_)) => {
            let _neutral = Style::neutral();
            Value::String(Interval::of(&value).format().into())
        }
        (Type::Jsonb, Value::Undefined) => Value::Null,
        (ty, value @ (Value::Array(_) | Value::Binary(_)))
            if *ty == Type::Timetz || ty.is_address() || ty.is_ranges() =>
        {
            let _neutral = Style::neutral();
            Value::String(super::output::text(ty, &value).into())
        }
        (Type::Array(element), Value::Array(items)) => {
            let items = items.iter().map(|item| match item.to_value() {
                item @ Value::Array(_) if super::arrays::nests(element) => write(ty, item),
                item => write(element, item),
            });
            Value::Array(Array::new(items.collect()))
        }
        (Type::Numeric | Type::Float8 | Type::Float4, value) => value,
        (Type::Oid, value) => integer(&value).map_or(Value::Null, Value::Int64),
        (_, value) => value,
    }
}

/// A value of a type as `jsonb` holds it.
pub fn to_json(ty: &Type, value: Value) -> Value {
    match (ty, value) {
        (_, Value::Null) => Value::Null,
        (Type::Domain(own), value) => to_json(own.bottom().0, value),
        (Type::Composite(own), value) => own.to_json(&value),
        (Type::Json, Value::String(text)) => json::parse(&text).unwrap_or(Value::Undefined),
        (Type::Jsonb | Type::Bool, value) => value,
        (Type::Array(element), Value::Array(items)) => {
            let items = items.iter().map(|item| to_json(element, item.to_value()));
            Value::Array(Array::new(items.collect()))
        }
        (Type::Record, Value::Array(items)) => {
            let mut doc = nestor_model::Document::new();
            for (i, item) in items.iter().enumerate() {
                let (ty, item) = super::record::field(item.to_value());
                doc.push(format!("f{}", i + 1), to_json(&ty, item));
            }
            doc.into()
        }
        (ty, value) if ty.is_number() => value,
        (Type::Timestamp | Type::Timestamptz, value) => {
            let _dates = Style::with_iso_dates();
            let mut text = super::output::text(ty, &value).replacen(' ', "T", 1);
            // JSON has minutes in all offsets.
            let ends_in_hours = text.len() >= 3 && text.is_char_boundary(text.len() - 3);
            if *ty == Type::Timestamptz && ends_in_hours && text[text.len() - 3..].starts_with(['+', '-']) {
                text.push_str(":00");
            }
            Value::String(text.into())
        }
        (Type::Date, value) => {
            let _dates = Style::with_iso_dates();
            Value::String(super::output::text(ty, &value).into())
        }
        (ty, value) => Value::String(super::output::text(ty, &value).into()),
    }
}
