//! Text.

use super::Row;
use super::args::int;
use crate::error::{error, fail};
use crate::types::encoding::Encoding;
use crate::types::names::quoted;
use crate::types::{Type, cast, output};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use nestor_model::statement::charge;
use nestor_model::{Binary, Result, Value};
use std::borrow::Cow;

/// Bytes of text that a function makes at most.
const TEXT_BYTES_MAX: usize = 64 << 20;

pub(super) fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn text(value: impl Into<nestor_model::Str>) -> Result<Value> {
    Ok(Value::String(value.into()))
}

pub(super) fn count(n: usize) -> Result<Value> {
    cast::whole(i64::try_from(n).unwrap_or(i64::MAX), &Type::Int4)
}

/// Counts memory that a result takes before it is made.
pub(super) fn room(bytes: usize) -> Result<()> {
    if bytes > TEXT_BYTES_MAX {
        return fail("54000", "requested length too large");
    }
    charge(bytes)
}

fn repeat(s: &str, n: i64) -> Result<Value> {
    let n = usize::try_from(n).unwrap_or(0);
    room(s.len().saturating_mul(n))?;
    text(s.repeat(n))
}

/// Characters from `from` (counted from 1, also from before the text) on, so many of them.
fn substring(s: &str, from: i64, length: Option<i64>) -> Result<Value> {
    let end = match length {
        Some(n) if n < 0 => return fail("22011", "negative substring length not allowed"),
        Some(n) => from.saturating_add(n),
        None => i64::MAX,
    };
    let numbered = (1i64..).zip(s.chars());
    text(
        numbered
            .filter(|(i, _)| *i >= from && *i < end)
            .map(|(_, c)| c)
            .collect::<String>(),
    )
}

fn pad(s: &str, length: i64, fill: &str, left: bool) -> Result<Value> {
    let length = usize::try_from(length).unwrap_or(0);
    room(length.saturating_mul(4))?;
    let own: Vec<char> = s.chars().take(length).collect();
    let missing = length - own.len();
    let filled: String = match fill.is_empty() {
        true => String::new(),
        false => fill.chars().cycle().take(missing).collect(),
    };
    let own: String = own.into_iter().collect();
    text(if left { filled + &own } else { own + &filled })
}

fn trim(s: &str, set: &str, left: bool, right: bool) -> Result<Value> {
    let mut out = s;
    if left {
        out = out.trim_start_matches(|c| set.contains(c));
    }
    if right {
        out = out.trim_end_matches(|c| set.contains(c));
    }
    text(out)
}

fn position(s: &str, part: &str) -> Result<Value> {
    count(s.find(part).map_or(0, |at| s[..at].chars().count() + 1))
}

fn split_part(s: &str, by: &str, n: i64) -> Result<Value> {
    if n == 0 {
        return fail("22023", "field position must not be zero");
    }
    let parts: Vec<&str> = if by.is_empty() { vec![s] } else { s.split(by).collect() };
    let at = match n > 0 {
        true => usize::try_from(n - 1).ok(),
        false => usize::try_from(parts.len() as i64 + n).ok(),
    };
    text(at.and_then(|at| parts.get(at).copied()).unwrap_or_default())
}

fn initcap(s: &str) -> String {
    let mut within = false;
    let letters = s.chars().map(|c| {
        let out = if within {
            one_of(c, c.to_lowercase())
        } else {
            one_of(c, c.to_uppercase())
        };
        within = c.is_alphanumeric();
        out
    });
    letters.collect()
}

fn shown(value: &Value, arg: &crate::expr::Expr) -> String {
    match (value, arg.ty()) {
        (Value::Null, _) => String::new(),
        (value, Type::Bool) => (if matches!(value, Value::Bool(true)) { "t" } else { "f" }).to_owned(),
        (value, ty) => output::text(&ty, value),
    }
}

fn concat(values: &[Value], args: &[crate::expr::Expr], between: &str) -> Result<Value> {
    let mut out = String::new();
    let mut first = true;
    for (value, arg) in values.iter().zip(args) {
        if matches!(value, Value::Null) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push_str(between);
        }
        out.push_str(&shown(value, arg));
        if out.len() > TEXT_BYTES_MAX {
            room(out.len())?;
        }
    }
    text(out)
}

