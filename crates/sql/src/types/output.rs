//! Values as text and as PostgreSQL's binary format.

use super::range::{self, Range};
use super::record;
use super::regconfig::{Config, Dictionary};
use super::timetz::TimeTz;
use super::tsquery::TsQuery;
use super::tsvector::TsVector;
use super::{Type, bits, datetime, encoding, integer, interval::Interval, json, network, numeric, style};
use nestor_model::{Decimal128, Value, ValueRef};

/// Microseconds from 1970 to 2000, where PostgreSQL's binary timestamps begin.
pub const EPOCH_2000_US: i64 = 946_684_800_000_000;
/// The same in days.
pub const EPOCH_2000_DAYS: i32 = 10_957;

/// A value of `ty`, which is not null, as text.
pub fn text(ty: &Type, value: &Value) -> String {
    match (ty, value) {
        (Type::Domain(own), value) => text(own.bottom().0, value),
        (_, Value::String(text)) if *ty != Type::Jsonb => text.to_string(),
        (Type::Enum(own), value) => own.label(value).to_owned(),
        (Type::Composite(own), value) => own.format(value),
        (Type::Bool, Value::Bool(b)) => if *b { "t" } else { "f" }.to_owned(),
        (Type::Float4, Value::Double(n)) => float(*n),
        (_, Value::Double(n)) if *ty != Type::Jsonb => double(*n),
        (_, Value::Decimal128(n)) if *ty != Type::Jsonb => numeric::format(*n),
        (Type::Date, Value::Int32(days)) => datetime::format_date(*days),
        (Type::Time, Value::Int64(us)) => datetime::format_time(*us),
        (Type::Timestamp, Value::Int64(us)) => datetime::format_timestamp(*us, false),
        (Type::Timestamptz, Value::Int64(us)) => datetime::format_timestamp(*us, true),
        (Type::Interval, value) => Interval::of(value).format(),
        (Type::Timetz, value) => TimeTz::of(value).format(),
        (ty, value) if ty.is_address() => network::format(ty, value),
        (ty, value) if ty.is_ranges() => ranges(ty, value),
        (Type::Uuid, Value::Binary(binary)) => uuid(&binary.bytes),
        (Type::Bytea, Value::Binary(binary)) => match style::escapes() {
            true => escaped(&binary.bytes),
            false => hex(&binary.bytes),
        },
        (Type::ObjectId, Value::ObjectId(id)) => id.to_string(),
        (Type::Tid, Value::Int64(at)) => format!("({},{})", at >> 16, at & 0xffff),
        (Type::Void, _) => String::new(),
        (ty, Value::Array(items)) if ty.is_reg() => items.as_ref().get(1).map_or_else(String::new, |name| match name {
            ValueRef::String(name) => name.to_owned(),
            _ => String::new(),
        }),
        (Type::Regconfig | Type::Regdictionary, value) => match integer(value) {
            Some(0) => "-".to_owned(),
            Some(oid) => {
                let name = match ty {
                    Type::Regconfig => Config::of_oid(oid).map(|own| own.name().to_owned()),
                    _ => Dictionary::of_oid(oid).map(Dictionary::name),
                };
                name.unwrap_or_else(|_| oid.to_string())
            }
            None => String::new(),
        },
        (Type::Regtype, value) => match integer(value).and_then(|oid| u32::try_from(oid).ok()) {
            Some(0) => "-".to_owned(),
            Some(oid) => Type::of_oid(oid).map_or_else(|| oid.to_string(), |ty| ty.to_string()),
            None => String::new(),
        },
        (ty, Value::Array(items)) if ty.is_vector() => {
            let items: Vec<String> = items.iter().map(|item| text(&Type::Oid, &item.to_value())).collect();
            items.join(" ")
        }
        (Type::Array(element), Value::Array(items)) => {
            let items: Vec<Value> = items.iter().map(|item| item.to_value()).collect();
            array(element, &items)
        }
        (Type::Record, Value::Array(items)) => {
            let fields: Vec<String> = items
                .iter()
                .map(|item| match record::field(item.to_value()) {
                    (_, Value::Null) => String::new(),
                    (ty, value) => quote_field(&text(&ty, &value)),
                })
                .collect();
            format!("({})", fields.join(","))
        }
        (Type::Jsonb, value) => {
            let mut out = String::new();
            json::print(value.as_ref(), &mut out);
            out
        }
        (_, Value::Int32(n)) => n.to_string(),
        (_, Value::Int64(n)) => n.to_string(),
        (_, Value::Bool(b)) => if *b { "t" } else { "f" }.to_owned(),
        (_, value) => json::text(value.as_ref()),
    }
}

