//! `commitTransaction` and `abortTransaction`.

pub mod abort;
pub mod commit;

use crate::dispatch::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[&commit::SPEC, &abort::SPEC];
