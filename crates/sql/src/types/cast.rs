//! Casts: which there are, and what they do.

use super::arrays::nests;
use super::interval::{DAY_US, Interval};
use super::timetz::TimeTz;
use super::{
    Type, bits, compare, datetime, input, integer, json, network, numeric, numeric_parts, output, range, stored, zone,
};
use crate::error::{error, fail};
use nestor_model::{Array, Decimal128, Result, Value};

/// How far a cast may go unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    /// Anywhere in expressions.
    Implicit,
    /// Where a value is put into a column.
    Assignment,
    /// Where it is written down.
    Explicit,
}

fn rank(ty: &Type) -> Option<u8> {
    Some(match ty {
        Type::Int2 => 1,
        Type::Int4 => 2,
        Type::Int8 => 3,
        Type::Numeric => 4,
        Type::Float4 => 5,
        Type::Float8 => 6,
        _ => return None,
    })
}

/// Whether there is a cast that may be used in `context`.
pub fn exists(from: &Type, to: &Type, context: Context) -> bool {
    if from == to || *from == Type::Unknown {
        return true;
    }
    let needed = match (from, to) {
        (Type::Domain(own), to) => return exists(own.bottom().0, to, context),
        (from, Type::Domain(own)) => return exists(from, own.bottom().0, context),
        (Type::Array(a), Type::Array(b)) => return exists(a, b, context),
        (Type::Record, Type::Composite(_)) | (Type::Composite(_), Type::Record) => Context::Implicit,
        (from, Type::Array(b)) if from.is_vector() => return from.element().is_some_and(|a| exists(a, b, context)),
        (from, to) if rank(from).is_some() && rank(to).is_some() => match rank(from) < rank(to) {
            true => Context::Implicit,
            false => Context::Assignment,
        },
        (Type::Int2 | Type::Int4 | Type::Int8, to) if *to == Type::Oid || to.is_reg() => Context::Implicit,
        (from, Type::Int8) if *from == Type::Oid || from.is_reg() => Context::Assignment,
        (from, Type::Int4) if *from == Type::Oid || from.is_reg() => Context::Assignment,
        (from, to) if (*from == Type::Oid || from.is_reg()) && (*to == Type::Oid || to.is_reg()) => Context::Implicit,
        (Type::Text | Type::Varchar, Type::Regclass) => Context::Implicit,
        (Type::Name | Type::Varchar | Type::Bpchar, Type::Text)
        | (Type::Text | Type::Varchar | Type::Bpchar, Type::Varchar | Type::Bpchar) => Context::Implicit,
        (Type::Char, Type::Text) => Context::Implicit,
        (Type::Citext, Type::Text | Type::Varchar) => Context::Implicit,
        (Type::Text | Type::Varchar | Type::Bpchar, Type::Name | Type::Char) => Context::Assignment,
        (Type::Name, Type::Varchar | Type::Bpchar) => Context::Assignment,
        (Type::Date, Type::Timestamp | Type::Timestamptz) | (Type::Timestamp, Type::Timestamptz) => Context::Implicit,
        (Type::Timestamptz | Type::Timestamp, Type::Date | Type::Timestamp | Type::Time) => Context::Assignment,
        (Type::Time, Type::Interval | Type::Timetz) => Context::Implicit,
        (Type::Timetz, Type::Time) | (Type::Timestamptz, Type::Timetz) => Context::Assignment,
        (Type::Bit, Type::Varbit) | (Type::Varbit, Type::Bit) => Context::Implicit,
        (Type::Cidr, Type::Inet) => Context::Implicit,
        (Type::Inet, Type::Cidr) => Context::Assignment,
        (Type::Int4 | Type::Int8, Type::Bit) | (Type::Bit, Type::Int4 | Type::Int8) => Context::Explicit,
        (from, to) if from.range_element().is_some() && from.range_element() == to.multirange_element() => {
            Context::Explicit
        }
        (Type::Interval, Type::Time) => Context::Assignment,
        (Type::Json, Type::Jsonb) | (Type::Jsonb, Type::Json) => Context::Assignment,
        (Type::Text, Type::ObjectId) => Context::Assignment,
        // All types print.
        (_, Type::Text | Type::Varchar | Type::Bpchar | Type::Citext | Type::Name) => Context::Assignment,
        (from, _) if from.is_text() => Context::Explicit,
        (Type::Bool, Type::Int4) | (Type::Int4, Type::Bool) => Context::Explicit,
        (Type::Jsonb, to) if to.is_number() || *to == Type::Bool => Context::Explicit,
        // What documents hold and no column says.
        (Type::Jsonb, Type::ObjectId | Type::Timestamptz | Type::Timestamp | Type::Date | Type::Uuid | Type::Bytea) => {
            Context::Explicit
        }
        (Type::Jsonb, Type::Array(_)) => Context::Explicit,
        (Type::Bytea, Type::Uuid) | (Type::Uuid, Type::Bytea) => Context::Explicit,
        _ => return false,
    };
    needed <= context
}

