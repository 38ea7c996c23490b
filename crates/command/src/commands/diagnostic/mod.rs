//! Questions about the process and its connections.

pub mod build_info;

use crate::dispatch::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[&build_info::SPEC];
