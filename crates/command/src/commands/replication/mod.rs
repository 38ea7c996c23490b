//! What a replica set of one says about itself.

pub mod client_metadata;
pub mod hello;

use crate::dispatch::CommandSpec;

/// The commands of this family.
pub(crate) const SPECS: &[&CommandSpec] = &[&hello::HELLO, &hello::IS_MASTER];
