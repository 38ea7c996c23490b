//! Which rows of a partition are in the window of each row.

use nestor_model::number::Num;
use nestor_model::{Error, Result, Value, ValueRef, compare};
use nestor_query::expr::Unit;
use nestor_query::stage::{Bound, Bounds};
use std::cmp::Ordering;

/// Positions from the first to behind the last row of a window.
pub(super) type Frame = (usize, usize);

/// The frames of all rows. `sort_values[i]` is the value of the sort field of row `i`, ascending; it is only
/// asked for by ranges.
pub(super) fn frames(
    bounds: &Bounds,
    len: usize,
    sort_values: impl FnOnce() -> Result<Vec<Value>>,
) -> Result<Vec<Frame>> {
    match bounds {
        Bounds::Documents(lower, upper) => {
            let place = |at: usize, offset: i64| (at as i64).saturating_add(offset).clamp(0, len as i64) as usize;
            Ok((0..len)
                .map(|at| {
                    let from = match lower {
                        Bound::Unbounded => 0,
                        Bound::Current => at,
                        Bound::Offset(n) => place(at, *n),
                    };
                    let to = match upper {
                        Bound::Unbounded => len,
                        Bound::Current => at + 1,
                        Bound::Offset(n) => place(at, n.saturating_add(1)),
                    };
                    (from, to.max(from))
                })
                .collect())
        }
        Bounds::Range(lower, upper, unit) => {
            let values = sort_values()?;
            values.iter().try_for_each(|value| check(value, *unit))?;
            range_frames(&values, *lower, *upper, *unit)
        }
    }
}

/// Errors: 5429413 a date without unit, 5429414 no number, 5429513 no date.
fn check(value: &Value, unit: Option<Unit>) -> Result<()> {
    match (unit, value) {
        (Some(_), Value::DateTime(_)) => Ok(()),
        (Some(_), other) => Err(Error::location(
            5_429_513,
            format!(
                "invalid range: expected the sortBy field to be a date, but it was {}",
                other.bson_type().alias()
            ),
        )),
        (None, Value::DateTime(_)) => Err(Error::location(
            5_429_413,
            "for windows that involve date or time ranges, a unit must be provided",
        )),
        (None, other) if other.as_ref().is_number() => Ok(()),
        (None, other) => Err(Error::location(
            5_429_414,
            format!(
                "invalid range: expected the sortBy field to be a number, but it was {}",
                other.bson_type().alias()
            ),
        )),
    }
}

/// Both ends only move forwards, as the values ascend.
fn range_frames(values: &[Value], lower: Bound<Num>, upper: Bound<Num>, unit: Option<Unit>) -> Result<Vec<Frame>> {
    let (mut from, mut to) = (0, 0);
    let mut out = Vec::with_capacity(values.len());
    for value in values {
        if let Some(least) = threshold(value, lower, unit)? {
            while from < values.len() && compare(&values[from], &least) == Ordering::Less {
                from += 1;
            }
        }
        match threshold(value, upper, unit)? {
            None => to = values.len(),
            Some(most) => {
                while to < values.len() && compare(&values[to], &most) != Ordering::Greater {
                    to += 1;
                }
            }
        }
        out.push((from, to.max(from)));
    }
    Ok(out)
}

/// The value at a bound; `None` when it is unbounded.
fn threshold(value: &Value, bound: Bound<Num>, unit: Option<Unit>) -> Result<Option<Value>> {
    let offset = match bound {
        Bound::Unbounded => return Ok(None),
        Bound::Current => return Ok(Some(value.clone())),
        Bound::Offset(n) => n,
    };
    match (unit, value) {
        (Some(unit), Value::DateTime(ms)) => {
            let amount = offset.to_i64_exact().unwrap_or(0);
            let moved = unit.add_utc(*ms, amount);
            moved
                .map(|ms| Some(Value::DateTime(ms)))
                .ok_or_else(|| Error::location(5_166_406, "date overflow in a window's range"))
        }
        _ => {
            let number = Num::from_ref(ValueRef::from(value)).unwrap_or(Num::Int32(0));
            Ok(Some(number.add(offset).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_by_position_and_by_value() {
        let offset = Bound::<i64>::Offset;
        let by_position = frames(&Bounds::Documents(offset(-1), offset(1)), 3, || Ok(vec![])).expect("in range");
        assert_eq!(by_position, [(0, 2), (0, 3), (1, 3)]);
        let behind = frames(&Bounds::Documents(offset(2), offset(3)), 3, || Ok(vec![])).expect("in range");
        assert_eq!(behind, [(2, 3), (3, 3), (3, 3)]);
        let values = || Ok([1, 2, 2, 5].map(Value::from).to_vec());
        let range = Bounds::Range(Bound::Offset(Num::Int32(-1)), Bound::Current, None);
        assert_eq!(
            frames(&range, 4, values).expect("numbers"),
            [(0, 1), (0, 3), (0, 3), (3, 4)]
        );
        let text = || Ok(vec![Value::from("x")]);
        assert_eq!(
            frames(&range, 1, text).expect_err("no number").code().number(),
            5_429_414
        );
    }
}
