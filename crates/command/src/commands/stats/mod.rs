//! Commands that tell about collections: sizes and health.

pub mod coll_stats;
pub mod data_size;
pub mod db_hash;
pub mod db_stats;
pub mod validate;

use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &coll_stats::SPEC,
    &db_hash::SPEC,
    &db_stats::SPEC,
    &data_size::SPEC,
    &validate::SPEC,
];
