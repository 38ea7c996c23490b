//! Positions within strings, in bytes and in code points: `$indexOfBytes`, `$indexOfCP`, `$substr`,
//! `$substrBytes`, `$substrCP`.

use super::text::coerce;
use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::{error, whole_i32};
use crate::expr::parse::OpDef;
use nestor_model::{Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::range("$indexOfBytes", 2, 4, index_of_bytes),
    OpDef::range("$indexOfCP", 2, 4, index_of_cp),
    OpDef::fixed("$substr", 3, substr_bytes),
    OpDef::fixed("$substrBytes", 3, substr_bytes),
    OpDef::fixed("$substrCP", 3, substr_cp),
];

fn alias(v: ValueRef<'_>) -> &'static str {
    v.bson_type().alias()
}

/// A start or end. Errors: 40096 no whole number, 40097 negative.
fn position<'a>(arg: Option<&'a Expr>, env: &mut Env<'a>, op: &str, default: usize) -> Result<usize> {
    let Some(arg) = arg else {
        return Ok(default);
    };
    let value = arg.eval_ref(env)?;
    match whole_i32(value.as_ref()) {
        None => Err(error(
            40096,
            format!("{op} requires an integral position, found {}", alias(value.as_ref())),
        )),
        Some(n) => {
            usize::try_from(n).map_err(|_| error(40097, format!("{op} requires a nonnegative position, found {n}")))
        }
    }
}

fn index_of_bytes<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::String(text) = input.as_ref() else {
        return Err(error(
            40091,
            format!(
                "$indexOfBytes requires a string as the first argument, found: {}",
                alias(input.as_ref())
            ),
        ));
    };
    let sought = args[1].eval_ref(env)?;
    let ValueRef::String(sought) = sought.as_ref() else {
        return Err(error(
            40092,
            format!(
                "$indexOfBytes requires a string as the second argument, found: {}",
                alias(sought.as_ref())
            ),
        ));
    };
    let from = position(args.get(2), env, "$indexOfBytes", 0)?;
    let to = position(args.get(3), env, "$indexOfBytes", text.len())?.min(text.len());
    // Bytes, not text: positions may lie within a character.
    let found = text
        .as_bytes()
        .get(from..to)
        .and_then(|part| find_bytes(part, sought.as_bytes()));
    Ok(found.map_or(-1, |at| (at + from) as i32).into())
}

fn find_bytes(text: &[u8], sought: &[u8]) -> Option<usize> {
    let Some(first) = sought.first() else {
        return Some(0);
    };
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|b| b == first) {
        if text[from + at..].starts_with(sought) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

fn index_of_cp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::String(text) = input.as_ref() else {
        return Err(error(
            40093,
            format!(
                "$indexOfCP requires a string as the first argument, found: {}",
                alias(input.as_ref())
            ),
        ));
    };
    let sought = args[1].eval_ref(env)?;
    let ValueRef::String(sought) = sought.as_ref() else {
        return Err(error(
            40094,
            format!(
                "$indexOfCP requires a string as the second argument, found: {}",
                alias(sought.as_ref())
            ),
        ));
    };
    let from = position(args.get(2), env, "$indexOfCP", 0)?;
    let to = position(args.get(3), env, "$indexOfCP", usize::MAX)?;
    let (Some(start), end) = (byte_of(text, from), byte_of(text, to).unwrap_or(text.len())) else {
        return Ok((-1).into());
    };
    if text.is_empty() && sought.is_empty() {
        return Ok(0.into());
    }
    // Where it begins has to lie in the range, unlike with `$indexOfBytes`, and to be a character: at the end not even nothing is found.
    let found = text.get(start..).and_then(|part| part.find(sought));
    let found = found.filter(|at| start + at < end);
    Ok(found
        .map_or(-1, |at| (text[start..start + at].chars().count() + from) as i32)
        .into())
}

