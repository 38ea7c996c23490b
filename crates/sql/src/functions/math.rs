//! Numbers.

use super::Row;
use super::args::{decimal, double, int};
use super::powers::{self, checked, domain, power_of_floats as power};
use crate::error::{error, fail};
use crate::types::{Type, cast, compare, numeric};
use nestor_model::{Decimal128, Result, Value};

macro_rules! real {
    ($f:expr) => {
        |a, _, _| {
            let f: fn(f64) -> f64 = $f;
            checked(double(&a[0]), f(double(&a[0])))
        }
    };
}

fn digits(value: &Value) -> i32 {
    int(value).clamp(-1000, 1000) as i32
}

fn ln(n: f64) -> Result<Value> {
    domain(n != 0.0, "2201E", "cannot take logarithm of zero")?;
    domain(
        n >= 0.0 || n.is_nan(),
        "2201E",
        "cannot take logarithm of a negative number",
    )?;
    Ok(Value::Double(n.ln()))
}

fn gcd(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn width_bucket(n: f64, low: f64, high: f64, count: i64) -> Result<Value> {
    domain(count > 0, "2201G", "count must be greater than zero")?;
    domain(
        !n.is_nan() && !low.is_nan() && !high.is_nan(),
        "2201G",
        "operand, lower bound, and upper bound cannot be NaN",
    )?;
    domain(
        low.is_finite() && high.is_finite(),
        "2201G",
        "lower and upper bounds must be finite",
    )?;
    domain(low != high, "2201G", "lower bound cannot equal upper bound")?;
    let place = ((n - low) / (high - low) * count as f64).floor();
    let bucket = if place < 0.0 {
        0
    } else if place >= count as f64 {
        count + 1
    } else {
        place as i64 + 1
    };
    cast::whole(bucket, &Type::Int4)
}

/// The sine of an angle in degrees. It is measured against that of 30 degrees up to there, and against the cosine of 60 beyond, so that it
/// is exact at both.
fn sind(degrees: f64) -> f64 {
    let turned = degrees % 360.0;
    let (turned, sign) = if turned < 0.0 { (-turned, -1.0) } else { (turned, 1.0) };
    let (turned, sign) = if turned > 180.0 {
        (360.0 - turned, -sign)
    } else {
        (turned, sign)
    };
    let angle = if turned > 90.0 { 180.0 - turned } else { turned };
    sign * if angle <= 30.0 {
        small_sine(angle)
    } else {
        large_cosine(90.0 - angle)
    }
}

fn cosd(degrees: f64) -> f64 {
    let turned = (degrees % 360.0).abs();
    let turned = if turned > 180.0 { 360.0 - turned } else { turned };
    let (angle, sign) = if turned > 90.0 {
        (180.0 - turned, -1.0)
    } else {
        (turned, 1.0)
    };
    sign * if angle <= 60.0 {
        large_cosine(angle)
    } else {
        small_sine(90.0 - angle)
    }
}

/// Of an angle up to 30 degrees.
fn small_sine(degrees: f64) -> f64 {
    (degrees * RADIAN).sin() / (30.0 * RADIAN).sin() / 2.0
}

/// Of an angle up to 60 degrees.
fn large_cosine(degrees: f64) -> f64 {
    1.0 - (1.0 - (degrees * RADIAN).cos()) / (1.0 - (60.0 * RADIAN).cos()) / 2.0
}

/// A degree.
const RADIAN: f64 = 0.017_453_292_519_943_295;

/// The angle with a sine, which is not negative, in degrees; with `cosine` that with a cosine.
fn angle_of(n: f64, cosine: bool) -> f64 {
    let from_sine = |n: f64| n.asin() / 0.5f64.asin() * 30.0;
    let from_cosine = |n: f64| n.acos() / 0.5f64.acos() * 60.0;
    match (n <= 0.5, cosine) {
        (true, false) => from_sine(n),
        (true, true) => 90.0 - from_sine(n),
        (false, true) => from_cosine(n),
        (false, false) => 90.0 - from_cosine(n),
    }
}

/// Errors: 22003 for numbers that are no sine. What is not a number is none of those.
fn within_one(value: &Value) -> Result<()> {
    let n = double(value);
    domain(n.abs() <= 1.0 || n.is_nan(), "22003", "input is out of range")
}

/// A function of an angle in degrees as a quotient. Errors: 22003 for an angle without an end.
fn in_degrees(angle: f64, of: fn(f64) -> (f64, f64)) -> Result<Value> {
    domain(!angle.is_infinite(), "22003", "input is out of range")?;
    let (above, below) = of(angle);
    let out = above / below;
    Ok(Value::Double(if out == 0.0 { 0.0 } else { out }))
}

/// The angle of an arc tangent in degrees, measured against that of 45.
fn to_degrees(radians: f64) -> f64 {
    radians / 1.0f64.atan() * 45.0
}

/// Without zeros at the end of the digits behind the point. Errors: 22003.
fn least_scale(value: Decimal128) -> Result<Decimal128> {
    let written = numeric::format(value);
    match written.contains('.') {
        true => numeric::parse(written.trim_end_matches('0').trim_end_matches('.')),
        false => Ok(value),
    }
}

pub(super) const ROWS: &[Row] = &[
    ("abs", "int2->int2", |a, _, _| {
        cast::whole(int(&a[0]).abs(), &Type::Int2)
    }),
    ("@", "int2->int2", |a, _, _| cast::whole(int(&a[0]).abs(), &Type::Int2)),
    ("@", "int4->int4", |a, _, _| cast::whole(int(&a[0]).abs(), &Type::Int4)),
    ("@", "int8->int8", |a, _, _| match int(&a[0]).checked_abs() {
        Some(n) => Ok(Value::Int64(n)),
        None => fail("22003", "bigint out of range"),
    }),
    ("abs", "int4->int4", |a, _, _| {
        cast::whole(int(&a[0]).abs(), &Type::Int4)
    }),
    ("abs", "int8->int8", |a, _, _| {
        int(&a[0])
            .checked_abs()
            .map(Value::Int64)
            .ok_or_else(|| error("22003", "bigint out of range"))
    }),
    ("abs", "numeric->numeric", |a, _, _| {
        Ok(Value::Decimal128(decimal(&a[0]).abs()))
    }),
    ("abs", "float4->float4", real!(f64::abs)),
    ("abs", "float8->float8", real!(f64::abs)),
    ("@", "numeric->numeric", |a, _, _| {
        Ok(Value::Decimal128(decimal(&a[0]).abs()))
    }),
    ("@", "float4->float4", real!(f64::abs)),
    ("@", "float8->float8", real!(f64::abs)),
    ("sign", "numeric->numeric", |a, _, _| {
        let n = decimal(&a[0]);
        let sign = if n.is_zero() {
            0
        } else if n.is_negative() {
            -1
        } else {
            1
        };
        Ok(Value::Decimal128(Decimal128::from_i32(sign)))
    }),
    (
        "sign",
        "float8->float8",
        real!(|n| if n == 0.0 || n.is_nan() { 0.0 } else { n.signum() }),
    ),
    ("ceil", "numeric->numeric", |a, _, _| ceil(decimal(&a[0]))),
    ("ceil", "float8->float8", real!(f64::ceil)),
    ("ceiling", "numeric->numeric", |a, _, _| ceil(decimal(&a[0]))),
    ("ceiling", "float8->float8", real!(f64::ceil)),
    ("floor", "numeric->numeric", |a, _, _| floor(decimal(&a[0]))),
    ("floor", "float8->float8", real!(f64::floor)),
    ("round", "numeric->numeric", |a, _, _| {
        numeric::round(decimal(&a[0]), 0).map(Value::Decimal128)
    }),
    ("round", "float8->float8", real!(f64::round_ties_even)),
    ("round", "numeric,int4->numeric", |a, _, _| {
        numeric::round(decimal(&a[0]), digits(&a[1])).map(Value::Decimal128)
    }),
    ("trunc", "numeric->numeric", |a, _, _| {
        numeric::trunc(decimal(&a[0]), 0).map(Value::Decimal128)
    }),
    ("trunc", "float8->float8", real!(f64::trunc)),
    ("trunc", "numeric,int4->numeric", |a, _, _| {
        numeric::trunc(decimal(&a[0]), digits(&a[1])).map(Value::Decimal128)
    }),
    ("sqrt", "float8->float8", |a, _, _| {
        domain(
            double(&a[0]) >= 0.0 || double(&a[0]).is_nan(),
            "2201F",
            "cannot take square root of a negative number",
        )?;
        Ok(Value::Double(double(&a[0]).sqrt()))
    }),
    ("sqrt", "numeric->numeric", |a, _, _| {
        domain(
            !decimal(&a[0]).is_negative(),
            "2201F",
            "cannot take square root of a negative number",
        )?;
        let n = decimal(&a[0]);
        numeric::sqrt(n, numeric::root_scale(n)).map(Value::Decimal128)
    }),
    ("cbrt", "float8->float8", real!(f64::cbrt)),
    ("exp", "float8->float8", |a, _, _| {
        let n = double(&a[0]);
        domain(
            n.exp() != 0.0 || n.is_infinite(),
            "22003",
            "value out of range: underflow",
        )?;
        checked(n, n.exp())
    }),
    ("exp", "numeric->numeric", |a, _, _| powers::exp(a)),
    ("ln", "float8->float8", |a, _, _| ln(double(&a[0]))),
    ("ln", "numeric->numeric", |a, _, _| powers::ln(a)),
    ("log", "float8->float8", |a, _, _| {
        ln(double(&a[0])).map(|_| Value::Double(double(&a[0]).log10()))
    }),
    ("log10", "numeric->numeric", |a, _, _| powers::log10(a)),
    ("log10", "float8->float8", |a, _, _| {
        ln(double(&a[0])).map(|_| Value::Double(double(&a[0]).log10()))
    }),
    ("log", "numeric->numeric", |a, _, _| powers::log10(a)),
    ("log", "numeric,numeric->numeric", |a, _, _| powers::log(a)),
    ("power", "float8,float8->float8", |a, _, _| {
        power(double(&a[0]), double(&a[1]))
    }),
    ("power", "numeric,numeric->numeric", |a, _, _| powers::power(a)),
    ("pow", "float8,float8->float8", |a, _, _| {
        power(double(&a[0]), double(&a[1]))
    }),
    ("pow", "numeric,numeric->numeric", |a, _, _| powers::power(a)),
    ("^", "float8,float8->float8", |a, _, _| {
        power(double(&a[0]), double(&a[1]))
    }),
    ("^", "numeric,numeric->numeric", |a, _, _| powers::power(a)),
    ("div", "numeric,numeric->numeric", |a, _, _| {
        let (a, b) = (decimal(&a[0]), decimal(&a[1]));
        // What is left is taken off before: a quotient may round up to the next whole number.
        let whole = match a.is_finite() && b.is_finite() && !b.is_zero() {
            true => numeric::sub(a, numeric::rem(a, b)?)?,
            false => a,
        };
        numeric::trunc(numeric::div(whole, b)?, 0).map(Value::Decimal128)
    }),
    ("pi", "->float8", |_, _, _| Ok(Value::Double(std::f64::consts::PI))),
    ("degrees", "float8->float8", real!(f64::to_degrees)),
    ("radians", "float8->float8", real!(f64::to_radians)),
    ("sin", "float8->float8", real!(f64::sin)),
    ("cos", "float8->float8", real!(f64::cos)),
    ("tan", "float8->float8", real!(f64::tan)),
    ("cot", "float8->float8", real!(|n| 1.0 / n.tan())),
    ("asin", "float8->float8", |a, _, _| {
        within_one(&a[0])?;
        Ok(Value::Double(double(&a[0]).asin()))
    }),
    ("acos", "float8->float8", |a, _, _| {
        within_one(&a[0])?;
        Ok(Value::Double(double(&a[0]).acos()))
    }),
    ("atan", "float8->float8", real!(f64::atan)),
    ("atan2", "float8,float8->float8", |a, _, _| {
        Ok(Value::Double(double(&a[0]).atan2(double(&a[1]))))
    }),
    ("sinh", "float8->float8", real!(f64::sinh)),
    ("cosh", "float8->float8", real!(f64::cosh)),
    ("tanh", "float8->float8", real!(f64::tanh)),
    ("gcd", "int4,int4->int4", |a, _, _| {
        let gcd = i64::try_from(gcd(int(&a[0]), int(&a[1])));
        cast::whole(gcd.unwrap_or(i64::MAX), &Type::Int4)
    }),
    ("lcm", "int4,int4->int4", |a, _, _| {
        let (x, y) = (int(&a[0]), int(&a[1]));
        let gcd = i64::try_from(gcd(x, y).max(1)).unwrap_or(1);
        cast::whole((x / gcd).saturating_mul(y).saturating_abs(), &Type::Int4)
    }),
    ("gcd", "int8,int8->int8", |a, _, _| {
        i64::try_from(gcd(int(&a[0]), int(&a[1])))
            .map(Value::Int64)
            .map_err(|_| error("22003", "bigint out of range"))
    }),
    ("lcm", "int8,int8->int8", |a, _, _| {
        let (x, y) = (int(&a[0]), int(&a[1]));
        let gcd = i128::from(gcd(x, y).max(1));
        let lcm = (i128::from(x) / gcd * i128::from(y)).abs();
        i64::try_from(lcm)
            .map(Value::Int64)
            .map_err(|_| error("22003", "bigint out of range"))
    }),
    ("gcd", "numeric,numeric->numeric", |a, _, _| {
        numeric_gcd(decimal(&a[0]), decimal(&a[1])).map(Value::Decimal128)
    }),
    ("lcm", "numeric,numeric->numeric", |a, _, _| {
        let (x, y) = (decimal(&a[0]), decimal(&a[1]));
        let scale = numeric::scale(x).max(numeric::scale(y));
        if x.is_zero() || y.is_zero() {
            return numeric::round(Decimal128::ZERO, scale).map(Value::Decimal128);
        }
        let gcd = numeric_gcd(x, y)?;
        let lcm = numeric::mul(numeric::trunc(numeric::div(x, gcd)?, 0)?, y)?;
        numeric::round(lcm.abs(), scale).map(Value::Decimal128)
    }),
    ("asinh", "float8->float8", real!(f64::asinh)),
    ("acosh", "float8->float8", |a, _, _| {
        domain(
            double(&a[0]) >= 1.0 || double(&a[0]).is_nan(),
            "22003",
            "input is out of range",
        )?;
        Ok(Value::Double(double(&a[0]).acosh()))
    }),
    ("atanh", "float8->float8", |a, _, _| {
        domain(
            double(&a[0]).abs() <= 1.0 || double(&a[0]).is_nan(),
            "22003",
            "input is out of range",
        )?;
        Ok(Value::Double(double(&a[0]).atanh()))
    }),
    ("sind", "float8->float8", |a, _, _| {
        in_degrees(double(&a[0]), |n| (sind(n), 1.0))
    }),
    ("cosd", "float8->float8", |a, _, _| {
        in_degrees(double(&a[0]), |n| (cosd(n), 1.0))
    }),
    ("tand", "float8->float8", |a, _, _| {
        in_degrees(double(&a[0]), |n| (sind(n) / cosd(n), sind(45.0) / cosd(45.0)))
    }),
    ("cotd", "float8->float8", |a, _, _| {
        in_degrees(double(&a[0]), |n| (cosd(n) / sind(n), cosd(45.0) / sind(45.0)))
    }),
    ("asind", "float8->float8", |a, _, _| {
        within_one(&a[0])?;
        let n = double(&a[0]);
        Ok(Value::Double(
            angle_of(n.abs(), false) * if n < 0.0 { -1.0 } else { 1.0 },
        ))
    }),
    ("acosd", "float8->float8", |a, _, _| {
        within_one(&a[0])?;
        let n = double(&a[0]);
        Ok(Value::Double(match n < 0.0 {
            true => 90.0 + angle_of(-n, false),
            false => angle_of(n, true),
        }))
    }),
    ("atand", "float8->float8", real!(|n| to_degrees(n.atan()))),
    ("atan2d", "float8,float8->float8", |a, _, _| {
        Ok(Value::Double(to_degrees(double(&a[0]).atan2(double(&a[1])))))
    }),
    ("min_scale", "numeric->int4", |a, _, _| {
        if !decimal(&a[0]).is_finite() {
            return Ok(Value::Null);
        }
        Ok(Value::Int32(numeric::scale(least_scale(decimal(&a[0]))?)))
    }),
    ("trim_scale", "numeric->numeric", |a, _, _| {
        least_scale(decimal(&a[0])).map(Value::Decimal128)
    }),
    ("factorial", "int8->numeric", |a, _, _| {
        domain(int(&a[0]) >= 0, "22003", "factorial of a negative number is undefined")?;
        domain(int(&a[0]) <= 34, "22003", "value overflows numeric format")?;
        let product: u128 = (1..=int(&a[0]).unsigned_abs()).map(u128::from).product();
        numeric::parse(&product.to_string()).map(Value::Decimal128)
    }),
    ("scale", "numeric->int4", |a, _, _| {
        let n = decimal(&a[0]);
        Ok(if n.is_finite() {
            Value::Int32(numeric::scale(n))
        } else {
            Value::Null
        })
    }),
    ("width_bucket", "float8,float8,float8,int4->int4", |a, _, _| {
        width_bucket(double(&a[0]), double(&a[1]), double(&a[2]), int(&a[3]))
    }),
    ("width_bucket", "anyelement,anyarray->int4", |a, _, args| {
        let Value::Array(bounds) = &a[1] else {
            return Ok(Value::Null);
        };
        let ty = args[0].ty();
        if bounds.iter().any(|bound| bound.to_value().is_nullish()) {
            return fail("22004", "thresholds array must not contain NULLs");
        }
        if bounds
            .iter()
            .any(|bound| matches!(bound, nestor_model::ValueRef::Array(_)))
        {
            return fail("2202E", "thresholds must be one-dimensional array");
        }
        let below = bounds
            .iter()
            .take_while(|bound| compare::compare(&ty, &bound.to_value(), &a[0]).is_le());
        cast::whole(below.count() as i64, &Type::Int4)
    }),
    ("random", "!->float8", |_, env, _| {
        Ok(Value::Double(env.op.random_f64()))
    }),
    ("isnan", "float8->bool", |a, _, _| {
        Ok(Value::Bool(double(&a[0]).is_nan()))
    }),
];

fn ceil(n: Decimal128) -> Result<Value> {
    let cut = numeric::trunc(n, 0)?;
    let is_less = nestor_model::compare(&Value::Decimal128(cut), &Value::Decimal128(n)).is_lt();
    if is_less {
        numeric::add(cut, Decimal128::ONE).map(Value::Decimal128)
    } else {
        Ok(Value::Decimal128(cut))
    }
}

fn floor(n: Decimal128) -> Result<Value> {
    let cut = numeric::trunc(n, 0)?;
    let is_more = nestor_model::compare(&Value::Decimal128(cut), &Value::Decimal128(n)).is_gt();
    if is_more {
        numeric::sub(cut, Decimal128::ONE).map(Value::Decimal128)
    } else {
        Ok(Value::Decimal128(cut))
    }
}

/// The greatest number of which both are multiples. Errors: 22003.
fn numeric_gcd(a: Decimal128, b: Decimal128) -> Result<Decimal128> {
    let scale = numeric::scale(a).max(numeric::scale(b));
    if !a.is_finite() || !b.is_finite() {
        return numeric::parse("NaN");
    }
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        (a, b) = (b, numeric::rem(a, b)?);
    }
    numeric::round(a, scale)
}
