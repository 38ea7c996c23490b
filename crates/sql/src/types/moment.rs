//! Dates and times as they are written: fields in any order, as far as one tells them apart. Of three plain numbers the
//! order is that of the session ([`order`]).

use super::interval::DAY_US;
use super::style::{Order, order};
use super::zone::{self, Zone};
use crate::error::error;
use nestor_model::date::{civil_from_days, days_from_civil, days_in_month};
use nestor_model::{Error, Result};

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Moment {
    /// Days from 1970.
    pub days: Option<i64>,
    /// Microseconds of the day.
    pub us: Option<i64>,
    /// The zone, if one is named.
    pub zone: Option<Zone>,
    /// An infinity: whether it is the late one.
    pub infinite: Option<bool>,
    /// This very moment, in microseconds from 1970.
    pub now: Option<i64>,
}

/// Why a text is no moment.
enum Wrong {
    /// It is not of the form: 22007.
    Form,
    /// A field is out of range: 22008.
    Range,
    /// Another reason.
    Other(Error),
}

type Read<T> = std::result::Result<T, Wrong>;

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

const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// Which of names a word is: as a whole, or by its first letters.
fn named(names: &[&str], word: &str) -> Option<usize> {
    let short = |name: &str| name.starts_with(word) && (word.len() == 3 || (word.len() == 4 && word != "marc"));
    names
        .iter()
        .position(|name| *name == word || (word.len() >= 3 && short(name)))
}

/// The fields that were read so far.
#[derive(Default)]
struct Fields {
    /// Numbers of the date in their order, and how many digits each has.
    numbers: Vec<(i64, usize)>,
    month: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    days: Option<i64>,
    us: Option<i64>,
    afternoon: Option<bool>,
    before_christ: Option<bool>,
    zone: Option<Zone>,
}

impl Fields {
    /// Whether a whole date was read, behind which a zone may stand.
    fn has_date(&self) -> bool {
        self.numbers.len() >= 3 || self.month.is_some() && self.numbers.len() >= 2 || self.day_of_year.is_some()
    }
}

/// Reads a moment; `kind` is the type that errors name.
///
/// Errors: 22007, 22008, 22009 and 22023 for zones.
pub(super) fn read(text: &str, kind: &str) -> Result<Moment> {
    let failed = |wrong: Wrong| match wrong {
        Wrong::Form => error("22007", format!("invalid input syntax for type {kind}: \"{text}\"")),
        Wrong::Range => error("22008", format!("date/time field value out of range: \"{text}\"")),
        Wrong::Other(error) => error,
    };
    match text.trim().to_ascii_lowercase().as_str() {
        "infinity" | "+infinity" => return Ok(infinity(true)),
        "-infinity" => return Ok(infinity(false)),
        "now" => {
            return Ok(Moment {
                now: Some(nestor_database::clock::now_ms().saturating_mul(1000)),
                ..Moment::default()
            });
        }
        "epoch" => {
            return Ok(Moment {
                days: Some(0),
                us: Some(0),
                zone: Some(Zone::Utc),
                ..Moment::default()
            });
        }
        _ => {}
    }
    let is_time = kind.starts_with("time ") || kind == "time";
    fields(text.trim(), is_time).and_then(finish).map_err(failed)
}

fn infinity(late: bool) -> Moment {
    Moment {
        infinite: Some(late),
        ..Moment::default()
    }
}

fn fields(text: &str, is_time: bool) -> Read<Fields> {
    let mut out = Fields::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = |extra: &str| {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || extra.contains(c)));
            end.unwrap_or(rest.len())
        };
        let length = match c {
            c if c.is_whitespace() || c == ',' => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            c if c.is_ascii_digit() => {
                let length = rest.find(|c: char| c.is_whitespace() || c == ',').unwrap_or(rest.len());
                // A time ends where its zone begins.
                let end = time_length(&rest[..length]);
                digits(&rest[..end], is_time, &mut out)?;
                rest = rest[end..]
                    .strip_prefix(['T', 't'])
                    .filter(|after| after.starts_with(|c: char| c.is_ascii_digit()))
                    .unwrap_or(&rest[end..]);
                continue;
            }
            '+' | '-' if (out.us.is_some() || out.has_date()) && out.zone.is_none() => {
                let end = 1 + rest[1..]
                    .find(|c: char| !(c.is_ascii_digit() || c == ':'))
                    .unwrap_or(rest.len() - 1);
                out.zone = Some(offset(&rest[..end])?);
                end
            }
            c if c.is_alphabetic() => {
                let end = word("/_+-:.");
                letters(&rest[..end], &mut out)?;
                end
            }
            _ => return Err(Wrong::Form),
        };
        rest = &rest[length..];
    }
    Ok(out)
}

