//! Intervals: months, days and microseconds, which are kept apart because months and days have no fixed length.

use super::INTERVAL_SUBTYPE;
use super::style::{self, Intervals};
use crate::error::{error, fail};
use nestor_model::value::Binary;
use nestor_model::{Result, Value};
use std::fmt::Write as _;

/// Microseconds of an hour.
const HOUR_US: i64 = 3_600_000_000;
/// Microseconds of a day of 24 hours.
pub const DAY_US: i64 = 24 * HOUR_US;

/// Fields of intervals, as they stand in modifiers of the type above the digits of a second.
pub const MONTH: i32 = 1 << 1;
/// See [`MONTH`].
pub const YEAR: i32 = 1 << 2;
/// See [`MONTH`].
pub const DAY: i32 = 1 << 3;
/// See [`MONTH`].
pub const HOUR: i32 = 1 << 10;
/// See [`MONTH`].
pub const MINUTE: i32 = 1 << 11;
/// See [`MONTH`].
pub const SECOND: i32 = 1 << 12;
/// All fields.
pub const ALL_FIELDS: i32 = 0x7FFF;

/// The modifier of fields and digits of a second.
pub fn modifier(fields: i32, digits: Option<u64>) -> i32 {
    let digits = digits.map_or(0xFFFF, |digits| digits.min(6) as i32);
    fields << 16 | digits
}

/// The unit that a number alone is of in a type with this modifier.
pub fn unit_of(modifier: i32) -> &'static str {
    let fields = modifier >> 16;
    match () {
        () if modifier < 0 || fields == ALL_FIELDS => "second",
        () if fields == MINUTE | SECOND => "minute to second",
        () if fields & SECOND != 0 => "second",
        () if fields & MINUTE != 0 => "minute",
        () if fields & HOUR != 0 => "hour",
        () if fields & DAY != 0 => "day",
        () if fields & MONTH != 0 => "month",
        () => "year",
    }
}

/// An interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub us: i64,
}

fn overflow() -> nestor_model::Error {
    error("22008", "interval out of range")
}

/// A larger part and a smaller one, of which `unit` are one of the larger and fewer are there, so that both have the same sign.
fn of_one_sign(large: i64, small: i64, unit: i64) -> (i64, i64) {
    match (large.signum(), small.signum()) {
        (1, -1) => (large - 1, small + unit),
        (-1, 1) => (large + 1, small - unit),
        _ => (large, small),
    }
}

impl Interval {
    /// The interval that a value is; none is zero.
    pub fn of(value: &Value) -> Self {
        let Value::Binary(binary) = value else {
            return Self::default();
        };
        let part = |from: usize, to: usize| binary.bytes.get(from..to);
        let us = part(0, 8).and_then(|b| b.try_into().ok()).map_or(0, i64::from_be_bytes);
        let days = part(8, 12)
            .and_then(|b| b.try_into().ok())
            .map_or(0, i32::from_be_bytes);
        let months = part(12, 16)
            .and_then(|b| b.try_into().ok())
            .map_or(0, i32::from_be_bytes);
        Self { months, days, us }
    }

