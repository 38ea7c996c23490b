//! `$pow`, `$sqrt`, `$exp`, `$ln`, `$log`, `$log10`, `$sigmoid`.

use super::arithmetic::{IntoVal, map_float, number};
use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::decimal::DecimalParts;
use nestor_model::number::Num;
use nestor_model::{Decimal128, Error, Result, ValueRef};
use std::cmp::Ordering;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$pow", 2, pow),
    OpDef::fixed("$sqrt", 1, sqrt),
    OpDef::fixed("$exp", 1, exp),
    OpDef::fixed("$ln", 1, ln),
    OpDef::fixed("$log", 2, log),
    OpDef::fixed("$log10", 1, log10),
    OpDef::custom("$sigmoid", parse_sigmoid),
];

/// Below zero, NaN excluded.
fn is_below_zero(n: Num) -> bool {
    !n.is_nan() && nestor_model::compare(n, 0) == Ordering::Less
}

fn pow<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let base = args[0].eval_ref(env)?;
    let exponent = args[1].eval_ref(env)?;
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Val::NULL);
    }
    let (base, exponent) = (base.as_ref(), exponent.as_ref());
    let base = Num::from_ref(base).ok_or_else(|| {
        error(
            28762,
            format!("$pow's base must be numeric, not {}", base.bson_type().alias()),
        )
    })?;
    let exponent = Num::from_ref(exponent).ok_or_else(|| {
        error(
            28763,
            format!("$pow's exponent must be numeric, not {}", exponent.bson_type().alias()),
        )
    })?;
    if base.is_zero() && is_below_zero(exponent) {
        return Err(error(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    Ok(match (base, exponent) {
        (Num::Decimal(_), _) | (_, Num::Decimal(_)) => decimal_pow(base.to_decimal(), exponent.to_decimal()).into(),
        (Num::Double(_), _) | (_, Num::Double(_)) => base.to_f64().powf(exponent.to_f64()).into(),
        _ => {
            let narrow = matches!((base, exponent), (Num::Int32(_), Num::Int32(_)));
            // Neither is a double or decimal, so both are whole.
            let whole = |n: Num| n.to_i64_exact().unwrap_or(0);
            match whole_pow(whole(base), whole(exponent)) {
                Some(v) => Num::from_i64(v, narrow).into_val(),
                None => base.to_f64().powf(exponent.to_f64()).into(),
            }
        }
    })
}

/// The power of decimals in the form that MongoDB gives it: with all 34 digits, and a zero without a sign. Powers of one and
/// powers by zero are not computed and stay short.
fn decimal_pow(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let power = base.pow(exponent);
    let is_one = base.abs().to_i64_exact() == Some(1);
    match power.parts() {
        // The smallest exponent there is.
        Some(parts) if parts.coefficient == 0 => {
            let zero = DecimalParts {
                negative: false,
                coefficient: 0,
                exponent: -6176,
            };
            Decimal128::from_parts(zero).unwrap_or(power)
        }
        Some(_) if !is_one && !exponent.is_zero() => power.with_all_digits(),
        _ => power,
    }
}

/// The power when it is whole and fits.
fn whole_pow(base: i64, exponent: i64) -> Option<i64> {
    match base {
        0 if exponent > 0 => return Some(0),
        1 => return Some(1),
        -1 => return Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => {}
    }
    base.checked_pow(u32::try_from(exponent).ok()?)
}

fn sqrt<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    match number(&args[0], env, "$sqrt")? {
        None => Ok(Val::NULL),
        Some(n) if is_below_zero(n) => Err(error(28714, "$sqrt's argument must be greater than or equal to 0")),
        Some(n) => Ok(map_float(n, f64::sqrt, Decimal128::sqrt)),
    }
}

fn exp<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(match number(&args[0], env, "$exp")? {
        None => Val::NULL,
        Some(n) => map_float(n, f64::exp, Decimal128::exp),
    })
}

/// Above zero, or NaN.
fn has_logarithm(n: Num) -> bool {
    n.is_nan() || nestor_model::compare(n, 0) == Ordering::Greater
}

fn ln<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    match number(&args[0], env, "$ln")? {
        None => Ok(Val::NULL),
        Some(n) if has_logarithm(n) => Ok(map_float(n, f64::ln, Decimal128::ln)),
        Some(_) => Err(error(28766, "$ln's argument must be a positive number")),
    }
}

