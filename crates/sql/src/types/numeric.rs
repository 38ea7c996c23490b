//! `numeric`: decimal128. PostgreSQL's has more digits: here a result is rounded to 34, and an error when its whole part needs more.

use crate::error::{error, fail};
use nestor_model::decimal::DecimalParts;
use nestor_model::{Decimal128, Error, Result};

/// Digits that PostgreSQL gives quotients at least.
const QUOTIENT_DIGITS: i32 = 16;

/// Digits that a number has at most.
const DIGITS_MAX: i32 = 34;

/// The error 22003.
pub fn overflow() -> Error {
    error("22003", "value overflows numeric format")
}

/// The zero of a scale; quantizing by it rounds to that scale.
fn unit(scale: i32) -> Option<Decimal128> {
    Decimal128::parse(&format!("1E-{scale}")).map(|(unit, _)| unit)
}

/// Digits behind the point.
pub fn scale(value: Decimal128) -> i32 {
    value.parts().map_or(0, |parts| (-parts.exponent).max(0))
}

/// Digits that a number may have behind the point, beside those that it has before it.
pub fn room(value: Decimal128) -> i32 {
    let whole = value.parts().map_or(0, |parts| {
        let digits = parts.coefficient.checked_ilog10().map_or(1, |last| last as i32 + 1);
        (digits + parts.exponent).max(1)
    });
    (DIGITS_MAX - whole).max(0)
}

/// Rounded half away from zero to so many digits behind the point. Errors: 22003.
pub fn round(value: Decimal128, digits: i32) -> Result<Decimal128> {
    if !value.is_finite() {
        return Ok(value);
    }
    let Some(parts) = value.parts() else { return Ok(value) };
    let drop = -parts.exponent - digits;
    if drop <= 0 {
        return pad(value, digits);
    }
    let (coefficient, negative) = (parts.coefficient, parts.negative);
    let drop = u32::try_from(drop).unwrap_or(u32::MAX);
    let rounded = match 10u128.checked_pow(drop) {
        Some(power) => (coefficient / power) + u128::from(coefficient % power >= power.div_ceil(2)),
        None => 0,
    };
    let out = Decimal128::from_parts(DecimalParts {
        negative: negative && rounded != 0,
        coefficient: rounded,
        exponent: -digits,
    });
    pad(out.ok_or_else(overflow)?, digits.max(0))
}

/// Cut to so many digits behind the point. Errors: 22003.
pub fn trunc(value: Decimal128, digits: i32) -> Result<Decimal128> {
    let Some(parts) = value.parts() else { return Ok(value) };
    let drop = -parts.exponent - digits;
    if drop <= 0 {
        return pad(value, digits);
    }
    let kept = 10u128
        .checked_pow(u32::try_from(drop).unwrap_or(u32::MAX))
        .map_or(0, |power| parts.coefficient / power);
    let out = Decimal128::from_parts(DecimalParts {
        negative: parts.negative && kept != 0,
        coefficient: kept,
        exponent: -digits,
    });
    pad(out.ok_or_else(overflow)?, digits.max(0))
}

/// The same value with so many digits behind the point, if it has fewer and there is room.
fn pad(value: Decimal128, digits: i32) -> Result<Decimal128> {
    if scale(value) >= digits && value.parts().is_none_or(|parts| parts.exponent <= 0) {
        return Ok(value);
    }
    let quantum = unit(digits.max(0)).ok_or_else(overflow)?;
    let out = value.quantize(quantum);
    if out.is_nan() { Err(overflow()) } else { Ok(out) }
}

/// A value without a positive exponent, as PostgreSQL has none.
pub fn plain(value: Decimal128) -> Result<Decimal128> {
    match value.parts() {
        Some(parts) if parts.exponent > 0 => pad(value, 0),
        _ => Ok(value),
    }
}

/// Fits a value into `numeric(precision, scale)`. Errors: 22003.
pub fn fit(value: Decimal128, precision: u32, scale: u32) -> Result<Decimal128> {
    if value.is_nan() {
        return Ok(value);
    }
    let rounded = round(value, i32::try_from(scale).unwrap_or(0))?;
    let digits = rounded
        .parts()
        .map_or(0, |parts| parts.coefficient.checked_ilog10().map_or(0, |n| n + 1));
    if digits > precision || rounded.is_infinite() {
        return fail("22003", "numeric field overflow");
    }
    Ok(rounded)
}

