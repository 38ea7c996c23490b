//! Columns: the values of one field in the measurements of a bucket.
//!
//! ```text
//! tag          1 byte    how the values are written, plus 128 if some measurements do not have the field
//! present      with 128: a bit for each measurement, the lowest of a byte first, filled with zeros to a full byte
//! values       of the measurements that have the field, by tag:
//!   1          dates: milliseconds, as `ints` says
//!   2          32-bit integers, as `ints` says
//!   3          64-bit integers, as `ints` says
//!   4          doubles as decimal fractions, as `doubles` says
//!   5          doubles as differences, as `doubles` says
//!   6          dictionary: the different values as a BSON document whose names are empty, and for each value its number in there, of as
//!              many bits as the largest needs
//!   7          object ids with the same 5 bytes in the middle: these, then seconds and counters, each as `ints` says
//!   8          one after the other: a BSON document whose names are empty
//!   9          of several types: their number (1 byte), their BSON types in ascending order (1 byte each), the places of the values among
//!              these (as many bits each as the largest needs), then a column for each type: its length (varint) and bytes, without absent values
//!   10         of several parts, never with 128: see `parts`
//! ```
//!
//! ```text
//! [true, true, -]      86 03 08 00 00 00 08 00 01 00     two of three have it; a dictionary of one value, no bits to choose
//! ```
//!
//! Whoever writes tries the forms that suit the types and takes the shortest. Values come back with type and bits unchanged.

use super::bits::{Reader, pack, packed_len, put_varint, unpack, width};
use super::{doubles, ints};
use nestor_model::{BsonType, ObjectId, RawDoc, RawWriter, Value, ValueRef};
use std::collections::HashMap;

const DATES: u8 = 1;
const INT32: u8 = 2;
const INT64: u8 = 3;
const DECIMAL: u8 = 4;
const XOR: u8 = 5;
const DICTIONARY: u8 = 6;
const OBJECT_IDS: u8 = 7;
const PLAIN: u8 = 8;
const BY_TYPE: u8 = 9;
const SOME_ABSENT: u8 = 0x80;

/// Values of a column, decoded.
#[derive(Clone, Debug)]
pub enum Values {
    /// Dates, in milliseconds.
    Dates(Vec<i64>),
    /// 32-bit integers.
    Int32(Vec<i64>),
    /// 64-bit integers.
    Int64(Vec<i64>),
    /// Doubles.
    Doubles(Vec<f64>),
    /// Object ids.
    ObjectIds(Vec<ObjectId>),
    /// Any values; `places[i]` is where value `i` is, or they stand in their order.
    Any {
        /// The different values.
        values: Vec<Value>,
        /// One for each value.
        places: Option<Vec<u32>>,
    },
    /// Values of several types: `places[i]` says of which of the parts value `i` is, and which of its values.
    ByType {
        /// One for each type.
        parts: Vec<Values>,
        /// One for each value.
        places: Vec<(u8, u32)>,
    },
}

impl Values {
    fn get(&self, at: usize) -> Option<ValueRef<'_>> {
        Some(match self {
            Self::Dates(values) => ValueRef::DateTime(*values.get(at)?),
            Self::Int32(values) => ValueRef::Int32(*values.get(at)? as i32),
            Self::Int64(values) => ValueRef::Int64(*values.get(at)?),
            Self::Doubles(values) => ValueRef::Double(*values.get(at)?),
            Self::ObjectIds(values) => ValueRef::ObjectId(*values.get(at)?),
            Self::Any { values, places: None } => values.get(at)?.as_ref(),
            Self::Any {
                values,
                places: Some(places),
            } => values.get(*places.get(at)? as usize)?.as_ref(),
            Self::ByType { parts, places } => {
                let (part, at) = places.get(at)?;
                parts.get(usize::from(*part))?.get(*at as usize)?
            }
        })
    }
}

/// A decoded column.
#[derive(Clone, Debug)]
pub struct Column {
    /// What the measurements have that have the field.
    pub values: Values,
    /// Of each measurement the place of its value plus one, 0 when it has none; `None` when all have one.
    pub(super) places: Option<Vec<u32>>,
}

impl Column {
    /// The value of a measurement; `None` when it has none.
    #[inline]
    pub fn get(&self, row: usize) -> Option<ValueRef<'_>> {
        match &self.places {
            None => self.values.get(row),
            Some(places) => match places.get(row) {
                None | Some(0) => None,
                Some(place) => self.values.get(*place as usize - 1),
            },
        }
    }

    /// Whether all measurements have the field.
    pub fn is_full(&self) -> bool {
        self.places.is_none()
    }
}

