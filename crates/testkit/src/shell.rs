//! Values as people write them: the shell's notation, in which every BSON type looks different.
//!
//! ```text
//! {_id: 1, "a.b": Long(2), d: 1.0, l: [null, undefined, MinKey, MaxKey, NaN, -Infinity], s: "text", r: /^a/i,
//!  x: Decimal("1.5"), o: ObjectId("..."), t: Timestamp(1, 2), at: Date("2024-01-01T00:00:00Z"),
//!  b: BinData(0, "0aff"), c: Code("f()"), w: Code("f()", {a: 1}), y: Symbol("s"), p: DBPointer("db.c", ObjectId("..."))}
//! ```
//!
//! Integers without a decimal point are int, or long when they do not fit. Binary data is hexadecimal.

use nestor_model::date::{format_iso, parse_iso};
use nestor_model::{Array, Binary, Decimal128, Document, ObjectId, Regex, Timestamp, Value, ValueRef};
use std::fmt::Write as _;

/// Years 0 to 9999.
const DATES_WRITTEN_OUT: std::ops::Range<i64> = -62_167_219_200_000..253_402_300_800_000;

/// Reads one value; the rest of the text is returned with it.
///
/// # Errors
/// What was expected, and the text where it was not found.
pub fn parse(text: &str) -> Result<(Value, &str), String> {
    let text = text.trim_start();
    let mut chars = text.chars();
    match chars.next() {
        Some('{') => parse_document(chars.as_str()).map(|(doc, rest)| (doc.into(), rest)),
        Some('[') => {
            let mut rest = chars.as_str();
            let mut items = Vec::new();
            while let Some(more) = item_follows(rest, ']')? {
                let (item, after) = parse(more)?;
                items.push(item);
                rest = after;
            }
            Ok((Value::Array(Array::new(items)), after_close(rest, ']')?))
        }
        Some('"') => parse_string(text).map(|(s, rest)| (s.into(), rest)),
        Some('/') => parse_regex(chars.as_str()),
        Some(c) if c.is_ascii_digit() || c == '-' => parse_number(text),
        Some(c) if c.is_ascii_alphabetic() => parse_word(text),
        _ => Err(format!("a value is wanted at: {text}")),
    }
}

/// Reads a document that makes up the whole text.
///
/// # Errors
/// What was expected, and the text where it was not found.
pub fn document(text: &str) -> Result<Document, String> {
    match parse(text)? {
        (Value::Document(doc), rest) if rest.trim().is_empty() => Ok(doc),
        (_, rest) => Err(format!("one document is wanted; left over: {rest}")),
    }
}

/// The text after an optional comma when another item follows, or `None` at the closing bracket.
fn item_follows(text: &str, close: char) -> Result<Option<&str>, String> {
    let text = text.trim_start();
    let text = text.strip_prefix(',').unwrap_or(text).trim_start();
    if text.is_empty() {
        return Err(format!("{close} is wanted at the end"));
    }
    Ok((!text.starts_with(close)).then_some(text))
}

fn after_close(text: &str, close: char) -> Result<&str, String> {
    let text = text.trim_start();
    let text = text.strip_prefix(',').unwrap_or(text).trim_start();
    text.strip_prefix(close)
        .ok_or_else(|| format!("{close} is wanted at: {text}"))
}