/// The value as one of `to`, fitted to its modifier (-1 for none).
///
/// Errors: 22003, 22008, 22P02, 22001 when the value has no place there; 23502, 23514 of domains.
pub fn cast(value: Value, from: &Type, to: &Type, modifier: i32, explicit: bool) -> Result<Value> {
    if let Type::Domain(own) = to {
        let (base, modifier) = own.bottom();
        let from = match from {
            Type::Domain(from) => from.bottom().0,
            from => from,
        };
        let value = cast(value, from, base, modifier, explicit)?;
        own.check(&value)?;
        return Ok(value);
    }
    if matches!(value, Value::Null) {
        return Ok(value);
    }
    // The last bits of a number are those that count.
    if let (Type::Bit, Some(n), true) = (to, integer(&value), modifier > 0) {
        let width = if *from == Type::Int8 { 64 } else { 32 };
        return Ok(bits::of_integer(n, width, usize::try_from(modifier).unwrap_or(width)));
    }
    let value = match (&value, to) {
        (Value::String(text), Type::Interval) if modifier >= 0 => {
            Interval::parse(text, super::interval::unit_of(modifier))?.to_value()
        }
        (Value::Array(items), Type::Composite(own)) if *from == Type::Record => own.of_row(items, explicit)?,
        _ if from == to && !to.is_constrained() => value,
        _ => convert(value, from, to)?,
    };
    if modifier < 0 {
        return Ok(value);
    }
    fit(value, to, modifier, explicit)
}

/// A value within the bounds that a modifier sets.
fn fit(value: Value, ty: &Type, modifier: i32, explicit: bool) -> Result<Value> {
    match (ty, value) {
        (Type::Varchar | Type::Bpchar, Value::String(text)) => {
            let most = usize::try_from(modifier - 4).unwrap_or(0);
            let count = text.chars().count();
            if count <= most {
                return Ok(match ty {
                    Type::Bpchar if count < most => {
                        Value::String((text.to_string() + &" ".repeat(most - count)).into())
                    }
                    _ => Value::String(text),
                });
            }
            let cut: String = text.chars().take(most).collect();
            let rest_is_blank = text.chars().skip(most).all(|c| c == ' ');
            match explicit || rest_is_blank {
                true => Ok(Value::String(cut.into())),
                false => fail("22001", format!("value too long for type {}", ty.format(modifier))),
            }
        }
        (Type::Interval, value @ Value::Binary(_)) => Ok(Interval::of(&value).limited(modifier).to_value()),
        (Type::Bit | Type::Varbit, Value::String(own)) => {
            bits::fit(&own, ty, usize::try_from(modifier).unwrap_or(0), explicit)
        }
        (Type::Time | Type::Timestamp | Type::Timestamptz, Value::Int64(us)) => {
            Ok(Value::Int64(datetime::rounded(us, modifier)))
        }
        (Type::Timetz, value @ Value::Binary(_)) => {
            let time = TimeTz::of(&value);
            let us = datetime::rounded(time.us, modifier);
            Ok(TimeTz { us, ..time }.to_value())
        }
        (Type::Numeric, Value::Decimal128(n)) => match numeric_parts(modifier) {
            Some((precision, scale)) => numeric::fit(n, precision, scale).map(Value::Decimal128),
            None => Ok(Value::Decimal128(n)),
        },
        (Type::Array(element), Value::Array(items)) => {
            let items = items.iter().map(|item| match item.to_value() {
                Value::Null => Ok(Value::Null),
                item @ Value::Array(_) if nests(element) => fit(item, ty, modifier, explicit),
                item => fit(item, element, modifier, explicit),
            });
            Ok(Value::Array(Array::new(items.collect::<Result<_>>()?)))
        }
        (_, value) => Ok(value),
    }
}

