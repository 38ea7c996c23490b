//! Stages that make at most one document of each: `$replaceRoot`, `$redact`, masking.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow};
use crate::row::{Row, RowDoc};
use nestor_model::{Error, Result, TimeSeries, Value};
use nestor_planner::NodeKind;
use nestor_query::Expr;
use nestor_query::env::Env;
use nestor_query::masking::Masking;
use nestor_query::stage::{Redact, redact};
use nestor_query::timeseries::Bucket;
use std::sync::Arc;

/// Changes or drops each row.
pub(super) type Map = Each<Change>;

/// The work of a [`Map`] on a row.
pub(super) enum Change {
    ReplaceRoot(Arc<Expr>),
    Mask(Arc<Masking>),
    PublicBuckets(Arc<TimeSeries>),
    Redact(Arc<Redact>),
}

impl Map {
    /// `$replaceRoot`.
    pub(super) fn replace_root(input: BoxOperator, expr: Arc<Expr>) -> Self {
        Self::over(input, Change::ReplaceRoot(expr))
    }

    /// Masks the fields that the caller may not see plain.
    pub(super) fn mask(input: BoxOperator, masking: Arc<Masking>) -> Self {
        Self::over(input, Change::Mask(masking))
    }

    /// Stored buckets in their public form.
    pub(super) fn public_buckets(input: BoxOperator, series: Arc<TimeSeries>) -> Self {
        Self::over(input, Change::PublicBuckets(series))
    }

    /// `$redact`.
    pub(super) fn redact(input: BoxOperator, stage: Arc<Redact>) -> Self {
        Self::over(input, Change::Redact(stage))
    }
}

impl Change {
    fn apply(&self, row: &Row, batch: &Batch<'_>) -> Result<Option<RowDoc>> {
        match self {
            Self::ReplaceRoot(expr) => {
                let mut env = Env::new(row.as_doc(), batch.op).with_meta(row.meta.as_deref());
                match expr.eval(&mut env)? {
                    Value::Document(doc) => Ok(Some(RowDoc::Owned(doc))),
                    other => Err(Error::location(
                        40228,
                        format!(
                            "'newRoot' expression must evaluate to an object, but resulting value was: {other:?}; type of resulting value: '{}'",
                            other.bson_type().alias()
                        ),
                    )),
                }
            }
            Self::Mask(masking) => {
                let key = batch.op.caller.as_ref().and_then(|caller| caller.sight.key());
                let doc = masking.apply(row.as_doc(), key);
                Ok(Some(RowDoc::Owned(doc.into())))
            }
            Self::PublicBuckets(series) => {
                let stored = row.doc.to_raw();
                let bucket = Bucket::decode(stored.as_raw(), series)?;
                Ok(Some(RowDoc::Owned(bucket.to_public(stored.as_raw())?)))
            }
            Self::Redact(stage) => Ok(redact(stage, row.as_doc(), batch.op)?.map(RowDoc::Owned)),
        }
    }
}

impl EachRow for Change {
    fn kind(&self) -> NodeKind {
        match self {
            Self::ReplaceRoot(_) => NodeKind::ReplaceRoot,
            Self::Mask(_) => NodeKind::Mask,
            Self::PublicBuckets(_) => NodeKind::PublicBuckets,
            Self::Redact(_) => NodeKind::Redact,
        }
    }

    fn row(&mut self, row: Row, batch: &Batch<'_>, _: &mut Counters) -> Result<Option<Row>> {
        Ok(self.apply(&row, batch)?.map(|doc| Row {
            doc,
            record: None,
            meta: row.meta,
        }))
    }
}
