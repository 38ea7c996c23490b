//! A filter over documents that the server makes itself: what is profiled, what is audited.

use nestor_model::{DocRef, Document, Result};
use nestor_query::env::{OpContext, Scope};
use nestor_query::matcher::{Context, MatchExpr};

/// A filter over documents that the server makes.
#[derive(Debug)]
pub struct DocumentFilter {
    /// As it was given.
    pub given: Document,
    expr: MatchExpr,
}

impl DocumentFilter {
    /// Parses a filter. Errors are those of a query's filter.
    pub fn parse(given: DocRef<'_>) -> Result<Self> {
        Ok(Self {
            given: given.to_document(),
            expr: MatchExpr::parse_in(given, &mut Scope::new(), Context::Validator)?.normalize(),
        })
    }

    /// The filter with all that short forms stand for: `{$eq: 1}` of `1`.
    pub fn written_out(&self) -> Document {
        self.expr.serialize()
    }

    /// Whether `doc` is wanted; an error of computing that is the caller's to decide on.
    ///
    /// Errors: those of evaluating the filter's expressions.
    pub fn matches(&self, doc: &Document, op: &OpContext) -> Result<bool> {
        self.expr.matches(doc.as_ref(), op)
    }
}
