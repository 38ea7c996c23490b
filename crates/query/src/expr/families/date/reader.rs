//! Parts shared by all that reads dates from text: the fields found so far, a reader of text, months and zones.

use super::zone::{Zone, iso_year_start};
use nestor_model::date::{DAY_MS, days_from_civil, days_in_month};
use nestor_model::{Error, ErrorCode, Result};

/// The error of a text that is no date.
pub(super) fn failure(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, message)
}

/// The fields that were read so far.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) year: Option<i64>,
    pub(super) month: Option<u32>,
    pub(super) day: Option<u32>,
    pub(super) day_of_year: Option<i64>,
    pub(super) iso_year: Option<i64>,
    pub(super) iso_week: Option<i64>,
    pub(super) iso_day: Option<i64>,
    pub(super) hour: Option<i64>,
    pub(super) minute: Option<i64>,
    pub(super) second: Option<i64>,
    pub(super) millisecond: Option<i64>,
    /// Zone read from the text.
    pub(super) zone: Option<Zone>,
}

impl Fields {
    /// Whether they name a day: hours and smaller parts may be missing, parts of the date may not. Error 241.
    pub(super) fn check_complete(&self, text: &str) -> Result<()> {
        let has_day = self.day_of_year.is_some() || (self.month.is_some() && self.day.is_some());
        if self.iso_year.is_some() || (self.year.is_some() && has_day) {
            return Ok(());
        }
        Err(failure(format!(
            "an incomplete date/time string has been found, with elements missing: \"{text}\""
        )))
    }

    pub(super) fn finish(self, zone: Option<Zone>) -> Option<Result<i64>> {
        let days = if let Some(year) = self.iso_year {
            if self.month.is_some() || self.day.is_some() || self.year.is_some() {
                return None;
            }
            iso_year_start(year) + (self.iso_week.unwrap_or(1) - 1) * 7 + self.iso_day.unwrap_or(1) - 1
        } else {
            let year = self.year?;
            match self.day_of_year {
                Some(day) => days_from_civil(year, 1, 1) + day - 1,
                None => {
                    let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                    if day == 0 || day > days_in_month(year, month)? {
                        return None;
                    }
                    days_from_civil(year, month, day)
                }
            }
        };
        let clock = self.hour.unwrap_or(0) * 3_600_000
            + self.minute.unwrap_or(0) * 60_000
            + self.second.unwrap_or(0) * 1000
            + self.millisecond.unwrap_or(0);
        let zone = match (self.zone, zone) {
            (Some(_), Some(_)) => {
                return Some(Err(failure(
                    "you cannot pass in a date/time string with time zone information together with a timezone argument",
                )));
            }
            (own, given) => own.or(given).unwrap_or(Zone::UTC),
        };
        zone.instant_of(days.checked_mul(DAY_MS)?.checked_add(clock)?).map(Ok)
    }
}

/// A reader of text from the left.
pub(super) struct Reader<'t> {
    pub(super) rest: &'t str,
}

impl<'t> Reader<'t> {
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// A number of `min` to `max` digits.
    pub(super) fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok()
    }

    pub(super) fn digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    pub(super) fn letters(&mut self) -> &'t str {
        let count = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (word, rest) = self.rest.split_at(count);
        self.rest = rest;
        word
    }
}

pub(super) fn within(value: i64, from: i64, to: i64) -> Option<i64> {
    (from..=to).contains(&value).then_some(value)
}

/// `Z`, `UTC`, `GMT`, or an offset such as `+05:30`, `+0530`, `+5`.
pub(super) fn read_zone(reader: &mut Reader<'_>) -> Option<Zone> {
    let sign = match reader.peek()? {
        '+' => 1,
        '-' => -1,
        'Z' | 'z' => {
            reader.rest = &reader.rest[1..];
            return Some(Zone::UTC);
        }
        _ => {
            let word = reader.letters();
            return abbreviation(word);
        }
    };
    reader.rest = &reader.rest[1..];
    let digits = reader.digits();
    let (hours, minutes) = match digits {
        1 | 2 => {
            let hours = reader.number(1, 2)?;
            let minutes = if reader.eat(":") { reader.number(2, 2)? } else { 0 };
            (hours, minutes)
        }
        3 => (reader.number(1, 1)?, reader.number(2, 2)?),
        4 => (reader.number(2, 2)?, reader.number(2, 2)?),
        _ => return None,
    };
    Some(Zone::Fixed(sign * (hours * 60 + minutes) * 60_000))
}

/// Zones by the abbreviations that are common in dates.
pub(super) fn abbreviation(word: &str) -> Option<Zone> {
    let hours = match word.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" => 0,
        "EST" => -5,
        "EDT" => -4,
        "CST" => -6,
        "CDT" => -5,
        "MST" => -7,
        "MDT" => -6,
        "PST" => -8,
        "PDT" => -7,
        "CET" => 1,
        "CEST" => 2,
        _ => return None,
    };
    Some(Zone::Fixed(hours * 3_600_000))
}
