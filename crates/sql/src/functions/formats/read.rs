//! `to_date` and `to_timestamp`: text read by a pattern.

use super::{Piece, ROMAN, Word, pieces};
use crate::error::{error, fail};
use crate::types::datetime::{self, Parts};
use nestor_model::date::{MONTHS, WEEKDAYS, civil_from_days, days_from_civil, days_in_month};
use nestor_model::{Error, Result};

/// What a text says by a pattern.
#[derive(Clone, Copy, Debug)]
pub(in crate::functions) struct Read {
    /// The moment as clocks show it, in microseconds.
    pub local: i64,
    /// Seconds east of Greenwich, if they are told.
    pub east: Option<i64>,
}

/// The fields that were found; none twice with different values.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    /// Digits that the word for the year has.
    year_digits: usize,
    century: Option<i64>,
    before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week_of_month: Option<i64>,
    week_of_year: Option<i64>,
    julian: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_weekday: Option<i64>,
    iso_day: Option<i64>,
    hour: Option<i64>,
    half_days: bool,
    afternoon: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    second_of_day: Option<i64>,
    ms: Option<i64>,
    us: Option<i64>,
    /// Digits of a second that are kept.
    digits: Option<i32>,
    zone_negative: bool,
    zone_hour: Option<i64>,
    zone_minute: Option<i64>,
}

fn set(field: &mut Option<i64>, value: i64, word: &str) -> Result<()> {
    match field {
        Some(known) if *known != value => fail(
            "22007",
            format!("conflicting values for \"{word}\" field in formatting string"),
        ),
        _ => {
            *field = Some(value);
            Ok(())
        }
    }
}

fn invalid(text: &str, word: &str) -> Error {
    let shown: String = text.chars().take(10).collect();
    error("22007", format!("invalid value \"{shown}\" for \"{word}\""))
}

fn separates(c: char) -> bool {
    c.is_whitespace() || (c.is_ascii() && !c.is_ascii_alphanumeric() && !c.is_ascii_control())
}

/// Whether a word stands for digits, so that one before it ends where it begins.
fn is_digits(name: &str) -> bool {
    !matches!(
        name,
        "A.D."
            | "A.M."
            | "AD"
            | "AM"
            | "B.C."
            | "BC"
            | "DAY"
            | "DY"
            | "MONTH"
            | "MON"
            | "P.M."
            | "PM"
            | "RM"
            | "TZ"
            | "OF"
    )
}

struct Reader<'t> {
    rest: &'t str,
    /// The sign before it was taken for a separator.
    minus_before: bool,
    exact: bool,
}

impl Reader<'_> {
    fn skip(&mut self) {
        let mut chars = self.rest.chars();
        self.minus_before = chars.next() == Some('-');
        self.rest = chars.as_str();
    }

    /// A number of at most `most` characters where the next digits belong to another word, of any number otherwise; how many
    /// digits it has.
    fn number(&mut self, most: usize, adjoins: bool, word: &Word) -> Result<(i64, usize)> {
        self.rest = self.rest.trim_start();
        let limit = if adjoins || self.exact { most } else { 18 };
        let text: String = self.rest.chars().take(limit).collect();
        let sign = usize::from(text.starts_with(['-', '+']));
        let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || (self.exact && digits + sign < most.min(text.len())) {
            return Err(invalid(self.rest, word.name));
        }
        let end = sign + digits;
        let n: i64 = text[..end].parse().map_err(|_| invalid(self.rest, word.name))?;
        self.rest = &self.rest[end..];
        if word.ordinal.is_some() {
            // The letters of an ordinal, whichever they are.
            let letters = self
                .rest
                .chars()
                .take(2)
                .filter(|c| c.is_alphabetic())
                .map(char::len_utf8)
                .sum::<usize>();
            self.rest = &self.rest[letters..];
        }
        match i32::try_from(n) {
            Ok(_) => Ok((n, digits)),
            Err(_) => fail(
                "22008",
                format!("value for \"{}\" in source string is out of range", word.name),
            ),
        }
    }

    /// Which of names the text begins with.
    fn name(&mut self, names: &[&str], letters: Option<usize>, word: &Word) -> Result<i64> {
        self.rest = self.rest.trim_start();
        let mut found: Option<(usize, usize)> = None;
        for (at, name) in names.iter().enumerate() {
            let name = &name[..letters.unwrap_or(name.len())];
            let fits = self
                .rest
                .get(..name.len())
                .is_some_and(|own| own.eq_ignore_ascii_case(name));
            if fits && found.is_none_or(|(_, length)| length < name.len()) {
                found = Some((at, name.len()));
            }
        }
        let Some((at, length)) = found else {
            return Err(invalid(self.rest, word.name));
        };
        self.rest = &self.rest[length..];
        Ok(at as i64)
    }
}

