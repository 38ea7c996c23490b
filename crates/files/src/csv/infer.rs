//! What a field without a type is: a number when it reads as one and nothing of it would be lost, else text.

use nestor_model::{RawWriter, ValueRef};

/// Appends `text` as the number that it is ([`number`]) or, if it is none, as a string.
pub fn append(writer: &mut RawWriter, name: &str, text: &str) {
    match number(text) {
        Some(number) => writer.append(name, number),
        None => writer.append(name, text),
    }
}

/// The int, long or double that `text` is.
///
/// `007`, `+49301234` and numbers of more digits than a double has are none: as numbers they would not be what
/// stands in the file. Zeros at the end and the way an exponent is written are no part of a number, so `2.50` is one.
pub fn number(text: &str) -> Option<ValueRef<'static>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let begins_like_one = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if !begins_like_one || has_leading_zero || text == "-0" {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(match i32::try_from(whole) {
            Ok(small) => ValueRef::Int32(small),
            Err(_) => ValueRef::Int64(whole),
        });
    }
    let number = text.parse::<f64>().ok()?;
    is_kept(digits, number).then_some(ValueRef::Double(number))
}

/// Whether `number` printed again has the digits of `text`, an unsigned decimal number.
fn is_kept(text: &str, number: f64) -> bool {
    if !number.is_finite() {
        return false;
    }
    let printed = format!("{:e}", number.abs());
    match (scientific(text), scientific(&printed)) {
        (Some(written), Some(read)) => written == read,
        _ => false,
    }
}

/// The significant digits of a decimal number, and the power of ten of the first of them. Zero has none.
fn scientific(text: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [whole, fraction].concat();
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return Some((String::new(), 0));
    }
    let skipped = i64::try_from(all.len() - significant.len()).ok()?;
    let first = i64::try_from(whole.len()).ok()? - 1 - skipped;
    let power = first.checked_add(exponent.parse().ok()?)?;
    Some((significant.trim_end_matches('0').to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_lose_nothing_are_numbers() {
        for (text, expected) in [
            ("5", "int"),
            ("0", "int"),
            ("-7", "int"),
            ("3000000000", "long"),
            ("9223372036854775807", "long"),
            ("2.5", "double"),
            ("2.50", "double"),
            ("0.1", "double"),
            ("0.0", "double"),
            ("-0.5", "double"),
            ("1e3", "double"),
            ("1E+3", "double"),
            ("1.5e-7", "double"),
            (".5", "double"),
            ("5.", "double"),
            ("0.30000000000000004", "double"),
            ("10000000000000000000", "double"),
            // As numbers these would lose their zeros.
            ("007", "string"),
            ("-01", "string"),
            ("00.5", "string"),
            ("+1", "string"),
            ("-0", "string"),
            ("9223372036854775809", "string"),
            ("3.14159265358979323846", "string"),
            ("1e400", "string"),
            ("1e-400", "string"),
            // No numbers at all.
            ("", "string"),
            ("abc", "string"),
            ("nan", "string"),
            ("inf", "string"),
            ("-", "string"),
            (".", "string"),
            ("-inf", "string"),
            ("1.2.3", "string"),
            ("0x10", "string"),
            (" 5", "string"),
            ("1e", "string"),
        ] {
            let mut writer = RawWriter::new();
            append(&mut writer, "a", text);
            let doc = writer.into_doc();
            let kind = match doc.as_raw().get("a") {
                Some(ValueRef::Int32(_)) => "int",
                Some(ValueRef::Int64(_)) => "long",
                Some(ValueRef::Double(_)) => "double",
                Some(ValueRef::String(kept)) if kept == text => "string",
                _ => "other",
            };
            assert_eq!(kind, expected, "{text:?}");
        }
    }
}
