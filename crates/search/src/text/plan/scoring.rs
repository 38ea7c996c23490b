//! What becomes of scores.

use super::node::{Details, Match, Scoring};
use crate::text::ask::{Aggregate, Expression};
use crate::text::definition::ScopeId;
use crate::text::store::{Atom, Column, FieldKey, Kind, RowId, Segment};
use nestor_model::Result;
use nestor_model::statement::work;

impl Scoring<'_> {
    /// Gives matches the scores that they have from now on.
    pub(super) fn apply(&self, segment: &Segment, matches: &mut [Match]) -> Result<()> {
        work(1 + matches.len() / 4)?;
        let computed = match self {
            Self::Boost(by) => Computed::Boost(*by),
            Self::BoostBy { key, undefined } => Computed::BoostBy(Numbers::of(segment, key, *undefined)),
            Self::Constant(score) => Computed::Constant(*score),
            Self::Function { expression, scope } => Computed::Function(Value::of(expression, segment, *scope)),
        };
        for found in matches {
            found.score = computed.score(found.row, f64::from(found.score)) as f32;
            if let Some(inner) = found.details.take() {
                found.details = Some(Box::new(Details::new(found.score, self.description(), vec![*inner])));
            }
        }
        Ok(())
    }

    fn description(&self) -> String {
        match self {
            Self::Boost(by) => format!("score, boosted by {by}, computed as score * boost from:"),
            Self::BoostBy { key, .. } => {
                format!(
                    "score, boosted by the path {}, computed as score * value from:",
                    key.path
                )
            }
            Self::Constant(_) => "constant score, in place of:".to_owned(),
            Self::Function { .. } => "FunctionScoreQuery, computed from:".to_owned(),
        }
    }
}

/// What scores become in one segment.
enum Computed<'a> {
    Boost(f64),
    BoostBy(Numbers<'a>),
    Constant(f64),
    Function(Value<'a>),
}

impl Computed<'_> {
    fn score(&self, row: RowId, before: f64) -> f64 {
        match self {
            Self::Boost(by) => before * by,
            Self::BoostBy(by) => before * by.at(row).unwrap_or(by.undefined),
            Self::Constant(score) => *score,
            Self::Function(value) => value.at(row, before),
        }
    }
}

/// The numbers of a field, and the one of rows that have none.
struct Numbers<'a> {
    column: Option<&'a Column>,
    undefined: f64,
}

impl<'a> Numbers<'a> {
    fn of(segment: &'a Segment, key: &FieldKey, undefined: f64) -> Self {
        let column = segment.column(key);
        Self { column, undefined }
    }

    /// The number of a row: of several, the least.
    fn at(&self, row: RowId) -> Option<f64> {
        self.column?.values_at(row).find_map(Atom::as_number)
    }
}

/// An expression in one segment.
enum Value<'a> {
    Relevance,
    Constant(f64),
    Path(Numbers<'a>),
    Add(Vec<Value<'a>>),
    Multiply(Vec<Value<'a>>),
    Log(Box<Value<'a>>),
    LogOnePlus(Box<Value<'a>>),
    Gauss {
        numbers: Numbers<'a>,
        origin: f64,
        offset: f64,
        /// Twice the variance, negative.
        spread: f64,
    },
}

impl<'a> Value<'a> {
    fn of(expression: &Expression, segment: &'a Segment, scope: ScopeId) -> Self {
        let inner = |of: &Expression| Self::of(of, segment, scope);
        let numbers =
            |path: &str, undefined: f64| Numbers::of(segment, &FieldKey::new(scope, Kind::Number, path), undefined);
        match expression {
            Expression::Relevance => Self::Relevance,
            Expression::Constant(number) => Self::Constant(*number),
            Expression::Path { path, undefined } => Self::Path(numbers(path, *undefined)),
            Expression::Add(of) => Self::Add(of.iter().map(inner).collect()),
            Expression::Multiply(of) => Self::Multiply(of.iter().map(inner).collect()),
            Expression::Log(of) => Self::Log(Box::new(inner(of))),
            Expression::LogOnePlus(of) => Self::LogOnePlus(Box::new(inner(of))),
            Expression::Gauss {
                path,
                undefined,
                origin,
                scale,
                offset,
                decay,
            } => Self::Gauss {
                numbers: numbers(path, *undefined),
                origin: *origin,
                offset: *offset,
                spread: scale * scale / decay.ln(),
            },
        }
    }

    fn at(&self, row: RowId, relevance: f64) -> f64 {
        match self {
            Self::Relevance => relevance,
            Self::Constant(number) => *number,
            Self::Path(numbers) => numbers.at(row).unwrap_or(numbers.undefined),
            Self::Add(of) => of.iter().map(|of| of.at(row, relevance)).sum(),
            Self::Multiply(of) => of.iter().map(|of| of.at(row, relevance)).product(),
            Self::Log(of) => logarithm(of.at(row, relevance)),
            Self::LogOnePlus(of) => logarithm(of.at(row, relevance) + 1.0),
            Self::Gauss {
                numbers,
                origin,
                offset,
                spread,
            } => match numbers.at(row) {
                None => numbers.undefined,
                Some(at) => {
                    let distance = ((at - origin).abs() - offset).max(0.0);
                    (distance * distance / spread).exp()
                }
            },
        }
    }
}

/// The logarithm to the base of 10; of what has none, nothing.
fn logarithm(number: f64) -> f64 {
    match number > 0.0 {
        true => number.log10(),
        false => 0.0,
    }
}

/// Several scores as one.
pub(super) fn aggregated(aggregate: Aggregate, scores: &[f32]) -> f32 {
    let numbers = scores.iter().map(|score| f64::from(*score));
    let of = match aggregate {
        Aggregate::Sum => numbers.sum(),
        Aggregate::Mean => numbers.sum::<f64>() / scores.len() as f64,
        Aggregate::Maximum => numbers.fold(f64::NEG_INFINITY, f64::max),
        Aggregate::Minimum => numbers.fold(f64::INFINITY, f64::min),
    };
    of as f32
}