/// `format`: `%s`, `%I`, `%L`, `%%`, with places (`%1$s`).
fn format(values: &[Value], args: &[crate::expr::Expr]) -> Result<Value> {
    let mut out = String::new();
    let pattern = str(&values[0]);
    let mut next = 1;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut digits = String::new();
            while let Some(d) = chars.next_if(char::is_ascii_digit) {
                digits.push(d);
            }
            (!digits.is_empty()).then(|| digits.parse::<usize>().unwrap_or(usize::MAX))
        };
        let mut width = number(&mut chars);
        if width.is_some() && chars.next_if(|c| *c == '$').is_some() {
            next = width.take().unwrap_or(0);
            if next == 0 {
                return fail(
                    "22023",
                    "format specifies argument 0, but arguments are numbered from 1",
                );
            }
        }
        let mut left = false;
        while width.is_none() && chars.next_if(|c| *c == '-').is_some() {
            left = true;
        }
        let mut width = width.or_else(|| number(&mut chars)).unwrap_or(0);
        if chars.next_if(|c| *c == '*').is_some() {
            let place = number(&mut chars);
            if place.is_some() && chars.next_if(|c| *c == '$').is_none() {
                return fail("22023", "width argument position must be ended by \"$\"");
            }
            let at = place.unwrap_or(next);
            let Some(value) = values.get(at) else {
                return fail("22023", "too few arguments for format()");
            };
            let wanted = crate::types::integer(value).unwrap_or(0);
            left |= wanted < 0;
            width = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
            next = at.saturating_add(1);
        }
        room(width)?;
        let kind = chars.next();
        if kind == Some('%') {
            out.push('%');
            continue;
        }
        let (Some(value), Some(arg)) = (values.get(next), args.get(next)) else {
            return fail("22023", "too few arguments for format()");
        };
        next += 1;
        let written = match kind {
            Some('s') => shown(value, arg),
            Some('I') if matches!(value, Value::Null) => {
                return fail("22004", "null values cannot be formatted as an SQL identifier");
            }
            Some('I') => quoted(&shown(value, arg)),
            Some('L') if matches!(value, Value::Null) => "NULL".to_owned(),
            Some('L') => quote_literal(&shown(value, arg)),
            _ => return fail("22023", "unrecognized format() type specifier"),
        };
        let blanks = " ".repeat(width.saturating_sub(written.chars().count()));
        let (before, behind) = if left {
            ("", blanks.as_str())
        } else {
            (blanks.as_str(), "")
        };
        out.extend([before, &written, behind]);
        room(out.len())?;
    }
    text(out)
}

/// A value as its cast to text has it, which is not for all types how it is shown.
///
/// Errors: those of the cast.
fn cast_to_text(value: &Value, of: &crate::expr::Expr) -> Result<String> {
    let text = cast::cast(value.clone(), &of.ty(), &Type::Text, -1, true)?;
    Ok(str(&text).to_owned())
}

/// Text whose escapes of code points are resolved: `\\XXXX`, `\\+XXXXXX`, `\\uXXXX` and `\\UXXXXXXXX`. Errors: 42601.
fn unistr(escaped: &str) -> Result<Value> {
    let wrong = || error("42601", "invalid Unicode escape");
    let (mut out, mut rest) = (String::with_capacity(escaped.len()), escaped);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            out.push('\\');
            rest = after;
            continue;
        }
        let (digits, length) = match rest.chars().next() {
            Some('+') => (&rest[1..], 6),
            Some('u') => (&rest[1..], 4),
            Some('U') => (&rest[1..], 8),
            _ => (rest, 4),
        };
        let code = digits
            .get(..length)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        out.push(
            code.filter(|code| *code != 0)
                .and_then(char::from_u32)
                .ok_or_else(wrong)?,
        );
        rest = &digits[length..];
    }
    out.push_str(rest);
    text(out)
}

/// A literal of a value's text, which is that of a cast.
fn quote_value(value: &Value, arg: &crate::expr::Expr) -> String {
    match value {
        Value::Bool(is) => quote_literal(if *is { "true" } else { "false" }),
        value => quote_literal(&shown(value, arg)),
    }
}

pub(crate) fn quote_literal(s: &str) -> String {
    let quoted = s.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

pub(super) fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::Binary(binary) => &binary.bytes,
        _ => &[],
    }
}

