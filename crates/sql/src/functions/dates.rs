//! Dates and times.

use super::Row;
use super::args::int;
use super::arithmetic::{date_and_time, date_and_timetz};
use super::formats::{self, Clock};
use crate::error::fail;
use crate::types::datetime::{self, Parts};
use crate::types::interval::{DAY_US, Interval};
use crate::types::numeric;
use crate::types::timetz::TimeTz;
use crate::types::units::{Whole, is_finite, unit, unit_us};
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

/// What units belong to, for the errors about those that do not.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Timestamp,
    Date,
    Time,
    Interval,
}

/// Units of times.
const CLOCK: &[&str] = &["microsecond", "millisecond", "second", "minute", "hour", "epoch"];
/// Units of dates.
const CALENDAR: &[&str] = &[
    "day",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
    "dow",
    "isodow",
    "doy",
    "week",
    "isoyear",
    "julian",
];
/// Units of zones.
const ZONE: &[&str] = &["timezone", "timezone_hour", "timezone_minute"];

/// The error of a unit that a type has not: 0A000, or 22023 when there is none of that name.
fn no_unit<T>(field: &str, of: Of) -> Result<T> {
    let shown = match of {
        Of::Timestamp => "timestamp without time zone",
        Of::Date => "date",
        Of::Time => "time without time zone",
        Of::Interval => "interval",
    };
    let is_unit = [CLOCK, CALENDAR, ZONE].concat().contains(&field);
    match is_unit {
        true => fail("0A000", format!("unit \"{field}\" not supported for type {shown}")),
        false => fail("22023", format!("unit \"{field}\" not recognized for type {shown}")),
    }
}

/// Thousandths of a second with their fraction.
fn milliseconds(us: i64) -> Result<Value> {
    let sign = if us < 0 { "-" } else { "" };
    let us = us.unsigned_abs();
    numeric::parse(&format!("{sign}{}.{:03}", us / 1000, us % 1000)).map(Value::Decimal128)
}

/// A part of a time of day; `None` for units that it has not.
fn of_clock(field: &str, us: i64) -> Option<Result<Value>> {
    Some(match field {
        "hour" => number(us / 3_600_000_000),
        "minute" => number(us / 60_000_000 % 60),
        "second" => numeric_of(0, us % 60_000_000),
        "millisecond" => milliseconds(us % 60_000_000),
        "microsecond" => number(us % 60_000_000),
        "epoch" => numeric_of(0, us),
        _ => return None,
    })
}

fn extract(field: &str, us: i64) -> Result<Value> {
    extract_of(field, us, Of::Timestamp)
}

/// What infinities have: nothing for units that come again and again, infinity for those that grow.
fn of_infinity(field: &str, late: bool, of: Of) -> Result<Value> {
    match field {
        "year" | "decade" | "century" | "millennium" | "isoyear" | "julian" | "epoch" => {
            numeric::parse(if late { "Infinity" } else { "-Infinity" }).map(Value::Decimal128)
        }
        field if CALENDAR.contains(&field) || (CLOCK.contains(&field) && of != Of::Date) => Ok(Value::Null),
        field => no_unit(field, of),
    }
}

fn extract_of(field: &str, us: i64, of: Of) -> Result<Value> {
    let field = unit(field);
    if !is_finite(us) {
        return of_infinity(&field, us == datetime::INFINITY, of);
    }
    let whole = Whole::named(&field).filter(|whole| of == Of::Timestamp || !matches!(whole, Whole::Clock(..)));
    if let Some(whole) = whole {
        return number(whole.of(us));
    }
    let parts = Parts::of(us);
    if CLOCK.contains(&field.as_str()) && field != "epoch" && of == Of::Timestamp {
        return of_clock(&field, parts.us).unwrap_or(Ok(Value::Null));
    }
    let shown = |year: i64| if year > 0 { year } else { year - 1 };
    // Before Christ centuries count backwards.
    let count = |length: i64| match parts.year > 0 {
        true => (parts.year + length - 1) / length,
        false => -((length - parts.year) / length),
    };
    match field.as_str() {
        "week" => number(parts.iso_week().1),
        "isoyear" => number(shown(parts.iso_week().0)),
        "decade" => number(parts.year.div_euclid(10)),
        "century" => number(count(100)),
        "millennium" => number(count(1000)),
        "epoch" if of == Of::Date => number(us.div_euclid(1_000_000)),
        "epoch" => numeric_of(us.div_euclid(1_000_000), us.rem_euclid(1_000_000)),
        "julian" => {
            let day = us.div_euclid(DAY_US) + 2_440_588;
            match (of, parts.us) {
                (Of::Date, _) | (_, 0) => number(day),
                (_, rest) => {
                    let whole =
                        numeric::parse(&format!("{}", i128::from(day) * i128::from(DAY_US) + i128::from(rest)))?;
                    let share = numeric::div(whole, numeric::parse(&DAY_US.to_string())?)?;
                    numeric::round(share, 20).map(Value::Decimal128)
                }
            }
        }
        other => no_unit(other, of),
    }
}