/// The byte at which code point `index` starts; the end for the index after the last; `None` beyond.
fn byte_of(text: &str, index: usize) -> Option<usize> {
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

/// A number as a long the way `$substrBytes` reads it: doubles are cut, decimals rounded, and a decimal that
/// does not fit becomes the smallest long.
fn to_long(value: ValueRef<'_>) -> Result<i64> {
    Ok(match value {
        ValueRef::Int32(v) => i64::from(v),
        ValueRef::Int64(v) => v,
        ValueRef::Decimal128(v) => v.to_i64_rounded().unwrap_or(i64::MIN),
        ValueRef::Double(v) => match nestor_model::number::f64_to_i64_exact(v.trunc()) {
            Some(v) => v,
            None => return Err(error(31109, format!("can't coerce out of range value {v} to long"))),
        },
        _ => 0,
    })
}

fn substr_bytes<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    let start = args[1].eval_ref(env)?;
    let length = args[2].eval_ref(env)?;
    let text = coerce(input.as_ref())?;
    if !start.as_ref().is_number() {
        return Err(error(
            16034,
            format!(
                "$substrBytes: starting index must be a numeric type (is {})",
                alias(start.as_ref())
            ),
        ));
    }
    if !length.as_ref().is_number() {
        return Err(error(
            16035,
            format!(
                "$substrBytes: length must be a numeric type (is {})",
                alias(length.as_ref())
            ),
        ));
    }
    let start = to_long(start.as_ref())?;
    let length = to_long(length.as_ref())?;
    let Ok(start) = usize::try_from(start) else {
        return Err(error(
            50752,
            format!("$substrBytes: starting index must be non-negative (got: {start})"),
        ));
    };
    if start >= text.len() {
        return Ok("".into());
    }
    if !text.is_char_boundary(start) {
        return Err(error(
            28656,
            "$substrBytes: invalid range, starting index is a UTF-8 continuation byte",
        ));
    }
    // A negative length means the rest.
    let end = usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    match text.get(start..end) {
        Some(part) => Ok(part.into()),
        None => Err(error(
            28657,
            "$substrBytes: invalid range, ending index is in the middle of a UTF-8 character",
        )),
    }
}

fn substr_cp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    let start = args[1].eval_ref(env)?;
    let length = args[2].eval_ref(env)?;
    let text = coerce(input.as_ref())?;
    let number = |value: &Val<'_>, what: &str, type_code: i32, whole_code: i32| {
        if !value.as_ref().is_number() {
            let kind = alias(value.as_ref());
            return Err(error(
                type_code,
                format!("$substrCP: {what} must be a numeric type (is {kind})"),
            ));
        }
        whole_i32(value.as_ref()).ok_or_else(|| {
            error(
                whole_code,
                format!("$substrCP: {what} cannot be represented as a 32-bit integer"),
            )
        })
    };
    let start = number(&start, "starting index", 34450, 34451)?;
    let length = number(&length, "length", 34452, 34453)?;
    let Ok(length) = usize::try_from(length) else {
        return Err(error(34454, "$substrCP: length must be a nonnegative integer"));
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(error(
            34455,
            "$substrCP: the starting index must be a nonnegative integer",
        ));
    };
    let Some(from) = byte_of(&text, start) else {
        return Ok("".into());
    };
    let rest = &text[from..];
    let to = byte_of(rest, length).unwrap_or(rest.len());
    Ok(rest[..to].into())
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn positions() {
        check(
            r#"{"s": "aé日b", "n": null}"#,
            &[
                (r#"{"$indexOfBytes": ["$s", "b"]}"#, "6"),
                (r#"{"$indexOfBytes": ["$s", "b", 2]}"#, "6"),
                (r#"{"$indexOfBytes": ["$s", "b", 0, 6]}"#, "-1"),
                (r#"{"$indexOfBytes": ["$s", "", 7]}"#, "7"),
                (r#"{"$indexOfBytes": ["$s", "", 8]}"#, "-1"),
                (r#"{"$indexOfBytes": ["$s", "$n"]}"#, "error 40092"),
                (r#"{"$indexOfBytes": ["$s", "a", -1]}"#, "error 40097"),
                (r#"{"$indexOfCP": ["$s", "b"]}"#, "3"),
                (r#"{"$indexOfCP": ["$s", "b", 3, 9]}"#, "3"),
                (r#"{"$indexOfCP": ["$s", "a", 1]}"#, "-1"),
                (r#"{"$indexOfCP": ["$s", "日b", 0, 3]}"#, "2"),
                (r#"{"$indexOfCP": ["$s", "日b", 0, 2]}"#, "-1"),
                (r#"{"$indexOfCP": ["$s", "", 3]}"#, "3"),
                (r#"{"$indexOfCP": ["$s", "", 4]}"#, "-1"),
                (r#"{"$indexOfCP": ["$s", "", 2, 2]}"#, "-1"),
                (r#"{"$indexOfCP": ["", ""]}"#, "0"),
                (r#"{"$indexOfCP": ["$n", "a"]}"#, "null"),
                (r#"{"$substrBytes": ["$s", 1, 2]}"#, r#""é""#),
                (r#"{"$substrBytes": ["$s", 2, 1]}"#, "error 28656"),
                (r#"{"$substrBytes": ["$s", 1, 1]}"#, "error 28657"),
                (r#"{"$substrBytes": ["$s", 3, -1]}"#, r#""日b""#),
                (r#"{"$substrBytes": [1234, 1, 2]}"#, r#""23""#),
                (r#"{"$substrBytes": ["$s", -1, 2]}"#, "error 50752"),
                (r#"{"$substrCP": ["$s", 1, 2]}"#, r#""é日""#),
                (r#"{"$substrCP": ["$s", 9, 2]}"#, r#""""#),
                (r#"{"$substrCP": ["$s", 0, -1]}"#, "error 34454"),
            ],
        );
    }
}
