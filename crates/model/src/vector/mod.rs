//! Values of one column of many rows, side by side: what operators over batches compute with.
//!
//! A [`Vector`] holds values of one type where all have one, so that a loop over them looks at no types; [`Data::Values`] holds anything else.
//! Which form values have never changes what they are: [`Vector::value`] gives the values that went in, with the scale of their
//! decimals. They are made by a [`Builder`].

mod builder;
mod hash;
mod texts;

pub use builder::Builder;
pub use hash::Seed;
pub use texts::{Pool, Texts};

use crate::decimal::DecimalParts;
use crate::{Decimal128, Value};

/// Digits behind the point of decimals that are held as whole numbers, at most.
pub const SCALE_MAX: u8 = 18;

/// The place of no row: [`Vector::gather`] gives null there.
pub const NO_ROW: u32 = u32::MAX;

/// Values of one column.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The values; those of null rows mean nothing.
    pub data: Data,
    /// Which rows are null, unless none is.
    pub nulls: Option<Vec<bool>>,
}

/// Values in the form that their type allows.
#[derive(Clone, Debug)]
pub enum Data {
    /// So many rows have this value, which may be null.
    Same(Value, usize),
    /// Booleans.
    Bool(Vec<bool>),
    /// [`Value::Int32`].
    Int32(Vec<i32>),
    /// [`Value::Int64`].
    Int64(Vec<i64>),
    /// [`Value::Double`].
    Double(Vec<f64>),
    /// [`Value::Decimal128`] with one exponent: `digits × 10^-scale`. None is a negative zero.
    Decimal {
        /// The digits.
        digits: Vec<i64>,
        /// How many of them stand behind the point; [`SCALE_MAX`] at most.
        scale: u8,
    },
    /// [`Value::String`].
    Text(Texts),
    /// Any values.
    Values(Vec<Value>),
}

/// The decimal `digits × 10^-scale`.
pub fn decimal(digits: i64, scale: u8) -> Decimal128 {
    Decimal128::from_parts(DecimalParts {
        negative: digits < 0,
        coefficient: u128::from(digits.unsigned_abs()),
        exponent: -i32::from(scale),
    })
    .unwrap_or(Decimal128::ZERO)
}

/// The digits and the scale of a decimal that has such a form; `None` for large and small ones, infinities, NaN and negative zeros.
pub fn digits(value: Decimal128) -> Option<(i64, u8)> {
    let parts = value.parts()?;
    let digits = i64::try_from(parts.coefficient).ok()?;
    let scale = u8::try_from(parts.exponent.checked_neg()?).ok()?;
    let is_plain = scale <= SCALE_MAX && !(parts.negative && digits == 0);
    is_plain.then_some((if parts.negative { -digits } else { digits }, scale))
}

