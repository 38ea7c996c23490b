//! Values from text and from PostgreSQL's binary format.

use super::cast::cast;
use super::interval::Interval;
use super::output::{EPOCH_2000_DAYS, EPOCH_2000_US};
use super::range::Range;
use super::regconfig::{Config, Dictionary};
use super::timetz::TimeTz;
use super::tsquery::TsQuery;
use super::tsvector::TsVector;
use super::{INTERVAL_SUBTYPE, Type, bits, datetime, encoding, interval, json, jsonpath, network, numeric, range};
use crate::error::{error, fail};
use nestor_model::value::Binary;
use nestor_model::{Array, ObjectId, Result, Value};

fn wrong(ty: &Type, text: &str) -> nestor_model::Error {
    error("22P02", format!("invalid input syntax for type {ty}: \"{text}\""))
}

/// The value that `text` is of a type.
///
/// Errors: 22P02 and 22007 when it is none, 22003 and 22008 when it is out of range.
pub fn text(ty: &Type, text: &str) -> Result<Value> {
    let trimmed = text.trim();
    Ok(match ty {
        Type::Text | Type::Varchar | Type::Bpchar | Type::Citext | Type::Refcursor | Type::Unknown => {
            Value::String(text.into())
        }
        Type::Enum(own) => own.value(text)?,
        Type::Composite(own) => own.parse(text)?,
        Type::Domain(own) => {
            let base = own.bottom().0;
            return cast(self::text(base, text)?, base, ty, -1, false);
        }
        Type::Any(own) => return fail("0A000", format!("cannot accept a value of type {}", own.name)),
        // Whatever is read is nothing.
        Type::Void => Value::String("".into()),
        Type::Name => Value::String(super::names::shortened(text).into()),
        Type::Char => Value::String(text.chars().take(1).collect::<String>().into()),
        Type::Bool => Value::Bool(boolean(trimmed).ok_or_else(|| wrong(ty, text))?),
        Type::Int2 => Value::Int32(whole(ty, text, i64::from(i16::MIN), i64::from(i16::MAX))? as i32),
        Type::Int4 => Value::Int32(whole(ty, text, i64::from(i32::MIN), i64::from(i32::MAX))? as i32),
        Type::Int8 => Value::Int64(whole(ty, text, i64::MIN, i64::MAX)?),
        Type::Tid => Value::Int64(place(trimmed).ok_or_else(|| wrong(ty, text))?),
        Type::Oid => Value::Int64(whole(ty, text, 0, i64::from(u32::MAX))?),
        Type::Float4 | Type::Float8 => Value::Double(float(ty, text)?),
        Type::Numeric => Value::Decimal128(numeric::parse(text)?),
        Type::Date => Value::Int32(datetime::parse_date(text)?),
        Type::Time => Value::Int64(datetime::parse_time(text)?),
        Type::Timetz => datetime::parse_timetz(text)?.to_value(),
        Type::Bit | Type::Varbit => bits::parse(text)?,
        Type::Inet | Type::Cidr | Type::Macaddr => network::parse(ty, text)?,
        ty if ty.is_ranges() => match (ty.range_element(), ty.multirange_element()) {
            (Some(element), _) => range::parse(&element, text)?.to_value(),
            (_, element) => range::multi(range::parse_multi(&element.unwrap_or(Type::Int4), text)?),
        },
        Type::Timestamp => Value::Int64(datetime::parse_timestamp(text, false)?),
        Type::Timestamptz => Value::Int64(datetime::parse_timestamp(text, true)?),
        Type::Interval => interval::parse_value(text)?,
        Type::Uuid => uuid(trimmed).ok_or_else(|| wrong(ty, text))?,
        Type::Bytea => match (bytea(text), text.starts_with("\\x")) {
            (Some(bytes), _) => bytes,
            (None, true) => return fail("22023", "invalid hexadecimal data"),
            (None, false) => return Err(wrong(ty, text)),
        },
        Type::Json => {
            json::parse(text)?;
            Value::String(text.into())
        }
        Type::Jsonb => json::parse(text)?,
        Type::Jsonpath => Value::String(jsonpath::path(text)?.to_string().into()),
        Type::TsVector => TsVector::parse(text)?.to_value()?,
        Type::TsQuery => TsQuery::parse(text)?.to_value()?,
        Type::ObjectId => Value::ObjectId(object_id(trimmed).ok_or_else(|| wrong(ty, text))?),
        Type::Array(element) => array(element, text)?,
        Type::Int2vector | Type::Oidvector => {
            let element = ty.element().unwrap_or(&Type::Oid);
            let items = text.split_whitespace().map(|item| self::text(element, item));
            Value::Array(Array::new(items.collect::<Result<_>>()?))
        }
        Type::Regconfig | Type::Regdictionary => match trimmed.parse::<u32>() {
            Ok(oid) => Value::Int64(i64::from(oid)),
            Err(_) if trimmed == "-" => Value::Int64(0),
            Err(_) if *ty == Type::Regconfig => Value::Int64(Config::named(trimmed)?.oid()),
            Err(_) => Value::Int64(Dictionary::named(trimmed)?.oid()),
        },
        Type::Regclass
        | Type::Regtype
        | Type::Regproc
        | Type::Regnamespace
        | Type::Regrole
        | Type::Regprocedure
        | Type::Regoperator => match trimmed {
            "-" => Value::Int64(0),
            name => match Type::named(name).filter(|_| *ty == Type::Regtype) {
                Some(named) => Value::Int64(i64::from(named.oid())),
                None => Value::Int64(whole(ty, text, 0, i64::from(u32::MAX))?),
            },
        },
        _ => return fail("0A000", format!("input of type {ty} is not supported")),
    })
}

