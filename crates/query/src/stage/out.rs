//! `$out`: the documents become a collection.

use super::args::{Options, long_of};
use super::{ParseContext, Stage, out_file};
use nestor_model::namespace::is_internal_database;
use nestor_model::number::Num;
use nestor_model::timeseries::{Bucketing, Granularity};
use nestor_model::{DocRef, Error, ErrorCode, Namespace, Result, TimeSeries, ValueRef};
use std::sync::Arc;

/// A parsed `$out`.
#[derive(Debug)]
pub struct Out {
    /// The collection to replace.
    pub target: Namespace,
    /// The time-series collection to make, or that is there.
    pub timeseries: Option<TimeSeries>,
}

/// `"collection"` or `{db, coll, timeseries}`. Errors: 16990, 17385, 31321, 40413 to 40415, 14.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let (db, coll, timeseries) = match value {
        ValueRef::String(coll) => (context.namespace.db.as_str(), coll, None),
        ValueRef::Document(doc) if doc.get("path").is_some() => return out_file::parse(stage, doc, context, out),
        ValueRef::Document(doc) => {
            let options = Options::read(stage, doc, &["db", "coll", "timeseries"])?;
            let coll = options.string("coll")?.ok_or_else(|| options.missing("coll"))?;
            let db = options.string("db")?.ok_or_else(|| options.missing("db"))?;
            let timeseries = match options.document("timeseries")? {
                Some(series) => Some(timeseries_options(series)?),
                None => None,
            };
            (db, coll, timeseries)
        }
        _ => {
            return Err(Error::location(
                16990,
                format!(
                    "$out only supports a string or object argument, but found {}",
                    value.bson_type().alias()
                ),
            ));
        }
    };
    if coll.is_empty() {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            "$out collection name must not be empty",
        ));
    }
    if coll.starts_with('$') {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            format!("invalid $out collection name: {coll}"),
        ));
    }
    if coll.starts_with("system.") {
        return Err(Error::location(
            17385,
            format!("cannot $out to special collection: {coll}"),
        ));
    }
    if is_internal_database(db) {
        return Err(Error::location(
            31321,
            format!("cannot $out to internal database: {db}"),
        ));
    }
    out.push(Stage::Out(Arc::new(Out {
        target: Namespace::new(db, coll),
        timeseries,
    })));
    Ok(())
}

/// Errors: 2 and 72 for widths of buckets, 14, 40413 to 40415.
fn timeseries_options(spec: DocRef<'_>) -> Result<TimeSeries> {
    let options = Options::read(
        "$out.timeseries",
        spec,
        &[
            "timeField",
            "metaField",
            "granularity",
            "bucketMaxSpanSeconds",
            "bucketRoundingSeconds",
        ],
    )?;
    let time_field = options
        .string("timeField")?
        .ok_or_else(|| options.missing("timeField"))?;
    let meta_field = options.string("metaField")?;
    let granularity = options.string("granularity")?;
    let seconds = |name: &str| -> Result<Option<i64>> {
        let Some(value) = options.given(name) else {
            return Ok(None);
        };
        match Num::from_ref(value) {
            Some(number) => Ok(Some(long_of(number))),
            None => Err(options.wrong_type(name, value, "number")),
        }
    };
    let bucketing = Bucketing {
        span_secs: seconds("bucketMaxSpanSeconds")?,
        rounding_secs: seconds("bucketRoundingSeconds")?,
        granularity: granularity.map(Granularity::parse).transpose()?,
    };
    TimeSeries::new(time_field, meta_field, bucketing)
}
