//! Updates of time-series collections: of what the measurements of a bucket have in common, and nothing else.
//!
//! ```text
//! {q: {m: "a"}, u: {$set: {"m.b": 1}}, multi: true}    on buckets: {q: {meta: "a"}, u: {$set: {"meta.b": 1}}, multi: true}
//! ```
//!
//! Source: manual, "Time Series Collection Limitations", updates.

use super::{check_transaction, series_of};
use crate::statement::Statement;
use crate::write::groups::in_groups;
use crate::write::statements::UpdateOp;
use crate::write::target::Selection;
use crate::write::update::Running;
use crate::write::{Progress, Written};
use nestor_model::{DocRef, Document, Namespace, Result, TimeSeries, Value, ValueRef, bail};
use nestor_planner::timeseries::renamed_meta;
use nestor_query::env::OpContext;
use nestor_query::timeseries::Header;
use std::sync::Arc;

/// The update document of an update of a time-series collection, as one of its buckets.
///
/// Errors: 72 for what is not allowed.
pub fn of_buckets(op: &UpdateOp<'_>, series: &TimeSeries, ns: &Namespace) -> Result<Document> {
    if op.upsert {
        bail!(
            InvalidOptions,
            "Cannot perform an upsert on a time-series collection: {ns}"
        );
    }
    if !op.multi {
        bail!(
            InvalidOptions,
            "Cannot perform a non-multi update on a time-series collection: {ns}"
        );
    }
    let Some(meta) = series.source_field() else {
        bail!(
            InvalidOptions,
            "Cannot perform an update on a time-series collection that does not have a metaField: {ns}"
        );
    };
    let update = match op.update {
        ValueRef::Document(update) if update.iter().all(|(name, _)| name.starts_with('$')) && !update.is_empty() => {
            update
        }
        ValueRef::Array(_) => bail!(
            InvalidOptions,
            "Cannot perform an update on a time-series collection using a pipeline update: {ns}"
        ),
        _ => bail!(
            InvalidOptions,
            "Cannot perform an update on a time-series collection using a replacement document: {ns}"
        ),
    };
    let mut out = Document::new();
    for (operator, fields) in update.iter() {
        if operator == "$rename" {
            bail!(
                InvalidOptions,
                "Cannot perform a $rename on the metaField of a time-series collection: {ns}"
            );
        }
        match fields {
            ValueRef::Document(fields) => out.push(operator, fields_of_buckets(fields, meta)?),
            // The parser of updates says what is wrong with it.
            other => out.push(operator, other),
        }
    }
    Ok(out)
}

fn fields_of_buckets(fields: DocRef<'_>, meta: &str) -> Result<Value> {
    let mut out = Document::new();
    for (path, value) in fields.iter() {
        let below = path
            .strip_prefix(meta)
            .filter(|below| below.is_empty() || below.starts_with('.'));
        match below {
            Some(below) => out.push(format!("meta{below}"), value),
            None => bail!(
                InvalidOptions,
                "Cannot perform an update on a time-series collection which updates a field that is not the metaField '{meta}': {path}"
            ),
        }
    }
    Ok(out.into())
}

/// Runs an update whose update document is one of buckets, and whose filter is one of measurements.
///
/// Errors: 72 for a filter on something else than the metaField, 263 within a transaction.
pub fn run(
    statement: &Statement<'_>,
    ns: &Namespace,
    update: &Running<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    check_transaction(statement, "update", ns)?;
    let buckets = super::buckets_of(ns);
    let selected = &update.prepared.selection;
    let read = statement.current_view();
    let Some((_, collection)) = super::found(read.view(), ns)? else {
        return Ok(Written::default());
    };
    let series = series_of(&collection)?;
    let Some(filter) = renamed_meta(&selected.query.filter, series) else {
        bail!(
            InvalidOptions,
            "Cannot perform an update on a time-series collection when querying on a field that is not the metaField: {ns}"
        );
    };
    drop(read);
    let mut selection: Selection<'_> = super::delete::of_buckets(selected, series);
    selection.query.filter = Arc::new(filter);
    let written = in_groups(statement, &buckets, &selection, op, progress, |writer, met| {
        let mut written = Written::default();
        while let Some((record, now)) = met.next(writer)? {
            let measurements = Header::parse(now.document())?.len as i64;
            let one = update.change(writer, None, record, &now)?;
            written.matched += one.matched * measurements;
            written.modified += one.modified * measurements;
        }
        Ok(written)
    })?;
    Ok(written.unwrap_or_default())
}