fn boolean(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let starts = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    match lower.as_str() {
        "1" => Some(true),
        "0" => Some(false),
        "" => None,
        _ if starts("true", 1) || starts("yes", 1) || lower == "on" => Some(true),
        _ if starts("false", 1) || starts("no", 1) || starts("off", 2) => Some(false),
        _ => None,
    }
}

fn whole(ty: &Type, text: &str, min: i64, max: i64) -> Result<i64> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong(ty, text));
    }
    match trimmed.parse::<i64>().ok().filter(|n| (min..=max).contains(n)) {
        Some(n) => Ok(n),
        None => fail("22003", format!("value \"{text}\" is out of range for type {ty}")),
    }
}

fn float(ty: &Type, text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let n: f64 = match trimmed.to_ascii_lowercase().as_str() {
        "infinity" | "inf" | "+infinity" => f64::INFINITY,
        "-infinity" | "-inf" => f64::NEG_INFINITY,
        "nan" => f64::NAN,
        _ => {
            let n: f64 = trimmed.parse().map_err(|_| wrong(ty, text))?;
            let has_digits = || {
                let mantissa = trimmed.split(['e', 'E']).next().unwrap_or_default();
                mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
            };
            let held = if *ty == Type::Float4 { f64::from(n as f32) } else { n };
            if held.is_infinite() || (held == 0.0 && has_digits()) {
                return fail("22003", format!("\"{text}\" is out of range for type {ty}"));
            }
            n
        }
    };
    Ok(if *ty == Type::Float4 { f64::from(n as f32) } else { n })
}

/// Thirty-two digits, with a dash behind each fourth or not, all of them in braces or not.
fn uuid(text: &str) -> Option<Value> {
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => text,
    };
    let (mut bytes, mut rest) = (Vec::with_capacity(16), inner);
    for at in 0..16 {
        let (pair, after) = rest.split_at_checked(2)?;
        bytes.extend(unhex(pair)?);
        rest = match after.strip_prefix('-') {
            Some(after) if at % 2 == 1 && at < 15 => after,
            _ => after,
        };
    }
    rest.is_empty().then(|| {
        Value::Binary(Binary {
            subtype: 4,
            bytes: bytes.as_slice().into(),
        })
    })
}

