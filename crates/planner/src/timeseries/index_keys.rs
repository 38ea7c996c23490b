//! Indexes of time-series collections are indexes of their buckets.
//!
//! ```text
//! {m: 1, t: 1, v: -1}    {meta: 1, control.min.t: 1, control.max.t: 1, control.max.v: -1, control.min.v: -1}
//! ```

use nestor_model::index_spec::KeyOrder;
use nestor_model::{DocRef, Document, Result, TimeSeries, bail};

/// The key of buckets for a key of measurements.
///
/// Errors: 67 (CannotCreateIndex) for kinds of indexes that fields of measurements cannot have.
pub fn key_of_buckets(key: DocRef<'_>, series: &TimeSeries) -> Result<Document> {
    let mut out = Document::new();
    for (path, order) in key.iter() {
        let head = path.split('.').next().unwrap_or_default();
        if series.source_field() == Some(head) {
            out.push(format!("meta{}", &path[head.len()..]), order);
            continue;
        }
        let limits = match KeyOrder::of(order) {
            KeyOrder::Ascending if order.is_number() => ["min", "max"],
            KeyOrder::Descending => ["max", "min"],
            KeyOrder::Special(kind) => bail!(
                CannotCreateIndex,
                "a {kind} index on a time-series collection has to be on its metaField: '{path}'"
            ),
            KeyOrder::Ascending => bail!(
                CannotCreateIndex,
                "values in the index key pattern of a time-series collection have to be numbers: '{path}'"
            ),
        };
        for limit in limits {
            out.push(format!("control.{limit}.{path}"), order);
        }
    }
    Ok(out)
}

/// Inverse of [`key_of_buckets`]; `None` for keys that no key of measurements becomes.
pub fn key_of_measurements(key: DocRef<'_>, series: &TimeSeries) -> Option<Document> {
    let mut out = Document::new();
    let mut parts = key.iter();
    while let Some((path, order)) = parts.next() {
        if path == "meta" || path.starts_with("meta.") {
            let meta = series.source_field()?;
            out.push(format!("{meta}{}", &path["meta".len()..]), order);
            continue;
        }
        let (first, other) = match path.strip_prefix("control.min.") {
            Some(field) => (field, "control.max."),
            None => (path.strip_prefix("control.max.")?, "control.min."),
        };
        let (second, _) = parts.next()?;
        if second.strip_prefix(other) != Some(first) {
            return None;
        }
        out.push(first, order);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;
    use nestor_model::timeseries::Bucketing;

    #[test]
    fn keys_come_back() {
        let series = TimeSeries::new("t", Some("m"), Bucketing::default()).expect("valid options");
        let key = doc! { "m.a": "hashed", "t": 1, "v": -1 };
        let of_buckets = key_of_buckets(key.as_ref(), &series).expect("a key");
        let wanted = doc! {
            "meta.a": "hashed", "control.min.t": 1, "control.max.t": 1, "control.max.v": -1, "control.min.v": -1,
        };
        assert_eq!(format!("{of_buckets:?}"), format!("{wanted:?}"));
        let back = key_of_measurements(of_buckets.as_ref(), &series).expect("a key");
        assert_eq!(format!("{back:?}"), format!("{key:?}"));
        assert!(key_of_measurements(doc! { "control.min.v": 1 }.as_ref(), &series).is_none());
        let error = key_of_buckets(doc! { "v": "hashed" }.as_ref(), &series).expect_err("refused");
        assert_eq!(error.code().number(), 67);
    }
}
