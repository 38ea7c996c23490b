//! `$out`: the documents become a collection.

use super::args::Options;
use super::{ParseContext, Stage};
use nestor_model::namespace::is_internal_database;
use nestor_model::{Document, Error, ErrorCode, Namespace, Result, ValueRef};
use std::sync::Arc;

/// A parsed `$out`.
#[derive(Debug)]
pub struct Out {
    /// The collection to replace.
    pub target: Namespace,
    /// Options of a time series collection to create.
    pub timeseries: Option<Document>,
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
        ValueRef::Document(doc) => {
            let options = Options::read(stage, doc, &["db", "coll", "timeseries"])?;
            let coll = options.string("coll")?.ok_or_else(|| options.missing("coll"))?;
            let db = options.string("db")?.ok_or_else(|| options.missing("db"))?;
            let timeseries = options.document("timeseries")?;
            if let Some(series) = timeseries {
                let series = Options::read(
                    "$out.timeseries",
                    series,
                    &[
                        "timeField",
                        "metaField",
                        "granularity",
                        "bucketMaxSpanSeconds",
                        "bucketRoundingSeconds",
                    ],
                )?;
                series.string("timeField")?.ok_or_else(|| series.missing("timeField"))?;
                if series.given("bucketMaxSpanSeconds").is_some() != series.given("bucketRoundingSeconds").is_some() {
                    return Err(Error::new(
                        ErrorCode::InvalidOptions,
                        "bucketMaxSpanSeconds and bucketRoundingSeconds must be set together",
                    ));
                }
            }
            (db, coll, timeseries.map(|t| t.to_document()))
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
