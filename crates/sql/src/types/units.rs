//! Units of dates and times, and the parts of moments that are whole numbers.

use super::datetime::{self, Parts};
use super::interval::DAY_US;

/// The unit that a name is, which may be in the plural or one of those that intervals are written with.
pub(crate) fn unit(field: &str) -> String {
    let lower = field.trim().to_ascii_lowercase();
    let known = match lower.as_str() {
        "us" | "usec" | "usecond" | "useconds" | "usecs" => "microsecond",
        "ms" | "msec" | "msecond" | "mseconds" | "msecs" => "millisecond",
        "s" | "sec" | "secs" => "second",
        "m" | "min" | "mins" => "minute",
        "h" | "hr" | "hrs" => "hour",
        "d" => "day",
        "w" => "week",
        "mon" | "mons" => "month",
        "qtr" => "quarter",
        "y" | "yr" | "yrs" => "year",
        "dec" | "decs" => "decade",
        "c" | "cent" | "centuries" => "century",
        "mil" | "mils" | "millennia" | "millenniums" => "millennium",
        "timezone_h" => "timezone_hour",
        "timezone_m" => "timezone_minute",
        name => name.trim_end_matches('s'),
    };
    known.to_owned()
}

/// A part of a finite timestamp that is a whole number, for loops over many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// Of the time of day: it is divided by this, and what is left of that by the next.
    Clock(i64, i64),
    /// The day of the month.
    Day,
    /// The month.
    Month,
    /// The quarter.
    Quarter,
    /// The year, without one that is 0.
    Year,
    /// The day of the week, from Sunday or from Monday, which is 1 then.
    Weekday(bool),
    /// The day of the year.
    DayOfYear,
}

impl Whole {
    /// The part with this name.
    pub(crate) fn named(field: &str) -> Option<Self> {
        Some(match unit(field).as_str() {
            "hour" => Self::Clock(3_600_000_000, 24),
            "minute" => Self::Clock(60_000_000, 60),
            "microsecond" => Self::Clock(1, 60_000_000),
            "day" => Self::Day,
            "month" => Self::Month,
            "quarter" => Self::Quarter,
            "year" => Self::Year,
            "dow" => Self::Weekday(false),
            "isodow" => Self::Weekday(true),
            "doy" => Self::DayOfYear,
            _ => return None,
        })
    }

    /// That of a timestamp.
    pub(crate) fn of(self, us: i64) -> i64 {
        if let Self::Clock(unit, count) = self {
            return us.rem_euclid(DAY_US) / unit % count;
        }
        let parts = Parts::of(us);
        match self {
            Self::Clock(..) => 0,
            Self::Day => i64::from(parts.day),
            Self::Month => i64::from(parts.month),
            Self::Quarter => (i64::from(parts.month) - 1) / 3 + 1,
            Self::Year if parts.year > 0 => parts.year,
            Self::Year => parts.year - 1,
            Self::Weekday(false) => parts.weekday(),
            Self::Weekday(true) => (parts.weekday() + 6) % 7 + 1,
            Self::DayOfYear => parts.day_of_year(),
        }
    }
}

/// How long a unit is to whose beginning timestamps are cut, if all of its kind are as long.
pub(crate) fn unit_us(field: &str) -> Option<i64> {
    Some(match unit(field).as_str() {
        "microsecond" => 1,
        "millisecond" => 1000,
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        "day" => DAY_US,
        _ => return None,
    })
}

/// Whether a moment is no infinity.
pub(crate) fn is_finite(us: i64) -> bool {
    !matches!(us, datetime::INFINITY | datetime::NEGATIVE_INFINITY)
}
