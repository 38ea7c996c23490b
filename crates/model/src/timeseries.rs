//! What a time-series collection was created with, parsed.
//!
//! ```text
//! {timeField: "t", metaField: "m", granularity: "minutes"}                     buckets begin at full hours and span a day
//! {timeField: "t", bucketMaxSpanSeconds: 300, bucketRoundingSeconds: 300}      both are 300 seconds
//! ```
//!
//! Source: manual, "Time Series Collections", "Set Granularity for Time Series Data".

use crate::number::safe_i64;
use crate::value::{DocRef, Document, ValueRef};
use crate::{Result, Str, bail};

/// What the name of a collection of buckets begins with; the name of its time-series collection follows.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// Longest span of a bucket, in seconds: a year.
pub const SPAN_SECS_MAX: i64 = 31_536_000;

/// How far apart measurements of one source usually are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Granularity {
    Seconds,
    Minutes,
    Hours,
}

impl Granularity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
        }
    }

    /// Errors: 2 (BadValue).
    pub fn parse(name: &str) -> Result<Self> {
        let all = [Self::Seconds, Self::Minutes, Self::Hours];
        match all.into_iter().find(|granularity| granularity.name() == name) {
            Some(granularity) => Ok(granularity),
            None => {
                let shown: String = name.chars().take(100).collect();
                bail!(
                    BadValue,
                    "Enumeration value '{shown}' for field 'timeseries.granularity' is not a valid value."
                )
            }
        }
    }

    /// What a bucket spans at most, in seconds.
    pub fn span_secs(self) -> i64 {
        match self {
            Self::Seconds => 3_600,
            Self::Minutes => 86_400,
            Self::Hours => 2_592_000,
        }
    }

    /// To what multiple of seconds the beginning of a bucket is rounded down.
    pub fn rounding_secs(self) -> i64 {
        match self {
            Self::Seconds => 60,
            Self::Minutes => 3_600,
            Self::Hours => 86_400,
        }
    }
}

/// The options of a time-series collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeSeries {
    /// The field with the date of each measurement.
    pub time_field: Str,
    /// The field that tells where a measurement comes from.
    pub meta_field: Option<Str>,
    /// `None` when span and rounding were given in seconds.
    pub granularity: Option<Granularity>,
    /// What a bucket spans at most, in seconds.
    pub span_secs: i64,
    /// To what multiple of seconds the beginning of a bucket is rounded down.
    pub rounding_secs: i64,
}

/// How wide buckets are, as a client wrote it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bucketing {
    /// `granularity`.
    pub granularity: Option<Granularity>,
    /// `bucketMaxSpanSeconds`.
    pub span_secs: Option<i64>,
    /// `bucketRoundingSeconds`.
    pub rounding_secs: Option<i64>,
}

impl Bucketing {
    /// Refuses values that no bucket has.
    ///
    /// Errors: 2 (BadValue).
    pub fn check_range(&self) -> Result<()> {
        let given = [
            ("bucketMaxSpanSeconds", self.span_secs),
            ("bucketRoundingSeconds", self.rounding_secs),
        ];
        for (name, value) in given {
            match value {
                Some(secs) if secs < 1 => {
                    bail!(
                        BadValue,
                        "BSON field '{name}' value must be >= 1, actual value '{secs}'"
                    )
                }
                Some(secs) if secs > SPAN_SECS_MAX => bail!(
                    BadValue,
                    "BSON field '{name}' value must be <= {SPAN_SECS_MAX}, actual value '{secs}'"
                ),
                _ => {}
            }
        }
        Ok(())
    }

    /// Granularity, span and rounding. Without any of them the granularity is "seconds".
    ///
    /// Errors: 2 for values out of range, 72 (InvalidOptions) for values that do not go together.
    pub fn settle(self) -> Result<(Option<Granularity>, i64, i64)> {
        self.check_range()?;
        match (self.granularity, self.span_secs, self.rounding_secs) {
            (None, None, None) => {
                let seconds = Granularity::Seconds;
                Ok((Some(seconds), seconds.span_secs(), seconds.rounding_secs()))
            }
            (None, Some(span), Some(rounding)) if span == rounding => Ok((None, span, rounding)),
            (None, _, _) => bail!(
                InvalidOptions,
                "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set together, and to the same value"
            ),
            (Some(granularity), span, None) if span.is_none_or(|span| span == granularity.span_secs()) => {
                Ok((Some(granularity), granularity.span_secs(), granularity.rounding_secs()))
            }
            (Some(granularity), _, Some(_)) => bail!(
                InvalidOptions,
                "Timeseries 'bucketRoundingSeconds' is not configurable with granularity '{}'",
                granularity.name()
            ),
            (Some(granularity), ..) => bail!(
                InvalidOptions,
                "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {} for the granularity '{}'",
                granularity.span_secs(),
                granularity.name()
            ),
        }
    }
}

impl TimeSeries {
    /// Options that were not checked against each other: see [`TimeSeries::check`].
    ///
    /// Errors: 2 and 72 for widths of buckets that are not allowed or do not go together.
    pub fn new(time_field: &str, meta_field: Option<&str>, bucketing: Bucketing) -> Result<Self> {
        let (granularity, span_secs, rounding_secs) = bucketing.settle()?;
        Ok(Self {
            time_field: time_field.into(),
            meta_field: meta_field.map(Str::from),
            granularity,
            span_secs,
            rounding_secs,
        })
    }

