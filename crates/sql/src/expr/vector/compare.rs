//! Comparisons of vectors.

use super::super::{Comparison, Expr, Node, compared};
use super::side::{self, Side};
use crate::types::Type;
use nestor_model::vector::{Data, Texts, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::chunk::each_row;
use std::cmp::Ordering;

/// Whether each row's values are in such an order.
fn ordered<T: Copy>(
    op: Comparison,
    (a, b): (Side<'_, T>, Side<'_, T>),
    order: impl Fn(T, T) -> Ordering,
) -> Option<Vec<bool>> {
    fn each<T: Copy>(a: Side<'_, T>, b: Side<'_, T>, holds: impl Fn(T, T) -> bool) -> Option<Vec<bool>> {
        Some(match (a, b) {
            (Side::Many(a), Side::Many(b)) => a.iter().zip(b).map(|(a, b)| holds(*a, *b)).collect(),
            (Side::Many(a), Side::One(b)) => a.iter().map(|a| holds(*a, b)).collect(),
            (Side::One(a), Side::Many(b)) => b.iter().map(|b| holds(a, *b)).collect(),
            (Side::One(_), Side::One(_)) => return None,
        })
    }
    // A loop for each sign, so that none of them asks for it row by row.
    match op {
        Comparison::Equal => each(a, b, |a, b| order(a, b).is_eq()),
        Comparison::NotEqual => each(a, b, |a, b| order(a, b).is_ne()),
        Comparison::Less => each(a, b, |a, b| order(a, b).is_lt()),
        Comparison::LessEqual => each(a, b, |a, b| order(a, b).is_le()),
        Comparison::Greater => each(a, b, |a, b| order(a, b).is_gt()),
        Comparison::GreaterEqual => each(a, b, |a, b| order(a, b).is_ge()),
    }
}

/// Numbers by SQL: not a number is larger than all others.
fn doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Both sides in the form that `side` gives.
fn both<'d, T>(
    a: &'d Data,
    b: &'d Data,
    side: fn(&'d Data) -> Option<Side<'d, T>>,
) -> Option<(Side<'d, T>, Side<'d, T>)> {
    Some((side(a)?, side(b)?))
}

/// Decimals of two scales in order.
fn decimals_ordered(op: Comparison, a: &Data, b: &Data) -> Option<Vec<bool>> {
    let ((x, s), (y, t)) = (side::decimal(a)?, side::decimal(b)?);
    let power = |places: u8| 10i128.checked_pow(u32::from(places));
    let (p, q) = (power(t.saturating_sub(s))?, power(s.saturating_sub(t))?);
    match (p, q) {
        (1, 1) => ordered(op, (x, y), |a, b| a.cmp(&b)),
        _ => ordered(op, (x, y), |a, b| (i128::from(a) * p).cmp(&(i128::from(b) * q))),
    }
}

/// What holds of the text of each row: of texts that rows share it is asked once.
fn each_text(texts: &Texts, holds: impl Fn(&str) -> bool) -> Vec<bool> {
    match texts.shared().filter(|(pool, numbers)| pool.len() <= numbers.len()) {
        Some((pool, numbers)) => {
            let known: Vec<bool> = (0..pool.len() as u32).map(|number| holds(pool.get(number))).collect();
            let empty = holds("");
            let of = |number: &u32| known.get(*number as usize).copied().unwrap_or(empty);
            numbers.iter().map(of).collect()
        }
        None => (0..texts.len()).map(|row| holds(texts.get(row))).collect(),
    }
}

/// Texts in order; those of `character(n)` without the blanks at their ends.
fn texts_ordered(op: Comparison, ty: &Type, a: &Data, b: &Data) -> Option<Vec<bool>> {
    let seen = |text: &str| match ty {
        Type::Bpchar => text.trim_end_matches(' ').len(),
        _ => text.len(),
    };
    match (a, b) {
        _ if *ty == Type::Citext => None,
        (Data::Text(a), Data::Text(b)) => {
            let both = (0..a.len()).map(|row| (a.get(row), b.get(row)));
            Some(both.map(|(a, b)| op.of(a[..seen(a)].cmp(&b[..seen(b)]))).collect())
        }
        (Data::Text(a), Data::Same(Value::String(b), _)) => {
            let b = &b[..seen(b)];
            Some(match op {
                // Most texts that differ have other lengths.
                Comparison::Equal => each_text(a, |a| a[..seen(a)] == *b),
                Comparison::NotEqual => each_text(a, |a| a[..seen(a)] != *b),
                _ => each_text(a, |a| op.of(a[..seen(a)].cmp(b))),
            })
        }
        (Data::Same(..), Data::Text(_)) => texts_ordered(op.mirrored(), ty, b, a),
        _ => None,
    }
}

/// Compares values of type `ty` row by row, by SQL's three truth values.
pub(super) fn compare(op: Comparison, ty: &Type, a: &Vector, b: &Vector) -> Result<Vector> {
    let rows = a.len();
    if let (Data::Same(x, _), Data::Same(y, _)) = (&a.data, &b.data) {
        return Ok(Vector::same(compared(op, ty, x, y), rows));
    }
    let (x, y) = (&a.data, &b.data);
    let found = both(x, y, side::int32)
        .and_then(|sides| ordered(op, sides, |a, b| a.cmp(&b)))
        .or_else(|| both(x, y, side::int64).and_then(|sides| ordered(op, sides, |a, b| a.cmp(&b))))
        .or_else(|| both(x, y, side::double).and_then(|sides| ordered(op, sides, doubles)))
        .or_else(|| both(x, y, side::bool).and_then(|sides| ordered(op, sides, |a, b| a.cmp(&b))))
        .or_else(|| decimals_ordered(op, x, y))
        .or_else(|| texts_ordered(op, ty, x, y));
    match found {
        Some(found) => Ok(Vector {
            data: Data::Bool(found),
            nulls: either_null(a, b),
        }),
        None => each_row(rows, |row| Ok(compared(op, ty, &a.value(row), &b.value(row)))),
    }
}

/// The rows in which one of two vectors is null.
pub(super) fn either_null(a: &Vector, b: &Vector) -> Option<Vec<bool>> {
    match (&a.nulls, &b.nulls) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a | b).collect()),
    }
}

