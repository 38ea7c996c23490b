//! Arithmetic of vectors, and casts to wider types of numbers. `None` where there is no loop, or where one met what it cannot hold.

use super::super::function::{Function, Param};
use super::compare::either_null;
use super::side::{self, Side};
use crate::types::Type;
use nestor_model::vector::{Data, SCALE_MAX, Vector};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
    Times,
    By,
    Rest,
}

/// The results of an operator that may fail; null rows hold anything.
fn checked<T: Copy + Default>(
    (a, b): (Side<'_, T>, Side<'_, T>),
    nulls: Option<&[bool]>,
    rows: usize,
    of: impl Fn(T, T) -> Option<T>,
) -> Option<Vec<T>> {
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls[row]);
    let one = |row: usize| match of(a.at(row), b.at(row)) {
        None if is_null(row) => Some(T::default()),
        result => result,
    };
    (0..rows).map(one).collect()
}

/// As [`checked`], of an operator that always has a result and says whether it holds: all rows in one loop without a branch.
fn flagged<T: Copy + Default>(
    (a, b): (Side<'_, T>, Side<'_, T>),
    nulls: Option<&[bool]>,
    of: impl Fn(T, T) -> (T, bool),
) -> Option<Vec<T>> {
    fn each<T>(
        pairs: impl ExactSizeIterator<Item = (T, T)>,
        of: impl Fn(T, T) -> (T, bool),
        fails: &mut bool,
    ) -> Vec<T> {
        let one = |(a, b)| {
            let (result, fails_here) = of(a, b);
            *fails |= fails_here;
            result
        };
        pairs.map(one).collect()
    }
    let mut fails = false;
    let values = match (&a, &b) {
        (Side::Many(a), Side::Many(b)) => each(a.iter().copied().zip(b.iter().copied()), &of, &mut fails),
        (Side::Many(a), Side::One(b)) => each(a.iter().map(|a| (*a, *b)), &of, &mut fails),
        (Side::One(a), Side::Many(b)) => each(b.iter().map(|b| (*a, *b)), &of, &mut fails),
        (Side::One(_), Side::One(_)) => return None,
    };
    // What fails in null rows does not count.
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls[row]);
    let holds = |row: usize| is_null(row) || !of(a.at(row), b.at(row)).1;
    (!fails || nulls.is_some() && (0..values.len()).all(holds)).then_some(values)
}

/// The result of numbers of 16 bits, if it is one.
fn small(wide: (i32, bool)) -> (i32, bool) {
    (wide.0, wide.1 || i16::try_from(wide.0).is_err())
}

