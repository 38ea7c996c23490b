//! What a replica set reports about itself, and how it is changed.

pub mod apply_ops;
pub mod client_metadata;
pub mod hello;
pub mod reconfig;
pub mod repl_set;
pub mod resize_oplog;

use crate::spec::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &apply_ops::SPEC,
    &hello::HELLO,
    &hello::IS_MASTER,
    &repl_set::STATUS,
    &repl_set::CONFIG,
    &repl_set::INITIATE,
    &reconfig::SPEC,
    &repl_set::STEP_DOWN,
    &repl_set::FREEZE,
    &repl_set::MAINTENANCE,
    &repl_set::SYNC_FROM,
    &repl_set::ABORT_CATCH_UP,
    &resize_oplog::SPEC,
];
