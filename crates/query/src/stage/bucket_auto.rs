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
    /// Hundredths, from 100 (inclusive) to 1,000 (exclusive), ascending. Whole numbers, so that boundaries are the doubles next to what the
    /// series says: 8.2 × 100 is not 820.
    Series(Vec<u16>),
    /// 1, 2, 4, ...
    PowersOf2,
}

const R80: [u16; 80] = [
    100, 103, 106, 109, 112, 115, 118, 122, 125, 128, 132, 136, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190,
    195, 200, 206, 212, 218, 224, 230, 236, 243, 250, 258, 265, 272, 280, 290, 300, 307, 315, 325, 335, 345, 355, 365,
    375, 387, 400, 412, 425, 437, 450, 462, 475, 487, 500, 515, 530, 545, 560, 580, 600, 615, 630, 650, 670, 690, 710,
    730, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975,
];
const R10: [u16; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
const E24: [u16; 24] = [
    100, 110, 120, 130, 150, 160, 180, 200, 220, 240, 270, 300, 330, 360, 390, 430, 470, 510, 560, 620, 680, 750, 820,
    910,
];

impl Granularity {
    /// The series of that name.
    pub fn named(name: &str) -> Option<Self> {
        let every = |series: &[u16], step: usize| Some(Self::Series(series.iter().copied().step_by(step).collect()));
        match name {
            "R5" => every(&R10, 2),
            "R10" => every(&R10, 1),
            "R20" => every(&R80, 4),
            "R40" => every(&R80, 2),
            "R80" => every(&R80, 1),
            "1-2-5" => every(&[100, 200, 500], 1),
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
            let rounded = (10f64.powf(f64::from(i) / f64::from(steps)) * 100.0).round() as u16;
            if rounded == 919 { 920 } else { rounded }
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
                    if let Some(step) = series.iter().map(|&s| Self::scaled(s, decade)).find(|s| *s > value) {
                        return step;
                    }
                    decade += 1;
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
                    if let Some(step) = series
                        .iter()
                        .rev()
                        .map(|&s| Self::scaled(s, decade))
                        .find(|s| *s < value)
                    {
                        return step;
                    }
                    decade -= 1;
                }
            }
        }
    }

    /// Which power of ten is at or below `value`.
    fn decade(value: f64) -> i32 {
        value.log10().floor() as i32
    }

    /// So many hundredths of a power of ten.
    fn scaled(hundredths: u16, decade: i32) -> f64 {
        match decade - 2 {
            power @ 0.. => f64::from(hundredths) * 10f64.powi(power),
            power => f64::from(hundredths) / 10f64.powi(-power),
        }
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
            ("E12", 760.4, 680.0, 820.0),
            ("E12", 0.0085, 0.0082, 0.01),
            ("E24", 8.3, 8.2, 9.1),
            ("R80", 1.29e25, 1.28e25, 1.32e25),
            ("POWERSOF2", 1.0, 0.5, 2.0),
            ("POWERSOF2", 9.0, 8.0, 16.0),
            ("R40", 0.0, 0.0, 0.0),
        ] {
            let granularity = Granularity::named(series).expect("a known series");
            assert_eq!(granularity.round_down(value), down, "{series} below {value}");
            assert_eq!(granularity.round_up(value), up, "{series} above {value}");
        }
        assert_eq!(Granularity::named("R7"), None);
    }
}
