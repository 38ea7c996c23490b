//! `$convert` and its short forms `$toInt`, `$toString` and so on.
//!
//! [`to_type`] does the work for a value that is there; null handling, `onError` and the parsing of the target are
//! around it. What cannot be converted is error 241.

use super::binary::{self, Format};
use super::date::{free_text, object_id_ms};
use super::ejson::plain_json;
use super::similarity;
use super::string::check_size;
use super::text::double_shortest;
use crate::env::{Env, RESULT_BYTES_MAX, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::{OpDef, parse_list};
use crate::types::TYPES;
use nestor_model::date::format_iso;
use nestor_model::number::whole_number;
use nestor_model::{Binary, BsonType, Decimal128, Error, ErrorCode, ObjectId, Result, Value, ValueRef};

/// Dates that have a text, in milliseconds: the years 0 to 9999.
const YEARS_WITH_TEXT: std::ops::Range<i64> = -62_167_219_200_000..253_402_300_800_000;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$convert", parse_convert),
    OpDef::custom("$toBool", parse_short),
    OpDef::custom("$toDate", parse_short),
    OpDef::custom("$toDecimal", parse_short),
    OpDef::custom("$toDouble", parse_short),
    OpDef::custom("$toInt", parse_short),
    OpDef::custom("$toLong", parse_short),
    OpDef::custom("$toObjectId", parse_short),
    OpDef::custom("$toString", parse_short),
    OpDef::custom("$toUUID", parse_short),
    OpDef::custom("$toArray", parse_short),
    OpDef::custom("$toObject", parse_short),
];

/// The type to convert to, and its options.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub kind: BsonType,
    /// Subtype of binary results.
    pub subtype: u8,
    pub format: Option<Format>,
    pub big_endian: bool,
    /// Base of a number in text.
    pub base: Option<u32>,
}

impl Target {
    const fn of(kind: BsonType) -> Self {
        Self {
            kind,
            subtype: 0,
            format: None,
            big_endian: false,
            base: None,
        }
    }
}

fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, message)
}

fn parse_short(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args: Box<[Expr]> = match value {
        ValueRef::Array(items) if items.len() != 1 => {
            return Err(error(
                50723,
                format!("{name} requires a single argument, got {}", items.len()),
            ));
        }
        _ => parse_list(name, value, 1, 1, scope)?,
    };
    macro_rules! short {
        ($($operator:literal => $target:expr),* $(,)?) => {
            match name {
                $($operator => |args, env| convert_one(args, env, $target),)*
                _ => |_, _| Ok(Val::NULL),
            }
        };
    }
    let eval: crate::expr::EvalFn = short! {
        "$toBool" => Target::of(BsonType::Bool),
        "$toDate" => Target::of(BsonType::Date),
        "$toDecimal" => Target::of(BsonType::Decimal),
        "$toDouble" => Target::of(BsonType::Double),
        "$toInt" => Target::of(BsonType::Int),
        "$toLong" => Target::of(BsonType::Long),
        "$toObjectId" => Target::of(BsonType::ObjectId),
        "$toString" => Target { format: Some(Format::Auto), ..Target::of(BsonType::String) },
        "$toUUID" => Target { subtype: 4, format: Some(Format::Uuid), ..Target::of(BsonType::BinData) },
        "$toArray" => Target::of(BsonType::Array),
        "$toObject" => Target::of(BsonType::Object),
    };
    Expr::call_of(name, eval, args)
}

fn convert_one<'a>(args: &'a [Expr], env: &mut Env<'a>, target: Target) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    if value.is_nullish() {
        return Ok(Val::NULL);
    }
    if value.as_ref().bson_type() == target.kind && target.kind != BsonType::BinData {
        return Ok(value);
    }
    to_type(value.as_ref(), &target).map(Val::Owned)
}

