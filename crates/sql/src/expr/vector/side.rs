//! The sides of comparisons and operators: a value for each row, or one for all.

use nestor_model::Value;
use nestor_model::vector::{Data, digits};

/// One side.
#[derive(Clone, Copy)]
pub(super) enum Side<'s, T> {
    Many(&'s [T]),
    One(T),
}

impl<T: Copy> Side<'_, T> {
    /// The value of a row.
    pub fn at(&self, row: usize) -> T {
        match self {
            Self::Many(values) => values[row],
            Self::One(value) => *value,
        }
    }
}

macro_rules! side {
    ($name:ident, $ty:ty, $form:ident) => {
        /// Values of this form.
        pub(super) fn $name(data: &Data) -> Option<Side<'_, $ty>> {
            match data {
                Data::$form(values) => Some(Side::Many(values)),
                Data::Same(Value::$form(value), _) => Some(Side::One(*value)),
                _ => None,
            }
        }
    };
}

side!(bool, bool, Bool);
side!(int32, i32, Int32);
side!(int64, i64, Int64);
side!(double, f64, Double);

/// The digits of decimals and their scale.
pub(super) fn decimal(data: &Data) -> Option<(Side<'_, i64>, u8)> {
    match data {
        Data::Decimal { digits, scale } => Some((Side::Many(digits), *scale)),
        Data::Same(Value::Decimal128(value), _) => digits(*value).map(|(digits, scale)| (Side::One(digits), scale)),
        _ => None,
    }
}
