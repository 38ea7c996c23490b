//! Pipelines as plans: first logical, a list of stages; then physical, a tree of [`PlanNode`]s with the source at the bottom.
//!
//! ```text
//! stages of views + own stages ──rules::rewrite──► stages ──into_find──► find + the stages that stay
//!                                                                          │            │
//!                                                                     candidates      StagePlans
//! ```
//!
//! Pipelines within stages (`$lookup`, `$graphLookup`, `$unionWith`, `$facet`, `$rankFusion`) are planned with the pipeline around them and are part of its tree:
//! see [`InnerPlan`].
//!
//! A logical stage is a [`StageNode`]: a stage as it was parsed, or several that are better done together. What rules may
//! do with them is in [`crate::rules`].
//!
//! [`PlanNode`]: crate::PlanNode
//! [`StageNode`]: crate::plan::StageNode
//! [`InnerPlan`]: crate::plan::InnerPlan

mod geo_near;
mod inner;
mod into_find;
mod join;
mod loose;
mod metadata;
mod physical;
mod reads;
#[cfg(test)]
pub(crate) mod testing;
mod views;

pub use inner::{INNER_PLANS_MAX, graph_stages, inner_plan, lookup_stages};
pub use into_find::into_find;
pub use loose::{distinct_scan, group_scan};
pub use physical::{PipelineQuery, Restrict, plan};
pub use views::{Entry, Namespaces, Resolved, VIEW_DEPTH_MAX, resolve};
