//! Signs of arithmetic, of text, dates and bits.

use super::Row;
use super::args::{decimal, double, int};
use crate::error::{error, fail};
use crate::types::Type;
use crate::types::interval::{DAY_US, Interval};
use crate::types::timetz::TimeTz;
use crate::types::{cast, compare, datetime, numeric, zone};
use nestor_model::{Result, Value};

fn zero<T>() -> Result<T> {
    fail("22012", "division by zero")
}

fn whole(ty: &Type, n: Option<i64>) -> Result<Value> {
    match n {
        Some(n) => cast::whole(n, ty),
        None => Err(error("22003", format!("{ty} out of range"))),
    }
}

fn finite(a: f64, b: f64, n: f64) -> Result<Value> {
    match n.is_infinite() && a.is_finite() && b.is_finite() {
        true => fail("22003", "value out of range: overflow"),
        false => Ok(Value::Double(n)),
    }
}

macro_rules! integers {
    ($ty:ident, $f:expr) => {
        |a, _, _| {
            let f: fn(i64, i64) -> Result<Option<i64>> = $f;
            whole(&Type::$ty, f(int(&a[0]), int(&a[1]))?)
        }
    };
}

macro_rules! floats {
    ($f:expr) => {
        |a, _, _| {
            let f: fn(f64, f64) -> Result<f64> = $f;
            let (x, y) = (double(&a[0]), double(&a[1]));
            finite(x, y, f(x, y)?)
        }
    };
}

macro_rules! decimals {
    ($f:expr) => {
        |a, _, _| $f(decimal(&a[0]), decimal(&a[1])).map(Value::Decimal128)
    };
}

fn divide(a: i64, b: i64) -> Result<Option<i64>> {
    if b == 0 { zero() } else { Ok(a.checked_div(b)) }
}

fn remainder(a: i64, b: i64) -> Result<Option<i64>> {
    if b == 0 { zero() } else { Ok(Some(a.wrapping_rem(b))) }
}

fn divide_floats(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        zero()
    } else {
        not_nothing(a / b, a == 0.0 || b.is_infinite())
    }
}

fn later(us: &Value, by: Interval) -> Result<Value> {
    datetime::plus(int(us), by).map(Value::Int64)
}

/// A product or quotient that is not nothing although it is too small. Errors: 22003.
fn not_nothing(n: f64, is_nothing: bool) -> Result<f64> {
    match n == 0.0 && !is_nothing {
        true => fail("22003", "value out of range: underflow"),
        false => Ok(n),
    }
}

fn multiply_floats(a: f64, b: f64) -> Result<f64> {
    not_nothing(a * b, a == 0.0 || b == 0.0)
}

/// A whole number as one of an integer type, shifted by so many bits as there are in the last bits of `by` that count.
fn shifted(ty: &Type, n: i64, by: i64, to_left: bool) -> Result<Value> {
    // Two bytes are shifted as four.
    let by = by as u32;
    let wide = match (ty, to_left) {
        (Type::Int8, true) => n.wrapping_shl(by),
        (Type::Int8, false) => n.wrapping_shr(by),
        (_, true) => i64::from((n as i32).wrapping_shl(by)),
        (_, false) => i64::from((n as i32).wrapping_shr(by)),
    };
    Ok(match ty {
        Type::Int2 => Value::Int32(i32::from(wide as i16)),
        Type::Int4 => Value::Int32(wide as i32),
        _ => Value::Int64(wide),
    })
}

/// An interval after an instant: days and months are those of the session's clocks. Errors: 22008.
pub(super) fn after(us: i64, by: Interval) -> Result<i64> {
    let clock = Interval { us: 0, ..by };
    let day = match clock.months == 0 && clock.days == 0 {
        true => us,
        false => zone::instant(datetime::plus(zone::local(us), clock)?),
    };
    datetime::plus(
        day,
        Interval {
            months: 0,
            days: 0,
            ..by
        },
    )
}

fn later_zoned(us: &Value, by: Interval) -> Result<Value> {
    after(int(us), by).map(Value::Int64)
}

fn days(days: &Value, by: i64) -> Result<Value> {
    if matches!(days, Value::Int32(i32::MAX | i32::MIN)) {
        return Ok(days.clone());
    }
    let sum = int(days).checked_add(by).filter(|n| datetime::is_day(*n));
    let sum = sum.and_then(|n| i32::try_from(n).ok());
    sum.map(Value::Int32).ok_or_else(|| datetime::out_of_range("date"))
}

