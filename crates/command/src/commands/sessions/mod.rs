//! Logical sessions: their start and their end.

pub mod end;
pub mod kill;
pub mod start;

use crate::spec::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[
    &start::SPEC,
    &end::END,
    &end::REFRESH,
    &kill::KILL,
    &kill::KILL_ALL,
    &kill::KILL_BY_PATTERN,
];