fn out_of_range(ty: &Type) -> nestor_model::Error {
    error("22003", format!("{ty} out of range"))
}

/// A whole number as one of an integer type. Errors: 22003.
pub fn whole(n: i64, ty: &Type) -> Result<Value> {
    match ty {
        Type::Int2 => i16::try_from(n)
            .map(|n| Value::Int32(i32::from(n)))
            .map_err(|_| out_of_range(ty)),
        Type::Int4 => i32::try_from(n).map(Value::Int32).map_err(|_| out_of_range(ty)),
        ty if *ty == Type::Oid || ty.is_reg() => {
            // A negative integer is the OID with its bits.
            match u32::try_from(n).or_else(|_| i32::try_from(n).map(|n| n as u32)) {
                Ok(n) => Ok(Value::Int64(i64::from(n))),
                Err(_) => Err(out_of_range(ty)),
            }
        }
        _ => Ok(Value::Int64(n)),
    }
}

fn convert(value: Value, from: &Type, to: &Type) -> Result<Value> {
    if let Type::Domain(from) = from {
        return cast(value, from.bottom().0, to, -1, true);
    }
    match (from, to) {
        (a, Type::Array(b)) if a.is_vector() || matches!(a, Type::Array(_)) => {
            let a = a.element().unwrap_or(&Type::Unknown);
            let Value::Array(items) = value else { return Ok(value) };
            let items = items.iter().map(|item| match item.to_value() {
                item @ Value::Array(_) if nests(a) => convert(item, from, to),
                item => cast(item, a, b, -1, true),
            });
            return Ok(Value::Array(Array::new(items.collect::<Result<_>>()?)));
        }
        (Type::Unknown, to) => {
            return match value {
                Value::String(text) => input::text(to, &text),
                value => Ok(value),
            };
        }
        (Type::Bpchar, to) if to.is_text() => {
            return Ok(match value {
                Value::String(text) => Value::String(text.trim_end_matches(' ').into()),
                value => value,
            });
        }
        (Type::Bool, to) if to.is_text() => {
            return Ok(Value::String(
                if matches!(value, Value::Bool(true)) {
                    "true"
                } else {
                    "false"
                }
                .into(),
            ));
        }
        // Texts of addresses say how many bits are the network's, which those that are shown do only where they are not all.
        (Type::Inet | Type::Cidr, to) if to.is_text() => {
            return Ok(Value::String(network::Inet::of(&value).format_whole().into()));
        }
        (from, to) if from.is_text() => {
            return match value {
                Value::String(text) => input::text(to, &text),
                value => Ok(value),
            };
        }
        (_, to) if to.is_text() => {
            let text = output::text(from, &value);
            return input::text(to, &text);
        }
        _ => {}
    }
    if let (true, Some(n)) = (
        from.is_integer() || *from == Type::Oid || from.is_reg(),
        integer(&value),
    ) {
        match to {
            Type::Float4 => return Ok(Value::Double(f64::from(n as f32))),
            Type::Float8 => return Ok(Value::Double(n as f64)),
            Type::Numeric => return Ok(Value::Decimal128(Decimal128::from_i64(n))),
            Type::Bool => return Ok(Value::Bool(n != 0)),
            Type::Bit => {
                let width = if *from == Type::Int8 { 64 } else { 32 };
                return Ok(bits::of_integer(n, width, width));
            }
            to => return whole(n, to),
        }
    }
    match (from, to, value) {
        (Type::Composite(own), Type::Record, value) => Ok(own.to_row(&value)),
        (Type::Float4 | Type::Float8, to, Value::Double(n)) if to.is_integer() => {
            // Halves go to the even neighbour.
            let rounded = n.round_ties_even();
            match (i64::MIN as f64..-(i64::MIN as f64)).contains(&rounded) {
                true => whole(rounded as i64, to),
                false => Err(out_of_range(to)),
            }
        }
        (_, Type::Float4, Value::Double(n)) => {
            let narrow = n as f32;
            match (narrow.is_infinite() && n.is_finite()) || (narrow == 0.0 && n != 0.0) {
                true => Err(out_of_range(to)),
                false => Ok(Value::Double(f64::from(narrow))),
            }
        }
        (_, Type::Float8, Value::Double(n)) => Ok(Value::Double(n)),
        (Type::Float4, Type::Numeric, Value::Double(n)) if n.is_finite() => {
            // 6 digits are those that are sure.
            let rounded: f64 = format!("{n:.5e}").parse().unwrap_or(n);
            numeric::parse(&output::double(rounded)).map(Value::Decimal128)
        }
        (_, Type::Numeric, Value::Double(n)) if !n.is_finite() => {
            numeric::parse(&output::double(n)).map(Value::Decimal128)
        }
        // 15 digits are those that are sure.
        (_, Type::Numeric, Value::Double(n)) => {
            let rounded: f64 = format!("{n:.14e}").parse().unwrap_or(n);
            numeric::parse(&output::double(rounded)).map(Value::Decimal128)
        }
        (Type::Numeric, to, Value::Decimal128(n)) if to.is_integer() => {
            if !n.is_finite() {
                return fail("0A000", format!("cannot convert {} to {to}", numeric::format(n)));
            }
            match numeric::round(n, 0)?.to_i64_exact() {
                Some(n) => whole(n, to),
                None => Err(out_of_range(to)),
            }
        }
        (Type::Numeric, Type::Float8, Value::Decimal128(n)) => Ok(Value::Double(n.to_f64())),
        (Type::Numeric, Type::Float4, Value::Decimal128(n)) => Ok(Value::Double(f64::from(n.to_f64() as f32))),
        (Type::Bool, to, Value::Bool(b)) if to.is_integer() => whole(i64::from(b), to),
        (Type::Date, Type::Timestamptz, value @ Value::Int32(_)) => match convert(value, from, &Type::Timestamp)? {
            Value::Int64(us) => Ok(Value::Int64(zone::instant(us))),
            other => Ok(other),
        },
        (Type::Timestamptz, Type::Date | Type::Timestamp | Type::Time, Value::Int64(us)) => {
            match (to, Value::Int64(zone::local(us))) {
                (Type::Timestamp, local) => Ok(local),
                (to, local) => convert(local, &Type::Timestamp, to),
            }
        }
        (Type::Timestamp, Type::Timestamptz, Value::Int64(us)) => Ok(Value::Int64(zone::instant(us))),
        (Type::Date, Type::Timestamp, Value::Int32(days)) => match days {
            i32::MAX => Ok(Value::Int64(datetime::INFINITY)),
            i32::MIN => Ok(Value::Int64(datetime::NEGATIVE_INFINITY)),
            days => i64::from(days)
                .checked_mul(DAY_US)
                .map(Value::Int64)
                .ok_or_else(|| datetime::out_of_range("timestamp")),
        },
        (Type::Timestamp, Type::Date, Value::Int64(us)) => match us {
            datetime::INFINITY => Ok(Value::Int32(i32::MAX)),
            datetime::NEGATIVE_INFINITY => Ok(Value::Int32(i32::MIN)),
            us => i32::try_from(us.div_euclid(DAY_US))
                .map(Value::Int32)
                .map_err(|_| datetime::out_of_range("date")),
        },
        (Type::Timestamp, Type::Time, Value::Int64(us)) => Ok(Value::Int64(us.rem_euclid(DAY_US))),
        (Type::Bit, to, Value::String(own)) if to.is_integer() => {
            let width = if *to == Type::Int8 { 64 } else { 32 };
            bits::to_integer(&own, width).and_then(|n| whole(n, to))
        }
        (from, to, value) if from.range_element().is_some() && to.multirange_element().is_some() => {
            Ok(range::multi(range::parts(from, &value)))
        }
        (Type::Time, Type::Timetz, Value::Int64(us)) => {
            let east = zone::now_offset();
            Ok(TimeTz { us, east }.to_value())
        }
        (Type::Inet, Type::Cidr, value) => Ok(network::Inet::of(&value).network().to_value()),
        (Type::Timetz, Type::Time, value) => Ok(Value::Int64(TimeTz::of(&value).us)),
        (Type::Timestamptz, Type::Timetz, Value::Int64(us)) => Ok(TimeTz {
            us: zone::local(us).rem_euclid(DAY_US),
            east: zone::current_offset(us),
        }
        .to_value()),
        (Type::Time, Type::Interval, Value::Int64(us)) => Ok(Interval {
            us,
            ..Interval::default()
        }
        .to_value()),
        (Type::Interval, Type::Time, value) => Ok(Value::Int64(Interval::of(&value).us.rem_euclid(DAY_US))),
        (Type::Json, Type::Jsonb, Value::String(text)) => json::parse(&text),
        (Type::Jsonb, Type::Json, value) => Ok(Value::String(output::text(&Type::Jsonb, &value).into())),
        (Type::Jsonb, to, value) => from_json(value, to),
        (_, _, value) => Ok(value),
    }
}