/// A part of a time of day. Errors: 0A000, 22023.
fn extract_time(field: &str, us: i64) -> Result<Value> {
    let field = unit(field);
    of_clock(&field, us).unwrap_or_else(|| no_unit(&field, Of::Time))
}

/// The same of one with a zone, which has units of its own. Errors: 0A000, 22023.
fn extract_timetz(field: &str, time: TimeTz) -> Result<Value> {
    match unit(field).as_str() {
        "timezone" => number(time.east),
        "timezone_hour" => number(time.east / 3600),
        "timezone_minute" => number(time.east / 60 % 60),
        "epoch" => numeric_of(0, time.us - time.east * 1_000_000),
        field => of_clock(field, time.us).unwrap_or_else(|| no_unit(field, Of::Time)),
    }
}

fn extract_interval(field: &str, interval: Interval) -> Result<Value> {
    let months = i64::from(interval.months);
    match unit(field).as_str() {
        "year" => number(months / 12),
        "month" => number(months % 12),
        "day" => number(i64::from(interval.days)),
        "quarter" => number(months % 12 / 3 + 1),
        "decade" => number(months / 120),
        "century" => number(months / 1200),
        "millennium" => number(months / 12_000),
        "epoch" => {
            // A year has 365.25 days here and a month otherwise 30.
            let days = i128::from(months % 12) * 30 + i128::from(interval.days);
            let years_us = i128::from(months / 12) * 31_557_600 * 1_000_000;
            let us = years_us + days * i128::from(DAY_US) + i128::from(interval.us);
            let whole = i64::try_from(us.div_euclid(1_000_000)).map_err(|_| datetime::out_of_range("interval"))?;
            numeric_of(whole, us.rem_euclid(1_000_000) as i64)
        }
        field => of_clock(field, interval.us).unwrap_or_else(|| no_unit(field, Of::Interval)),
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
    if let Some(unit) = unit_us(field) {
        return Ok(Value::Int64(us.div_euclid(unit) * unit));
    }
    match unit(field).as_str() {
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
        other => return no_unit(other, Of::Timestamp),
    }
    Parts { day: 1, us: 0, ..parts }.timestamp().map(Value::Int64)
}

/// A part of an instant, as the session's clocks show it.
fn extract_zoned(field: &str, us: i64) -> Result<Value> {
    let offset = zone::current_offset(us);
    let field_of_zone = unit(field);
    if !is_finite(us) && ZONE.contains(&field_of_zone.as_str()) {
        return Ok(Value::Null);
    }
    match field_of_zone.as_str() {
        "timezone" => number(offset),
        "timezone_hour" => number(offset / 3600),
        "timezone_minute" => number(offset / 60 % 60),
        "epoch" => extract(field, us),
        _ => extract(field, zone::local(us)),
    }
}

/// A zone by its name, or an offset, which counts to the east and has a sign. Errors: 22023.
fn zone_of(name: &str) -> Result<Zone> {
    match name.bytes().next() {
        Some(b'0'..=b'9') => fail(
            "22023",
            format!("invalid input syntax for type numeric time zone: \"{name}\""),
        ),
        Some(b'+' | b'-') => Zone::parse(name),
        _ => Zone::named(name),
    }
}

/// The beginning of a unit of time as clocks show it in a zone.
fn trunc_in(field: &str, us: i64, to_local: impl Fn(i64) -> i64, instant: impl Fn(i64) -> i64) -> Result<Value> {
    match trunc(field, to_local(us))? {
        Value::Int64(local) => Ok(Value::Int64(instant(local))),
        other => Ok(other),
    }
}

/// `to_char`: null for infinities and without a pattern. Errors: 22007.
fn shown(clock: Option<Clock>, pattern: &str) -> Result<Value> {
    match clock {
        Some(clock) if !pattern.is_empty() => formats::show(&clock, pattern).map(|text| Value::String(text.into())),
        _ => Ok(Value::Null),
    }
}

/// A date as the beginning of its day.
fn of_date(value: &Value) -> i64 {
    match int(value) {
        days if days == i64::from(i32::MAX) => datetime::INFINITY,
        days if days == i64::from(i32::MIN) => datetime::NEGATIVE_INFINITY,
        days => days.saturating_mul(DAY_US),
    }
}

/// Seconds east of Greenwich that an interval is. Errors: 22023 for one with months or days.
fn offset_of(value: &Value) -> Result<i64> {
    let interval = Interval::of(value);
    match interval.months == 0 && interval.days == 0 {
        true => Ok(interval.us / 1_000_000),
        false => fail("22023", "interval time zone must not include months or days"),
    }
}

fn clock_of(us: i64) -> Option<Clock> {
    is_finite(us).then(|| Clock::of_timestamp(us, (String::new(), 0)))
}

fn zoned_clock_of(us: i64) -> Option<Clock> {
    is_finite(us).then(|| {
        let zone = (zone::current_abbreviation(us), zone::current_offset(us));
        Clock::of_timestamp(zone::local(us), zone)
    })
}

fn make(year: i64, month: i64, day: i64) -> Result<i64> {
    // There is no year 0, and those before it are before Christ.
    let year = match year {
        0 => return fail("22008", "date field value out of range"),
        year if year < 0 => year + 1,
        year => year,
    };
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

/// The same with nothing for what is not given.
fn make_part(a: &[Value]) -> Result<Value> {
    let mut all = a.to_vec();
    all.resize(6, Value::Int32(0));
    all.push(Value::Double(0.0));
    make_interval(&all)
}

fn time_now(env: &Env<'_>) -> TimeTz {
    let us = now_us(env);
    TimeTz {
        us: zone::local(us).rem_euclid(DAY_US),
        east: zone::current_offset(us),
    }
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
        Ok(Value::Int64(env.op.statement_ms.saturating_mul(1000)))
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
    ("current_time", "->timetz", |_, env, _| Ok(time_now(env).to_value())),
    ("current_time", "int4->timetz", |a, env, _| {
        let time = time_now(env);
        let us = datetime::rounded(time.us, int(&a[0]) as i32);
        Ok(TimeTz { us, ..time }.to_value())
    }),
    ("current_timestamp", "int4->timestamptz", |a, env, _| {
        Ok(Value::Int64(datetime::rounded(now_us(env), int(&a[0]) as i32)))
    }),
    ("localtimestamp", "int4->timestamp", |a, env, _| {
        Ok(Value::Int64(datetime::rounded(
            zone::local(now_us(env)),
            int(&a[0]) as i32,
        )))
    }),
    ("localtime", "int4->time", |a, env, _| {
        let us = zone::local(now_us(env)).rem_euclid(DAY_US);
        Ok(Value::Int64(datetime::rounded(us, int(&a[0]) as i32)))
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
        extract_of(str(&a[0]), of_date(&a[1]), Of::Date)
    }),
    ("extract", "text,timetz->numeric", |a, _, _| {
        extract_timetz(str(&a[0]), TimeTz::of(&a[1]))
    }),
    ("date_part", "text,time->float8", |a, _, _| {
        as_double(extract_time(str(&a[0]), int(&a[1])))
    }),
    ("date_part", "text,timetz->float8", |a, _, _| {
        as_double(extract_timetz(str(&a[0]), TimeTz::of(&a[1])))
    }),
    ("timezone", "interval,timestamptz->timestamp", |a, _, _| {
        let east = offset_of(&a[0])?;
        Ok(Value::Int64(int(&a[1]).saturating_add(east * 1_000_000)))
    }),
    ("timezone", "interval,timestamp->timestamptz", |a, _, _| {
        let east = offset_of(&a[0])?;
        Ok(Value::Int64(int(&a[1]).saturating_sub(east * 1_000_000)))
    }),
    ("timezone", "interval,timetz->timetz", |a, _, _| {
        Ok(TimeTz::of(&a[1]).at(offset_of(&a[0])?).to_value())
    }),
    ("timezone", "text,timetz->timetz", |a, env, _| {
        let east = Zone::named(str(&a[0]))?.offset(now_us(env));
        Ok(TimeTz::of(&a[1]).at(east).to_value())
    }),
    (
        "overlaps",
        "timestamp,timestamp,timestamp,timestamp->bool",
        |a, _, _| Ok(overlaps(a)),
    ),
    ("overlaps", "time,time,time,time->bool", |a, _, _| Ok(overlaps(a))),
    ("extract", "text,time->numeric", |a, _, _| {
        extract_time(str(&a[0]), int(&a[1]))
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
        as_double(extract(str(&a[0]), of_date(&a[1])))
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
        shown(clock_of(int(&a[0])), str(&a[1]))
    }),
    ("to_char", "timestamptz,text->text", |a, _, _| {
        shown(zoned_clock_of(int(&a[0])), str(&a[1]))
    }),
    ("to_char", "interval,text->text", |a, _, _| {
        shown(Some(Clock::of_interval(Interval::of(&a[0]))), str(&a[1]))
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
        |a, _, _| Ok(Value::Int64(zone_of(str(&a[6]))?.to_utc(make_timestamp(a)?))),
    ),
    ("make_time", "int4,int4,float8->time", |a, _, _| {
        clock(int(&a[0]), int(&a[1]), &a[2]).map(Value::Int64)
    }),
    (
        "make_interval",
        "int4,int4,int4,int4,int4,int4,float8->interval",
        |a, _, _| make_interval(a),
    ),
    ("make_interval", "->interval", |_, _, _| make_part(&[])),
    ("make_interval", "int4->interval", |a, _, _| make_part(a)),
    ("make_interval", "int4,int4->interval", |a, _, _| make_part(a)),
    ("make_interval", "int4,int4,int4->interval", |a, _, _| make_part(a)),
    ("make_interval", "int4,int4,int4,int4->interval", |a, _, _| make_part(a)),
    ("make_interval", "int4,int4,int4,int4,int4->interval", |a, _, _| {
        make_part(a)
    }),
    ("make_interval", "int4,int4,int4,int4,int4,int4->interval", |a, _, _| {
        make_part(a)
    }),
    ("to_date", "text,text->date", |a, _, _| {
        let read = formats::read(str(&a[0]), str(&a[1]))?;
        Ok(Value::Int32(read.local.div_euclid(DAY_US) as i32))
    }),
    ("to_timestamp", "text,text->timestamptz", |a, _, _| {
        let read = formats::read(str(&a[0]), str(&a[1]))?;
        Ok(Value::Int64(match read.east {
            Some(east) => read.local - east * 1_000_000,
            None => zone::instant(read.local),
        }))
    }),
    ("timeofday", "!->text", |_, env, _| {
        let us = now_us(env);
        let pattern = "Dy Mon DD HH24:MI:SS.US YYYY TZ";
        shown(zoned_clock_of(us), pattern)
    }),
    ("to_timestamp", "float8->timestamptz", |a, _, _| match a[0] {
        Value::Double(f64::INFINITY) => Ok(Value::Int64(datetime::INFINITY)),
        Value::Double(f64::NEG_INFINITY) => Ok(Value::Int64(datetime::NEGATIVE_INFINITY)),
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
        Interval::of(&a[0]).with_months_of_days().map(Interval::to_value)
    }),
    ("justify_hours", "interval->interval", |a, _, _| {
        Interval::of(&a[0]).with_days_of_hours().map(Interval::to_value)
    }),
    ("justify_interval", "interval->interval", |a, _, _| {
        Interval::of(&a[0]).justified().map(Interval::to_value)
    }),
    ("timestamp", "date,time->timestamp", |a, _, _| {
        date_and_time(&a[0], &a[1])
    }),
    ("timestamptz", "date,time->timestamptz", |a, _, _| {
        date_and_time(&a[0], &a[1]).map(|local| Value::Int64(zone::instant(int(&local))))
    }),
    ("timestamptz", "date,timetz->timestamptz", |a, _, _| {
        date_and_timetz(&a[0], &a[1])
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
    ("isfinite", "timestamptz->bool", |a, _, _| {
        Ok(Value::Bool(!matches!(
            int(&a[0]),
            datetime::INFINITY | datetime::NEGATIVE_INFINITY
        )))
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
        other => return no_unit(other, Of::Interval),
    })
}
