//! Time zones: fixed offsets and the zones of the IANA database.

use crate::expr::args::error;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use nestor_model::Result;
use nestor_model::date::{Civil, DAY_MS, days_from_civil};

/// A time zone.
#[derive(Clone, Debug)]
pub(crate) enum Zone {
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

/// 400 years, after which the calendar repeats.
const ERA_MS: i64 = 146_097 * DAY_MS;

/// The instants whose zone rules are looked up directly: years 1 to 9998. Others use the rules of the same
/// time in an era within.
const LOOKUP_FROM_MS: i64 = -62_135_596_800_000;
const LOOKUP_TO_MS: i64 = 253_370_764_800_000;

/// `ms` moved by whole eras into the range of the lookup.
fn into_range(ms: i64) -> i64 {
    if (LOOKUP_FROM_MS..LOOKUP_TO_MS).contains(&ms) {
        return ms;
    }
    if ms < LOOKUP_FROM_MS {
        LOOKUP_FROM_MS + (ms.wrapping_sub(LOOKUP_FROM_MS)).rem_euclid(ERA_MS)
    } else {
        LOOKUP_TO_MS - ERA_MS + (ms - (LOOKUP_TO_MS - ERA_MS)) % ERA_MS
    }
}

impl Zone {
    /// UTC.
    pub(crate) const UTC: Zone = Zone::Fixed(0);

    /// Reads `+hh`, `+hhmm`, `+hh:mm` (either sign) or a name of the IANA database in its exact spelling.
    /// Error 40485.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let unknown = || error(40485, format!("unrecognized time zone identifier: \"{text}\""));
        if text == "UTC" || text == "GMT" {
            return Ok(Self::UTC);
        }
        if text.starts_with(['+', '-']) {
            return parse_offset(text)
                .map(|minutes| Zone::Fixed(minutes * 60_000))
                .ok_or_else(unknown);
        }
        if text.is_empty() || text.len() > 64 {
            return Err(unknown());
        }
        match TimeZone::get(text) {
            Ok(zone) if zone.iana_name() == Some(text) => Ok(Zone::Named(zone)),
            _ => Err(unknown()),
        }
    }

    /// True for UTC by any name of it.
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self, Zone::Fixed(0))
    }

    /// Milliseconds east of UTC at an instant.
    pub(crate) fn offset_ms(&self, ms: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => match jiff::Timestamp::from_millisecond(into_range(ms)) {
                Ok(at) => i64::from(zone.to_offset(at).seconds()) * 1000,
                Err(_) => 0,
            },
        }
    }

    /// The local time of an instant, as the milliseconds UTC would show it at.
    pub(crate) fn to_local(&self, ms: i64) -> i64 {
        ms.saturating_add(self.offset_ms(ms))
    }

    /// The instant of a local time. A time that is skipped counts on after the gap; of one that occurs twice
    /// the first is meant.
    pub(crate) fn instant_of(&self, local: i64) -> Option<i64> {
        match self {
            Zone::Fixed(offset) => local.checked_sub(*offset),
            Zone::Named(zone) => {
                let c = Civil::from_ms(into_range(local));
                let date = DateTime::new(
                    c.year as i16,
                    c.month as i8,
                    c.day as i8,
                    c.hour as i8,
                    c.minute as i8,
                    c.second as i8,
                    0,
                )
                .ok()?;
                let offset = match zone.to_ambiguous_timestamp(date).offset() {
                    AmbiguousOffset::Unambiguous { offset } => offset,
                    AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
                };
                local.checked_sub(i64::from(offset.seconds()) * 1000)
            }
        }
    }
}

/// Minutes east. Any two digits are taken for hours and minutes.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':').filter(|(hours, _)| hours.len() == 2)?,
        _ => return None,
    };
    let number = |s: &str| {
        s.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| s.parse::<i64>().ok())
            .flatten()
    };
    Some(sign * (number(hours)? * 60 + number(minutes)?))
}

/// Weekday of a local time, 0 for Sunday.
pub(crate) fn weekday(local: i64) -> u32 {
    (local.div_euclid(DAY_MS) + 4).rem_euclid(7) as u32
}

/// Day of the year, from 1.
pub(crate) fn day_of_year(c: &Civil) -> i64 {
    days_from_civil(c.year, c.month, c.day) - days_from_civil(c.year, 1, 1) + 1
}

/// ISO 8601 year and week of a local time: weeks start on Monday, week 1 has the year's first Thursday.
pub(crate) fn iso_week(local: i64) -> (i64, i64) {
    let day = local.div_euclid(DAY_MS);
    // The Thursday of the week decides the year.
    let thursday = day - (i64::from(weekday(local)) + 6) % 7 + 3;
    let year = nestor_model::date::civil_from_days(thursday).0;
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// Days since the epoch of the Monday of week 1 of an ISO year.
pub(crate) fn iso_year_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::date::parse_iso;

    fn ms(text: &str) -> i64 {
        parse_iso(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn offsets() {
        for (text, minutes) in [
            ("+05:30", 330),
            ("-0800", -480),
            ("+03", 180),
            ("+99:99", 6039),
            ("-05:70", -370),
        ] {
            assert_eq!(parse_offset(text), Some(minutes), "{text}");
        }
        for bad in ["+", "+5", "+100:00", "+05:3", "+0a", "+05-30", "+1:300"] {
            assert_eq!(parse_offset(bad), None, "{bad}");
        }
        for bad in ["", "EDT", "america/new_york", "Nowhere/Land", "25:00"] {
            assert!(Zone::parse(bad).is_err(), "{bad}");
        }
        assert!(Zone::parse("EST").is_ok());
    }

    #[test]
    fn gaps_and_folds() {
        let zone = Zone::parse("America/New_York").expect("known");
        // 02:30 does not exist on that day, 01:30 happens twice.
        assert_eq!(
            zone.instant_of(ms("2024-03-10T02:30:00Z")),
            Some(ms("2024-03-10T07:30:00Z"))
        );
        assert_eq!(
            zone.instant_of(ms("2024-11-03T01:30:00Z")),
            Some(ms("2024-11-03T05:30:00Z"))
        );
        assert_eq!(zone.to_local(ms("2024-07-01T12:00:00Z")), ms("2024-07-01T08:00:00Z"));
        // Far outside of the range of civil years.
        let far = i64::MAX / 2;
        assert!((far - zone.to_local(far)) % 3_600_000 == 0);
        assert!(zone.instant_of(-far).is_some());
    }

    #[test]
    fn iso_weeks() {
        for (day, expected) in [
            ("2016-01-01T00:00:00Z", (2015, 53)),
            ("2018-12-31T00:00:00Z", (2019, 1)),
            ("2024-06-10T23:00:00Z", (2024, 24)),
        ] {
            assert_eq!(iso_week(ms(day)), expected, "{day}");
        }
        assert_eq!(iso_year_start(2020) * DAY_MS, ms("2019-12-30T00:00:00Z"));
        assert_eq!(weekday(ms("1970-01-01T00:00:00Z")), 4);
    }
}
