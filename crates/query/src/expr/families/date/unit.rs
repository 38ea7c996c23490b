//! Units of time and arithmetic in them.

use super::zone::{Zone, weekday};
use nestor_model::date::{Civil, DAY_MS, days_in_month};

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    /// By its name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    /// Months in one, for units of the calendar.
    pub fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Milliseconds in one, for units of fixed length (days and weeks have 24 and 168 hours of local time).
    pub fn ms(self) -> Option<i64> {
        Some(match self {
            Unit::Week => 7 * DAY_MS,
            Unit::Day => DAY_MS,
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            Unit::Millisecond => 1,
            _ => return None,
        })
    }

    /// The instant that many units later in UTC; `None` when out of range. A day that the target month does not have
    /// becomes its last.
    pub fn add_utc(self, ms: i64, amount: i64) -> Option<i64> {
        add(ms, self, amount, &Zone::UTC)
    }

    /// Shorter than a day: counted in elapsed time, not on the local calendar.
    pub(crate) fn is_clock(self) -> bool {
        matches!(self, Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond)
    }
}

/// The instant `amount` units later; `None` when out of range. Calendar units keep the local time of day, and a day
/// that the target month does not have becomes its last.
pub(crate) fn add(ms: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    if unit.is_clock() {
        return ms.checked_add(unit.ms()?.checked_mul(amount)?);
    }
    let local = zone.to_local(ms);
    let moved = match unit.months() {
        Some(months) => add_months(local, months.checked_mul(amount)?)?,
        None => local.checked_add(unit.ms()?.checked_mul(amount)?)?,
    };
    zone.instant_of(moved)
}

fn add_months(local: i64, months: i64) -> Option<i64> {
    let mut c = Civil::from_ms(local);
    let total = c
        .year
        .checked_mul(12)?
        .checked_add(i64::from(c.month) - 1)?
        .checked_add(months)?;
    c.year = total.div_euclid(12);
    if c.year.abs() > 300_000_000 {
        return None;
    }
    c.month = total.rem_euclid(12) as u32 + 1;
    c.day = c.day.min(days_in_month(c.year, c.month)?);
    c.to_ms()
}

/// Days of the week by name or three letters, in any case: 0 for Sunday.
pub(crate) fn parse_weekday(name: &str) -> Option<u32> {
    const DAYS: [&str; 7] = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let name = name.to_ascii_lowercase();
    DAYS.iter()
        .position(|day| name == *day || name == day[..3])
        .map(|at| at as u32)
}

/// Days since the epoch of the last `start` day of the week at or before a local time.
pub(crate) fn week_start(local: i64, start: u32) -> i64 {
    local.div_euclid(DAY_MS) - i64::from((weekday(local) + 7 - start) % 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_end_on_their_last_day() {
        let jan31 = nestor_model::date::parse_iso("2024-01-31").expect("a date");
        let feb29 = nestor_model::date::parse_iso("2024-02-29").expect("a date");
        assert_eq!(Unit::Month.add_utc(jan31, 1), Some(feb29));
        assert_eq!(
            Unit::Day.add_utc(jan31, -30),
            nestor_model::date::parse_iso("2024-01-01")
        );
    }
}