impl Data {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Same(_, len) => *len,
            Self::Bool(values) => values.len(),
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Decimal { digits, .. } => digits.len(),
            Self::Text(texts) => texts.len(),
            Self::Values(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Vector {
    /// No rows.
    fn default() -> Self {
        Self::same(Value::Null, 0)
    }
}

impl From<Data> for Vector {
    fn from(data: Data) -> Self {
        Self { data, nulls: None }
    }
}

impl Vector {
    /// So many rows with one value.
    pub fn same(value: Value, len: usize) -> Self {
        Data::Same(value, len).into()
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row is null.
    pub fn is_null(&self, row: usize) -> bool {
        match &self.nulls {
            Some(nulls) => nulls[row],
            None => match &self.data {
                Data::Same(value, _) => matches!(value, Value::Null),
                Data::Values(values) => matches!(values[row], Value::Null),
                _ => false,
            },
        }
    }

    /// Whether some row may be null.
    pub fn may_be_null(&self) -> bool {
        self.nulls.is_some() || matches!(self.data, Data::Values(_) | Data::Same(Value::Null, _))
    }

    /// The value of a row.
    pub fn value(&self, row: usize) -> Value {
        if self.is_null(row) {
            return Value::Null;
        }
        match &self.data {
            Data::Same(value, _) => value.clone(),
            Data::Bool(values) => Value::Bool(values[row]),
            Data::Int32(values) => Value::Int32(values[row]),
            Data::Int64(values) => Value::Int64(values[row]),
            Data::Double(values) => Value::Double(values[row]),
            Data::Decimal { digits, scale } => Value::Decimal128(decimal(digits[row], *scale)),
            Data::Text(texts) => Value::String(texts.get(row).into()),
            Data::Values(values) => values[row].clone(),
        }
    }

    /// The values of the rows at `places`, null for [`NO_ROW`].
    pub fn gather(&self, places: &[u32]) -> Self {
        fn pick<T: Copy + Default>(values: &[T], places: &[u32]) -> Vec<T> {
            let pick = |at: &u32| values.get(*at as usize).copied().unwrap_or_default();
            places.iter().map(pick).collect()
        }
        let data = match &self.data {
            Data::Same(value, len) => {
                // Where there may be places of no row the same value is not everywhere.
                if *len == 0 || !matches!(value, Value::Null) && places.contains(&NO_ROW) {
                    let each = places.iter().map(|at| match (*at as usize) < *len {
                        true => value.clone(),
                        false => Value::Null,
                    });
                    Data::Values(each.collect())
                } else {
                    Data::Same(value.clone(), places.len())
                }
            }
            Data::Bool(values) => Data::Bool(pick(values, places)),
            Data::Int32(values) => Data::Int32(pick(values, places)),
            Data::Int64(values) => Data::Int64(pick(values, places)),
            Data::Double(values) => Data::Double(pick(values, places)),
            Data::Decimal { digits, scale } => Data::Decimal {
                digits: pick(digits, places),
                scale: *scale,
            },
            Data::Text(texts) => Data::Text(texts.gather(places)),
            Data::Values(values) => {
                let pick = |at: &u32| values.get(*at as usize).cloned().unwrap_or(Value::Null);
                Data::Values(places.iter().map(pick).collect())
            }
        };
        let is_typed = !matches!(data, Data::Values(_) | Data::Same(..));
        let nulls = match &self.nulls {
            Some(nulls) => Some(
                places
                    .iter()
                    .map(|at| nulls.get(*at as usize).copied().unwrap_or(true))
                    .collect(),
            ),
            None if is_typed && places.contains(&NO_ROW) => Some(places.iter().map(|at| *at == NO_ROW).collect()),
            None => None,
        };
        Self { data, nulls }
    }

    /// Whether a row of this has the value that a row of another one has, by [`crate::values_equal`]; null is equal to null.
    pub fn equals(&self, row: usize, other: &Self, other_row: usize) -> bool {
        match (self.is_null(row), other.is_null(other_row)) {
            (false, false) => {}
            (a, b) => return a && b,
        }
        match (&self.data, &other.data) {
            (Data::Bool(a), Data::Bool(b)) => a[row] == b[other_row],
            (Data::Int32(a), Data::Int32(b)) => a[row] == b[other_row],
            (Data::Int64(a), Data::Int64(b)) => a[row] == b[other_row],
            (Data::Text(a), Data::Text(b)) => a.get(row) == b.get(other_row),
            (Data::Decimal { digits: a, scale: s }, Data::Decimal { digits: b, scale: t }) if s == t => {
                a[row] == b[other_row]
            }
            (Data::Values(a), Data::Values(b)) => crate::values_equal(&a[row], &b[other_row]),
            _ => crate::values_equal(&self.value(row), &other.value(other_row)),
        }
    }

    /// Mixes the hash of each row's value into `hashes`, one for each row. Equal values have equal hashes whatever form they are in.
    pub fn hash(&self, seed: &Seed, hashes: &mut [u64]) {
        if let Data::Same(value, _) = &self.data {
            let hash = seed.value(value);
            return hashes.iter_mut().for_each(|at| *at = seed.mixed(*at, hash));
        }
        let null = seed.value(&Value::Null);
        for (row, at) in hashes.iter_mut().enumerate() {
            let hash = match &self.data {
                _ if self.nulls.as_ref().is_some_and(|nulls| nulls[row]) => null,
                Data::Int32(values) => seed.whole(i64::from(values[row])),
                Data::Int64(values) => seed.whole(values[row]),
                Data::Text(texts) => seed.text(texts.get(row)),
                Data::Values(values) => seed.value(&values[row]),
                _ => seed.value(&self.value(row)),
            };
            *at = seed.mixed(*at, hash);
        }
    }

    /// Bytes of the largest of its values, if one is large.
    pub fn heaviest(&self) -> usize {
        match &self.data {
            Data::Same(value, _) => value.weight(),
            Data::Values(values) => values.iter().map(Value::weight).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Bytes that it takes, about.
    pub fn weight(&self) -> usize {
        let values = match &self.data {
            Data::Same(value, _) => value.weight(),
            Data::Bool(values) => values.len(),
            Data::Int32(values) => values.len() * 4,
            Data::Int64(values) => values.len() * 8,
            Data::Double(values) => values.len() * 8,
            Data::Decimal { digits, .. } => digits.len() * 8,
            Data::Text(texts) => texts.weight(),
            Data::Values(values) => values.iter().map(Value::weight).sum(),
        };
        size_of::<Self>() + values + self.nulls.as_ref().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Value]) -> Vector {
        let mut builder = Builder::default();
        values.iter().for_each(|value| builder.push(value.clone()));
        builder.finish()
    }

    fn shown(vector: &Vector) -> String {
        let values: Vec<Value> = (0..vector.len()).map(|row| vector.value(row)).collect();
        format!("{values:?}")
    }

    fn samples() -> Vec<Vec<Value>> {
        let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).expect("a decimal").0);
        vec![
            vec![],
            vec![Value::Null, Value::Null],
            vec![Value::Int32(1), Value::Null, Value::Int32(-7)],
            vec![Value::Null, Value::Int64(1), Value::Int64(i64::MIN)],
            vec![
                Value::Int32(1),
                Value::Int64(1),
                Value::Double(1.0),
                decimal("1.0"),
                decimal("1.00"),
            ],
            vec![Value::Double(0.5), Value::Double(-0.0), Value::Double(f64::NAN)],
            vec![
                decimal("1.50"),
                decimal("-0.01"),
                Value::Null,
                decimal("92233720368547758.07"),
            ],
            vec![
                decimal("1.50"),
                decimal("1.5"),
                decimal("-0.00"),
                decimal("NaN"),
                decimal("1E+3"),
            ],
            vec![Value::Bool(true), Value::Bool(false)],
            vec![
                Value::String("".into()),
                Value::String("é".into()),
                Value::Null,
                Value::String("ab".into()),
            ],
            vec![Value::String("1".into()), Value::Int32(1)],
        ]
    }

    #[test]
    fn values_come_out_as_they_went_in() {
        for values in samples() {
            let vector = of(&values);
            assert_eq!(shown(&vector), format!("{values:?}"));
            let places: Vec<u32> = (0..values.len() as u32).rev().chain([NO_ROW]).collect();
            let picked: Vec<Value> = values.iter().rev().cloned().chain([Value::Null]).collect();
            assert_eq!(shown(&vector.gather(&places)), format!("{picked:?}"));
            let mut again = Builder::default();
            (0..values.len()).for_each(|row| again.push_from(&vector, row));
            assert_eq!(shown(&again.finish()), format!("{values:?}"));
        }
    }

    #[test]
    fn equal_values_have_equal_hashes_in_every_form() {
        let seed = Seed::default();
        let vectors: Vec<Vector> = samples().iter().map(|values| of(values)).collect();
        let hashed: Vec<Vec<u64>> = vectors
            .iter()
            .map(|vector| {
                let mut hashes = vec![0; vector.len()];
                vector.hash(&seed, &mut hashes);
                hashes
            })
            .collect();
        for (a, x) in vectors.iter().zip(&hashed) {
            for (b, y) in vectors.iter().zip(&hashed) {
                for (i, x) in x.iter().enumerate() {
                    for (j, y) in y.iter().enumerate() {
                        let equal = crate::values_equal(&a.value(i), &b.value(j));
                        assert_eq!(a.equals(i, b, j), equal, "{:?} {:?}", a.value(i), b.value(j));
                        assert!(!equal || x == y, "{:?} {:?}", a.value(i), b.value(j));
                    }
                }
            }
        }
    }
}