/// An ObjectId of its 24 digits.
pub fn object_id(text: &str) -> Option<ObjectId> {
    ObjectId::parse(text)
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    let pairs = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
    // A sign is read as one of a number.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    pairs.collect()
}

fn bytea(text: &str) -> Option<Value> {
    let bytes = match text.strip_prefix("\\x") {
        Some(digits) => {
            let pairs: String = digits.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            unhex(&pairs)?
        }
        None => {
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            while let Some((first, after)) = rest.split_first() {
                rest = after;
                match (*first, rest) {
                    (b'\\', [b'\\', after @ ..]) => {
                        out.push(b'\\');
                        rest = after;
                    }
                    (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                        out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                        rest = after;
                    }
                    (b'\\', _) => return None,
                    (byte, _) => out.push(byte),
                }
            }
            out
        }
    };
    Some(Value::Binary(Binary {
        subtype: 0,
        bytes: bytes.into(),
    }))
}

/// Reads `{a,"b c",NULL}`, nested too.
fn array(element: &Type, text: &str) -> Result<Value> {
    let malformed = || error("22P02", format!("malformed array literal: \"{text}\""));
    let mut at = text
        .trim_start_matches(super::arrays::is_space)
        .char_indices()
        .peekable();
    let value = array_level(element, &mut at, 0).ok_or_else(malformed)??;
    if super::arrays::nests(element) && !is_even(&value) {
        return Err(malformed());
    }
    at.all(|(_, c)| super::arrays::is_space(c))
        .then_some(value)
        .ok_or_else(malformed)
}

/// Whether the arrays of an array are as long as each other, and not empty.
fn is_even(value: &Value) -> bool {
    let Value::Array(items) = value else { return true };
    let lengths = items.iter().map(|item| match item {
        nestor_model::ValueRef::Array(inner) => Some(inner.len()),
        _ => None,
    });
    let lengths: Vec<Option<usize>> = lengths.collect();
    let same = lengths.windows(2).all(|pair| pair[0] == pair[1]);
    same && lengths.first() != Some(&Some(0)) && items.iter().all(|item| is_even(&item.to_value()))
}

type Chars<'t> = std::iter::Peekable<std::str::CharIndices<'t>>;

/// The inner result is that of reading elements; `None` when the form is wrong.
fn array_level(element: &Type, chars: &mut Chars<'_>, depth: usize) -> Option<Result<Value>> {
    if depth > 6 || chars.next()?.1 != '{' {
        return None;
    }
    let mut items = Vec::new();
    let space = |chars: &mut Chars<'_>| while chars.next_if(|(_, c)| super::arrays::is_space(*c)).is_some() {};
    space(chars);
    if chars.next_if(|(_, c)| *c == '}').is_some() {
        return Some(Ok(Value::Array(Array::new(items))));
    }
    loop {
        space(chars);
        let mut word = String::new();
        match chars.peek()?.1 {
            '{' => match array_level(element, chars, depth + 1)? {
                Ok(value) => items.push(value),
                Err(error) => return Some(Err(error)),
            },
            '"' => {
                chars.next();
                loop {
                    match chars.next()?.1 {
                        '"' => break,
                        '\\' => word.push(chars.next()?.1),
                        c => word.push(c),
                    }
                }
                match self::text(element, &word) {
                    Ok(value) => items.push(value),
                    Err(error) => return Some(Err(error)),
                }
            }
            _ => {
                while let Some((_, c)) = chars.next_if(|(_, c)| !matches!(c, ',' | '}' | '{' | '"')) {
                    match c {
                        '\\' => word.push(chars.next()?.1),
                        c => word.push(c),
                    }
                }
                let word = word.trim_end_matches(super::arrays::is_space);
                if word.is_empty() {
                    return None;
                }
                match word.eq_ignore_ascii_case("null") {
                    true => items.push(Value::Null),
                    false => match self::text(element, word) {
                        Ok(value) => items.push(value),
                        Err(error) => return Some(Err(error)),
                    },
                }
            }
        }
        space(chars);
        match chars.next()?.1 {
            ',' => {}
            '}' => return Some(Ok(Value::Array(Array::new(items)))),
            _ => return None,
        }
    }
}

