//! MongoDB Extended JSON v2, canonical and relaxed; the v1 spellings are read too.
//!
//! Source: MongoDB Extended JSON specification. Numbers without a wrapper: integers become int or long by
//! size, all others doubles. A `$` key that is no wrapper, or a wrapper of the wrong shape, is an error for
//! the known names and a plain field for unknown ones.

use crate::date::{format_iso, parse_iso};
use crate::value::{Binary, DocRef, Regex};
use crate::{Array, Decimal128, Document, ObjectId, Str, Timestamp, Value, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::fmt;
use std::fmt::Write as _;

/// Why text is not Extended JSON, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// Byte offset in the text.
    pub offset: usize,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}", self.reason, self.offset)
    }
}

impl std::error::Error for JsonError {}

/// Which form to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Every type is told apart.
    Canonical,
    /// Plain numbers and readable dates where nothing a person cares for is lost.
    Relaxed,
}

const DEPTH_MAX: usize = 200;

/// Reads one value that makes up the whole text.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let (value, end) = parse_prefix(text)?;
    match text[end..].trim_start_matches(WHITE) {
        "" => Ok(value),
        rest => Err(JsonError {
            offset: text.len() - rest.len(),
            reason: "text after the value".into(),
        }),
    }
}

/// Reads one value at the start of the text (white space before it is skipped) and tells where it ended.
pub fn parse_prefix(text: &str) -> Result<(Value, usize), JsonError> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    Ok((value, parser.at))
}

/// Reads one document that makes up the whole text.
pub fn parse_document(text: &str) -> Result<Document, JsonError> {
    match parse(text)? {
        Value::Document(doc) => Ok(doc),
        other => Err(JsonError {
            offset: 0,
            reason: format!("{} where a document is wanted", other.bson_type().alias()),
        }),
    }
}

const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T, JsonError> {
        Err(JsonError {
            offset: self.at,
            reason: reason.into(),
        })
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        self.fail(format!("expected '{}'", byte as char))
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if depth > DEPTH_MAX {
            return self.fail("nested too deep");
        }
        match self.peek() {
            None => self.fail("text ends where a value is wanted"),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::String(self.string()?.into())),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        for (word, value) in [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
        ] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        for (word, value) in [("NaN", f64::NAN), ("Infinity", f64::INFINITY)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(Value::Double(value));
            }
        }
        self.fail("unexpected character")
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let rest = &self.text[self.at..];
        if rest.starts_with("-Infinity") {
            self.at += 9;
            return Ok(Value::Double(f64::NEG_INFINITY));
        }
        let end = rest
            .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        let token = &rest[..end];
        let digits = token.strip_prefix('-').unwrap_or(token);
        if !digits.starts_with(|c: char| c.is_ascii_digit())
            || (digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit())
        {
            return self.fail("not a number");
        }
        let value = if digits.bytes().all(|b| b.is_ascii_digit()) {
            match token.parse::<i64>() {
                Ok(n) => i32::try_from(n).map_or(Value::Int64(n), Value::Int32),
                Err(_) => Value::Double(token.parse().or_else(|_| self.fail("not a number"))?),
            }
        } else {
            Value::Double(token.parse().or_else(|_| self.fail("not a number"))?)
        };
        self.at += end;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(items.into());
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(Array::new(items)));
                }
                _ => return self.fail("expected ',' or ']'"),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let start = self.at;
        self.expect(b'{')?;
        let mut fields: Vec<(Str, Value)> = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Document::new().into());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("expected a field name");
            }
            let name = self.string()?;
            if name.contains('\0') {
                return self.fail("field name with a zero character");
            }
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            fields.push((name.into(), value));
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                _ => return self.fail("expected ',' or '}'"),
            }
        }
        match unwrap(&fields) {
            None => Ok(Value::Document(fields.into_iter().collect())),
            Some(Ok(value)) => Ok(value),
            Some(Err(reason)) => Err(JsonError { offset: start, reason }),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.expect(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20) else {
                return self.fail("string not closed");
            };
            out.push_str(&rest[..stop]);
            self.at += stop;
            match self.text.as_bytes()[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => self.escape(&mut out)?,
                _ => return self.fail("control character in a string"),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let Some(kind) = self.text.as_bytes().get(self.at + 1).copied() else {
            return self.fail("string not closed");
        };
        let plain = match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 2;
                let c = self.unicode()?;
                out.push(c);
                return Ok(());
            }
            _ => return self.fail("unknown escape"),
        };
        self.at += 2;
        out.push(plain);
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        match self.text.get(self.at..self.at + 4) {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                self.at += 4;
                Ok(u32::from_str_radix(digits, 16).expect("hexadecimal digits"))
            }
            _ => self.fail("\\u wants four hexadecimal digits"),
        }
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.hex4()?;
        let code = if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.hex4()?;
            if !(0xDC00..0xE000).contains(&second) {
                return self.fail("half of a surrogate pair");
            }
            0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
        } else {
            first
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.fail("half of a surrogate pair"),
        }
    }
}

