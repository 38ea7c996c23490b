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

/// Texts in order; those of `character(n)` without the blanks at their ends.
fn texts_ordered(op: Comparison, ty: &Type, a: &Data, b: &Data) -> Option<Vec<bool>> {
    let seen = |text: &str| match ty {
        Type::Bpchar => text.trim_end_matches(' ').len(),
        _ => text.len(),
    };
    let many = |texts: &Texts, holds: &dyn Fn(&str) -> bool| {
        let each = (0..texts.len()).map(|row| texts.get(row));
        Some(each.map(|text| holds(&text[..seen(text)])).collect())
    };
    match (a, b) {
        (Data::Text(a), Data::Text(b)) => {
            let both = (0..a.len()).map(|row| (a.get(row), b.get(row)));
            Some(both.map(|(a, b)| op.of(a[..seen(a)].cmp(&b[..seen(b)]))).collect())
        }
        (Data::Text(a), Data::Same(Value::String(b), _)) => {
            let b = &b[..seen(b)];
            match op {
                Comparison::Equal | Comparison::NotEqual if *ty != Type::Bpchar => {
                    // Most texts that differ have other lengths.
                    let is_same = |row: usize| a.bytes_of(row) == b.len() && (b.is_empty() || a.get(row) == b);
                    let wanted = op == Comparison::Equal;
                    Some((0..a.len()).map(|row| is_same(row) == wanted).collect())
                }
                _ => many(a, &|a| op.of(a.cmp(b))),
            }
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

/// Whether values of type `ty` are among constants.
pub(super) fn is_in(ty: &Type, values: &Vector, items: &[Expr], negated: bool) -> Result<Vector> {
    let rows = values.len();
    let (mut found, mut has_null) = (vec![false; rows], false);
    for item in items {
        let Node::Const(item, _) = item.node() else { continue };
        if matches!(item, Value::Null) {
            has_null = true;
            continue;
        }
        let equal = compare(Comparison::Equal, ty, values, &Vector::same(item.clone(), rows))?;
        for (row, found) in found.iter_mut().enumerate() {
            *found |= match &equal.data {
                Data::Bool(equal) => equal[row],
                _ => matches!(equal.value(row), Value::Bool(true)),
            };
        }
    }
    // What is not found is unknown beside a null.
    let unknown = |row: usize| values.is_null(row) || has_null && !found[row];
    let nulls = (has_null || values.may_be_null()).then(|| (0..rows).map(unknown).collect());
    Ok(Vector {
        data: Data::Bool(found.into_iter().map(|found| found != negated).collect()),
        nulls,
    })
}
