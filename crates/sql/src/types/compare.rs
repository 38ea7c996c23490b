//! Order and equality of values of a type.

use super::timetz::TimeTz;
use super::tsquery::TsQuery;
use super::tsvector::TsVector;
use super::{INTERVAL_SUBTYPE, Type, interval, range};
use nestor_model::order::compare_f64;
use nestor_model::{Array, Value};
use std::cmp::Ordering;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// Its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// The comparison with its sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            same => same,
        }
    }

    /// Whether it holds of values in this order.
    pub fn of(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }
}

/// A text in small letters, by which `citext` compares.
pub fn small(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.chars().map(|c| only(c, c.to_lowercase())).collect(),
    }
}

/// The one character that another becomes, or the character itself where it becomes several.
pub fn only(c: char, mut all: impl Iterator<Item = char>) -> char {
    match (all.next(), all.next()) {
        (Some(found), None) => found,
        _ => c,
    }
}

/// The order of two values of `ty` that are not null. It is total.
pub fn compare(ty: &Type, a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int32(a), Value::Int32(b)) => a.cmp(b),
        (Value::Int64(a), Value::Int64(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) if *ty == Type::Bpchar => {
            a.trim_end_matches(' ').cmp(b.trim_end_matches(' '))
        }
        (Value::String(a), Value::String(b)) if *ty == Type::Citext => small(a).cmp(&small(b)),
        (Value::String(x), Value::String(y)) if matches!(ty, Type::TsVector | Type::TsQuery) => {
            if x == y {
                return Ordering::Equal;
            }
            let order = match ty {
                Type::TsVector => TsVector::of(a).and_then(|own| Ok(own.compare(&TsVector::of(b)?))),
                _ => TsQuery::of(a).and_then(|own| Ok(own.compare(&TsQuery::of(b)?))),
            };
            // What cannot be read because the statement ends is in whatever order.
            order
                .unwrap_or(Ordering::Equal)
                .then_with(|| x.as_str().cmp(y.as_str()))
        }
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        // Not a number is larger than all others here, and smaller in BSON.
        (Value::Double(a), Value::Double(b)) => match (a.is_nan(), b.is_nan()) {
            (false, false) => compare_f64(*a, *b),
            (a, b) => a.cmp(&b),
        },
        (Value::Decimal128(x), Value::Decimal128(y)) => match (x.is_nan(), y.is_nan()) {
            (false, false) => nestor_model::compare(a, b),
            (x, y) => x.cmp(&y),
        },
        (Value::Binary(x), Value::Binary(y)) if x.subtype == INTERVAL_SUBTYPE && y.subtype == INTERVAL_SUBTYPE => {
            interval::Interval::of(a)
                .total_us()
                .cmp(&interval::Interval::of(b).total_us())
        }
        (Value::Binary(_), Value::Binary(_)) if *ty == Type::Timetz => TimeTz::of(a).compare(TimeTz::of(b)),
        (Value::Binary(x), Value::Binary(y)) => x.bytes.cmp(&y.bytes),
        (Value::Document(_), Value::Document(_)) => match ty {
            Type::Composite(own) => own.compare(a, b),
            _ => nestor_model::compare(a, b),
        },
        (Value::Array(_), Value::Array(_)) if ty.is_ranges() => range::compare_values(ty, a, b),
        (Value::Array(a), Value::Array(b)) if *ty != Type::Jsonb => {
            let element = ty.element().unwrap_or(&Type::Unknown);
            compare_arrays(element, a, b)
        }
        _ => nestor_model::compare(a, b),
    }
}

fn compare_arrays(element: &Type, a: &Array, b: &Array) -> Ordering {
    for (a, b) in a.iter().zip(b.iter()) {
        let (a, b) = (a.to_value(), b.to_value());
        let order = match (&a, &b) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            (a, b) => compare(element, a, b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Whether [`key`] gives values of `ty` as they are.
pub fn is_own_key(ty: &Type) -> bool {
    match ty {
        Type::Interval | Type::Bpchar | Type::Citext => false,
        Type::Array(element) => !matches!(**element, Type::Interval | Type::Citext),
        _ => true,
    }
}

/// Whether equal values of `ty` are the same value, as 1.0 and 1.00 are not.
pub fn is_exact(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Bool | Type::Text | Type::Varchar | Type::Date | Type::Timestamp
    ) || matches!(ty, Type::Timestamptz | Type::Uuid | Type::ObjectId)
}

/// A value by which BSON's equality tells values of `ty` apart as SQL does.
pub fn key(ty: &Type, value: Value) -> Value {
    match (ty, value) {
        (Type::Interval, value @ Value::Binary(_)) => {
            let total = interval::Interval::of(&value).total_us();
            Value::String(total.to_string().into())
        }
        (Type::Bpchar, Value::String(text)) => Value::String(text.trim_end_matches(' ').into()),
        (Type::Citext, Value::String(text)) => Value::String(small(&text).into()),
        (Type::Array(element), Value::Array(items)) if matches!(**element, Type::Interval | Type::Citext) => {
            Value::Array(Array::new(
                items.iter().map(|item| key(element, item.to_value())).collect(),
            ))
        }
        (_, value) => value,
    }
}
