//! JSON as text and as values.

pub mod order;
pub mod raw;

use super::style::Style;
use super::{datetime, numeric};
use crate::error::{error, fail};
use nestor_model::{Array, Document, Result, Value, ValueRef};
use std::fmt::Write as _;

/// Levels that JSON may nest.
const DEPTH_MAX: usize = 150;

/// Reads JSON. At the top JSON's null is `Undefined`, within it is `Null`.
///
/// Errors: 22P02.
pub fn parse(text: &str) -> Result<Value> {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    let value = parser.value(0)?;
    parser.space();
    if parser.at < parser.bytes.len() {
        return Err(parser.wrong());
    }
    Ok(match value {
        Value::Null => Value::Undefined,
        value => value,
    })
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl Parser<'_> {
    fn wrong(&self) -> nestor_model::Error {
        error("22P02", "invalid input syntax for type json")
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return fail("54001", "JSON nests too deep");
        }
        self.space();
        match self.bytes.get(self.at) {
            Some(b'{') => {
                self.at += 1;
                let mut doc = Document::new();
                if self.eat(b'}') {
                    return Ok(doc.into());
                }
                loop {
                    self.space();
                    let name = self.string()?;
                    if !self.eat(b':') {
                        return Err(self.wrong());
                    }
                    let value = self.value(depth + 1)?;
                    // Of fields with the same name the last one counts.
                    match doc.get(&name).is_some() {
                        true => doc.set(&name, value),
                        false => doc.push(name.as_str(), value),
                    }
                    match (self.eat(b','), self.eat(b'}')) {
                        (true, false) => {}
                        (false, true) => return Ok(doc.into()),
                        _ => return Err(self.wrong()),
                    }
                }
            }
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                if self.eat(b']') {
                    return Ok(Value::Array(Array::new(items)));
                }
                loop {
                    items.push(self.value(depth + 1)?);
                    match (self.eat(b','), self.eat(b']')) {
                        (true, false) => {}
                        (false, true) => return Ok(Value::Array(Array::new(items))),
                        _ => return Err(self.wrong()),
                    }
                }
            }
            Some(b'"') => Ok(Value::String(self.string()?.into())),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.wrong()),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value> {
        match self.text.get(self.at..self.at + word.len()) == Some(word) {
            true => {
                self.at += word.len();
                Ok(value)
            }
            false => Err(self.wrong()),
        }
    }

    fn number(&mut self) -> Result<Value> {
        let from = self.at;
        while matches!(
            self.bytes.get(self.at),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let text = &self.text[from..self.at];
        let digits = text.trim_start_matches('-');
        let leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        if leading_zero || digits.starts_with('.') || digits.ends_with('.') {
            return Err(self.wrong());
        }
        if let Ok(n) = text.parse::<i64>() {
            return Ok(i32::try_from(n).map_or(Value::Int64(n), Value::Int32));
        }
        numeric::parse(text).map(Value::Decimal128).map_err(|_| self.wrong())
    }

    fn string(&mut self) -> Result<String> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.wrong());
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while self
                .bytes
                .get(self.at)
                .is_some_and(|b| *b != b'"' && *b != b'\\' && *b >= 0x20)
            {
                self.at += 1;
            }
            out.push_str(&self.text[from..self.at]);
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let escape = self.bytes.get(self.at + 1).copied();
                    self.at += 2;
                    match escape {
                        Some(b'n') => out.push('\n'),
                        Some(b't') => out.push('\t'),
                        Some(b'r') => out.push('\r'),
                        Some(b'b') => out.push('\u{8}'),
                        Some(b'f') => out.push('\u{c}'),
                        Some(c @ (b'"' | b'\\' | b'/')) => out.push(char::from(c)),
                        Some(b'u') => {
                            let c = self.unicode()?;
                            out.push(c);
                        }
                        _ => return Err(self.wrong()),
                    }
                }
                _ => return Err(self.wrong()),
            }
        }
    }

    fn unicode(&mut self) -> Result<char> {
        let first = self.hex()?;
        let code = match first {
            0xD800..=0xDBFF if self.text.get(self.at..self.at + 2) == Some("\\u") => {
                self.at += 2;
                let second = self.hex()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(self.wrong());
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            0 => return fail("22P05", "\\u0000 cannot be converted to text"),
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.wrong())
    }

    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4);
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.wrong())
    }
}

/// A value as JSON, spaced as PostgreSQL's `jsonb`. What JSON has no form for is a string.
pub fn print(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Null | ValueRef::Undefined | ValueRef::Missing => out.push_str("null"),
        ValueRef::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        ValueRef::Int32(n) => out.push_str(&n.to_string()),
        ValueRef::Int64(n) => out.push_str(&n.to_string()),
        ValueRef::Double(n) if n.is_finite() => out.push_str(&super::output::double(n)),
        ValueRef::Decimal128(n) if n.is_finite() => out.push_str(&numeric::format(n)),
        ValueRef::String(text) => quote(text, out),
        ValueRef::Document(doc) => {
            out.push('{');
            for (i, (name, value)) in doc.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                quote(name, out);
                out.push_str(": ");
                print(value, out);
            }
            out.push('}');
        }
        ValueRef::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                print(item, out);
            }
            out.push(']');
        }
        other => quote(&scalar_text(other), out),
    }
}

/// A value as JSON without spaces, as PostgreSQL's `json` has it of values.
pub fn compact(value: ValueRef<'_>, out: &mut String) {
    match value {
        ValueRef::Document(doc) => {
            out.push('{');
            for (i, (name, value)) in doc.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                quote(name, out);
                out.push(':');
                compact(value, out);
            }
            out.push('}');
        }
        ValueRef::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                compact(item, out);
            }
            out.push(']');
        }
        other => print(other, out),
    }
}

/// A value as `->>` gives it: strings without quotes, all else as JSON.
pub fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) => text.to_owned(),
        ValueRef::Document(_) | ValueRef::Array(_) => {
            let mut out = String::new();
            print(value, &mut out);
            out
        }
        other => scalar_text(other),
    }
}

/// A single value as text.
pub fn scalar_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::ObjectId(id) => id.to_string(),
        ValueRef::DateTime(ms) => {
            let _dates = Style::with_iso_dates();
            let text = datetime::format_timestamp(ms.saturating_mul(1000), true);
            text.replacen(' ', "T", 1).replace("+00", "+00:00")
        }
        ValueRef::Binary { bytes, subtype } if bytes.len() == 16 && (subtype == 3 || subtype == 4) => {
            super::output::uuid(bytes)
        }
        ValueRef::Binary { bytes, .. } => super::output::hex(bytes),
        ValueRef::Double(n) => super::output::double(n),
        ValueRef::Decimal128(n) => numeric::format(n),
        ValueRef::Regex { pattern, options } => format!("/{pattern}/{options}"),
        ValueRef::Code(text) | ValueRef::Symbol(text) => text.to_owned(),
        ValueRef::Timestamp(time) => format!("{}.{}", time.secs, time.inc),
        ValueRef::MinKey => "MinKey".to_owned(),
        ValueRef::MaxKey => "MaxKey".to_owned(),
        ValueRef::DbPointer { namespace, id } => format!("{namespace}/{id}"),
        ValueRef::CodeWithScope { code, .. } => code.to_owned(),
        other => {
            let mut out = String::new();
            print(other, &mut out);
            out
        }
    }
}

/// A string as JSON.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