fn log10<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    match number(&args[0], env, "$log10")? {
        None => Ok(Val::NULL),
        // MongoDB gives the NaN of a decimal as a double here.
        Some(n) if n.is_nan() => Ok(f64::NAN.into()),
        Some(n) if has_logarithm(n) => Ok(map_float(n, f64::log10, Decimal128::log10)),
        Some(_) => Err(error(28761, "$log10's argument must be a positive number")),
    }
}

fn log<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    let base = args[1].eval_ref(env)?;
    if value.is_nullish() || base.is_nullish() {
        return Ok(Val::NULL);
    }
    let (value, base) = (value.as_ref(), base.as_ref());
    let value = Num::from_ref(value).ok_or_else(|| {
        error(
            28756,
            format!("$log's argument must be numeric, not {}", value.bson_type().alias()),
        )
    })?;
    let base = Num::from_ref(base).ok_or_else(|| {
        error(
            28757,
            format!("$log's base must be numeric, not {}", base.bson_type().alias()),
        )
    })?;
    if !has_logarithm(value) {
        return Err(error(28758, "$log's argument must be a positive number"));
    }
    if !base.is_nan() && nestor_model::compare(base, 1) != Ordering::Greater && !is_proper_fraction(base) {
        return Err(error(28759, "$log's base must be a positive number not equal to 1"));
    }
    // As with `$log10`, the NaN of a decimal comes out as a double.
    if value.is_nan() || base.is_nan() {
        return Ok(f64::NAN.into());
    }
    Ok(match (value, base) {
        (Num::Decimal(_), _) | (_, Num::Decimal(_)) => value.to_decimal().ln().div(base.to_decimal().ln()).into(),
        _ => (value.to_f64().ln() / base.to_f64().ln()).into(),
    })
}

/// Strictly between 0 and 1.
fn is_proper_fraction(n: Num) -> bool {
    nestor_model::compare(n, 0) == Ordering::Greater && nestor_model::compare(n, 1) == Ordering::Less
}

/// The argument is any expression, an array included, which is then no number.
fn parse_sigmoid(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let arg = Expr::parse(value, scope)?;
    Expr::call_of(name, sigmoid, Box::new([arg]))
}

fn sigmoid<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let value = args[0].eval_ref(env)?;
    let value = value.as_ref();
    Ok(match Num::from_ref(value) {
        None if value.is_nullish() => Val::NULL,
        None => {
            return Err(Error::type_mismatch(format!(
                "$sigmoid only supports numeric types, not {}",
                value.bson_type().alias()
            )));
        }
        Some(Num::Decimal(v)) => {
            let one = Decimal128::ONE;
            if v.is_nan() {
                return Ok(v.into());
            }
            one.div(one.add(v.negate().exp())).into()
        }
        Some(n) => (1.0 / (1.0 + (-n.to_f64()).exp())).into(),
    })
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn powers_and_logarithms() {
        check(
            r#"{"l": {"$numberLong": "3"}, "m": {"$numberDecimal": "4"}}"#,
            &[
                (r#"{"$pow": [2, 3]}"#, "8"),
                (r#"{"$pow": [2, 31]}"#, "Long(2147483648)"),
                (r#"{"$pow": [2, 63]}"#, "9.223372036854776e18"),
                (r#"{"$pow": ["$l", 2]}"#, "Long(9)"),
                (r#"{"$pow": [2, -1]}"#, "0.5"),
                (r#"{"$pow": [-1, -3]}"#, "-1"),
                (r#"{"$pow": [0, -1]}"#, "error 28764"),
                (r#"{"$pow": ["x", -1]}"#, "error 28762"),
                (r#"{"$sqrt": "$m"}"#, "Decimal(2)"),
                (r#"{"$sqrt": -1}"#, "error 28714"),
                (r#"{"$ln": 1}"#, "0.0"),
                (r#"{"$log10": 1000}"#, "3.0"),
                (r#"{"$log": [8, 1]}"#, "error 28759"),
                (r#"{"$log": [0, 2]}"#, "error 28758"),
                (r#"{"$sigmoid": 0}"#, "0.5"),
                (r#"{"$sigmoid": [1]}"#, "error 14"),
            ],
        );
    }
}
