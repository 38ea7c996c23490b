//! `to_char` of timestamps and intervals.

use super::{Case, Piece, ROMAN, Word, pieces};
use crate::error::fail;
use crate::functions::numerals::ordinal;
use crate::types::datetime::Parts;
use crate::types::interval::Interval;
use crate::types::zone;
use nestor_model::Result;
use nestor_model::date::{MONTHS, WEEKDAYS, civil_from_days, days_from_civil};

/// Days from the beginning of Julian days to 1970.
const JULIAN_1970: i64 = 2_440_588;

/// A time as clocks and calendars show it.
pub(in crate::functions) struct Clock {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    us: i64,
    day_of_year: i64,
    is_interval: bool,
    /// Name and offset of the zone; none for times without.
    zone: (String, i64),
}

impl Clock {
    /// Of a timestamp.
    pub(in crate::functions) fn of_timestamp(us: i64, zone: (String, i64)) -> Self {
        let parts = Parts::of(us);
        Self {
            year: parts.year,
            month: i64::from(parts.month),
            day: i64::from(parts.day),
            hour: parts.us / 3_600_000_000,
            minute: parts.us / 60_000_000 % 60,
            second: parts.us / 1_000_000 % 60,
            us: parts.us % 1_000_000,
            day_of_year: parts.day_of_year(),
            is_interval: false,
            zone,
        }
    }

    /// Of an interval.
    pub(in crate::functions) fn of_interval(interval: Interval) -> Self {
        let (months, days) = (i64::from(interval.months), i64::from(interval.days));
        Self {
            year: months / 12,
            month: months % 12,
            day: days,
            hour: interval.us / 3_600_000_000,
            minute: interval.us / 60_000_000 % 60,
            second: interval.us / 1_000_000 % 60,
            us: interval.us % 1_000_000,
            day_of_year: months * 30 + days,
            is_interval: true,
            zone: (String::new(), 0),
        }
    }

    /// Days from 1970. Months and days of intervals are counted as those of a date.
    fn days(&self) -> i64 {
        let month = u32::try_from(self.month.clamp(1, 12)).unwrap_or(1);
        let moved = self.month - self.month.clamp(1, 12);
        days_from_civil(self.year, month, 1) + moved * 30 + self.day - 1
    }

    /// Year, week and day of the week by ISO 8601.
    fn iso(&self) -> (i64, i64, i64) {
        let days = self.days();
        let weekday = (days + 3).rem_euclid(7);
        let thursday = days - weekday + 3;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1, weekday + 1)
    }

    /// The day of the year of ISO 8601, whose first day is a Monday.
    fn iso_day(&self) -> i64 {
        let (_, week, weekday) = self.iso();
        (week - 1) * 7 + weekday
    }

    /// A year as it is shown: before Christ without a sign.
    fn shown_year(&self, year: i64) -> i64 {
        match self.is_interval || year > 0 {
            true => year,
            false => 1 - year,
        }
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Title => text.to_owned(),
        Case::Lower => text.to_lowercase(),
    }
}

/// A time by a pattern. Errors: 22007 for words that intervals have nothing for.
pub(in crate::functions) fn show(clock: &Clock, pattern: &str) -> Result<String> {
    let mut out = String::new();
    for piece in pieces(pattern).0 {
        match piece {
            Piece::Separator(c) | Piece::Literal(c) => out.push(c),
            Piece::Word(word) => shown(clock, &word, &mut out)?,
        }
    }
    Ok(out)
}

