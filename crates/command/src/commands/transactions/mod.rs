//! `commitTransaction` and `abortTransaction`.

pub mod abort;
pub mod commit;

use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[&commit::SPEC, &abort::SPEC];
