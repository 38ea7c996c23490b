//! `listDatabases`.

use crate::args::StrictBool;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::privileges;
use crate::spec::CommandSpec;
use nestor_database::read;
use nestor_database::rights::{Action, Resource};
use nestor_database::sizes;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail, doc};
use nestor_query::matcher::Context as Place;
use nestor_storage::{Database, View};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("listDatabases", "Databases and their sizes.")
    .flags(Flags::API_V1.and(Flags::ADMIN).and(Flags::PRIMARY_READ))
    .needs(Needs::Login)
    .runs(run);

crate::args! {
    /// Arguments of `listDatabases`.
    pub struct ListDatabasesArgs<'a>: "listDatabases" command {
        "listDatabases" => marker: Option<ValueRef<'a>>,
        "filter" => filter: Option<RawDoc<'a>>,
        "nameOnly" => name_only: bool,
        "authorizedDatabases" => authorized_databases: Option<StrictBool>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ListDatabasesArgs::parse(context.body, context.sequences)?;
    let (op, scope) = context.operation(None)?;
    let mut scope = scope.without_clock();
    let filter = read::parse_filter_in(args.filter, &mut scope, Place::Validator)?;
    let snapshot = context.read_snapshot()?;
    // A user without the right to list all databases sees those in which the user has some right.
    let grants = privileges::grants(context);
    let may_see_all = grants.is_none_or(|grants| grants.on(&Resource::Cluster).has(Action::ListDatabases));
    let only_own = match (args.authorized_databases, may_see_all) {
        (Some(StrictBool(false)), false) => bail!(Unauthorized, "Insufficient permissions to list all databases"),
        (Some(StrictBool(only_own)), _) => only_own,
        (None, may_see_all) => !may_see_all,
    };
    let own = grants.filter(|_| only_own);
    let mut total = 0i64;
    reply.begin_array("databases");
    let mut count = 0;
    for database in snapshot.catalog().databases() {
        if own.is_some_and(|grants| !grants.any_in(database.name())) {
            continue;
        }
        let bytes = size(database, &snapshot)?;
        let mut row = doc! { "name": database.name().clone() };
        if !args.name_only {
            row.push("sizeOnDisk", bytes);
            row.push("empty", database.collections().len() == 0);
        }
        if filter.matches(row.as_ref(), &op)? {
            total += bytes;
            reply.append_index(count, &row);
            count += 1;
        }
    }
    reply.end();
    if !args.name_only {
        reply.append("totalSize", total);
        reply.append("totalSizeMb", total / (1024 * 1024));
    }
    Ok(())
}

/// Bytes that a database takes on disk.
fn size(database: &Database, view: &dyn View) -> Result<i64> {
    let mut bytes = 0;
    for collection in database.collections().filter(|collection| !collection.is_view()) {
        bytes += sizes::collection_bytes(view, collection, collection.state.bytes().max(0))?;
        for index in collection.all_indexes() {
            // Those in memory only would have to be counted.
            bytes += sizes::stored_bytes(view, index.tree)?.unwrap_or(0);
        }
    }
    Ok(bytes)
}
