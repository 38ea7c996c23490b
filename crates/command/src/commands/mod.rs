//! The commands, one file each, in families. A family is a list of specs; `ALL` lists the families.

pub mod administration;
pub mod collections;
pub mod diagnostic;
pub mod indexes;
pub mod ping;
pub mod plans;
pub mod query;
pub mod replication;
pub mod security;
pub mod sessions;
pub mod stats;
pub mod transactions;
pub mod write;

use crate::spec::CommandSpec;

/// Commands that touch no data.
const BASIC: &[&CommandSpec] = &[&ping::SPEC];

/// Every family.
pub(crate) const ALL: &[&[&CommandSpec]] = &[
    BASIC,
    administration::SPECS,
    collections::SPECS,
    diagnostic::SPECS,
    indexes::SPECS,
    plans::SPECS,
    query::SPECS,
    replication::SPECS,
    security::SPECS,
    sessions::SPECS,
    stats::SPECS,
    transactions::SPECS,
    write::SPECS,
];