    /// The bytes that it has on the wire and as a value.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.us.to_be_bytes());
        out[8..12].copy_from_slice(&self.days.to_be_bytes());
        out[12..].copy_from_slice(&self.months.to_be_bytes());
        out
    }

    /// As a value.
    pub fn to_value(self) -> Value {
        Value::Binary(Binary {
            subtype: INTERVAL_SUBTYPE,
            bytes: self.to_bytes().as_slice().into(),
        })
    }

    /// Its length with months of 30 days, by which intervals are compared.
    pub fn total_us(self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(DAY_US) + i128::from(self.us)
    }

    /// The sum. Errors: 22008.
    pub fn plus(self, other: Self) -> Result<Self> {
        Ok(Self {
            months: self.months.checked_add(other.months).ok_or_else(overflow)?,
            days: self.days.checked_add(other.days).ok_or_else(overflow)?,
            us: self.us.checked_add(other.us).ok_or_else(overflow)?,
        })
    }

    /// With all signs turned. Errors: 22008.
    pub fn negate(self) -> Result<Self> {
        Ok(Self {
            months: self.months.checked_neg().ok_or_else(overflow)?,
            days: self.days.checked_neg().ok_or_else(overflow)?,
            us: self.us.checked_neg().ok_or_else(overflow)?,
        })
    }

    /// Whole days of 24 hours and months of 30 days taken together, with one sign throughout. Errors: 22008.
    pub fn justified(self) -> Result<Self> {
        let whole = |n: i64| i32::try_from(n).map_err(|_| overflow());
        let all_days = i64::from(self.days) + self.us / DAY_US;
        let (mut months, mut days, mut us) = (i64::from(self.months) + all_days / 30, all_days % 30, self.us % DAY_US);
        if months > 0 && (days < 0 || (days == 0 && us < 0)) {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && (days > 0 || (days == 0 && us > 0)) {
            (months, days) = (months + 1, days - 30);
        }
        (days, us) = of_one_sign(days, us, DAY_US);
        Ok(Self {
            months: whole(months)?,
            days: whole(days)?,
            us,
        })
    }

    /// 24 hours as a day, and both with one sign. Errors: 22008.
    pub fn with_days_of_hours(self) -> Result<Self> {
        let days = i64::from(self.days) + self.us / DAY_US;
        let (days, us) = of_one_sign(days, self.us % DAY_US, DAY_US);
        let days = i32::try_from(days).map_err(|_| overflow())?;
        Ok(Self { days, us, ..self })
    }

    /// 30 days as a month, and both with one sign. Errors: 22008.
    pub fn with_months_of_days(self) -> Result<Self> {
        let months = i64::from(self.months) + i64::from(self.days / 30);
        let (months, days) = of_one_sign(months, i64::from(self.days % 30), 30);
        let whole = |n: i64| i32::try_from(n).map_err(|_| overflow());
        Ok(Self {
            months: whole(months)?,
            days: whole(days)?,
            ..self
        })
    }

    /// So many times as long; fractions of months become days, fractions of days time. Errors: 22008.
    pub fn times(self, factor: f64) -> Result<Self> {
        let months = f64::from(self.months) * factor;
        let days = f64::from(self.days) * factor + months.fract() * 30.0;
        let us = self.us as f64 * factor + days.fract() * DAY_US as f64;
        let fits = |v: f64, max: f64| v.is_finite() && v.abs() <= max;
        if !fits(months, f64::from(i32::MAX)) || !fits(days, f64::from(i32::MAX)) || !fits(us, 9.2e18) {
            return Err(overflow());
        }
        Ok(Self {
            months: months.trunc() as i32,
            days: days.trunc() as i32,
            us: us.round() as i64,
        })
    }

    /// Reads PostgreSQL's verbose form, its short one (`1 day 02:03:04`) and ISO 8601's (`P1DT2H`). `unit` is that of a number alone.
    ///
    /// Errors: 22007.
    pub fn parse(text: &str, unit: &str) -> Result<Self> {
        let wrong = || error("22007", format!("invalid input syntax for type interval: \"{text}\""));
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        if let Some(iso) = lower.strip_prefix('p') {
            return Self::parse_iso(iso).ok_or_else(wrong);
        }
        let mut out = Self::default();
        let (body, ago) = match lower.strip_suffix("ago") {
            Some(body) => (body, true),
            None => (lower.as_str(), false),
        };
        let mut words = split(body);
        if words.is_empty() {
            return Err(wrong());
        }
        // In the standard's style a sign before the first part is that of all, unless others have their own.
        let is_signed = |word: &String| word.starts_with(['-', '+']);
        if style::intervals() == Intervals::Standard && words[0].starts_with('-') && !words[1..].iter().any(is_signed) {
            for word in words[1..]
                .iter_mut()
                .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
            {
                word.insert(0, '-');
            }
        }
        // `minute to second` says that hours are left out.
        let (unit, minutes_first) = match unit {
            "minute to second" => ("second", true),
            unit => (unit, false),
        };
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            if word.contains(':') {
                let us = clock(word, minutes_first).ok_or_else(wrong)?;
                out.us = out.us.checked_add(us).ok_or_else(overflow)?;
                continue;
            }
            if let Some(months) = years_and_months(word) {
                out = out.plus(Self {
                    months: months.ok_or_else(overflow)?,
                    ..Self::default()
                })?;
                continue;
            }
            let number: f64 = word.parse().map_err(|_| wrong())?;
            let named = words.get(at).filter(|next| next.chars().all(char::is_alphabetic));
            at += usize::from(named.is_some());
            // Days stand before a time, or before a smaller unit that is not named either.
            let follows = words.get(at).is_some_and(|next| !next.chars().all(char::is_alphabetic));
            let unit = match named {
                Some(name) => name.as_str(),
                None if follows => "day",
                None => unit,
            };
            let part = match (Self::unit(unit, number), Self::unit(unit, 0.0)) {
                (Some(part), _) => part,
                (None, Some(_)) => return fail("22015", format!("interval field value out of range: \"{text}\"")),
                (None, None) => return Err(wrong()),
            };
            out = out.plus(part)?;
        }
        match ago {
            true => out.negate(),
            false => Ok(out),
        }
    }

    /// Without what is smaller than the fields of a type's modifier, and with so many digits of a second as that says.
    pub fn limited(self, modifier: i32) -> Self {
        let (fields, digits) = (modifier >> 16, modifier & 0xFFFF);
        let has = |field: i32| fields & field != 0;
        let to = |us: i64, unit: i64| us / unit * unit;
        match () {
            () if fields == ALL_FIELDS || has(SECOND) => {}
            () if has(MINUTE) => {
                return Self {
                    us: to(self.us, 60_000_000),
                    ..self
                };
            }
            () if has(HOUR) => {
                return Self {
                    us: to(self.us, HOUR_US),
                    ..self
                };
            }
            () if has(DAY) => return Self { us: 0, ..self },
            () if has(MONTH) => return Self { us: 0, days: 0, ..self },
            () => {
                return Self {
                    months: self.months / 12 * 12,
                    days: 0,
                    us: 0,
                };
            }
        }
        match digits {
            0..6 => Self {
                us: super::datetime::rounded(self.us, digits),
                ..self
            },
            _ => self,
        }
    }

    fn parse_iso(text: &str) -> Option<Self> {
        // `PYYYY-MM-DDThh:mm:ss`.
        let (date, time) = text.split_once('t').unwrap_or((text, ""));
        if date.contains('-')
            && date.bytes().all(|b| b.is_ascii_digit() || b == b'-')
            && date.starts_with(|c: char| c.is_ascii_digit())
        {
            let mut parts = date.split('-').map(|part| part.parse::<i32>().ok());
            let (years, months, days) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
            return Some(Self {
                months: years.checked_mul(12)?.checked_add(months)?,
                days,
                us: if time.is_empty() { 0 } else { clock(time, false)? },
            });
        }
        let mut out = Self::default();
        let (mut in_time, mut number) = (false, String::new());
        for c in text.chars() {
            match c {
                't' => in_time = true,
                '0'..='9' | '.' | '-' | '+' => number.push(c),
                c => {
                    let unit = match (c, in_time) {
                        ('y', _) => "year",
                        ('m', false) => "month",
                        ('w', _) => "week",
                        ('d', _) => "day",
                        ('h', _) => "hour",
                        ('m', true) => "minute",
                        ('s', _) => "second",
                        _ => return None,
                    };
                    out = out.plus(Self::unit(unit, number.parse().ok()?)?).ok()?;
                    number.clear();
                }
            }
        }
        number.is_empty().then_some(out)
    }

    /// So many of a unit.
    pub fn unit(name: &str, number: f64) -> Option<Self> {
        let months = |each: f64| {
            Self {
                months: 1,
                ..Self::default()
            }
            .times(number * each)
            .ok()
        };
        // Parts of years are whole months.
        let years = |each: f64| {
            let n = (number * each).round_ties_even();
            (n.abs() <= f64::from(i32::MAX)).then_some(Self {
                months: n as i32,
                ..Self::default()
            })
        };
        let days = |each: f64| {
            Self {
                days: 1,
                ..Self::default()
            }
            .times(number * each)
            .ok()
        };
        let time = |each: i64| {
            let us = (number * each as f64).round();
            (us.abs() < 9.2e18).then_some(Self {
                us: us as i64,
                ..Self::default()
            })
        };
        match name {
            "millennium" | "millennia" | "mil" | "mils" => years(12_000.0),
            "century" | "centuries" | "c" | "cent" => years(1200.0),
            "decade" | "decades" | "dec" | "decs" => years(120.0),
            "year" | "years" | "y" | "yr" | "yrs" => years(12.0),
            "month" | "months" | "mon" | "mons" => months(1.0),
            "week" | "weeks" | "w" => days(7.0),
            "day" | "days" | "d" => days(1.0),
            "hour" | "hours" | "h" | "hr" | "hrs" => time(HOUR_US),
            "minute" | "minutes" | "m" | "min" | "mins" => time(60_000_000),
            "second" | "seconds" | "s" | "sec" | "secs" => time(1_000_000),
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => time(1000),
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => time(1),
            _ => None,
        }
    }

    /// As the session wants it shown.
    pub fn format(self) -> String {
        match style::intervals() {
            Intervals::Postgres => self.short(),
            Intervals::Verbose => self.verbose(),
            Intervals::Standard => self.standard(),
            Intervals::Iso => self.iso(),
        }
    }

    /// Hours, minutes, seconds and microseconds, all of them with the sign of the whole.
    fn clock(self) -> [i64; 4] {
        let us = self.us;
        [us / HOUR_US, us / 60_000_000 % 60, us / 1_000_000 % 60, us % 1_000_000]
    }

    /// ISO 8601's form with designators.
    fn iso(self) -> String {
        let [hours, minutes, seconds, fraction] = self.clock();
        let mut out = String::from("P");
        let date = [
            (i64::from(self.months / 12), 'Y'),
            (i64::from(self.months % 12), 'M'),
            (i64::from(self.days), 'D'),
        ];
        for (n, unit) in date.into_iter().filter(|(n, _)| *n != 0) {
            out.push_str(&format!("{n}{unit}"));
        }
        if self.us != 0 {
            out.push('T');
            for (n, unit) in [(hours, 'H'), (minutes, 'M')].into_iter().filter(|(n, _)| *n != 0) {
                out.push_str(&format!("{n}{unit}"));
            }
            if seconds != 0 || fraction != 0 {
                let sign = if seconds < 0 || fraction < 0 { "-" } else { "" };
                let shown = super::datetime::fraction(fraction.unsigned_abs());
                out.push_str(&format!("{sign}{}{shown}S", seconds.abs()));
            }
        }
        match out.as_str() {
            "P" => "PT0S".to_owned(),
            _ => out,
        }
    }

    /// The form of SQL's literals: years and months, or days and a time; both with all signs where it is no literal of SQL.
    fn standard(self) -> String {
        let [hours, minutes, seconds, fraction] = self.clock();
        let (has_months, has_days, has_time) = (self.months != 0, self.days != 0, self.us != 0);
        if !(has_months || has_days || has_time) {
            return "0".to_owned();
        }
        let negative = self.months < 0 || self.days < 0 || self.us < 0;
        let positive = self.months > 0 || self.days > 0 || self.us > 0;
        let months = self.months.unsigned_abs();
        let (years, months) = (months / 12, months % 12);
        let days = self.days.unsigned_abs();
        let time = format!(
            "{}:{:02}:{:02}{}",
            hours.abs(),
            minutes.abs(),
            seconds.abs(),
            super::datetime::fraction(fraction.unsigned_abs())
        );
        if negative && positive || has_months && (has_days || has_time) {
            let sign = |is_negative: bool| if is_negative { '-' } else { '+' };
            return format!(
                "{}{years}-{months} {}{days} {}{time}",
                sign(self.months < 0),
                sign(self.days < 0),
                sign(self.us < 0)
            );
        }
        let sign = if negative { "-" } else { "" };
        match (has_months, has_days) {
            (true, _) => format!("{sign}{years}-{months}"),
            (_, true) => format!("{sign}{days} {time}"),
            _ => format!("{sign}{time}"),
        }
    }

    /// PostgreSQL's long form: the first part says which sign the whole has.
    fn verbose(self) -> String {
        let [hours, minutes, seconds, fraction] = self.clock();
        let parts = [
            (i64::from(self.months / 12), "year"),
            (i64::from(self.months % 12), "mon"),
            (i64::from(self.days), "day"),
            (hours, "hour"),
            (minutes, "min"),
        ];
        let mut ago = None;
        let mut out = String::from("@");
        let mut turned = |is_negative: bool| *ago.get_or_insert(is_negative) != is_negative;
        for (n, unit) in parts.into_iter().filter(|(n, _)| *n != 0) {
            let sign = if turned(n < 0) { "-" } else { "" };
            let many = if n.abs() == 1 && sign.is_empty() { "" } else { "s" };
            out.push_str(&format!(" {sign}{} {unit}{many}", n.abs()));
        }
        if seconds != 0 || fraction != 0 {
            let sign = if turned(seconds < 0 || fraction < 0) { "-" } else { "" };
            let shown = super::datetime::fraction(fraction.unsigned_abs());
            let many = if seconds.abs() == 1 && fraction == 0 { "" } else { "s" };
            out.push_str(&format!(" {sign}{}{shown} sec{many}", seconds.abs()));
        }
        match ago {
            None => "@ 0".to_owned(),
            Some(true) => format!("{out} ago"),
            Some(false) => out,
        }
    }

    /// PostgreSQL's short form.
    fn short(self) -> String {
        let mut out = String::new();
        // What follows a negative field shows that it is not.
        let mut negative = false;
        let mut part = |n: i32, one: &str, many: &str| {
            if n != 0 {
                if !out.is_empty() {
                    out.push(' ');
                }
                let sign = if negative && n > 0 { "+" } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(out, "{sign}{n} {}", if n == 1 { one } else { many });
                negative = n < 0;
            }
        };
        part(self.months / 12, "year", "years");
        part(self.months % 12, "mon", "mons");
        part(self.days, "day", "days");
        if self.us != 0 || out.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            let us = self.us.unsigned_abs();
            let sign = match (self.us < 0, negative) {
                (true, _) => "-",
                (false, true) => "+",
                (false, false) => "",
            };
            let (hours, rest) = (us / HOUR_US as u64, us % HOUR_US as u64);
            let _ = write!(
                out,
                "{sign}{hours:02}:{:02}:{:02}",
                rest / 60_000_000,
                rest / 1_000_000 % 60
            );
            out.push_str(&super::datetime::fraction(rest % 1_000_000));
        }
        out
    }
}

