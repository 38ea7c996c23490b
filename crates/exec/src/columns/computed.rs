//! Arithmetic over columns of numbers, each value as the operators of expressions compute it.

use nestor_columns::{Column, Places};
use nestor_model::number::Num;
use nestor_model::vector::Data;
use nestor_query::Expr;

/// A value for each row, or one for all.
enum Side {
    One(Num),
    Many(Vec<Num>),
}

/// Whether it is arithmetic of numbers and paths, as far as it can be told without rows.
pub(crate) fn is_arithmetic(expr: &Expr) -> bool {
    fn is_part(expr: &Expr) -> bool {
        let is_number = |expr: &Expr| {
            expr.constant()
                .and_then(|value| Num::from_ref(value.as_ref()))
                .is_some()
        };
        is_number(expr) || expr.field_path().is_some() || is_arithmetic(expr)
    }
    let Some((name, args)) = expr.call() else {
        return false;
    };
    let is_known = matches!(
        name,
        "$add" | "$subtract" | "$multiply" | "$divide" | "$mod" | "$floor" | "$ceil"
    );
    is_known && !args.is_empty() && args.iter().all(is_part)
}

/// The values of arithmetic for some rows; `None` where a row has something else than a number at one of the paths, and where an operator
/// refuses what it has.
pub(crate) fn numbers<'c>(
    expr: &Expr,
    column: &dyn Fn(&str) -> Option<&'c Column>,
    places: &Places<'_>,
) -> Option<Vec<Num>> {
    match side(expr, column, places)? {
        Side::One(value) => Some(vec![value; places.len()]),
        Side::Many(values) => Some(values),
    }
}

fn side<'c>(expr: &Expr, column: &dyn Fn(&str) -> Option<&'c Column>, places: &Places<'_>) -> Option<Side> {
    if let Some(value) = expr.constant() {
        return Num::from_ref(value.as_ref()).map(Side::One);
    }
    if let Some(path) = expr.field_path() {
        let vector = column(path.as_str())?.vector(places);
        if vector.may_be_null() {
            return None;
        }
        return Some(Side::Many(match &vector.data {
            Data::Int32(values) => values.iter().map(|value| Num::Int32(*value)).collect(),
            Data::Int64(values) => values.iter().map(|value| Num::Int64(*value)).collect(),
            Data::Double(values) => values.iter().map(|value| Num::Double(*value)).collect(),
            _ => return None,
        }));
    }
    let (name, args) = expr.call()?;
    let mut sides = args.iter().map(|arg| side(arg, column, places));
    let first = sides.next()??;
    match name {
        "$floor" => one(first, |n| rounded(n, f64::floor)),
        "$ceil" => one(first, |n| rounded(n, f64::ceil)),
        "$subtract" => both(first, sides.next()??, |a, b| Some(a.sub(b))),
        "$divide" => both(first, sides.next()??, Num::checked_div),
        "$mod" => both(first, sides.next()??, Num::checked_rem),
        "$add" => {
            let sum = one(first, |n| Some(Num::Int32(0).add(n)))?;
            sides.try_fold(sum, |sum, next| both(sum, next?, |a, b| Some(a.add(b))))
        }
        "$multiply" => {
            let product = one(first, |n| Some(Num::Int32(1).mul(n)))?;
            sides.try_fold(product, |product, next| both(product, next?, |a, b| Some(a.mul(b))))
        }
        _ => None,
    }
}

fn one(side: Side, of: impl Fn(Num) -> Option<Num>) -> Option<Side> {
    Some(match side {
        Side::One(value) => Side::One(of(value)?),
        Side::Many(values) => Side::Many(values.into_iter().map(of).collect::<Option<_>>()?),
    })
}

fn both(a: Side, b: Side, of: impl Fn(Num, Num) -> Option<Num>) -> Option<Side> {
    Some(match (a, b) {
        (Side::One(a), Side::One(b)) => Side::One(of(a, b)?),
        (Side::Many(a), Side::One(b)) => Side::Many(a.into_iter().map(|a| of(a, b)).collect::<Option<_>>()?),
        (Side::One(a), Side::Many(b)) => Side::Many(b.into_iter().map(|b| of(a, b)).collect::<Option<_>>()?),
        (Side::Many(a), Side::Many(b)) => {
            Side::Many(a.into_iter().zip(b).map(|(a, b)| of(a, b)).collect::<Option<_>>()?)
        }
    })
}

/// A double by a function, a whole number as it is; `None` of decimals.
fn rounded(value: Num, of: fn(f64) -> f64) -> Option<Num> {
    match value {
        Num::Int32(_) | Num::Int64(_) => Some(value),
        Num::Double(value) => Some(Num::Double(of(value))),
        Num::Decimal(_) => None,
    }
}
