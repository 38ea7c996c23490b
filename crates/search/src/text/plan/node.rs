//! What is looked for in each segment, and what is found.

use super::super::ask::{Aggregate, Expression, GeoAsk, Origin};
use super::super::definition::ScopeId;
use super::super::store::{Atom, FieldKey, RowId};
use nestor_model::{Document, Value};
use std::ops::Bound;

/// A part of a query, made ready for one state of an index.
#[derive(Debug)]
pub(in crate::text) enum Node<'a> {
    Nothing,
    /// All rows of a scope.
    All(ScopeId),
    Term(Term),
    /// Rows that have one of these terms, whichever.
    Terms {
        key: FieldKey,
        terms: Vec<String>,
    },
    Phrase(Phrase),
    /// Rows that have one of these, by the sum of their scores.
    Sum(Vec<Node<'a>>),
    Boolean(Boolean<'a>),
    /// Rows with a value within one of these bounds.
    Values {
        key: FieldKey,
        bounds: Vec<(Bound<Atom>, Bound<Atom>)>,
    },
    Near {
        key: FieldKey,
        origin: &'a Origin,
        pivot: f64,
    },
    Present(FieldKey),
    Geo {
        key: FieldKey,
        ask: &'a GeoAsk,
    },
    /// Rows in which embedded ones are found, so many levels deeper.
    Embedded {
        inner: Box<Node<'a>>,
        levels: usize,
        aggregate: Aggregate,
    },
    /// Rows of a scope that are embedded in those that are found, so many levels deep.
    Within {
        inner: Box<Node<'a>>,
        scope: ScopeId,
        levels: usize,
    },
    Span(SpanNode),
    Scored {
        inner: Box<Node<'a>>,
        by: Scoring<'a>,
    },
}

/// A term of a text field.
#[derive(Clone, Debug)]
pub(in crate::text) struct Term {
    pub(in crate::text) text: String,
    pub(in crate::text) weight: Weight,
}

/// What BM25 needs beside frequencies and lengths.
#[derive(Clone, Debug)]
pub(in crate::text) struct Weight {
    pub(in crate::text) key: FieldKey,
    pub(in crate::text) boost: f32,
    pub(in crate::text) idf: f32,
    /// Rows with the field, and the mean of their lengths.
    pub(in crate::text) rows: u64,
    pub(in crate::text) average: f32,
    /// Rows with the term.
    pub(in crate::text) frequency: u64,
    pub(in crate::text) has_lengths: bool,
}

/// Terms one behind the other.
#[derive(Debug)]
pub(in crate::text) struct Phrase {
    /// Where each word stands in the phrase, and the terms that it may be.
    pub(in crate::text) words: Vec<(u32, Vec<String>)>,
    pub(in crate::text) slop: u32,
    pub(in crate::text) weight: Weight,
}

/// Clauses that must hold or must not.
#[derive(Debug)]
pub(in crate::text) struct Boolean<'a> {
    pub(in crate::text) scope: ScopeId,
    pub(in crate::text) must: Vec<Node<'a>>,
    pub(in crate::text) filter: Vec<Node<'a>>,
    pub(in crate::text) should: Vec<Node<'a>>,
    pub(in crate::text) must_not: Vec<Node<'a>>,
    /// How many of `should` must hold.
    pub(in crate::text) least: usize,
}

/// Places in a text.
#[derive(Debug)]
pub(in crate::text) struct SpanNode {
    pub(in crate::text) tree: SpanTree,
    pub(in crate::text) weight: Weight,
}

/// How places follow from others.
#[derive(Debug)]
pub(in crate::text) enum SpanTree {
    Terms(Vec<String>),
    First(Box<SpanTree>, u32),
    Near {
        of: Vec<SpanTree>,
        slop: u32,
        in_order: bool,
    },
    Or(Vec<SpanTree>),
    Subtract(Box<SpanTree>, Box<SpanTree>),
    Contains {
        big: Box<SpanTree>,
        little: Box<SpanTree>,
        inner: bool,
    },
}

impl SpanTree {
    /// Calls `each` with the terms.
    pub(in crate::text) fn for_each_term<'t>(&'t self, each: &mut dyn FnMut(&'t str)) {
        match self {
            Self::Terms(terms) => terms.iter().for_each(|term| each(term)),
            Self::First(of, _) => of.for_each_term(each),
            Self::Near { of, .. } | Self::Or(of) => of.iter().for_each(|of| of.for_each_term(each)),
            Self::Subtract(include, _) => include.for_each_term(each),
            Self::Contains { big, little, .. } => {
                big.for_each_term(each);
                little.for_each_term(each);
            }
        }
    }
}

/// What becomes of scores.
#[derive(Debug)]
pub(in crate::text) enum Scoring<'a> {
    Boost(f64),
    BoostBy { key: FieldKey, undefined: f64 },
    Constant(f64),
    Function { expression: &'a Expression, scope: ScopeId },
}

/// A row that was found.
#[derive(Clone, Debug)]
pub(in crate::text) struct Match {
    pub(in crate::text) row: RowId,
    pub(in crate::text) score: f32,
    pub(in crate::text) details: Option<Box<Details>>,
}

/// How a score came about.
#[derive(Clone, Debug)]
pub(in crate::text) struct Details {
    value: f64,
    description: String,
    details: Vec<Details>,
}

impl Details {
    pub(in crate::text) fn new(value: impl Into<f64>, description: impl Into<String>, details: Vec<Details>) -> Self {
        Self {
            value: value.into(),
            description: description.into(),
            details,
        }
    }

    /// As clients see it.
    pub(in crate::text) fn to_value(&self) -> Value {
        let mut out = Document::new();
        out.push("value", Value::Double(self.value));
        out.push("description", Value::String(self.description.as_str().into()));
        let details = self.details.iter().map(Details::to_value);
        out.push("details", Value::Array(details.collect()));
        Value::Document(out)
    }
}
