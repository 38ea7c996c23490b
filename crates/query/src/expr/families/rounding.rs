//! `$ceil`, `$floor`, `$round`, `$trunc`.
//!
//! `$round` rounds half to even. With a place, a double is rounded as the exact decimal number it is, so
//! `{$trunc: [0.29, 2]}` is 0.28 (the double is a little below 0.29).

use super::arithmetic::{IntoVal, map_float, number};
use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::decimal::DecimalParts;
use nestor_model::number::Num;
use nestor_model::{Decimal128, Result};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$ceil", 1, ceil),
    OpDef::fixed("$floor", 1, floor),
    OpDef::range("$round", 1, 2, round),
    OpDef::range("$trunc", 1, 2, trunc),
];

fn ceil<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    whole(args, env, "$ceil", f64::ceil, |v| to_units(v.ceil()))
}

fn floor<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    whole(args, env, "$floor", f64::floor, |v| to_units(v.floor()))
}

/// A whole decimal written out to its units, as MongoDB does it: NaN for infinities and for what has more than 34 digits.
fn to_units(v: Decimal128) -> Decimal128 {
    v.quantize(Decimal128::from_i64(1))
}

fn whole<'a>(
    args: &'a [Expr],
    env: &mut Env<'a>,
    op: &str,
    double: fn(f64) -> f64,
    decimal: fn(Decimal128) -> Decimal128,
) -> Result<Val<'a>> {
    Ok(match number(&args[0], env, op)? {
        None => Val::NULL,
        Some(n @ (Num::Int32(_) | Num::Int64(_))) => n.into_val(),
        Some(n) => map_float(n, double, decimal),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    HalfEven,
    Truncate,
}

fn round<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    to_place(args, env, "$round", Mode::HalfEven)
}

fn trunc<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    to_place(args, env, "$trunc", Mode::Truncate)
}

fn to_place<'a>(args: &'a [Expr], env: &mut Env<'a>, op: &str, mode: Mode) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    if value.is_nullish() {
        return Ok(Val::NULL);
    }
    let place = match args.get(1) {
        None => 0,
        Some(place) => {
            let place = place.eval_ref(env)?;
            if place.is_nullish() {
                return Ok(Val::NULL);
            }
            let Some(n) = Num::from_ref(place.as_ref()) else {
                return Err(error(
                    16004,
                    format!(
                        "{op}: the place must be a number, not {}",
                        place.as_ref().bson_type().alias()
                    ),
                ));
            };
            if matches!(n, Num::Double(v) if !v.is_finite()) {
                return Err(error(
                    31109,
                    format!("{op}: the place is out of the range of a long: {place:?}"),
                ));
            }
            let Some(n) = n.to_i64_exact() else {
                return Err(error(51082, format!("{op}: the place must be a whole number")));
            };
            if !(-20..=100).contains(&n) {
                return Err(error(
                    51083,
                    format!("cannot apply {op} with place {n}: it must be from -20 to 100"),
                ));
            }
            n as i32
        }
    };
    let Some(n) = Num::from_ref(value.as_ref()) else {
        return Err(error(
            51081,
            format!(
                "{op} only supports numeric types, not {}",
                value.as_ref().bson_type().alias()
            ),
        ));
    };
    Ok(match n {
        Num::Int32(v) => whole_to_place(i64::from(v), place, mode, true)?.into_val(),
        Num::Int64(v) => whole_to_place(v, place, mode, false)?.into_val(),
        Num::Double(v) if !v.is_finite() => v.into(),
        Num::Double(v) if place == 0 => match mode {
            Mode::HalfEven => v.round_ties_even().into(),
            Mode::Truncate => v.trunc().into(),
        },
        Num::Double(v) => decimal_to_place(Decimal128::from_f64_exact(v), place, mode)
            .to_f64()
            .into(),
        Num::Decimal(v) => decimal_to_place(v, place, mode).into(),
    })
}

fn whole_to_place(v: i64, place: i32, mode: Mode, narrow: bool) -> Result<Num> {
    if place >= 0 {
        return Ok(Num::from_i64(v, narrow));
    }
    let rounded = round_digits(i128::from(v), place.unsigned_abs(), mode);
    match i64::try_from(rounded) {
        Ok(v) => Ok(Num::from_i64(v, narrow)),
        Err(_) => Err(error(51080, "the rounded number does not fit a long")),
    }
}

/// `v` with its last `digits` decimal digits made zero.
fn round_digits(v: i128, digits: u32, mode: Mode) -> i128 {
    let Some(unit) = 10i128.checked_pow(digits) else {
        return 0;
    };
    let low = v - v % unit;
    let rest = (v % unit).abs();
    let up = mode == Mode::HalfEven && (rest * 2 > unit || (rest * 2 == unit && (low / unit) % 2 != 0));
    if up { low + unit * v.signum() } else { low }
}

/// A decimal with `place` digits after the point; as it is when that takes more than 34 digits.
fn decimal_to_place(v: Decimal128, place: i32, mode: Mode) -> Decimal128 {
    let Some(parts) = v.parts() else {
        return v;
    };
    let exponent = -place;
    if mode == Mode::HalfEven || parts.exponent >= exponent {
        let quantum = DecimalParts {
            negative: false,
            coefficient: 1,
            exponent,
        };
        let rounded = Decimal128::from_parts(quantum).map_or(v, |q| v.quantize(q));
        return if rounded.is_nan() { v } else { rounded };
    }
    let dropped = (exponent - parts.exponent).unsigned_abs();
    let coefficient = 10u128.checked_pow(dropped).map_or(0, |unit| parts.coefficient / unit);
    Decimal128::from_parts(DecimalParts {
        negative: parts.negative,
        coefficient,
        exponent,
    })
    .unwrap_or(v)
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn places() {
        check(
            r#"{"l": {"$numberLong": "9223372036854775807"}, "m": {"$numberDecimal": "23.298"}}"#,
            &[
                (r#"{"$round": 2.5}"#, "2.0"),
                (r#"{"$round": [19.25, 1]}"#, "19.2"),
                (r#"{"$round": [15, -1]}"#, "20"),
                (r#"{"$round": [-25, -1]}"#, "-20"),
                (r#"{"$round": [2147483647, -1]}"#, "Long(2147483650)"),
                (r#"{"$round": ["$l", -1]}"#, "error 51080"),
                (r#"{"$trunc": ["$l", -1]}"#, "Long(9223372036854775800)"),
                (r#"{"$trunc": [0.29, 2]}"#, "0.28"),
                (r#"{"$trunc": ["$m", -1]}"#, "Decimal(2E+1)"),
                (r#"{"$round": ["$m", 1]}"#, "Decimal(23.3)"),
                (r#"{"$trunc": [-1234.5, -20]}"#, "-0.0"),
                (r#"{"$round": [1, 1.5]}"#, "error 51082"),
                (r#"{"$round": [1, 101]}"#, "error 51083"),
                (r#"{"$round": [1, "x"]}"#, "error 16004"),
                (r#"{"$round": "x"}"#, "error 51081"),
                (r#"{"$ceil": 1.2}"#, "2.0"),
                (r#"{"$floor": -1}"#, "-1"),
            ],
        );
    }
}