/// How far a word that begins with a digit goes: a time ends before its zone, a date before its time.
fn time_length(word: &str) -> usize {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    match word[digits..].chars().next() {
        Some(':') => word
            .find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'))
            .unwrap_or(word.len()),
        Some('+') => digits,
        Some('-') if digits == 6 && !word[digits + 1..].contains('-') => digits,
        Some('T' | 't') if word[digits + 1..].starts_with(|c: char| c.is_ascii_digit()) => digits,
        Some(c) if c.is_ascii_alphabetic() => digits,
        Some(_) => {
            // A date with signs between its parts, up to a `T` or a zone.
            let bytes = word.as_bytes();
            let at = (1..word.len().saturating_sub(1)).find(|at| {
                matches!(bytes[*at], b'T' | b't' | b'+')
                    && bytes[at - 1].is_ascii_digit()
                    && bytes[at + 1].is_ascii_digit()
            });
            at.unwrap_or(word.len())
        }
        None => digits,
    }
}

fn number(text: &str) -> Read<i64> {
    match !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text.len() < 10 {
        true => text.parse().map_err(|_| Wrong::Form),
        false => Err(Wrong::Form),
    }
}

/// A word that begins with a digit.
fn digits(word: &str, is_time: bool, out: &mut Fields) -> Read<()> {
    if word.contains(':') {
        return set_time(clock(word)?, out);
    }
    if word.bytes().all(|b| b.is_ascii_digit()) {
        let has_date = out.numbers.len() >= 3 || (out.month.is_some() && out.numbers.len() >= 2);
        let is_clock = is_time || has_date;
        return match word.len() {
            8 if !is_clock => {
                out.numbers.extend([
                    (number(&word[..4])?, 4),
                    (number(&word[4..6])?, 2),
                    (number(&word[6..])?, 2),
                ]);
                Ok(())
            }
            6 | 4 if is_clock && out.us.is_none() => {
                let second = if word.len() == 6 { number(&word[4..])? } else { 0 };
                set_time(time(number(&word[..2])?, number(&word[2..4])?, second as f64)?, out)
            }
            6 if out.numbers.is_empty() && out.month.is_none() => {
                let year = number(&word[..2])?;
                out.numbers
                    .extend([(near(year), 4), (number(&word[2..4])?, 2), (number(&word[4..])?, 2)]);
                Ok(())
            }
            7 if out.numbers.is_empty() => {
                out.numbers.push((number(&word[..4])?, 4));
                out.day_of_year = Some(number(&word[4..])?);
                Ok(())
            }
            _ if is_time && out.numbers.is_empty() && word.len() < 3 => Err(Wrong::Form),
            _ => {
                out.numbers.push((number(word)?, word.len()));
                Ok(())
            }
        };
    }
    if let Some((year, day)) = word
        .split_once('.')
        .filter(|(year, day)| year.len() == 4 && day.len() == 3)
    {
        out.numbers.push((number(year)?, 4));
        out.day_of_year = Some(number(day)?);
        return Ok(());
    }
    let sign = word.chars().find(|c| !c.is_alphanumeric()).ok_or(Wrong::Form)?;
    if !matches!(sign, '-' | '/' | '.') {
        return Err(Wrong::Form);
    }
    let parts: Vec<&str> = word.split(sign).collect();
    match parts.as_slice() {
        [year, day] if sign == '-' && year.len() >= 4 && day.len() == 3 => {
            out.numbers.push((number(year)?, year.len()));
            out.day_of_year = Some(number(day)?);
            Ok(())
        }
        [_, _, _] => parts.iter().try_for_each(|part| dated(part, out)),
        _ => Err(Wrong::Form),
    }
}

/// A part of a date: a number, or the name of a month.
fn dated(part: &str, out: &mut Fields) -> Read<()> {
    match part.starts_with(|c: char| c.is_ascii_digit()) {
        true => out.numbers.push((number(part)?, part.len())),
        false => {
            let month = named(&MONTHS, &part.to_ascii_lowercase()).ok_or(Wrong::Form)?;
            out.month = Some(month as i64 + 1);
        }
    }
    Ok(())
}

fn set_time(us: i64, out: &mut Fields) -> Read<()> {
    match out.us.replace(us) {
        None => Ok(()),
        Some(_) => Err(Wrong::Form),
    }
}

fn clock(word: &str) -> Read<i64> {
    let mut parts = word.split(':');
    let mut next = || parts.next();
    let (hour, minute, second) = (next().ok_or(Wrong::Form)?, next().ok_or(Wrong::Form)?, next());
    let second: f64 = match second {
        None => 0.0,
        Some(text) => text.parse().map_err(|_| Wrong::Form)?,
    };
    // Minutes with a fraction are minutes and seconds of an hour that is not there.
    match next() {
        Some(_) => Err(Wrong::Form),
        None => time(number(hour)?, number(minute)?, second),
    }
}

fn time(hour: i64, minute: i64, second: f64) -> Read<i64> {
    let us = (hour.min(1000) * 60 + minute) * 60_000_000 + (second * 1e6).round() as i64;
    match hour <= 24 && minute < 60 && (0.0..=60.0).contains(&second) && us <= DAY_US {
        true => Ok(us),
        false => Err(Wrong::Range),
    }
}