pub(super) fn binary(bytes: Vec<u8>) -> Result<Value> {
    Ok(Value::Binary(Binary {
        subtype: 0,
        bytes: bytes.into(),
    }))
}

/// A letter in the other case, if that is one letter: case has no words here.
fn one_of(c: char, mut other: impl ExactSizeIterator<Item = char>) -> char {
    match other.len() {
        1 => other.next().unwrap_or(c),
        _ => c,
    }
}

fn lower(s: &str) -> String {
    match s.is_ascii() {
        true => s.to_ascii_lowercase(),
        false => s.chars().map(|c| one_of(c, c.to_lowercase())).collect(),
    }
}

fn upper(s: &str) -> String {
    match s.is_ascii() {
        true => s.to_ascii_uppercase(),
        false => s.chars().map(|c| one_of(c, c.to_uppercase())).collect(),
    }
}

/// A text in one of Unicode's normal forms. Errors: 22023.
fn normalized<'t>(text: &'t str, form: &str) -> Result<Cow<'t, str>> {
    Ok(match form.to_ascii_uppercase().as_str() {
        "NFC" => ComposingNormalizerBorrowed::new_nfc().normalize(text),
        "NFKC" => ComposingNormalizerBorrowed::new_nfkc().normalize(text),
        "NFD" => DecomposingNormalizerBorrowed::new_nfd().normalize(text),
        "NFKD" => DecomposingNormalizerBorrowed::new_nfkd().normalize(text),
        _ => return fail("22023", format!("invalid normalization form: {form}")),
    })
}

