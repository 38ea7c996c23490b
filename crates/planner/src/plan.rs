//! The plan tree.

use nestor_model::{Str, Value};
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::Projection;
use nestor_query::sort::SortSpec;
use std::sync::Arc;

/// A node of a plan, with its inputs. Names in the comments are those that explain prints.
#[derive(Clone, Debug)]
pub enum PlanNode {
    /// EOF: no rows.
    Eof,
    /// COLLSCAN: every record in the order of record keys.
    CollScan(CollScan),
    /// IDHACK / EXPRESS: the one record with this `_id`.
    IdLookup(IdLookup),
    /// Rows that match; MATCH after other stages.
    Filter {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The condition.
        filter: Arc<MatchExpr>,
    },
    /// SORT: all rows in the order of `spec`, the first `limit` if given.
    Sort {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// The order.
        spec: Arc<SortSpec>,
        /// How many rows are wanted.
        limit: Option<u64>,
        /// Attach the sort key to rows, for `{$meta: "sortKey"}`.
        keep_key: bool,
    },
    /// SKIP.
    Skip {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// How many rows to leave out.
        skip: u64,
    },
    /// LIMIT.
    Limit {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// How many rows to pass.
        limit: u64,
    },
    /// PROJECTION_SIMPLE / PROJECTION_DEFAULT.
    Project {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// What becomes of a row.
        projection: Arc<Projection>,
        /// The filter, when the projection needs to know at which array position it matched.
        positional: Option<Arc<MatchExpr>>,
    },
    /// Rows become `{field: count}`: one row.
    Count {
        /// Where rows come from.
        input: Box<PlanNode>,
        /// Name of the field.
        field: Str,
    },
}

/// A scan of a collection.
#[derive(Clone, Debug)]
pub struct CollScan {
    /// Condition on each record.
    pub filter: Option<Arc<MatchExpr>>,
    /// From the first record on, or from the last back.
    pub forward: bool,
    /// Waits for more at the end (capped collections).
    pub tailable: bool,
}

/// A lookup by `_id`.
#[derive(Clone, Debug)]
pub struct IdLookup {
    /// The `_id`.
    pub id: Value,
    /// What else the record must satisfy.
    pub filter: Option<Arc<MatchExpr>>,
}

impl PlanNode {
    /// The node's input, if it has one.
    pub fn input(&self) -> Option<&PlanNode> {
        match self {
            Self::Eof | Self::CollScan(_) | Self::IdLookup(_) => None,
            Self::Filter { input, .. }
            | Self::Sort { input, .. }
            | Self::Skip { input, .. }
            | Self::Limit { input, .. }
            | Self::Project { input, .. }
            | Self::Count { input, .. } => Some(input),
        }
    }

    /// The stage's name as explain prints it.
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Eof => "EOF",
            Self::CollScan(_) => "COLLSCAN",
            Self::IdLookup(_) => "IDHACK",
            Self::Filter { .. } => "MATCH",
            Self::Sort { .. } => "SORT",
            Self::Skip { .. } => "SKIP",
            Self::Limit { .. } => "LIMIT",
            Self::Project { .. } => "PROJECTION_DEFAULT",
            Self::Count { .. } => "COUNT",
        }
    }
}
