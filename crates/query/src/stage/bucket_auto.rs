//! `$bucketAuto`: a given number of groups of about equal size.

use super::bucket::{check_group_by, count_only, parse_output};
use super::{ParseContext, Stage};
use crate::Expr;
use crate::stage::AccumulatorSpec;
use nestor_model::number::Num;
use nestor_model::{Error, Result, Str, ValueRef};
use std::sync::Arc;

/// A parsed `$bucketAuto`.
#[derive(Debug)]
pub struct BucketAuto {
    /// The key by which documents are ordered.
    pub group_by: Expr,
    /// How many buckets at most; positive.
    pub buckets: usize,
    /// Series that boundaries are rounded to.
    pub granularity: Option<Granularity>,
    /// Output fields, in order.
    pub output: Vec<(Str, AccumulatorSpec)>,
}

/// Preferred numbers: one decade of a series (ISO 3, IEC 60063), or the powers of two.
#[derive(Debug, Clone, PartialEq)]
pub enum Granularity {
    /// Multipliers from 1 (inclusive) to 10 (exclusive), ascending.
    Series(Vec<f64>),
    /// 1, 2, 4, ...
    PowersOf2,
}

const R80: [f64; 80] = [
    1.00, 1.03, 1.06, 1.09, 1.12, 1.15, 1.18, 1.22, 1.25, 1.28, 1.32, 1.36, 1.40, 1.45, 1.50, 1.55, 1.60, 1.65, 1.70,
    1.75, 1.80, 1.85, 1.90, 1.95, 2.00, 2.06, 2.12, 2.18, 2.24, 2.30, 2.36, 2.43, 2.50, 2.58, 2.65, 2.72, 2.80, 2.90,
    3.00, 3.07, 3.15, 3.25, 3.35, 3.45, 3.55, 3.65, 3.75, 3.87, 4.00, 4.12, 4.25, 4.37, 4.50, 4.62, 4.75, 4.87, 5.00,
    5.15, 5.30, 5.45, 5.60, 5.80, 6.00, 6.15, 6.30, 6.50, 6.70, 6.90, 7.10, 7.30, 7.50, 7.75, 8.00, 8.25, 8.50, 8.75,
    9.00, 9.25, 9.50, 9.75,
];
const R10: [f64; 10] = [1.00, 1.25, 1.60, 2.00, 2.50, 3.15, 4.00, 5.00, 6.30, 8.00];
const E24: [f64; 24] = [
    1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0, 3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2,
    9.1,
];

impl Granularity {
    /// The series of that name.
    pub fn named(name: &str) -> Option<Self> {
        let every = |series: &[f64], step: usize| Some(Self::Series(series.iter().copied().step_by(step).collect()));
        match name {
            "R5" => every(&R10, 2),
            "R10" => every(&R10, 1),
            "R20" => every(&R80, 4),
            "R40" => every(&R80, 2),
            "R80" => every(&R80, 1),
            "1-2-5" => every(&[1.0, 2.0, 5.0], 1),
            "E6" => every(&E24, 4),
            "E12" => every(&E24, 2),
            "E24" => every(&E24, 1),
            "E48" => Some(Self::logarithmic(48)),
            "E96" => Some(Self::logarithmic(96)),
            "E192" => Some(Self::logarithmic(192)),
            "POWERSOF2" => Some(Self::PowersOf2),
            _ => None,
        }
    }

    /// Steps of equal ratio rounded to three digits. The standard has one exception, 9.20 in E192.
    fn logarithmic(steps: u32) -> Self {
        let step = |i: u32| {
            let rounded = (10f64.powf(f64::from(i) / f64::from(steps)) * 100.0).round() / 100.0;
            if rounded == 9.19 { 9.20 } else { rounded }
        };
        Self::Series((0..steps).map(step).collect())
    }