/// Which values are among constants, where one look at a table of these tells it.
fn members(ty: &Type, values: &Data, constants: &[&Value]) -> Option<Vec<bool>> {
    /// More constants than these are looked for by halves.
    const FEW: usize = 8;
    fn among<T: Copy + Ord>(values: &[T], mut all: Vec<T>) -> Vec<bool> {
        all.sort_unstable();
        match all.len() <= FEW {
            true => values.iter().map(|value| all.contains(value)).collect(),
            false => values.iter().map(|value| all.binary_search(value).is_ok()).collect(),
        }
    }
    Some(match values {
        Data::Int32(values) => {
            let int32 = |value: &&Value| match value {
                Value::Int32(value) => Some(*value),
                _ => None,
            };
            among(values, constants.iter().map(int32).collect::<Option<_>>()?)
        }
        Data::Int64(values) => {
            let int64 = |value: &&Value| match value {
                Value::Int64(value) => Some(*value),
                _ => None,
            };
            among(values, constants.iter().map(int64).collect::<Option<_>>()?)
        }
        Data::Text(texts) if !matches!(ty, Type::Bpchar | Type::Citext) => {
            let text = |value: &&Value| value.as_str().map(str::to_owned);
            let mut all: Vec<String> = constants.iter().map(text).collect::<Option<_>>()?;
            all.sort_unstable();
            each_text(texts, |text| all.binary_search_by(|own| own.as_str().cmp(text)).is_ok())
        }
        _ => return None,
    })
}

/// Whether values of type `ty` are among constants.
pub(super) fn is_in(ty: &Type, values: &Vector, items: &[Expr], negated: bool) -> Result<Vector> {
    let rows = values.len();
    let (mut constants, mut has_null) = (Vec::with_capacity(items.len()), false);
    for item in items {
        match item.node() {
            Node::Const(Value::Null, _) => has_null = true,
            Node::Const(value, _) => constants.push(value),
            _ => {}
        }
    }
    let found = match members(ty, &values.data, &constants) {
        Some(found) => found,
        None => {
            let mut found = vec![false; rows];
            for item in constants {
                let equal = compare(Comparison::Equal, ty, values, &Vector::same(item.clone(), rows))?;
                for (row, found) in found.iter_mut().enumerate() {
                    *found |= match &equal.data {
                        Data::Bool(equal) => equal[row],
                        _ => matches!(equal.value(row), Value::Bool(true)),
                    };
                }
            }
            found
        }
    };
    // What is not found is unknown beside a null.
    let unknown = |row: usize| values.is_null(row) || has_null && !found[row];
    let nulls = (has_null || values.may_be_null()).then(|| (0..rows).map(unknown).collect());
    Ok(Vector {
        data: Data::Bool(found.into_iter().map(|found| found != negated).collect()),
        nulls,
    })
}
