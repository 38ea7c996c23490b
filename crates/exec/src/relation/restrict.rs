//! What whoever reads rows can do without: told to operators, which tell it to their inputs, down to scans that skip segments and leave
//! columns of other rows unread.
//!
//! A hash join says which keys its right input has before it reads the left one; a sort with a limit says what has to come first once it has as
//! many rows as are wanted. Operators may ignore it, so whoever says it still looks at each row.

use nestor_model::Value;
use nestor_model::vector::{Data, Vector};
use std::sync::Arc;

/// Of the rows with values at one place those that are wanted. Null rows are, if that is said.
#[derive(Clone, Debug)]
pub enum Restriction {
    /// Those with one of these whole numbers, and of other values any.
    Among(Arc<Numbers>),
    /// Those that do not come behind a value.
    Order(Order),
}

/// Rows of an order.
#[derive(Clone, Debug)]
pub struct Order {
    /// The last that may be wanted; `None` when that is not known yet, but in which order rows are welcome.
    pub last: Option<Value>,
    /// Largest first.
    pub descending: bool,
    /// Null rows are wanted.
    pub nulls: bool,
    /// Texts are in the order of their bytes.
    pub by_bytes: bool,
}

/// Whole numbers.
#[derive(Debug)]
pub struct Numbers {
    /// The least, and the largest.
    pub ends: (i64, i64),
    /// A bit for each from the least on; empty where that takes too much room.
    bits: Vec<u64>,
    /// All of them in order, if they are few.
    few: Vec<i64>,
}

/// So many numbers are few.
const FEW: u64 = 4096;

/// Bits of a set, at most; and at most so many for each number.
const BITS_MAX: u64 = 1 << 26;
const BITS_EACH: u64 = 512;

impl Numbers {
    /// These numbers; `None` where there are none.
    pub fn of(numbers: impl Iterator<Item = i64> + Clone) -> Option<Self> {
        let (mut least, mut most, mut count) = (i64::MAX, i64::MIN, 0u64);
        for number in numbers.clone() {
            (least, most, count) = (least.min(number), most.max(number), count + 1);
        }
        let span = most.checked_sub(least).map(i64::cast_unsigned).unwrap_or(u64::MAX);
        let mut bits = Vec::new();
        if count > 0 && span < BITS_MAX.min(count.saturating_mul(BITS_EACH)) {
            bits = vec![0; span as usize / 64 + 1];
            for number in numbers.clone() {
                let at = (number - least) as usize;
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        let mut few = Vec::new();
        if count <= FEW {
            few.extend(numbers);
            few.sort_unstable();
            few.dedup();
        }
        (count > 0).then_some(Self {
            ends: (least, most),
            bits,
            few,
        })
    }

    /// The numbers in order; `None` if they are many.
    pub fn few(&self) -> Option<&[i64]> {
        (!self.few.is_empty()).then_some(&self.few)
    }

    /// The numbers of a vector; `None` where it has none, or other values.
    pub fn of_vector(values: &Vector) -> Option<Self> {
        Self::of_vectors([values])
    }

    /// The numbers of some vectors; `None` where there are none, or other values.
    pub fn of_vectors<'v>(all: impl IntoIterator<Item = &'v Vector>) -> Option<Self> {
        let mut numbers = Vec::new();
        for values in all {
            let is_there = |row: &usize| !values.is_null(*row);
            let rows = (0..values.len()).filter(is_there);
            match &values.data {
                Data::Int32(own) => numbers.extend(rows.map(|row| i64::from(own[row]))),
                Data::Int64(own) => numbers.extend(rows.map(|row| own[row])),
                _ => return None,
            }
        }
        Self::of(numbers.iter().copied())
    }

    /// Whether a number may be among them.
    #[inline]
    fn may_have(&self, number: i64) -> bool {
        let (least, most) = self.ends;
        if number < least || number > most {
            return false;
        }
        let at = number.wrapping_sub(least) as usize;
        self.bits.get(at / 64).is_none_or(|bits| bits >> (at % 64) & 1 == 1)
    }
}

/// The places for which something holds.
fn places(rows: usize, nulls: (Option<&[bool]>, bool), holds: impl Fn(usize) -> bool) -> Vec<u32> {
    let (nulls, are_wanted) = nulls;
    let mut places = vec![0; rows];
    let mut count = 0;
    for row in 0..rows {
        places[count] = row as u32;
        let is_null = nulls.is_some_and(|nulls| nulls[row]);
        count += usize::from(if is_null { are_wanted } else { holds(row) });
    }
    places.truncate(count);
    places
}

impl Restriction {
    /// The rows of a vector that are wanted; `None` for all of them, or where that cannot be told quickly.
    pub fn places(&self, values: &Vector) -> Option<Vec<u32>> {
        let rows = values.len();
        let nulls = values.nulls.as_deref();
        let found = match self {
            Self::Among(numbers) => match &values.data {
                Data::Int32(values) => places(rows, (nulls, false), |row| numbers.may_have(i64::from(values[row]))),
                Data::Int64(values) => places(rows, (nulls, false), |row| numbers.may_have(values[row])),
                _ => return None,
            },
            Self::Order(order) => {
                let nulls = (nulls, order.nulls);
                match (&values.data, &order.last, order.descending) {
                    (Data::Int32(values), Some(Value::Int32(last)), false) => {
                        places(rows, nulls, |row| values[row] <= *last)
                    }
                    (Data::Int32(values), Some(Value::Int32(last)), true) => {
                        places(rows, nulls, |row| values[row] >= *last)
                    }
                    (Data::Int64(values), Some(Value::Int64(last)), false) => {
                        places(rows, nulls, |row| values[row] <= *last)
                    }
                    (Data::Int64(values), Some(Value::Int64(last)), true) => {
                        places(rows, nulls, |row| values[row] >= *last)
                    }
                    (Data::Text(texts), Some(Value::String(last)), descending) if order.by_bytes => {
                        places(rows, nulls, |row| match descending {
                            false => texts.get(row) <= last.as_str(),
                            true => texts.get(row) >= last.as_str(),
                        })
                    }
                    _ => return None,
                }
            }
        };
        (found.len() < rows).then_some(found)
    }

