//! Dates and times: the proleptic Gregorian calendar, microseconds.

use super::interval::{DAY_US, Interval};
use super::timetz::TimeTz;
use super::zone::{self, Zone};
use crate::error::error;
use nestor_model::date::{civil_from_days, days_from_civil, days_in_month};
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
        .ok_or_else(|| out_of_range("timestamp"))
}

/// The difference of two timestamps, in days and time.
pub fn minus(a: i64, b: i64) -> Result<Interval> {
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

/// `yyyy-mm-dd`, with ` BC` before the year 1. The second part is the suffix.
fn format_civil((year, month, day): Civil) -> (String, &'static str) {
    match year > 0 {
        true => (format!("{year:04}-{month:02}-{day:02}"), ""),
        false => (format!("{:04}-{month:02}-{day:02}", 1 - year), " BC"),
    }
}

/// A date as PostgreSQL prints it in ISO style.
pub fn format_date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let (text, era) = format_civil(civil_from_days(i64::from(days)));
            text + era
        }
    }
}

/// A timestamp as PostgreSQL prints it in ISO style; with the session's zone if it has one.
pub fn format_timestamp(us: i64, has_zone: bool) -> String {
    match us {
        INFINITY => return "infinity".to_owned(),
        NEGATIVE_INFINITY => return "-infinity".to_owned(),
        _ => {}
    }
    let offset = if has_zone { zone::current_offset(us) } else { 0 };
    let parts = Parts::of(us.saturating_add(offset * 1_000_000));
    let (date, era) = format_civil((parts.year, parts.month, parts.day));
    let zone = match has_zone {
        true => zone::format_offset(offset),
        false => String::new(),
    };
    format!("{date} {}{zone}{era}", format_time(parts.us))
}

/// What is written where a date and time is expected.
struct Read {
    civil: Civil,
    us: i64,
    /// The zone, if one is named.
    zone: Option<Zone>,
}

/// Reads a date. Errors: 22007, 22008.
pub fn parse_date(text: &str) -> Result<i32> {
    match text.trim().to_ascii_lowercase().as_str() {
        "infinity" => return Ok(i32::MAX),
        "-infinity" => return Ok(i32::MIN),
        "epoch" => return Ok(0),
        _ => {}
    }
    let read = read(text, "date")?;
    let days = days_from_civil(read.civil.0, read.civil.1, read.civil.2);
    i32::try_from(days).map_err(|_| out_of_range("date"))
}

/// Reads a timestamp; a zone counts when `has_zone`. Errors: 22007, 22008.
pub fn parse_timestamp(text: &str, has_zone: bool) -> Result<i64> {
    match text.trim().to_ascii_lowercase().as_str() {
        "infinity" => return Ok(INFINITY),
        "-infinity" => return Ok(NEGATIVE_INFINITY),
        "epoch" => return Ok(0),
        _ => {}
    }
    let kind = if has_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    let read = read(text, kind)?;
    let us = Parts {
        year: read.civil.0,
        month: read.civil.1,
        day: read.civil.2,
        us: read.us,
    }
    .timestamp()?;
    Ok(match (has_zone, read.zone) {
        (false, _) => us,
        (true, None) => zone::instant(us),
        (true, Some(zone)) => zone.to_utc(us),
    })
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
    let trimmed = text.trim();
    if let Some((us, zone)) = clock(trimmed) {
        let east = match zone {
            None => zone::now_offset(),
            Some(Zone::Named(_)) => return Err(wrong()),
            Some(zone) => zone.offset(0),
        };
        return Ok(TimeTz { us, east });
    }
    let read = read(trimmed, "time with time zone").map_err(|_| wrong())?;
    let days = days_from_civil(read.civil.0, read.civil.1, read.civil.2);
    let local = days * DAY_US + read.us;
    let east = match &read.zone {
        None => local - zone::instant(local),
        Some(zone) => local - zone.to_utc(local),
    };
    Ok(TimeTz {
        us: read.us,
        east: east / 1_000_000,
    })
}