/// What two vectors give by an operator.
pub(super) fn both(function: &Function, a: &Vector, b: &Vector) -> Option<Vector> {
    let sign = match function.name {
        "+" => Sign::Plus,
        "-" => Sign::Minus,
        "*" => Sign::Times,
        "/" => Sign::By,
        "%" => Sign::Rest,
        _ => return None,
    };
    let Param::Type(ty) = &function.result else {
        return None;
    };
    // Types are those of the result: other ones (a date and a number) have no loop.
    if function.args.iter().any(|arg| *arg != function.result) {
        return None;
    }
    let rows = a.len();
    let is_same = |vector: &Vector| matches!(vector.data, Data::Same(..));
    if is_same(a) && is_same(b) {
        return None;
    }
    let nulls = either_null(a, b);
    let known = nulls.as_deref();
    let data = match ty {
        Type::Int2 => {
            let sides = (side::int32(&a.data)?, side::int32(&b.data)?);
            Data::Int32(match sign {
                Sign::Plus => flagged(sides, known, |a, b| small(a.overflowing_add(b)))?,
                Sign::Minus => flagged(sides, known, |a, b| small(a.overflowing_sub(b)))?,
                Sign::Times => flagged(sides, known, |a, b| small(a.overflowing_mul(b)))?,
                // Row by row; the quotient of the least number by -1 is too large.
                Sign::By => checked(sides, known, rows, |a, b| {
                    a.checked_div(b).filter(|n| i16::try_from(*n).is_ok())
                })?,
                Sign::Rest => checked(sides, known, rows, i32::checked_rem)?,
            })
        }
        Type::Int4 => {
            let sides = (side::int32(&a.data)?, side::int32(&b.data)?);
            Data::Int32(match sign {
                Sign::Plus => flagged(sides, known, i32::overflowing_add)?,
                Sign::Minus => flagged(sides, known, i32::overflowing_sub)?,
                Sign::Times => flagged(sides, known, i32::overflowing_mul)?,
                Sign::By => checked(sides, known, rows, i32::checked_div)?,
                Sign::Rest => checked(sides, known, rows, i32::checked_rem)?,
            })
        }
        Type::Int8 => {
            let sides = (side::int64(&a.data)?, side::int64(&b.data)?);
            Data::Int64(match sign {
                Sign::Plus => flagged(sides, known, i64::overflowing_add)?,
                Sign::Minus => flagged(sides, known, i64::overflowing_sub)?,
                Sign::Times => flagged(sides, known, i64::overflowing_mul)?,
                Sign::By => checked(sides, known, rows, i64::checked_div)?,
                Sign::Rest => checked(sides, known, rows, i64::checked_rem)?,
            })
        }
        Type::Float8 => {
            let sides = (side::double(&a.data)?, side::double(&b.data)?);
            // What becomes infinite or nothing may be an overflow or its reverse, and what is divided by zero an error.
            let finite = |n: f64| (n, n.is_infinite());
            let normal = |n: f64| (n, n.is_infinite() || n == 0.0);
            Data::Double(match sign {
                Sign::Plus => flagged(sides, known, |a, b| finite(a + b))?,
                Sign::Minus => flagged(sides, known, |a, b| finite(a - b))?,
                Sign::Times => flagged(sides, known, |a, b| {
                    let (product, fails) = normal(a * b);
                    (product, fails && a != 0.0 && b != 0.0)
                })?,
                Sign::By => flagged(sides, known, |a, b| {
                    let (quotient, fails) = normal(a / b);
                    (quotient, b == 0.0 || fails && a != 0.0)
                })?,
                Sign::Rest => return None,
            })
        }
        Type::Numeric => {
            let ((x, s), (y, t)) = (side::decimal(&a.data)?, side::decimal(&b.data)?);
            let scale = match sign {
                Sign::Times => s + t,
                Sign::By | Sign::Rest => return None,
                _ => s.max(t),
            };
            if scale > SCALE_MAX {
                return None;
            }
            let digits = match sign {
                Sign::Times => flagged((x, y), known, i64::overflowing_mul)?,
                _ => {
                    let (p, q) = (10i64.pow(u32::from(scale - s)), 10i64.pow(u32::from(scale - t)));
                    let scaled = |a: i64, b: i64| (a.overflowing_mul(p), b.overflowing_mul(q));
                    let sum = |a: i64, b: i64, of: fn(i64, i64) -> (i64, bool)| {
                        let ((a, a_fails), (b, b_fails)) = scaled(a, b);
                        let (sum, fails) = of(a, b);
                        (sum, fails || a_fails || b_fails)
                    };
                    match sign {
                        Sign::Plus => flagged((x, y), known, |a, b| sum(a, b, i64::overflowing_add))?,
                        _ => flagged((x, y), known, |a, b| sum(a, b, i64::overflowing_sub))?,
                    }
                }
            };
            Data::Decimal { digits, scale }
        }
        _ => return None,
    };
    Some(Vector { data, nulls })
}

/// A cast between types of numbers that loses nothing.
pub(super) fn widened(values: &Vector, from: &Type, to: &Type, modifier: i32) -> Option<Vector> {
    if modifier != -1 || !matches!(from, Type::Int2 | Type::Int4 | Type::Int8) {
        return None;
    }
    let whole = |ints: &mut dyn Iterator<Item = i64>| match to {
        Type::Int8 => Some(Data::Int64(ints.collect())),
        Type::Numeric => Some(Data::Decimal {
            digits: ints.collect(),
            scale: 0,
        }),
        Type::Float8 => Some(Data::Double(ints.map(|n| n as f64).collect())),
        _ => None,
    };
    let data = match &values.data {
        Data::Int32(ints) => whole(&mut ints.iter().map(|n| i64::from(*n))),
        Data::Int64(ints) => whole(&mut ints.iter().copied()),
        _ => None,
    };
    Some(Vector {
        data: data?,
        nulls: values.nulls.clone(),
    })
}
