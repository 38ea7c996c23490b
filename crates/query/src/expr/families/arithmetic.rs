//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`, `$abs`: numbers of four types, and dates in sums.
//!
//! The result has the widest type of the operands. An int that overflows becomes a long, a long that
//! overflows becomes a double. Null and missing operands give null.

use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::number::Num;
use nestor_model::{Decimal128, Error, ErrorCode, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::variadic("$add", add),
    OpDef::fixed("$subtract", 2, subtract),
    OpDef::variadic("$multiply", multiply),
    OpDef::fixed("$divide", 2, divide),
    OpDef::fixed("$mod", 2, modulo),
    OpDef::fixed("$abs", 1, abs),
];

/// Message of the error of `$divide` by zero.
pub(crate) const DIVIDE_BY_ZERO: &str = "can't $divide by zero";

fn type_error(op: &str, allowed: &str, value: ValueRef<'_>) -> Error {
    Error::type_mismatch(format!(
        "{op} only supports {allowed} types, not {}",
        value.bson_type().alias()
    ))
}

fn overflow(op: &str) -> Error {
    Error::new(ErrorCode::Overflow, format!("date overflow in {op}"))
}

fn add<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut sum = Num::Int32(0);
    let mut date = None;
    let mut null = false;
    for arg in args {
        let value = arg.eval_ref(env)?;
        match value.as_ref() {
            ValueRef::DateTime(ms) => {
                if date.replace(ms).is_some() {
                    return Err(error(16612, "only one date allowed in an $add expression"));
                }
            }
            other => match Num::from_ref(other) {
                Some(n) => sum = sum.add(n),
                None if other.is_nullish() => null = true,
                None => return Err(type_error("$add", "numeric or date", other)),
            },
        }
        if null {
            return Ok(Val::NULL);
        }
    }
    match date {
        None => Ok(sum.into_val()),
        Some(ms) => {
            let amount = whole_ms(sum).ok_or_else(|| overflow("$add"))?;
            let ms = ms.checked_add(amount).ok_or_else(|| overflow("$add"))?;
            Ok(Val::Ref(ValueRef::DateTime(ms)))
        }
    }
}

/// Milliseconds of a number added to a date: rounded to the nearest; `None` when out of range.
fn whole_ms(n: Num) -> Option<i64> {
    match n {
        Num::Int32(v) => Some(i64::from(v)),
        Num::Int64(v) => Some(v),
        Num::Double(v) => nestor_model::number::f64_to_i64_exact(v.round()),
        Num::Decimal(v) => v.to_i64_rounded(),
    }
}

fn subtract<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    let (left, right) = (left.as_ref(), right.as_ref());
    if let (Some(a), Some(b)) = (Num::from_ref(left), Num::from_ref(right)) {
        return Ok(a.sub(b).into_val());
    }
    if left.is_nullish() || right.is_nullish() {
        return Ok(Val::NULL);
    }
    match (left, right) {
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => {
            a.checked_sub(b).map(Val::from).ok_or_else(|| overflow("$subtract"))
        }
        (ValueRef::DateTime(a), b) => {
            let Some(n) = Num::from_ref(b) else {
                return Err(Error::type_mismatch(format!(
                    "can't $subtract {} from date",
                    b.bson_type().alias()
                )));
            };
            whole_ms(n)
                .and_then(|n| a.checked_sub(n))
                .map(|ms| Val::Ref(ValueRef::DateTime(ms)))
                .ok_or_else(|| overflow("$subtract"))
        }
        (a, b) => Err(Error::type_mismatch(format!(
            "can't $subtract {} from {}",
            b.bson_type().alias(),
            a.bson_type().alias()
        ))),
    }
}

fn multiply<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut product = Num::Int32(1);
    for arg in args {
        let value = arg.eval_ref(env)?;
        match Num::from_ref(value.as_ref()) {
            Some(n) => product = product.mul(n),
            None if value.is_nullish() => return Ok(Val::NULL),
            None => return Err(type_error("$multiply", "numeric", value.as_ref())),
        }
    }
    Ok(product.into_val())
}

fn divide<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    let (left, right) = (left.as_ref(), right.as_ref());
    let (Some(a), Some(b)) = (Num::from_ref(left), Num::from_ref(right)) else {
        if left.is_nullish() || right.is_nullish() {
            return Ok(Val::NULL);
        }
        return Err(Error::type_mismatch(format!(
            "$divide only supports numeric types, not {} and {}",
            left.bson_type().alias(),
            right.bson_type().alias()
        )));
    };
    let quotient = a.checked_div(b).ok_or_else(|| Error::bad_value(DIVIDE_BY_ZERO))?;
    Ok(quotient.into_val())
}

