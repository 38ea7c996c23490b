//! Columns of several parts: measurements that come later are written behind a column, so that what is there need not be encoded again.
//!
//! ```text
//! 10           tag
//! parts        1 byte    2 to 16
//! for each part:
//!   rows       varint    how many measurements it is of
//!   length     varint    bytes that follow
//!   column     a column of these measurements that has no parts itself
//! ```
//!
//! ```text
//! [Date(5), -], then [Date(9)]     0a 02   02 04 81 01 01 0a   01 03 01 01 12
//! ```

use super::bits::{Reader, put_varint};
use super::column::{self, Column, Values};
use nestor_model::{Error, Result};

/// Tag of columns of several parts.
const PARTS: u8 = 10;

/// Parts of a column at most. Whoever has more to append writes the column anew.
const PARTS_MAX: u8 = 16;

/// The bytes of a column of `before` measurements with a column of `rows` more behind it; `None` when it has too many parts for one more.
pub(super) fn append(stored: &[u8], before: usize, added: &[u8], rows: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(stored.len() + added.len() + 12);
    match stored {
        [PARTS, parts, rest @ ..] => {
            out.extend([PARTS, parts.checked_add(1).filter(|parts| *parts <= PARTS_MAX)?]);
            out.extend_from_slice(rest);
        }
        whole => {
            out.extend([PARTS, 2]);
            put(whole, before, &mut out);
        }
    }
    put(added, rows, &mut out);
    Some(out)
}

fn put(part: &[u8], rows: usize, out: &mut Vec<u8>) {
    put_varint(rows as u64, out);
    put_varint(part.len() as u64, out);
    out.extend_from_slice(part);
}

/// Reads a column of `rows` measurements, of one part or of several.
///
/// Errors: 2 for bytes that are no column.
pub(super) fn decode(bytes: &[u8], rows: usize) -> Result<Column> {
    let column = match bytes.split_first() {
        Some((&PARTS, rest)) => read(&mut Reader(rest), rows),
        _ => column::read(&mut Reader(bytes), rows),
    };
    column.ok_or_else(|| Error::bad_value("a column of a time-series bucket cannot be decoded"))
}

/// Reads what follows the tag, of `rows` measurements; `None` for bytes that are no such column.
fn read(bytes: &mut Reader<'_>, rows: usize) -> Option<Column> {
    let parts = bytes.byte().filter(|parts| (2..=PARTS_MAX).contains(parts))?;
    let mut joined = Joined::default();
    for _ in 0..parts {
        let of_part = bytes.number(rows.checked_sub(joined.rows)?)?;
        let len = bytes.number(bytes.0.len())?;
        let part = bytes.take(len)?;
        joined.push(column::read(&mut Reader(part), of_part)?, of_part);
    }
    (joined.rows == rows && bytes.0.is_empty()).then(|| joined.finish())
}

/// Columns one behind the other.
#[derive(Default)]
struct Joined {
    rows: usize,
    /// Values of neighbouring parts that have the same form, and how many there are.
    runs: Vec<(Values, usize)>,
    values: usize,
    /// As [`Column::places`], once a part has measurements without the field.
    places: Option<Vec<u32>>,
}

impl Joined {
    fn push(&mut self, part: Column, rows: usize) {
        let Column { values, places } = part;
        let present = match &places {
            Some(places) => places.iter().filter(|place| **place > 0).count(),
            None => rows,
        };
        if places.is_some() && self.places.is_none() {
            self.places = Some((1..=self.rows as u32).collect());
        }
        if let Some(all) = &mut self.places {
            let before = self.values as u32;
            match places {
                Some(places) => all.extend(places.into_iter().map(|at| if at == 0 { 0 } else { before + at })),
                None => all.extend(before + 1..=before + rows as u32),
            }
        }
        self.rows += rows;
        self.values += present;
        if present == 0 {
            return;
        }
        let other = match self.runs.last_mut() {
            Some((last, len)) => match extend(last, values) {
                Ok(()) => {
                    *len += present;
                    return;
                }
                Err(other) => other,
            },
            None => values,
        };
        self.runs.push((other, present));
    }

    fn finish(mut self) -> Column {
        let values = match self.runs.len() {
            0 => Values::Any {
                values: Vec::new(),
                places: None,
            },
            1 => self.runs.swap_remove(0).0,
            _ => {
                let of_run = |(run, (_, len)): (usize, &(Values, usize))| {
                    let run = run as u8;
                    (0..*len as u32).map(move |at| (run, at))
                };
                Values::ByType {
                    places: self.runs.iter().enumerate().flat_map(of_run).collect(),
                    parts: self.runs.into_iter().map(|(values, _)| values).collect(),
                }
            }
        };
        Column {
            values,
            places: self.places,
        }
    }
}

