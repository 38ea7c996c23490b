//! Commands that read documents.

pub mod find;
pub mod get_more;
pub mod kill_cursors;

use crate::dispatch::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[&find::SPEC, &get_more::SPEC, &kill_cursors::SPEC];