fn parse_document(mut rest: &str) -> Result<(Document, &str), String> {
    let mut doc = Document::new();
    while let Some(more) = item_follows(rest, '}')? {
        let (name, after) = if more.starts_with('"') {
            parse_string(more)?
        } else {
            let end = more.find(|c: char| !is_name(c)).unwrap_or(more.len());
            (more[..end].to_owned(), &more[end..])
        };
        let after = after.trim_start();
        let after = after
            .strip_prefix(':')
            .ok_or_else(|| format!("a colon is wanted at: {after}"))?;
        let (value, after) = parse(after)?;
        doc.push(name, value);
        rest = after;
    }
    Ok((doc, after_close(rest, '}')?))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

fn parse_string(text: &str) -> Result<(String, &str), String> {
    let mut out = String::new();
    let mut chars = text.chars();
    chars.next();
    loop {
        match chars.next() {
            None => return Err(format!("the string does not end: {text}")),
            Some('"') => return Ok((out, chars.as_str())),
            Some('\\') => match chars.next() {
                Some('n') => out.push('\n'),
                Some('0') => out.push('\0'),
                Some(c @ ('"' | '\\' | '/')) => out.push(c),
                other => return Err(format!("unknown escape: {other:?}")),
            },
            Some(c) => out.push(c),
        }
    }
}

fn parse_regex(text: &str) -> Result<(Value, &str), String> {
    let end = text
        .char_indices()
        .scan(false, |escaped, (i, c)| {
            let ends = c == '/' && !*escaped;
            *escaped = c == '\\' && !*escaped;
            Some((i, ends))
        })
        .find_map(|(i, ends)| ends.then_some(i))
        .ok_or_else(|| format!("the expression does not end: {text}"))?;
    let rest = &text[end + 1..];
    let options = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let regex = Regex {
        pattern: text[..end].replace("\\/", "/").into(),
        options: rest[..options].into(),
    };
    Ok((Value::Regex(Box::new(regex)), &rest[options..]))
}

fn parse_number(text: &str) -> Result<(Value, &str), String> {
    if let Some(rest) = text.strip_prefix("-Infinity") {
        return Ok((Value::Double(f64::NEG_INFINITY), rest));
    }
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let value = if let Ok(n) = number.parse::<i32>() {
        if number == "-0" {
            Value::Double(-0.0)
        } else {
            Value::Int32(n)
        }
    } else if let Ok(n) = number.parse() {
        Value::Int64(n)
    } else {
        Value::Double(number.parse().map_err(|_| format!("a number is wanted at: {text}"))?)
    };
    Ok((value, rest))
}

fn parse_word(text: &str) -> Result<(Value, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let constant = match word {
        "null" => Value::Null,
        "undefined" => Value::Undefined,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "NaN" => Value::Double(f64::NAN),
        "Infinity" => Value::Double(f64::INFINITY),
        "MinKey" => Value::MinKey,
        "MaxKey" => Value::MaxKey,
        _ => {
            let rest = rest.strip_prefix('(').ok_or_else(|| format!("unknown word: {text}"))?;
            let mut rest = rest;
            let mut args = Vec::new();
            while let Some(more) = item_follows(rest, ')')? {
                let (arg, after) = parse(more)?;
                args.push(arg);
                rest = after;
            }
            return Ok((call(word, &args)?, after_close(rest, ')')?));
        }
    };
    Ok((constant, rest))
}

fn call(name: &str, args: &[Value]) -> Result<Value, String> {
    let wrong = || format!("wrong arguments of {name}: {args:?}");
    Ok(match (name, args) {
        ("Long", [Value::Int32(n)]) => Value::Int64(i64::from(*n)),
        ("Long", [Value::Int64(n)]) => Value::Int64(*n),
        ("Decimal", [Value::String(s)]) => Value::Decimal128(Decimal128::parse(s).ok_or_else(wrong)?.0),
        ("ObjectId", [Value::String(s)]) => Value::ObjectId(ObjectId::parse(s).ok_or_else(wrong)?),
        ("Timestamp", [Value::Int32(secs), Value::Int32(inc)]) => Value::Timestamp(Timestamp {
            secs: *secs as u32,
            inc: *inc as u32,
        }),
        ("Date", [Value::String(s)]) => Value::DateTime(parse_iso(s).ok_or_else(wrong)?),
        ("Date", [Value::Int32(n)]) => Value::DateTime(i64::from(*n)),
        ("Date", [Value::Int64(n)]) => Value::DateTime(*n),
        ("BinData", [Value::Int32(subtype), Value::String(hex)]) => Value::Binary(Binary {
            subtype: u8::try_from(*subtype).map_err(|_| wrong())?,
            bytes: unhex(hex).ok_or_else(wrong)?.into(),
        }),
        ("Code", [Value::String(s)]) => Value::Code(s.clone()),
        ("Code", [Value::String(s), Value::Document(scope)]) => {
            Value::CodeWithScope(Box::new((s.clone(), scope.clone())))
        }
        ("Symbol", [Value::String(s)]) => Value::Symbol(s.clone()),
        ("DBPointer", [Value::String(ns), Value::ObjectId(id)]) => Value::DbPointer(Box::new((ns.clone(), *id))),
        _ => return Err(wrong()),
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |i: usize| text.get(i..i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Prints a value so that [`parse`] reads it back.
pub fn print<'a>(value: impl Into<ValueRef<'a>>) -> String {
    let mut out = String::new();
    write(value.into(), &mut out);
    out
}

fn write(value: ValueRef<'_>, out: &mut String) {
    let quoted = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", escaped.replace('\n', "\\n").replace('\0', "\\0"))
    };
    let text = match value {
        ValueRef::Missing => "missing".into(),
        ValueRef::Document(doc) => {
            out.push('{');
            for (i, (name, value)) in doc.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                if !name.is_empty() && name.chars().all(is_name) {
                    out.push_str(name);
                } else {
                    out.push_str(&quoted(name));
                }
                out.push_str(": ");
                write(value, out);
            }
            "}".into()
        }
        ValueRef::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write(item, out);
            }
            "]".into()
        }
        ValueRef::Double(v) if v.is_infinite() => if v > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        ValueRef::Double(v) => format!("{v:?}"),
        ValueRef::String(v) => quoted(v),
        ValueRef::Binary { subtype, bytes } => {
            let hex = bytes.iter().fold(String::new(), |mut hex, b| {
                write!(hex, "{b:02x}").expect("strings take everything");
                hex
            });
            format!("BinData({subtype}, \"{hex}\")")
        }
        ValueRef::Undefined => "undefined".into(),
        ValueRef::ObjectId(v) => format!("ObjectId(\"{v}\")"),
        ValueRef::Bool(v) => v.to_string(),
        ValueRef::DateTime(v) if DATES_WRITTEN_OUT.contains(&v) => format!("Date(\"{}\")", format_iso(v)),
        ValueRef::DateTime(v) => format!("Date({v})"),
        ValueRef::Null => "null".into(),
        ValueRef::Regex { pattern, options } => format!("/{}/{options}", pattern.replace('/', "\\/")),
        ValueRef::DbPointer { namespace, id } => format!("DBPointer({}, ObjectId(\"{id}\"))", quoted(namespace)),
        ValueRef::Code(v) => format!("Code({})", quoted(v)),
        ValueRef::Symbol(v) => format!("Symbol({})", quoted(v)),
        ValueRef::CodeWithScope { code, scope } => {
            format!("Code({}, {})", quoted(code), print(ValueRef::Document(scope)))
        }
        ValueRef::Int32(v) => v.to_string(),
        ValueRef::Timestamp(v) => format!("Timestamp({}, {})", v.secs, v.inc),
        ValueRef::Int64(v) => format!("Long({v})"),
        ValueRef::Decimal128(v) => format!("Decimal(\"{v}\")"),
        ValueRef::MinKey => "MinKey".into(),
        ValueRef::MaxKey => "MaxKey".into(),
    };
    out.push_str(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let text = concat!(
            r#"{_id: 1, "a.b": Long(2), d: 1.0, l: [null, undefined, MinKey, MaxKey, NaN, -Infinity], s: "a\"b", "#,
            r#"r: /^a\/b/i, x: Decimal("1.50"), o: ObjectId("507f1f77bcf86cd799439011"), t: Timestamp(1, 2), "#,
            r#"at: Date("2024-01-01T00:00:00.000Z"), b: BinData(0, "0aff"), w: Code("f()", {a: -0.0}), y: Symbol("s"), "#,
            r#"e: {}, f: [], big: Long(5000000000), g: true}"#
        );
        let doc = document(text).expect("parses");
        assert_eq!(print(&Value::Document(doc)), text);
    }

    #[test]
    fn faults_are_told() {
        for bad in ["{a 1}", "{a: 1", "[1, 2", "{a: nonsense}", "{a: 1} {b: 1}", "\"open"] {
            assert!(document(bad).is_err(), "{bad}");
        }
    }
}
