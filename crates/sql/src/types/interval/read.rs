//! Intervals as they are written: PostgreSQL's forms, those of SQL's literals, and ISO 8601's. What they mean is in the section
//! "Interval Input" of PostgreSQL's manual.

use super::super::tokens::{self, Kind, Token};
use super::{DAY_US, HOUR_US, Interval, Intervals, overflow, style};
use crate::error::error;
use nestor_model::Result;

/// Why a text is no interval.
#[derive(Debug)]
enum Wrong {
    /// It is not of the form: 22007.
    Form,
    /// A field is too large: 22015.
    Range,
}

type Read<T> = std::result::Result<T, Wrong>;

/// The units of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    /// A word that is none, which may not stand behind a number.
    None,
}

/// Names are told apart by their first letters alone, as many as these.
const NAME_LENGTH: usize = 10;

impl Unit {
    fn named(name: &str) -> Option<Self> {
        Some(match &name[..name.len().min(NAME_LENGTH)] {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Self::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Self::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "week" | "weeks" => Self::Week,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "c" | "cent" | "century" | "centuries" => Self::Century,
            "mil" | "mils" | "millennium" | "millennia" => Self::Millennium,
            _ => return None,
        })
    }

    /// Microseconds, for units of the time of day.
    fn us(self) -> Option<i64> {
        Some(match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1000,
            Self::Second => 1_000_000,
            Self::Minute => 60_000_000,
            Self::Hour => HOUR_US,
            _ => return None,
        })
    }

    /// The bit of the unit among those that were given.
    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// What was read so far.
#[derive(Debug, Default)]
struct Parts {
    years: i32,
    months: i32,
    days: i32,
    us: i64,
}

fn small(n: i64) -> Read<i32> {
    i32::try_from(n).map_err(|_| Wrong::Range)
}

impl Parts {
    /// Adds whole microseconds.
    fn add_us(&mut self, us: i64) -> Read<()> {
        self.us = self.us.checked_add(us).ok_or(Wrong::Range)?;
        Ok(())
    }

    fn add_days(&mut self, days: i64) -> Read<()> {
        self.days = self.days.checked_add(small(days)?).ok_or(Wrong::Range)?;
        Ok(())
    }

    fn add_months(&mut self, months: i64) -> Read<()> {
        self.months = self.months.checked_add(small(months)?).ok_or(Wrong::Range)?;
        Ok(())
    }

    /// Adds a part of a unit of so many microseconds, rounded.
    fn add_part_of_us(&mut self, part: f64, unit: i64) -> Read<()> {
        let us = part * unit as f64;
        let whole = us.trunc();
        let rounded = match us - whole {
            rest if rest > 0.5 => whole + 1.0,
            rest if rest < -0.5 => whole - 1.0,
            _ => whole,
        };
        self.add_us(rounded as i64)
    }

    /// Adds a part of a unit of so many days: whole days and a time.
    fn add_part_of_days(&mut self, part: f64, unit: f64) -> Read<()> {
        let days = part * unit;
        self.add_days(days.trunc() as i64)?;
        self.add_part_of_us(days - days.trunc(), DAY_US)
    }

    /// Adds so many of a unit.
    fn add(&mut self, unit: Unit, whole: i64, part: f64) -> Read<()> {
        if let Some(us) = unit.us() {
            self.add_us(whole.checked_mul(us).ok_or(Wrong::Range)?)?;
            return self.add_part_of_us(part, us);
        }
        let years = match unit {
            Unit::Day | Unit::Week => {
                let days = if unit == Unit::Week { 7 } else { 1 };
                self.add_days(whole.checked_mul(days).ok_or(Wrong::Range)?)?;
                return self.add_part_of_days(part, days as f64);
            }
            Unit::Month => {
                self.add_months(whole)?;
                return self.add_part_of_days(part, 30.0);
            }
            Unit::Year => 1,
            Unit::Decade => 10,
            Unit::Century => 100,
            Unit::Millennium => 1000,
            _ => return Err(Wrong::Form),
        };
        let added = small(whole.checked_mul(years).ok_or(Wrong::Range)?)?;
        self.years = self.years.checked_add(added).ok_or(Wrong::Range)?;
        // Parts of years are whole months.
        self.add_months((part * years as f64 * 12.0).round_ties_even() as i64)
    }

    fn negate(&mut self) -> Read<()> {
        let turned = |n: i32| n.checked_neg().ok_or(Wrong::Range);
        (self.years, self.months, self.days) = (turned(self.years)?, turned(self.months)?, turned(self.days)?);
        self.us = self.us.checked_neg().ok_or(Wrong::Range)?;
        Ok(())
    }

    fn interval(self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval {
            months: i32::try_from(months).ok()?,
            days: self.days,
            us: self.us,
        })
    }
}