pub(super) fn date_and_time(date: &Value, time: &Value) -> Result<Value> {
    let days = Interval {
        days: int(date) as i32,
        ..Interval::default()
    };
    later(time, days)
}

pub(super) fn date_and_timetz(date: &Value, time: &Value) -> Result<Value> {
    let time = TimeTz::of(time);
    date_and_time(date, &Value::Int64(time.us - time.east * 1_000_000))
}

fn date_plus(date: &Value, by: Interval) -> Result<Value> {
    datetime::plus(int(date).saturating_mul(DAY_US), by).map(Value::Int64)
}

pub(super) const ROWS: &[Row] = &[
    ("+", "int2,int2->int2", integers!(Int2, |a, b| Ok(a.checked_add(b)))),
    ("+", "int4,int4->int4", integers!(Int4, |a, b| Ok(a.checked_add(b)))),
    ("+", "int8,int8->int8", integers!(Int8, |a, b| Ok(a.checked_add(b)))),
    ("+", "numeric,numeric->numeric", decimals!(numeric::add)),
    (
        "+",
        "float4,float4->float4",
        floats!(|a, b| Ok(f64::from((a + b) as f32))),
    ),
    ("+", "float8,float8->float8", floats!(|a, b| Ok(a + b))),
    ("+", "float4,float8->float8", floats!(|a, b| Ok(a + b))),
    ("+", "float8,float4->float8", floats!(|a, b| Ok(a + b))),
    ("-", "int2,int2->int2", integers!(Int2, |a, b| Ok(a.checked_sub(b)))),
    ("-", "int4,int4->int4", integers!(Int4, |a, b| Ok(a.checked_sub(b)))),
    ("-", "int8,int8->int8", integers!(Int8, |a, b| Ok(a.checked_sub(b)))),
    ("-", "numeric,numeric->numeric", decimals!(numeric::sub)),
    (
        "-",
        "float4,float4->float4",
        floats!(|a, b| Ok(f64::from((a - b) as f32))),
    ),
    ("-", "float8,float8->float8", floats!(|a, b| Ok(a - b))),
    ("-", "float4,float8->float8", floats!(|a, b| Ok(a - b))),
    ("-", "float8,float4->float8", floats!(|a, b| Ok(a - b))),
    ("*", "int2,int2->int2", integers!(Int2, |a, b| Ok(a.checked_mul(b)))),
    ("*", "int4,int4->int4", integers!(Int4, |a, b| Ok(a.checked_mul(b)))),
    ("*", "int8,int8->int8", integers!(Int8, |a, b| Ok(a.checked_mul(b)))),
    ("*", "numeric,numeric->numeric", decimals!(numeric::mul)),
    (
        "*",
        "float4,float4->float4",
        floats!(|a, b| multiply_floats(a, b).and_then(|n| not_nothing(f64::from(n as f32), n == 0.0))),
    ),
    ("*", "float8,float8->float8", floats!(multiply_floats)),
    ("*", "float4,float8->float8", floats!(multiply_floats)),
    ("*", "float8,float4->float8", floats!(multiply_floats)),
    ("/", "int2,int2->int2", integers!(Int2, divide)),
    ("/", "int4,int4->int4", integers!(Int4, divide)),
    ("/", "int8,int8->int8", integers!(Int8, divide)),
    ("/", "numeric,numeric->numeric", decimals!(numeric::div)),
    (
        "/",
        "float4,float4->float4",
        floats!(|a, b| divide_floats(a, b).map(|n| f64::from(n as f32))),
    ),
    ("/", "float8,float8->float8", floats!(divide_floats)),
    ("/", "float4,float8->float8", floats!(divide_floats)),
    ("/", "float8,float4->float8", floats!(divide_floats)),
    ("%", "int2,int2->int2", integers!(Int2, remainder)),
    ("%", "int4,int4->int4", integers!(Int4, remainder)),
    ("%", "int8,int8->int8", integers!(Int8, remainder)),
    ("%", "numeric,numeric->numeric", decimals!(numeric::rem)),
    ("mod", "int4,int4->int4", integers!(Int4, remainder)),
    ("mod", "int8,int8->int8", integers!(Int8, remainder)),
    ("mod", "numeric,numeric->numeric", decimals!(numeric::rem)),
    ("-", "int2->int2", |a, _, _| {
        whole(&Type::Int2, int(&a[0]).checked_neg())
    }),
    ("-", "int4->int4", |a, _, _| {
        whole(&Type::Int4, int(&a[0]).checked_neg())
    }),
    ("-", "int8->int8", |a, _, _| {
        whole(&Type::Int8, int(&a[0]).checked_neg())
    }),
    ("-", "numeric->numeric", |a, _, _| {
        Ok(Value::Decimal128(decimal(&a[0]).negate()))
    }),
    ("-", "float4->float4", |a, _, _| Ok(Value::Double(-double(&a[0])))),
    ("-", "float8->float8", |a, _, _| Ok(Value::Double(-double(&a[0])))),
    ("-", "interval->interval", |a, _, _| {
        Interval::of(&a[0]).negate().map(Interval::to_value)
    }),
    ("+", "int4->int4", |a, _, _| Ok(a[0].clone())),
    ("+", "int8->int8", |a, _, _| Ok(a[0].clone())),
    ("+", "numeric->numeric", |a, _, _| Ok(a[0].clone())),
    ("+", "float8->float8", |a, _, _| Ok(a[0].clone())),
    ("+", "int2->int2", |a, _, _| Ok(a[0].clone())),
    ("+", "float4->float4", |a, _, _| Ok(a[0].clone())),
    ("&", "int2,int2->int2", integers!(Int2, |a, b| Ok(Some(a & b)))),
    ("|", "int2,int2->int2", integers!(Int2, |a, b| Ok(Some(a | b)))),
    ("#", "int2,int2->int2", integers!(Int2, |a, b| Ok(Some(a ^ b)))),
    ("~", "int2->int2", |a, _, _| Ok(Value::Int32(!(int(&a[0]) as i32)))),
    ("<<", "int2,int4->int2", |a, _, _| {
        shifted(&Type::Int2, int(&a[0]), int(&a[1]), true)
    }),
    (">>", "int2,int4->int2", |a, _, _| {
        shifted(&Type::Int2, int(&a[0]), int(&a[1]), false)
    }),
    ("&", "int4,int4->int4", integers!(Int4, |a, b| Ok(Some(a & b)))),
    ("&", "int8,int8->int8", integers!(Int8, |a, b| Ok(Some(a & b)))),
    ("|", "int4,int4->int4", integers!(Int4, |a, b| Ok(Some(a | b)))),
    ("|", "int8,int8->int8", integers!(Int8, |a, b| Ok(Some(a | b)))),
    ("#", "int4,int4->int4", integers!(Int4, |a, b| Ok(Some(a ^ b)))),
    ("#", "int8,int8->int8", integers!(Int8, |a, b| Ok(Some(a ^ b)))),
    ("<<", "int4,int4->int4", |a, _, _| {
        shifted(&Type::Int4, int(&a[0]), int(&a[1]), true)
    }),
    ("<<", "int8,int4->int8", |a, _, _| {
        shifted(&Type::Int8, int(&a[0]), int(&a[1]), true)
    }),
    (">>", "int4,int4->int4", |a, _, _| {
        shifted(&Type::Int4, int(&a[0]), int(&a[1]), false)
    }),
    (">>", "int8,int4->int8", |a, _, _| {
        shifted(&Type::Int8, int(&a[0]), int(&a[1]), false)
    }),
    ("~", "int4->int4", |a, _, _| Ok(Value::Int32(!(int(&a[0]) as i32)))),
    ("~", "int8->int8", |a, _, _| Ok(Value::Int64(!int(&a[0])))),
    // Dates and times.
    ("+", "date,int4->date", |a, _, _| days(&a[0], int(&a[1]))),
    ("+", "int4,date->date", |a, _, _| days(&a[1], int(&a[0]))),
    ("-", "date,int4->date", |a, _, _| days(&a[0], -int(&a[1]))),
    ("-", "date,date->int4", |a, _, _| {
        if a.iter().any(|day| matches!(day, Value::Int32(i32::MAX | i32::MIN))) {
            return fail("22008", "cannot subtract infinite dates");
        }
        whole(&Type::Int4, int(&a[0]).checked_sub(int(&a[1])))
    }),
    ("+", "date,interval->timestamp", |a, _, _| {
        date_plus(&a[0], Interval::of(&a[1]))
    }),
    ("+", "interval,date->timestamp", |a, _, _| {
        date_plus(&a[1], Interval::of(&a[0]))
    }),
    ("-", "date,interval->timestamp", |a, _, _| {
        date_plus(&a[0], Interval::of(&a[1]).negate()?)
    }),
    ("+", "date,time->timestamp", |a, _, _| date_and_time(&a[0], &a[1])),
    ("+", "timestamp,interval->timestamp", |a, _, _| {
        later(&a[0], Interval::of(&a[1]))
    }),
    ("+", "timestamptz,interval->timestamptz", |a, _, _| {
        later_zoned(&a[0], Interval::of(&a[1]))
    }),
    ("+", "interval,timestamp->timestamp", |a, _, _| {
        later(&a[1], Interval::of(&a[0]))
    }),
    ("+", "interval,timestamptz->timestamptz", |a, _, _| {
        later_zoned(&a[1], Interval::of(&a[0]))
    }),
    ("-", "timestamp,interval->timestamp", |a, _, _| {
        later(&a[0], Interval::of(&a[1]).negate()?)
    }),
    ("-", "timestamptz,interval->timestamptz", |a, _, _| {
        later_zoned(&a[0], Interval::of(&a[1]).negate()?)
    }),
    ("-", "timestamp,timestamp->interval", |a, _, _| {
        datetime::minus(int(&a[0]), int(&a[1])).map(Interval::to_value)
    }),
    ("-", "timestamptz,timestamptz->interval", |a, _, _| {
        datetime::minus(int(&a[0]), int(&a[1])).map(Interval::to_value)
    }),
    ("+", "interval,interval->interval", |a, _, _| {
        Interval::of(&a[0]).plus(Interval::of(&a[1])).map(Interval::to_value)
    }),
    ("-", "interval,interval->interval", |a, _, _| {
        Interval::of(&a[0])
            .plus(Interval::of(&a[1]).negate()?)
            .map(Interval::to_value)
    }),
    ("*", "interval,float8->interval", |a, _, _| {
        Interval::of(&a[0]).times(double(&a[1])).map(Interval::to_value)
    }),
    ("*", "float8,interval->interval", |a, _, _| {
        Interval::of(&a[1]).times(double(&a[0])).map(Interval::to_value)
    }),
    ("/", "interval,float8->interval", |a, _, _| match double(&a[1]) {
        0.0 => zero(),
        by => Interval::of(&a[0]).divided(by).map(Interval::to_value),
    }),
    ("+", "interval,time->time", |a, _, _| {
        Ok(Value::Int64(
            (int(&a[1]) + Interval::of(&a[0]).us % DAY_US).rem_euclid(DAY_US),
        ))
    }),
    ("+", "timetz,interval->timetz", |a, _, _| {
        Ok(TimeTz::of(&a[0]).plus(Interval::of(&a[1])).to_value())
    }),
    ("+", "interval,timetz->timetz", |a, _, _| {
        Ok(TimeTz::of(&a[1]).plus(Interval::of(&a[0])).to_value())
    }),
    ("-", "timetz,interval->timetz", |a, _, _| {
        Ok(TimeTz::of(&a[0]).plus(Interval::of(&a[1]).negate()?).to_value())
    }),
    ("+", "time,date->timestamp", |a, _, _| date_and_time(&a[1], &a[0])),
    ("+", "date,timetz->timestamptz", |a, _, _| date_and_timetz(&a[0], &a[1])),
    ("+", "timetz,date->timestamptz", |a, _, _| date_and_timetz(&a[1], &a[0])),
    ("+", "time,interval->time", |a, _, _| {
        Ok(Value::Int64(
            (int(&a[0]) + Interval::of(&a[1]).us % DAY_US).rem_euclid(DAY_US),
        ))
    }),
    ("-", "time,interval->time", |a, _, _| {
        Ok(Value::Int64(
            (int(&a[0]) - Interval::of(&a[1]).us % DAY_US).rem_euclid(DAY_US),
        ))
    }),
    ("-", "time,time->interval", |a, _, _| {
        Ok(Interval {
            us: int(&a[0]) - int(&a[1]),
            ..Interval::default()
        }
        .to_value())
    }),
    // NULLIF whose first argument is computed once. No statement can name it.
    ("null if equal", "?anyelement,anyelement->anyelement", |a, _, args| {
        let is_null = |value: &Value| matches!(value, Value::Null);
        let equal = !is_null(&a[0]) && !is_null(&a[1]) && compare::compare(&args[0].ty(), &a[0], &a[1]).is_eq();
        Ok(if equal { Value::Null } else { a[0].clone() })
    }),
];
