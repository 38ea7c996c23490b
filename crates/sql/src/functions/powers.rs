//! Exponentials, logarithms and powers of `numeric`, with as many digits as PostgreSQL gives: at least 16 that count, and as many behind the
//! point as the arguments have, as far as 34 digits go.

use super::args::{decimal, double};
use crate::error::fail;
use crate::types::{numeric, output};
use nestor_model::{Decimal128, Result, Value};

/// Digits of a result that count at least.
const DIGITS: i32 = 16;
/// Digits of a number at most.
const DIGITS_MAX: i32 = 34;
/// Digits behind the point at most.
const SCALE_MAX: i32 = 1000;
/// The decimal logarithm of e.
const LOG_E: f64 = std::f64::consts::LOG10_E;
/// How often an argument is halved before the series is summed.
const HALVINGS: usize = 8;

/// What comes of a number, which is infinite only if that is. Errors: 22003.
pub(super) fn checked(arg: f64, n: f64) -> Result<Value> {
    match n.is_infinite() && arg.is_finite() {
        true => fail("22003", "value out of range: overflow"),
        false => Ok(Value::Double(n)),
    }
}

/// Errors: the one that is said unless it is `ok`.
pub(super) fn domain(ok: bool, state: &str, message: &str) -> Result<()> {
    if ok { Ok(()) } else { fail(state, message) }
}

/// A power of double precision. Errors: 2201F, 22003.
pub(super) fn power_of_floats(a: f64, b: f64) -> Result<Value> {
    domain(
        !(a == 0.0 && b < 0.0),
        "2201F",
        "zero raised to a negative power is undefined",
    )?;
    domain(
        a >= 0.0 || a.is_nan() || !b.is_finite() || b.fract() == 0.0,
        "2201F",
        "a negative number raised to a non-integer power yields a complex result",
    )?;
    checked(a * b, a.powf(b)).and_then(|n| {
        let is_nothing = double(&n) != 0.0 || a == 0.0 || !a.is_finite() || !b.is_finite();
        domain(is_nothing, "22003", "value out of range: underflow").map(|()| n)
    })
}

fn of(n: i32) -> Decimal128 {
    Decimal128::from_i32(n)
}

/// The natural logarithm of 10.
fn ln_10() -> Result<Decimal128> {
    numeric::parse("2.302585092994045684017991454684364")
}

/// A number times a power of ten.
fn scaled(value: Decimal128, exponent: i32) -> Decimal128 {
    let parts = value.parts().map(|mut parts| {
        parts.exponent += exponent;
        parts
    });
    parts.and_then(Decimal128::from_parts).unwrap_or(value)
}

/// Rounded to a scale, or to what there is room for.
fn rounded(value: Decimal128, scale: i32) -> Result<Decimal128> {
    // Digits before the point, fewer than none where zeros begin the fraction.
    let whole = value.parts().filter(|parts| parts.coefficient > 0).map_or(0, |parts| {
        let last = parts.coefficient.ilog10() as i32;
        last + 1 + parts.exponent
    });
    numeric::round(value, scale.clamp(0, SCALE_MAX).min((DIGITS_MAX - whole).max(0)))
}

/// The exponential of a finite number, to all digits. Errors: 22003.
fn exponential(n: Decimal128) -> Result<Decimal128> {
    let tens = (n.to_f64() * LOG_E).round();
    if tens > 40.0 {
        return Err(numeric::overflow());
    }
    if tens < -3.0 * f64::from(SCALE_MAX) {
        return Ok(Decimal128::ZERO);
    }
    let tens = tens as i32;
    let rest = n.add(ln_10()?.mul(of(tens)).negate());
    let part = rest.div(of(1 << HALVINGS));
    let (mut sum, mut term) = (Decimal128::ONE, Decimal128::ONE);
    for k in 1..24 {
        term = term.mul(part).div(of(k));
        sum = sum.add(term);
    }
    for _ in 0..HALVINGS {
        sum = sum.mul(sum);
    }
    Ok(scaled(sum, tens))
}

/// The natural logarithm of a positive finite number, to all digits.
fn logarithm(n: Decimal128) -> Result<Decimal128> {
    let Some(parts) = n.parts() else { return Ok(n) };
    let digits = parts.coefficient.checked_ilog10().unwrap_or(0) as i32;
    // Between a third and three.
    let mut tens = parts.exponent + digits;
    if scaled(n, -tens).to_f64() > 3.0 {
        tens += 1;
    }
    let n = scaled(n, -tens);
    let near = match (n.to_f64() - 1.0).abs() < 0.1 {
        true => {
            let part = n.add(of(-1)).div(n.add(Decimal128::ONE));
            let square = part.mul(part);
            let (mut sum, mut power) = (part, part);
            for k in 1..16 {
                power = power.mul(square);
                sum = sum.add(power.div(of(2 * k + 1)));
            }
            sum.add(sum)
        }
        false => {
            // The error of the first value to the third power is what is left.
            let first = Decimal128::from_f64(n.to_f64().ln());
            let there = exponential(first)?;
            let by = n.add(there.negate()).div(n.add(there));
            first.add(by.add(by))
        }
    };
    Ok(near.add(ln_10()?.mul(of(tens))))
}

/// The decimal place of the first digit of a logarithm, as it is estimated for the digits of a result.
fn place_of_logarithm(n: Decimal128) -> i32 {
    let value = n.to_f64();
    match (0.9..=1.1).contains(&value) {
        true => {
            let apart = n.add(of(-1));
            let parts = apart.parts().filter(|parts| parts.coefficient > 0);
            parts.map_or(0, |parts| parts.exponent + parts.coefficient.ilog10() as i32)
        }
        false => (value.ln().abs().log10() as i32).clamp(-1, 5),
    }
}

