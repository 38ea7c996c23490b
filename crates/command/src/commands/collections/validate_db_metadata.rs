//! `validateDBMetadata`: whether what exists can be used under an API version.

use crate::args::{NotNull, StrictBool};
use crate::context::Context;
use crate::facts::Facts;
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_planner::kinds;
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("validateDBMetadata", "Lists what an API version does not allow.")
    .needs(Needs::Arguments(needs::validate_metadata))
    .runs(run);

crate::args! {
    /// Arguments of `validateDBMetadata`.
    pub struct ValidateDbMetadataArgs<'a>: "validateDBMetadata" command {
        "validateDBMetadata" => marker: Option<ValueRef<'a>>,
        "apiParameters" => api_parameters: RawDoc<'a>,
        "db" => db: Option<&'a str>,
        "collection" => collection: Option<&'a str>,
    }
}

crate::args! {
    struct ApiParameters<'a>: "validateDBMetadata.apiParameters" nested {
        "version" => version: &'a str,
        "strict" => strict: Option<NotNull<StrictBool>>,
        "deprecationErrors" => deprecation_errors: Option<NotNull<StrictBool>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ValidateDbMetadataArgs::parse(context.body, context.sequences)?;
    let api = ApiParameters::parse(args.api_parameters, &[])?;
    if api.version != "1" {
        bail!(APIVersionError, "API version must be \"1\"");
    }
    if let Some(db) = args.db {
        check_name(db)?;
    }
    if let (Some(db), Some(name)) = (args.db, args.collection) {
        nestor_database::names::collection(db, name)?;
    } else if let Some(name) = args.collection {
        nestor_database::names::collection(context.db(), name)?;
    }
    let is_on = |flag: Option<NotNull<StrictBool>>| flag.is_some_and(|flag| flag.0.0);
    let refuses = is_on(api.strict) || is_on(api.deprecation_errors);
    let snapshot = context.service.engine.snapshot();
    reply.begin_array("apiVersionErrors");
    let mut count = 0;
    for database in snapshot.catalog().databases() {
        if args.db.is_some_and(|db| database.name() != db) {
            continue;
        }
        for collection in database.collections() {
            if args.collection.is_some_and(|name| collection.ns.coll != name) {
                continue;
            }
            for index in &collection.indexes {
                let outside = index
                    .key_pattern
                    .iter()
                    .any(|(_, kind)| kind.as_str().is_some_and(kinds::is_outside_api));
                if outside && refuses {
                    reply.begin_document_at(count);
                    reply.append_namespace("ns", &collection.ns);
                    reply.append("code", 323);
                    reply.append("codeName", "APIStrictError");
                    reply.append("errmsg", "The index with name text is not allowed in API version 1.");
                    reply.end();
                    count += 1;
                }
            }
        }
    }
    reply.end();
    Ok(())
}

/// Names of databases as this command takes them: `$` is allowed, and there are two codes.
fn check_name(db: &str) -> Result<()> {
    if db.is_empty() {
        bail!(28539, "Empty database name");
    }
    if db.contains(['.', '\0']) || db.len() > nestor_database::names::DATABASE_BYTES_MAX {
        bail!(InvalidNamespace, "Invalid database name: '{db}'");
    }
    if db.contains([' ', '/', '\\', '"']) {
        bail!(13280, "invalid db name: {db}");
    }
    Ok(())
}
