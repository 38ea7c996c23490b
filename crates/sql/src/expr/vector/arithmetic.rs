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
}

/// The results of an operator that may overflow; null rows hold anything.
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

/// What two vectors give by an operator.
pub(super) fn both(function: &Function, a: &Vector, b: &Vector) -> Option<Vector> {
    let sign = match function.name {
        "+" => Sign::Plus,
        "-" => Sign::Minus,
        "*" => Sign::Times,
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
        Type::Int4 => {
            let sides = (side::int32(&a.data)?, side::int32(&b.data)?);
            Data::Int32(match sign {
                Sign::Plus => checked(sides, known, rows, i32::checked_add)?,
                Sign::Minus => checked(sides, known, rows, i32::checked_sub)?,
                Sign::Times => checked(sides, known, rows, i32::checked_mul)?,
            })
        }
        Type::Int8 => {
            let sides = (side::int64(&a.data)?, side::int64(&b.data)?);
            Data::Int64(match sign {
                Sign::Plus => checked(sides, known, rows, i64::checked_add)?,
                Sign::Minus => checked(sides, known, rows, i64::checked_sub)?,
                Sign::Times => checked(sides, known, rows, i64::checked_mul)?,
            })
        }
        Type::Float8 => {
            let sides = (side::double(&a.data)?, side::double(&b.data)?);
            // What becomes infinite may be an overflow.
            let finite = |n: f64| (!n.is_infinite()).then_some(n);
            Data::Double(match sign {
                Sign::Plus => checked(sides, known, rows, |a, b| finite(a + b))?,
                Sign::Minus => checked(sides, known, rows, |a, b| finite(a - b))?,
                Sign::Times => checked(sides, known, rows, |a, b| finite(a * b))?,
            })
        }
        Type::Numeric => {
            let ((x, s), (y, t)) = (side::decimal(&a.data)?, side::decimal(&b.data)?);
            let scale = match sign {
                Sign::Times => s + t,
                _ => s.max(t),
            };
            if scale > SCALE_MAX {
                return None;
            }
            let digits = match sign {
                Sign::Times => checked((x, y), known, rows, i64::checked_mul)?,
                _ => {
                    let (p, q) = (10i64.pow(u32::from(scale - s)), 10i64.pow(u32::from(scale - t)));
                    let plus = |a: i64, b: i64| a.checked_mul(p)?.checked_add(b.checked_mul(q)?);
                    let minus = |a: i64, b: i64| a.checked_mul(p)?.checked_sub(b.checked_mul(q)?);
                    match sign {
                        Sign::Plus => checked((x, y), known, rows, plus)?,
                        _ => checked((x, y), known, rows, minus)?,
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
