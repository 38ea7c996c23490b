//! What a replica set of one node reports about itself.

pub mod apply_ops;
pub mod client_metadata;
pub mod hello;
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
    &repl_set::RECONFIG,
    &repl_set::STEP_DOWN,
    &repl_set::FREEZE,
    &repl_set::MAINTENANCE,
    &repl_set::SYNC_FROM,
    &repl_set::ABORT_CATCH_UP,
    &resize_oplog::SPEC,
];
