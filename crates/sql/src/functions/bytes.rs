//! Strings of bytes.

use super::Row;
use super::args::int;
use super::text::{binary, bytes, count, md5, str, text};
use crate::error::{error, fail};
use crate::types::{Type, input, output};
use nestor_model::{Result, Value};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Where the bit `at` stands; bits are counted from the lowest of the first byte. Errors: 2202E.
fn bit(bytes: &[u8], at: i64) -> Result<(usize, u32)> {
    let place = usize::try_from(at / 8)
        .ok()
        .filter(|place| *place < bytes.len() && at >= 0);
    match place {
        Some(place) => Ok((place, (at % 8) as u32)),
        None => {
            let last = bytes.len() as i64 * 8 - 1;
            fail("2202E", format!("index {at} out of valid range, 0..{last}"))
        }
    }
}

/// Where the byte `at` stands. Errors: 2202E.
fn byte(bytes: &[u8], at: i64) -> Result<usize> {
    match usize::try_from(at).ok().filter(|place| *place < bytes.len()) {
        Some(place) => Ok(place),
        None => {
            let last = bytes.len() as i64 - 1;
            fail("2202E", format!("index {at} out of valid range, 0..{last}"))
        }
    }
}

fn trim(all: &[u8], set: &[u8], left: bool, right: bool) -> Result<Value> {
    let kept = |b: &u8| !set.contains(b);
    let from = if left {
        all.iter().position(kept).unwrap_or(all.len())
    } else {
        0
    };
    let to = if right {
        all.iter().rposition(kept).map_or(from, |at| at + 1)
    } else {
        all.len()
    };
    binary(all[from..to.max(from)].to_vec())
}

/// Bytes from `from` (counted from 1) on, so many of them. Errors: 22011.
fn part(all: &[u8], from: i64, length: Option<i64>) -> Result<Value> {
    let end = match length {
        Some(n) if n < 0 => return fail("22011", "negative substring length not allowed"),
        Some(n) => from.saturating_add(n),
        None => i64::MAX,
    };
    let numbered = (1i64..).zip(all);
    let kept = numbered.filter(|(i, _)| *i >= from && *i < end);
    binary(kept.map(|(_, b)| *b).collect())
}

fn overlay(all: &[u8], with: &[u8], from: i64, length: i64) -> Result<Value> {
    if from < 1 {
        return fail("22011", "negative substring length not allowed");
    }
    let clamp = |at: i64| usize::try_from(at).unwrap_or(0).min(all.len());
    let (head, tail) = (clamp(from - 1), clamp((from - 1).saturating_add(length)));
    binary([&all[..head], with, &all[tail..]].concat())
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base 64 with a line break after 76 characters, as RFC 2045 wants it.
fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for (i, group) in bytes.chunks(3).enumerate() {
        if i > 0 && i % 19 == 0 {
            out.push('\n');
        }
        let word = group.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for place in 0..4 {
            out.push(match place <= group.len() {
                true => char::from(DIGITS[(word >> (18 - 6 * place) & 63) as usize]),
                false => '=',
            });
        }
    }
    out
}

/// The bytes of base 64; white space is passed over. Errors: 22023.
fn of_base64(text: &str) -> Result<Vec<u8>> {
    let (mut out, mut word, mut digits, mut ends) = (Vec::new(), 0u32, 0, 0);
    for c in text.bytes().filter(|c| !c.is_ascii_whitespace()) {
        if c == b'=' {
            ends += 1;
            continue;
        }
        let Some(digit) = DIGITS.iter().position(|d| *d == c).filter(|_| ends == 0) else {
            let shown = char::from(c);
            return fail(
                "22023",
                format!("invalid symbol \"{shown}\" found while decoding base64 sequence"),
            );
        };
        word = word << 6 | digit as u32;
        digits += 1;
        if digits % 4 == 0 {
            out.extend_from_slice(&word.to_be_bytes()[1..]);
            word = 0;
        }
    }
    match (digits % 4, ends) {
        (0, 0) => {}
        (2, 2) => out.push((word >> 4) as u8),
        (3, 1) => out.extend_from_slice(&((word >> 2) as u16).to_be_bytes()),
        _ => return fail("22023", "invalid base64 end sequence"),
    }
    Ok(out)
}

/// Text as `encode` with `escape` makes it: zero and bytes above 127 in octal, a backslash twice.
fn to_escaped(bytes: &[u8]) -> String {
    let shown = bytes.iter().map(|b| match b {
        0 | 128.. => format!("\\{b:03o}"),
        b'\\' => "\\\\".to_owned(),
        b => char::from(*b).to_string(),
    });
    shown.collect()
}