    /// Refuses fields that a collection cannot be made with.
    ///
    /// Errors: 2 and 72.
    pub fn check(self) -> Result<Self> {
        let fields = [
            ("timeField", Some(&self.time_field)),
            ("metaField", self.meta_field.as_ref()),
        ];
        for (name, field) in fields {
            let field = field.map(Str::as_str).unwrap_or_default();
            if field.contains('\0') {
                bail!(BadValue, "'{name}' cannot contain null bytes");
            }
            if field.contains('.') {
                bail!(
                    InvalidOptions,
                    "'{name}' must be a top-level field and not contain a '.'"
                );
            }
        }
        match self.meta_field.as_deref() {
            Some("_id") => bail!(InvalidOptions, "'metaField' cannot be \"_id\""),
            Some(meta) if *meta == *self.time_field => {
                bail!(InvalidOptions, "'metaField' cannot be the same as 'timeField'")
            }
            _ => Ok(self),
        }
    }

    /// The field that tells where a measurement comes from. `$out` makes collections whose metaField is their timeField: there
    /// no field tells it.
    pub fn source_field(&self) -> Option<&str> {
        self.meta_field.as_deref().filter(|meta| *meta != self.time_field)
    }

    /// Reads options in the form in which they are listed.
    ///
    /// Errors: 72 for what is no such form, and those of [`TimeSeries::new`].
    pub fn parse(listed: DocRef<'_>) -> Result<Self> {
        let (mut time_field, mut meta_field, mut bucketing) = (None, None, Bucketing::default());
        for (name, value) in listed.iter() {
            match (name, value) {
                ("timeField", ValueRef::String(field)) => time_field = Some(field),
                ("metaField", ValueRef::String(field)) => meta_field = Some(field),
                ("granularity", ValueRef::String(name)) => bucketing.granularity = Some(Granularity::parse(name)?),
                ("bucketMaxSpanSeconds", number) if number.is_number() => bucketing.span_secs = safe_i64(number),
                ("bucketRoundingSeconds", number) if number.is_number() => bucketing.rounding_secs = safe_i64(number),
                _ => bail!(InvalidOptions, "unknown option of a time-series collection: '{name}'"),
            }
        }
        match time_field {
            Some(time_field) => Self::new(time_field, meta_field, bucketing),
            None => bail!(InvalidOptions, "a time-series collection has no 'timeField'"),
        }
    }

    /// The options as listCollections shows them.
    pub fn listed(&self) -> Document {
        let mut out = Document::new();
        out.push("timeField", self.time_field.clone());
        if let Some(meta) = &self.meta_field {
            out.push("metaField", meta.clone());
        }
        match self.granularity {
            Some(granularity) => out.push("granularity", granularity.name()),
            None => out.push("bucketRoundingSeconds", self.rounding_secs as i32),
        }
        out.push("bucketMaxSpanSeconds", self.span_secs as i32);
        out
    }

    /// The beginning of a bucket that is opened for a measurement of this time, in milliseconds since 1970.
    pub fn round(&self, time_ms: i64) -> i64 {
        let unit = self.rounding_secs * 1000;
        time_ms.div_euclid(unit).saturating_mul(unit)
    }

    /// The same options with other widths of buckets: what collMod changes. Widths only grow, so that the limits of buckets
    /// that are there stay true.
    ///
    /// Errors: 72 for narrower buckets, and those of [`Bucketing::settle`].
    pub fn widened(&self, to: Bucketing) -> Result<Self> {
        if to.granularity.is_none() && to.span_secs.is_none() && to.rounding_secs.is_none() {
            return Ok(self.clone());
        }
        let (granularity, span_secs, rounding_secs) = to.settle()?;
        if span_secs < self.span_secs || rounding_secs < self.rounding_secs {
            bail!(
                InvalidOptions,
                "Invalid transition for timeseries.granularity or bucketing: buckets can only become wider than {} seconds, rounded to {}",
                self.span_secs,
                self.rounding_secs
            );
        }
        Ok(Self {
            granularity,
            span_secs,
            rounding_secs,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn options_are_listed_as_they_are_parsed() {
        for listed in [
            doc! { "timeField": "t", "granularity": "seconds", "bucketMaxSpanSeconds": 3600 },
            doc! { "timeField": "t", "metaField": "", "granularity": "hours", "bucketMaxSpanSeconds": 2_592_000 },
            doc! { "timeField": "t", "bucketRoundingSeconds": 7, "bucketMaxSpanSeconds": 7 },
        ] {
            let series = TimeSeries::parse(listed.as_ref()).expect("valid options");
            assert_eq!(format!("{:?}", series.listed()), format!("{listed:?}"));
        }
    }

    #[test]
    fn buckets_begin_at_multiples_before_1970_too() {
        let series = TimeSeries::new("t", None, Bucketing::default()).expect("valid options");
        assert_eq!(series.round(61_234), 60_000);
        assert_eq!(series.round(-1), -60_000);
    }

    #[test]
    fn buckets_only_become_wider() {
        let granularity = |granularity| Bucketing {
            granularity: Some(granularity),
            ..Bucketing::default()
        };
        let minutes = TimeSeries::new("t", None, granularity(Granularity::Minutes)).expect("valid options");
        assert_eq!(
            minutes
                .widened(granularity(Granularity::Hours))
                .map(|s| s.span_secs)
                .ok(),
            Some(2_592_000)
        );
        let error = minutes
            .widened(granularity(Granularity::Seconds))
            .expect_err("narrower");
        assert_eq!(error.code().number(), 72);
        assert_eq!(minutes.widened(Bucketing::default()).ok(), Some(minutes));
    }
}