type Fields<'a> = &'a [(Str, Value)];

/// The wrapped value when the object is a type wrapper: `None` for a plain document.
fn unwrap(fields: Fields<'_>) -> Option<Result<Value, String>> {
    let (first, value) = fields.first()?;
    if !(first.starts_with('$') || fields.len() == 2 && fields[1].0.starts_with('$')) {
        return None;
    }
    let text = value.as_str();
    let only = |read: Option<Value>| {
        Some(if fields.len() == 1 {
            read.ok_or(format!("bad {first}"))
        } else {
            Err(format!("extra fields beside {first}"))
        })
    };
    match first.as_str() {
        "$oid" => only(text.and_then(ObjectId::parse).map(Value::ObjectId)),
        "$symbol" => only(text.map(|t| Value::Symbol(t.into()))),
        "$numberInt" => only(text.and_then(|t| t.parse().ok()).map(Value::Int32)),
        "$numberLong" => only(text.and_then(|t| t.parse().ok()).map(Value::Int64)),
        "$numberDouble" => only(text.and_then(parse_double).map(Value::Double)),
        "$numberDecimal" => only(text.and_then(Decimal128::parse).map(|(d, _)| Value::Decimal128(d))),
        "$undefined" => only(matches!(value, Value::Bool(true)).then_some(Value::Undefined)),
        "$minKey" => only(matches!(value, Value::Int32(1)).then_some(Value::MinKey)),
        "$maxKey" => only(matches!(value, Value::Int32(1)).then_some(Value::MaxKey)),
        "$date" => only(read_date(value)),
        "$uuid" => only(text.and_then(parse_uuid)),
        "$timestamp" => only(read_timestamp(value)),
        "$regularExpression" => only(read_regex(value)),
        "$dbPointer" => only(read_db_pointer(value)),
        "$binary" if matches!(value, Value::Document(_)) => only(read_binary(value)),
        "$code" | "$scope" => Some(read_code(fields).ok_or_else(|| "bad $code".into())),
        "$binary" | "$type" => read_legacy_binary(fields),
        // `{$regex: ..., $options: ...}` is the query operator and stays a document, as the specification says.
        _ => None,
    }
}

fn parse_double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        // Rust reads words such as "inf" too, the specification doesn't.
        _ if text.bytes().any(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

fn read_date(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => parse_iso(text).map(Value::DateTime),
        Value::Int64(ms) => Some(Value::DateTime(*ms)),
        Value::Int32(ms) => Some(Value::DateTime(i64::from(*ms))),
        _ => None,
    }
}

fn exactly<const N: usize>(value: &Value, names: [&str; N]) -> Option<[Value; N]> {
    let doc = value.as_document()?;
    if doc.len() != N {
        return None;
    }
    let mut out = [const { Value::Missing }; N];
    for (slot, name) in out.iter_mut().zip(names) {
        *slot = doc.get(name)?.to_value();
    }
    Some(out)
}

fn u32_of(value: &Value) -> Option<u32> {
    match value {
        Value::Int32(n) => u32::try_from(*n).ok(),
        Value::Int64(n) => u32::try_from(*n).ok(),
        _ => None,
    }
}

fn read_timestamp(value: &Value) -> Option<Value> {
    let [secs, inc] = exactly(value, ["t", "i"])?;
    Some(Value::Timestamp(Timestamp {
        secs: u32_of(&secs)?,
        inc: u32_of(&inc)?,
    }))
}