    /// Whether it takes the place of another one.
    pub(super) fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Order(_), Self::Order(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_found() {
        let numbers = |numbers: &[i64]| Numbers::of(numbers.iter().copied());
        assert!(numbers(&[]).is_none());
        for known in [vec![5, -3, 9], vec![i64::MIN, i64::MAX], vec![7], vec![0, 1 << 40]] {
            let set = numbers(&known).expect("there are some");
            assert!(known.iter().all(|number| set.may_have(*number)));
            let (least, most) = set.ends;
            assert!(least == i64::MIN || !set.may_have(least - 1));
            assert!(most == i64::MAX || !set.may_have(most + 1));
        }
        assert!(!numbers(&[5, -3, 9]).is_some_and(|set| set.may_have(6)));
        let among = Restriction::Among(Arc::new(numbers(&[2, 4]).expect("two")));
        let with_null = Vector {
            data: Data::Int32(vec![2, 3, 4, 4]),
            nulls: Some(vec![false, false, true, false]),
        };
        assert_eq!(Numbers::of_vector(&with_null).map(|numbers| numbers.ends), Some((2, 4)));
        assert!(Numbers::of_vector(&Data::Double(vec![3.0]).into()).is_none());
        assert_eq!(among.places(&with_null), Some(vec![0, 3]));
        assert_eq!(among.places(&Data::Int64(vec![4, 2]).into()), None);
        assert_eq!(among.places(&Data::Double(vec![3.0]).into()), None);
        let order = |last: i32, descending, nulls| {
            Restriction::Order(Order {
                last: Some(Value::Int32(last)),
                descending,
                nulls,
                by_bytes: true,
            })
        };
        assert_eq!(order(3, false, true).places(&with_null), Some(vec![0, 1, 2]));
        assert_eq!(order(3, true, false).places(&with_null), Some(vec![1, 3]));
        assert!(order(3, true, false).replaces(&order(2, true, false)));
    }
}
