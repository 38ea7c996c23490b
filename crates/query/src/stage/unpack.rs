//! `$_internalUnpackBucket`: the measurements of time-series buckets, one by one. It is what a time-series collection does to the collection of
//! its buckets.

use super::args::Options;
use super::{ParseContext, Stage};
use crate::matcher::MatchExpr;
use nestor_model::timeseries::Bucketing;
use nestor_model::{Document, Error, ErrorCode, Result, TimeSeries, Value, ValueRef, doc};
use std::sync::Arc;

/// A parsed `$_internalUnpackBucket`.
#[derive(Clone, Debug)]
pub struct Unpack {
    /// What the buckets are of; of the widths of buckets only the span is known.
    pub series: TimeSeries,
    /// What measurements have to satisfy; a rule puts it there.
    pub filter: Option<Arc<MatchExpr>>,
}

/// `{timeField, metaField, bucketMaxSpanSeconds}`. Errors: 9 for what is no such document, 2 and 72 for what no time-series
/// collection has.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    _context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let Some(spec) = value.as_document() else {
        return Err(Error::new(
            ErrorCode::FailedToParse,
            format!("{stage} specification must be an object"),
        ));
    };
    let options = Options::read(
        stage,
        spec,
        &["timeField", "metaField", "bucketMaxSpanSeconds", "exclude"],
    )?;
    let time_field = options
        .string("timeField")?
        .ok_or_else(|| options.missing("timeField"))?;
    let span = options
        .given("bucketMaxSpanSeconds")
        .ok_or_else(|| options.missing("bucketMaxSpanSeconds"))?;
    let span_secs = nestor_model::number::safe_i64(span)
        .filter(|_| span.is_number())
        .ok_or_else(|| options.wrong_type("bucketMaxSpanSeconds", span, "number"))?;
    if options.array("exclude")?.is_some_and(|excluded| !excluded.is_empty()) {
        return Err(Error::new(
            ErrorCode::NotImplemented,
            format!("{stage} does not leave out fields: 'exclude' has to be empty"),
        ));
    }
    let bucketing = Bucketing {
        span_secs: Some(span_secs),
        rounding_secs: Some(span_secs),
        granularity: None,
    };
    let series = TimeSeries::new(time_field, options.string("metaField")?, bucketing)?;
    out.push(Stage::Unpack(Arc::new(Unpack { series, filter: None })));
    Ok(())
}

impl Unpack {
    /// The pipeline of the view that a time-series collection is of its buckets.
    pub fn view_pipeline(series: &TimeSeries) -> Vec<Value> {
        vec![doc! { "$_internalUnpackBucket": Self::spec(series, None) }.into()]
    }

    /// The stage as explain prints it.
    pub fn serialize(&self) -> Value {
        let mut spec = Self::spec(&self.series, Some(Value::from(Vec::new())));
        if let Some(filter) = &self.filter {
            spec.push("eventFilter", filter.serialize());
        }
        spec.into()
    }

    fn spec(series: &TimeSeries, exclude: Option<Value>) -> Document {
        let mut spec = Document::new();
        if let Some(exclude) = exclude {
            spec.push("exclude", exclude);
        }
        spec.push("timeField", series.time_field.clone());
        if let Some(meta) = &series.meta_field {
            spec.push("metaField", meta.clone());
        }
        spec.push("bucketMaxSpanSeconds", series.span_secs as i32);
        spec
    }
}