fn make_regex(pattern: &str, options: &str) -> Option<Value> {
    if pattern.contains('\0') || options.contains('\0') {
        return None;
    }
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    Some(Value::Regex(Box::new(Regex {
        pattern: pattern.into(),
        options: letters.into_iter().collect(),
    })))
}

fn read_regex(value: &Value) -> Option<Value> {
    let [pattern, options] = exactly(value, ["pattern", "options"])?;
    make_regex(pattern.as_str()?, options.as_str()?)
}

fn read_db_pointer(value: &Value) -> Option<Value> {
    let [namespace, id] = exactly(value, ["$ref", "$id"])?;
    match id {
        Value::ObjectId(id) => Some(Value::DbPointer(Box::new((namespace.as_str()?.into(), id)))),
        _ => None,
    }
}

fn read_binary(value: &Value) -> Option<Value> {
    let [bytes, subtype] = exactly(value, ["base64", "subType"])?;
    make_binary(bytes.as_str()?, subtype.as_str()?)
}

fn make_binary(base64: &str, subtype: &str) -> Option<Value> {
    if subtype.is_empty() || subtype.len() > 2 {
        return None;
    }
    let subtype = u8::from_str_radix(subtype, 16).ok()?;
    let mut bytes = BASE64.decode(base64).ok()?;
    if subtype == 2 {
        // The old subtype repeats its length inside.
        let mut old = (i32::try_from(bytes.len()).ok()?).to_le_bytes().to_vec();
        old.append(&mut bytes);
        bytes = old;
    }
    Some(Value::Binary(Binary {
        subtype,
        bytes: bytes.into(),
    }))
}

fn read_legacy_binary(fields: Fields<'_>) -> Option<Result<Value, String>> {
    let get = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    if fields.len() != 2 {
        return None;
    }
    let bytes = get("$binary")?.as_str()?;
    let subtype = match get("$type")? {
        Value::String(text) => text.clone(),
        Value::Int32(n) => smol_str::format_smolstr!("{n:02x}"),
        _ => return Some(Err("bad $binary".into())),
    };
    Some(make_binary(bytes, &subtype).ok_or_else(|| "bad $binary".into()))
}

fn read_code(fields: Fields<'_>) -> Option<Value> {
    let get = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let code: Str = get("$code")?.as_str()?.into();
    match (fields.len(), get("$scope")) {
        (1, None) => Some(Value::Code(code)),
        (2, Some(Value::Document(scope))) => Some(Value::CodeWithScope(Box::new((code, scope.clone())))),
        _ => None,
    }
}

fn parse_uuid(text: &str) -> Option<Value> {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    if groups != [8, 4, 4, 4, 12] {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let mut bytes = [0u8; 16];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(i * 2..i * 2 + 2)?;
        if !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(Value::Binary(Binary {
        subtype: 4,
        bytes: bytes.as_slice().into(),
    }))
}

/// Prints a value.
pub fn to_string<'a>(value: impl Into<ValueRef<'a>>, form: Form) -> String {
    let mut out = String::new();
    print(value.into(), form, &mut out);
    out
}

/// Prints a value at the end of `out`.
pub fn print(value: ValueRef<'_>, form: Form, out: &mut String) {
    print_within(value, form, usize::MAX, out);
}

/// The beginning of the text of a document with these fields: `bytes_max` bytes, or fewer where that would cut a character. What
/// follows costs nothing.
pub fn beginning<'a>(fields: impl Iterator<Item = (&'a str, ValueRef<'a>)>, form: Form, bytes_max: usize) -> String {
    let mut out = String::new();
    print_fields(fields, form, bytes_max, &mut out);
    let mut end = bytes_max.min(out.len());
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    out
}