    /// The least number of the series above `value`, which is not negative; zero stays.
    pub fn round_up(&self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Self::PowersOf2 => 2f64.powf(value.log2().floor() + 1.0),
            Self::Series(series) => {
                let mut decade = Self::decade(value);
                loop {
                    if let Some(step) = series.iter().map(|s| s * decade).find(|s| *s > value) {
                        return step;
                    }
                    decade *= 10.0;
                }
            }
        }
    }

    /// The greatest number of the series below `value`, which is not negative; zero stays.
    pub fn round_down(&self, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        match self {
            Self::PowersOf2 => 2f64.powf(value.log2().ceil() - 1.0),
            Self::Series(series) => {
                let mut decade = Self::decade(value);
                loop {
                    if let Some(step) = series.iter().rev().map(|s| s * decade).find(|s| *s < value) {
                        return step;
                    }
                    decade /= 10.0;
                }
            }
        }
    }

    /// The power of ten at or below `value`.
    fn decade(value: f64) -> f64 {
        10f64.powf(value.log10().floor())
    }
}

/// `{groupBy, buckets, output, granularity}`. Errors: 40239 to 40246, 40257, 40261, and those of outputs.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            40240,
            format!(
                "the argument to $bucketAuto must be an object, but found type: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let (mut group_by, mut buckets, mut granularity, mut output) = (None, None, None, None);
    for (name, value) in doc {
        match name {
            "groupBy" => {
                check_group_by(40239, stage, value)?;
                group_by = Some(Expr::parse(value, context.scope)?);
            }
            "buckets" => buckets = Some(parse_buckets(value)?),
            "output" => output = Some(parse_output(40244, stage, value, context.scope)?),
            "granularity" => {
                let ValueRef::String(name) = value else {
                    return Err(Error::location(
                        40261,
                        format!(
                            "the $bucketAuto 'granularity' field must be a string, but found type: {}",
                            value.bson_type().alias()
                        ),
                    ));
                };
                let found = Granularity::named(name);
                granularity = Some(
                    found.ok_or_else(|| Error::location(40257, format!("unknown rounding granularity '{name}'")))?,
                );
            }
            _ => {
                return Err(Error::location(
                    40245,
                    format!("unrecognized option to $bucketAuto: {name}"),
                ));
            }
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(Error::location(
            40246,
            "$bucketAuto requires 'groupBy' and 'buckets' to be specified",
        ));
    };
    let output = match output.filter(|output| !output.is_empty()) {
        Some(output) => output,
        None => count_only(context.scope)?,
    };
    out.push(Stage::BucketAuto(Arc::new(BucketAuto {
        group_by,
        buckets,
        granularity,
        output,
    })));
    Ok(())
}

fn parse_buckets(value: ValueRef<'_>) -> Result<usize> {
    let number = Num::from_ref(value).ok_or_else(|| {
        Error::location(
            40241,
            format!(
                "the $bucketAuto 'buckets' field must be a numeric value, but found type: {}",
                value.bson_type().alias()
            ),
        )
    })?;
    let whole = number.to_i64_exact().and_then(|n| i32::try_from(n).ok());
    match whole {
        None => Err(Error::location(
            40242,
            format!("the $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {value:?}"),
        )),
        Some(n) if n <= 0 => Err(Error::location(
            40243,
            format!("the $bucketAuto 'buckets' field must be greater than 0, but found: {n}"),
        )),
        Some(n) => Ok(n as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_moves_to_the_next_preferred_number() {
        for (series, value, down, up) in [
            ("R5", 1.0, 0.63, 1.6),
            ("R5", 10.0, 6.3, 16.0),
            ("1-2-5", 3.0, 2.0, 5.0),
            ("E6", 1000.0, 680.0, 1500.0),
            ("POWERSOF2", 1.0, 0.5, 2.0),
            ("POWERSOF2", 9.0, 8.0, 16.0),
            ("R40", 0.0, 0.0, 0.0),
        ] {
            let granularity = Granularity::named(series).expect("a known series");
            assert!(
                (granularity.round_down(value) - down).abs() < 1e-9,
                "{series} below {value}"
            );
            assert!(
                (granularity.round_up(value) - up).abs() < 1e-9,
                "{series} above {value}"
            );
        }
        assert_eq!(Granularity::named("R7"), None);
    }
}
