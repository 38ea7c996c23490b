//! Columns as bytes of a file.
//!
//! ```text
//! column    0, contents | 1, their length (4), contents compressed by zstd
//! contents  form (1) | states: 0, or 1 and a byte for each row | values
//! numbers   least (8) | width in bytes (1) | 0, distances from the least
//!                                          | 1, first (8), differences as numbers
//! texts     numbers | how many texts (4) | their lengths as numbers | all of them, one behind the other
//! ```
//!
//! Distances lie byte by byte, all lowest bytes first: so bytes that are mostly alike stand together.

use crate::column::{Column, DAY_MS, State, Values};
use crate::packed::Packed;
use crate::reader::{Reader, gather, scatter};
use nestor_model::vector::Texts;
use nestor_model::{Document, ObjectId, RawDocBuf, Value, ValueRef};

const LEVEL: i32 = 1;
/// A compressed block pays if it is so much shorter.
const GAIN: usize = 8;
/// Bytes of a column, at most.
const BYTES_MAX: usize = 1 << 30;

/// The bytes of a column, all of whose values are held.
pub(crate) fn encode(column: &Column) -> Vec<u8> {
    let mut out = vec![0, form(column.values())];
    match column.states() {
        None => out.push(0),
        Some(states) => {
            out.push(1);
            out.extend(states.iter().map(|state| *state as u8));
        }
    }
    match column.values() {
        Values::Nothing => {}
        Values::Bool(values) | Values::Int32(values) | Values::Int64(values) | Values::Date(values) => {
            values.encode(&mut out);
        }
        Values::Days(days) => days.encode(&mut out),
        Values::Double(values) => {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            scatter(&bits, 8, &mut out);
        }
        Values::Scaled(digits, unit) => {
            out.extend(unit.to_le_bytes());
            digits.encode(&mut out);
        }
        Values::Decimal(digits, scale) => {
            out.push(*scale);
            digits.encode(&mut out);
        }
        Values::Text(numbers, texts) => {
            numbers.encode(&mut out);
            out.extend((texts.len() as u32).to_le_bytes());
            let lengths: Vec<i64> = (0..texts.len()).map(|at| texts.get(at).len() as i64).collect();
            Packed::new(&lengths).encode(&mut out);
            (0..texts.len()).for_each(|at| out.extend(texts.get(at).as_bytes()));
        }
        Values::Id(ids) => ids.iter().for_each(|id| out.extend(id.0)),
        Values::Any(values) => {
            let mut doc = Document::new();
            doc.push("v", values.to_vec());
            out.extend(doc.to_raw().as_bytes());
        }
    }
    let Ok(small) = zstd::bulk::compress(&out[1..], LEVEL) else {
        return out;
    };
    if small.len() + out.len() / GAIN > out.len() {
        return out;
    }
    let mut packed = vec![1];
    packed.extend((out.len() as u32 - 1).to_le_bytes());
    packed.extend(small);
    packed
}

fn form(values: &Values) -> u8 {
    match values {
        Values::Nothing => 0,
        Values::Bool(_) => 1,
        Values::Int32(_) => 2,
        Values::Int64(_) => 3,
        Values::Date(_) => 4,
        Values::Double(_) => 5,
        Values::Scaled(..) => 6,
        Values::Decimal(..) => 7,
        Values::Text(..) => 8,
        Values::Id(_) => 9,
        Values::Any(_) => 10,
        Values::Days(_) => 11,
    }
}

/// The column of so many rows whose bytes these are; `None` when they are none.
pub(crate) fn decode(bytes: &[u8], rows: usize, range: Option<(Value, Value)>) -> Option<Column> {
    let (kind, rest) = bytes.split_first()?;
    let opened;
    let contents = match kind {
        0 => rest,
        _ => {
            let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
            opened = zstd::bulk::decompress(&rest[4..], len.min(BYTES_MAX)).ok()?;
            &opened
        }
    };
    let mut reader = Reader(contents);
    let form = reader.byte()?;
    let states = match reader.byte()? {
        0 => None,
        _ => Some(
            reader
                .take(rows)?
                .iter()
                .map(|state| state_of(*state))
                .collect::<Option<Box<[State]>>>()?,
        ),
    };
    let values = match form {
        0 => Values::Nothing,
        1 => Values::Bool(Packed::decode(&mut reader, rows)?),
        2 => Values::Int32(Packed::decode(&mut reader, rows)?),
        3 => Values::Int64(Packed::decode(&mut reader, rows)?),
        4 => Values::Date(Packed::decode(&mut reader, rows)?),
        5 => Values::Double(gather(&mut reader, 8, rows)?.into_iter().map(f64::from_bits).collect()),
        6 => {
            let unit = f64::from_bits(reader.number()?);
            Values::Scaled(Packed::decode(&mut reader, rows)?, unit)
        }
        7 => {
            let scale = reader.byte()?;
            Values::Decimal(Packed::decode(&mut reader, rows)?, scale)
        }
        8 => {
            let numbers = Packed::decode(&mut reader, rows)?;
            let texts = texts(&mut reader)?;
            let last = numbers.most();
            (last.is_none_or(|last| (0..texts.len() as i64).contains(&last))).then_some(())?;
            Values::Text(numbers, texts)
        }
        9 => {
            let ids = reader.take(rows.checked_mul(12)?)?.chunks_exact(12);
            Values::Id(ids.map(|id| id.try_into().ok().map(ObjectId)).collect::<Option<_>>()?)
        }
        10 => {
            let doc = RawDocBuf::validate(std::mem::take(&mut reader.0)).ok()?;
            let doc = doc.as_raw();
            let Some(ValueRef::Array(values)) = doc.get("v") else {
                return None;
            };
            let values: Box<[Value]> = values.iter().map(|value| value.to_value()).collect();
            (values.len() == rows).then_some(Values::Any(values))?
        }
        11 => {
            let days = Packed::decode(&mut reader, rows)?;
            // Others are no dates.
            let ends = days.ends().into_iter().flat_map(|(least, most)| [least, most]);
            ends.map(|day| day.checked_mul(DAY_MS)).collect::<Option<Vec<_>>>()?;
            Values::Days(days)
        }
        _ => return None,
    };
    reader.0.is_empty().then(|| Column::whole(values, states, range))
}