pub(super) const ROWS: &[Row] = &[
    ("||", "text,text->text", |a, _, _| {
        room(str(&a[0]).len() + str(&a[1]).len())?;
        text(str(&a[0]).to_owned() + str(&a[1]))
    }),
    ("||", "text,any->text", |a, _, args| {
        text(str(&a[0]).to_owned() + &cast_to_text(&a[1], &args[1])?)
    }),
    ("||", "any,text->text", |a, _, args| {
        text(cast_to_text(&a[0], &args[0])? + str(&a[1]))
    }),
    ("||", "bytea,bytea->bytea", |a, _, _| {
        binary([bytes(&a[0]), bytes(&a[1])].concat())
    }),
    ("lower", "text->text", |a, _, _| text(lower(str(&a[0])))),
    ("upper", "text->text", |a, _, _| text(upper(str(&a[0])))),
    ("normalize", "text->text", |a, _, _| {
        text(normalized(str(&a[0]), "NFC")?.into_owned())
    }),
    ("normalize", "text,text->text", |a, _, _| {
        text(normalized(str(&a[0]), str(&a[1]))?.into_owned())
    }),
    ("is_normalized", "text,text->bool", |a, _, _| {
        Ok(Value::Bool(normalized(str(&a[0]), str(&a[1]))? == str(&a[0])))
    }),
    ("initcap", "text->text", |a, _, _| text(initcap(str(&a[0])))),
    ("length", "text->int4", |a, _, _| count(str(&a[0]).chars().count())),
    ("length", "bpchar->int4", |a, _, _| {
        count(str(&a[0]).trim_end_matches(' ').chars().count())
    }),
    ("length", "bytea->int4", |a, _, _| count(bytes(&a[0]).len())),
    ("char_length", "text->int4", |a, _, _| count(str(&a[0]).chars().count())),
    ("character_length", "text->int4", |a, _, _| {
        count(str(&a[0]).chars().count())
    }),
    ("octet_length", "bpchar->int4", |a, _, _| count(str(&a[0]).len())),
    ("octet_length", "text->int4", |a, _, _| count(str(&a[0]).len())),
    ("octet_length", "bytea->int4", |a, _, _| count(bytes(&a[0]).len())),
    ("bit_length", "text->int4", |a, _, _| count(str(&a[0]).len() * 8)),
    ("substring", "text,int4->text", |a, _, _| {
        substring(str(&a[0]), int(&a[1]), None)
    }),
    ("substring", "text,int4,int4->text", |a, _, _| {
        substring(str(&a[0]), int(&a[1]), Some(int(&a[2])))
    }),
    ("substr", "text,int4->text", |a, _, _| {
        substring(str(&a[0]), int(&a[1]), None)
    }),
    ("substr", "text,int4,int4->text", |a, _, _| {
        substring(str(&a[0]), int(&a[1]), Some(int(&a[2])))
    }),
    ("left", "text,int4->text", |a, _, _| {
        let n = match int(&a[1]) {
            n if n < 0 => str(&a[0]).chars().count() as i64 + n,
            n => n,
        };
        text(
            str(&a[0])
                .chars()
                .take(usize::try_from(n).unwrap_or(0))
                .collect::<String>(),
        )
    }),
    ("right", "text,int4->text", |a, _, _| {
        let length = str(&a[0]).chars().count() as i64;
        let skip = match int(&a[1]) {
            n if n < 0 => -n,
            n => length - n,
        };
        text(
            str(&a[0])
                .chars()
                .skip(usize::try_from(skip).unwrap_or(0))
                .collect::<String>(),
        )
    }),
    ("position", "text,text->int4", |a, _, _| {
        position(str(&a[0]), str(&a[1]))
    }),
    ("strpos", "text,text->int4", |a, _, _| position(str(&a[0]), str(&a[1]))),
    ("replace", "text,text,text->text", |a, _, _| match str(&a[1]) {
        "" => text(str(&a[0])),
        part => {
            let found = str(&a[0]).matches(part).count();
            room(str(&a[0]).len() + found.saturating_mul(str(&a[2]).len()))?;
            text(str(&a[0]).replace(part, str(&a[2])))
        }
    }),
    ("translate", "text,text,text->text", |a, _, _| {
        let to: Vec<char> = str(&a[2]).chars().collect();
        let mapped = str(&a[0])
            .chars()
            .filter_map(|c| match str(&a[1]).chars().position(|from| from == c) {
                Some(at) => to.get(at).copied(),
                None => Some(c),
            });
        text(mapped.collect::<String>())
    }),
    ("overlay", "text,text,int4->text", |a, _, _| {
        let n = str(&a[1]).chars().count() as i64;
        overlay(str(&a[0]), str(&a[1]), int(&a[2]), n)
    }),
    ("overlay", "text,text,int4,int4->text", |a, _, _| {
        overlay(str(&a[0]), str(&a[1]), int(&a[2]), int(&a[3]))
    }),
    ("reverse", "text->text", |a, _, _| {
        text(str(&a[0]).chars().rev().collect::<String>())
    }),
    ("repeat", "text,int4->text", |a, _, _| repeat(str(&a[0]), int(&a[1]))),
    ("lpad", "text,int4->text", |a, _, _| {
        pad(str(&a[0]), int(&a[1]), " ", true)
    }),
    ("lpad", "text,int4,text->text", |a, _, _| {
        pad(str(&a[0]), int(&a[1]), str(&a[2]), true)
    }),
    ("rpad", "text,int4->text", |a, _, _| {
        pad(str(&a[0]), int(&a[1]), " ", false)
    }),
    ("rpad", "text,int4,text->text", |a, _, _| {
        pad(str(&a[0]), int(&a[1]), str(&a[2]), false)
    }),
    ("btrim", "text->text", |a, _, _| trim(str(&a[0]), " ", true, true)),
    ("btrim", "text,text->text", |a, _, _| {
        trim(str(&a[0]), str(&a[1]), true, true)
    }),
    ("ltrim", "text->text", |a, _, _| trim(str(&a[0]), " ", true, false)),
    ("ltrim", "text,text->text", |a, _, _| {
        trim(str(&a[0]), str(&a[1]), true, false)
    }),
    ("rtrim", "text->text", |a, _, _| trim(str(&a[0]), " ", false, true)),
    ("rtrim", "text,text->text", |a, _, _| {
        trim(str(&a[0]), str(&a[1]), false, true)
    }),
    ("split_part", "text,text,int4->text", |a, _, _| {
        split_part(str(&a[0]), str(&a[1]), int(&a[2]))
    }),
    ("ascii", "text->int4", |a, _, _| {
        Ok(Value::Int32(
            str(&a[0]).chars().next().map_or(0, |c| u32::from(c) as i32),
        ))
    }),
    ("chr", "int4->text", |a, _, _| {
        match u32::try_from(int(&a[0]))
            .ok()
            .filter(|n| *n > 0)
            .and_then(char::from_u32)
        {
            Some(c) => text(c.to_string()),
            None if int(&a[0]) < 0 => fail("22023", "character number must be positive"),
            None => fail("54000", "requested character is not valid"),
        }
    }),
    ("starts_with", "text,text->bool", |a, _, _| {
        Ok(Value::Bool(str(&a[0]).starts_with(str(&a[1]))))
    }),
    ("^@", "text,text->bool", |a, _, _| {
        Ok(Value::Bool(str(&a[0]).starts_with(str(&a[1]))))
    }),
    ("concat", "?any...->text", |a, _, args| concat(a, args, "")),
    ("concat_ws", "?text,any...->text", |a, _, args| match a[0].as_str() {
        Some(between) => concat(&a[1..], &args[1..], between),
        None => Ok(Value::Null),
    }),
    ("format", "?text,any...->text", |a, _, args| {
        if matches!(a[0], Value::Null) {
            Ok(Value::Null)
        } else {
            format(a, args)
        }
    }),
    ("quote_ident", "text->text", |a, _, _| text(quoted(str(&a[0])))),
    ("quote_literal", "text->text", |a, _, _| text(quote_literal(str(&a[0])))),
    ("quote_literal", "any->text", |a, _, args| {
        text(quote_value(&a[0], &args[0]))
    }),
    ("quote_nullable", "?text->text", |a, _, _| {
        if matches!(a[0], Value::Null) {
            text("NULL")
        } else {
            text(quote_literal(str(&a[0])))
        }
    }),
    ("quote_nullable", "?any->text", |a, _, args| {
        text(match &a[0] {
            Value::Null => "NULL".to_owned(),
            value => quote_value(value, &args[0]),
        })
    }),
    ("pg_client_encoding", "->name", |_, _, _| text("UTF8")),
    ("unistr", "text->text", |a, _, _| unistr(str(&a[0]))),
    ("md5", "text->text", |a, _, _| text(md5(str(&a[0]).as_bytes()))),
    ("to_hex", "int8->text", |a, _, _| text(format!("{:x}", int(&a[0])))),
    ("to_hex", "int4->text", |a, _, _| {
        text(format!("{:x}", int(&a[0]) as i32))
    }),
    ("convert_from", "bytea,text->text", |a, _, _| {
        text(encoding(str(&a[1]), "source")?.decode(bytes(&a[0]))?)
    }),
    ("convert_to", "text,text->bytea", |a, _, _| {
        binary(encoding(str(&a[1]), "destination")?.encode(str(&a[0]))?)
    }),
    ("convert", "bytea,text,text->bytea", |a, _, _| {
        let (from, to) = (encoding(str(&a[1]), "source")?, encoding(str(&a[2]), "destination")?);
        binary(to.encode(&from.decode(bytes(&a[0]))?)?)
    }),
];