/// Prints a value, of which only the first `max` bytes of `out` matter: strings, arrays and documents end there.
fn print_within(value: ValueRef<'_>, form: Form, max: usize, out: &mut String) {
    let relaxed = form == Form::Relaxed;
    // Writing to a String cannot fail.
    let _ = match value {
        ValueRef::Missing | ValueRef::Undefined => write!(out, r#"{{"$undefined":true}}"#),
        ValueRef::Null => write!(out, "null"),
        ValueRef::Bool(v) => write!(out, "{v}"),
        ValueRef::Int32(v) if relaxed => write!(out, "{v}"),
        ValueRef::Int32(v) => write!(out, r#"{{"$numberInt":"{v}"}}"#),
        ValueRef::Int64(v) if relaxed => write!(out, "{v}"),
        ValueRef::Int64(v) => write!(out, r#"{{"$numberLong":"{v}"}}"#),
        ValueRef::Double(v) if relaxed && v.is_finite() => write!(out, "{v:?}"),
        ValueRef::Double(v) => write!(out, r#"{{"$numberDouble":"{}"}}"#, double_text(v)),
        ValueRef::Decimal128(v) => write!(out, r#"{{"$numberDecimal":"{v}"}}"#),
        ValueRef::String(v) => {
            print_string(v, max, out);
            Ok(())
        }
        ValueRef::Symbol(v) => wrapped_string("$symbol", v, max, out),
        ValueRef::Code(v) => wrapped_string("$code", v, max, out),
        ValueRef::CodeWithScope { code, scope } => {
            out.push_str(r#"{"$code":"#);
            print_string(code, max, out);
            out.push_str(r#","$scope":"#);
            print_document(scope, form, max, out);
            write!(out, "}}")
        }
        ValueRef::ObjectId(v) => write!(out, r#"{{"$oid":"{v}"}}"#),
        ValueRef::DateTime(v) if relaxed && (0..253_402_300_800_000).contains(&v) => {
            write!(out, r#"{{"$date":"{}"}}"#, format_iso(v).replace(".000Z", "Z"))
        }
        ValueRef::DateTime(v) => write!(out, r#"{{"$date":{{"$numberLong":"{v}"}}}}"#),
        ValueRef::Timestamp(v) => write!(out, r#"{{"$timestamp":{{"t":{},"i":{}}}}}"#, v.secs, v.inc),
        ValueRef::Regex { pattern, options } => {
            out.push_str(r#"{"$regularExpression":{"pattern":"#);
            print_string(pattern, max, out);
            out.push_str(r#","options":"#);
            print_string(options, max, out);
            write!(out, "}}}}")
        }
        ValueRef::Binary { subtype, bytes } => {
            let bytes = if subtype == 2 && bytes.len() >= 4 {
                &bytes[4..]
            } else {
                bytes
            };
            let bytes = &bytes[..bytes.len().min(max)];
            write!(
                out,
                r#"{{"$binary":{{"base64":"{}","subType":"{subtype:02x}"}}}}"#,
                BASE64.encode(bytes)
            )
        }
        ValueRef::DbPointer { namespace, id } => {
            out.push_str(r#"{"$dbPointer":{"$ref":"#);
            print_string(namespace, max, out);
            write!(out, r#","$id":{{"$oid":"{id}"}}}}}}"#)
        }
        ValueRef::MinKey => write!(out, r#"{{"$minKey":1}}"#),
        ValueRef::MaxKey => write!(out, r#"{{"$maxKey":1}}"#),
        ValueRef::Document(doc) => {
            print_document(doc, form, max, out);
            Ok(())
        }
        ValueRef::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                print_within(item, form, max, out);
                if out.len() >= max {
                    break;
                }
            }
            out.push(']');
            Ok(())
        }
    };
}

fn wrapped_string(name: &str, text: &str, max: usize, out: &mut String) -> fmt::Result {
    write!(out, r#"{{"{name}":"#)?;
    print_string(text, max, out);
    out.write_char('}')
}

fn double_text(v: f64) -> String {
    if v.is_nan() {
        "NaN".into()
    } else if v.is_infinite() {
        if v > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        format!("{v:?}")
    }
}

fn print_document(doc: DocRef<'_>, form: Form, max: usize, out: &mut String) {
    print_fields(doc.iter(), form, max, out);
}

fn print_fields<'a>(fields: impl Iterator<Item = (&'a str, ValueRef<'a>)>, form: Form, max: usize, out: &mut String) {
    out.push('{');
    for (i, (name, value)) in fields.enumerate() {
        if i > 0 {
            out.push(',');
        }
        print_string(name, max, out);
        out.push(':');
        print_within(value, form, max, out);
        if out.len() >= max {
            break;
        }
    }
    out.push('}');
}

fn print_string(text: &str, max: usize, out: &mut String) {
    out.push('"');
    // No character takes less than a byte of the text.
    for c in text.chars().take(max.saturating_sub(out.len())) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_round_trips() {
        for text in [
            r#"{"a":{"$numberInt":"1"},"b":[{"$numberLong":"2"},{"$numberDouble":"1.5"}],"c":null}"#,
            r#"{"a":{"$oid":"507f1f77bcf86cd799439011"},"b":{"$date":{"$numberLong":"-1"}}}"#,
            r#"{"$numberDouble":"-0.0"}"#,
            r#"{"$numberDouble":"NaN"}"#,
            r#"{"$numberDecimal":"1.10"}"#,
            r#"{"$binary":{"base64":"AQI=","subType":"80"}}"#,
            r#"{"$binary":{"base64":"AQI=","subType":"02"}}"#,
            r#"{"$regularExpression":{"pattern":"a\"b","options":"im"}}"#,
            r#"{"$timestamp":{"t":4294967295,"i":1}}"#,
            r#"{"$code":"f","$scope":{"x":{"$numberInt":"1"}}}"#,
            r#"{"$code":"f"}"#,
            r#"{"$symbol":"s"}"#,
            r#"{"$dbPointer":{"$ref":"b","$id":{"$oid":"507f1f77bcf86cd799439011"}}}"#,
            r#"[{"$minKey":1},{"$maxKey":1},{"$undefined":true}]"#,
            r#"{"$regex":"a","$options":"i"}"#,
            r#"{"$ref":"c","$id":{"$numberInt":"1"},"$db":"d"}"#,
            r#""é\u0001\n""#,
        ] {
            let value = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(to_string(&value, Form::Canonical), text);
        }
    }

    #[test]
    fn the_beginning_of_a_text() {
        let value = parse(r#"{"a":["xé",{"b":{"$binary":{"base64":"AQIDBA==","subType":"00"}}},1.5],"c":"yy"}"#)
            .expect("valid JSON");
        let whole = to_string(&value, Form::Relaxed);
        let fields = value.as_document().expect("a document");
        for max in 0..=whole.len() + 1 {
            let found = beginning(fields.iter(), Form::Relaxed, max);
            assert!(whole.starts_with(&found), "{found}");
            assert!(
                (max.saturating_sub(1)..=max).contains(&found.len()) || found == whole,
                "{max}: {found}"
            );
        }
        let long = Value::from(vec![Value::from("é".repeat(1 << 20)), Value::from("x")]);
        let mut out = String::new();
        print_within(long.as_ref(), Form::Relaxed, 100, &mut out);
        assert!((100..400).contains(&out.len()), "{}", out.len());
    }

    #[test]
    fn relaxed_text() {
        let value =
            parse(r#"{"a": 1, "b": 2147483648, "c": 1.0, "d": {"$date": "2012-12-24T12:15:30.501Z"}, "e": 1e3}"#)
                .expect("valid");
        assert_eq!(
            to_string(&value, Form::Relaxed),
            r#"{"a":1,"b":2147483648,"c":1.0,"d":{"$date":"2012-12-24T12:15:30.501Z"},"e":1000.0}"#
        );
        assert_eq!(parse(r#""\ud83d\ude00""#).expect("valid").as_str(), Some("😀"));
        assert_eq!(
            format!(
                "{:?}",
                parse(r#"{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#).expect("valid")
            ),
            "BinData(4, 73ffd26444b34c6990e8e7d1dfc035d4)"
        );
    }

    #[test]
    fn broken_text_tells_where() {
        for (text, offset) in [
            ("{", 1),
            ("{\"a\":}", 5),
            ("[1,]", 3),
            ("{\"a\":1} x", 8),
            ("\"a", 1),
            ("{\"$oid\":\"x\"}", 0),
            ("{\"$numberInt\":1}", 0),
            ("01", 0),
            ("-", 0),
            ("\"\\ud800\"", 7),
            ("{\"a\\u0000\":1}", 10),
            ("nul", 0),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {error}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).is_err());
    }
}
