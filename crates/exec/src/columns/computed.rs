//! Arithmetic over columns of numbers, each value as the operators of expressions compute it.

use nestor_columns::{Column, Places};
use nestor_model::number::{Num, double_rem};
use nestor_model::vector::Data;
use nestor_query::Expr;

/// A value for each row, or one for all.
enum Side {
    One(Num),
    Many(Computed),
}

/// A value for each row.
pub(crate) enum Computed {
    /// Of any types.
    Numbers(Vec<Num>),
    /// All are longs.
    Longs(Vec<i64>),
    Doubles(Vec<f64>),
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
) -> Option<Computed> {
    Some(match side(expr, column, places)? {
        Side::One(value) => Computed::Numbers(vec![value; places.len()]),
        Side::Many(values) => values,
    })
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
        return Some(Side::Many(match vector.data {
            Data::Int32(values) => Computed::Numbers(values.into_iter().map(Num::Int32).collect()),
            Data::Int64(values) => Computed::Longs(values),
            Data::Double(values) => Computed::Doubles(values),
            _ => return None,
        }));
    }
    let (name, args) = expr.call()?;
    let mut sides = args.iter().map(|arg| side(arg, column, places));
    let first = sides.next()??;
    match name {
        "$floor" => rounded(first, f64::floor),
        "$ceil" => rounded(first, f64::ceil),
        "$subtract" => both(first, sides.next()??, &SUBTRACT),
        "$divide" => both(first, sides.next()??, &DIVIDE),
        "$mod" => both(first, sides.next()??, &REMAINDER),
        "$add" => {
            let sum = both(Side::One(Num::Int32(0)), first, &ADD)?;
            sides.try_fold(sum, |sum, next| both(sum, next?, &ADD))
        }
        "$multiply" => {
            let product = both(Side::One(Num::Int32(1)), first, &MULTIPLY)?;
            sides.try_fold(product, |product, next| both(product, next?, &MULTIPLY))
        }
        _ => None,
    }
}

/// An operator of two numbers.
struct Operator {
    of: fn(Num, Num) -> Option<Num>,
    /// The same of two numbers, one of which is a double and none a decimal; `None` where it refuses them.
    doubles: fn(f64, f64) -> Option<f64>,
    /// It makes doubles of whole numbers, too.
    is_double: bool,
}

const ADD: Operator = Operator {
    of: |a, b| Some(a.add(b)),
    doubles: |a, b| Some(a + b),
    is_double: false,
};
const SUBTRACT: Operator = Operator {
    of: |a, b| Some(a.sub(b)),
    doubles: |a, b| Some(a - b),
    is_double: false,
};
const MULTIPLY: Operator = Operator {
    of: |a, b| Some(a.mul(b)),
    doubles: |a, b| Some(a * b),
    is_double: false,
};
const DIVIDE: Operator = Operator {
    of: Num::checked_div,
    doubles: |a, b| (b != 0.0).then(|| a / b),
    is_double: true,
};
const REMAINDER: Operator = Operator {
    of: Num::checked_rem,
    doubles: |a, b| (b != 0.0).then(|| double_rem(a, b)),
    is_double: false,
};

/// Doubles, or one for all.
enum Doubles<'s> {
    One(f64),
    Longs(&'s [i64]),
    Many(&'s [f64]),
}

impl Side {
    fn is_double(&self) -> bool {
        matches!(self, Self::One(Num::Double(_)) | Self::Many(Computed::Doubles(_)))
    }

    /// What it is beside doubles; `None` of decimals, and where that is not known.
    fn doubles(&self) -> Option<Doubles<'_>> {
        match self {
            Self::One(Num::Decimal(_)) | Self::Many(Computed::Numbers(_)) => None,
            Self::One(value) => Some(Doubles::One(value.to_f64())),
            Self::Many(Computed::Longs(values)) => Some(Doubles::Longs(values)),
            Self::Many(Computed::Doubles(values)) => Some(Doubles::Many(values)),
        }
    }

    fn one(&self) -> Option<Num> {
        match self {
            Self::One(value) => Some(*value),
            Self::Many(_) => None,
        }
    }

    /// Its values, where there are several.
    fn many(self) -> Vec<Num> {
        match self {
            Self::One(_) => Vec::new(),
            Self::Many(Computed::Numbers(values)) => values,
            Self::Many(Computed::Longs(values)) => values.into_iter().map(Num::Int64).collect(),
            Self::Many(Computed::Doubles(values)) => values.into_iter().map(Num::Double).collect(),
        }
    }
}

fn both(a: Side, b: Side, operator: &Operator) -> Option<Side> {
    let are_doubles = operator.is_double || a.is_double() || b.is_double();
    if are_doubles && let (Some(a), Some(b)) = (a.doubles(), b.doubles()) {
        return of_doubles(&a, &b, operator.doubles);
    }
    let of = operator.of;
    let values: Option<Vec<Num>> = match (a.one(), b.one()) {
        (Some(a), Some(b)) => return of(a, b).map(Side::One),
        (None, Some(b)) => a.many().into_iter().map(|a| of(a, b)).collect(),
        (Some(a), None) => b.many().into_iter().map(|b| of(a, b)).collect(),
        (None, None) => a.many().into_iter().zip(b.many()).map(|(a, b)| of(a, b)).collect(),
    };
    Some(Side::Many(Computed::Numbers(values?)))
}

fn of_doubles(a: &Doubles<'_>, b: &Doubles<'_>, of: fn(f64, f64) -> Option<f64>) -> Option<Side> {
    let value = |side: &Doubles<'_>, row: usize| match side {
        Doubles::One(value) => *value,
        Doubles::Longs(values) => values[row] as f64,
        Doubles::Many(values) => values[row],
    };
    let rows = |side: &Doubles<'_>| match side {
        Doubles::One(_) => None,
        Doubles::Longs(values) => Some(values.len()),
        Doubles::Many(values) => Some(values.len()),
    };
    let Some(rows) = rows(a).or(rows(b)) else {
        return of(value(a, 0), value(b, 0)).map(|value| Side::One(Num::Double(value)));
    };
    let values = match (a, b) {
        (Doubles::Longs(a), Doubles::One(b)) => a.iter().map(|a| of(*a as f64, *b)).collect::<Option<Vec<f64>>>(),
        (Doubles::Many(a), Doubles::One(b)) => a.iter().map(|a| of(*a, *b)).collect(),
        _ => (0..rows).map(|row| of(value(a, row), value(b, row))).collect(),
    };
    Some(Side::Many(Computed::Doubles(values?)))
}

/// Doubles by a function, whole numbers as they are; `None` of decimals.
fn rounded(side: Side, of: fn(f64) -> f64) -> Option<Side> {
    let one = |value: Num| match value {
        Num::Int32(_) | Num::Int64(_) => Some(value),
        Num::Double(value) => Some(Num::Double(of(value))),
        Num::Decimal(_) => None,
    };
    Some(match side {
        Side::One(value) => Side::One(one(value)?),
        Side::Many(Computed::Numbers(values)) => {
            let values = values.into_iter().map(one).collect::<Option<_>>();
            Side::Many(Computed::Numbers(values?))
        }
        Side::Many(Computed::Doubles(values)) => Side::Many(Computed::Doubles(values.into_iter().map(of).collect())),
        longs @ Side::Many(Computed::Longs(_)) => longs,
    })
}
