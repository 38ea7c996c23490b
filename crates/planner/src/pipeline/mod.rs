//! Pipelines as plans: first logical, a list of stages; then physical, a tree of [`PlanNode`]s with the source at the bottom.
//!
//! ```text
//! stages of views + own stages ──rules::rewrite──► stages ──into_find──► find + the stages that stay
//!                                                                          │            │
//!                                                                     candidates      StagePlans
//! ```
//!
//! Pipelines in stages that read another namespace (`$lookup`, `$unionWith`) are planned by whoever runs them when they are
//! wanted, by the same [`plan()`]: what they read may change between two batches of the outer one, and views that
//! join views would make a tree that grows with the power of their number. Those of `$facet` are in the tree.
//!
//! A logical stage is a [`StageNode`]: a stage as it was parsed, or several that are better done together. What rules may
//! do with them is in [`crate::rules`].
//!
//! [`PlanNode`]: crate::PlanNode

mod into_find;
mod join;
mod loose;
mod physical;
mod stage;
#[cfg(test)]
pub(crate) mod testing;
mod views;

pub use into_find::into_find;
pub use join::{EqualityAccess, EqualityPlan, equality_plan};
pub use loose::{distinct_scan, group_scan};
pub use physical::{PipelineQuery, Restrict, plan};
pub use stage::{CHANGE_HEADER, FilteredChanges, LookupUnwind, StageNode, StageOp};
pub use views::{Entry, Namespaces, Resolved, VIEW_DEPTH_MAX, resolve};
