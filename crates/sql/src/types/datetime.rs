//! Dates and times: the proleptic Gregorian calendar, microseconds.

use super::interval::{DAY_US, Interval};
use super::moment;
use super::style::{self, Dates, Order};
use super::timetz::TimeTz;
use super::zone::{self, Zone};
use crate::error::{error, fail};
use nestor_model::date::{MONTHS, WEEKDAYS, civil_from_days, days_from_civil, days_in_month};
use nestor_model::{Error, Result};

/// `infinity` of timestamps; its negative is `-infinity`.
pub const INFINITY: i64 = i64::MAX;
/// `-infinity` of timestamps.
pub const NEGATIVE_INFINITY: i64 = i64::MIN;

/// Year, month, day.
pub type Civil = (i64, u32, u32);

/// A timestamp taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day, from 1.
    pub day: u32,
    /// Microseconds of the day.
    pub us: i64,
}

impl Parts {
    /// Of a timestamp.
    pub fn of(us: i64) -> Self {
        let (year, month, day) = civil_from_days(us.div_euclid(DAY_US));
        Self {
            year,
            month,
            day,
            us: us.rem_euclid(DAY_US),
        }
    }

    /// The timestamp. Errors: 22008 when it is out of range.
    pub fn timestamp(self) -> Result<i64> {
        let days = days_from_civil(self.year, self.month, self.day);
        let us = i128::from(days) * i128::from(DAY_US) + i128::from(self.us);
        i64::try_from(us).map_err(|_| out_of_range("timestamp"))
    }

    /// Day of the week, Sunday 0.
    pub fn weekday(self) -> i64 {
        (days_from_civil(self.year, self.month, self.day) + 4).rem_euclid(7)
    }

    /// Day of the year, from 1.
    pub fn day_of_year(self) -> i64 {
        days_from_civil(self.year, self.month, self.day) - days_from_civil(self.year, 1, 1) + 1
    }

    /// Year and week by ISO 8601.
    pub fn iso_week(self) -> (i64, i64) {
        let days = days_from_civil(self.year, self.month, self.day);
        let weekday = (self.weekday() + 6).rem_euclid(7);
        let thursday = days - weekday + 3;
        let (year, _, _) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// The error 22008.
pub fn out_of_range(what: &str) -> Error {
    error("22008", format!("{what} out of range"))
}

/// A timestamp and an interval later. Errors: 22008.
pub fn plus(us: i64, interval: Interval) -> Result<i64> {
    if us == INFINITY || us == NEGATIVE_INFINITY {
        return Ok(us);
    }
    let mut us = us;
    if interval.months != 0 {
        let mut parts = Parts::of(us);
        let months = parts.year * 12 + i64::from(parts.month) - 1 + i64::from(interval.months);
        parts.year = months.div_euclid(12);
        parts.month = u32::try_from(months.rem_euclid(12)).unwrap_or(0) + 1;
        parts.day = parts.day.min(days_in_month(parts.year, parts.month).unwrap_or(28));
        us = parts.timestamp()?;
    }
    let days = i64::from(interval.days).checked_mul(DAY_US);
    days.and_then(|days| us.checked_add(days))
        .and_then(|us| us.checked_add(interval.us))
        .filter(|us| us.div_euclid(DAY_US) >= FIRST_DAY)
        .ok_or_else(|| out_of_range("timestamp"))
}

/// The difference of two timestamps, in days and time.
pub fn minus(a: i64, b: i64) -> Result<Interval> {
    let is_finite = |us: i64| us != INFINITY && us != NEGATIVE_INFINITY;
    if !is_finite(a) || !is_finite(b) {
        return Err(error("22008", "cannot subtract infinite timestamps"));
    }
    let us = a.checked_sub(b).ok_or_else(|| out_of_range("interval"))?;
    Ok(Interval {
        months: 0,
        days: i32::try_from(us / DAY_US).map_err(|_| out_of_range("interval"))?,
        us: us % DAY_US,
    })
}

/// The difference of two timestamps in years, months, days and time.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    let (later, earlier, negative) = if a >= b { (a, b, false) } else { (b, a, true) };
    let (to, from) = (Parts::of(later), Parts::of(earlier));
    let mut months = (to.year - from.year) * 12 + i64::from(to.month) - i64::from(from.month);
    let mut days = i64::from(to.day) - i64::from(from.day);
    let mut us = to.us - from.us;
    if us < 0 {
        us += DAY_US;
        days -= 1;
    }
    if days < 0 {
        days += i64::from(days_in_month(from.year, from.month).unwrap_or(30));
        months -= 1;
    }
    let out = Interval {
        months: i32::try_from(months).map_err(|_| out_of_range("interval"))?,
        days: i32::try_from(days).map_err(|_| out_of_range("interval"))?,
        us,
    };
    match negative {
        true => out.negate(),
        false => Ok(out),
    }
}

/// `.` and the digits of a fraction of a second, without zeros at the end; nothing for zero.
pub fn fraction(us: u64) -> String {
    match us {
        0 => String::new(),
        us => format!(".{us:06}").trim_end_matches('0').to_owned(),
    }
}

/// `hh:mm:ss[.ffffff]`.
pub fn format_time(us: i64) -> String {
    let us = us.unsigned_abs();
    let (hours, rest) = (us / 3_600_000_000, us % 3_600_000_000);
    format!(
        "{hours:02}:{:02}:{:02}{}",
        rest / 60_000_000,
        rest / 1_000_000 % 60,
        fraction(rest % 1_000_000)
    )
}

/// A date as the session wants it shown.
pub fn format_date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let civil = civil_from_days(i64::from(days));
            format_civil(civil, style::dates()) + era(civil)
        }
    }
}