/// Ranges and multiranges.
fn ranges(ty: &Type, value: &Value) -> String {
    if let Some(element) = ty.range_element() {
        return Range::of(value).format(&element);
    }
    let element = ty.multirange_element().unwrap_or(Type::Int4);
    let parts: Vec<String> = range::parts(ty, value)
        .iter()
        .map(|part| part.format(&element))
        .collect();
    format!("{{{}}}", parts.join(","))
}

/// The type that a value has by itself.
pub fn natural(value: &Value) -> Type {
    match value {
        Value::Bool(_) => Type::Bool,
        Value::Int32(_) => Type::Int4,
        Value::Int64(_) => Type::Int8,
        Value::Double(_) => Type::Float8,
        Value::Decimal128(_) => Type::Numeric,
        Value::String(_) => Type::Text,
        Value::ObjectId(_) => Type::ObjectId,
        Value::Binary(binary) if binary.subtype == super::INTERVAL_SUBTYPE => Type::Interval,
        Value::Binary(binary) if binary.subtype == super::TIMETZ_SUBTYPE => Type::Timetz,
        Value::Binary(binary) if binary.subtype == super::INET_SUBTYPE => Type::Inet,
        Value::Binary(binary) if binary.subtype == super::MAC_SUBTYPE => Type::Macaddr,
        Value::Binary(binary) if binary.subtype == 4 => Type::Uuid,
        Value::Binary(_) => Type::Bytea,
        _ => Type::Jsonb,
    }
}

pub(super) fn quote_field(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(['"', '\\', '(', ')', ',', ' ', '\n', '\t']);
    match plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")),
    }
}

/// An array as `{a,b}`.
fn array(element: &Type, items: &[Value]) -> String {
    let items: Vec<String> = items
        .iter()
        .map(|item| match item {
            Value::Null => "NULL".to_owned(),
            Value::Array(inner) if super::arrays::nests(element) => {
                let inner: Vec<Value> = inner.iter().map(|item| item.to_value()).collect();
                let deeper = element.element().unwrap_or(element);
                array(deeper, &inner)
            }
            item => {
                let shown = text(element, item);
                let plain = !shown.is_empty()
                    && !shown.contains(['"', '\\', '{', '}', ','])
                    && !shown.contains(super::arrays::is_space)
                    && !shown.eq_ignore_ascii_case("null");
                match plain {
                    true => shown,
                    false => format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\"")),
                }
            }
        })
        .collect();
    format!("{{{}}}", items.join(","))
}

/// The shortest text that reads back as the same number, with an exponent where PostgreSQL has one.
pub fn double(n: f64) -> String {
    special(n).unwrap_or_else(|| shortest(&format!("{n:e}"), 15))
}

/// As [`double`], for single precision.
pub fn float(n: f64) -> String {
    special(n).unwrap_or_else(|| shortest(&format!("{:e}", n as f32), 6))
}

fn special(n: f64) -> Option<String> {
    match n {
        n if n.is_nan() => Some("NaN".to_owned()),
        f64::INFINITY => Some("Infinity".to_owned()),
        f64::NEG_INFINITY => Some("-Infinity".to_owned()),
        n if n == 0.0 => Some(if n.is_sign_negative() { "-0" } else { "0" }.to_owned()),
        _ => None,
    }
}

