//! Writes to time-series collections: what is to be done with measurements, done with their buckets.
//!
//! `create` makes their collection, `insert` puts measurements into buckets, `delete` takes measurements out, `update` changes what the
//! measurements of a bucket have in common by the words of `words`, `replace` puts a collection in the place of another.

pub mod create;
pub mod delete;
pub mod insert;
pub mod replace;
pub mod update;
pub mod words;

use crate::statement::Statement;
use nestor_exec::write::oplog::Statements;
use nestor_exec::write::{Changed, Writer};
use nestor_model::timeseries::BUCKETS_PREFIX;
use nestor_model::{Namespace, RawDocBuf, Result, TimeSeries, Value, bail};
use nestor_query::update::Touched;
use nestor_storage::{Bytes, Collection, View};
use std::sync::Arc;

/// The collection of buckets of the time-series collection at `ns`.
pub fn buckets_of(ns: &Namespace) -> Namespace {
    Namespace::new(ns.db.clone(), format!("{BUCKETS_PREFIX}{}", ns.coll))
}

/// The buckets of a time-series collection, or the time-series collection of buckets; `None` for other collections.
pub fn other_of(collection: &Arc<Collection>) -> Option<Namespace> {
    let ns = &collection.ns;
    if collection.timeseries().is_some() {
        return Some(buckets_of(ns));
    }
    collection.buckets()?;
    Some(Namespace::new(ns.db.clone(), ns.coll.strip_prefix(BUCKETS_PREFIX)?))
}

/// The time-series collection at `ns` with the collection of its buckets; `None` for whatever else there is.
///
/// Errors: 26 when the buckets are gone.
pub fn found(view: &dyn View, ns: &Namespace) -> Result<Option<(Arc<Collection>, Arc<Collection>)>> {
    let Some(collection) = view.catalog().get(ns).filter(|found| found.timeseries().is_some()) else {
        return Ok(None);
    };
    let buckets = buckets_of(ns);
    match view.catalog().get(&buckets) {
        Some(found) => Ok(Some((collection.clone(), found.clone()))),
        None => bail!(
            NamespaceNotFound,
            "the buckets of the time-series collection {ns} are gone: {buckets}"
        ),
    }
}

/// The collection that has the indexes of what is at a namespace: the buckets of a time-series collection, otherwise itself.
pub fn bottom_of(view: &dyn View, at: Option<&Arc<Collection>>) -> Option<Arc<Collection>> {
    match at {
        Some(series) if series.timeseries().is_some() => view.catalog().get(&buckets_of(&series.ns)).cloned(),
        other => other.cloned(),
    }
}

/// The options of the time-series collection whose buckets `collection` has. Errors: 8 when it has none.
pub fn series_of(collection: &Collection) -> Result<&TimeSeries> {
    match collection.buckets() {
        Some(series) => Ok(series),
        None => bail!(InternalError, "{} has no time-series buckets", collection.ns),
    }
}

/// Refuses writes that transactions must not make.
///
/// Errors: 263.
fn check_transaction(statement: &Statement<'_>, what: &str, ns: &Namespace) -> Result<()> {
    if statement.in_transaction() {
        bail!(
            OperationNotSupportedInTransaction,
            "Cannot {what} a time-series collection in a multi-document transaction: {ns}"
        );
    }
    Ok(())
}

/// Replaces a bucket by a newer version of itself.
fn rewrite(
    writer: &mut Writer<'_>,
    record: &Bytes,
    old: &Bytes,
    new: RawDocBuf,
    statements: Statements<'_>,
) -> Result<()> {
    let changed = Changed {
        doc: new,
        diff: None,
        touched: &Touched::All,
    };
    writer.update_by(record, old.document(), changed, statements)
}

/// The name of the index that a time-series collection with a metaField has from the beginning.
pub fn first_index(series: &TimeSeries) -> Option<(String, nestor_model::Document)> {
    let meta = series.source_field()?;
    let time = &series.time_field;
    let mut key = nestor_model::Document::new();
    key.push(meta, Value::Int32(1));
    key.push(time.clone(), Value::Int32(1));
    Some((format!("{meta}_1_{time}_1"), key))
}
