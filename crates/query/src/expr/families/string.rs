//! Strings as wholes: `$concat`, lengths, case, comparison, splitting, replacing, trimming.

use super::text::coerce;
use crate::env::{Env, RESULT_BYTES_MAX, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::statement::{BYTES_PER_UNIT, charge, work};
use nestor_model::{Error, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::variadic("$concat", concat),
    OpDef::fixed("$strLenBytes", 1, str_len_bytes),
    OpDef::fixed("$strLenCP", 1, str_len_cp),
    OpDef::fixed("$toLower", 1, to_lower),
    OpDef::fixed("$toUpper", 1, to_upper),
    OpDef::fixed("$strcasecmp", 2, strcasecmp),
    OpDef::fixed("$split", 2, split),
    OpDef::custom("$replaceOne", parse_replace_one),
    OpDef::custom("$replaceAll", parse_replace_all),
    OpDef::custom("$trim", parse_trim),
    OpDef::custom("$ltrim", parse_trim),
    OpDef::custom("$rtrim", parse_trim),
];

fn alias(v: ValueRef<'_>) -> &'static str {
    v.bson_type().alias()
}

/// The error when a string reaches the size of the largest document.
pub(crate) fn check_size(bytes: usize) -> Result<()> {
    if bytes >= RESULT_BYTES_MAX {
        return Err(error(
            16493,
            format!("string of {bytes} bytes exceeds the limit of {RESULT_BYTES_MAX}"),
        ));
    }
    Ok(())
}

fn concat<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut out = String::new();
    for arg in args {
        let value = arg.eval_ref(env)?;
        match value.as_ref() {
            ValueRef::String(text) => {
                work(text.len() / BYTES_PER_UNIT)?;
                out.push_str(text);
            }
            other if other.is_nullish() => return Ok(Val::NULL),
            other => {
                return Err(error(
                    16702,
                    format!("$concat only supports strings, not {}", alias(other)),
                ));
            }
        }
        check_size(out.len())?;
    }
    Ok(out.into())
}

fn str_len_bytes<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::String(text) => Ok((text.len() as i32).into()),
        other => Err(error(
            34473,
            format!("$strLenBytes requires a string argument, found: {}", alias(other)),
        )),
    }
}

fn str_len_cp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    match value.as_ref() {
        ValueRef::String(text) => Ok((text.chars().count() as i32).into()),
        other => Err(error(
            34471,
            format!("$strLenCP requires a string argument, found: {}", alias(other)),
        )),
    }
}

fn to_lower<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    let text = coerce(value.as_ref())?;
    Ok(text.to_ascii_lowercase().into())
}

fn to_upper<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    let text = coerce(value.as_ref())?;
    Ok(text.to_ascii_uppercase().into())
}

fn strcasecmp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    let left = coerce(left.as_ref())?.to_ascii_uppercase();
    let right = coerce(right.as_ref())?.to_ascii_uppercase();
    Ok((left.as_bytes().cmp(right.as_bytes()) as i32).into())
}

fn split<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    let separator = args[1].eval_ref(env)?;
    if input.is_nullish() || separator.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::String(text) = input.as_ref() else {
        return Err(error(
            40085,
            format!(
                "$split requires a string as its first argument, found: {}",
                alias(input.as_ref())
            ),
        ));
    };
    let ValueRef::String(separator) = separator.as_ref() else {
        return Err(error(
            10_503_900,
            format!(
                "$split requires a string as its second argument, found: {}",
                alias(separator.as_ref())
            ),
        ));
    };
    if separator.is_empty() {
        return Err(error(40087, "$split requires a non-empty separator"));
    }
    let mut parts = Vec::new();
    for part in text.split(separator) {
        let part = Value::from(part);
        work(1)?;
        charge(part.weight())?;
        parts.push(part);
    }
    Ok(Value::from(parts).into())
}

fn parse_replace(
    name: &'static str,
    value: ValueRef<'_>,
    scope: &mut Scope,
    eval: crate::expr::EvalFn,
) -> Result<Expr> {
    let args = Named {
        not_object: 51751,
        unknown: 51750,
        fields: &[
            ("input", Some(51749)),
            ("find", Some(51748)),
            ("replacement", Some(51747)),
        ],
    }
    .parse(name, value, scope)?;
    Expr::call_of(name, eval, args)
}

fn parse_replace_one(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    parse_replace(name, value, scope, |args, env| {
        replace(args, env, "$replaceOne", |text, find, with| {
            text.replacen(find, with, 1)
        })
    })
}

fn parse_replace_all(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    parse_replace(name, value, scope, |args, env| {
        replace(args, env, "$replaceAll", |text, find, with| text.replace(find, with))
    })
}

