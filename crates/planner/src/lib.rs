//! Query and catalog snapshot to a checked plan tree and its explain form; pure.
//!
//! Reading order: [`plan`] (the tree), [`find`] (how a query becomes one).

pub mod access;
pub mod bounds;
pub mod catalog;
pub mod find;
pub mod interval;
pub mod plan;

pub use find::{FindQuery, plan_find};
pub use plan::PlanNode;
