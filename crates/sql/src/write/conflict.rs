//! ON CONFLICT: which document an insert would double.

use super::refused::constraint_name;
use crate::bind::write::Conflict;
use crate::catalog::{Table, partial};
use crate::error::fail;
use nestor_database::write::rows::RowWriter;
use nestor_exec::{Batch, Step, find, point};
use nestor_model::{DocRef, Document, Result, Value, ValueRef};
use nestor_planner::FindQuery;
use nestor_planner::find::Wanted;
use nestor_query::env::{OpContext, Scope};
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Bytes, Collection};
use std::sync::Arc;

/// The index that decides.
pub(super) struct Arbiter {
    /// The paths of its key; `None` when any unique index does.
    paths: Option<Vec<String>>,
}

impl Arbiter {
    /// The unique index that a statement means.
    ///
    /// Errors: 42P10 and 42704 when there is none.
    pub(super) fn of(conflict: &Conflict, table: &Table, collection: &Collection) -> Result<Self> {
        let sorted = |mut paths: Vec<String>| {
            paths.sort();
            paths
        };
        let unique = collection
            .indexes
            .iter()
            .filter(|index| index.unique || index.name == "_id_")
            // One with a predicate knows nothing of the rows that it has not.
            .filter(|index| match &index.partial_filter {
                Some(filter) => partial::said(filter, &index.key_pattern).is_empty(),
                None => true,
            })
            .map(|index| {
                let paths = index.key_pattern.iter().map(|(path, _)| path.to_owned());
                (constraint_name(table, &index.name), paths.collect::<Vec<String>>())
            });
        let mut unique: Vec<(String, Vec<String>)> = unique.collect();
        if collection.is_clustered() {
            unique.push((constraint_name(table, "_id_"), vec!["_id".to_owned()]));
        }
        if let Some(name) = &conflict.constraint {
            return match unique.into_iter().find(|(own, _)| own == name) {
                Some((_, paths)) => Ok(Self { paths: Some(paths) }),
                None => fail(
                    "42704",
                    format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
                ),
            };
        }
        let Some(wanted) = &conflict.paths else {
            return Ok(Self { paths: None });
        };
        let wanted = sorted(wanted.clone());
        match unique.into_iter().find(|(_, paths)| sorted(paths.clone()) == wanted) {
            Some((_, paths)) => Ok(Self { paths: Some(paths) }),
            None => fail(
                "42P10",
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            ),
        }
    }

    /// Whether any unique index decides.
    pub(super) fn is_any(&self) -> bool {
        self.paths.is_none()
    }

    /// The record and document that have the key of `doc` already. Keys with nulls are equal to none.
    ///
    /// Errors: those of reading.
    pub(super) fn find(
        &self,
        writer: &RowWriter<'_, '_>,
        doc: DocRef<'_>,
        op: &OpContext,
    ) -> Result<Option<(Bytes, Bytes)>> {
        let Some(paths) = &self.paths else { return Ok(None) };
        let mut key = Vec::with_capacity(paths.len());
        for path in paths {
            let value = value_at(doc, path);
            if value.is_nullish() {
                return Ok(None);
            }
            key.push((path.clone(), value.to_value()));
        }
        find_by(writer, &key, op)
    }
}

/// The first record and document that have these values at their paths.
///
/// Errors: those of reading.
pub(super) fn find_by(
    writer: &RowWriter<'_, '_>,
    key: &[(String, Value)],
    op: &OpContext,
) -> Result<Option<(Bytes, Bytes)>> {
    let collection: &Arc<Collection> = writer.collection();
    if let [(path, value)] = key
        && path == "_id"
    {
        return point::by_id(writer.view(), collection, value.as_ref());
    }
    let mut filter = Document::new();
    for (path, value) in key {
        let mut equal = Document::new();
        equal.push("$eq", value.clone());
        filter.push(path.as_str(), equal);
    }
    let collator = nestor_exec::catalog::id_collation(collection)?;
    let mut scope = Scope::new().with_collator(collator.clone());
    let parsed = Arc::new(MatchExpr::parse(filter.as_ref(), &mut scope)?.normalize());
    let mut query = FindQuery::all(parsed);
    query.collation = collator;
    query.limit = Some(1);
    let mut root = find(&query, Wanted::Documents, Default::default(), collection, None)?;
    let interrupt = nestor_exec::Interrupt::default();
    let mut batch = Batch::new(writer.view(), op, &interrupt);
    loop {
        match root.next(&mut batch)? {
            Step::Row(row) => {
                let bytes = match row.doc {
                    nestor_exec::RowDoc::Stored(bytes) => bytes,
                    other => Bytes::from(other.to_raw()),
                };
                return Ok(row.record.map(|record| (record, bytes)));
            }
            Step::Pause => {}
            Step::Eof => return Ok(None),
        }
    }
}

fn value_at<'d>(doc: DocRef<'d>, path: &str) -> ValueRef<'d> {
    let mut at = ValueRef::Document(doc);
    for name in path.split('.') {
        at = match at {
            ValueRef::Document(doc) => doc.get(name).unwrap_or(ValueRef::Missing),
            _ => return ValueRef::Missing,
        };
    }
    at
}