/// The value that bytes in binary format are.
///
/// Errors: 22P03 when they are none.
pub fn binary(ty: &Type, bytes: &[u8]) -> Result<Value> {
    decode(ty, bytes).unwrap_or_else(|| fail("22P03", format!("incorrect binary data format for type {ty}")))
}

/// The place of a row: `(block,place)`.
fn place(text: &str) -> Option<i64> {
    let (block, at) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let (block, at): (u32, u16) = (block.trim().parse().ok()?, at.trim().parse().ok()?);
    Some(i64::from(block) << 16 | i64::from(at))
}

fn decode(ty: &Type, bytes: &[u8]) -> Option<Result<Value>> {
    // The client's encoding is that of texts in binary as well.
    let sent = |bytes| encoding::text(bytes);
    Some(Ok(match ty {
        Type::Domain(own) => {
            let base = own.bottom().0;
            return Some(decode(base, bytes)?.and_then(|value| cast(value, base, ty, -1, false)));
        }
        Type::Bool => Value::Bool(*bytes.first()? != 0),
        // Its only byte is zero where it has no character.
        Type::Char if *bytes == [0] => Value::String("".into()),
        Type::Int2 => Value::Int32(i32::from(i16::from_be_bytes(bytes.try_into().ok()?))),
        Type::Int4 => Value::Int32(i32::from_be_bytes(bytes.try_into().ok()?)),
        Type::Int8 => Value::Int64(i64::from_be_bytes(bytes.try_into().ok()?)),
        Type::Tid => {
            let [a, b, c, d, e, f] = bytes.try_into().ok()?;
            Value::Int64(i64::from_be_bytes([0, 0, a, b, c, d, e, f]))
        }
        Type::Oid => Value::Int64(i64::from(u32::from_be_bytes(bytes.try_into().ok()?))),
        ty if ty.is_reg() => Value::Int64(i64::from(u32::from_be_bytes(bytes.try_into().ok()?))),
        Type::Float4 => Value::Double(f64::from(f32::from_be_bytes(bytes.try_into().ok()?))),
        Type::Float8 => Value::Double(f64::from_be_bytes(bytes.try_into().ok()?)),
        Type::Numeric => return binary_numeric(bytes),
        Type::Date => match i32::from_be_bytes(bytes.try_into().ok()?) {
            days @ (i32::MAX | i32::MIN) => Value::Int32(days),
            days => Value::Int32(days.checked_add(EPOCH_2000_DAYS)?),
        },
        Type::Time => Value::Int64(i64::from_be_bytes(bytes.try_into().ok()?)),
        Type::Timestamp | Type::Timestamptz => match i64::from_be_bytes(bytes.try_into().ok()?) {
            us @ (i64::MAX | i64::MIN) => Value::Int64(us),
            us => Value::Int64(us.checked_add(EPOCH_2000_US)?),
        },
        Type::Interval if bytes.len() == 16 => {
            let value = Value::Binary(Binary {
                subtype: INTERVAL_SUBTYPE,
                bytes: bytes.into(),
            });
            Interval::of(&value).to_value()
        }
        Type::Timetz => TimeTz::of_bytes(bytes)?.to_value(),
        Type::Bit | Type::Varbit => bits::of_binary(bytes)?,
        Type::Inet | Type::Cidr => network::Inet::of_binary(ty, bytes)?.to_value(),
        Type::Macaddr => network::mac_value(bytes.try_into().ok()?),
        ty if ty.is_ranges() => {
            return match (ty.range_element(), ty.multirange_element()) {
                (Some(element), _) => Some(range::of_binary(&element, bytes)?.map(Range::to_value)),
                (_, element) => Some(range::multi_of_binary(&element?, bytes)?.map(range::multi)),
            };
        }
        Type::Uuid if bytes.len() == 16 => Value::Binary(Binary {
            subtype: 4,
            bytes: bytes.into(),
        }),
        Type::Bytea => Value::Binary(Binary {
            subtype: 0,
            bytes: bytes.into(),
        }),
        Type::Jsonb => return Some(sent(bytes.strip_prefix(&[1])?).and_then(|text| json::parse(&text))),
        Type::Jsonpath => return Some(sent(bytes.strip_prefix(&[1])?).and_then(|own| text(ty, &own))),
        Type::TsVector => return Some(TsVector::of_binary(bytes)?.and_then(|own| own.to_value())),
        Type::TsQuery => return Some(TsQuery::of_binary(bytes)?.and_then(|own| own.to_value())),
        Type::Composite(own) => return own.of_binary(bytes),
        Type::Array(element) => return binary_array(element, bytes),
        Type::Int2vector | Type::Oidvector => return binary_array(ty.element()?, bytes),
        Type::Void if bytes.is_empty() => Value::String("".into()),
        Type::Interval | Type::Uuid | Type::Record | Type::Void => return None,
        ty => return Some(sent(bytes).and_then(|own| text(ty, &own))),
    }))
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

/// Dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

fn binary_array(element: &Type, mut bytes: &[u8]) -> Option<Result<Value>> {
    let rest = &mut bytes;
    let dimensions = usize::try_from(i32::from_be_bytes(take(rest)?)).ok()?;
    let _has_null: [u8; 4] = take(rest)?;
    let sent = Type::of_oid(u32::from_be_bytes(take(rest)?));
    let element = sent.as_ref().unwrap_or(element);
    if dimensions > DIMENSIONS_MAX {
        return None;
    }
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(i32::from_be_bytes(take(rest)?)).ok()?);
        let _lower: [u8; 4] = take(rest)?;
    }
    // Each element has at least its length.
    let count = lengths
        .iter()
        .try_fold(1usize, |all, length| all.checked_mul(*length))?;
    if lengths.is_empty() || count == 0 {
        return Some(Ok(Value::Array(Array::new(Vec::new()))));
    }
    if count > rest.len() / 4 {
        return None;
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(match i32::from_be_bytes(take(rest)?) {
            -1 => Value::Null,
            length => {
                let (item, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                *rest = after;
                match binary(element, item) {
                    Ok(value) => value,
                    Err(error) => return Some(Err(error)),
                }
            }
        });
    }
    // The innermost dimension is the last.
    for length in lengths[1..].iter().rev() {
        let inner = items
            .chunks(*length)
            .map(|part| Value::Array(Array::new(part.to_vec())));
        items = inner.collect();
    }
    Some(Ok(Value::Array(Array::new(items))))
}