/// Arguments: input, target type, target subtype, on error, on null, format, byte order, base.
fn parse_convert(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let named = Named {
        not_object: 9,
        unknown: 9,
        fields: &[
            ("input", Some(9)),
            ("to", Some(9)),
            ("onError", None),
            ("onNull", None),
            ("format", None),
            ("byteOrder", None),
            ("base", None),
        ],
    };
    let raw = named.split(name, value)?;
    let mut args: Vec<Expr> = named.parse(name, value, scope)?.into_vec();
    let mut subtype = Expr::ABSENT;
    if let ValueRef::Document(doc) = raw[1]
        && !doc.iter().next().is_some_and(|(field, _)| field.starts_with('$'))
    {
        let to = Named {
            not_object: 9,
            unknown: 9,
            fields: &[("type", Some(9)), ("subtype", None)],
        }
        .parse("$convert's 'to'", raw[1], scope)?;
        let mut to = to.into_vec();
        subtype = to.pop().unwrap_or(Expr::ABSENT);
        args[1] = to.pop().unwrap_or(Expr::ABSENT);
        // The type itself may not be null in this form, which is told from a plain null here.
        if args[1].constant().is_some_and(|v| v.as_ref().is_nullish()) {
            return Err(Error::failed_to_parse(
                "$convert's 'to.type' must be a string or a number",
            ));
        }
    }
    args.push(subtype);
    Expr::call_of(name, convert, args.into())
}