/// ` BC` before the year 1.
fn era((year, ..): Civil) -> &'static str {
    if year > 0 { "" } else { " BC" }
}

/// A date in a style, without the era.
fn format_civil((year, month, day): Civil, style: Dates) -> String {
    let year = if year > 0 { year } else { 1 - year };
    let (first, second) = match (style, style::order()) {
        (Dates::German, _) | (_, Order::DayMonthYear) => (day, month),
        _ => (month, day),
    };
    match style {
        Dates::Iso => format!("{year:04}-{month:02}-{day:02}"),
        Dates::Sql => format!("{first:02}/{second:02}/{year:04}"),
        Dates::Postgres => format!("{first:02}-{second:02}-{year:04}"),
        Dates::German => format!("{first:02}.{second:02}.{year:04}"),
    }
}

/// A timestamp as the session wants it shown; with the session's zone if it has one.
pub fn format_timestamp(us: i64, has_zone: bool) -> String {
    match us {
        INFINITY => return "infinity".to_owned(),
        NEGATIVE_INFINITY => return "-infinity".to_owned(),
        _ => {}
    }
    let style = style::dates();
    let offset = if has_zone { zone::current_offset(us) } else { 0 };
    let parts = Parts::of(us.saturating_add(offset * 1_000_000));
    let civil = (parts.year, parts.month, parts.day);
    let zone = match (has_zone, style) {
        (false, _) => String::new(),
        (true, Dates::Iso) => zone::format_offset(offset),
        (true, _) => format!(" {}", zone::current_abbreviation(us)),
    };
    let (time, era) = (format_time(parts.us), era(civil));
    if style != Dates::Postgres {
        return format!("{} {time}{zone}{era}", format_civil(civil, style));
    }
    let weekday = &WEEKDAYS[parts.weekday() as usize % 7][..3];
    let month = &MONTHS[(parts.month as usize + 11) % 12][..3];
    let date = match style::order() {
        Order::DayMonthYear => format!("{:02} {month}", parts.day),
        _ => format!("{month} {:02}", parts.day),
    };
    let year = if parts.year > 0 { parts.year } else { 1 - parts.year };
    format!("{weekday} {date} {time} {year:04}{zone}{era}")
}

/// The first day there is, 24 November 4714 BC.
const FIRST_DAY: i64 = -2_440_588;
/// The last day there is, the end of the year 5874897.
const LAST_DAY: i64 = 2_145_042_905;