/// Years of fewer than four digits are those nearest to 2020.
fn near(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        year => year,
    }
}

/// Reads a text by a pattern.
///
/// Errors: 22007 for text that does not go with it, 22008 for a field out of range, 0A000 for words that only `to_char` has.
pub(in crate::functions) fn read(text: &str, pattern: &str) -> Result<Read> {
    scan(text, &pieces(pattern), false)
}

/// What a pattern reads.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::functions) struct Has {
    /// Parts of a date.
    pub date: bool,
    /// Parts of a time.
    pub time: bool,
    /// Parts of an offset.
    pub zone: bool,
}

/// Reads a text of which nothing is left by a pattern of which nothing is left, and tells what that reads.
///
/// Errors: those of [`read`], 22007 for a text that is too short or too long.
pub(in crate::functions) fn read_whole(text: &str, pattern: &str) -> Result<(Read, Has)> {
    let pieces = pieces(pattern);
    let mut has = Has::default();
    for piece in &pieces.0 {
        let Piece::Word(word) = piece else { continue };
        match word.name {
            "HH24" | "HH12" | "HH" | "MI" | "SS" | "SSSS" | "SSSSS" | "MS" | "US" | "AM" | "PM" | "A.M." | "P.M." => {
                has.time = true;
            }
            name if name.starts_with("FF") => has.time = true,
            "TZ" | "TZH" | "TZM" | "OF" => has.zone = true,
            _ => has.date = true,
        }
    }
    if !has.date && !has.time {
        return fail("22007", "datetime format is not dated and not timed");
    }
    Ok((scan(text, &pieces, true)?, has))
}

/// Reads a text by the pieces of a pattern, `whole` says whether nothing of both may be left.
fn scan(text: &str, (pieces, exact): &(Vec<Piece>, bool), whole: bool) -> Result<Read> {
    let exact = *exact;
    let mut reader = Reader {
        rest: text,
        minus_before: false,
        exact,
    };
    let mut fields = Fields::default();
    // Spaces of the text that no piece of the pattern stands for so far.
    let mut spare = 0i64;
    for (at, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            if whole && pieces[at..].iter().any(|piece| matches!(piece, Piece::Word(_))) {
                return fail("22007", "input string is too short for datetime format");
            }
            break;
        }
        if !exact && (at == 0 || !matches!(piece, Piece::Literal(_))) {
            let trimmed = reader.rest.trim_start();
            spare += (reader.rest.len() - trimmed.len()) as i64;
            reader.rest = trimmed;
        }
        match piece {
            Piece::Separator(_) if exact => reader.skip(),
            Piece::Separator(_) => {
                spare -= 1;
                if reader.rest.starts_with(separates) {
                    reader.skip();
                    spare += 1;
                }
            }
            Piece::Literal(_) if !exact && spare > 0 => spare -= 1,
            Piece::Literal(c) if whole && !reader.rest.starts_with(*c) => {
                return fail("22007", format!("unmatched format character \"{c}\""));
            }
            Piece::Literal(_) => reader.skip(),
            Piece::Word(word) => {
                let adjoins = word.ordinal.is_none()
                    && match pieces.get(at + 1) {
                        Some(Piece::Word(next)) => is_digits(next.name),
                        Some(Piece::Literal(c) | Piece::Separator(c)) => c.is_ascii_digit(),
                        None => false,
                    };
                field(word, adjoins, &mut reader, &mut fields)?;
                spare = 0;
                reader.minus_before = false;
            }
        }
    }
    if whole && !reader.rest.trim().is_empty() {
        return fail(
            "22007",
            "trailing characters remain in input string after datetime format",
        );
    }
    finish(&fields)
}