fn shown(clock: &Clock, word: &Word, out: &mut String) -> Result<()> {
    let not_of_intervals = matches!(
        word.name,
        "A.D." | "AD" | "B.C." | "BC" | "MONTH" | "MON" | "DAY" | "DY" | "D" | "ID" | "TZ" | "TZH" | "TZM" | "OF"
    );
    if clock.is_interval && not_of_intervals {
        return fail("22007", "invalid format specification for an interval value");
    }
    let number = |n: i64, width: usize| {
        let width = if word.compact { 0 } else { width + usize::from(n < 0) };
        let digits = format!("{n:0width$}");
        match word.ordinal {
            None => digits,
            Some(upper) => {
                let suffix = ordinal(&digits);
                digits.clone()
                    + &if upper {
                        suffix.to_uppercase()
                    } else {
                        suffix.to_owned()
                    }
            }
        }
    };
    let name = |name: &str, letters: Option<usize>| {
        let name = cased(&name[..letters.unwrap_or(name.len())], word.case);
        match letters.is_some() || word.compact {
            true => name,
            false => format!("{name:<9}"),
        }
    };
    let fraction = |digits: usize| format!("{:06}", clock.us.abs())[..digits].to_owned();
    let half = |dotted: bool| {
        let afternoon = clock.hour.rem_euclid(24) >= 12;
        let text = match (afternoon, dotted) {
            (false, false) => "AM",
            (true, false) => "PM",
            (false, true) => "A.M.",
            (true, true) => "P.M.",
        };
        cased(text, word.case)
    };
    let era = |dotted: bool| {
        let text = match (clock.year > 0, dotted) {
            (true, false) => "AD",
            (false, false) => "BC",
            (true, true) => "A.D.",
            (false, true) => "B.C.",
        };
        cased(text, word.case)
    };
    let year = clock.shown_year(clock.year);
    let iso_year = || clock.shown_year(if clock.is_interval { clock.year } else { clock.iso().0 });
    let month = usize::try_from(clock.month - 1).unwrap_or(0).min(11);
    let weekday = usize::try_from((clock.days() + 4).rem_euclid(7)).unwrap_or(0);
    let offset = clock.zone.1;
    let text = match word.name {
        "A.M." | "P.M." => half(true),
        "AM" | "PM" => half(false),
        "A.D." | "B.C." => era(true),
        "AD" | "BC" => era(false),
        "HH" | "HH12" => {
            let hour = match clock.hour % 12 {
                0 => 12,
                hour => hour,
            };
            number(hour, 2)
        }
        "HH24" => number(clock.hour, 2),
        "MI" => number(clock.minute, 2),
        "SS" => number(clock.second, 2),
        "MS" => fraction(3),
        "US" => fraction(6),
        "FF1" => fraction(1),
        "FF2" => fraction(2),
        "FF3" => fraction(3),
        "FF4" => fraction(4),
        "FF5" => fraction(5),
        "FF6" => fraction(6),
        "SSSS" | "SSSSS" => number(clock.hour * 3600 + clock.minute * 60 + clock.second, 0),
        "TZ" => cased(
            &clock.zone.0,
            if word.case == Case::Lower {
                Case::Lower
            } else {
                Case::Upper
            },
        ),
        "TZH" => format!("{}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 3600),
        "TZM" => format!("{:02}", offset.abs() / 60 % 60),
        "OF" => zone::format_offset(offset),
        "MONTH" => name(MONTHS[month], None),
        "MON" => name(MONTHS[month], Some(3)),
        "MM" => number(clock.month, 2),
        "DAY" => name(WEEKDAYS[weekday], None),
        "DY" => name(WEEKDAYS[weekday], Some(3)),
        "DDD" => number(clock.day_of_year, 3),
        "IDDD" => number(clock.iso_day(), 3),
        "DD" => number(clock.day, 2 - usize::from(clock.day < 0)),
        "D" => number(weekday as i64 + 1, 0),
        "ID" => number(clock.iso().2, 0),
        "WW" => number((clock.day_of_year - 1) / 7 + 1, 2),
        "IW" => number(clock.iso().1, 2),
        "W" => number((clock.day - 1) / 7 + 1, 0),
        "Q" if clock.month == 0 => String::new(),
        "Q" => number((clock.month - 1) / 3 + 1, 0),
        "CC" => {
            let century = match (clock.is_interval, clock.year > 0) {
                (true, _) => clock.year / 100,
                (false, true) => (clock.year - 1) / 100 + 1,
                (false, false) => clock.year / 100 - 1,
            };
            number(century, 2)
        }
        "Y,YYY" => format!("{},{:03}", year / 1000, year.abs() % 1000),
        "YYYY" => number(year, 4),
        "YYY" => number(year % 1000, 3),
        "YY" => number(year % 100, 2),
        "Y" => number(year % 10, 1),
        "IYYY" => number(iso_year(), 4),
        "IYY" => number(iso_year() % 1000, 3),
        "IY" => number(iso_year() % 100, 2),
        "I" => number(iso_year() % 10, 1),
        "RM" if clock.month == 0 => String::new(),
        "RM" => {
            let numeral = cased(
                ROMAN[month],
                if word.case == Case::Lower {
                    Case::Lower
                } else {
                    Case::Upper
                },
            );
            if word.compact { numeral } else { format!("{numeral:<4}") }
        }
        "J" => number(clock.days() + JULIAN_1970, 0),
        _ => String::new(),
    };
    out.push_str(&text);
    Ok(())
}
