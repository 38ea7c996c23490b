//! Commands on collections, views and databases.

pub mod coll_mod;
mod coll_mod_timeseries;
pub mod compact;
pub mod compact_encrypted;
pub mod convert_to_capped;
pub mod create;
pub mod drop;
pub mod drop_database;
mod encrypted_fields;
pub mod list_collections;
pub mod list_databases;
pub mod options;
pub mod rename;
pub mod validate_db_metadata;
mod view_graph;

use crate::facts::Flags;
use crate::spec::CommandSpec;

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &create::SPEC,
    &drop::SPEC,
    &drop_database::SPEC,
    &rename::SPEC,
    &coll_mod::SPEC,
    &compact::SPEC,
    &compact_encrypted::SPEC,
    &convert_to_capped::SPEC,
    &convert_to_capped::CLONE_SPEC,
    &list_collections::SPEC,
    &list_databases::SPEC,
    &validate_db_metadata::SPEC,
];

/// Properties of commands that change the catalog.
pub(crate) const DDL_FLAGS: Flags = Flags::WRITE.and(Flags::LONG).and(Flags::WRITE_CONCERN);
