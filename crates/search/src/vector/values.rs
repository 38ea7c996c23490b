//! Vectors as BSON has them.
//!
//! An array of numbers, or a binary value of subtype 9, whose contents are:
//!
//! ```text
//! offset 0  type of the elements: 0x27 float32 (little-endian), 0x03 int8, 0x10 packed bits
//!        1  how many bits of the last byte do not count; 0 but for packed bits
//!        2  the elements
//! ```
//!
//! Source: BSON specification, "BSON Binary Subtype 9 - Vector".

use nestor_model::statement::work;
use nestor_model::{ArrayRef, ValueRef};

/// The subtype of binary values that hold vectors.
const SUBTYPE: u8 = 9;

const INT8: u8 = 0x03;
const PACKED_BIT: u8 = 0x10;
const FLOAT32: u8 = 0x27;

/// A vector with its kind of elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Numbers. What BSON has as doubles is narrowed, so some may be infinite.
    Float(Vec<f32>),
    /// Whole numbers.
    Int8(Vec<i8>),
    /// Bits, eight in a byte, and how many of the last byte do not count.
    Bits(Vec<u8>, u8),
}

/// Why a value is no vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoVector {
    /// Neither an array nor a binary value.
    Type,
    /// An element of an array is no number, or a decimal one.
    Element,
    /// A binary value of another subtype.
    Subtype,
    /// The contents of a binary value are not those of a vector, or there are more elements than vectors have.
    Malformed,
}

impl Elements {
    /// How many there are.
    pub fn dimensions(&self) -> usize {
        match self {
            Self::Float(numbers) => numbers.len(),
            Self::Int8(numbers) => numbers.len(),
            Self::Bits(bytes, unused) => (bytes.len() * 8).saturating_sub(usize::from(*unused)),
        }
    }

    /// Reads a value of a query or of a document. Of arrays that are longer than `longest` the first `longest + 1` elements are read, which
    /// tells that they are too long.
    pub fn read(value: ValueRef<'_>, longest: usize) -> Result<Self, NoVector> {
        match value {
            ValueRef::Array(items) => numbers(items, longest).map(Self::Float).ok_or(NoVector::Element),
            ValueRef::Binary {
                subtype: SUBTYPE,
                bytes,
            } => binary(bytes).ok_or(NoVector::Malformed),
            ValueRef::Binary { .. } => Err(NoVector::Subtype),
            _ => Err(NoVector::Type),
        }
    }
}

fn numbers(items: ArrayRef<'_>, longest: usize) -> Option<Vec<f32>> {
    items
        .iter()
        .take(longest.saturating_add(1))
        .map(|item| match item {
            ValueRef::Double(number) => Some(number as f32),
            ValueRef::Int32(number) => Some(number as f32),
            ValueRef::Int64(number) => Some(number as f32),
            _ => None,
        })
        .collect()
}

fn binary(bytes: &[u8]) -> Option<Elements> {
    let (&[kind, unused], elements) = bytes.split_first_chunk()?;
    match (kind, unused) {
        (FLOAT32, 0) if elements.len() % 4 == 0 => {
            let number = |bytes: &[u8]| bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes));
            elements
                .chunks_exact(4)
                .map(number)
                .collect::<Option<_>>()
                .map(Elements::Float)
        }
        (INT8, 0) => Some(Elements::Int8(elements.iter().map(|byte| *byte as i8).collect())),
        (PACKED_BIT, 0..8) if unused == 0 || !elements.is_empty() => Some(Elements::Bits(elements.to_vec(), unused)),
        _ => None,
    }
}

/// Counts the work of reading or comparing so many elements.
pub fn work_on(elements: usize) -> nestor_model::Result<()> {
    work(1 + elements / 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Binary, Decimal128, Value};

    fn read(value: impl Into<Value>) -> Result<Elements, NoVector> {
        Elements::read(value.into().as_ref(), 4)
    }

    fn binary_of(subtype: u8, bytes: &[u8]) -> Value {
        Value::Binary(Binary {
            subtype,
            bytes: bytes.into(),
        })
    }

    #[test]
    fn arrays() {
        let mixed = vec![Value::from(1), Value::Int64(-2), Value::from(0.5)];
        assert_eq!(read(mixed), Ok(Elements::Float(vec![1.0, -2.0, 0.5])));
        assert_eq!(read(Vec::new()), Ok(Elements::Float(Vec::new())));
        let wide = read(vec![Value::from(1e300), Value::from(1e-300)]);
        assert_eq!(wide, Ok(Elements::Float(vec![f32::INFINITY, 0.0])));
        let long = read(vec![Value::from(1); 100]).expect("numbers");
        assert_eq!(long.dimensions(), 5, "enough to tell that it is too long");
        for element in [
            Value::Null,
            Value::from("1"),
            Value::from(true),
            Value::Decimal128(Decimal128::from_i32(1)),
        ] {
            assert_eq!(read(vec![Value::from(1), element]), Err(NoVector::Element));
        }
    }

    #[test]
    fn binary_values() {
        let cases: [(u8, &[u8], _); 12] = [
            (9, &[0x27, 0, 0, 0, 0x80, 0x3f], Ok(Elements::Float(vec![1.0]))),
            (9, &[0x27, 0], Ok(Elements::Float(vec![]))),
            (9, &[0x27, 0, 1, 2, 3], Err(NoVector::Malformed)),
            (9, &[0x27, 1, 0, 0, 0x80, 0x3f], Err(NoVector::Malformed)),
            (9, &[0x03, 0, 0xff, 2], Ok(Elements::Int8(vec![-1, 2]))),
            (9, &[0x03, 7, 0xff], Err(NoVector::Malformed)),
            (9, &[0x10, 3, 0xf0], Ok(Elements::Bits(vec![0xf0], 3))),
            (9, &[0x10, 8, 0xf0], Err(NoVector::Malformed)),
            (9, &[0x10, 3], Err(NoVector::Malformed)),
            (9, &[0x55, 0, 1], Err(NoVector::Malformed)),
            (9, &[0x27], Err(NoVector::Malformed)),
            (0, &[0x27, 0], Err(NoVector::Subtype)),
        ];
        for (subtype, bytes, expected) in cases {
            assert_eq!(read(binary_of(subtype, bytes)), expected, "{bytes:?}");
        }
        assert_eq!(read("text"), Err(NoVector::Type));
        let bits = read(binary_of(9, &[0x10, 3, 0xf0, 0xf8])).expect("bits");
        assert_eq!(bits.dimensions(), 13);
    }
}