fn modulo<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let left = args[0].eval_ref(env)?;
    let right = args[1].eval_ref(env)?;
    let (left, right) = (left.as_ref(), right.as_ref());
    let (Some(a), Some(b)) = (Num::from_ref(left), Num::from_ref(right)) else {
        if left.is_nullish() || right.is_nullish() {
            return Ok(Val::NULL);
        }
        return Err(error(
            16611,
            format!(
                "$mod only supports numeric types, not {} and {}",
                left.bson_type().alias(),
                right.bson_type().alias()
            ),
        ));
    };
    let rest = a.checked_rem(b).ok_or_else(|| {
        let has_decimal = matches!((a, b), (Num::Decimal(_), _) | (_, Num::Decimal(_)));
        let code = if has_decimal { 5_733_415 } else { 16610 };
        error(code, "can't $mod by zero")
    })?;
    Ok(rest.into_val())
}

fn abs<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let Some(n) = number(&args[0], env, "$abs")? else {
        return Ok(Val::NULL);
    };
    Ok(match n {
        Num::Int32(v) => Num::from_i64(i64::from(v).abs(), true).into_val(),
        Num::Int64(v) => match v.checked_abs() {
            Some(v) => v.into(),
            None => return Err(error(28680, "can't take $abs of long long min")),
        },
        Num::Double(v) => v.abs().into(),
        Num::Decimal(v) if v.is_nan() => v.into(),
        Num::Decimal(v) => v.abs().into(),
    })
}

/// The number that a one-argument operator is applied to; `None` for null. Errors: 28765 for other types.
pub(crate) fn number<'a>(arg: &'a Expr, env: &mut Env<'a>, op: &str) -> Result<Option<Num>> {
    let value = arg.eval_ref(env)?;
    match Num::from_ref(value.as_ref()) {
        Some(n) => Ok(Some(n)),
        None if value.is_nullish() => Ok(None),
        None => Err(error(
            28765,
            format!(
                "{op} only supports numeric types, not {}",
                value.as_ref().bson_type().alias()
            ),
        )),
    }
}

/// Applies a function of doubles, or of decimals to a decimal.
pub(crate) fn map_float<'a>(n: Num, double: fn(f64) -> f64, decimal: fn(Decimal128) -> Decimal128) -> Val<'a> {
    match n {
        Num::Decimal(v) => decimal(v).into(),
        other => double(other.to_f64()).into(),
    }
}

/// A number as a [`Val`].
pub(crate) trait IntoVal {
    /// The number as a [`Val`].
    fn into_val<'a>(self) -> Val<'a>;
}

impl IntoVal for Num {
    fn into_val<'a>(self) -> Val<'a> {
        Val::Owned(Value::from(self))
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn result_types() {
        check(
            r#"{"l": {"$numberLong": "9223372036854775807"}, "i": 2147483647, "d": {"$date": {"$numberLong": "1000"}},
                "m": {"$numberDecimal": "1.5"}, "n": null, "s": "x"}"#,
            &[
                (r#"{"$add": ["$i", 1]}"#, "Long(2147483648)"),
                (r#"{"$add": ["$l", 1]}"#, "9.223372036854776e18"),
                (r#"{"$add": ["$d", 1.5, 2]}"#, "Date(1004)"),
                (r#"{"$add": ["$d", "$d"]}"#, "error 16612"),
                (r#"{"$add": ["$n", "$s"]}"#, "null"),
                (r#"{"$add": ["$s"]}"#, "error 14"),
                (r#"{"$add": []}"#, "0"),
                (r#"{"$subtract": ["$d", "$d"]}"#, "Long(0)"),
                (r#"{"$subtract": [1, "$d"]}"#, "error 14"),
                (r#"{"$multiply": ["$i", "$i"]}"#, "Long(4611686014132420609)"),
                (r#"{"$multiply": ["$m", 2]}"#, "Decimal(3.0)"),
                (r#"{"$divide": [1, 2]}"#, "0.5"),
                (r#"{"$divide": [1, "$zz"]}"#, "null"),
                (r#"{"$divide": [1, 0]}"#, "error 2"),
                (r#"{"$mod": [-7, 4]}"#, "-3"),
                (r#"{"$mod": [7.5, 2]}"#, "1.5"),
                (r#"{"$mod": [7, 0]}"#, "error 16610"),
                (r#"{"$abs": -3}"#, "3"),
                (r#"{"$abs": {"$numberInt": "-2147483648"}}"#, "Long(2147483648)"),
                (r#"{"$abs": "$s"}"#, "error 28765"),
            ],
        );
    }
}
