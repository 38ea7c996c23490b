//! CREATE SCHEMA and DROP SCHEMA.

use super::{alter, assertion, enums, sequence, table};
use crate::bind::entry::{self, Object};
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::tables::SessionFacts;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::View as _;
use sqlparser::ast::{ObjectName, SchemaName};

/// Names that no schema gets.
fn check_name(name: &str) -> Result<()> {
    match name {
        _ if name.starts_with("pg_") => fail("42939", format!("unacceptable schema name \"{name}\"")),
        schemas::PUBLIC | "information_schema" => fail("42P06", format!("schema \"{name}\" already exists")),
        _ if name.contains(['.', '$', '\0']) || name.is_empty() || name == "system" => {
            unsupported(format!("a schema of the name \"{name}\""))
        }
        _ => Ok(()),
    }
}

/// CREATE SCHEMA: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, if_not_exists): (&SchemaName, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let name = match name {
        SchemaName::Simple(name) => crate::bind::object_name(name)?.1,
        SchemaName::UnnamedAuthorization(_) | SchemaName::NamedAuthorization(..) => {
            return unsupported("AUTHORIZATION of CREATE SCHEMA");
        }
    };
    let taken = || error("42P06", format!("schema \"{name}\" already exists"));
    if name == schemas::PUBLIC {
        return pass_over(if_not_exists, taken()).map(|()| "CREATE SCHEMA");
    }
    check_name(&name)?;
    let ns = schemas::entry(&session.database, &name);
    // As whoever may make collections with such names may.
    session.check_right(
        &Namespace::new(session.database.as_str(), name.as_str()),
        Right::CreateCollection,
    )?;
    let text = format!(
        "CREATE SCHEMA {}",
        sqlparser::ast::Ident::with_quote('"', name.as_str())
    );
    let options = CollectionOptions::parse(doc! {
        "validator": entry::validator(entry::SCHEMA, &text),
        "validationLevel": "strict",
        "validationAction": "error",
    })?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        Some(_) => pass_over(if_not_exists, taken()),
        None => catalog::create(statement, ws, &ns, uuid, &options),
    })?;
    Ok("CREATE SCHEMA")
}

/// DROP SCHEMA. With CASCADE all that stands in it goes with it.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists, cascades): (&[ObjectName], bool, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let names: Vec<String> = names
        .iter()
        .map(|name| crate::bind::object_name(name).map(|(_, name)| name))
        .collect::<Result<_>>()?;
    statement.atomically(progress, |ws| {
        for name in &names {
            if matches!(name.as_str(), schemas::PUBLIC | "pg_catalog" | "information_schema") {
                return unsupported(format!("DROP SCHEMA {name}"));
            }
            let ns = schemas::entry(&session.database, name);
            let Some(found) = ws.catalog().get(&ns).cloned() else {
                pass_over(if_exists, error("3F000", format!("schema \"{name}\" does not exist")))?;
                continue;
            };
            let as_table = Namespace::new(session.database.as_str(), name.as_str());
            session.check_right(&as_table, Right::DropCollection)?;
            let beginning = format!("{name}.");
            let database = ws.catalog().database(&session.database).cloned();
            let collections = database.iter().flat_map(|database| database.collections());
            let own = collections.filter(|collection| collection.ns.coll.starts_with(&beginning));
            let own: Vec<Namespace> = own.map(|collection| collection.ns.clone()).collect();
            if let (Some(first), false) = (own.first(), cascades) {
                let message = format!("cannot drop schema {name} because other objects depend on it");
                let detail = format!("{} depends on schema {name}", first.coll);
                return Err(error::with(error("2BP01", message), &[(error::Field::Detail, &detail)]));
            }
            for ns in &own {
                session.check_right(ns, Right::DropCollection)?;
                alter::let_go(statement, ws, ns)?;
                assertion::let_go(statement, session, ws, ns)?;
                if let Some(collection) = ws.catalog().get(ns).cloned() {
                    match entry::of(&collection) {
                        Some(Object::Enum(own)) => {
                            enums::let_go(statement, session, ws, (&collection, own), true)?;
                        }
                        Some(Object::Sequence(..)) => sequence::let_go(statement, ws, &collection)?,
                        _ => table::let_go(statement, ws, &collection)?,
                    }
                }
            }
            catalog::drop(statement, ws, &ns)?;
            comments::forget(statement, ws, &ns.db, found.uuid)?;
        }
        Ok(())
    })?;
    Ok("DROP SCHEMA")
}