/// Puts values behind values of the same form. Gives them back when they have another.
fn extend(values: &mut Values, more: Values) -> std::result::Result<(), Values> {
    match (values, more) {
        (Values::Dates(values), Values::Dates(more))
        | (Values::Int32(values), Values::Int32(more))
        | (Values::Int64(values), Values::Int64(more)) => values.extend(more),
        (Values::Doubles(values), Values::Doubles(more)) => values.extend(more),
        (Values::ObjectIds(values), Values::ObjectIds(more)) => values.extend(more),
        (
            Values::Any { values, places },
            Values::Any {
                values: more,
                places: of_more,
            },
        ) => {
            let (before, added) = (values.len() as u32, more.len() as u32);
            let places = places.get_or_insert_with(|| (0..before).collect());
            match of_more {
                Some(of_more) => places.extend(of_more.into_iter().map(|at| before + at)),
                None => places.extend(before..before + added),
            }
            values.extend(more);
        }
        (_, more) => return Err(more),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{ObjectId, Value};

    /// The column of parts, checked to give the values back.
    fn round_trip(parts: &[&[Option<Value>]]) -> Vec<u8> {
        let (mut bytes, mut rows) = (Vec::new(), 0);
        for (at, part) in parts.iter().enumerate() {
            let borrowed: Vec<_> = part.iter().map(|row| row.as_ref().map(Value::as_ref)).collect();
            let added = column::encode(&borrowed);
            bytes = match at {
                0 => added,
                _ => append(&bytes, rows, &added, part.len()).expect("room for a part"),
            };
            rows += part.len();
        }
        let column = decode(&bytes, rows).expect("a column");
        for (row, value) in parts.iter().copied().flatten().enumerate() {
            let back = column.get(row).map(|back| back.to_value());
            assert_eq!(format!("{back:?}"), format!("{value:?}"), "row {row}");
        }
        assert!(decode(&bytes, rows + 1).is_err() && decode(&bytes, rows - 1).is_err());
        for len in 0..bytes.len() {
            let _ = decode(&bytes[..len], rows);
        }
        bytes
    }

    #[test]
    fn the_example_of_the_format() {
        let date = |ms| Some(Value::DateTime(ms));
        let bytes = round_trip(&[&[date(5), None], &[date(9)]]);
        assert_eq!(bytes, [10, 2, 2, 4, 0x81, 1, 1, 10, 1, 3, 1, 1, 18]);
    }

    #[test]
    fn parts_of_any_types_come_back() {
        let values = |of: fn(i32) -> Value| -> Vec<Option<Value>> { (0..20).map(|i| Some(of(i))).collect() };
        let columns = [
            values(|i| Value::Double(f64::from(i) / 10.0)),
            values(|i| Value::Double(f64::from(i).sin())),
            values(Value::Int32),
            values(|i| Value::from(["a", "b"][i as usize % 2])),
            values(|i| Value::from(format!("text {i}"))),
            values(|i| Value::ObjectId(ObjectId([i as u8; 12]))),
            values(|i| if i % 2 == 0 { Value::Int32(i) } else { Value::Null }),
            vec![None; 3],
            (0..9).map(|i| (i % 3 == 0).then_some(Value::Int32(i))).collect(),
        ];
        for one in &columns {
            for other in &columns {
                round_trip(&[one, other]);
                round_trip(&[one, other, one, one]);
            }
        }
        let all: Vec<&[Option<Value>]> = columns.iter().map(Vec::as_slice).collect();
        round_trip(&all);
    }

    #[test]
    fn a_column_has_so_many_parts_and_no_more() {
        let part = column::encode(&[Some(Value::Int32(1).as_ref())]);
        let mut bytes = part.clone();
        for rows in 1..usize::from(PARTS_MAX) {
            bytes = append(&bytes, rows, &part, 1).expect("room for a part");
        }
        assert!(append(&bytes, usize::from(PARTS_MAX), &part, 1).is_none());
        // A part that has parts is none.
        let nested = append(&part, 1, &bytes, usize::from(PARTS_MAX)).expect("bytes");
        assert!(decode(&nested, usize::from(PARTS_MAX) + 1).is_err());
    }
}
