//! Dates and times of SQL/JSON's paths: what `.datetime()` gives. They are values of a kind of their own while a path runs, and texts behind it.

use super::formats;
use crate::error::{error, fail};
use crate::types::datetime::{self, Parts};
use crate::types::interval::DAY_US;
use crate::types::timetz::TimeTz;
use crate::types::zone;
use nestor_model::date::{days_from_civil, days_in_month};
use nestor_model::value::Binary;
use nestor_model::{Result, Value};
use std::cmp::Ordering;

/// The subtype of the binary values that they are held as.
const SUBTYPE: u8 = 0xE8;
/// Bytes of these values: the kind, microseconds, seconds east of Greenwich.
const BYTES: usize = 13;

/// The kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
}

/// A date or a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    kind: Kind,
    /// Microseconds from 1970, or of the day; with a zone what its clocks show.
    local: i64,
    /// Seconds east of Greenwich.
    east: i64,
}

impl Moment {
    /// The one that a value is.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Binary(binary) = value else { return None };
        let bytes = <&[u8; BYTES]>::try_from(&*binary.bytes)
            .ok()
            .filter(|_| binary.subtype == SUBTYPE)?;
        let kind = match bytes[0] {
            0 => Kind::Date,
            1 => Kind::Time,
            2 => Kind::Timetz,
            3 => Kind::Timestamp,
            _ => Kind::Timestamptz,
        };
        let (us, east) = bytes[1..].split_first_chunk::<8>()?;
        Some(Self {
            kind,
            local: i64::from_be_bytes(*us),
            east: i64::from(i32::from_be_bytes(east.try_into().ok()?)),
        })
    }

    /// As a value.
    pub(super) fn to_value(self) -> Value {
        let mut bytes = vec![self.kind as u8];
        bytes.extend_from_slice(&self.local.to_be_bytes());
        bytes.extend_from_slice(&(self.east as i32).to_be_bytes());
        Value::Binary(Binary {
            subtype: SUBTYPE,
            bytes: bytes.as_slice().into(),
        })
    }

    /// The name of its type.
    pub(super) fn type_name(self) -> &'static str {
        match self.kind {
            Kind::Date => "date",
            Kind::Time => "time without time zone",
            Kind::Timetz => "time with time zone",
            Kind::Timestamp => "timestamp without time zone",
            Kind::Timestamptz => "timestamp with time zone",
        }
    }

    /// Its type as errors about zones call it.
    fn short_name(self) -> &'static str {
        match self.kind {
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::Timetz => "timetz",
            Kind::Timestamp => "timestamp",
            Kind::Timestamptz => "timestamptz",
        }
    }

    /// Its text by ISO 8601.
    pub(super) fn text(self) -> String {
        let parts = Parts::of(self.local);
        let era = if parts.year > 0 { "" } else { " BC" };
        let year = if parts.year > 0 { parts.year } else { 1 - parts.year };
        let date = format!("{year:04}-{:02}-{:02}", parts.month, parts.day);
        let time = datetime::format_time(parts.us);
        let sign = if self.east < 0 { '-' } else { '+' };
        let zone = format!("{sign}{:02}:{:02}", self.east.abs() / 3600, self.east.abs() / 60 % 60);
        match self.kind {
            Kind::Date => format!("{date}{era}"),
            Kind::Time => time,
            Kind::Timetz => format!("{time}{zone}"),
            Kind::Timestamp => format!("{date}T{time}{era}"),
            Kind::Timestamptz => format!("{date}T{time}{zone}{era}"),
        }
    }

    /// Reads a text in one of ISO 8601's forms, or by a template. Errors: 22031, and 22007 and 22008 of templates.
    pub(super) fn read(text: &str, template: Option<&str>) -> Result<Self> {
        match template {
            Some(template) => Self::by(text, template),
            None => iso(text).ok_or_else(|| error("22031", format!("datetime format is not recognized: \"{text}\""))),
        }
    }

    fn by(text: &str, template: &str) -> Result<Self> {
        let (read, has) = formats::read_whole(text, template)?;
        let kind = match (has.date, has.time, has.zone) {
            (true, true, true) => Kind::Timestamptz,
            (true, true, false) => Kind::Timestamp,
            (true, false, false) => Kind::Date,
            (false, true, true) => Kind::Timetz,
            (false, true, false) => Kind::Time,
            (true, false, true) => return fail("22007", "datetime format is zoned but not timed"),
            (false, false, _) => return fail("22007", "datetime format is not dated and not timed"),
        };
        let local = if has.date {
            read.local
        } else {
            read.local.rem_euclid(DAY_US)
        };
        let east = match (has.zone, read.east) {
            (false, _) => 0,
            (true, Some(east)) => east,
            (true, None) => zone::current_offset(zone::instant(local)),
        };
        Ok(Self { kind, local, east })
    }

    /// The order of two that are of comparable types; nothing for others. What has no zone is in the session's where the path `uses_zone`.
    ///
    /// Errors: 0A000 where it does not and would have to.
    pub(super) fn compare(self, other: Self, uses_zone: bool) -> Result<Option<Ordering>> {
        let is_time = |moment: Self| matches!(moment.kind, Kind::Time | Kind::Timetz);
        let has_zone = |moment: Self| matches!(moment.kind, Kind::Timetz | Kind::Timestamptz);
        if is_time(self) != is_time(other) {
            return Ok(None);
        }
        if has_zone(self) != has_zone(other) && !uses_zone {
            let (from, to) = if has_zone(self) { (other, self) } else { (self, other) };
            return fail(
                "0A000",
                format!(
                    "cannot convert value from {} to {} without time zone usage",
                    from.short_name(),
                    to.short_name()
                ),
            );
        }
        if !has_zone(self) && !has_zone(other) {
            return Ok(Some(self.local.cmp(&other.local)));
        }
        let east = |moment: Self| match (has_zone(moment), is_time(moment)) {
            (true, _) => moment.east,
            (false, true) => zone::now_offset(),
            (false, false) => (moment.local - zone::instant(moment.local)) / 1_000_000,
        };
        let (a, b) = (east(self), east(other));
        if is_time(self) {
            let [a, b] = [(self.local, a), (other.local, b)].map(|(us, east)| TimeTz { us, east });
            return Ok(Some(a.compare(b)));
        }
        let instant = |moment: Self, east: i64| moment.local.saturating_sub(east * 1_000_000);
        Ok(Some(instant(self, a).cmp(&instant(other, b))))
    }
}

