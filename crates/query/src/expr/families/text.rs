//! Values as text: the two ways in which MongoDB prints doubles, and coercion to strings.

use crate::expr::args::error;
use nestor_model::date::{Civil, MONTHS, format_iso};
use nestor_model::statement::{BYTES_PER_UNIT, note};
use nestor_model::{Result, ValueRef};
use std::borrow::Cow;

/// Digits and decimal exponent of a finite double: `d.ddd * 10^exponent`.
fn digits(v: f64, precision: Option<usize>) -> (String, i32) {
    let text = match precision {
        None => format!("{v:e}"),
        Some(p) => format!("{v:.*e}", p - 1),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// Positional between 1e-4 and `10^scientific_from`, scientific with a two-digit exponent elsewhere.
fn layout(v: f64, digits: &str, exponent: i32, scientific_from: i32) -> String {
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    let sign = if v.is_sign_negative() { "-" } else { "" };
    let count = digits.len() as i32;
    if exponent < -4 || exponent >= scientific_from {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize))
    } else if count <= exponent + 1 {
        format!("{sign}{digits}{}", "0".repeat((exponent + 1 - count) as usize))
    } else {
        let (whole, fraction) = digits.split_at((exponent + 1) as usize);
        format!("{sign}{whole}.{fraction}")
    }
}

/// The shortest text that reads back as the same double, as `$toString` gives it.
pub(crate) fn double_shortest(v: f64) -> String {
    if v.is_nan() {
        return "NaN".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let (digits, exponent) = digits(v, None);
    layout(v, &digits, exponent, 16)
}

/// Six significant digits, as the coercion of string operators gives it, and some errors show numbers.
pub fn double_six(v: f64) -> String {
    if v.is_nan() {
        return "nan".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.into();
    }
    let (digits, exponent) = digits(v, Some(6));
    layout(v, &digits, exponent, 6)
}

/// The coercion of `$toUpper`, `$substrBytes` and their like: numbers, dates and code become text, null and missing
/// the empty string. Errors: 16007 for other types.
pub(crate) fn coerce(value: ValueRef<'_>) -> Result<Cow<'_, str>> {
    Ok(match value {
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => {
            // The reader of the text goes through it.
            note(text.len() / BYTES_PER_UNIT);
            text.into()
        }
        ValueRef::Int32(v) => v.to_string().into(),
        ValueRef::Int64(v) => v.to_string().into(),
        ValueRef::Double(v) => double_six(v).into(),
        ValueRef::Decimal128(v) => v.to_string().into(),
        ValueRef::DateTime(ms) => format_iso(ms).into(),
        ValueRef::Timestamp(ts) => {
            let c = Civil::from_ms(i64::from(ts.secs) * 1000);
            let month = MONTHS[(c.month as usize).saturating_sub(1) % 12];
            format!(
                "{} {:>2} {:02}:{:02}:{:02}:{}",
                &month[..3],
                c.day,
                c.hour,
                c.minute,
                c.second,
                ts.inc
            )
            .into()
        }
        other if other.is_nullish() => "".into(),
        other => {
            return Err(error(
                16007,
                format!("can't convert from BSON type {} to String", other.bson_type().alias()),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles() {
        for (v, shortest, six) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (3.0, "3", "3"),
            (3.25, "3.25", "3.25"),
            (1e15, "1000000000000000", "1e+15"),
            (1e16, "1e+16", "1e+16"),
            (123_456.789, "123456.789", "123457"),
            (0.0001, "0.0001", "0.0001"),
            (0.00009, "9e-05", "9e-05"),
            (5e-324, "5e-324", "4.94066e-324"),
            (1.5e300, "1.5e+300", "1.5e+300"),
            (f64::NAN, "NaN", "nan"),
        ] {
            assert_eq!((double_shortest(v).as_str(), double_six(v).as_str()), (shortest, six));
        }
    }
}
