//! Trigonometric and hyperbolic functions. Angles are radians. A decimal gives a decimal, any other number a
//! double. Outside the domain of an inverse function: 50989.

use super::arithmetic::{map_float, number};
use crate::env::{Env, Val};
use crate::expr::Expr;
use crate::expr::args::error;
use crate::expr::parse::OpDef;
use nestor_model::number::Num;
use nestor_model::{Decimal128, Result, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::fixed("$sin", 1, sin),
    OpDef::fixed("$cos", 1, cos),
    OpDef::fixed("$tan", 1, tan),
    OpDef::fixed("$asin", 1, asin),
    OpDef::fixed("$acos", 1, acos),
    OpDef::fixed("$atan", 1, atan),
    OpDef::fixed("$atan2", 2, atan2),
    OpDef::fixed("$sinh", 1, sinh),
    OpDef::fixed("$cosh", 1, cosh),
    OpDef::fixed("$tanh", 1, tanh),
    OpDef::fixed("$asinh", 1, asinh),
    OpDef::fixed("$acosh", 1, acosh),
    OpDef::fixed("$atanh", 1, atanh),
    OpDef::fixed("$degreesToRadians", 1, degrees_to_radians),
    OpDef::fixed("$radiansToDegrees", 1, radians_to_degrees),
];

macro_rules! functions {
    ($($name:ident $label:literal $from:expr, $to:expr;)*) => {$(
        fn $name<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
            let Some(n) = number(&args[0], env, $label)? else {
                return Ok(Val::NULL);
            };
            check_domain(n, $label, $from, $to)?;
            Ok(map_float(n, double::$name, Decimal128::$name))
        }
    )*};
}

/// The functions of doubles. The inverse hyperbolic ones are computed as C libraries do it (after Sun's fdlibm), since
/// the standard library's own formulas differ in the last digit.
mod double {
    macro_rules! plain {
        ($($name:ident)*) => {$(
            pub(super) fn $name(x: f64) -> f64 {
                x.$name()
            }
        )*};
    }
    plain!(sin cos tan asin acos atan sinh cosh tanh);

    /// Beyond this the square root of `x * x + 1` is `x`.
    const LARGE: f64 = 268_435_456.0;
    /// Below this the functions are the identity.
    const SMALL: f64 = 1.0 / LARGE;

    pub(super) fn asinh(x: f64) -> f64 {
        let a = x.abs();
        if !x.is_finite() || a < SMALL {
            return x;
        }
        let y = if a > LARGE {
            a.ln() + std::f64::consts::LN_2
        } else if a > 2.0 {
            (2.0 * a + 1.0 / ((a * a + 1.0).sqrt() + a)).ln()
        } else {
            let t = a * a;
            (a + t / (1.0 + (1.0 + t).sqrt())).ln_1p()
        };
        y.copysign(x)
    }

    pub(super) fn acosh(x: f64) -> f64 {
        if x > LARGE {
            x.ln() + std::f64::consts::LN_2
        } else if x > 2.0 {
            (2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt())).ln()
        } else {
            let t = x - 1.0;
            (t + (2.0 * t + t * t).sqrt()).ln_1p()
        }
    }

    pub(super) fn atanh(x: f64) -> f64 {
        let a = x.abs();
        if a < SMALL {
            return x;
        }
        let t = a + a;
        let y = if a < 0.5 {
            (t + t * a / (1.0 - a)).ln_1p()
        } else {
            (t / (1.0 - a)).ln_1p()
        };
        (0.5 * y).copysign(x)
    }
}

const ALL: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

functions! {
    // The largest double stands for "any finite number": no angle is infinite.
    sin "$sin" f64::MIN, f64::MAX;
    cos "$cos" f64::MIN, f64::MAX;
    tan "$tan" f64::MIN, f64::MAX;
    asin "$asin" -1.0, 1.0;
    acos "$acos" -1.0, 1.0;
    atan "$atan" ALL.0, ALL.1;
    sinh "$sinh" ALL.0, ALL.1;
    cosh "$cosh" ALL.0, ALL.1;
    tanh "$tanh" ALL.0, ALL.1;
    asinh "$asinh" ALL.0, ALL.1;
    acosh "$acosh" 1.0, ALL.1;
    atanh "$atanh" -1.0, 1.0;
}

