//! What type a column has in Arrow, found by the values that it is to hold.

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use nestor_model::{Decimal128, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;

/// The key of a field's metadata that says which type of documents its texts are.
pub const TYPE: &str = "nestor.type";
/// Digits of a decimal.
pub const PRECISION: u8 = 38;

/// The type of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Shape {
    /// No value was seen: texts.
    #[default]
    Unknown,
    /// Booleans.
    Bool,
    /// [`ValueRef::Int32`].
    Int32,
    /// [`ValueRef::Int64`], and ints.
    Int64,
    /// Doubles, and whole numbers that are exact as such.
    Double,
    /// Decimals with so many digits behind the point, and whole numbers.
    Decimal(i8),
    /// Texts.
    Text,
    /// ObjectIds.
    ObjectId,
    /// Bytes.
    Binary,
    /// UUIDs.
    Uuid,
    /// [`ValueRef::DateTime`].
    Millis,
    /// Int32: days since 1970.
    Days,
    /// Int64: microseconds since 1970; an instant, if `true`.
    Micros(bool),
    /// Int64: microseconds of a day.
    TimeOfDay,
    /// Arrays.
    List(Box<Shape>),
    /// Documents.
    Struct(Vec<(String, Shape)>),
    /// Any values, as Extended JSON.
    Json,
}

/// Levels of documents and arrays; what lies deeper is JSON.
const LEVELS_MAX: usize = 32;
/// Fields of a document; one with more is JSON.
const FIELDS_MAX: usize = 10_000;

impl Shape {
    /// Learns that a value is to be held.
    pub fn note(&mut self, value: ValueRef<'_>) {
        self.note_at(value, 0);
    }

    fn note_at(&mut self, value: ValueRef<'_>, level: usize) {
        use ValueRef as V;
        let seen = match value {
            V::Missing | V::Null | V::Undefined => return,
            V::Bool(_) => Self::Bool,
            V::Int32(_) => Self::Int32,
            V::Int64(_) => Self::Int64,
            V::Double(_) => Self::Double,
            V::Decimal128(value) => match scale(value) {
                Some(scale) => Self::Decimal(scale),
                None => Self::Json,
            },
            V::String(_) => Self::Text,
            V::ObjectId(_) => Self::ObjectId,
            V::DateTime(_) => Self::Millis,
            V::Binary { subtype: 4, bytes } if bytes.len() == 16 => Self::Uuid,
            V::Binary { subtype: 0, .. } => Self::Binary,
            V::Array(items) if level < LEVELS_MAX => {
                let mut inner = match std::mem::take(self) {
                    Self::List(inner) => *inner,
                    Self::Unknown => Self::Unknown,
                    _ => {
                        *self = Self::Json;
                        return;
                    }
                };
                items.iter().for_each(|item| inner.note_at(item, level + 1));
                *self = Self::List(Box::new(inner));
                return;
            }
            V::Document(doc) if level < LEVELS_MAX => {
                let mut fields = match std::mem::take(self) {
                    Self::Struct(fields) => fields,
                    Self::Unknown => Vec::new(),
                    _ => {
                        *self = Self::Json;
                        return;
                    }
                };
                let mut next = 0;
                for (name, value) in doc.iter() {
                    // Documents mostly have their fields in one order.
                    let found = match fields.get(next) {
                        Some((own, _)) if own == name => Some(next),
                        _ => fields.iter().position(|(own, _)| own == name),
                    };
                    let at = found.unwrap_or_else(|| {
                        fields.push((name.to_owned(), Self::Unknown));
                        fields.len() - 1
                    });
                    fields[at].1.note_at(value, level + 1);
                    next = at + 1;
                }
                *self = match fields.len() > FIELDS_MAX {
                    true => Self::Json,
                    false => Self::Struct(fields),
                };
                return;
            }
            _ => Self::Json,
        };
        *self = std::mem::take(self).with(seen);
    }

    fn with(self, other: Self) -> Self {
        use Shape::{Decimal, Double, Int32, Int64, Json, Unknown};
        match (self, other) {
            (Unknown, other) => other,
            (a, b) if a == b => a,
            (Int32, Int64) | (Int64, Int32) => Int64,
            (Double, Int32 | Int64) | (Int32 | Int64, Double) => Double,
            (Decimal(scale), Int32 | Int64) | (Int32 | Int64, Decimal(scale)) => Decimal(scale),
            (Decimal(a), Decimal(b)) => Decimal(a.max(b)),
            _ => Json,
        }
    }

    /// The same with no column that a file could not hold: what is not known is text, and a document without fields JSON.
    pub fn settled(self) -> Self {
        match self {
            Self::Unknown => Self::Text,
            Self::List(inner) => Self::List(Box::new(inner.settled())),
            Self::Struct(fields) if fields.is_empty() => Self::Json,
            Self::Struct(fields) => {
                let settled = fields.into_iter().map(|(name, shape)| (name, shape.settled()));
                Self::Struct(settled.collect())
            }
            other => other,
        }
    }

    /// The type in Arrow.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Unknown | Self::Text | Self::ObjectId | Self::Json => DataType::Utf8,
            Self::Bool => DataType::Boolean,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Decimal(scale) => DataType::Decimal128(PRECISION, *scale),
            Self::Binary => DataType::Binary,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Millis => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Self::Days => DataType::Date32,
            Self::Micros(true) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Micros(false) => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimeOfDay => DataType::Time64(TimeUnit::Microsecond),
            Self::List(inner) => DataType::List(Arc::new(inner.field("element"))),
            Self::Struct(fields) => DataType::Struct(fields_of(fields)),
        }
    }

    /// The field in Arrow.
    pub fn field(&self, name: &str) -> Field {
        let field = Field::new(name, self.data_type(), true);
        let said = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
        match self {
            Self::ObjectId => field.with_metadata(said(TYPE, "objectId")),
            Self::Json => field.with_metadata(said(TYPE, "json")),
            Self::Uuid => field.with_metadata(said("ARROW:extension:name", "arrow.uuid")),
            _ => field,
        }
    }
}

/// The fields of a document.
pub fn fields_of(fields: &[(String, Shape)]) -> Fields {
    fields.iter().map(|(name, shape)| shape.field(name)).collect()
}

/// How many digits a decimal has behind the point, if all of them have room.
fn scale(value: Decimal128) -> Option<i8> {
    let parts = value.parts()?;
    let scale = i8::try_from(parts.exponent.checked_neg()?.max(0)).ok()?;
    digits(value, scale).map(|_| scale)
}

/// The digits of a decimal with so many behind the point; `None` when that is not exact or has no room.
pub(super) fn digits(value: Decimal128, scale: i8) -> Option<i128> {
    let parts = value.parts()?;
    let coefficient = i128::try_from(parts.coefficient).ok()?;
    let shift = parts.exponent.checked_add(i32::from(scale))?;
    let power = 10i128.checked_pow(shift.unsigned_abs());
    let shifted = match shift >= 0 {
        _ if coefficient == 0 => 0,
        true => coefficient.checked_mul(power?)?,
        false => {
            let power = power?;
            (coefficient % power == 0).then_some(coefficient / power)?
        }
    };
    let most = 10i128.checked_pow(u32::from(PRECISION))?;
    (shifted < most).then_some(if parts.negative { -shifted } else { shifted })
}
