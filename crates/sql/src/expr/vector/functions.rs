//! Functions of vectors, and casts of dates. `None` where there is no loop, or where one met what it does not compute.

use super::super::function::{Function, Param};
use crate::types::Type;
use crate::types::interval::DAY_US;
use crate::types::units::{Whole, is_finite, unit_us};
use nestor_model::vector::{Data, Vector};

/// What a function gives for vectors of its arguments.
pub(super) fn of(function: &Function, args: &[&Vector]) -> Option<Vector> {
    let takes = |types: &[Type]| {
        let mut pairs = function.args.iter().zip(types);
        function.args.len() == types.len() && pairs.all(|(param, ty)| *param == Param::Type(ty.clone()))
    };
    match (function.name, args) {
        ("length" | "char_length" | "character_length", [texts]) if takes(&[Type::Text]) => lengths(texts),
        ("extract", [field, values]) if takes(&[Type::Text, Type::Timestamp]) || takes(&[Type::Text, Type::Date]) => {
            parts(field, values)
        }
        ("date_trunc", [field, values]) if takes(&[Type::Text, Type::Timestamp]) => truncated(field, values),
        _ => None,
    }
}

/// Characters of texts.
fn lengths(texts: &Vector) -> Option<Vector> {
    let Data::Text(all) = &texts.data else {
        return None;
    };
    let length = |row: usize| i32::try_from(all.get(row).chars().count()).ok();
    Some(Vector {
        data: Data::Int32((0..all.len()).map(length).collect::<Option<_>>()?),
        nulls: texts.nulls.clone(),
    })
}

/// The text that all rows have.
fn text(vector: &Vector) -> Option<&str> {
    match &vector.data {
        Data::Same(value, _) => value.as_str(),
        _ => None,
    }
}

/// Timestamps, of dates their midnights, if all are finite; those of null rows are any.
fn moments(values: &Vector) -> Option<Vec<i64>> {
    let is_null = |row: usize| values.nulls.as_ref().is_some_and(|nulls| nulls[row]);
    let finite = |(row, us): (usize, i64)| match is_null(row) {
        true => Some(0),
        false => is_finite(us).then_some(us),
    };
    match &values.data {
        Data::Int64(values) => values.iter().copied().enumerate().map(finite).collect(),
        Data::Int32(days) => {
            let midnight = |(row, days): (usize, &i32)| match is_null(row) {
                true => Some(0),
                false => midnight(*days),
            };
            days.iter().enumerate().map(midnight).collect()
        }
        _ => None,
    }
}

/// The beginning of a day that is no infinity and has one.
fn midnight(days: i32) -> Option<i64> {
    let is_finite = days != i32::MAX && days != i32::MIN;
    i64::from(days).checked_mul(DAY_US).filter(|_| is_finite)
}

/// Whole numbers that are parts of moments.
fn parts(field: &Vector, values: &Vector) -> Option<Vector> {
    let is_date = matches!(values.data, Data::Int32(_));
    let part = Whole::named(text(field)?).filter(|part| !(is_date && matches!(part, Whole::Clock(..))))?;
    let digits = moments(values)?.into_iter().map(|us| part.of(us)).collect();
    Some(Vector {
        data: Data::Decimal { digits, scale: 0 },
        nulls: values.nulls.clone(),
    })
}

/// Moments cut to the beginning of a unit.
fn truncated(field: &Vector, values: &Vector) -> Option<Vector> {
    let unit = unit_us(text(field)?)?;
    let cut = |us: i64| us.div_euclid(unit).checked_mul(unit);
    Some(Vector {
        data: Data::Int64(moments(values)?.into_iter().map(cut).collect::<Option<_>>()?),
        nulls: values.nulls.clone(),
    })
}

/// Dates as timestamps.
pub(super) fn as_timestamps(values: &Vector, from: &Type, to: &Type, modifier: i32) -> Option<Vector> {
    let is_it = *from == Type::Date && *to == Type::Timestamp && modifier == -1;
    let Data::Int32(_) = values.data else { return None };
    Some(Vector {
        data: Data::Int64(moments(values).filter(|_| is_it)?),
        nulls: values.nulls.clone(),
    })
}