/// Words: numbers, names and clock times, also where no space is between number and name.
fn split(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split([' ', ',', '@', '\t', '\n']).filter(|word| !word.is_empty()) {
        let at = word.find(|c: char| c.is_alphabetic());
        match at {
            Some(at) if at > 0 && !word.contains(':') => {
                out.push(word[..at].to_owned());
                out.push(word[at..].to_owned());
            }
            _ => out.push(word.to_owned()),
        }
    }
    out
}

/// Years and months of `[-]y-m` in months; an inner `None` when they are too many.
fn years_and_months(word: &str) -> Option<Option<i32>> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (years, months) = digits.split_once('-')?;
    let number = |text: &str| {
        text.parse::<i32>()
            .ok()
            .filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
    };
    let (years, months) = (number(years)?, number(months).filter(|months| *months < 12)?);
    let all = years.checked_mul(12).and_then(|n| n.checked_add(months));
    Some(all.map(|n| if negative { -n } else { n }))
}

/// Microseconds of `[-]h:mm[:ss[.ffffff]]`, or of minutes and seconds.
fn clock(text: &str, minutes_first: bool) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let shifted;
    let text = match minutes_first && text.matches(':').count() == 1 {
        true => {
            shifted = format!("0:{text}");
            shifted.as_str()
        }
        false => text,
    };
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok().filter(|m| (0..60).contains(m))?;
    let seconds: f64 = parts.next().map_or(Some(0.0), |s| s.parse().ok())?;
    if parts.next().is_some() || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let us = hours
        .checked_mul(HOUR_US)?
        .checked_add(minutes * 60_000_000)?
        .checked_add((seconds * 1e6).round() as i64)?;
    Some(if negative { -us } else { us })
}

/// The interval as a value; an error unless the text is one.
pub fn parse_value(text: &str) -> Result<Value> {
    match Interval::parse(text, "second") {
        Ok(interval) => Ok(interval.to_value()),
        Err(error) => Err(error),
    }
}

/// What division of an interval by zero is.
pub fn division_by_zero<T>() -> Result<T> {
    fail("22012", "division by zero")
}
