//! Strings of bits, held as text of zeros and ones.

use super::Type;
use crate::error::{error, fail};
use nestor_model::{Result, Value};

/// A bit as text.
pub fn digit(on: bool) -> char {
    if on { '1' } else { '0' }
}

/// The bits that a text of binary digits is, or of hexadecimal ones behind an `x`. Errors: 22P02.
pub fn parse(text: &str) -> Result<Value> {
    if let Some(digits) = text.strip_prefix(['x', 'X']) {
        return hexadecimal(digits);
    }
    let digits = text.strip_prefix(['b', 'B']).unwrap_or(text);
    match digits.chars().find(|c| !matches!(c, '0' | '1')) {
        Some(c) => fail("22P02", format!("\"{c}\" is not a valid binary digit")),
        None => Ok(Value::String(digits.into())),
    }
}

/// The bits of hexadecimal digits. Errors: 22P02.
pub fn hexadecimal(digits: &str) -> Result<Value> {
    let mut out = String::with_capacity(digits.len() * 4);
    for c in digits.chars() {
        let n = c
            .to_digit(16)
            .ok_or_else(|| error("22P02", format!("\"{c}\" is not a valid hexadecimal digit")))?;
        out.push_str(&format!("{n:04b}"));
    }
    Ok(Value::String(out.into()))
}

/// Bits fitted to the length of a type. Errors: 22026, 22001.
pub fn fit(bits: &str, ty: &Type, length: usize, explicit: bool) -> Result<Value> {
    let count = bits.len();
    let fitted = match (ty, explicit) {
        (Type::Bit, true) if count < length => bits.to_owned() + &"0".repeat(length - count),
        (_, true) if count > length => bits[..length].to_owned(),
        (Type::Bit, false) if count != length => {
            return fail(
                "22026",
                format!("bit string length {count} does not match type bit({length})"),
            );
        }
        (_, false) if count > length => {
            return fail("22001", format!("bit string too long for type bit varying({length})"));
        }
        _ => bits.to_owned(),
    };
    Ok(Value::String(fitted.into()))
}

/// The last bits of a whole number, `width` of which it has.
pub fn of_integer(n: i64, width: usize, length: usize) -> Value {
    let sign = digit(n < 0);
    let own = format!("{:064b}", n as u64);
    let own = &own[64 - width..];
    Value::String(match length <= width {
        true => own[width - length..].into(),
        false => (sign.to_string().repeat(length - width) + own).into(),
    })
}

/// The number whose bits these are. Errors: 22003 when there are more than `width`.
pub fn to_integer(bits: &str, width: usize) -> Result<i64> {
    if bits.len() > width {
        return fail(
            "22003",
            if width == 32 {
                "integer out of range"
            } else {
                "bigint out of range"
            },
        );
    }
    let n = bits.bytes().fold(0u64, |n, bit| n << 1 | u64::from(bit == b'1'));
    Ok(match width {
        32 => i64::from(n as u32 as i32),
        _ => n as i64,
    })
}

/// A sign between the bits of two strings. Errors: 22026 unless they are as long as each other.
pub fn combined(a: &str, b: &str, sign: fn(bool, bool) -> bool) -> Result<String> {
    if a.len() != b.len() {
        return fail("22026", "cannot combine bit strings of different sizes");
    }
    let pairs = a.bytes().zip(b.bytes());
    Ok(pairs.map(|(a, b)| digit(sign(a == b'1', b == b'1'))).collect())
}

/// Bits in binary format: how many there are, and bytes that the first ones begin.
pub fn to_binary(bits: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(bits.len() as i32).to_be_bytes());
    for byte in bits.as_bytes().chunks(8) {
        let n = byte.iter().fold(0u8, |n, bit| n << 1 | u8::from(*bit == b'1'));
        out.push(n << (8 - byte.len()));
    }
}

/// The bits that bytes in binary format are.
pub fn of_binary(bytes: &[u8]) -> Option<Value> {
    let (count, bytes) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    if count.div_ceil(8) != bytes.len() {
        return None;
    }
    let all: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    Some(Value::String(all[..count].into()))
}
