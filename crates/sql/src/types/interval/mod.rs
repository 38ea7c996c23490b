//! Intervals: months, days and microseconds, which are kept apart because months and days have no fixed length.

use super::INTERVAL_SUBTYPE;
mod read;

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

    /// So many times as long. Errors: 22008.
    pub fn times(self, factor: f64) -> Result<Self> {
        self.scaled(|n| n * factor)
    }

    /// Divided by a number other than 0. Errors: 22008.
    pub fn divided(self, by: f64) -> Result<Self> {
        self.scaled(|n| n / by)
    }

    /// With its parts scaled: fractions of months become days, fractions of days time, both to a millionth of a second.
    fn scaled(self, scale: impl Fn(f64) -> f64) -> Result<Self> {
        const DAY_SECONDS: f64 = 86_400.0;
        let millionths = |n: f64| (n * 1e6).round_ties_even() / 1e6;
        let whole = |n: f64| match n.is_finite() && n.abs() < 2_147_483_648.0 {
            true => Ok(n.trunc()),
            false => Err(overflow()),
        };
        let (all_months, all_days) = (scale(f64::from(self.months)), scale(f64::from(self.days)));
        let (months, mut days) = (whole(all_months)?, whole(all_days)?);
        let days_of_months = millionths((all_months - months) * 30.0);
        let part = all_days - days + days_of_months - days_of_months.trunc();
        let mut seconds = millionths(part * DAY_SECONDS);
        if seconds.abs() >= DAY_SECONDS {
            days += (seconds / DAY_SECONDS).trunc();
            seconds -= (seconds / DAY_SECONDS).trunc() * DAY_SECONDS;
        }
        let us = (scale(self.us as f64) + seconds * 1e6).round_ties_even();
        if !us.is_finite() || us.abs() >= 9_223_372_036_854_775_808.0 {
            return Err(overflow());
        }
        Ok(Self {
            months: months as i32,
            days: whole(days + days_of_months.trunc())? as i32,
            us: us as i64,
        })
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