impl Interval {
    /// Reads PostgreSQL's verbose form, its short one (`1 day 02:03:04`) and ISO 8601's (`P1DT2H`). `unit` is that of a number alone.
    ///
    /// Errors: 22007, 22008 and 22015.
    pub fn parse(text: &str, unit: &str) -> Result<Self> {
        let parts = match worded(text, unit) {
            Err(Wrong::Form) => iso(text),
            read => read,
        };
        match parts {
            Ok(parts) => parts.interval().ok_or_else(overflow),
            Err(Wrong::Form) => Err(error(
                "22007",
                format!("invalid input syntax for type interval: \"{text}\""),
            )),
            Err(Wrong::Range) => Err(error("22015", format!("interval field value out of range: \"{text}\""))),
        }
    }
}

/// Numbers with their units behind them, or none, and times.
fn worded(text: &str, unit: &str) -> Read<Parts> {
    let words = tokens::tokens(text).ok_or(Wrong::Form)?;
    // `minute to second` says that hours are left out.
    let minutes_first = unit == "minute to second";
    let first = Unit::named(if minutes_first { "second" } else { unit });
    let mut out = Parts::default();
    let (mut ago, mut given) = (false, 0u16);
    const TIME: u16 = 0b1_1111;
    let negates = style::intervals() == Intervals::Standard && is_negative_throughout(&words);
    // From the end on, where units stand before their numbers.
    let mut unit: Option<Unit> = None;
    for word in words.iter().rev() {
        let added = match word.kind {
            Kind::Text | Kind::SignedText => {
                unit = Some(match word.text.as_str() {
                    "ago" => {
                        ago = true;
                        Unit::None
                    }
                    "at" | "on" => continue,
                    name => Unit::named(name).ok_or(Wrong::Form)?,
                });
                continue;
            }
            Kind::Time => {
                let us = clock(&word.text, minutes_first)?;
                out.add_us(if negates { -us } else { us })?;
                // What stands before a time are days.
                unit = Some(Unit::Day);
                TIME
            }
            Kind::Signed if word.text.contains(':') => {
                let us = clock(&word.text[1..], minutes_first)?;
                out.add_us(if word.text.starts_with('-') { -us } else { us })?;
                unit = Some(Unit::Day);
                TIME
            }
            Kind::Number | Kind::Date | Kind::Signed => {
                let own = unit.or(first).unwrap_or(Unit::Second);
                unit = Some(own);
                let (own, mut whole, mut part) = number(&word.text, own)?;
                if negates {
                    (whole, part) = (-whole.saturating_abs(), -part.abs());
                }
                out.add(own, whole, part)?;
                match own {
                    Unit::Hour => {
                        unit = Some(Unit::Day);
                        own.bit()
                    }
                    Unit::Second if part != 0.0 => {
                        Unit::Second.bit() | Unit::Millisecond.bit() | Unit::Microsecond.bit()
                    }
                    own => own.bit(),
                }
            }
        };
        if added & given != 0 {
            return Err(Wrong::Form);
        }
        given |= added;
    }
    if given == 0 {
        return Err(Wrong::Form);
    }
    if ago {
        out.negate()?;
    }
    Ok(out)
}

/// In the standard's style a sign before the first part is that of all, unless others have their own.
fn is_negative_throughout(words: &[Token]) -> bool {
    let mut words = words.iter().map(|word| word.text.as_str());
    words.next().is_some_and(|word| word.starts_with('-')) && !words.any(|word| word.starts_with(['-', '+']))
}

/// A number and the part of one behind the point; of years and months the months.
fn number(text: &str, unit: Unit) -> Read<(Unit, i64, f64)> {
    let signed = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_negative = text.starts_with('-');
    let end = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
    let (digits, rest) = signed.split_at(end);
    let whole = match (digits, is_negative) {
        ("", _) => 0,
        // The least number has no positive one.
        (digits, true) => format!("-{digits}").parse::<i64>().map_err(|_| Wrong::Range)?,
        (digits, false) => digits.parse::<i64>().map_err(|_| Wrong::Range)?,
    };
    if let Some(months) = rest.strip_prefix('-') {
        if months.is_empty() || !months.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Wrong::Form);
        }
        let months: i64 = months.parse().map_err(|_| Wrong::Range)?;
        if months >= 12 {
            return Err(Wrong::Range);
        }
        let all = whole.checked_mul(12).ok_or(Wrong::Range)?;
        return Ok((Unit::Month, all + if is_negative { -months } else { months }, 0.0));
    }
    let part = match rest {
        "" if digits.is_empty() => return Err(Wrong::Form),
        "" => 0.0,
        rest => {
            let behind = rest.strip_prefix('.').ok_or(Wrong::Form)?;
            match behind.bytes().all(|b| b.is_ascii_digit()) {
                true => format!("0.{behind}0").parse::<f64>().map_err(|_| Wrong::Form)?,
                false => return Err(Wrong::Form),
            }
        }
    };
    Ok((unit, whole, if is_negative { -part } else { part }))
}

