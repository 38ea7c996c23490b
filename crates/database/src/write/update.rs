//! Updating what a filter selects, and upserts.

use super::groups::in_groups;
use super::prepared::Prepared;
use super::{Progress, Written, check_capped, check_writable, prepare, writable};
use crate::statement::Statement;
use crate::write::validator::Validator;
use nestor_exec::write::{Changed, Writer};
use nestor_model::collection_options::Capped;
use nestor_model::{DocRef, Namespace, RawDoc, RawDocBuf, Result, TimeSeries, Value, bail};
use nestor_query::env::OpContext;
use nestor_query::timeseries::fault;
use nestor_query::update::{Applied, Update};
use nestor_storage::{Bytes, View};

/// An update that runs.
pub struct Running<'p> {
    /// Which documents, and how.
    pub prepared: &'p Prepared<'p>,
    /// The change.
    pub update: &'p Update,
    /// Insert a document made of this filter when none matches.
    pub upsert: Option<DocRef<'p>>,
}

impl Running<'_> {
    /// Updates the first selected document, or upserts.
    pub fn one(
        &self,
        statement: &Statement<'_>,
        ns: &Namespace,
        op: &OpContext,
        progress: &mut Progress,
    ) -> Result<Written> {
        let Prepared {
            selection,
            bypass_validation,
            retryable,
            ..
        } = self.prepared;
        let mut uuid = None;
        statement.atomically(progress, |ws| {
            if let Some(collection) = ws.catalog().get(ns).cloned() {
                check_writable(&collection)?;
                check_capped(statement, &collection)?;
                if let Some((record, old)) = selection.first(statement, ws, &collection, op)? {
                    let validator = Validator::of(statement, &collection, *bypass_validation)?;
                    let origin = statement.origin(&ns.db);
                    let mut writer = Writer::new(ws, collection, op, origin)?;
                    let changed = self.change(&mut writer, validator.as_ref(), &record, &old);
                    statement.observe_keys(&writer);
                    return changed;
                }
            }
            let Some(q) = self.upsert else {
                return Ok(Written::default());
            };
            let collection = writable(ws, ns, statement, &mut uuid)?;
            let doc = self.update.upsert_document(q, op)?;
            // Empty timestamps are filled in for replacements only.
            let doc = prepare::for_insert(doc.as_raw(), op, self.update.is_replacement())?;
            if let Some(validator) = Validator::of(statement, &collection, *bypass_validation)? {
                validator.check(doc.as_raw(), op)?;
            }
            let origin = statement.origin(&ns.db);
            let mut writer = Writer::new(ws, collection, op, origin)?;
            writer.insert(doc.clone(), *retryable)?;
            statement.observe_keys(&writer);
            let id = doc.as_raw().get("_id").map_or(Value::Null, |id| id.to_value());
            Ok(Written {
                upserted: Some(id),
                new: Some(doc),
                ..Written::default()
            })
        })
    }

    /// Updates all selected documents, or upserts.
    pub fn many(
        &self,
        statement: &Statement<'_>,
        ns: &Namespace,
        op: &OpContext,
        progress: &mut Progress,
    ) -> Result<Written> {
        let selection = &self.prepared.selection;
        let written = in_groups(statement, ns, selection, op, progress, |writer, met| {
            let collection = writer.collection.clone();
            let validator = Validator::of(statement, &collection, self.prepared.bypass_validation)?;
            let mut written = Written::default();
            while let Some((record, now)) = met.next(writer)? {
                let one = self.change(writer, validator.as_ref(), record, &now)?;
                written.matched += one.matched;
                written.modified += one.modified;
            }
            Ok(written)
        })?;
        match written {
            Some(written) if written.matched > 0 || self.upsert.is_none() => Ok(written),
            _ => self.one(statement, ns, op, progress),
        }
    }

    /// Applies the update to one record.
    pub(super) fn change(
        &self,
        writer: &mut Writer<'_>,
        validator: Option<&Validator<'_>>,
        record: &Bytes,
        old: &Bytes,
    ) -> Result<Written> {
        let before: RawDoc<'_> = old.document();
        let position = if self.update.needs_position() {
            let filter = &self.prepared.selection.query.filter;
            match filter.matches_with_position(before.as_doc(), writer.op)? {
                Some(details) => details.position,
                None => None,
            }
        } else {
            None
        };
        let mut out = Written {
            matched: 1,
            old: self.prepared.images.then(|| before.to_buf()),
            ..Written::default()
        };
        match self.update.apply(before, position, writer.op)? {
            Applied::NoChange => out.new = out.old.clone(),
            Applied::Changed(changed) => {
                if let Some(validator) = validator {
                    validator.check_update(before, changed.doc.as_raw(), writer.op)?;
                }
                if let Some(series) = writer.collection.buckets() {
                    check_bucket(changed.doc.as_raw(), series)?;
                }
                if let Some(limits) = &writer.collection.options.capped {
                    check_capped_size(limits, before.len(), changed.doc.as_bytes().len())?;
                }
                out.modified = 1;
                out.new = Some(changed.doc.clone());
                writer.update(
                    record,
                    before,
                    Changed {
                        doc: changed.doc,
                        diff: changed.diff.as_ref().map(RawDocBuf::as_raw),
                        touched: self.update.touched(),
                    },
                    self.prepared.retryable,
                )?;
            }
        }
        Ok(out)
    }
}

/// Refuses updates of buckets that leave no bucket. Errors: 121.
fn check_bucket(doc: RawDoc<'_>, series: &TimeSeries) -> Result<()> {
    match fault(doc, series) {
        None => Ok(()),
        Some(why) => bail!(DocumentValidationFailure, "Document failed validation: {why}"),
    }
}

/// Documents of capped collections may change their size since MongoDB 5.0, but not beyond the whole.
pub(super) fn check_capped_size(limits: &Capped, before: usize, after: usize) -> Result<()> {
    let bytes_max = limits.bytes_max;
    if after > before && after as i64 > bytes_max {
        bail!(
            DocTooLargeForCapped,
            "document of {after} bytes does not fit the capped collection of {bytes_max}"
        );
    }
    Ok(())
}