pub(super) const ROWS: &[Row] = &[
    ("bit_length", "bytea->int4", |a, _, _| count(bytes(&a[0]).len() * 8)),
    ("bit_count", "bytea->int8", |a, _, _| {
        let ones: u32 = bytes(&a[0]).iter().map(|b| b.count_ones()).sum();
        Ok(Value::Int64(i64::from(ones)))
    }),
    ("btrim", "bytea,bytea->bytea", |a, _, _| {
        trim(bytes(&a[0]), bytes(&a[1]), true, true)
    }),
    ("ltrim", "bytea,bytea->bytea", |a, _, _| {
        trim(bytes(&a[0]), bytes(&a[1]), true, false)
    }),
    ("rtrim", "bytea,bytea->bytea", |a, _, _| {
        trim(bytes(&a[0]), bytes(&a[1]), false, true)
    }),
    ("overlay", "bytea,bytea,int4->bytea", |a, _, _| {
        let with = bytes(&a[1]);
        overlay(bytes(&a[0]), with, int(&a[2]), with.len() as i64)
    }),
    ("overlay", "bytea,bytea,int4,int4->bytea", |a, _, _| {
        overlay(bytes(&a[0]), bytes(&a[1]), int(&a[2]), int(&a[3]))
    }),
    ("position", "bytea,bytea->int4", |a, _, _| {
        let (all, part) = (bytes(&a[0]), bytes(&a[1]));
        match part.is_empty() {
            true => count(1),
            false => count(all.windows(part.len()).position(|at| at == part).map_or(0, |at| at + 1)),
        }
    }),
    ("substring", "bytea,int4->bytea", |a, _, _| {
        part(bytes(&a[0]), int(&a[1]), None)
    }),
    ("substring", "bytea,int4,int4->bytea", |a, _, _| {
        part(bytes(&a[0]), int(&a[1]), Some(int(&a[2])))
    }),
    ("get_bit", "bytea,int8->int4", |a, _, _| {
        let (place, shift) = bit(bytes(&a[0]), int(&a[1]))?;
        Ok(Value::Int32(i32::from(bytes(&a[0])[place] >> shift & 1)))
    }),
    ("set_bit", "bytea,int8,int4->bytea", |a, _, _| {
        let mut out = bytes(&a[0]).to_vec();
        let (place, shift) = bit(&out, int(&a[1]))?;
        match int(&a[2]) {
            0 => out[place] &= !(1 << shift),
            1 => out[place] |= 1 << shift,
            _ => return fail("22023", "new bit must be 0 or 1"),
        }
        binary(out)
    }),
    ("get_byte", "bytea,int4->int4", |a, _, _| {
        let place = byte(bytes(&a[0]), int(&a[1]))?;
        Ok(Value::Int32(i32::from(bytes(&a[0])[place])))
    }),
    ("set_byte", "bytea,int4,int4->bytea", |a, _, _| {
        let mut out = bytes(&a[0]).to_vec();
        let place = byte(&out, int(&a[1]))?;
        out[place] = int(&a[2]) as u8;
        binary(out)
    }),
    ("encode", "bytea,text->text", |a, _, _| match str(&a[1]) {
        "hex" => text(&output::hex(bytes(&a[0]))[2..]),
        "base64" => text(to_base64(bytes(&a[0]))),
        "escape" => text(to_escaped(bytes(&a[0]))),
        other => fail("22023", format!("unrecognized encoding: \"{other}\"")),
    }),
    ("decode", "text,text->bytea", |a, _, _| match str(&a[1]) {
        "hex" => input::text(&Type::Bytea, &format!("\\x{}", str(&a[0])))
            .map_err(|_| error("22023", "invalid hexadecimal data")),
        "base64" => binary(of_base64(str(&a[0]))?),
        "escape" => input::text(&Type::Bytea, str(&a[0])),
        other => fail("22023", format!("unrecognized encoding: \"{other}\"")),
    }),
    ("md5", "bytea->text", |a, _, _| text(md5(bytes(&a[0])))),
    ("sha224", "bytea->bytea", |a, _, _| {
        binary(Sha224::digest(bytes(&a[0])).to_vec())
    }),
    ("sha256", "bytea->bytea", |a, _, _| {
        binary(Sha256::digest(bytes(&a[0])).to_vec())
    }),
    ("sha384", "bytea->bytea", |a, _, _| {
        binary(Sha384::digest(bytes(&a[0])).to_vec())
    }),
    ("sha512", "bytea->bytea", |a, _, _| {
        binary(Sha512::digest(bytes(&a[0])).to_vec())
    }),
];