/// `scientific` is Rust's form with an exponent; numbers of more digits before the point than `digits` keep it.
fn shortest(scientific: &str, digits: i32) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let mut all: String = mantissa.chars().filter(|c| *c != '.').collect();
    if exponent < 0 {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("{sign}0.{}{all}", "0".repeat(zeros));
    }
    let before = usize::try_from(exponent + 1).unwrap_or(1);
    if all.len() <= before {
        all.push_str(&"0".repeat(before - all.len()));
        return format!("{sign}{all}");
    }
    format!("{sign}{}.{}", &all[..before], &all[before..])
}

/// Bytes as characters: those that are none by three octal digits.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7E => out.push(char::from(*byte)),
            byte => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}

/// `\x` and hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("\\x");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    out
}

/// A UUID with its dashes.
pub fn uuid(bytes: &[u8]) -> String {
    let digits = hex(bytes);
    let digits = &digits[2..];
    match digits.len() {
        32 => [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ]
        .join("-"),
        _ => digits.to_owned(),
    }
}

/// A value of `ty`, which is not null, in binary format.
pub fn binary(ty: &Type, value: &Value, out: &mut Vec<u8>) {
    let whole = || integer(value).unwrap_or(0);
    match (ty, value) {
        (Type::Domain(own), value) => binary(own.bottom().0, value, out),
        (Type::Bool, Value::Bool(b)) => out.push(u8::from(*b)),
        (Type::Char, Value::String(text)) if text.is_empty() => out.push(0),
        (Type::Int2, _) => out.extend_from_slice(&(whole() as i16).to_be_bytes()),
        (Type::Int4, _) => out.extend_from_slice(&(whole() as i32).to_be_bytes()),
        (Type::Tid, _) => out.extend_from_slice(&whole().to_be_bytes()[2..]),
        (Type::Oid, _) => out.extend_from_slice(&(whole() as u32).to_be_bytes()),
        (ty, Value::Array(items)) if ty.is_reg() => {
            let oid = items.as_ref().get(0).and_then(|oid| integer(&oid.to_value()));
            out.extend_from_slice(&(oid.unwrap_or(0) as u32).to_be_bytes());
        }
        (ty, _) if ty.is_reg() => out.extend_from_slice(&(whole() as u32).to_be_bytes()),
        (Type::Int8, _) => out.extend_from_slice(&whole().to_be_bytes()),
        (Type::Float4, Value::Double(n)) => out.extend_from_slice(&(*n as f32).to_be_bytes()),
        (Type::Float8, Value::Double(n)) => out.extend_from_slice(&n.to_be_bytes()),
        (Type::Numeric, Value::Decimal128(n)) => binary_numeric(*n, out),
        (Type::Date, Value::Int32(days)) => {
            let days = match *days {
                i32::MAX | i32::MIN => *days,
                days => days.saturating_sub(EPOCH_2000_DAYS),
            };
            out.extend_from_slice(&days.to_be_bytes());
        }
        (Type::Enum(own), value) => encoding::put(own.label(value), out),
        (Type::Composite(own), value) => own.to_binary(value, out),
        (Type::Time, _) => out.extend_from_slice(&whole().to_be_bytes()),
        (Type::Timestamp | Type::Timestamptz, _) => {
            let us = match whole() {
                us @ (i64::MAX | i64::MIN) => us,
                us => us.saturating_sub(EPOCH_2000_US),
            };
            out.extend_from_slice(&us.to_be_bytes());
        }
        (Type::Inet | Type::Cidr, value) => network::Inet::of(value).to_binary(ty, out),
        (Type::Interval | Type::Timetz | Type::Uuid | Type::Bytea | Type::Macaddr, Value::Binary(binary)) => {
            out.extend_from_slice(&binary.bytes)
        }
        (Type::Jsonb | Type::Jsonpath, value) => {
            out.push(1);
            encoding::put(&text(ty, value), out);
        }
        (Type::Bit | Type::Varbit, Value::String(bits)) => bits::to_binary(bits, out),
        // What is held was checked against the limits.
        (Type::TsVector, value) => TsVector::of(value).unwrap_or_default().to_binary(out),
        (Type::TsQuery, value) => TsQuery::of(value).unwrap_or_default().to_binary(out),
        (ty, value) if ty.is_ranges() => match (ty.range_element(), ty.multirange_element()) {
            (Some(element), _) => range::to_binary(&element, &Range::of(value), out),
            (_, element) => {
                let element = element.unwrap_or(Type::Int4);
                range::multi_to_binary(&element, &range::parts(ty, value), out);
            }
        },
        (Type::Array(element), Value::Array(items)) => binary_array((element, 1), items, out),
        (ty, Value::Array(items)) if ty.is_vector() => {
            binary_array((ty.element().unwrap_or(ty), 0), items, out);
        }
        (Type::Record, Value::Array(items)) => {
            out.extend_from_slice(&(items.len() as i32).to_be_bytes());
            for item in items.iter() {
                let (ty, item) = record::field(item.to_value());
                out.extend_from_slice(&ty.oid().to_be_bytes());
                sized(&ty, &item, out);
            }
        }
        (ty, value) => encoding::put(&text(ty, value), out),
    }
}