fn field(word: &Word, adjoins: bool, reader: &mut Reader<'_>, fields: &mut Fields) -> Result<()> {
    let name = word.name;
    let mut number = |most: usize| reader.number(most, adjoins, word);
    match name {
        "YYYY" | "IYYY" => {
            let (year, digits) = number(4)?;
            if name == "IYYY" {
                return set(&mut fields.iso_year, year, name);
            }
            fields.year_digits = digits.max(4);
            set(&mut fields.year, year, name)
        }
        "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
            let (year, digits) = number(name.trim_start_matches('I').len() + usize::from(name.starts_with('I')))?;
            let year = if digits < 4 && year >= 0 { near(year) } else { year };
            match name.starts_with('I') {
                true => set(&mut fields.iso_year, year, name),
                false => {
                    fields.year_digits = digits;
                    set(&mut fields.year, year, name)
                }
            }
        }
        "Y,YYY" => {
            let (thousands, _) = reader.number(9, false, word)?;
            let Some(rest) = reader.rest.strip_prefix(',') else {
                return Err(invalid(reader.rest, name));
            };
            reader.rest = rest;
            let (rest, _) = reader.number(3, true, word)?;
            fields.year_digits = 4;
            set(&mut fields.year, thousands * 1000 + rest, name)
        }
        "CC" => number(2).and_then(|(n, _)| set(&mut fields.century, n, name)),
        "MM" => number(2).and_then(|(n, _)| set(&mut fields.month, n, name)),
        "MONTH" => reader
            .name(&MONTHS, None, word)
            .and_then(|n| set(&mut fields.month, n + 1, name)),
        "MON" => reader
            .name(&MONTHS, Some(3), word)
            .and_then(|n| set(&mut fields.month, n + 1, name)),
        "RM" => reader
            .name(&ROMAN, None, word)
            .and_then(|n| set(&mut fields.month, n + 1, name)),
        "DAY" => reader.name(&WEEKDAYS, None, word).map(|_| ()),
        "DY" => reader.name(&WEEKDAYS, Some(3), word).map(|_| ()),
        "D" => number(1).map(|_| ()),
        "Q" => number(1).map(|_| ()),
        "DDD" => number(3).and_then(|(n, _)| set(&mut fields.day_of_year, n, name)),
        "DD" => number(2).and_then(|(n, _)| set(&mut fields.day, n, name)),
        "IDDD" => number(3).and_then(|(n, _)| set(&mut fields.iso_day, n, name)),
        "ID" => number(1).and_then(|(n, _)| set(&mut fields.iso_weekday, n, name)),
        "IW" => number(2).and_then(|(n, _)| set(&mut fields.iso_week, n, name)),
        "W" => number(1).and_then(|(n, _)| set(&mut fields.week_of_month, n, name)),
        "WW" => number(2).and_then(|(n, _)| set(&mut fields.week_of_year, n, name)),
        "J" => number(9).and_then(|(n, _)| set(&mut fields.julian, n, name)),
        "HH24" => number(2).and_then(|(n, _)| set(&mut fields.hour, n, name)),
        "HH" | "HH12" => {
            fields.half_days = true;
            number(2).and_then(|(n, _)| set(&mut fields.hour, n, name))
        }
        "MI" => number(2).and_then(|(n, _)| set(&mut fields.minute, n, name)),
        "SS" => number(2).and_then(|(n, _)| set(&mut fields.second, n, name)),
        "SSSS" | "SSSSS" => number(5).and_then(|(n, _)| set(&mut fields.second_of_day, n, name)),
        "MS" => {
            let (n, digits) = number(3)?;
            set(&mut fields.ms, n * 10i64.pow(3u32.saturating_sub(digits as u32)), name)
        }
        "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let kept = name[2..].parse::<i32>().ok();
            fields.digits = fields.digits.max(kept);
            let (n, digits) = number(kept.map_or(6, |n| n as usize))?;
            set(&mut fields.us, n * 10i64.pow(6u32.saturating_sub(digits as u32)), name)
        }
        "AM" | "PM" => reader.name(&["AM", "PM"], None, word).and_then(|n| {
            fields.half_days = true;
            set(&mut fields.afternoon, n, name)
        }),
        "A.M." | "P.M." => reader.name(&["A.M.", "P.M."], None, word).and_then(|n| {
            fields.half_days = true;
            set(&mut fields.afternoon, n, name)
        }),
        "AD" | "BC" => reader
            .name(&["AD", "BC"], None, word)
            .map(|n| fields.before_christ = n == 1),
        "A.D." | "B.C." => reader
            .name(&["A.D.", "B.C."], None, word)
            .map(|n| fields.before_christ = n == 1),
        "TZH" => {
            reader.rest = reader.rest.trim_start();
            fields.zone_negative = reader.rest.starts_with('-') || reader.minus_before;
            reader.rest = reader.rest.trim_start_matches(['+', '-', ' ']);
            let (n, _) = reader.number(2, adjoins, word)?;
            set(&mut fields.zone_hour, n, name)
        }
        "TZM" => number(2).and_then(|(n, _)| set(&mut fields.zone_minute, n, name)),
        _ => fail(
            "0A000",
            format!("formatting field \"{name}\" is only supported in to_char"),
        ),
    }
}