fn from_json(value: Value, to: &Type) -> Result<Value> {
    let natural = match value {
        Value::Undefined => return Ok(Value::Null),
        ref value => output::natural(value),
    };
    match (&natural, to) {
        (from, to) if from.is_number() && to.is_number() => convert(value, from, to),
        (Type::Bool, Type::Bool) => Ok(value),
        (Type::Bool, _) | (_, Type::Bool) => fail("22023", format!("cannot cast jsonb value to type {to}")),
        _ => match stored::read(to, value.as_ref(), "jsonb") {
            Ok(value) => Ok(value),
            Err(_) => fail("22023", format!("cannot cast jsonb value to type {to}")),
        },
    }
}

/// The type that values of all these types become where one has to be found (UNION, CASE, VALUES, ARRAY); `None` when there is none.
pub fn common<'t>(types: impl IntoIterator<Item = &'t Type>) -> Option<Type> {
    let mut found: Option<Type> = None;
    for ty in types {
        found = Some(match found {
            None => ty.clone(),
            Some(found) if found == *ty || *ty == Type::Unknown => found,
            Some(Type::Unknown) => ty.clone(),
            Some(found) if exists(ty, &found, Context::Implicit) => found,
            Some(found) if exists(&found, ty, Context::Implicit) => ty.clone(),
            // Kinds of text that are not cast to each other unasked are compared as text.
            Some(found) if found.is_text() && ty.is_text() => Type::Text,
            Some(_) => return None,
        });
    }
    Some(match found {
        None | Some(Type::Unknown) => Type::Text,
        Some(found) => found,
    })
}

/// Whether two values of a type are equal.
pub fn equal(ty: &Type, a: &Value, b: &Value) -> bool {
    compare::compare(ty, a, b).is_eq()
}
