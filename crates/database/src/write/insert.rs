//! Inserting documents with one commit.

use super::timeseries::insert::Measurement;
use super::{Progress, prepare, timeseries, writable};
use crate::masking;
use crate::statement::Statement;
use crate::write::validator::Validator;
use nestor_exec::catalog::refuse_guarded;
use nestor_exec::write::Writer;
use nestor_exec::write::oplog::Retryable;
use nestor_model::{Namespace, RawDoc, RawDocBuf, Result};
use nestor_query::env::OpContext;
use nestor_query::timeseries::from_client;
use nestor_storage::{View, WriteSet};

/// Documents per commit at most.
pub const GROUP_MAX: usize = 1_000;
/// Measurements per commit at most: the more of a source come together, the less often its bucket is written.
pub const MEASUREMENTS_MAX: usize = 20_000;
/// Bytes per commit at most, about.
pub const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How to insert.
#[derive(Clone, Copy, Debug)]
pub struct InsertOptions {
    /// Leave timestamps of zero as they are (`bypassEmptyTsReplacement`).
    pub keep_empty_times: bool,
    /// Do not apply the collection's validator.
    pub bypass_validation: bool,
}

/// Inserts documents, all or none: each as its client sent it, and which statement of a retryable write it is.
pub fn group(
    statement: &Statement<'_>,
    ns: &Namespace,
    op: &OpContext,
    group: &[(RawDoc<'_>, Option<Retryable>)],
    options: InsertOptions,
    progress: &mut Progress,
) -> Result<()> {
    let docs = group
        .iter()
        .map(|(doc, _)| prepare::for_insert(*doc, op, !options.keep_empty_times))
        .collect::<Result<Vec<RawDocBuf>>>()?;
    let mut uuid = None;
    let mut are_measurements = false;
    statement.atomically(progress, |ws: &mut WriteSet| {
        are_measurements = ws.catalog().get(ns).is_some_and(|found| found.timeseries().is_some());
        if are_measurements {
            return Ok(());
        }
        let collection = writable(ws, ns, statement, &mut uuid)?;
        refuse_guarded(&collection, op.caller.as_deref())?;
        masking::check_insert(&collection, op)?;
        let validator = Validator::of(statement, &collection, options.bypass_validation)?;
        let origin = statement.origin(&ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        for ((_, retryable), doc) in group.iter().zip(&docs) {
            if let Some(validator) = &validator {
                validator.check(doc.as_raw(), op)?;
            }
            let doc = match writer.collection.buckets() {
                Some(series) => from_client(doc.as_raw(), series)?,
                None => doc.clone(),
            };
            writer.insert(doc, *retryable)?;
        }
        statement.observe_keys(&writer);
        Ok(())
    })?;
    match are_measurements {
        true => {
            let stmt_id = |retryable: &Retryable| retryable.stmt_id;
            let stmt_ids = group.iter().map(|(_, retryable)| retryable.as_ref().map(stmt_id));
            let measurements: Vec<Measurement<'_>> = docs
                .iter()
                .zip(stmt_ids)
                .map(|(doc, stmt_id)| (doc.as_raw(), stmt_id))
                .collect();
            timeseries::insert::group(statement, ns, op, &measurements, progress)
        }
        false => Ok(()),
    }
}