/// Days from the beginning of Julian days to 1970.
const JULIAN_1970: i64 = 2_440_588;

fn out_of_range() -> Error {
    error("22008", "date/time field value out of range")
}

/// The year as astronomers count, in which the year before 1 is 0.
fn year(fields: &Fields) -> i64 {
    let mut year = match (fields.century, fields.year) {
        // A year of two digits is one of a century.
        (Some(century), Some(year)) if fields.year_digits <= 2 => match year % 100 {
            0 => century * 100,
            year => (century - 1) * 100 + year,
        },
        (_, Some(year)) => year,
        (Some(century), None) => (century - 1) * 100 + 1,
        (None, None) => 0,
    };
    if fields.before_christ {
        year = -year;
    }
    if year < 0 { year + 1 } else { year }
}

/// The date in days from 1970. Errors: 22007 for weeks of ISO among others, 22008.
fn days(fields: &Fields) -> Result<i64> {
    if let Some(julian) = fields.julian {
        return Ok(julian - JULIAN_1970);
    }
    let is_iso = fields.iso_year.is_some() || fields.iso_week.is_some() || fields.iso_day.is_some();
    let is_plain = fields.year.is_some()
        || fields.month.is_some()
        || fields.day.is_some()
        || fields.day_of_year.is_some()
        || fields.week_of_year.is_some();
    if is_iso && is_plain {
        return fail("22007", "invalid combination of date conventions");
    }
    if is_iso {
        let year = fields.iso_year.unwrap_or(0);
        // The week that the fourth of January is in is the first.
        let fourth = days_from_civil(year, 1, 4);
        let first = fourth - (fourth + 3).rem_euclid(7);
        return Ok(match fields.iso_day {
            Some(day) => first + day - 1,
            None => first + (fields.iso_week.unwrap_or(1) - 1) * 7 + fields.iso_weekday.unwrap_or(1) - 1,
        });
    }
    let year = year(fields);
    let week_day = fields.week_of_year.map(|week| (week - 1) * 7 + 1);
    if let (Some(day), None, None) = (fields.day_of_year.or(week_day), fields.month, fields.day) {
        let length = if days_in_month(year, 2) == Some(29) { 366 } else { 365 };
        return match (1..=length).contains(&day) {
            true => Ok(days_from_civil(year, 1, 1) + day - 1),
            false => Err(out_of_range()),
        };
    }
    let month = u32::try_from(fields.month.unwrap_or(1)).map_err(|_| out_of_range())?;
    let last = days_in_month(year, month).ok_or_else(out_of_range)?;
    let day = fields
        .day
        .or(fields.week_of_month.map(|week| (week - 1) * 7 + 1))
        .unwrap_or(1);
    match (1..=i64::from(last)).contains(&day) {
        true => Ok(days_from_civil(year, month, 1) + day - 1),
        false => Err(out_of_range()),
    }
}

fn finish(fields: &Fields) -> Result<Read> {
    let (mut hour, mut minute, mut second) = (
        fields.hour.unwrap_or(0),
        fields.minute.unwrap_or(0),
        fields.second.unwrap_or(0),
    );
    if let Some(all) = fields.second_of_day {
        (hour, minute, second) = (all / 3600, all / 60 % 60, all % 60);
    }
    if fields.half_days {
        if fields.hour.is_some() && !(1..=12).contains(&hour) {
            return fail("22007", format!("hour \"{hour}\" is invalid for the 12-hour clock"));
        }
        hour = match fields.afternoon {
            Some(1) if hour < 12 => hour + 12,
            Some(0) | None if hour == 12 && fields.hour.is_some() => 0,
            _ => hour,
        };
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(out_of_range());
    }
    let us = fields.ms.unwrap_or(0) * 1000 + fields.us.unwrap_or(0);
    let (year, month, day) = civil_from_days(days(fields)?);
    if !(-4713..=294_276).contains(&year) {
        return Err(datetime::out_of_range("timestamp"));
    }
    if us > 999_999 {
        return Err(out_of_range());
    }
    let east = (fields.zone_hour.is_some() || fields.zone_minute.is_some()).then(|| {
        let seconds = fields.zone_hour.unwrap_or(0) * 3600 + fields.zone_minute.unwrap_or(0) * 60;
        if fields.zone_negative { -seconds } else { seconds }
    });
    let local = Parts {
        year,
        month,
        day,
        us: ((hour * 60 + minute) * 60 + second) * 1_000_000 + us,
    };
    let local = local.timestamp()?;
    Ok(Read {
        local: fields.digits.map_or(local, |digits| datetime::rounded(local, digits)),
        east,
    })
}