/// The encoding of a name. Errors: 22023.
fn encoding(name: &str, which: &str) -> Result<Encoding> {
    Encoding::of(name).ok_or_else(|| error("22023", format!("invalid {which} encoding name \"{name}\"")))
}

fn overlay(s: &str, with: &str, from: i64, length: i64) -> Result<Value> {
    if from < 1 {
        return fail("22011", "negative substring length not allowed");
    }
    let head: String = s.chars().take(usize::try_from(from - 1).unwrap_or(0)).collect();
    let tail: String = s
        .chars()
        .skip(usize::try_from(from - 1 + length).unwrap_or(0))
        .collect();
    text(head + with + &tail)
}

/// The digest of RFC 1321.
pub(super) fn md5(bytes: &[u8]) -> String {
    output::hex(&md5_bytes(bytes))[2..].to_owned()
}

/// The same as bytes.
pub(super) fn md5_bytes(bytes: &[u8]) -> [u8; 16] {
    const SHIFTS: [u32; 16] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
    let constant = |i: usize| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(bytes.len() as u64 * 8).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        let words: Vec<u32> = block
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (f, g) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), (7 * i) % 16),
            };
            let sum = f.wrapping_add(a).wrapping_add(constant(i)).wrapping_add(words[g]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16 * 4 + i % 4]));
        }
        for (s, v) in state.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
    let mut out = [0; 16];
    for (to, word) in out.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    out
}
