//! Sizes in bytes with their units.

use crate::error::{error, fail};
use crate::types::cast;
use crate::types::{Type, numeric};
use nestor_model::{Decimal128, Result, Value};

/// Units, each 1,024 times the one before.
const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
/// A size is shown in a unit until there are so many of it.
const SHOWN_MAX: u128 = 10 * 1024;

/// A size in the unit that shows it with few digits; `exactly` is how it is shown where that are bytes.
pub(super) fn pretty(bytes: i128, exactly: Option<String>) -> String {
    // Halves of the unit, so that it is rounded once.
    let (mut halves, mut at) = (bytes * 2, 0);
    let rounded = |halves: i128| (halves + halves.signum()) / 2;
    while rounded(halves).unsigned_abs() >= SHOWN_MAX && at + 1 < UNITS.len() {
        halves /= 1024;
        at += 1;
    }
    match (at, exactly) {
        (0, Some(exactly)) => format!("{exactly} {}", UNITS[0]),
        (0, None) => format!("{bytes} {}", UNITS[0]),
        _ => format!("{} {}", rounded(halves), UNITS[at]),
    }
}

/// The same of a `numeric`. Errors: 22003.
pub(super) fn pretty_of(value: &Value) -> Result<Value> {
    let Value::Decimal128(n) = value else {
        return Ok(Value::Null);
    };
    let whole = numeric::format(numeric::trunc(*n, 0)?);
    let whole: i128 = whole.parse().map_err(|_| numeric::overflow())?;
    Ok(Value::String(pretty(whole, Some(numeric::format(*n))).into()))
}

/// The bytes of a size: a number and its unit or none. Errors: 22023, 22003.
pub(super) fn bytes(text: &str) -> Result<Value> {
    let invalid = || error("22023", format!("invalid size: \"{text}\""));
    let trimmed = text.trim();
    let unit_at = trimmed
        .char_indices()
        .position(|(at, c)| c.is_alphabetic() && !is_exponent(&trimmed[at..], &trimmed[..at]))
        .map_or(trimmed.len(), |count| {
            trimmed.char_indices().nth(count).map_or(trimmed.len(), |(at, _)| at)
        });
    let (number, unit) = trimmed.split_at(unit_at);
    let number = number.trim_end();
    if number.is_empty() || !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(invalid());
    }
    let n = numeric::parse(number).map_err(|_| invalid())?;
    let unit = unit.trim();
    let place = match unit {
        "" => Some(0),
        unit => UNITS.iter().position(|own| own.eq_ignore_ascii_case(unit)),
    };
    let Some(place) = place else {
        return fail("22023", format!("invalid size: \"{text}\""));
    };
    let factor = Decimal128::from_i64(1i64 << (10 * place));
    let all = numeric::round(numeric::mul(n, factor)?, 0)?;
    cast::cast(Value::Decimal128(all), &Type::Numeric, &Type::Int8, -1, true)
}

/// Whether a letter begins the exponent of a number.
fn is_exponent(rest: &str, before: &str) -> bool {
    let mut after = rest.chars().skip(1).skip_while(|c| matches!(c, '+' | '-'));
    rest.starts_with(['e', 'E'])
        && before.ends_with(|c: char| c.is_ascii_digit() || c == '.')
        && after.next().is_some_and(|c| c.is_ascii_digit())
}