fn binary_numeric(mut bytes: &[u8]) -> Option<Result<Value>> {
    let rest = &mut bytes;
    let groups = i16::from_be_bytes(take(rest)?);
    let weight = i16::from_be_bytes(take(rest)?);
    let sign = u16::from_be_bytes(take(rest)?);
    let scale = u16::from_be_bytes(take(rest)?);
    let text = match sign {
        0xC000 => "NaN".to_owned(),
        0xD000 => "Infinity".to_owned(),
        0xF000 => "-Infinity".to_owned(),
        _ => {
            if weight.unsigned_abs() > 2000 || scale > 16_383 {
                return Some(Err(numeric::overflow()));
            }
            let mut digits = String::new();
            for _ in 0..groups {
                let group = i16::from_be_bytes(take(rest)?);
                digits.push_str(&format!("{group:04}"));
            }
            let sign = if sign == 0x4000 { "-" } else { "" };
            let exponent = 4 * (i32::from(weight) + 1 - i32::from(groups));
            let digits = if digits.is_empty() { "0" } else { &digits };
            let text = format!("{sign}{digits}E{exponent}");
            return Some(
                numeric::parse(&text)
                    .and_then(|n| numeric::round(n, i32::from(scale)))
                    .map(Value::Decimal128),
            );
        }
    };
    Some(numeric::parse(&text).map(Value::Decimal128))
}
