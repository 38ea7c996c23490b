//! Pipelines as plans: first logical, a list of stages; then physical, a tree of [`PlanNode`]s with the source at the bottom.
//!
//! ```text
//! stages of views + own stages ──rules::rewrite──► stages ──into_find──► find + the stages that stay
//!                                                                          │            │
//!                                                                     candidates    StagePlan nodes
//! ```
//!
//! A logical stage is a [`StageNode`]: a stage as it was parsed, or several that are better done together. What rules may
//! do with them is in [`crate::rules`].
//!
//! [`PlanNode`]: crate::PlanNode

mod into_find;
mod loose;
mod stage;

pub use into_find::into_find;
pub use loose::{distinct_scan, group_scan};
pub use stage::{LookupUnwind, StageNode, StageOp};
