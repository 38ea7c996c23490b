//! CREATE SCHEMA and DROP SCHEMA.

use super::{alter, assertion, enums, owner, sequence, table};
use crate::bind::entry::{self, Object};
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::tables::SessionFacts;
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{Ident, ObjectName, SchemaName};

/// Names that no schema gets.
fn check_name(name: &str) -> Result<()> {
    match name {
        _ if name.starts_with("pg_") => {
            let refused = error::error("42939", format!("unacceptable schema name \"{name}\""));
            let detail = "The prefix \"pg_\" is reserved for system schemas.";
            Err(error::with(refused, &[(error::Field::Detail, detail)]))
        }
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
        SchemaName::UnnamedAuthorization(role) => owner::user_of(session, role)?,
        SchemaName::NamedAuthorization(name, role) => {
            owner::user_of(session, role)?;
            crate::bind::object_name(name)?.1
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
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        Some(_) => pass_over(if_not_exists, taken()),
        None => make(statement, ws, &ns, &name),
    })?;
    Ok("CREATE SCHEMA")
}

/// Makes the entry `ns` of a schema.
///
/// Errors: those of the catalog.
pub(super) fn make(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, name: &str) -> Result<()> {
    let text = format!("CREATE SCHEMA {}", Ident::with_quote('"', name));
    let options = CollectionOptions::parse(doc! {
        "validator": entry::validator(entry::SCHEMA, &text),
        "validationLevel": "strict",
        "validationAction": "error",
    })?;
    catalog::create(statement, ws, ns, statement.database.new_uuid(), &options)
}

/// What stands in a schema: types behind what is no type, and each behind those that are made of it.
pub(super) fn within(ws: &WriteSet, db: &str, schema: &str) -> Vec<Namespace> {
    let beginning = format!("{schema}.");
    let database = ws.catalog().database(db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter(|collection| collection.ns.coll.starts_with(&beginning));
    let (types, others): (Vec<_>, Vec<_>) = own.partition(|collection| entry::type_of(collection).is_some());
    let mut out: Vec<Namespace> = others.into_iter().map(|collection| collection.ns.clone()).collect();
    let mut types: Vec<(&Namespace, &Type)> = types
        .into_iter()
        .filter_map(|collection| Some((&collection.ns, entry::type_of(collection)?)))
        .collect();
    while !types.is_empty() {
        let is_free = |(_, own): &&(&Namespace, &Type)| {
            let mut others = types.iter().filter(|(_, other)| other.oid() != own.oid());
            others.all(|(_, other)| !other.is_of(own.oid()))
        };
        let free: Vec<&Namespace> = types.iter().filter(is_free).map(|(ns, _)| *ns).collect();
        // No type is made of itself.
        debug_assert!(!free.is_empty(), "one of them is part of no other");
        let rest = types
            .iter()
            .filter(|(ns, _)| !free.is_empty() && !free.contains(ns))
            .copied()
            .collect();
        out.extend(free.into_iter().cloned());
        types = rest;
    }
    out
}

/// Drops what stands in a schema.
///
/// Errors: those of the catalog.
pub(super) fn let_go(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    found: &Collection,
) -> Result<()> {
    match entry::of(found) {
        Some(Object::Type(own)) => {
            enums::let_go(statement, session, ws, (found, own), true)?;
            Ok(())
        }
        Some(Object::Sequence(..)) => sequence::let_go(statement, ws, found),
        _ => table::let_go(statement, ws, found),
    }
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
            let own = within(ws, &session.database, name);
            if let (Some(first), false) = (own.first(), cascades) {
                let message = format!("cannot drop schema {name} because other objects depend on it");
                let detail = format!("{} depends on schema {name}", first.coll);
                return Err(error::with(error("2BP01", message), &[(error::Field::Detail, &detail)]));
            }
            for ns in &own {
                session.check_right(ns, Right::DropCollection)?;
                alter::let_go(statement, ws, ns)?;
                assertion::let_go(statement, session, ws, ns)?;
                if let Some(found) = ws.catalog().get(ns).cloned() {
                    let_go(statement, session, ws, &found)?;
                }
            }
            catalog::drop(statement, ws, &ns)?;
            comments::forget(statement, ws, &ns.db, found.uuid)?;
        }
        Ok(())
    })?;
    Ok("DROP SCHEMA")
}
