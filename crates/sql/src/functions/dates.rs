//! Dates and times.

use super::Row;
use super::args::int;
use crate::error::fail;
use crate::types::datetime::{self, Parts};
use crate::types::interval::{DAY_US, Interval};
use crate::types::numeric;
use crate::types::zone::{self, Zone};
use nestor_model::date::days_from_civil;
use nestor_model::{Result, Value};
use nestor_planner::relation::Env;

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn now_us(env: &Env<'_>) -> i64 {
    env.op.now_ms.saturating_mul(1000)
}

fn numeric_of(whole: i64, us: i64) -> Result<Value> {
    let total = i128::from(whole) * 1_000_000 + i128::from(us);
    let sign = if total < 0 { "-" } else { "" };
    let total = total.unsigned_abs();
    numeric::parse(&format!("{sign}{}.{:06}", total / 1_000_000, total % 1_000_000)).map(Value::Decimal128)
}

fn number(n: i64) -> Result<Value> {
    numeric::parse(&n.to_string()).map(Value::Decimal128)
}

fn extract(field: &str, us: i64) -> Result<Value> {
    let parts = Parts::of(us);
    let second_us = parts.us % 60_000_000;
    let year = if parts.year > 0 { parts.year } else { parts.year - 1 };
    match field.to_ascii_lowercase().trim_end_matches('s') {
        "year" => number(year),
        "month" => number(i64::from(parts.month)),
        "day" => number(i64::from(parts.day)),
        "hour" => number(parts.us / 3_600_000_000),
        "minute" => number(parts.us / 60_000_000 % 60),
        "second" => numeric_of(0, second_us),
        "millisecond" => numeric_of(second_us / 1000, second_us % 1000 * 1000),
        "microsecond" => number(second_us),
        "dow" => number(parts.weekday()),
        "isodow" => number((parts.weekday() + 6) % 7 + 1),
        "doy" => number(parts.day_of_year()),
        "week" => number(parts.iso_week().1),
        "isoyear" => number(parts.iso_week().0),
        "quarter" => number((i64::from(parts.month) - 1) / 3 + 1),
        "decade" => number(parts.year.div_euclid(10)),
        "century" => number((parts.year + 99).div_euclid(100)),
        "millennium" => number((parts.year + 999).div_euclid(1000)),
        "epoch" => numeric_of(us.div_euclid(1_000_000), us.rem_euclid(1_000_000)),
        "julian" => number(us.div_euclid(DAY_US) + 2_440_588),
        other => fail("22023", format!("unit \"{other}\" not recognized for type timestamp")),
    }
}

fn extract_interval(field: &str, interval: Interval) -> Result<Value> {
    let months = i64::from(interval.months);
    match field.to_ascii_lowercase().trim_end_matches('s') {
        "year" => number(months / 12),
        "month" => number(months % 12),
        "day" => number(i64::from(interval.days)),
        "hour" => number(interval.us / 3_600_000_000),
        "minute" => number(interval.us / 60_000_000 % 60),
        "second" => numeric_of(0, interval.us % 60_000_000),
        "millisecond" => numeric_of(interval.us % 60_000_000 / 1000, interval.us % 1000 * 1000),
        "microsecond" => number(interval.us % 60_000_000),
        "quarter" => number(months % 12 / 3 + 1),
        "decade" => number(months / 120),
        "century" => number(months / 1200),
        "epoch" => {
            // A year has 365.25 days here and a month otherwise 30.
            let days = i128::from(months % 12) * 30 + i128::from(interval.days);
            let years_us = i128::from(months / 12) * 31_557_600 * 1_000_000;
            let us = years_us + days * i128::from(DAY_US) + i128::from(interval.us);
            let us = i64::try_from(us).map_err(|_| datetime::out_of_range("interval"))?;
            numeric_of(us.div_euclid(1_000_000), us.rem_euclid(1_000_000))
        }
        other => fail("22023", format!("unit \"{other}\" not recognized for type interval")),
    }
}