/// Reads a time of day. Errors: 22007, 22008.
pub fn parse_time(text: &str) -> Result<i64> {
    let trimmed = text.trim();
    let at = trimmed.rfind([' ', 'T']).map_or(0, |at| at + 1);
    let (us, _) = clock(&trimmed[at..])
        .ok_or_else(|| error("22007", format!("invalid input syntax for type time: \"{text}\"")))?;
    Ok(us)
}

fn read(text: &str, kind: &str) -> Result<Read> {
    let wrong = || error("22007", format!("invalid input syntax for type {kind}: \"{text}\""));
    let trimmed = text.trim();
    let (body, bc) = match trimmed.strip_suffix("BC").or_else(|| trimmed.strip_suffix("bc")) {
        Some(body) => (body.trim_end(), true),
        None => (trimmed.strip_suffix("AD").map_or(trimmed, str::trim_end), false),
    };
    let (date, time) = match body.find([' ', 'T', 't']) {
        Some(at) if body[..at].chars().any(|c| c.is_ascii_digit()) => (&body[..at], body[at + 1..].trim()),
        _ => (body, ""),
    };
    let mut civil = parse_civil(date).ok_or_else(wrong)?;
    if bc {
        civil.0 = 1 - civil.0;
    }
    let in_range = (1..=12).contains(&civil.1)
        && civil.2 >= 1
        && days_in_month(civil.0, civil.1).is_some_and(|last| civil.2 <= last)
        && (-4713..=294_276).contains(&civil.0);
    if !in_range {
        return Err(error(
            "22008",
            format!("date/time field value out of range: \"{text}\""),
        ));
    }
    let (us, zone) = match time {
        "" => (0, None),
        time => clock(time).ok_or_else(wrong)?,
    };
    Ok(Read { civil, us, zone })
}

/// `yyyy-mm-dd`, `yyyymmdd`, `mm/dd/yyyy`.
fn parse_civil(text: &str) -> Option<Civil> {
    let number = |part: &str| {
        part.parse::<u32>()
            .ok()
            .filter(|_| part.bytes().all(|b| b.is_ascii_digit()))
    };
    if text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some((
            i64::from(number(&text[..4])?),
            number(&text[4..6])?,
            number(&text[6..])?,
        ));
    }
    if text.contains('/') {
        let mut parts = text.split('/');
        let (month, day, year) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
        return parts.next().is_none().then_some((i64::from(year), month, day));
    }
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() < 3 {
        return None;
    }
    let month = number(month).or_else(|| {
        let names = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        let lower = month.to_ascii_lowercase();
        names
            .iter()
            .position(|name| lower.starts_with(name))
            .and_then(|at| u32::try_from(at + 1).ok())
    })?;
    Some((i64::from(number(year)?), month, number(day)?))
}

/// `hh:mm[:ss[.ffffff]]` with AM, PM and a zone.
fn clock(text: &str) -> Option<(i64, Option<Zone>)> {
    let text = text.trim();
    let at = text
        .find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.'))
        .unwrap_or(text.len());
    let (time, mut rest) = (&text[..at], text[at..].trim());
    let mut parts = time.split(':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let second: f64 = parts.next().map_or(Some(0.0), |s| s.parse().ok())?;
    let mut hour = hour;
    let lower = rest.to_ascii_lowercase();
    let half = lower.strip_prefix("pm").or_else(|| lower.strip_prefix("am"));
    // A zone's name may begin with the same letters.
    if let Some(after) = half.filter(|after| !after.starts_with(|c: char| c.is_ascii_alphabetic())) {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if lower.starts_with('p') { 12 } else { 0 };
        rest = &rest[rest.len() - after.len()..];
        rest = rest.trim();
    }
    let valid = parts.next().is_none()
        && (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..=60.0).contains(&second);
    if !valid {
        return None;
    }
    let us = (hour * 60 + minute) * 60_000_000 + (second * 1e6).round() as i64;
    if us > DAY_US {
        return None;
    }
    Some((
        us,
        match rest {
            "" => None,
            rest => Some(Zone::parse(rest).ok()?),
        },
    ))
}
