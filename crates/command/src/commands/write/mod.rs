//! Commands that write documents.

pub mod bulk_write;
pub mod delete;
pub mod find_and_modify;
pub mod insert;
pub mod update;

use crate::facts::Flags;
use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &insert::SPEC,
    &update::SPEC,
    &delete::SPEC,
    &find_and_modify::SPEC,
    &bulk_write::SPEC,
];

/// Properties that the write commands share.
pub(crate) const WRITE_FLAGS: Flags = Flags::API_V1
    .and(Flags::WRITE)
    .and(Flags::LONG)
    .and(Flags::TXN)
    .and(Flags::WRITE_CONCERN)
    .and(Flags::TXN_READ_CONCERN)
    .and(Flags::RETRYABLE);