fn as_double(value: Result<Value>) -> Result<Value> {
    Ok(match value? {
        Value::Decimal128(n) => Value::Double(n.to_f64()),
        other => other,
    })
}

fn trunc(field: &str, us: i64) -> Result<Value> {
    if us == datetime::INFINITY || us == datetime::NEGATIVE_INFINITY {
        return Ok(Value::Int64(us));
    }
    let mut parts = Parts::of(us);
    let clock = |unit: i64| Ok(Value::Int64(us.div_euclid(unit) * unit));
    match field.to_ascii_lowercase().trim_end_matches('s') {
        "microsecond" => return Ok(Value::Int64(us)),
        "millisecond" => return clock(1000),
        "second" => return clock(1_000_000),
        "minute" => return clock(60_000_000),
        "hour" => return clock(3_600_000_000),
        "day" => return clock(DAY_US),
        "week" => {
            let day = us.div_euclid(DAY_US);
            return Ok(Value::Int64((day - (day + 3).rem_euclid(7)) * DAY_US));
        }
        "month" => {}
        "quarter" => parts.month = (parts.month - 1) / 3 * 3 + 1,
        "year" => parts.month = 1,
        "decade" => (parts.year, parts.month) = (parts.year.div_euclid(10) * 10, 1),
        "century" => (parts.year, parts.month) = ((parts.year - 1).div_euclid(100) * 100 + 1, 1),
        "millennium" => (parts.year, parts.month) = ((parts.year - 1).div_euclid(1000) * 1000 + 1, 1),
        other => return fail("22023", format!("unit \"{other}\" not recognized for type timestamp")),
    }
    Parts { day: 1, us: 0, ..parts }.timestamp().map(Value::Int64)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// A part of an instant, as the session's clocks show it.
fn extract_zoned(field: &str, us: i64) -> Result<Value> {
    let offset = zone::current_offset(us);
    match field.to_ascii_lowercase().as_str() {
        "timezone" => number(offset),
        "timezone_hour" => number(offset / 3600),
        "timezone_minute" => number(offset / 60 % 60),
        "epoch" => extract(field, us),
        _ => extract(field, zone::local(us)),
    }
}

/// The beginning of a unit of time as clocks show it in a zone.
fn trunc_in(field: &str, us: i64, to_local: impl Fn(i64) -> i64, instant: impl Fn(i64) -> i64) -> Result<Value> {
    match trunc(field, to_local(us))? {
        Value::Int64(local) => Ok(Value::Int64(instant(local))),
        other => Ok(other),
    }
}

/// `to_char` of a timestamp; `zone` is what `TZ` and `OF` stand for.
fn to_char(us: i64, pattern: &str, (zone, offset): (&str, &str)) -> String {
    let parts = Parts::of(us);
    let (hour, minute, second) = (
        parts.us / 3_600_000_000,
        parts.us / 60_000_000 % 60,
        parts.us / 1_000_000 % 60,
    );
    let month = MONTHS[(parts.month as usize).clamp(1, 12) - 1];
    let day = DAYS[parts.weekday() as usize % 7];
    let hour12 = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut rest = pattern;
    let mut padded = true;
    'next: while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("FM") {
            (padded, rest) = (false, after);
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let (inner, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            out.push_str(inner);
            rest = after;
            continue;
        }
        let fills = padded;
        let two = |n: i64| if fills { format!("{n:02}") } else { n.to_string() };
        let name = |s: &str| if fills { format!("{s:<9}") } else { s.to_owned() };
        let table: [(&str, &dyn Fn() -> String); 36] = [
            ("YYYY", &|| format!("{:04}", parts.year)),
            ("YYY", &|| format!("{:03}", parts.year % 1000)),
            ("YY", &|| format!("{:02}", parts.year % 100)),
            ("IYYY", &|| parts.iso_week().0.to_string()),
            ("IW", &|| two(parts.iso_week().1)),
            ("MONTH", &|| name(&month.to_uppercase())),
            ("Month", &|| name(month)),
            ("month", &|| name(&month.to_lowercase())),
            ("MON", &|| month[..3].to_uppercase()),
            ("Mon", &|| month[..3].to_owned()),
            ("mon", &|| month[..3].to_lowercase()),
            ("MM", &|| two(i64::from(parts.month))),
            ("MI", &|| two(minute)),
            ("MS", &|| format!("{:03}", parts.us / 1000 % 1000)),
            ("DAY", &|| name(&day.to_uppercase())),
            ("Day", &|| name(day)),
            ("day", &|| name(&day.to_lowercase())),
            ("DY", &|| day[..3].to_uppercase()),
            ("Dy", &|| day[..3].to_owned()),
            ("dy", &|| day[..3].to_lowercase()),
            ("DDD", &|| format!("{:03}", parts.day_of_year())),
            ("DD", &|| two(i64::from(parts.day))),
            ("D", &|| (parts.weekday() + 1).to_string()),
            ("HH24", &|| two(hour)),
            ("HH12", &|| two(hour12)),
            ("HH", &|| two(hour12)),
            ("SS", &|| two(second)),
            ("US", &|| format!("{:06}", parts.us % 1_000_000)),
            ("AM", &|| (if hour < 12 { "AM" } else { "PM" }).to_owned()),
            ("PM", &|| (if hour < 12 { "AM" } else { "PM" }).to_owned()),
            ("am", &|| (if hour < 12 { "am" } else { "pm" }).to_owned()),
            ("pm", &|| (if hour < 12 { "am" } else { "pm" }).to_owned()),
            ("Q", &|| ((parts.month - 1) / 3 + 1).to_string()),
            ("TZ", &|| zone.to_owned()),
            ("tz", &|| zone.to_lowercase()),
            ("OF", &|| offset.to_owned()),
        ];
        for (word, value) in table {
            if let Some(after) = rest.strip_prefix(word) {
                out.push_str(&value());
                (rest, padded) = (after, true);
                continue 'next;
            }
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

fn make(year: i64, month: i64, day: i64) -> Result<i64> {
    let month32 = u32::try_from(month).unwrap_or(0);
    let valid = (1..=12).contains(&month)
        && day >= 1
        && nestor_model::date::days_in_month(year, month32).is_some_and(|last| day <= i64::from(last));
    match valid {
        true => Ok(days_from_civil(year, month32, u32::try_from(day).unwrap_or(1))),
        false => fail("22008", "date field value out of range"),
    }
}

/// Microseconds of a time of day. Errors: 22008.
fn clock(hour: i64, minute: i64, second: &Value) -> Result<i64> {
    let second = match second {
        Value::Double(n) => *n,
        _ => 0.0,
    };
    let valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let us = (hour * 60 + minute) * 60_000_000 + (second * 1e6).round() as i64;
    match valid && us <= DAY_US {
        true => Ok(us),
        false => fail("22008", "time field value out of range"),
    }
}

fn make_timestamp(a: &[Value]) -> Result<i64> {
    let days = make(int(&a[0]), int(&a[1]), int(&a[2]))?;
    Ok(days * DAY_US + clock(int(&a[3]), int(&a[4]), &a[5])?)
}

/// Years, months, weeks, days, hours, minutes and seconds as an interval. Errors: 22008.
fn make_interval(a: &[Value]) -> Result<Value> {
    let seconds = match a[6] {
        Value::Double(n) if n.is_finite() && n.abs() < 9e12 => n,
        _ => return Err(datetime::out_of_range("interval")),
    };
    let narrow = |n: i64| i32::try_from(n).map_err(|_| datetime::out_of_range("interval"));
    Ok(Interval {
        months: narrow(int(&a[0]) * 12 + int(&a[1]))?,
        days: narrow(int(&a[2]) * 7 + int(&a[3]))?,
        us: (int(&a[4]) * 60 + int(&a[5])) * 60_000_000 + (seconds * 1e6).round() as i64,
    }
    .to_value())
}

/// Whether two spans of time, each with its ends in any order, have a moment in common; a span is open at its end unless it is a moment.
fn overlaps(a: &[Value]) -> Value {
    let span = |from: &Value, to: &Value| {
        let (from, to) = (int(from), int(to));
        (from.min(to), from.max(to))
    };
    let (first, second) = (span(&a[0], &a[1]), span(&a[2], &a[3]));
    let (early, late) = if first.0 <= second.0 {
        (first, second)
    } else {
        (second, first)
    };
    Value::Bool(early.0 == late.0 || late.0 < early.1)
}

pub(super) const ROWS: &[Row] = &[
    ("now", "->timestamptz", |_, env, _| Ok(Value::Int64(now_us(env)))),
    ("current_timestamp", "->timestamptz", |_, env, _| {
        Ok(Value::Int64(now_us(env)))
    }),
    ("transaction_timestamp", "->timestamptz", |_, env, _| {
        Ok(Value::Int64(now_us(env)))
    }),
    ("statement_timestamp", "->timestamptz", |_, env, _| {
        Ok(Value::Int64(now_us(env)))
    }),
    ("clock_timestamp", "!->timestamptz", |_, _, _| {
        Ok(Value::Int64(nestor_database::clock::now_ms().saturating_mul(1000)))
    }),
    ("localtimestamp", "->timestamp", |_, env, _| {
        Ok(Value::Int64(zone::local(now_us(env))))
    }),
    ("current_date", "->date", |_, env, _| {
        Ok(Value::Int32(zone::local(now_us(env)).div_euclid(DAY_US) as i32))
    }),
    ("current_time", "->time", |_, env, _| {
        Ok(Value::Int64(zone::local(now_us(env)).rem_euclid(DAY_US)))
    }),
    ("localtime", "->time", |_, env, _| {
        Ok(Value::Int64(zone::local(now_us(env)).rem_euclid(DAY_US)))
    }),
    ("extract", "text,timestamp->numeric", |a, _, _| {
        extract(str(&a[0]), int(&a[1]))
    }),
    ("extract", "text,timestamptz->numeric", |a, _, _| {
        extract_zoned(str(&a[0]), int(&a[1]))
    }),
    ("extract", "text,date->numeric", |a, _, _| {
        extract(str(&a[0]), int(&a[1]).saturating_mul(DAY_US))
    }),
    ("extract", "text,time->numeric", |a, _, _| {
        extract(str(&a[0]), int(&a[1]))
    }),
    ("extract", "text,interval->numeric", |a, _, _| {
        extract_interval(str(&a[0]), Interval::of(&a[1]))
    }),
    ("date_part", "text,timestamp->float8", |a, _, _| {
        as_double(extract(str(&a[0]), int(&a[1])))
    }),
    ("date_part", "text,timestamptz->float8", |a, _, _| {
        as_double(extract_zoned(str(&a[0]), int(&a[1])))
    }),
    ("date_part", "text,date->float8", |a, _, _| {
        as_double(extract(str(&a[0]), int(&a[1]).saturating_mul(DAY_US)))
    }),
    ("date_part", "text,interval->float8", |a, _, _| {
        as_double(extract_interval(str(&a[0]), Interval::of(&a[1])))
    }),
    ("date_trunc", "text,timestamp->timestamp", |a, _, _| {
        trunc(str(&a[0]), int(&a[1]))
    }),
    ("date_trunc", "text,timestamptz->timestamptz", |a, _, _| {
        trunc_in(str(&a[0]), int(&a[1]), zone::local, zone::instant)
    }),
    ("date_trunc", "text,timestamptz,text->timestamptz", |a, _, _| {
        let zone = Zone::named(str(&a[2]))?;
        trunc_in(str(&a[0]), int(&a[1]), |us| zone.to_local(us), |us| zone.to_utc(us))
    }),
    ("age", "timestamp,timestamp->interval", |a, _, _| {
        datetime::age(int(&a[0]), int(&a[1])).map(Interval::to_value)
    }),
    ("age", "timestamptz,timestamptz->interval", |a, _, _| {
        datetime::age(zone::local(int(&a[0])), zone::local(int(&a[1]))).map(Interval::to_value)
    }),
    ("age", "timestamp->interval", |a, env, _| {
        let midnight = zone::local(now_us(env)).div_euclid(DAY_US) * DAY_US;
        datetime::age(midnight, int(&a[0])).map(Interval::to_value)
    }),
    ("age", "timestamptz->interval", |a, env, _| {
        let midnight = zone::local(now_us(env)).div_euclid(DAY_US) * DAY_US;
        datetime::age(midnight, zone::local(int(&a[0]))).map(Interval::to_value)
    }),
    ("to_char", "timestamp,text->text", |a, _, _| {
        Ok(Value::String(to_char(int(&a[0]), str(&a[1]), ("", "+00")).into()))
    }),
    ("to_char", "timestamptz,text->text", |a, _, _| {
        let us = int(&a[0]);
        let (zone, offset) = (
            zone::current_abbreviation(us),
            zone::format_offset(zone::current_offset(us)),
        );
        Ok(Value::String(
            to_char(zone::local(us), str(&a[1]), (&zone, &offset)).into(),
        ))
    }),
    ("to_char", "date,text->text", |a, _, _| {
        Ok(Value::String(
            to_char(int(&a[0]).saturating_mul(DAY_US), str(&a[1]), ("", "+00")).into(),
        ))
    }),
    ("make_date", "int4,int4,int4->date", |a, _, _| {
        make(int(&a[0]), int(&a[1]), int(&a[2])).map(|days| Value::Int32(days as i32))
    }),
    (
        "make_timestamp",
        "int4,int4,int4,int4,int4,float8->timestamp",
        |a, _, _| make_timestamp(a).map(Value::Int64),
    ),
    (
        "make_timestamptz",
        "int4,int4,int4,int4,int4,float8->timestamptz",
        |a, _, _| make_timestamp(a).map(|us| Value::Int64(zone::instant(us))),
    ),
    (
        "make_timestamptz",
        "int4,int4,int4,int4,int4,float8,text->timestamptz",
        |a, _, _| Ok(Value::Int64(Zone::named(str(&a[6]))?.to_utc(make_timestamp(a)?))),
    ),
    ("make_time", "int4,int4,float8->time", |a, _, _| {
        clock(int(&a[0]), int(&a[1]), &a[2]).map(Value::Int64)
    }),
    (
        "make_interval",
        "int4,int4,int4,int4,int4,int4,float8->interval",
        |a, _, _| make_interval(a),
    ),
    ("to_date", "text,text->date", |a, _, _| {
        let us = super::formats::timestamp(str(&a[0]), str(&a[1]))?;
        Ok(Value::Int32(us.div_euclid(DAY_US) as i32))
    }),
    ("to_timestamp", "text,text->timestamptz", |a, _, _| {
        super::formats::timestamp(str(&a[0]), str(&a[1])).map(|us| Value::Int64(zone::instant(us)))
    }),
    ("timeofday", "!->text", |_, env, _| {
        let us = now_us(env);
        let pattern = "Dy Mon DD HH24:MI:SS.US YYYY TZ";
        let zone = zone::current_abbreviation(us);
        Ok(Value::String(to_char(zone::local(us), pattern, (&zone, "")).into()))
    }),
    ("to_timestamp", "float8->timestamptz", |a, _, _| match a[0] {
        Value::Double(n) if n.is_finite() && n.abs() < 9e12 => Ok(Value::Int64((n * 1e6).round() as i64)),
        _ => Err(datetime::out_of_range("timestamp")),
    }),
    ("timezone", "text,timestamptz->timestamp", |a, _, _| {
        Zone::named(str(&a[0])).map(|zone| Value::Int64(zone.to_local(int(&a[1]))))
    }),
    ("timezone", "text,timestamp->timestamptz", |a, _, _| {
        Zone::named(str(&a[0])).map(|zone| Value::Int64(zone.to_utc(int(&a[1]))))
    }),
    ("isfinite", "date->bool", |a, _, _| {
        Ok(Value::Bool(!matches!(a[0], Value::Int32(i32::MAX | i32::MIN))))
    }),
    (
        "overlaps",
        "timestamptz,timestamptz,timestamptz,timestamptz->bool",
        |a, _, _| Ok(overlaps(a)),
    ),
    ("justify_days", "interval->interval", |a, _, _| {
        let i = Interval::of(&a[0]);
        Ok(Interval {
            months: i.months + i.days / 30,
            days: i.days % 30,
            us: i.us,
        }
        .to_value())
    }),
    ("justify_hours", "interval->interval", |a, _, _| {
        let i = Interval::of(&a[0]);
        Ok(Interval {
            months: i.months,
            days: i.days + (i.us / DAY_US) as i32,
            us: i.us % DAY_US,
        }
        .to_value())
    }),
    ("justify_interval", "interval->interval", |a, _, _| {
        Interval::of(&a[0]).justified().map(Interval::to_value)
    }),
    ("isfinite", "interval->bool", |_, _, _| Ok(Value::Bool(true))),
    ("date_bin", "interval,timestamp,timestamp->timestamp", |a, _, _| {
        date_bin(Interval::of(&a[0]), int(&a[1]), int(&a[2]))
    }),
    (
        "date_bin",
        "interval,timestamptz,timestamptz->timestamptz",
        |a, _, _| date_bin(Interval::of(&a[0]), int(&a[1]), int(&a[2])),
    ),
    ("date_trunc", "text,interval->interval", |a, _, _| {
        trunc_interval(str(&a[0]), Interval::of(&a[1])).map(Interval::to_value)
    }),
    ("isfinite", "timestamp->bool", |a, _, _| {
        Ok(Value::Bool(!matches!(
            int(&a[0]),
            datetime::INFINITY | datetime::NEGATIVE_INFINITY
        )))
    }),
];

/// The start of the bin of `width` that `us` is in, counted from `origin`. Errors: 0A000, 22008.
fn date_bin(width: Interval, us: i64, origin: i64) -> Result<Value> {
    if width.months != 0 {
        return fail(
            "0A000",
            "timestamps cannot be binned into intervals containing months or years",
        );
    }
    let width = i64::try_from(width.total_us()).unwrap_or(i64::MAX);
    if width <= 0 {
        return fail("22008", "stride must be greater than zero");
    }
    let Some(since) = us.checked_sub(origin) else {
        return Err(datetime::out_of_range("interval"));
    };
    let start = since
        .div_euclid(width)
        .checked_mul(width)
        .and_then(|n| n.checked_add(origin));
    start
        .map(Value::Int64)
        .ok_or_else(|| datetime::out_of_range("timestamp"))
}

/// Fields of an interval below `field` made zero. Errors: 22023, 0A000.
fn trunc_interval(field: &str, i: Interval) -> Result<Interval> {
    let months = |n: i32| Interval {
        months: i.months / n * n,
        days: 0,
        us: 0,
    };
    let clock = |unit: i64| Interval {
        us: i.us / unit * unit,
        ..i
    };
    Ok(match field.to_ascii_lowercase().trim_end_matches('s') {
        "microsecond" => i,
        "millisecond" => clock(1000),
        "second" => clock(1_000_000),
        "minute" => clock(60_000_000),
        "hour" => clock(3_600_000_000),
        "day" => Interval { us: 0, ..i },
        "week" => return fail("0A000", "unit \"week\" not supported for type interval"),
        "month" => months(1),
        "quarter" => months(3),
        "year" => months(12),
        "decade" => months(120),
        "century" => months(1200),
        "millennium" => months(12_000),
        other => return fail("22023", format!("unit \"{other}\" not recognized for type interval")),
    })
}
