//! Indexes of time-series collections: they are made, listed and named as indexes of measurements, and are indexes of buckets.
//!
//! Source: manual, "Add Secondary Indexes to Time Series Collections" and "Time Series Secondary Indexes".

use super::{shown, spec};
use nestor_model::{DocRef, Document, IndexSpec, RawDoc, Result, TimeSeries, Value, ValueRef, bail, values_equal};
use nestor_planner::kinds;
use nestor_planner::timeseries::{bucket_filter, key_of_buckets, key_of_measurements};
use nestor_query::Scope;
use nestor_query::matcher::MatchExpr;

/// The options that an index of buckets keeps of the index of measurements, to be listed.
const ORIGINAL: &str = "originalSpec";

/// The index of buckets that an index of measurements is.
///
/// Errors: 72 for options that such an index cannot have, 67 for kinds, 85 for a partial index with another collation than the
/// collection's, and those of any index.
pub(super) fn of_buckets(
    wanted: RawDoc<'_>,
    series: &TimeSeries,
    default_collation: Option<&Document>,
) -> Result<IndexSpec> {
    let Some(key) = wanted.get("key").and_then(ValueRef::as_document) else {
        return spec::parse(wanted);
    };
    check(wanted, key, series)?;
    let (mut out, mut original, mut expire) = (Document::new(), Document::new(), None);
    for (name, value) in wanted.iter() {
        match (name, value) {
            ("key", _) => out.push("key", key_of_buckets(key, series)?),
            ("partialFilterExpression", ValueRef::Document(filter)) => {
                let parsed = MatchExpr::parse(filter, &mut Scope::new())?.normalize();
                original.push(name, value);
                let of_buckets = bucket_filter(&parsed, series).serialize();
                // All buckets may have such measurements.
                if !of_buckets.is_empty() {
                    out.push(name, of_buckets);
                }
            }
            ("expireAfterSeconds", _) => expire = Some(value),
            _ => out.push(name, value),
        }
    }
    let parsed = spec::parse(out.to_raw().as_raw())?;
    let is_inherited = |collation: &Document| match default_collation {
        Some(default) => values_equal(collation, default),
        None => collation.get("locale").and_then(ValueRef::as_str) == Some("simple"),
    };
    if wanted.get("partialFilterExpression").is_some() && !parsed.collation.as_ref().is_none_or(is_inherited) {
        bail!(
            IndexOptionsConflict,
            "a partial index on a time-series collection cannot have another collation than the collection: '{}'",
            parsed.name
        );
    }
    if original.is_empty() && expire.is_none() {
        return Ok(parsed);
    }
    let mut listed = Document::from(parsed.listed().clone());
    if let Some(expire) = expire {
        // What is right for an index on one field of documents is so for the two limits of the times of a bucket.
        let mut single = nestor_model::doc! { "v": 2, "key": key.to_document(), "name": parsed.name.clone() };
        single.push("expireAfterSeconds", expire);
        let single = spec::parse(single.to_raw().as_raw())?;
        if let Some(expire) = single.listed().as_raw().get("expireAfterSeconds") {
            listed.push("expireAfterSeconds", expire);
        }
    }
    if !original.is_empty() {
        listed.push(ORIGINAL, original);
    }
    IndexSpec::parse(listed.to_raw())
}

fn check(wanted: RawDoc<'_>, key: DocRef<'_>, series: &TimeSeries) -> Result<()> {
    let head = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    let on_meta = |path: &str| series.source_field() == Some(head(path).as_str());
    let is_on = |name: &str| wanted.get(name).is_some_and(ValueRef::truthy);
    if let Some(reason) = kinds::refused_on_series(key) {
        bail!(InvalidOptions, "{reason}");
    }
    for option in ["unique", "prepareUnique"] {
        if is_on(option) {
            bail!(
                InvalidOptions,
                "Unique indexes are not supported on collections clustered by _id"
            );
        }
    }
    if is_on("sparse") && key.iter().any(|(path, _)| !on_meta(path)) {
        bail!(
            InvalidOptions,
            "Sparse indexes are not supported on time-series measurements: they have to be on the metaField"
        );
    }
    if wanted.get("expireAfterSeconds").is_some() {
        let mut paths = key.iter().map(|(path, _)| path);
        if (paths.next(), paths.next()) != (Some(series.time_field.as_str()), None) {
            bail!(
                InvalidOptions,
                "TTL indexes are not supported on time-series collections, but on the timeField '{}' alone",
                series.time_field
            );
        }
        let partial = wanted.get("partialFilterExpression").and_then(ValueRef::as_document);
        let is_meta = |filter: DocRef<'_>| !filter.is_empty() && filter.iter().all(|(path, _)| on_meta(path));
        if !partial.is_some_and(is_meta) {
            bail!(
                InvalidOptions,
                "TTL indexes on time-series collections need a 'partialFilterExpression' on the metaField"
            );
        }
    }
    Ok(())
}

/// An index of buckets as one of measurements is listed; `None` for one that is not an index of measurements.
pub(crate) fn listed(spec: &IndexSpec, series: &TimeSeries) -> Option<Document> {
    let key = key_of_measurements(spec.key_pattern.as_ref(), series)?;
    let mut out = shown(spec);
    out.set("key", key);
    let original = out.remove(ORIGINAL);
    if let Some(Value::Document(original)) = original {
        for (name, value) in original.iter() {
            out.set(name, value.to_value());
        }
    }
    Some(out)
}