/// The sum. Errors: 22003 when 34 digits are not enough.
pub fn add(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    exact_of(a.add(b), a, b)
}

/// The difference. Errors as for [`add`].
pub fn sub(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    exact_of(a.add(b.negate()), a, b)
}

/// The product, rounded when 34 digits are not enough for its fraction. Errors: 22003.
pub fn mul(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    exact_of(a.mul(b), a, b)
}

/// The product, if it needs no rounding.
pub fn exactly_times(a: Decimal128, b: Decimal128) -> Option<Decimal128> {
    let (x, y) = (a.parts()?, b.parts()?);
    x.coefficient.checked_mul(y.coefficient)?;
    let product = a.mul(b);
    let exact = product
        .parts()
        .is_some_and(|parts| parts.exponent == x.exponent + y.exponent);
    (exact || a.is_zero() || b.is_zero()).then_some(product)
}

/// The square root of a number that is not negative, with so many digits behind the point. Errors: 22003.
pub fn sqrt(value: Decimal128, scale: i32) -> Result<Decimal128> {
    if value.is_zero() || !value.is_finite() {
        return round(value, scale);
    }
    // Each step doubles the digits that are right.
    let two = Decimal128::from_i32(2);
    let mut root = Decimal128::from_f64(value.to_f64().sqrt());
    for _ in 0..3 {
        root = root.add(value.div(root)).div(two);
    }
    round(root, scale)
}

/// Digits behind the point that a root has, so that there are at least 16 that count.
pub fn root_scale(value: Decimal128) -> i32 {
    let (weight, _) = weight(value);
    let digits = QUOTIENT_DIGITS - ((weight + 1) * 2 - 1);
    digits.max(scale(value)).max(0)
}

/// The quotient, with PostgreSQL's scale where that fits. Errors: 22012, 22003.
pub fn div(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    if b.is_zero() && !a.is_nan() {
        return fail("22012", "division by zero");
    }
    let quotient = a.div(b);
    if !quotient.is_finite() {
        return Ok(quotient);
    }
    // Weights count groups of four digits, as PostgreSQL's numbers do; the quotient gets at least 16 significant digits.
    let (wa, fa) = weight(a);
    let (wb, fb) = weight(b);
    let weight = wa - wb - i32::from(fa <= fb);
    let digits = (QUOTIENT_DIGITS - weight * 4)
        .max(scale(a))
        .max(scale(b))
        .clamp(0, 1000);
    let room = DIGITS_MAX - integer_digits(quotient);
    round(quotient, digits.min(room.max(0)))
}

/// Group of four digits in which a value begins, and those digits.
fn weight(value: Decimal128) -> (i32, u128) {
    value
        .parts()
        .map_or((0, 0), |parts| weight_of(parts.coefficient, parts.exponent))
}

fn weight_of(coefficient: u128, exponent: i32) -> (i32, u128) {
    if coefficient == 0 {
        return (0, 0);
    }
    let digits = i32::try_from(coefficient.ilog10()).unwrap_or(0) + exponent;
    let weight = digits.div_euclid(4);
    // The first group ends at the exponent 4 * weight.
    let shift = 4 * weight - exponent;
    let first = match u32::try_from(shift) {
        Ok(shift) => 10u128.checked_pow(shift).map_or(0, |power| coefficient / power),
        Err(_) => coefficient * 10u128.pow(shift.unsigned_abs().min(4)),
    };
    (weight, first)
}

/// The quotient of whole numbers that [`div`] gives, computed with whole numbers; `None` for what is too long for that.
pub fn quotient(a: i128, b: i64) -> Option<Decimal128> {
    let (wa, fa) = weight_of(a.unsigned_abs(), 0);
    let (wb, fb) = weight_of(b.unsigned_abs().into(), 0);
    let digits = (QUOTIENT_DIGITS - (wa - wb - i32::from(fa <= fb)) * 4).max(0);
    let divisor = i128::from(b);
    let before = a.checked_div(divisor)?.unsigned_abs();
    let room = DIGITS_MAX - before.checked_ilog10().map_or(0, |digits| digits as i32 + 1);
    if digits > room {
        return None;
    }
    let dividend = a.checked_mul(10i128.checked_pow(digits.unsigned_abs())?)?;
    let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
    // A half is rounded away from zero.
    let rounds_up = rest.unsigned_abs() * 2 >= divisor.unsigned_abs();
    let coefficient = whole.unsigned_abs() + u128::from(rounds_up);
    Decimal128::from_parts(DecimalParts {
        negative: (a < 0) != (b < 0) && coefficient != 0,
        coefficient,
        exponent: -digits,
    })
}

