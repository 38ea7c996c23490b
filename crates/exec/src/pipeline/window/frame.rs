//! Which rows of a partition are in the window of each row.

use nestor_model::number::Num;
use nestor_model::statement::work;
use nestor_model::{Error, Result, Value, ValueRef, compare};
use nestor_query::expr::Unit;
use nestor_query::stage::{Bound, Bounds};
use std::cmp::Ordering;

/// Positions from the first to behind the last row of a window.
pub(super) type Frame = (usize, usize);

/// The frames of all rows, one after the other.
pub(super) struct Frames<'b> {
    bounds: &'b Bounds,
    len: usize,
    /// Of ranges, the value of the sort field of each row, ascending.
    values: Vec<Value>,
    at: usize,
    /// Where the range of the row before begins and ends.
    from: usize,
    to: usize,
}

impl<'b> Frames<'b> {
    /// `sort_values` is only called for ranges.
    pub(super) fn new(
        bounds: &'b Bounds,
        len: usize,
        sort_values: impl FnOnce() -> Result<Vec<Value>>,
    ) -> Result<Self> {
        let mut values = Vec::new();
        if let Bounds::Range(_, _, unit) = bounds {
            values = sort_values()?;
            values.iter().try_for_each(|value| check(value, *unit))?;
        }
        Ok(Self {
            bounds,
            len,
            values,
            at: 0,
            from: 0,
            to: 0,
        })
    }

    /// The frame of the next row.
    pub(super) fn next(&mut self) -> Result<Option<Frame>> {
        let at = self.at;
        if at >= self.len {
            return Ok(None);
        }
        self.at += 1;
        match self.bounds {
            Bounds::Documents(lower, upper) => {
                let place = |offset: i64| (at as i64).saturating_add(offset).clamp(0, self.len as i64) as usize;
                let from = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => at,
                    Bound::Offset(n) => place(*n),
                };
                let to = match upper {
                    Bound::Unbounded => self.len,
                    Bound::Current => at + 1,
                    Bound::Offset(n) => place(n.saturating_add(1)),
                };
                Ok(Some((from, to.max(from))))
            }
            Bounds::Range(lower, upper, unit) => self.range(at, *lower, *upper, *unit).map(Some),
        }
    }

    /// Both ends only move forwards, as the values ascend.
    fn range(&mut self, at: usize, lower: Bound<Num>, upper: Bound<Num>, unit: Option<Unit>) -> Result<Frame> {
        let (values, value) = (&self.values, &self.values[at]);
        if let Some(least) = threshold(value, lower, unit)? {
            while self.from < values.len() && compare(&values[self.from], &least) == Ordering::Less {
                work(1)?;
                self.from += 1;
            }
        }
        match threshold(value, upper, unit)? {
            None => self.to = values.len(),
            Some(most) => {
                while self.to < values.len() && compare(&values[self.to], &most) != Ordering::Greater {
                    work(1)?;
                    self.to += 1;
                }
            }
        }
        Ok((self.from, self.to.max(self.from)))
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

    fn frames(bounds: &Bounds, len: usize, values: impl FnOnce() -> Result<Vec<Value>>) -> Result<Vec<Frame>> {
        let mut frames = Frames::new(bounds, len, values)?;
        std::iter::from_fn(|| frames.next().transpose()).collect()
    }

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