fn replace<'a>(
    args: &'a [Expr],
    env: &mut Env<'a>,
    op: &str,
    replaced: fn(&str, &str, &str) -> String,
) -> Result<Val<'a>> {
    const ARGUMENTS: [(&str, i32); 3] = [("input", 10_503_904), ("find", 10_503_901), ("replacement", 10_503_902)];
    let mut values = [Val::NULL, Val::NULL, Val::NULL];
    let mut null = false;
    for ((slot, arg), (argument, code)) in values.iter_mut().zip(args).zip(ARGUMENTS) {
        let value = arg.eval_ref(env)?;
        match value.as_ref() {
            ValueRef::String(_) => {}
            other if other.is_nullish() => null = true,
            other => {
                return Err(error(
                    code,
                    format!("{op} requires that '{argument}' be a string, found: {}", alias(other)),
                ));
            }
        }
        *slot = value;
    }
    match [values[0].as_ref(), values[1].as_ref(), values[2].as_ref()] {
        [ValueRef::String(text), ValueRef::String(find), ValueRef::String(with)] if !null => {
            let grown = with.len().saturating_sub(find.len()) as u64;
            work((text.len() + with.len()) / BYTES_PER_UNIT)?;
            if grown > 0 && text.len() as u64 + grown * text.matches(find).count() as u64 > RESULT_BYTES_MAX as u64 {
                check_size(RESULT_BYTES_MAX)?;
            }
            Ok(replaced(text, find, with).into())
        }
        _ => Ok(Val::NULL),
    }
}

type TrimFn = for<'t> fn(&'t str, &dyn Fn(char) -> bool) -> &'t str;

fn trim_both<'t>(text: &'t str, set: &dyn Fn(char) -> bool) -> &'t str {
    text.trim_matches(set)
}

fn trim_left<'t>(text: &'t str, set: &dyn Fn(char) -> bool) -> &'t str {
    text.trim_start_matches(set)
}

fn trim_right<'t>(text: &'t str, set: &dyn Fn(char) -> bool) -> &'t str {
    text.trim_end_matches(set)
}

fn parse_trim(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let args = Named {
        not_object: 50696,
        unknown: 50694,
        fields: &[("input", Some(50695)), ("chars", None)],
    }
    .parse(name, value, scope)?;
    let eval: crate::expr::EvalFn = match name {
        "$trim" => |args, env| trim(args, env, "$trim", trim_both),
        "$ltrim" => |args, env| trim(args, env, "$ltrim", trim_left),
        _ => |args, env| trim(args, env, "$rtrim", trim_right),
    };
    Expr::call_of(name, eval, args)
}

/// The characters that are trimmed when none are given: the documented whitespace.
fn is_whitespace(c: char) -> bool {
    matches!(
        c,
        '\0' | ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
    )
}

fn trim<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str, cut: TrimFn) -> Result<Val<'a>> {
    let input = args[0].eval_ref(env)?;
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    let ValueRef::String(text) = input.as_ref() else {
        return Err(error(
            50699,
            format!("{op} requires its input to be a string, got {}", alias(input.as_ref())),
        ));
    };
    if args[1].is_absent() {
        return Ok(cut(text, &is_whitespace).into());
    }
    let chars = args[1].eval_ref(env)?;
    match chars.as_ref() {
        ValueRef::String(chars) => Ok(cut(text, &|c| chars.contains(c)).into()),
        other if other.is_nullish() => Ok(Val::NULL),
        other => Err(error(
            50700,
            format!("{op} requires 'chars' to be a string, got {}", alias(other)),
        )),
    }
}

/// A string literal of an expression must be storable.
pub(crate) fn check_literal(value: ValueRef<'_>) -> Result<(), Error> {
    match value {
        ValueRef::String(text) => check_size(text.len()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn whole_strings() {
        check(
            r#"{"s": "Héllo", "n": null}"#,
            &[
                (r#"{"$concat": ["a", "$s", "b"]}"#, r#""aHéllob""#),
                (r#"{"$concat": ["a", "$n", 1]}"#, "null"),
                (r#"{"$concat": ["a", 1]}"#, "error 16702"),
                (r#"{"$strLenBytes": "$s"}"#, "6"),
                (r#"{"$strLenCP": "$s"}"#, "5"),
                (r#"{"$strLenCP": "$n"}"#, "error 34471"),
                (r#"{"$toUpper": "$s"}"#, r#""HéLLO""#),
                (r#"{"$toUpper": "$n"}"#, r#""""#),
                (r#"{"$toLower": [["A"]]}"#, "error 16007"),
                (r#"{"$strcasecmp": ["a", "B"]}"#, "-1"),
                (r#"{"$split": ["a-b-", "-"]}"#, r#"["a", "b", ""]"#),
                (r#"{"$split": ["a", ""]}"#, "error 40087"),
                (
                    r#"{"$replaceOne": {"input": "aa", "find": "a", "replacement": "b"}}"#,
                    r#""ba""#,
                ),
                (
                    r#"{"$replaceAll": {"input": "ab", "find": "", "replacement": "-"}}"#,
                    r#""-a-b-""#,
                ),
                (
                    r#"{"$replaceAll": {"input": 1, "find": null, "replacement": ""}}"#,
                    "error 10503904",
                ),
                (r#"{"$trim": {"input": " \u0000a b\n"}}"#, r#""a b""#),
                (r#"{"$ltrim": {"input": "xxaxx", "chars": "x"}}"#, r#""axx""#),
                (r#"{"$rtrim": {"input": 5}}"#, "error 50699"),
            ],
        );
    }
}
