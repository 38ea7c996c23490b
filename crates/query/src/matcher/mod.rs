//! Match expressions: the `filter` of find, the `q` of writes, `$match`, validators, partial indexes.
//!
//! [`MatchExpr`] is a public tree: [`MatchExpr::parse`] builds it from BSON with MongoDB's error codes,
//! [`MatchExpr::normalize`] brings it into the form the planner works on, [`MatchExpr::serialize`] prints
//! it as explain's `parsedQuery`, and [`MatchExpr::matches`] evaluates it straight on a document's bytes.
//!
//! Reading order: this file (the tree), `path` (which values a dotted path reaches), `predicate` (tests
//! of one value), `eval`, `parse` and `parse_field`, `normalize`, `serialize`.

mod bits;
mod eval;
mod nearest;
mod normalize;
mod parse;
mod parse_field;
mod path;
mod predicate;
mod serialize;
#[cfg(test)]
mod tests;
mod text;
mod within;

pub use bits::{BitOp, BitTest};
pub use eval::{Filter, MatchDetails};
pub use nearest::nearest;
pub use parse::Context;
pub use predicate::{InSet, ModTest};

pub(crate) use path::{Leaves, walk};

use crate::collation::Collator;
use crate::expr::Expr;
use crate::geo::{GeoTest, Near};
use crate::json_schema::Schema;
use crate::regex::Regex;
use crate::text::TextTest;
use crate::types::TypeSet;
use nestor_model::{Path, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// A match expression.
#[derive(Clone, Debug)]
pub enum MatchExpr {
    /// Every document: `{}`, `$alwaysTrue`, an `$and` of nothing.
    AlwaysTrue,
    /// No document: `$alwaysFalse`, `$in: []`, `$all: []`.
    AlwaysFalse,
    /// All of them.
    And(Vec<MatchExpr>),
    /// At least one of the conditions holds.
    Or(Vec<MatchExpr>),
    /// None of the conditions holds.
    Nor(Vec<MatchExpr>),
    /// Not this one. `$ne`, `$nin`, `$exists: false` and `$not` are this over their positive form.
    Not(Box<MatchExpr>),
    /// A test of the values at a path.
    Leaf(Leaf),
    /// `$expr`.
    Expr(Arc<ExprTest>),
    /// `$jsonSchema`.
    JsonSchema(Arc<Schema>),
    /// `$sampleRate`: a random share of the documents, in [0, 1].
    SampleRate(f64),
    /// `$text`.
    Text(TextTest),
}

/// `$expr`: matches when the expression's value counts as true.
#[derive(Debug)]
pub struct ExprTest {
    /// The expression.
    pub expr: Expr,
    /// As it was written, for printing.
    pub source: Value,
}

/// A test of the values a dotted path reaches: the leaf matches when one of the values passes.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Where to look. Inside a value `$elemMatch` the path is empty text and not used.
    pub path: Path,
    /// The test.
    pub predicate: Predicate,
}

/// A test of one value.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`: within the operand's type class only.
    Compare {
        /// Which relation.
        op: CompareOp,
        /// The operand.
        value: Value,
        /// String order other than by bytes.
        collator: Option<Collator>,
    },
    /// `$in`.
    In(InSet),
    /// `$regex` or a regular expression as the value.
    Regex(Regex),
    /// `$exists: true`.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// `$size`, not negative.
    Size(i64),
    /// `$mod`.
    Mod(ModTest),
    /// `$bitsAllSet` and its like.
    Bits(BitTest),
    /// `$geoWithin` and `$geoIntersects`.
    Geo(Arc<GeoTest>),
    /// `$near` and `$nearSphere`: locations at distances that count. Plans give the nearest first.
    Near(Arc<Near>),
    /// `$elemMatch` with conditions on the fields of elements that are documents (or arrays).
    ElemMatchObject(Box<MatchExpr>),
    /// `$elemMatch` with operators applied to the elements themselves.
    ElemMatchValue(Box<MatchExpr>),
}

/// The relation of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl CompareOp {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "$eq",
            Self::Lt => "$lt",
            Self::Lte => "$lte",
            Self::Gt => "$gt",
            Self::Gte => "$gte",
        }
    }

    /// Whether a value that compares `order` to the operand passes.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Lt => order.is_lt(),
            Self::Lte => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Gte => order.is_ge(),
        }
    }
}

impl MatchExpr {
    /// Whether an `$expr` or a `$where` is part of it.
    pub fn has_expr(&self) -> bool {
        match self {
            Self::Expr(_) => true,
            Self::And(all) | Self::Or(all) | Self::Nor(all) => all.iter().any(Self::has_expr),
            Self::Not(inner) => inner.has_expr(),
            _ => false,
        }
    }

    /// A leaf.
    pub fn leaf(path: Path, predicate: Predicate) -> Self {
        Self::Leaf(Leaf { path, predicate })
    }

    /// `{path: {$eq: value}}`.
    pub fn eq(path: Path, value: impl Into<Value>) -> Self {
        Self::compare(path, CompareOp::Eq, value)
    }

    /// A comparison without collation.
    pub fn compare(path: Path, op: CompareOp, value: impl Into<Value>) -> Self {
        Self::leaf(
            path,
            Predicate::Compare {
                op,
                value: value.into(),
                collator: None,
            },
        )
    }
}
