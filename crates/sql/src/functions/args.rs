//! Arguments as numbers. Binding has cast them to the types of the signature, so that other values do not come here.

use crate::types::integer;
use nestor_model::{Decimal128, Value};

pub(super) fn int(value: &Value) -> i64 {
    integer(value).unwrap_or(0)
}

pub(super) fn double(value: &Value) -> f64 {
    match value {
        Value::Double(n) => *n,
        _ => 0.0,
    }
}

pub(super) fn decimal(value: &Value) -> Decimal128 {
    match value {
        Value::Decimal128(n) => *n,
        _ => Decimal128::ZERO,
    }
}
