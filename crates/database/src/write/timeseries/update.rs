//! Updates of time-series collections, by the words that [`super::words`] makes of buckets.

use super::{check_transaction, series_of};
use crate::statement::Statement;
use crate::write::groups::in_groups;
use crate::write::target::Selection;
use crate::write::update::Running;
use crate::write::{Progress, Written};
use nestor_model::{Namespace, Result, bail};
use nestor_planner::timeseries::renamed_meta;
use nestor_query::env::OpContext;
use nestor_query::timeseries::Header;
use std::sync::Arc;

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