fn convert<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    let to = args[1].eval_ref(env)?;
    if input.is_nullish() {
        return if args[3].is_absent() {
            Ok(Val::NULL)
        } else {
            args[3].eval_ref(env)
        };
    }
    if to.is_nullish() {
        return Ok(Val::NULL);
    }
    let mut target = Target::of(target_type(to.as_ref())?);
    if !args[7].is_absent() {
        let subtype = args[7].eval_ref(env)?;
        target.subtype = subtype_of(subtype.as_ref())?;
    }
    let order = args[5].eval_ref(env)?;
    target.big_endian = match order.as_ref() {
        ValueRef::String("little") => false,
        ValueRef::String("big") => true,
        other if other.is_nullish() => false,
        ValueRef::String(other) => return Err(error(9_130_002, format!("$convert: unknown byteOrder '{other}'"))),
        other => {
            return Err(error(
                9_130_001,
                format!(
                    "$convert requires 'byteOrder' to be a string, found {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    let format = args[4].eval_ref(env)?;
    target.format = match format.as_ref() {
        ValueRef::String(name) => {
            Some(Format::parse(name).ok_or_else(|| error(4_341_125, format!("$convert: unknown format '{name}'")))?)
        }
        other if other.is_nullish() => None,
        other => {
            return Err(error(
                4_341_114,
                format!(
                    "$convert requires 'format' to be a string, found {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    let base = args[6].eval_ref(env)?;
    target.base = match base.as_ref() {
        other if other.is_nullish() => None,
        other => match whole_number(other) {
            Some(base @ (2 | 8 | 10 | 16)) => Some(base as u32),
            Some(_) => return Err(error(3_501_301, "$convert requires 'base' to be 2, 8, 10 or 16")),
            None => return Err(error(3_501_300, "$convert requires 'base' to be an integer")),
        },
    };
    let between = (input.as_ref().bson_type(), target.kind);
    if matches!(
        between,
        (BsonType::String, BsonType::BinData) | (BsonType::BinData, BsonType::String)
    ) && target.format.is_none()
    {
        return Err(error(
            4_341_115,
            "$convert between strings and BinData requires 'format'",
        ));
    }
    match to_type(input.as_ref(), &target) {
        Ok(value) => Ok(value.into()),
        Err(e) if e.code() == ErrorCode::ConversionFailure && !args[2].is_absent() => args[2].eval_ref(env),
        Err(e) => Err(e),
    }
}

/// The type by name or number. Errors: 2 unknown name, 9 unknown number or another type.
fn target_type(value: ValueRef<'_>) -> Result<BsonType> {
    let mut types = TYPES.into_iter().chain([BsonType::Missing]);
    match value {
        ValueRef::String(name) => types
            .find(|t| t.alias() == name)
            .ok_or_else(|| Error::bad_value(format!("unknown type name alias: {name}"))),
        number if number.is_number() => {
            let number = whole_number(number);
            types
                .find(|t| number == Some(if *t == BsonType::MinKey { -1 } else { *t as i64 }))
                .ok_or_else(|| Error::failed_to_parse(format!("in $convert, 'to' is no type code: {value:?}")))
        }
        other => Err(Error::failed_to_parse(format!(
            "$convert's 'to' argument must be a string or number, but is {}",
            other.bson_type().alias()
        ))),
    }
}

fn subtype_of(value: ValueRef<'_>) -> Result<u8> {
    if !value.is_number() {
        return Err(error(
            4_341_108,
            format!(
                "$convert's 'subtype' argument must be a number, but is {}",
                value.bson_type().alias()
            ),
        ));
    }
    match whole_number(value) {
        None => Err(error(4_341_106, "$convert's 'subtype' argument must be an integer")),
        Some(n @ (0..=9 | 128..=255)) => Ok(n as u8),
        Some(n) => Err(error(4_341_107, format!("$convert: {n} is no valid BinData subtype"))),
    }
}

/// Converts a value that is not null. Error 241 when that is not possible.
pub(crate) fn to_type(value: ValueRef<'_>, target: &Target) -> Result<Value> {
    let kind = value.bson_type();
    match target.kind {
        BsonType::BinData => binary::to_binary(value, target),
        BsonType::Bool => Ok(Value::Bool(to_bool(value))),
        same if same == kind && target.base.is_none() => Ok(value.to_value()),
        BsonType::Double => to_double(value, target).map(Value::Double),
        BsonType::String => to_string(value, target).map(Value::from),
        BsonType::ObjectId => match value {
            ValueRef::String(text) => ObjectId::parse(text)
                .map(Value::from)
                .ok_or_else(|| failed(format!("failed to parse objectId '{text}' in $convert"))),
            _ => Err(unsupported(kind, target.kind)),
        },
        BsonType::Date => to_date(value).map(Value::DateTime),
        BsonType::Int => {
            let whole = to_whole(value, target)?;
            i32::try_from(whole)
                .map(Value::Int32)
                .map_err(|_| failed(format!("conversion would overflow target type in $convert: {value:?}")))
        }
        BsonType::Long => to_whole(value, target).map(Value::Int64),
        BsonType::Decimal => to_decimal(value, target).map(Value::Decimal128),
        BsonType::Array | BsonType::Object => from_json(value, target.kind),
        _ => Err(unsupported(kind, target.kind)),
    }
}

fn unsupported(from: BsonType, to: BsonType) -> Error {
    failed(format!(
        "unsupported conversion from {} to {} in $convert",
        from.alias(),
        to.alias()
    ))
}

fn to_bool(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Bool(v) => v,
        number if number.is_number() => number.truthy(),
        _ => true,
    }
}

fn no_number(text: &str) -> Error {
    failed(format!("failed to parse number '{text}' in $convert"))
}

/// Whether a text is in the plain form of decimal numbers: no blanks, no hexadecimal, no words but the given.
fn is_plain_number(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
        && text.bytes().any(|b| b.is_ascii_digit())
}

fn to_double(value: ValueRef<'_>, target: &Target) -> Result<f64> {
    Ok(match value {
        ValueRef::Bool(v) => f64::from(u8::from(v)),
        ValueRef::Int32(v) => f64::from(v),
        ValueRef::Int64(v) => v as f64,
        ValueRef::Double(v) => v,
        ValueRef::Decimal128(v) => {
            let double = v.to_f64();
            if double.is_infinite() && v.is_finite() {
                return Err(failed(format!(
                    "conversion would overflow target type in $convert: {v}"
                )));
            }
            double
        }
        ValueRef::DateTime(ms) => ms as f64,
        ValueRef::String(text) => match target.base {
            Some(base) if base != 10 => whole_in_base(text, base)? as f64,
            _ => parse_double(text).ok_or_else(|| no_number(text))?,
        },
        ValueRef::Binary { bytes, .. } => binary::to_double(bytes, target.big_endian)?,
        other => return Err(unsupported(other.bson_type(), target.kind)),
    })
}

fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "infinity" => Some(if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        }),
        hex if hex.starts_with("0x") => parse_hex_double(&hex[2..]).map(|v| if text.starts_with('-') { -v } else { v }),
        _ if is_plain_number(text) => {
            let v: f64 = text.parse().ok()?;
            // A number out of range is an error, not infinity or zero.
            let zero_digits = unsigned
                .split(['e', 'E'])
                .next()
                .is_some_and(|m| m.bytes().all(|b| !(b'1'..=b'9').contains(&b)));
            (v.is_finite() && (v != 0.0 || zero_digits)).then_some(v)
        }
        _ => None,
    }
}

/// `1.8p1`: hexadecimal digits with an optional point and an optional power of two.
fn parse_hex_double(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let value = value * 2f64.powi(exponent);
    value.is_finite().then_some(value)
}

fn whole_in_base(text: &str, base: u32) -> Result<i64> {
    let digits = text
        .strip_prefix('-')
        .or_else(|| text.strip_prefix('+'))
        .unwrap_or(text);
    let digits = match base {
        16 => digits.strip_prefix("0x").unwrap_or(digits),
        8 => digits.strip_prefix("0o").unwrap_or(digits),
        2 => digits.strip_prefix("0b").unwrap_or(digits),
        _ => digits,
    };
    if digits.is_empty() || digits.starts_with(['+', '-']) {
        return Err(no_number(text));
    }
    let whole = i128::from_str_radix(digits, base).map_err(|_| no_number(text))?;
    i64::try_from(if text.starts_with('-') { -whole } else { whole }).map_err(|_| no_number(text))
}

fn to_whole(value: ValueRef<'_>, target: &Target) -> Result<i64> {
    let out_of_range = || failed(format!("conversion would overflow target type in $convert: {value:?}"));
    Ok(match value {
        ValueRef::Bool(v) => i64::from(v),
        ValueRef::Int32(v) => i64::from(v),
        ValueRef::Int64(v) => v,
        ValueRef::Double(v) => nestor_model::number::f64_to_i64_exact(v.trunc()).ok_or_else(out_of_range)?,
        ValueRef::Decimal128(v) => v.to_i64_truncated().ok_or_else(out_of_range)?,
        ValueRef::DateTime(ms) if target.kind == BsonType::Long => ms,
        ValueRef::String(text) => whole_in_base(text, target.base.unwrap_or(10))?,
        ValueRef::Binary { bytes, .. } => {
            let widest = if target.kind == BsonType::Int { 4 } else { 8 };
            binary::to_whole(bytes, target.big_endian, widest)?
        }
        other => return Err(unsupported(other.bson_type(), target.kind)),
    })
}

fn to_decimal(value: ValueRef<'_>, target: &Target) -> Result<Decimal128> {
    Ok(match value {
        ValueRef::Bool(v) => Decimal128::from_i32(i32::from(v)),
        ValueRef::Int32(v) => Decimal128::from_i32(v),
        ValueRef::Int64(v) | ValueRef::DateTime(v) => Decimal128::from_i64(v),
        ValueRef::Double(v) => Decimal128::from_f64(v),
        ValueRef::Decimal128(v) => v,
        ValueRef::String(text) => match target.base {
            Some(base) if base != 10 => Decimal128::from_i64(whole_in_base(text, base)?),
            _ => match Decimal128::parse_truncating(text) {
                Some((v, flags)) if !flags.overflow() && !flags.underflow() => v,
                _ => return Err(no_number(text)),
            },
        },
        other => return Err(unsupported(other.bson_type(), target.kind)),
    })
}

fn to_date(value: ValueRef<'_>) -> Result<i64> {
    let out_of_range = || failed(format!("conversion would overflow target type in $convert: {value:?}"));
    Ok(match value {
        ValueRef::DateTime(ms) | ValueRef::Int64(ms) => ms,
        ValueRef::Double(v) => nestor_model::number::f64_to_i64_exact(v.trunc()).ok_or_else(out_of_range)?,
        ValueRef::Decimal128(v) => v.to_i64_truncated().ok_or_else(out_of_range)?,
        ValueRef::ObjectId(id) => object_id_ms(id),
        ValueRef::Timestamp(ts) => i64::from(ts.secs) * 1000,
        ValueRef::String(text) => free_text::parse(text, None)?,
        other => return Err(unsupported(other.bson_type(), BsonType::Date)),
    })
}

fn to_string(value: ValueRef<'_>, target: &Target) -> Result<String> {
    let in_base = |v: i64| {
        let magnitude = v.unsigned_abs();
        let sign = if v < 0 { "-" } else { "" };
        match target.base {
            Some(2) => format!("{sign}{magnitude:b}"),
            Some(8) => format!("{sign}{magnitude:o}"),
            Some(16) => format!("{sign}{magnitude:X}"),
            _ => v.to_string(),
        }
    };
    let text = match value {
        ValueRef::Bool(v) => v.to_string(),
        ValueRef::Int32(v) => in_base(i64::from(v)),
        ValueRef::Int64(v) => in_base(v),
        ValueRef::Double(v) => match (target.base, nestor_model::number::f64_to_i64_exact(v)) {
            (Some(2 | 8 | 16), Some(v)) => in_base(v),
            (Some(2 | 8 | 16), None) => return Err(failed("only whole numbers can be converted with a base")),
            _ => double_shortest(v),
        },
        ValueRef::Decimal128(v) => match (target.base, v.to_i64_exact()) {
            (Some(2 | 8 | 16), Some(v)) => in_base(v),
            (Some(2 | 8 | 16), None) => return Err(failed("only whole numbers can be converted with a base")),
            _ => v.to_string(),
        },
        ValueRef::ObjectId(v) => v.to_string(),
        ValueRef::DateTime(ms) if !YEARS_WITH_TEXT.contains(&ms) => {
            return Err(Error::location(
                18537,
                format!(
                    "dates are converted to text only in the years 0 to 9999, not {}",
                    format_iso(ms)
                ),
            ));
        }
        ValueRef::DateTime(ms) => format_iso(ms),
        ValueRef::String(text) => text.to_owned(),
        ValueRef::Binary { bytes, subtype } => binary::to_text(
            &Binary {
                subtype,
                bytes: bytes.into(),
            },
            target.format.unwrap_or(Format::Auto),
        )?,
        other => return Err(unsupported(other.bson_type(), target.kind)),
    };
    match value {
        // Text that is in the data is as long as the data; what they are written as may be longer.
        ValueRef::Binary { .. } if target.format != Some(Format::Utf8) && text.len() >= RESULT_BYTES_MAX => {
            Err(failed("the text is too long in $convert"))
        }
        _ => check_size(text.len()).map(|()| text),
    }
}

/// Reads JSON text whose outermost value has the wanted type, or a packed vector as an array. Type wrappers of Extended
/// JSON stay the objects they are.
fn from_json(value: ValueRef<'_>, kind: BsonType) -> Result<Value> {
    let text = match value {
        ValueRef::String(text) => text,
        ValueRef::Binary { subtype: 9, bytes } if kind == BsonType::Array => {
            return similarity::unpack_values(bytes)
                .map(Value::from)
                .ok_or_else(|| failed("BinData is no well-formed vector in $convert"));
        }
        other => return Err(unsupported(other.bson_type(), kind)),
    };
    match plain_json(text) {
        Some(parsed) if parsed.bson_type() == kind => Ok(parsed),
        Some(parsed) => Err(failed(format!(
            "input doesn't represent {}: it is {}",
            kind.alias(),
            parsed.bson_type().alias()
        ))),
        None => Err(failed("failed to parse JSON in $convert")),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn conversions() {
        check(
            r#"{"n": null, "l": {"$numberLong": "5000000000"}, "m": {"$numberDecimal": "1.9"},
                "b": {"$binary": {"base64": "KgAAAA==", "subType": "00"}}, "o": {"$oid": "507f1f77bcf86cd799439011"}}"#,
            &[
                (r#"{"$toInt": "42"}"#, "42"),
                (r#"{"$toInt": "4.2"}"#, "error 241"),
                (r#"{"$toInt": 3.9}"#, "3"),
                (r#"{"$toInt": "$l"}"#, "error 241"),
                (r#"{"$toInt": "$b"}"#, "42"),
                (r#"{"$toLong": "$m"}"#, "Long(1)"),
                (r#"{"$toLong": "$n"}"#, "null"),
                (r#"{"$toDouble": "1e3"}"#, "1000.0"),
                (r#"{"$toDouble": "0x1.8p1"}"#, "3.0"),
                (r#"{"$toDouble": "0xp0"}"#, "error 241"),
                (r#"{"$toDouble": "1e400"}"#, "error 241"),
                (r#"{"$toDecimal": "1.50"}"#, "Decimal(1.50)"),
                (r#"{"$toBool": ""}"#, "true"),
                (r#"{"$toBool": 0}"#, "false"),
                (r#"{"$toString": 1.5}"#, r#""1.5""#),
                (r#"{"$toString": "$o"}"#, r#""507f1f77bcf86cd799439011""#),
                (r#"{"$toString": {"$toDate": 0.0}}"#, r#""1970-01-01T00:00:00.000Z""#),
                (r#"{"$toObjectId": "xyz"}"#, "error 241"),
                (r#"{"$toInt": [1, 2]}"#, "error 50723"),
                (
                    r#"{"$convert": {"input": "x", "to": "int", "onError": "bad"}}"#,
                    r#""bad""#,
                ),
                (r#"{"$convert": {"input": "$n", "to": "int", "onNull": 7}}"#, "7"),
                (r#"{"$convert": {"input": 1, "to": "integer"}}"#, "error 2"),
                (r#"{"$convert": {"input": 1, "to": 99}}"#, "error 9"),
                (r#"{"$convert": {"input": "ff", "to": "int", "base": 16}}"#, "255"),
                (r#"{"$convert": {"input": 10, "to": "string", "base": 2}}"#, r#""1010""#),
                (
                    r#"{"$convert": {"input": 42, "to": "binData", "byteOrder": "big"}}"#,
                    "BinData(0, 0000002a)",
                ),
                (r#"{"$convert": {"input": "hi", "to": "binData"}}"#, "error 4341115"),
                (
                    r#"{"$convert": {"input": "hi", "to": {"type": "binData", "subtype": 10}, "format": "utf8"}}"#,
                    "error 4341107",
                ),
                (r#"{"$toArray": "[1, {\"a\": 2}]"}"#, r#"[1, {"a": 2}]"#),
                (r#"{"$toObject": "[1]"}"#, "error 241"),
                (
                    r#"{"$toObject": "{ \"a\": {\"$oid\" : \"$x\"}}"}"#,
                    r#"{"a": {"$oid": "$x"}}"#,
                ),
                (
                    r#"{"$toArray": {"$convert": {"input": "0300ff02", "to": {"type": "binData", "subtype": 9}, "format": "hex"}}}"#,
                    "[-1, 2]",
                ),
            ],
        );
    }
}
