//! What `collMod` changes of time-series collections: widths of buckets, and after how long measurements expire.

use super::options;
use crate::args::wrong_type;
use nestor_model::timeseries::{Bucketing, Granularity};
use nestor_model::{Document, RawDoc, Result, TimeSeries, Value, ValueRef, bail};
use nestor_query::stage::Unpack;

crate::args! {
    struct TimeSeriesMod<'a>: "collMod.timeseries" nested {
        "granularity" => granularity: Option<&'a str>,
        "bucketMaxSpanSeconds" => span_secs: Option<i64>,
        "bucketRoundingSeconds" => rounding_secs: Option<i64>,
    }
}

/// The options of the collection with other widths of buckets.
///
/// Errors: 2 and 72 for values that are not allowed or do not go together, 40415 for other options.
pub(super) fn widened(series: &TimeSeries, change: RawDoc<'_>) -> Result<TimeSeries> {
    let change = TimeSeriesMod::parse(change, &[])?;
    series.widened(Bucketing {
        granularity: change.granularity.map(Granularity::parse).transpose()?,
        span_secs: change.span_secs,
        rounding_secs: change.rounding_secs,
    })
}

/// Writes them into the listed options of the collection or of its buckets.
pub(super) fn store(series: &TimeSeries, listed: &mut Document) {
    listed.set("timeseries", series.listed());
    if listed.get("pipeline").is_some() {
        listed.set("pipeline", Value::from(Unpack::view_pipeline(series)));
    }
}

/// Changes after how long measurements expire.
///
/// Errors: 14 for what is neither a number nor "off", 72 for numbers that are out of range.
pub(super) fn expire(value: ValueRef<'_>, listed: &mut Document) -> Result<()> {
    match value {
        ValueRef::String("off") => drop(listed.remove("expireAfterSeconds")),
        ValueRef::String(_) => bail!(
            InvalidOptions,
            "Invalid string value for 'expireAfterSeconds'. Got: {value:?}. Accepted value is 'off'"
        ),
        number if number.is_number() => {
            let secs = options::expire_after_secs(number, nestor_database::clock::now_ms())?;
            listed.set("expireAfterSeconds", secs);
        }
        other => {
            return Err(wrong_type(
                "collMod.expireAfterSeconds",
                other.bson_type(),
                "[string, long]",
            ));
        }
    }
    Ok(())
}
