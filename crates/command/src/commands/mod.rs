//! The commands, one file each, in families. A family is a list of specs; [`ALL`] lists the families.

pub mod diagnostic;
pub mod ping;
pub mod query;
pub mod replication;
pub mod write;

use crate::dispatch::CommandSpec;

/// What has to do with no data.
const BASIC: &[&CommandSpec] = &[&ping::SPEC];

/// Every family.
pub(crate) const ALL: &[&[&CommandSpec]] = &[BASIC, diagnostic::SPECS, replication::SPECS, query::SPECS, write::SPECS];