fn check_domain(n: Num, op: &str, from: f64, to: f64) -> Result<()> {
    let inside = match n {
        _ if n.is_nan() => true,
        // Decimals go beyond the largest double, and only infinity is too much there.
        Num::Decimal(v) if to == f64::MAX => v.is_finite(),
        _ => nestor_model::compare(n, from).is_ge() && nestor_model::compare(n, to).is_le(),
    };
    if inside {
        return Ok(());
    }
    Err(error(
        50989,
        format!(
            "cannot apply {op} to {:?}, it must be from {from} to {to}",
            ValueRef::from(n)
        ),
    ))
}

fn atan2<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let y = args[0].eval_ref(env)?;
    let x = args[1].eval_ref(env)?;
    if y.is_nullish() || x.is_nullish() {
        return Ok(Val::NULL);
    }
    let numeric = |v: ValueRef<'_>, code: i32| {
        Num::from_ref(v).ok_or_else(|| {
            error(
                code,
                format!("$atan2 only supports numeric types, not {}", v.bson_type().alias()),
            )
        })
    };
    let (y, x) = (numeric(y.as_ref(), 51044)?, numeric(x.as_ref(), 51045)?);
    Ok(match (y, x) {
        (Num::Decimal(_), _) | (_, Num::Decimal(_)) => y.to_decimal().atan2(x.to_decimal()).into(),
        _ => y.to_f64().atan2(x.to_f64()).into(),
    })
}

/// pi to 34 digits, as text.
const PI: &str = "3.141592653589793238462643383279503";

fn decimal(text: &str) -> Decimal128 {
    Decimal128::parse(text).map_or(Decimal128::NAN, |(v, _)| v)
}

fn degrees_to_radians<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(match number(&args[0], env, "$degreesToRadians")? {
        None => Val::NULL,
        Some(n) => map_float(
            n,
            |v| v * (std::f64::consts::PI / 180.0),
            |v| v.mul(decimal(PI).div(decimal("180"))),
        ),
    })
}

fn radians_to_degrees<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    Ok(match number(&args[0], env, "$radiansToDegrees")? {
        None => Val::NULL,
        Some(n) => map_float(
            n,
            |v| v * (180.0 / std::f64::consts::PI),
            |v| v.mul(decimal("180").div(decimal(PI))),
        ),
    })
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn values_and_domains() {
        check(
            r#"{"inf": {"$numberDouble": "Infinity"}, "nan": {"$numberDouble": "NaN"}}"#,
            &[
                (r#"{"$sin": 0}"#, "0.0"),
                (
                    r#"{"$cos": {"$numberDecimal": "0"}}"#,
                    "Decimal(1.000000000000000000000000000000000)",
                ),
                (r#"{"$sin": "$inf"}"#, "error 50989"),
                (r#"{"$sin": "$nan"}"#, "NaN"),
                (r#"{"$asin": 1.1}"#, "error 50989"),
                (r#"{"$acosh": 0.5}"#, "error 50989"),
                (r#"{"$atan2": [0, 1]}"#, "0.0"),
                (r#"{"$tan": "x"}"#, "error 28765"),
                (r#"{"$tan": null}"#, "null"),
                (r#"{"$degreesToRadians": 180}"#, "3.141592653589793"),
                (r#"{"$asinh": -1}"#, "-0.881373587019543"),
                (r#"{"$asinh": 1e300}"#, "691.4686750787736"),
                (r#"{"$asinh": {"$numberDouble": "-0.0"}}"#, "-0.0"),
                (r#"{"$acosh": 1}"#, "0.0"),
                (r#"{"$acosh": 3}"#, "1.762747174039086"),
                (r#"{"$acosh": "$inf"}"#, "inf"),
                (r#"{"$atanh": 0.5}"#, "0.5493061443340548"),
                (r#"{"$atanh": -1}"#, "-inf"),
            ],
        );
    }
}