/// A value in binary format behind its length; -1 for null.
pub fn sized(ty: &Type, value: &Value, out: &mut Vec<u8>) {
    if matches!(value, Value::Null) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    binary(ty, value, out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn binary_array((element, first): (&Type, i32), items: &nestor_model::Array, out: &mut Vec<u8>) {
    let mut lengths = super::arrays::dimensions(&Value::Array(items.clone()), element);
    if lengths.is_empty() && first == 0 {
        // A vector has one dimension, empty or not.
        lengths.push(0);
    }
    let leaves = match lengths.len() {
        0 | 1 => items.clone(),
        _ => super::arrays::leaves(items.clone()),
    };
    let has_null = leaves.iter().any(|item| item.is_nullish());
    out.extend_from_slice(&(lengths.len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    for length in &lengths {
        out.extend_from_slice(&(*length as i32).to_be_bytes());
        out.extend_from_slice(&first.to_be_bytes());
    }
    for item in leaves.iter() {
        sized(element, &item.to_value(), out);
    }
}

/// Groups of four decimal digits, as PostgreSQL sends numbers.
fn binary_numeric(n: Decimal128, out: &mut Vec<u8>) {
    let mut head = |digits: i16, weight: i16, sign: u16, scale: i16| {
        for part in [
            digits.to_be_bytes(),
            weight.to_be_bytes(),
            sign.to_be_bytes(),
            scale.to_be_bytes(),
        ] {
            out.extend_from_slice(&part);
        }
    };
    if n.is_nan() {
        return head(0, 0, 0xC000, 0);
    }
    if n.is_infinite() {
        return head(0, 0, if n.is_negative() { 0xF000 } else { 0xD000 }, 0);
    }
    let shown = numeric::format(n);
    let (sign, shown) = match shown.strip_prefix('-') {
        Some(shown) => (0x4000, shown),
        None => (0, shown.as_str()),
    };
    let (whole, fraction) = shown.split_once('.').unwrap_or((shown, ""));
    let scale = fraction.len() as i16;
    let whole = "0".repeat((4 - whole.len() % 4) % 4) + whole;
    let fraction = fraction.to_owned() + &"0".repeat((4 - fraction.len() % 4) % 4);
    let weight = (whole.len() / 4) as i16 - 1;
    let all = whole + &fraction;
    let mut groups: Vec<i16> = all
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().fold(0, |n, digit| n * 10 + i16::from(digit - b'0')))
        .collect();
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    let weight = if groups.is_empty() { 0 } else { weight - leading as i16 };
    while groups.last() == Some(&0) {
        groups.pop();
    }
    head(groups.len() as i16, weight, sign, scale);
    for group in groups {
        out.extend_from_slice(&group.to_be_bytes());
    }
}
