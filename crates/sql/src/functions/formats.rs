//! Patterns by which dates and times are read: `to_date` and `to_timestamp`.

use crate::error::{error, fail, unsupported};
use crate::types::datetime::{self, Parts};
use nestor_model::Result;
use nestor_model::date::days_in_month;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// What a pattern has found so far.
struct Found {
    parts: Parts,
    hour: i64,
    minute: i64,
    us: i64,
    afternoon: Option<bool>,
    day_of_year: Option<i64>,
}

/// Digits at the beginning of a text, at most so many, as a number.
fn digits(text: &mut &str, most: usize, word: &str) -> Result<i64> {
    let trimmed = text.trim_start();
    let (negative, body) = match trimmed.strip_prefix('-') {
        Some(body) if word.starts_with('Y') => (true, body),
        _ => (false, trimmed),
    };
    let count = body.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let n: i64 = body[..count].parse().map_err(|_| {
        let shown: String = body.chars().take(most.min(8)).collect();
        error("22007", format!("invalid value \"{shown}\" for \"{word}\""))
    })?;
    *text = &body[count..];
    Ok(if negative { -n } else { n })
}

/// Reads a timestamp by a pattern, as clocks show it.
///
/// Errors: 22007 for text that does not go with it, 22008 for a field out of range, 0A000 for words of patterns that are not known.
pub(super) fn timestamp(text: &str, pattern: &str) -> Result<i64> {
    const WORDS: &[&str] = &[
        "YYYY", "YYY", "YY", "Y", "MONTH", "MON", "MM", "MI", "MS", "DDD", "DD", "DAY", "DY", "HH24", "HH12", "HH",
        "SSSS", "SS", "US", "AM", "PM", "A.M.", "P.M.", "FM", "FX", "TH",
    ];
    let mut found = Found {
        parts: Parts {
            year: 1,
            month: 1,
            day: 1,
            us: 0,
        },
        hour: 0,
        minute: 0,
        us: 0,
        afternoon: None,
        day_of_year: None,
    };
    let (mut text, mut rest) = (text.trim_start(), pattern);
    while let Some(c) = rest.chars().next() {
        let upper: String = rest.chars().take(5).collect::<String>().to_ascii_uppercase();
        if let Some(word) = WORDS.iter().find(|word| upper.starts_with(**word)) {
            rest = &rest[word.len()..];
            // Numbers that stand next to each other have as many digits as their words.
            let adjoins = rest.starts_with(|c: char| c.is_ascii_alphabetic());
            read(word, adjoins, &mut text, &mut found)?;
        } else if c.is_ascii_alphabetic() {
            return unsupported(format!("pattern \"{rest}\""));
        } else {
            rest = &rest[c.len_utf8()..];
            // A separator goes with any other, or with none.
            if text.starts_with(|t: char| t == c || !t.is_alphanumeric() && !matches!(t, '+' | '-'))
                || text.starts_with(c)
            {
                let mut chars = text.chars();
                chars.next();
                text = chars.as_str();
            } else if !c.is_whitespace() && text.starts_with('-') {
                text = &text[1..];
            }
        }
    }
    finish(found)
}

fn read(word: &str, adjoins: bool, text: &mut &str, found: &mut Found) -> Result<()> {
    let width = |most: usize| if adjoins { most } else { 9.max(most) };
    match word {
        "YYYY" => found.parts.year = digits(text, width(4), word)?,
        "YYY" | "YY" | "Y" => {
            let n = digits(text, width(word.len()), word)?;
            found.parts.year = match n {
                0..70 => n + 2000,
                70..100 => n + 1900,
                n => n,
            };
        }
        "MONTH" | "MON" => {
            let lower = text.trim_start().to_lowercase();
            let at = MONTHS.iter().position(|month| lower.starts_with(&month[..3]));
            let at = at.ok_or_else(|| error("22007", format!("invalid value \"{text}\" for \"{word}\"")))?;
            found.parts.month = at as u32 + 1;
            let full = if word == "MONTH" && lower.starts_with(MONTHS[at]) {
                MONTHS[at].len()
            } else {
                3
            };
            *text = &text.trim_start()[full..];
        }
        "DAY" | "DY" => *text = text.trim_start().trim_start_matches(|c: char| c.is_alphabetic()),
        "MM" => found.parts.month = narrow(digits(text, 2, word)?)?,
        "DDD" => found.day_of_year = Some(digits(text, 3, word)?),
        "DD" => found.parts.day = narrow(digits(text, 2, word)?)?,
        "HH24" => found.hour = digits(text, 2, word)?,
        "HH12" | "HH" => {
            found.hour = digits(text, 2, word)?;
            if !(1..=12).contains(&found.hour) {
                return fail(
                    "22007",
                    format!("hour \"{}\" is invalid for the 12-hour clock", found.hour),
                );
            }
            found.afternoon.get_or_insert(false);
        }
        "MI" => found.minute = digits(text, 2, word)?,
        "SSSS" => {
            let n = digits(text, 5, word)?;
            (found.hour, found.minute, found.us) = (n / 3600, n / 60 % 60, n % 60 * 1_000_000);
        }
        "SS" => found.us += digits(text, 2, word)? * 1_000_000,
        "MS" | "US" => {
            let most = if word == "MS" { 3 } else { 6 };
            let before = text.trim_start().len();
            let n = digits(text, most, word)?;
            let count = before - text.len();
            found.us += n * 10i64.pow(6 - count.min(6) as u32);
        }
        "AM" | "PM" | "A.M." | "P.M." => {
            let lower = text.trim_start().to_lowercase();
            found.afternoon = Some(lower.starts_with('p'));
            *text = text.trim_start().trim_start_matches(|c: char| "apmAPM.".contains(c));
        }
        _ => {}
    }
    Ok(())
}

fn narrow(n: i64) -> Result<u32> {
    u32::try_from(n).map_err(|_| datetime::out_of_range("date"))
}

fn finish(mut found: Found) -> Result<i64> {
    let out_of_range = || error("22008", "date/time field value out of range");
    if let Some(afternoon) = found.afternoon {
        found.hour = found.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if !(0..=24).contains(&found.hour) || !(0..60).contains(&found.minute) || !(0..=60_000_000).contains(&found.us) {
        return Err(out_of_range());
    }
    if let Some(day) = found.day_of_year {
        let mut left = day;
        for month in 1..=12 {
            let length = i64::from(days_in_month(found.parts.year, month).unwrap_or(0));
            if (1..=length).contains(&left) {
                (found.parts.month, found.parts.day) = (month, narrow(left)?);
                break;
            }
            left -= length;
        }
    }
    let last = days_in_month(found.parts.year, found.parts.month).ok_or_else(out_of_range)?;
    if !(1..=last).contains(&found.parts.day) {
        return Err(out_of_range());
    }
    found.parts.us = (found.hour * 60 + found.minute) * 60_000_000 + found.us;
    found.parts.timestamp()
}