/// The bytes of a column: a value or nothing for each measurement.
pub fn encode(rows: &[Option<ValueRef<'_>>]) -> Vec<u8> {
    let values: Vec<ValueRef<'_>> = rows.iter().copied().flatten().collect();
    let mut encoded = encode_values(&values);
    if values.len() == rows.len() {
        return encoded;
    }
    encoded[0] |= SOME_ABSENT;
    let mut out = vec![encoded[0]];
    pack(rows.iter().map(|row| u64::from(row.is_some())), 1, &mut out);
    out.extend_from_slice(&encoded[1..]);
    out
}

fn encode_values(values: &[ValueRef<'_>]) -> Vec<u8> {
    let Some(kind) = values.first().map(|value| value.bson_type()) else {
        return encode_any(values);
    };
    if values.iter().any(|value| value.bson_type() != kind) {
        let any = encode_any(values);
        return match encode_by_type(values) {
            Some(by_type) if by_type.len() < any.len() => by_type,
            _ => any,
        };
    }
    let wholes = |tag: u8| {
        let wholes: Vec<i64> = values.iter().map(|value| whole(*value)).collect();
        let mut out = vec![tag];
        ints::encode(&wholes, &mut out);
        out
    };
    match kind {
        BsonType::Date => wholes(DATES),
        BsonType::Int => wholes(INT32),
        BsonType::Long => wholes(INT64),
        BsonType::Double => encode_doubles(values),
        BsonType::ObjectId => encode_object_ids(values).unwrap_or_else(|| encode_any(values)),
        _ => encode_any(values),
    }
}

fn whole(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::DateTime(value) | ValueRef::Int64(value) => value,
        ValueRef::Int32(value) => i64::from(value),
        _ => 0,
    }
}

fn encode_doubles(values: &[ValueRef<'_>]) -> Vec<u8> {
    let doubles: Vec<f64> = values
        .iter()
        .map(|value| match value {
            ValueRef::Double(value) => *value,
            _ => 0.0,
        })
        .collect();
    let tagged = |tag: u8, bytes: Vec<u8>| {
        let mut out = Vec::with_capacity(bytes.len() + 1);
        out.push(tag);
        out.extend_from_slice(&bytes);
        out
    };
    match doubles::encode_decimal(&doubles) {
        // Less than half of the numbers' own bytes: no other form is worth its time.
        Some(decimal) if decimal.len() <= values.len() * 4 => tagged(DECIMAL, decimal),
        decimal => {
            let xor = doubles::encode_xor(&doubles);
            match decimal {
                Some(decimal) if decimal.len() < xor.len() => tagged(DECIMAL, decimal),
                _ => tagged(XOR, xor),
            }
        }
    }
}

fn encode_object_ids(values: &[ValueRef<'_>]) -> Option<Vec<u8>> {
    let ids: Vec<ObjectId> = values
        .iter()
        .filter_map(|value| match value {
            ValueRef::ObjectId(id) => Some(*id),
            _ => None,
        })
        .collect();
    let middle = &ids.first()?.0[4..9];
    if ids.iter().any(|id| &id.0[4..9] != middle) {
        return None;
    }
    let mut out = vec![OBJECT_IDS];
    out.extend_from_slice(middle);
    let seconds: Vec<i64> = ids.iter().map(|id| i64::from(id.timestamp_secs())).collect();
    let counters = ids.iter().map(|id| {
        let [.., a, b, c] = id.0;
        i64::from(u32::from_be_bytes([0, a, b, c]))
    });
    ints::encode(&seconds, &mut out);
    ints::encode(&counters.collect::<Vec<_>>(), &mut out);
    Some(out)
}

/// A dictionary, or the values one after the other.
fn encode_any(values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut plain = RawWriter::onto(vec![PLAIN]);
    let mut different = RawWriter::onto(vec![DICTIONARY]);
    let mut numbers: HashMap<Vec<u8>, u64> = HashMap::new();
    let mut chosen = Vec::with_capacity(values.len());
    for value in values {
        plain.append("", *value);
        let mut one = RawWriter::new();
        one.append("", *value);
        let next = numbers.len() as u64;
        let number = *numbers.entry(one.finish()).or_insert_with(|| {
            different.append("", *value);
            next
        });
        chosen.push(number);
    }
    let plain = plain.finish();
    let width = width((numbers.len() as u64).saturating_sub(1));
    let mut out = different.finish();
    pack(chosen, width, &mut out);
    if out.len() <= plain.len() { out } else { plain }
}

fn encode_by_type(values: &[ValueRef<'_>]) -> Option<Vec<u8>> {
    let mut kinds: Vec<u8> = values.iter().map(|value| value.bson_type() as u8).collect();
    let of_values = kinds.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let mut out = vec![BY_TYPE, u8::try_from(kinds.len()).ok()?];
    out.extend_from_slice(&kinds);
    let place = |kind: &u8| kinds.binary_search(kind).unwrap_or_default() as u64;
    pack(of_values.iter().map(place), width(kinds.len() as u64 - 1), &mut out);
    for kind in &kinds {
        let part: Vec<ValueRef<'_>> = values
            .iter()
            .copied()
            .filter(|v| v.bson_type() as u8 == *kind)
            .collect();
        let part = encode_values(&part);
        put_varint(part.len() as u64, &mut out);
        out.extend_from_slice(&part);
    }
    Some(out)
}

/// Reads a column of `rows` measurements that has no parts; `None` for bytes that are none.
pub(super) fn read(bytes: &mut Reader<'_>, rows: usize) -> Option<Column> {
    let tag = bytes.byte()?;
    let (mut places, mut count) = (None, rows);
    if tag & SOME_ABSENT != 0 {
        let bits = bytes.take(packed_len(rows, 1))?;
        let mut of_rows = Vec::with_capacity(rows);
        let mut place = 0;
        unpack(bits, rows, 1, |bit| {
            place += bit as u32;
            of_rows.push(if bit == 1 { place } else { 0 });
        });
        count = place as usize;
        places = Some(of_rows);
    }
    let values = read_values(tag & !SOME_ABSENT, bytes, count)?;
    bytes.0.is_empty().then_some(Column { values, places })
}

fn read_values(tag: u8, bytes: &mut Reader<'_>, count: usize) -> Option<Values> {
    Some(match tag {
        DATES => Values::Dates(ints::decode(bytes, count)?),
        INT32 => {
            let values = ints::decode(bytes, count)?;
            let fits = values.iter().all(|value| i32::try_from(*value).is_ok());
            Values::Int32(fits.then_some(values)?)
        }
        INT64 => Values::Int64(ints::decode(bytes, count)?),
        DECIMAL => Values::Doubles(doubles::decode_decimal(bytes, count)?),
        XOR => Values::Doubles(doubles::decode_xor(bytes, count)?),
        DICTIONARY => {
            let values = read_document(bytes)?;
            let width = width((values.len() as u64).saturating_sub(1));
            let mut places = Vec::with_capacity(count);
            unpack(bytes.take(packed_len(count, width))?, count, width, |place| {
                places.push(place as u32);
            });
            let known = places.iter().all(|place| (*place as usize) < values.len());
            Values::Any {
                places: Some(known.then_some(places)?),
                values,
            }
        }
        OBJECT_IDS => {
            let middle = bytes.take(5)?;
            let seconds = ints::decode(bytes, count)?;
            let counters = ints::decode(bytes, count)?;
            let id = |(seconds, counter): (i64, i64)| {
                let mut id = [0; 12];
                id[..4].copy_from_slice(&u32::try_from(seconds).ok()?.to_be_bytes());
                id[4..9].copy_from_slice(middle);
                let counter = u32::try_from(counter).ok().filter(|counter| *counter < 1 << 24)?;
                id[9..].copy_from_slice(&counter.to_be_bytes()[1..]);
                Some(ObjectId(id))
            };
            Values::ObjectIds(seconds.into_iter().zip(counters).map(id).collect::<Option<_>>()?)
        }
        PLAIN => {
            let values = read_document(bytes)?;
            (values.len() == count).then_some(Values::Any { values, places: None })?
        }
        BY_TYPE => read_by_type(bytes, count)?,
        _ => return None,
    })
}

fn read_document(bytes: &mut Reader<'_>) -> Option<Vec<Value>> {
    let len = u32::from_le_bytes(bytes.0.get(..4)?.try_into().ok()?);
    let doc = RawDoc::validate(bytes.take(usize::try_from(len).ok()?)?).ok()?;
    Some(doc.elements().map(|element| element.value().to_value()).collect())
}

fn read_by_type(bytes: &mut Reader<'_>, count: usize) -> Option<Values> {
    let kinds = usize::from(bytes.byte()?);
    bytes.take(kinds)?;
    let width = width((kinds as u64).checked_sub(1)?);
    let mut lens = vec![0u32; kinds];
    let mut places = Vec::with_capacity(count);
    let mut is_known = true;
    unpack(bytes.take(packed_len(count, width))?, count, width, |part| {
        match lens.get_mut(part as usize) {
            Some(len) => {
                places.push((part as u8, *len));
                *len += 1;
            }
            None => is_known = false,
        }
    });
    let mut parts = Vec::with_capacity(kinds);
    for len in lens {
        let bytes_len = bytes.number(bytes.0.len())?;
        let mut part = Reader(bytes.take(bytes_len)?);
        // Values of one type are never divided again.
        let tag = part.byte().filter(|tag| *tag != BY_TYPE)?;
        parts.push(read_values(tag, &mut part, len as usize)?);
        part.0.is_empty().then_some(())?;
    }
    is_known.then_some(Values::ByType { parts, places })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    fn round_trip(rows: &[Option<Value>]) -> Vec<u8> {
        let borrowed: Vec<_> = rows.iter().map(|row| row.as_ref().map(Value::as_ref)).collect();
        let bytes = encode(&borrowed);
        let column = read(&mut Reader(&bytes), rows.len()).expect("a column");
        for (row, value) in rows.iter().enumerate() {
            match (column.get(row), value) {
                (None, None) => {}
                (Some(back), Some(value)) => {
                    assert!(back.to_value().identical(value), "row {row}: {back:?} for {value:?}");
                }
                (back, value) => panic!("row {row}: {back:?} for {value:?}"),
            }
        }
        for len in 0..bytes.len() {
            // Bytes that were cut off may be another column, but they never break the reader.
            let _ = read(&mut Reader(&bytes[..len]), rows.len());
        }
        bytes
    }

    fn all(values: impl IntoIterator<Item = Value>) -> Vec<Option<Value>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn the_example_of_the_format() {
        let rows = [Some(Value::Bool(true)), Some(Value::Bool(true)), None];
        assert_eq!(round_trip(&rows), [0x86, 3, 8, 0, 0, 0, 8, 0, 1, 0]);
    }

    #[test]
    fn every_type_comes_back() {
        round_trip(&[]);
        round_trip(&[None, None]);
        let values = [
            Value::Double(1.5),
            Value::from("text"),
            doc! { "a": 1, "b": vec![Value::from(1)] }.into(),
            Value::from(vec![Value::Null, Value::from(2)]),
            Value::Undefined,
            Value::ObjectId(ObjectId([7; 12])),
            Value::Bool(false),
            Value::DateTime(-5),
            Value::Null,
            Value::Int32(-7),
            Value::Int64(i64::MIN),
            Value::MinKey,
            Value::MaxKey,
        ];
        round_trip(&all(values.clone()));
        for value in &values {
            round_trip(&all((0..20).map(|_| value.clone())));
            let sparse: Vec<_> = (0..20).map(|row| (row % 3 == 0).then(|| value.clone())).collect();
            round_trip(&sparse);
        }
        let mixed = (0..300).map(|i| {
            if i % 4 == 0 {
                Value::Int32(20)
            } else {
                Value::Double(20.0 + f64::from(i) / 10.0)
            }
        });
        assert!(round_trip(&all(mixed)).len() < 700);
    }

    #[test]
    fn ids_of_one_process_are_small() {
        let ids = (0..1000).map(|i| {
            let mut id = [9; 12];
            id[..4].copy_from_slice(&(1_700_000_000u32 + i / 10).to_be_bytes());
            id[9..].copy_from_slice(&(500 + i).to_be_bytes()[1..]);
            Value::ObjectId(ObjectId(id))
        });
        assert!(round_trip(&all(ids)).len() < 300);
    }

    #[test]
    fn hostile_bytes_are_refused() {
        for bytes in [
            &[][..],
            &[0],
            &[1, 3],
            &[9, 0],
            &[9, 2, 1, 2],
            &[6, 5, 0, 0, 0, 0],
            &[255; 40],
        ] {
            assert!(read(&mut Reader(bytes), 10).is_none(), "{bytes:?}");
        }
        // A dictionary without values has none to choose from.
        assert!(read(&mut Reader(&[6, 5, 0, 0, 0, 0]), 1).is_none());
    }
}
