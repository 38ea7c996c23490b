//! Commands that read documents.

pub mod aggregate;
pub mod count;
pub mod distinct;
pub mod explain;
mod explain_express;
mod explain_pipeline;
mod explain_trial;
mod explain_write;
pub mod find;
mod forward;
pub mod get_more;
pub mod kill_cursors;
pub mod map_reduce;
pub(crate) mod prepare;

use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &find::SPEC,
    &aggregate::SPEC,
    &count::SPEC,
    &distinct::SPEC,
    &explain::SPEC,
    &get_more::SPEC,
    &kill_cursors::SPEC,
    &map_reduce::SPEC,
];
