//! Commands on indexes.

pub mod commit_quorum;
pub mod create_indexes;
pub mod drop_indexes;
pub mod list_indexes;
pub mod search;
pub mod spec;
pub(crate) mod timeseries;

use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &commit_quorum::SPEC,
    &create_indexes::SPEC,
    &list_indexes::SPEC,
    &drop_indexes::SPEC,
    &search::CREATE,
    &search::UPDATE,
    &search::DROP,
    &search::LIST,
];