/// Takes digits from the front of a text, so many at most.
fn number(rest: &mut &str, most: usize) -> Option<i64> {
    let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let found = rest[..digits].parse().ok()?;
    *rest = &rest[digits..];
    Some(found)
}

fn sign(rest: &mut &str, sign: char) -> Option<()> {
    *rest = rest.strip_prefix(sign)?;
    Some(())
}

/// Hours, minutes and seconds with a fraction, in microseconds.
fn clock(rest: &mut &str) -> Option<i64> {
    let hour = number(rest, 2)?;
    sign(rest, ':')?;
    let minute = number(rest, 2)?;
    sign(rest, ':')?;
    let second = number(rest, 2)?;
    let mut us = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count().min(6);
        us = after[..digits].parse::<i64>().ok()? * 10i64.pow(6 - digits as u32);
        *rest = &after[digits..];
    }
    let fits = hour < 24 && minute < 60 && second < 60;
    fits.then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + us)
}

/// A date, a time or both, with an offset behind a time or none.
fn iso(text: &str) -> Option<Moment> {
    let mut rest = text.trim();
    let signs = rest.find(|c: char| !c.is_ascii_digit());
    let mut day = None;
    if signs.is_some_and(|at| rest[at..].starts_with('-')) {
        let year = number(&mut rest, 6)?;
        sign(&mut rest, '-')?;
        let month = u32::try_from(number(&mut rest, 2)?).ok()?;
        sign(&mut rest, '-')?;
        let date = u32::try_from(number(&mut rest, 2)?).ok()?;
        let last = days_in_month(year, month).filter(|_| year > 0)?;
        day = Some(days_from_civil(year, month, date)).filter(|_| (1..=last).contains(&date));
        day?;
        if rest.is_empty() {
            return Some(Moment {
                kind: Kind::Date,
                local: day?.checked_mul(DAY_US)?,
                east: 0,
            });
        }
        rest = match rest.strip_prefix('T') {
            Some(after) => after,
            None => rest.strip_prefix(char::is_whitespace)?.trim_start(),
        };
    }
    let time = clock(&mut rest)?;
    let local = day.unwrap_or(0).checked_mul(DAY_US)?.checked_add(time)?;
    rest = rest.trim_start();
    let (without, with) = match day {
        Some(_) => (Kind::Timestamp, Kind::Timestamptz),
        None => (Kind::Time, Kind::Timetz),
    };
    if rest.is_empty() {
        return Some(Moment {
            kind: without,
            local,
            east: 0,
        });
    }
    let is_west = rest.starts_with('-');
    rest = rest.strip_prefix(['+', '-'])?;
    let hours = number(&mut rest, 2)?;
    let minutes = match rest.strip_prefix(':') {
        Some(after) => {
            rest = after;
            number(&mut rest, 2)?
        }
        None => 0,
    };
    if !rest.is_empty() || hours > 15 || minutes > 59 {
        return None;
    }
    let east = hours * 3600 + minutes * 60;
    Some(Moment {
        kind: with,
        local,
        east: if is_west { -east } else { east },
    })
}
