//! The function that tells where an element of an array is. No statement can name it: views whose rows are elements call it.

use super::{Function, Row};
use crate::error::fail;
use nestor_model::{Binary, Result, Value};
use nestor_storage::Bytes;
use std::sync::LazyLock;

/// Bytes of a place.
const PLACE: usize = 8;

/// The record of a document, and the number of an element of its array, from 1; both in one.
const ELEMENT: Row = ("element", "bytea,int8->bytea", |args, _, _| {
    let [Value::Binary(Binary { bytes, .. }), Value::Int64(place)] = args else {
        return fail("0A000", "the rows of this table cannot be changed");
    };
    let mut bytes = bytes.to_vec();
    bytes.extend(place.to_be_bytes());
    Ok(Value::Binary(Binary {
        subtype: 0,
        bytes: bytes.into(),
    }))
});

/// The function.
pub static FUNCTION: LazyLock<Function> = LazyLock::new(|| super::parse(ELEMENT));

/// The record and the index, from 0, of what the function has told.
///
/// Errors: XX000 for what it has not.
pub fn read(address: &Bytes) -> Result<(Bytes, usize)> {
    let place = address.len().checked_sub(PLACE).map(|at| address.split_at(at));
    let place = place.and_then(|(record, place)| Some((record, i64::from_be_bytes(place.try_into().ok()?))));
    match place.map(|(record, place)| (record, usize::try_from(place - 1))) {
        Some((record, Ok(at))) => Ok((Bytes::copy_from(record), at)),
        _ => fail("XX000", "an element has no place"),
    }
}
