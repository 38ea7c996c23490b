//! The words of updates of time-series collections: they may change what the measurements of a bucket have in common, and nothing else.
//!
//! ```text
//! {q: {m: "a"}, u: {$set: {"m.b": 1}}, multi: true}    on buckets: {q: {meta: "a"}, u: {$set: {"meta.b": 1}}, multi: true}
//! ```
//!
//! Source: manual, "Time Series Collection Limitations", updates.

use crate::write::statements::UpdateOp;
use nestor_model::{DocRef, Document, Namespace, Result, TimeSeries, Value, ValueRef, bail};

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
