//! Comparisons of dates as ranges of moments: a document holds a date as a moment, and all moments of a day are that day.

use crate::expr::Comparison;
use crate::types::{Type, datetime};
use nestor_model::Value;

const DAY_MS: i64 = 86_400_000;
const DAY_US: i64 = DAY_MS * 1000;

/// The moments, in milliseconds since 1970, of which the day compares so with a value: from the first on, up to and without the last.
#[derive(Debug, PartialEq, Eq)]
pub struct Moments {
    /// The first; `None` where there is none.
    pub from: Option<i64>,
    /// The one after the last; `None` where there is none.
    pub to: Option<i64>,
}

/// The moments of the days that compare so with a `date`, or whose midnight does with a `timestamp`; `None` when there are none.
pub fn moments(op: Comparison, ty: &Type, value: &Value) -> Option<Moments> {
    // The first day that is not before the value, and the last that is not after it.
    let (not_before, not_after) = match (ty, value) {
        (Type::Date, Value::Int32(day)) => (i64::from(*day), i64::from(*day)),
        (Type::Timestamp, Value::Int64(datetime::INFINITY)) => (i64::from(i32::MAX), i64::from(i32::MAX)),
        (Type::Timestamp, Value::Int64(datetime::NEGATIVE_INFINITY)) => (i64::from(i32::MIN), i64::from(i32::MIN)),
        (Type::Timestamp, Value::Int64(us)) => {
            let day = us.div_euclid(DAY_US);
            (day + i64::from(us.rem_euclid(DAY_US) != 0), day)
        }
        _ => return None,
    };
    let begin = |day: i64| Some(day * DAY_MS);
    let (from, to) = match op {
        Comparison::Less => (None, begin(not_before)),
        Comparison::LessEqual => (None, begin(not_after + 1)),
        Comparison::Greater => (begin(not_after + 1), None),
        Comparison::GreaterEqual => (begin(not_before), None),
        Comparison::Equal if not_before == not_after => (begin(not_before), begin(not_before + 1)),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    Some(Moments { from, to })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual};

    /// Against what a date is when a moment is read and its midnight compared.
    #[test]
    fn a_moment_is_found_when_its_day_compares_so() {
        let hour = 3_600_000;
        let values = (-2..=2).flat_map(|day| {
            let at = day * DAY_US;
            [at, at + 1, at + 12 * hour * 1000, at - 1].map(|us| (Type::Timestamp, Value::Int64(us), us))
        });
        let dates = (-2..=2i32).map(|day| (Type::Date, Value::Int32(day), i64::from(day) * DAY_US));
        let infinite = [
            (Type::Timestamp, Value::Int64(i64::MAX), i64::MAX),
            (Type::Timestamp, Value::Int64(i64::MIN), i64::MIN),
        ];
        for (ty, value, us) in values.chain(dates).chain(infinite) {
            for ms in (-80..=80)
                .map(|hours| hours * hour - 1)
                .chain((-3..=3).map(|day| day * DAY_MS))
            {
                let midnight = ms.div_euclid(DAY_MS) * DAY_US;
                for op in [Equal, Less, LessEqual, Greater, GreaterEqual] {
                    let found = moments(op, &ty, &value).is_some_and(|range| {
                        range.from.is_none_or(|from| from <= ms) && range.to.is_none_or(|to| ms < to)
                    });
                    assert_eq!(found, op.of(midnight.cmp(&us)), "{ms} {op:?} {value:?}");
                }
            }
        }
    }
}