fn texts(reader: &mut Reader<'_>) -> Option<Texts> {
    let count = u32::from_le_bytes(*reader.take(4)?.first_chunk()?) as usize;
    let lengths = Packed::decode(reader, count)?;
    let all = std::str::from_utf8(std::mem::take(&mut reader.0)).ok()?;
    let mut texts = Texts::default();
    let mut from = 0usize;
    for at in 0..count {
        let to = from.checked_add(usize::try_from(lengths.get(at)).ok()?)?;
        texts.push(all.get(from..to)?).then_some(())?;
        from = to;
    }
    (from == all.len()).then_some(texts)
}

fn state_of(byte: u8) -> Option<State> {
    let states = [State::Value, State::Null, State::Missing, State::Document];
    states.into_iter().find(|state| *state as u8 == byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuilder;
    use nestor_model::vector::decimal;

    fn column(values: &[ValueRef<'_>]) -> Column {
        let mut builder = ColumnBuilder::default();
        for (row, value) in values.iter().enumerate() {
            builder.push(row, *value);
        }
        builder.finish(values.len())
    }

    #[test]
    fn columns_of_every_form_come_back() {
        let longs: Vec<i64> = (0..300).map(|at| 1_700_000_000_000 + at * 1013).collect();
        let texts: Vec<String> = longs.iter().map(|at| format!("text {}", at % 7)).collect();
        let forms: [Vec<ValueRef<'_>>; 13] = [
            vec![],
            longs
                .iter()
                .map(|at| ValueRef::DateTime(at % 999 * DAY_MS - 7 * DAY_MS))
                .collect(),
            longs.iter().map(|at| ValueRef::Bool(at % 3 == 0)).collect(),
            longs.iter().map(|at| ValueRef::Int32((at % 1000) as i32)).collect(),
            longs.iter().map(|at| ValueRef::Int64(*at)).collect(),
            [i64::MIN, i64::MAX, 0].map(ValueRef::Int64).to_vec(),
            longs.iter().map(|at| ValueRef::DateTime(*at)).collect(),
            longs.iter().map(|at| ValueRef::Double(1.0 / *at as f64)).collect(),
            longs
                .iter()
                .map(|at| ValueRef::Double((at % 977) as f64 / 100.0))
                .collect(),
            longs
                .iter()
                .map(|at| ValueRef::Decimal128(decimal(at % 977, 2)))
                .collect(),
            texts.iter().map(|text| ValueRef::String(text)).collect(),
            (0..50).map(|at| ValueRef::ObjectId(ObjectId([at; 12]))).collect(),
            vec![
                ValueRef::MinKey,
                ValueRef::Int32(1),
                ValueRef::String("x"),
                ValueRef::Double(f64::NAN),
            ],
        ];
        let mut seen = Vec::new();
        for values in &forms {
            for gaps in [false, true] {
                let values: Vec<ValueRef<'_>> = match gaps {
                    false => values.clone(),
                    true => values
                        .iter()
                        .flat_map(|value| [ValueRef::Missing, *value, ValueRef::Null])
                        .collect(),
                };
                let column = column(&values);
                let bytes = encode(&column);
                seen.push(form(column.values()));
                let range = column.range().cloned();
                let back = decode(&bytes, values.len(), range).expect("sound");
                let shown = |column: &Column| {
                    let rows = (0..values.len()).map(|row| format!("{:?}", column.value(row)));
                    rows.collect::<Vec<_>>()
                };
                assert_eq!(shown(&back), shown(&column));
                assert_eq!(format!("{back:?}"), format!("{column:?}"));
                assert!(decode(&bytes[..bytes.len() - 1], values.len(), None).is_none());
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..=11).collect::<Vec<u8>>());
    }

    #[test]
    fn what_ascends_takes_little() {
        let dates: Vec<ValueRef<'_>> = (0..8000)
            .map(|at| ValueRef::DateTime(1_700_000_000_000 + at * 37 + at % 5))
            .collect();
        let bytes = encode(&column(&dates));
        assert!(bytes.len() < 8000, "{}", bytes.len());
    }
}
