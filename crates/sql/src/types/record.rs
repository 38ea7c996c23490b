//! Fields of rows whose columns nobody declared. What a value alone would not tell the type of is held as `Binary` of [`FIELD_SUBTYPE`]: the OID of its
//! type in four bytes, then the number in eight, in the order of numbers, or a document whose field `v` is the value.

use super::output::natural;
use super::{Type, integer, output};
use nestor_model::value::{Array, Binary};
use nestor_model::{RawDocBuf, Value, doc};

/// Subtype of the binary values that such fields are held as.
pub const FIELD_SUBTYPE: u8 = 0xE3;

/// The bytes of the OID.
const OID_BYTES: usize = 4;
/// The bytes of a number.
const NUMBER_BYTES: usize = 8;

/// A value as a field of a row.
pub fn held(ty: &Type, value: Value) -> Value {
    let tells = match (ty, &value) {
        (_, Value::Null) => true,
        (Type::Domain(own), value) => return held(own.bottom().0, value.clone()),
        // Types that somebody has made are not found by their OID alone.
        (Type::Composite(own), value) => return held(&Type::Record, own.to_row(value)),
        (Type::Array(element), Value::Array(items)) => match &**element {
            Type::Composite(own) => {
                let rows = items.iter().map(|item| match item.to_value() {
                    Value::Null => Value::Null,
                    item => own.to_row(&item),
                });
                return held(&Type::Record.array(), Value::Array(Array::new(rows.collect())));
            }
            _ => false,
        },
        (Type::Enum(_), _) => return Value::String(output::text(ty, &value).into()),
        (Type::Array(_) | Type::Record | Type::Cidr | Type::Void, _) => false,
        (ty, _) if ty.is_ranges() => false,
        (Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz, _) => false,
        // JSON's texts and truths are shown otherwise than SQL's.
        (Type::Jsonb, Value::String(_) | Value::Bool(_)) => false,
        _ => true,
    };
    if tells {
        return value;
    }
    let mut bytes = ty.oid().to_be_bytes().to_vec();
    match integer(&value) {
        Some(number) if !matches!(value, Value::Array(_)) => {
            bytes.extend_from_slice(&(number as u64 ^ (1 << 63)).to_be_bytes());
        }
        _ => bytes.extend_from_slice(doc! { "v": value }.to_raw().as_bytes()),
    }
    Value::Binary(Binary {
        subtype: FIELD_SUBTYPE,
        bytes: bytes.into(),
    })
}

/// A field of a row with its type.
pub fn field(value: Value) -> (Type, Value) {
    let Value::Binary(Binary {
        subtype: FIELD_SUBTYPE,
        bytes,
    }) = &value
    else {
        return (natural(&value), value);
    };
    let read = || {
        let (oid, rest) = bytes.split_at_checked(OID_BYTES)?;
        let ty = Type::of_oid(u32::from_be_bytes(oid.try_into().ok()?))?;
        if rest.len() == NUMBER_BYTES {
            let number = (u64::from_be_bytes(rest.try_into().ok()?) ^ (1 << 63)) as i64;
            let value = match ty {
                Type::Date => Value::Int32(i32::try_from(number).ok()?),
                _ => Value::Int64(number),
            };
            return Some((ty, value));
        }
        let doc = RawDocBuf::validate(rest.to_vec()).ok()?;
        let found = doc.as_raw().as_doc().get("v")?.to_value();
        Some((ty, found))
    };
    read().unwrap_or((Type::Bytea, Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Array, compare};

    #[test]
    fn fields_keep_their_types_and_their_order() {
        let days = [-5, 0, 7].map(|n| held(&Type::Date, Value::Int32(n)));
        assert!(days.windows(2).all(|pair| compare(&pair[0], &pair[1]).is_lt()));
        assert_eq!(field(days[0].clone()).0, Type::Date);
        assert!(matches!(field(days[0].clone()).1, Value::Int32(-5)));
        let list = Value::Array(Array::new(vec![Value::Int32(1), Value::Null]));
        let (ty, value) = field(held(&Type::Int4.array(), list.clone()));
        assert_eq!(ty, Type::Int4.array());
        assert!(value.identical(&list));
        assert!(matches!(held(&Type::Int4, Value::Int32(1)), Value::Int32(1)));
    }
}
