//! Masking, as far as statements have to do with it. Reads are masked where plans are made ([`nestor_exec::catalog::masked`]); here is
//! what else somebody may do with a collection of which not everything is seen plain. Updates and deletes are checked when they are
//! prepared (`operation/masked.rs`).
//!
//! See `docs/decisions/0008-masking-beneath-the-query.md`.

use crate::statement::Statement;
use nestor_exec::catalog::{Masked, masked, prepared, refuse_guarded, refuse_log, refuse_others, tells};
use nestor_model::{Document, IndexSpec, RawDocBuf, Result, bail};
use nestor_query::env::OpContext;
use nestor_query::masking::Masking;
use nestor_query::update::Touched;
use nestor_storage::{Collection, View};

impl Statement<'_> {
    /// Whether what is asked of `collection` is asked of what a pipeline makes of it: it is a view, masked for the caller, or has time-series buckets.
    ///
    /// Errors: 13 for the oplog, when the caller may not see some collection plain, and for collections whose row security the caller is subject to;
    /// those of the policy.
    pub fn reads_by_pipeline(&self, view: &dyn View, collection: &Collection) -> Result<bool> {
        refuse_guarded(collection, self.caller.as_deref())?;
        self.is_read_by_pipeline(view, collection)
    }

    /// As [`Statement::reads_by_pipeline`], for who looks at row security itself.
    ///
    /// Errors: 13 for the oplog; those of the policy.
    pub fn is_read_by_pipeline(&self, view: &dyn View, collection: &Collection) -> Result<bool> {
        let caller = self.caller.as_deref();
        let by_pipeline = collection.is_view() || collection.buckets().is_some();
        if caller.is_none() || by_pipeline {
            return Ok(by_pipeline);
        }
        refuse_log(view, collection, caller)?;
        Ok(masked(collection, caller)?.is_some())
    }

    /// Refuses to do something with all documents of a collection that the caller may not see plain, or of which row security keeps some from
    /// the caller, who is not the owner either.
    ///
    /// Errors: 13.
    pub fn check_plain(&self, collection: &Collection, what: &str) -> Result<()> {
        refuse_others(collection, self.caller.as_deref())?;
        self.check_unmasked(collection, what)
    }

    /// As [`Statement::check_plain`], for who looks at row security itself.
    ///
    /// Errors: 13.
    pub fn check_unmasked(&self, collection: &Collection, what: &str) -> Result<()> {
        match masked(collection, self.caller.as_deref())? {
            None => Ok(()),
            Some(_) => bail!(Unauthorized, "{} is masked for you: {what}", collection.ns),
        }
    }

    /// Refuses a collection whose row security the caller is subject to.
    ///
    /// Errors: 13.
    pub fn check_all_rows(&self, collection: &Collection) -> Result<()> {
        refuse_guarded(collection, self.caller.as_deref())
    }

    /// As [`Statement::check_all_rows`], but for the owner.
    ///
    /// Errors: 13.
    pub fn check_others(&self, collection: &Collection) -> Result<()> {
        refuse_others(collection, self.caller.as_deref())
    }

    /// Refuses to make an index that would tell of masked fields: by a duplicate key, by the documents that it has, or by
    /// what of a document cannot be indexed (an unknown language).
    ///
    /// Errors: 13; those of [`nestor_planner::kinds::open`].
    pub fn check_index(&self, collection: &Collection, spec: &IndexSpec) -> Result<()> {
        refuse_others(collection, self.caller.as_deref())?;
        let Some(masked) = masked(collection, self.caller.as_deref())? else {
            return Ok(());
        };
        let index = nestor_planner::kinds::open(0, spec, &[])?;
        if tells(&index, &masked.masking) || spec.partial_filter.is_some() {
            bail!(
                Unauthorized,
                "{} is masked for you: an index on or limited by fields must not tell of masked ones",
                collection.ns
            );
        }
        Ok(())
    }
}

/// Checks a policy before it is stored.
///
/// Errors: those of [`Masking::parse`].
pub fn check_policy(policy: &Document) -> Result<()> {
    Masking::parse(policy.as_ref()).map(drop)
}

/// A document of `collection` as whoever runs `op` may see it.
///
/// Errors: those of the policy.
pub fn shown(doc: RawDocBuf, collection: Option<&Collection>, op: &OpContext) -> Result<RawDocBuf> {
    let caller = op.caller.as_deref();
    let Some(collection) = collection else { return Ok(doc) };
    Ok(match (masked(collection, caller)?, caller) {
        (Some(masked), Some(caller)) => masked.masking.apply(doc.as_raw().as_doc(), caller.sight.key()),
        _ => doc,
    })
}

/// Refuses to insert where a unique index would tell whether somebody has the same value in a masked field.
///
/// Errors: 13.
pub fn check_insert(collection: &Collection, op: &OpContext) -> Result<()> {
    match masked(collection, op.caller.as_deref())? {
        None => Ok(()),
        Some(masked) => check_unique(collection, masked, &Touched::All),
    }
}

/// Refuses a write of these fields where a unique index would tell whether somebody has the same value in a masked one.
///
/// Errors: 13.
pub(crate) fn check_unique(collection: &Collection, masked: &Masked, touched: &Touched) -> Result<()> {
    for (index, info) in collection.indexes.iter().zip(prepared(collection)?.indexes.iter()) {
        let is_touched = || {
            let in_texts = info.kind.text().is_some_and(|text| match text.paths() {
                Some(paths) => paths.iter().any(|path| touched.affects(path)),
                None => true,
            });
            in_texts || info.parts.iter().any(|part| touched.affects(&part.path))
        };
        if index.unique && tells(info, &masked.masking) && is_touched() {
            bail!(
                Unauthorized,
                "{} is masked for you: the unique index '{}' would tell of a masked field",
                collection.ns,
                index.name
            );
        }
    }
    Ok(())
}