/// Seconds east of Greenwich, at most 15:59:59.
fn offset(text: &str) -> Read<Zone> {
    let (sign, digits) = text.split_at(1);
    let parts: Vec<&str> = match digits.contains(':') {
        true => digits.split(':').collect(),
        false if digits.len() > 2 => vec![&digits[..digits.len() - 2], &digits[digits.len() - 2..]],
        false => vec![digits],
    };
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        seconds += number(part)? * unit;
    }
    if parts.len() > 3 {
        return Err(Wrong::Form);
    }
    if seconds >= 16 * 3600 {
        return Err(Wrong::Other(error(
            "22009",
            format!("time zone displacement out of range: \"{text}\""),
        )));
    }
    Ok(Zone::Fixed(if sign == "-" { -seconds } else { seconds }))
}

/// A word that begins with a letter.
fn letters(word: &str, out: &mut Fields) -> Read<()> {
    let lower = word.to_ascii_lowercase();
    let today = || zone::local(nestor_database::clock::now_ms().saturating_mul(1000)).div_euclid(DAY_US);
    match lower.as_str() {
        "am" | "pm" => out.afternoon = Some(lower == "pm"),
        "ad" | "bc" => out.before_christ = Some(lower == "bc"),
        "t" | "at" | "on" => {}
        "allballs" => {
            out.zone = Some(Zone::Utc);
            return set_time(0, out);
        }
        "today" => out.days = Some(today()),
        "tomorrow" => out.days = Some(today() + 1),
        "yesterday" => out.days = Some(today() - 1),
        _ => {
            if let Some(digits) = lower
                .strip_prefix('j')
                .filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
            {
                out.julian = Some(number(digits)?);
                return Ok(());
            }
            if let Some(month) = named(&MONTHS, &lower) {
                out.month = Some(month as i64 + 1);
                return Ok(());
            }
            if named(&DAYS, &lower).is_some() {
                return Ok(());
            }
            // `Jan-08-1999`.
            if let Some((month, rest)) = lower.split_once('-')
                && named(&MONTHS, month).is_some()
            {
                dated(month, out)?;
                return rest.split('-').try_for_each(|part| dated(part, out));
            }
            if out.zone.is_some() {
                return Err(Wrong::Form);
            }
            let zone = match lower.starts_with(|c: char| c.is_ascii_alphabetic()) && lower.contains(['+', '-']) {
                true => Zone::named(word),
                false => Zone::parse(word),
            };
            out.zone = Some(zone.map_err(|error| match word.contains('/') {
                true => Wrong::Other(error),
                false => Wrong::Form,
            })?);
        }
    }
    Ok(())
}

/// Two digits of a year are those of one near 2000.
fn near(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        year => year,
    }
}

fn finish(fields: Fields) -> Read<Moment> {
    let mut us = fields.us;
    if let Some(afternoon) = fields.afternoon {
        let time = us.ok_or(Wrong::Form)?;
        let hour = time / 3_600_000_000;
        if !(1..=12).contains(&hour) {
            return Err(Wrong::Range);
        }
        us = Some(time - hour * 3_600_000_000 + (hour % 12 + if afternoon { 12 } else { 0 }) * 3_600_000_000);
    }
    Ok(Moment {
        days: date(&fields)?,
        us,
        zone: fields.zone,
        ..Moment::default()
    })
}

/// The date, if there is one.
fn date(fields: &Fields) -> Read<Option<i64>> {
    if fields.days.is_some() {
        return Ok(fields.days);
    }
    if let Some(julian) = fields.julian {
        return Ok(Some(julian - 2_440_588));
    }
    let (year, month, day) = match (fields.month, fields.day_of_year, fields.numbers.as_slice()) {
        (None, None, []) => return Ok(None),
        (None, Some(day), [year]) => {
            let first = days_from_civil(year.0, 1, 1);
            let days = first + day - 1;
            return match day >= 1 && civil_from_days(days).0 == year.0 {
                true => Ok(Some(days)),
                false => Err(Wrong::Range),
            };
        }
        (None, None, [year, month, day]) if year.1 >= 3 => (*year, month.0, *day),
        (None, None, [first, second, third]) => match order() {
            Order::MonthDayYear => (*third, first.0, *second),
            Order::DayMonthYear => (*third, second.0, *first),
            Order::YearMonthDay => (*first, second.0, *third),
        },
        (Some(month), None, [year, day]) if year.1 >= 3 => (*year, month, *day),
        (Some(month), None, [year, day]) if order() == Order::YearMonthDay => (*year, month, *day),
        (Some(month), None, [day, year]) => (*year, month, *day),
        _ => return Err(Wrong::Form),
    };
    let (mut year, digits) = year;
    if year == 0 && digits > 2 {
        return Err(Wrong::Range);
    }
    match fields.before_christ {
        Some(true) => year = 1 - year,
        _ if digits <= 2 => year = near(year),
        _ => {}
    }
    let month = u32::try_from(month).map_err(|_| Wrong::Range)?;
    let last = days_in_month(year, month).ok_or(Wrong::Range)?;
    let in_range = day.0 >= 1 && day.0 <= i64::from(last) && (-4713..=5_874_897).contains(&year);
    match in_range {
        true => Ok(Some(days_from_civil(year, month, u32::try_from(day.0).unwrap_or(1)))),
        false => Err(Wrong::Range),
    }
}
