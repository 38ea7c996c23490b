//! Strings of bits.

use super::Row;
use super::args::int;
use crate::error::fail;
use crate::types::{Type, bits, cast};
use nestor_model::{Result, Value};

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn bits(text: String) -> Value {
    Value::String(text.into())
}

/// A sign between the bits of two strings that are as long as each other. Errors: 22026.
fn each(a: &[Value], sign: fn(bool, bool) -> bool) -> Result<Value> {
    bits::combined(str(&a[0]), str(&a[1]), sign).map(bits)
}

fn shift(text: &str, by: i64) -> Value {
    let places = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(text.len());
    let zeros = "0".repeat(places);
    bits(match by >= 0 {
        true => text[places..].to_owned() + &zeros,
        false => zeros + &text[..text.len() - places],
    })
}

/// A part from a place, counted from 1, of so many bits; to the end for none. Errors: 22011.
fn part(text: &str, from: i64, count: Option<i64>) -> Result<Value> {
    let end = match count {
        Some(count) if count < 0 => return fail("22011", "negative substring length not allowed"),
        Some(count) => from.saturating_add(count).saturating_sub(1),
        None => i64::MAX,
    };
    let length = text.len() as i64;
    let (low, high) = (from.max(1) - 1, end.min(length));
    Ok(bits(match low < high {
        true => text[low as usize..high as usize].to_owned(),
        false => String::new(),
    }))
}

fn overlay(text: &str, new: &str, from: i64, count: i64) -> Result<Value> {
    if from < 1 {
        return fail("22011", "negative substring length not allowed");
    }
    let before = part(text, 1, Some(from - 1))?;
    let after = part(text, from.saturating_add(count), None)?;
    Ok(bits(format!("{}{new}{}", str(&before), str(&after))))
}

/// The place of a bit. Errors: 2202E.
fn place(text: &str, at: i64) -> Result<usize> {
    match usize::try_from(at).ok().filter(|at| *at < text.len()) {
        Some(at) => Ok(at),
        None => fail(
            "2202E",
            format!("bit index {at} out of valid range (0..{})", text.len() as i64 - 1),
        ),
    }
}

fn set(text: &str, at: i64, to: i64) -> Result<Value> {
    let at = place(text, at)?;
    if !matches!(to, 0 | 1) {
        return fail("22023", "new bit must be 0 or 1");
    }
    let mut out = text.to_owned();
    out.replace_range(at..=at, if to == 1 { "1" } else { "0" });
    Ok(bits(out))
}

fn length(value: &Value) -> Result<Value> {
    cast::whole(str(value).len() as i64, &Type::Int4)
}

/// Rows for both types, of which `bit` is cast to the other one where only that is named.
pub(super) const ROWS: &[Row] = &[
    ("||", "varbit,varbit->varbit", |a, _, _| {
        Ok(bits(str(&a[0]).to_owned() + str(&a[1])))
    }),
    ("&", "bit,bit->bit", |a, _, _| each(a, |a, b| a && b)),
    ("|", "bit,bit->bit", |a, _, _| each(a, |a, b| a || b)),
    ("#", "bit,bit->bit", |a, _, _| each(a, |a, b| a != b)),
    ("~", "bit->bit", |a, _, _| {
        Ok(bits(str(&a[0]).bytes().map(|b| bits::digit(b == b'0')).collect()))
    }),
    ("<<", "bit,int4->bit", |a, _, _| Ok(shift(str(&a[0]), int(&a[1])))),
    (">>", "bit,int4->bit", |a, _, _| Ok(shift(str(&a[0]), -int(&a[1])))),
    ("bit_count", "bit->int8", |a, _, _| {
        Ok(Value::Int64(str(&a[0]).bytes().filter(|b| *b == b'1').count() as i64))
    }),
    ("bit_length", "bit->int4", |a, _, _| length(&a[0])),
    ("length", "bit->int4", |a, _, _| length(&a[0])),
    ("octet_length", "bit->int4", |a, _, _| {
        cast::whole(str(&a[0]).len().div_ceil(8) as i64, &Type::Int4)
    }),
    ("overlay", "bit,bit,int4->bit", |a, _, _| {
        overlay(str(&a[0]), str(&a[1]), int(&a[2]), str(&a[1]).len() as i64)
    }),
    ("overlay", "bit,bit,int4,int4->bit", |a, _, _| {
        overlay(str(&a[0]), str(&a[1]), int(&a[2]), int(&a[3]))
    }),
    ("position", "bit,bit->int4", |a, _, _| {
        let at = str(&a[0]).find(str(&a[1])).map_or(0, |at| at as i64 + 1);
        cast::whole(at, &Type::Int4)
    }),
    ("substring", "bit,int4->bit", |a, _, _| {
        part(str(&a[0]), int(&a[1]), None)
    }),
    ("substring", "bit,int4,int4->bit", |a, _, _| {
        part(str(&a[0]), int(&a[1]), Some(int(&a[2])))
    }),
    ("get_bit", "bit,int4->int4", |a, _, _| {
        let at = place(str(&a[0]), int(&a[1]))?;
        Ok(Value::Int32(i32::from(str(&a[0]).as_bytes()[at] == b'1')))
    }),
    ("set_bit", "bit,int4,int4->bit", |a, _, _| {
        set(str(&a[0]), int(&a[1]), int(&a[2]))
    }),
];