fn integer_digits(value: Decimal128) -> i32 {
    value.parts().filter(|parts| parts.coefficient != 0).map_or(0, |parts| {
        (i32::try_from(parts.coefficient.ilog10()).unwrap_or(0) + 1 + parts.exponent).max(0)
    })
}

/// The remainder, with the sign of the dividend. Errors: 22012.
pub fn rem(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    if b.is_zero() {
        return fail("22012", "division by zero");
    }
    let quotient = a.div(b);
    let whole = trunc(quotient, 0)?;
    let rest = a.add(whole.mul(b).negate());
    pad(rest, scale(a).max(scale(b)))
}

/// What comes of two numbers, which may be infinite if one of them is.
fn exact_of(value: Decimal128, a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    match a.is_infinite() || b.is_infinite() {
        true => Ok(value),
        false => exact(value),
    }
}

fn exact(value: Decimal128) -> Result<Decimal128> {
    match value.is_infinite() {
        true => Err(overflow()),
        false => plain(value),
    }
}

/// PostgreSQL's form: no exponent, as many digits behind the point as the scale says.
pub fn format(value: Decimal128) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value.is_negative() { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let Some(parts) = value.parts() else {
        return value.to_string();
    };
    let mut digits = parts.coefficient.to_string();
    if parts.exponent > 0 && parts.coefficient != 0 {
        digits.push_str(&"0".repeat(usize::try_from(parts.exponent).unwrap_or(0)));
    }
    let behind = usize::try_from(-parts.exponent).unwrap_or(0);
    if digits.len() <= behind {
        digits = "0".repeat(behind + 1 - digits.len()) + &digits;
    }
    if behind > 0 {
        digits.insert(digits.len() - behind, '.');
    }
    match parts.negative && parts.coefficient != 0 {
        true => format!("-{digits}"),
        false => digits,
    }
}

/// Reads a number. Errors: 22P02, 22003.
pub fn parse(text: &str) -> Result<Decimal128> {
    let trimmed = text.trim();
    let lower = trimmed.to_ascii_lowercase();
    let wrong = || error("22P02", format!("invalid input syntax for type numeric: \"{text}\""));
    match lower.trim_start_matches(['+', '-']) {
        "nan" => return Decimal128::parse("NaN").map(|(v, _)| v).ok_or_else(wrong),
        "infinity" | "inf" => {
            let text = if lower.starts_with('-') {
                "-Infinity"
            } else {
                "Infinity"
            };
            return Decimal128::parse(text).map(|(v, _)| v).ok_or_else(wrong);
        }
        _ => {}
    }
    let is_number = lower.bytes().any(|b| b.is_ascii_digit())
        && lower
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'+' | b'-'));
    if !is_number {
        return Err(wrong());
    }
    let (value, flags) = Decimal128::parse(trimmed).ok_or_else(wrong)?;
    match flags.overflow() || value.is_infinite() {
        true => Err(overflow()),
        false => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_of_whole_numbers_are_those_of_decimals() {
        let numbers = [
            0,
            1,
            -1,
            3,
            7,
            9999,
            -10_000,
            10_001,
            123_456_789,
            -987_654_321_987,
            i64::MAX,
            i64::MIN,
        ];
        for a in numbers {
            for b in [1, 2, 3, 7, 9999, 10_000, 99_999_999, 1_000_003, i64::MAX] {
                let Some(found) = quotient(a.into(), b) else { continue };
                let wanted = div(Decimal128::from_i64(a), Decimal128::from_i64(b)).expect("a quotient");
                assert_eq!(format(found), format(wanted), "{a} / {b}");
            }
        }
        assert_eq!(quotient(i128::MAX, 3), None);
        assert_eq!(quotient(1, 0), None);
    }
}