/// Whether there is such a day; infinities are none.
pub fn is_day(days: i64) -> bool {
    (FIRST_DAY..=LAST_DAY).contains(&days)
}

/// Reads a date. Errors: 22007, 22008.
pub fn parse_date(text: &str) -> Result<i32> {
    let read = moment::read(text, "date")?;
    let days = match (read.infinite, read.now) {
        (Some(late), _) => return Ok(if late { i32::MAX } else { i32::MIN }),
        (_, Some(now)) => Some(zone::local(now).div_euclid(DAY_US)),
        _ => read.days,
    };
    let days = days.ok_or_else(|| error("22007", format!("invalid input syntax for type date: \"{text}\"")))?;
    match i32::try_from(days) {
        Ok(day) if is_day(days) => Ok(day),
        _ => fail("22008", format!("date out of range: \"{text}\"")),
    }
}

/// Reads a timestamp; a zone counts when `has_zone`. Errors: 22007, 22008.
pub fn parse_timestamp(text: &str, has_zone: bool) -> Result<i64> {
    let kind = if has_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    let read = moment::read(text, kind)?;
    match (read.infinite, read.now) {
        (Some(late), _) => return Ok(if late { INFINITY } else { NEGATIVE_INFINITY }),
        (_, Some(now)) => return Ok(if has_zone { now } else { zone::local(now) }),
        _ => {}
    }
    let days = read
        .days
        .ok_or_else(|| error("22007", format!("invalid input syntax for type {kind}: \"{text}\"")))?;
    let us = i128::from(days) * i128::from(DAY_US) + i128::from(read.us.unwrap_or(0));
    let wrong = || error("22008", format!("timestamp out of range: \"{text}\""));
    let us = i64::try_from(us).ok().filter(|us| *us < INFINITY).ok_or_else(wrong)?;
    let us = match (has_zone, read.zone) {
        (false, _) => us,
        (true, None) => zone::instant(us),
        (true, Some(zone)) => zone.to_utc(us),
    };
    match us.div_euclid(DAY_US) >= FIRST_DAY {
        true => Ok(us),
        false => Err(wrong()),
    }
}

/// Rounded to so many digits of a second; infinities are as they are.
pub fn rounded(us: i64, digits: i32) -> i64 {
    let unit = 10i64.pow(6 - u32::try_from(digits.clamp(0, 6)).unwrap_or(6));
    match us {
        INFINITY | NEGATIVE_INFINITY => us,
        us => {
            let half = if us < 0 { -unit / 2 } else { unit / 2 };
            us.saturating_add(half) / unit * unit
        }
    }
}

/// Reads a time of day with the offset of its clock, which is the session's if none is written; a zone with rules needs a date.
///
/// Errors: 22007, 22008.
pub fn parse_timetz(text: &str) -> Result<TimeTz> {
    let wrong = || {
        error(
            "22007",
            format!("invalid input syntax for type time with time zone: \"{text}\""),
        )
    };
    let read = moment::read(text, "time with time zone")?;
    if let Some(now) = read.now {
        return Ok(TimeTz {
            us: zone::local(now).rem_euclid(DAY_US),
            east: zone::current_offset(now),
        });
    }
    let us = read.us.ok_or_else(wrong)?;
    let east = match (&read.zone, read.days) {
        (None, None) => zone::now_offset(),
        (None, Some(days)) => (days * DAY_US + us - zone::instant(days * DAY_US + us)) / 1_000_000,
        (Some(Zone::Named(_) | Zone::Called(..)), None) => return Err(wrong()),
        (Some(zone), days) => {
            let local = days.unwrap_or(0) * DAY_US + us;
            (local - zone.to_utc(local)) / 1_000_000
        }
    };
    Ok(TimeTz { us, east })
}

/// Reads a time of day. Errors: 22007, 22008.
pub fn parse_time(text: &str) -> Result<i64> {
    let read = moment::read(text, "time")?;
    let us = read.us.or(read.now.map(|now| zone::local(now).rem_euclid(DAY_US)));
    us.ok_or_else(|| error("22007", format!("invalid input syntax for type time: \"{text}\"")))
}
