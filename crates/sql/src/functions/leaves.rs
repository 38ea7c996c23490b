//! Records of partitions, as scans of a partitioned table have them: behind the number by which catalogs know the partition.

use super::Row;
use super::known::look;
use crate::error::fail;
use nestor_model::number::safe_i64;
use nestor_model::{Binary, Result, Value};
use nestor_storage::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The function that tells which table a record is of.
pub const TABLE: &str = "record_table";
/// The function that tells the record there.
pub const RECORD: &str = "record_there";

/// Levels of partitions of partitions, and more.
const LEVELS_MAX: usize = 100;

/// Bytes of a number.
const NUMBER: usize = 4;

pub(super) const ROWS: &[Row] = &[
    // The table that is divided first, of a part of it; what is a part of what is filled in where it is bound.
    ("catalog_root", "regclass,any->regclass", |a, _, _| {
        let all = ancestors(&a[0], &a[1]);
        Ok(all
            .into_iter()
            .next_back()
            .and_then(|mut row| row.pop())
            .unwrap_or(Value::Null))
    }),
    (TABLE, "bytea->oid", |a, _, _| match &a[0] {
        Value::Binary(Binary { bytes, .. }) => {
            Ok(split(bytes).map_or(Value::Null, |(oid, _)| Value::Int64(i64::from(oid))))
        }
        _ => Ok(Value::Null),
    }),
    (RECORD, "bytea->bytea", |a, _, _| match &a[0] {
        Value::Binary(Binary { subtype, bytes }) => Ok(split(bytes).map_or(Value::Null, |(_, record)| {
            Value::Binary(Binary {
                subtype: *subtype,
                bytes: record.into(),
            })
        })),
        _ => Ok(Value::Null),
    }),
];

/// The table above one, 0 for none, and whether it holds rows itself, of all that are divided or a part of another.
fn known(of: i64, all: &Value) -> Option<(i64, bool)> {
    let Value::Document(all) = all else { return None };
    let told = look(all, &of.to_string())?;
    let (parent, leaf) = told.as_str()?.split_once(' ')?;
    Some((parent.parse().ok()?, leaf == "t"))
}

/// A table and those that it is a part of, the nearest first.
pub(super) fn ancestors(of: &Value, all: &Value) -> Vec<Vec<Value>> {
    let mut out = Vec::new();
    let mut next = safe_i64(of.as_ref());
    while let Some((at, (parent, _))) = next.and_then(|at| Some((at, known(at, all)?))) {
        out.push(vec![Value::Int64(at)]);
        next = (parent != 0 && out.len() < LEVELS_MAX).then_some(parent);
    }
    out
}

/// A table and all parts of it.
pub(super) fn tree(of: &Value, all: &Value) -> Vec<Vec<Value>> {
    let Value::Document(entries) = all else {
        return Vec::new();
    };
    let numbers = entries.iter().filter_map(|(name, _)| name.parse::<i64>().ok());
    let mut children: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    for number in numbers {
        if let Some((parent, _)) = known(number, all) {
            children.entry(parent).or_default().insert(number);
        }
    }
    let Some(root) = safe_i64(of.as_ref()) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let mut level = vec![root];
    for depth in 0..i32::try_from(LEVELS_MAX).unwrap_or(i32::MAX) {
        let mut next = Vec::new();
        for number in level {
            let Some((parent, is_leaf)) = known(number, all) else {
                continue;
            };
            let parent = match parent {
                0 => Value::Null,
                parent => Value::Int64(parent),
            };
            out.push(vec![
                Value::Int64(number),
                parent,
                Value::Bool(is_leaf),
                Value::Int32(depth),
            ]);
            next.extend(children.get(&number).into_iter().flatten().copied());
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    out
}

/// A record behind the number of its table.
pub fn joined(oid: u32, record: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(NUMBER + record.len());
    out.extend(oid.to_be_bytes());
    out.extend_from_slice(record);
    out
}

/// The number of a record's table, and the record there.
pub fn split(record: &[u8]) -> Option<(u32, &[u8])> {
    let (oid, record) = record.split_at_checked(NUMBER)?;
    Some((u32::from_be_bytes(oid.try_into().ok()?), record))
}

/// The same of a record that is to be written.
///
/// Errors: XX000 for one that has no number.
pub fn taken(record: &Bytes) -> Result<(u32, Bytes)> {
    match split(record) {
        Some((oid, record)) => Ok((oid, Bytes::copy_from(record))),
        None => fail("XX000", "the record of a partition does not tell which one that is"),
    }
}
