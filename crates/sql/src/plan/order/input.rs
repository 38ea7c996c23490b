//! An input of joins.

use crate::expr::Expr;
use crate::plan::Plan;

/// An input of several joins.
pub struct Input {
    /// Its rows.
    pub plan: Plan,
    /// The place of its first column among those of all inputs.
    pub first: usize,
    /// Number of its columns.
    pub width: usize,
    /// Rows that it gives.
    pub rows: f64,
    /// Rows that are read for them.
    pub read: f64,
}

impl Input {
    /// An input of which nothing is estimated yet.
    pub fn new(plan: Plan, first: usize, width: usize) -> Self {
        Self {
            plan,
            first,
            width,
            rows: 0.0,
            read: 0.0,
        }
    }

    /// An expression over columns of all inputs as one over its own.
    pub fn own(&self, expr: &Expr) -> Expr {
        expr.shifted(-(self.first as isize))
    }
}
