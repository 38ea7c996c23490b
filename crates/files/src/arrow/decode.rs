//! Values of arrays of Arrow, as documents hold them.

use super::shape::TYPE;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, TimeUnit};
use nestor_model::decimal::DecimalParts;
use nestor_model::extjson;
use nestor_model::{Binary, Decimal128, Document, ObjectId, Value};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// What a field says its texts or bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What they look like.
    Plain,
    /// ObjectIds in hexadecimal digits.
    ObjectId,
    /// Extended JSON.
    Json,
    /// UUIDs.
    Uuid,
}

/// What a field says of itself.
pub fn kind(field: &Field) -> Kind {
    let metadata = field.metadata();
    match metadata.get(TYPE).map(String::as_str) {
        Some("objectId") => Kind::ObjectId,
        Some("json") => Kind::Json,
        _ => match metadata.get("ARROW:extension:name").map(String::as_str) {
            Some("arrow.uuid") => Kind::Uuid,
            _ => Kind::Plain,
        },
    }
}

/// The value at a row of an array that is a column of this field. What is null is `Null`.
///
/// Errors: documents have no such type, or no room for the value.
pub fn value(field: &Field, array: &ArrayRef, row: usize) -> Result<Value, String> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    fn at<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> T::Native {
        array.as_primitive::<T>().value(row)
    }
    let unsupported = || {
        Err(format!(
            "column {}: there is no {} in documents",
            field.name(),
            array.data_type()
        ))
    };
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => Value::Int32(at::<Int8Type>(array, row).into()),
        DataType::Int16 => Value::Int32(at::<Int16Type>(array, row).into()),
        DataType::Int32 => Value::Int32(at::<Int32Type>(array, row)),
        DataType::Int64 => Value::Int64(at::<Int64Type>(array, row)),
        DataType::UInt8 => Value::Int32(at::<UInt8Type>(array, row).into()),
        DataType::UInt16 => Value::Int32(at::<UInt16Type>(array, row).into()),
        DataType::UInt32 => Value::Int64(at::<UInt32Type>(array, row).into()),
        DataType::UInt64 => decimal(i128::from(at::<UInt64Type>(array, row)), 0).ok_or("no room for a number")?,
        DataType::Float16 => Value::Double(at::<Float16Type>(array, row).to_f64()),
        DataType::Float32 => Value::Double(at::<Float32Type>(array, row).into()),
        DataType::Float64 => Value::Double(at::<Float64Type>(array, row)),
        DataType::Decimal32(_, scale) => exact(field, i128::from(at::<Decimal32Type>(array, row)), *scale)?,
        DataType::Decimal64(_, scale) => exact(field, i128::from(at::<Decimal64Type>(array, row)), *scale)?,
        DataType::Decimal128(_, scale) => exact(field, at::<Decimal128Type>(array, row), *scale)?,
        DataType::Utf8 => text(field, array.as_string::<i32>().value(row))?,
        DataType::LargeUtf8 => text(field, array.as_string::<i64>().value(row))?,
        DataType::Utf8View => text(field, array.as_string_view().value(row))?,
        DataType::Binary => bytes(field, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(field, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(field, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(field, array.as_fixed_size_binary().value(row)),
        DataType::Date32 => Value::DateTime(i64::from(at::<Date32Type>(array, row)) * DAY_MS),
        DataType::Date64 => Value::DateTime(at::<Date64Type>(array, row)),
        DataType::Timestamp(..) => Value::DateTime(micros(array, row).ok_or("no room for a moment")?.div_euclid(1000)),
        DataType::Time32(_) | DataType::Time64(_) => Value::Int64(micros(array, row).ok_or("no room for a time")?),
        DataType::List(inner) => list(inner, &array.as_list::<i32>().value(row))?,
        DataType::LargeList(inner) => list(inner, &array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(inner, _) => list(inner, &array.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let own = array.as_struct();
            let mut doc = Document::new();
            for (field, column) in fields.iter().zip(own.columns()) {
                match value(field, column, row)? {
                    Value::Null => {}
                    value => doc.push(field.name().as_str(), value),
                }
            }
            Value::Document(doc)
        }
        DataType::Map(entries, _) => {
            let own = array.as_map().value(row);
            let DataType::Struct(fields) = entries.data_type() else {
                return unsupported();
            };
            let (Some(key), Some(of)) = (fields.first(), fields.get(1)) else {
                return unsupported();
            };
            let mut doc = Document::new();
            for at in 0..own.len() {
                let Value::String(name) = value(key, own.column(0), at)? else {
                    return unsupported();
                };
                doc.push(name, value(of, own.column(1), at)?);
            }
            Value::Document(doc)
        }
        DataType::Dictionary(..) => {
            let own = array.as_any_dictionary();
            // Keys are whole numbers of any width; those of a row that is not null have a place among the values.
            let key = own.keys().slice(row, 1);
            let place = match value(field, &key, 0)? {
                Value::Int32(place) => usize::try_from(place).ok(),
                Value::Int64(place) => usize::try_from(place).ok(),
                _ => None,
            };
            match place.filter(|place| *place < own.values().len()) {
                Some(place) => value(field, own.values(), place)?,
                None => {
                    return Err(format!(
                        "column {}: a place that is not in its dictionary",
                        field.name()
                    ));
                }
            }
        }
        _ => return unsupported(),
    })
}

/// Microseconds of a moment or time of day, whatever its unit; `None` when there is no room for them.
pub fn micros(array: &ArrayRef, row: usize) -> Option<i64> {
    let whole = match array.data_type() {
        DataType::Time32(_) => i64::from(array.to_data().buffer::<i32>(0).get(row).copied()?),
        _ => array.to_data().buffer::<i64>(0).get(row).copied()?,
    };
    match array.data_type() {
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => match unit {
            TimeUnit::Second => whole.checked_mul(1_000_000),
            TimeUnit::Millisecond => whole.checked_mul(1000),
            TimeUnit::Microsecond => Some(whole),
            TimeUnit::Nanosecond => Some(whole.div_euclid(1000)),
        },
        _ => None,
    }
}

fn decimal(digits: i128, scale: i8) -> Option<Value> {
    let made = Decimal128::from_parts(DecimalParts {
        negative: digits < 0,
        coefficient: digits.unsigned_abs(),
        exponent: -i32::from(scale),
    });
    made.map(Value::Decimal128)
}

fn exact(field: &Field, digits: i128, scale: i8) -> Result<Value, String> {
    decimal(digits, scale).ok_or_else(|| format!("column {}: a decimal has more than 34 digits", field.name()))
}

fn text(field: &Field, text: &str) -> Result<Value, String> {
    match kind(field) {
        Kind::ObjectId => match ObjectId::parse(text) {
            Some(id) => Ok(Value::ObjectId(id)),
            None => Err(format!("column {}: {text:?} is no ObjectId", field.name())),
        },
        Kind::Json => extjson::parse(text).map_err(|e| format!("column {}: {}", field.name(), e.reason)),
        Kind::Plain | Kind::Uuid => Ok(Value::String(text.into())),
    }
}

fn bytes(field: &Field, bytes: &[u8]) -> Value {
    let is_uuid = bytes.len() == 16 && kind(field) == Kind::Uuid;
    Value::Binary(Binary {
        subtype: if is_uuid { 4 } else { 0 },
        bytes: bytes.into(),
    })
}

fn list(field: &Field, items: &ArrayRef) -> Result<Value, String> {
    let items = (0..items.len()).map(|row| value(field, items, row));
    Ok(Value::from(items.collect::<Result<Vec<Value>, String>>()?))
}