/// Microseconds of `h:mm[:ss[.ffffff]]`, or of minutes and seconds.
fn clock(text: &str, minutes_first: bool) -> Read<i64> {
    let whole = |digits: &str| match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => digits.parse::<i64>().map_err(|_| Wrong::Range),
        false => Err(Wrong::Form),
    };
    let mut parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 2 && (minutes_first || parts[1].contains('.')) {
        parts.insert(0, "0");
    }
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(Wrong::Form),
    };
    let (seconds, behind) = seconds.split_once('.').unwrap_or((seconds, ""));
    if !behind.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Wrong::Form);
    }
    let part: f64 = format!("0.{behind}0").parse().map_err(|_| Wrong::Form)?;
    let (hours, minutes, seconds) = (whole(hours)?, whole(minutes)?, whole(seconds)?);
    if minutes > 59 || seconds > 60 {
        return Err(Wrong::Range);
    }
    let us = minutes * 60_000_000 + seconds * 1_000_000 + (part * 1e6).round_ties_even() as i64;
    hours
        .checked_mul(HOUR_US)
        .and_then(|all| all.checked_add(us))
        .ok_or(Wrong::Range)
}

/// ISO 8601's forms: numbers with the letters of their units behind them, or dates and times as moments have them.
fn iso(text: &str) -> Read<Parts> {
    let mut rest = text
        .strip_prefix('P')
        .filter(|rest| !rest.is_empty())
        .ok_or(Wrong::Form)?;
    let mut out = Parts::default();
    let (mut in_time, mut has_field) = (false, false);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            (in_time, has_field, rest) = (true, false, after);
            continue;
        }
        let start = rest;
        let (whole, part) = iso_number(&mut rest)?;
        let width = start
            .bytes()
            .skip(usize::from(start.starts_with('-')))
            .take_while(u8::is_ascii_digit)
            .count();
        let unit = rest.bytes().next();
        let named = match (unit, in_time) {
            (Some(b'Y'), false) => Some(Unit::Year),
            (Some(b'M'), false) => Some(Unit::Month),
            (Some(b'W'), false) => Some(Unit::Week),
            (Some(b'D'), false) => Some(Unit::Day),
            (Some(b'H'), true) => Some(Unit::Hour),
            (Some(b'M'), true) => Some(Unit::Minute),
            (Some(b'S'), true) => Some(Unit::Second),
            _ => None,
        };
        if let Some(named) = named {
            out.add(named, whole, part)?;
            (rest, has_field) = (&rest[1..], true);
            continue;
        }
        let signs: &[Option<u8>] = if in_time {
            &[None, Some(b':')]
        } else {
            &[None, Some(b'T'), Some(b'-')]
        };
        if has_field || !signs.contains(&unit) {
            return Err(Wrong::Form);
        }
        let together = if in_time { 6 } else { 8 };
        let units = match in_time {
            true => [Unit::Hour, Unit::Minute, Unit::Second],
            false => [Unit::Year, Unit::Month, Unit::Day],
        };
        if width == together && matches!(unit, None | Some(b'T')) {
            for (unit, n) in units.iter().zip([whole / 10_000, whole / 100 % 100, whole % 100]) {
                out.add(*unit, n, 0.0)?;
            }
            // A part of a second is left out, as PostgreSQL does.
            continue;
        }
        out.add(units[0], whole, part)?;
        let sign = if in_time { ':' } else { '-' };
        for unit in &units[1..] {
            let Some(after) = rest.strip_prefix(sign) else { break };
            rest = after;
            let (whole, part) = iso_number(&mut rest)?;
            out.add(*unit, whole, part)?;
        }
        let goes_on = rest.starts_with('T') && !in_time;
        if !rest.is_empty() && !goes_on {
            return Err(Wrong::Form);
        }
        has_field = true;
    }
    Ok(out)
}

/// A number with a sign and a part behind the point, which `rest` is left without.
fn iso_number(rest: &mut &str) -> Read<(i64, f64)> {
    let start = usize::from(rest.starts_with('-'));
    let end = rest[start..]
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map_or(rest.len(), |at| start + at);
    let number: f64 = rest[..end].parse().map_err(|_| Wrong::Form)?;
    if number.abs() > 1e15 {
        return Err(Wrong::Range);
    }
    *rest = &rest[end..];
    Ok((number.trunc() as i64, number.fract()))
}
