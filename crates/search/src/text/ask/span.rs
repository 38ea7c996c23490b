//! `span`: where in a text its terms are.

use super::path::AskedPath;
use super::score::Score;
use super::value::query;
use crate::operand::{Operand, refuse};
use nestor_model::Result;

/// Spans within spans.
const DEPTH_MAX: usize = 64;

/// Places in a text.
#[derive(Debug)]
pub(in crate::text) enum Span {
    /// Where a term is.
    Term {
        query: Vec<String>,
        path: Vec<AskedPath>,
    },
    /// Those that end early.
    First {
        of: Box<SpanClause>,
        end: u32,
    },
    /// Those of several that are near each other.
    Near {
        clauses: Vec<SpanClause>,
        slop: u32,
        in_order: bool,
    },
    Or(Vec<SpanClause>),
    /// Those that do not overlap others.
    Subtract {
        include: Box<SpanClause>,
        exclude: Box<SpanClause>,
    },
    /// Large ones with small ones in them.
    Contains {
        big: Box<SpanClause>,
        little: Box<SpanClause>,
        inner: bool,
    },
}

/// Places in a text, and what becomes of their score.
#[derive(Debug)]
pub(in crate::text) struct SpanClause {
    pub(in crate::text) span: Span,
    pub(in crate::text) score: Option<Score>,
}

impl SpanClause {
    /// The one operator that a document has.
    pub(super) fn read(spec: &Operand<'_>, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            refuse!("\"{}\" lies deeper than {DEPTH_MAX} levels", spec.name());
        }
        let known = ["term", "first", "near", "or", "subtract", "contains"];
        spec.only(&known)?;
        let mut given = known.iter().filter(|name| spec.get(name).is_some());
        let (Some(kind), None) = (given.next(), given.next()) else {
            refuse!("\"{}\" must have exactly one of [{}]", spec.name(), known.join(", "));
        };
        let operand = spec.required_document(kind)?;
        let one = |field: &str| -> Result<Box<Self>> {
            Ok(Box::new(Self::read(&operand.required_document(field)?, depth + 1)?))
        };
        let several = |operand: &Operand<'_>| -> Result<Vec<Self>> {
            operand.required("clauses")?;
            let clauses = operand.documents("clauses")?.unwrap_or_default();
            clauses.iter().map(|clause| Self::read(clause, depth + 1)).collect()
        };
        let span = match *kind {
            "term" => {
                operand.only(&["path", "query", "score"])?;
                let path = AskedPath::read(&operand, "path")?;
                Span::Term {
                    query: query(&operand)?,
                    path,
                }
            }
            "first" => {
                operand.only(&["operator", "endPositionLte", "score"])?;
                Span::First {
                    of: one("operator")?,
                    end: operand.integer_within("endPositionLte", 1..=i32::MAX)?.unwrap_or(3) as u32,
                }
            }
            "near" => {
                operand.only(&["clauses", "slop", "inOrder", "score"])?;
                Span::Near {
                    clauses: several(&operand)?,
                    slop: operand.integer_within("slop", 0..=i32::MAX)?.unwrap_or(0) as u32,
                    in_order: operand.boolean("inOrder")?.unwrap_or(false),
                }
            }
            "or" => {
                operand.only(&["clauses", "score"])?;
                Span::Or(several(&operand)?)
            }
            "subtract" => {
                operand.only(&["include", "exclude", "score"])?;
                Span::Subtract {
                    include: one("include")?,
                    exclude: one("exclude")?,
                }
            }
            _ => {
                operand.only(&["big", "little", "spanToReturn", "score"])?;
                let Some(inner) = operand.choice("spanToReturn", &[("inner", true), ("outer", false)])? else {
                    refuse!("\"{}\" is required", operand.name_of("spanToReturn"));
                };
                Span::Contains {
                    big: one("big")?,
                    little: one("little")?,
                    inner,
                }
            }
        };
        let score = Score::read(&operand, false)?;
        Ok(Self { span, score })
    }
}