/// About how many digits the exponential of a number has before the point, or zeros behind it; no more than make a difference.
fn whole_digits(n: f64) -> i32 {
    let most = f64::from(2 * SCALE_MAX);
    (n * LOG_E).clamp(-most, most) as i32
}

/// Whether there is a logarithm. Errors: 2201E.
fn check_logarithm(n: Decimal128) -> Result<()> {
    domain(!n.is_zero(), "2201E", "cannot take logarithm of zero")?;
    let is_negative = n.is_negative() && !n.is_nan();
    domain(!is_negative, "2201E", "cannot take logarithm of a negative number")
}

/// `exp(n)`. Errors: 22003.
pub(super) fn exp(args: &[Value]) -> Result<Value> {
    let n = decimal(&args[0]);
    if !n.is_finite() {
        let found = if n.is_infinite() && n.is_negative() {
            Decimal128::ZERO
        } else {
            n
        };
        return Ok(Value::Decimal128(found));
    }
    let scale = DIGITS - whole_digits(n.to_f64());
    rounded(exponential(n)?, scale.max(numeric::scale(n))).map(Value::Decimal128)
}

/// `ln(n)`. Errors: 2201E.
pub(super) fn ln(args: &[Value]) -> Result<Value> {
    let n = decimal(&args[0]);
    check_logarithm(n)?;
    if !n.is_finite() {
        return Ok(Value::Decimal128(n));
    }
    let scale = DIGITS - place_of_logarithm(n);
    rounded(logarithm(n)?, scale.max(numeric::scale(n))).map(Value::Decimal128)
}

/// `log(n)`, to the base 10. Errors: 2201E.
pub(super) fn log10(args: &[Value]) -> Result<Value> {
    log(&[Value::Decimal128(of(10)), args[0].clone()])
}

/// `log(base, n)`. Errors: 2201E, 22012 for a base of 1.
pub(super) fn log(args: &[Value]) -> Result<Value> {
    let (base, n) = (decimal(&args[0]), decimal(&args[1]));
    check_logarithm(base)?;
    check_logarithm(n)?;
    let found = match (base.is_nan() || n.is_nan(), base.is_infinite(), n.is_infinite()) {
        (true, ..) | (_, true, true) => numeric::parse("NaN")?,
        (_, true, false) => Decimal128::ZERO,
        (_, false, true) => n,
        _ => {
            let scale = DIGITS - (place_of_logarithm(n) - place_of_logarithm(base));
            let scale = scale.max(numeric::scale(base)).max(numeric::scale(n));
            let below = logarithm(base)?;
            domain(!below.is_zero(), "22012", "division by zero")?;
            rounded(logarithm(n)?.div(below), scale)?
        }
    };
    Ok(Value::Decimal128(found))
}

/// A power whose exponent is whole. Errors: 22003.
fn whole_power(base: Decimal128, exponent: i64) -> Result<Decimal128> {
    let (mut out, mut square, mut left) = (Decimal128::ONE, base, exponent.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            out = out.mul(square);
        }
        left >>= 1;
        if left > 0 {
            square = square.mul(square);
        }
    }
    let out = if exponent < 0 { Decimal128::ONE.div(out) } else { out };
    match out.is_finite() {
        true => Ok(out),
        // The power of the other sign is nothing.
        false if out.is_nan() || exponent < 0 => Ok(Decimal128::ZERO),
        false => Err(numeric::overflow()),
    }
}

/// `power(base, exponent)`. Errors: 2201F, 22003.
pub(super) fn power(args: &[Value]) -> Result<Value> {
    let (base, exponent) = (decimal(&args[0]), decimal(&args[1]));
    if !base.is_finite() || !exponent.is_finite() {
        return unbounded(base, exponent).map(Value::Decimal128);
    }
    let whole = exponent.to_i64_exact();
    domain(
        !(base.is_zero() && exponent.is_negative() && !exponent.is_zero()),
        "2201F",
        "zero raised to a negative power is undefined",
    )?;
    let is_whole = numeric::trunc(exponent, 0).is_ok_and(|cut| cut.add(exponent.negate()).is_zero());
    domain(
        !base.is_negative() || base.is_zero() || is_whole,
        "2201F",
        "a negative number raised to a non-integer power yields a complex result",
    )?;
    if let Some(whole) = whole.filter(|n| i32::try_from(*n).is_ok()) {
        let scale = DIGITS.max(numeric::scale(base));
        return rounded(whole_power(base, whole)?, scale).map(Value::Decimal128);
    }
    if base.is_zero() {
        return rounded(Decimal128::ZERO, DIGITS).map(Value::Decimal128);
    }
    let size = if base.is_negative() { base.negate() } else { base };
    let of_e = exponent.mul(logarithm(size)?);
    let scale = DIGITS - whole_digits(of_e.to_f64());
    let scale = scale.max(numeric::scale(base)).max(numeric::scale(exponent));
    let found = rounded(exponential(of_e)?, scale)?;
    let is_odd = base.is_negative() && !numeric::rem(exponent, of(2))?.is_zero();
    Ok(Value::Decimal128(if is_odd { found.negate() } else { found }))
}

/// Powers of what is no finite number, as those of double precision are. Errors: 2201F.
fn unbounded(base: Decimal128, exponent: Decimal128) -> Result<Decimal128> {
    match power_of_floats(base.to_f64(), exponent.to_f64())? {
        Value::Double(n) if n.is_nan() => numeric::parse("NaN"),
        Value::Double(n) if n.is_infinite() => numeric::parse(if n > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Double(n) => numeric::parse(&output::double(n)),
        _ => Err(numeric::overflow()),
    }
}
