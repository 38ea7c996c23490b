//! Query and catalog snapshot to a checked plan tree and its explain form; pure.
//!
//! Reading order: [`plan`] (the tree), [`kind`] (what its nodes do), [`find`] (what a query asks for), [`finish`] (what all of its plans have in common), [`choose`] (the
//! plans by which it could run), [`access`] (how indexes find documents), [`bounds`], [`interval`], [`catalog`] (what is
//! known of indexes), [`kinds`] (of indexes), [`collation`] (what an index with a collation can do), [`rank`] (which plan did best in a trial),
//! [`reuse`] (how it serves the next query of its shape),
//! [`pipeline`] (pipelines as plans, through views), [`rules`] (how pipelines are rewritten), [`check`] (no plan runs
//! unchecked), [`explain`] (plans as documents), [`shape`] (what queries have in common), [`timeseries`] (what is asked of measurements, asked of buckets).

pub mod access;
pub mod bounds;
pub mod catalog;
pub mod check;
pub mod choose;
mod clustered;
pub mod collation;
pub mod explain;
pub mod find;
pub mod finish;
pub mod interval;
pub mod key_range;
pub mod kind;
pub mod kinds;
pub mod pipeline;
pub mod plan;
pub mod rank;
pub mod relation;
pub mod reuse;
pub mod rules;
pub mod shape;
pub mod timeseries;

pub use catalog::{IndexInfo, Indexes};
pub use choose::candidates;
pub use find::{FindQuery, Hint};
pub use kind::NodeKind;
pub use plan::PlanNode;
