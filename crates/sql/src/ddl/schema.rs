//! CREATE SCHEMA, also with statements within it, ALTER SCHEMA … RENAME TO and DROP SCHEMA.

use super::{alter, assertion, enums, owner, sequence, table};
use crate::bind::entry::{self, Object};
use crate::bind::ident;
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::parse::schemas::{Schemas, named as schemas_of};
use crate::run::procedures::check_transaction;
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::names::quoted;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{CollectionOptions, Namespace, Result, doc};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{Ident, ObjectName, SchemaName, Statement as Ast};

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

/// The name of a schema that is to be made.
///
/// Errors: those of its owner.
fn called(session: &SessionFacts, name: &SchemaName) -> Result<String> {
    Ok(match name {
        SchemaName::Simple(name) => crate::bind::object_name(name)?.1,
        SchemaName::UnnamedAuthorization(role) => owner::user_of(session, role)?,
        SchemaName::NamedAuthorization(name, role) => {
            owner::user_of(session, role)?;
            crate::bind::object_name(name)?.1
        }
    })
}

/// CREATE SCHEMA with statements within it, and ALTER SCHEMA … RENAME TO: all of each is done or nothing.
pub(super) fn run(
    statement: &Statement<'_>,
    session: &SessionFacts,
    what: &Schemas,
    progress: &mut Progress,
) -> Result<&'static str> {
    check_transaction(statement)?;
    match what {
        Schemas::Create { create, elements } => with_elements(statement, session, (create, elements)),
        Schemas::Rename { name, to } => rename(statement, session, (&ident(name), &ident(to)), progress),
    }
}

/// Makes a schema and what stands in it.
///
/// Errors: those of the statements; 42P15 where one names another schema.
fn with_elements(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (create, elements): (&Ast, &[Ast]),
) -> Result<&'static str> {
    let Ast::CreateSchema { schema_name, .. } = create else {
        return fail("XX000", "a statement that makes no schema was run as one that does");
    };
    let name = called(session, schema_name)?;
    super::run(statement, session, create, (&[], &[]))?;
    let mut within = session.clone();
    let path = within.settings.entry("search_path".to_owned()).or_default();
    *path = format!("{}, {path}", quoted(&name));
    for element in elements {
        for made in schemas_of(element)? {
            if let (Some(schema), _) = crate::bind::object_name(&made)?
                && schema != name
            {
                let message =
                    format!("CREATE specifies a schema ({schema}) different from the one being created ({name})");
                return fail("42P15", message);
            }
        }
        super::run(statement, &within, element, (&[], &[]))?;
    }
    Ok("CREATE SCHEMA")
}

/// ALTER SCHEMA … RENAME TO: what stands in it moves to one of the new name, which takes the place of the old one.
///
/// Errors: 3F000, 42P06, those of names and of moving; 0A000 where a view names the schema, as it does so by text.
fn rename(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, to): (&str, &str),
    progress: &mut Progress,
) -> Result<&'static str> {
    if matches!(name, schemas::PUBLIC | "pg_catalog" | "information_schema") {
        return unsupported(format!("ALTER SCHEMA {name} RENAME"));
    }
    let db = &session.database;
    let (from_entry, to_entry) = (schemas::entry(db, name), schemas::entry(db, to));
    let both = [name, to].map(|own| Namespace::new(db.as_str(), own));
    session.check_right(&both[0], Right::RenameCollectionSameDb)?;
    statement.atomically(progress, |ws| {
        if ws.catalog().get(&from_entry).is_none() {
            return fail("3F000", format!("schema \"{name}\" does not exist"));
        }
        if ws.catalog().get(&to_entry).is_some() {
            return fail("42P06", format!("schema \"{to}\" already exists"));
        }
        check_name(to)?;
        if let Some(view) = naming(ws, db, name) {
            return unsupported(format!(
                "a new name of schema {name}, which view {view} has in its text,"
            ));
        }
        make(statement, ws, &to_entry, to)
    })?;
    let identifier = |own: &str| Ident::with_quote('"', own);
    let mut met = Vec::new();
    loop {
        let next = statement.atomically(progress, |ws| {
            let next = within(ws, db, name).into_iter().next();
            let next = next.and_then(|ns| ws.catalog().get(&ns).cloned());
            Ok(next.map(|found| (first_to_move(ws, &found), found.clone())))
        })?;
        let Some((ns, found)) = next else { break };
        if met.contains(&ns) {
            return fail("XX000", format!("\"{}\" is still where it was", ns.coll));
        }
        met.push(ns.clone());
        let own = schemas::split(statement.current_view().view(), &ns).1.to_owned();
        if let Some(Object::Function(routine)) = entry::of(&found) {
            let args: Vec<String> = routine.args.iter().map(|arg| arg.ty.to_string()).collect();
            let text = format!(
                "ALTER ROUTINE {}.{}({}) SET SCHEMA {}",
                identifier(name),
                identifier(&routine.name),
                args.join(", "),
                identifier(to)
            );
            for ast in crate::parse::parse(&text)? {
                super::run(statement, session, &ast, (&[], &[]))?;
            }
            continue;
        }
        let kind = if entry::type_of(&found).is_some() {
            "TYPE"
        } else {
            "TABLE"
        };
        let object = ObjectName::from(vec![identifier(name), identifier(&own)]);
        alter::set_schema(statement, session, (kind, &object, &identifier(to)), false, progress)?;
    }
    // The entry stays what it is, and with it what is said of it.
    statement.atomically(progress, |ws| {
        if let Some(made) = ws.catalog().get(&to_entry).cloned() {
            catalog::drop(statement, ws, &made.ns)?;
        }
        let Some(found) = ws.catalog().get(&from_entry).cloned() else {
            return fail("3F000", format!("schema \"{name}\" does not exist"));
        };
        catalog::rename(statement, ws, &found, &to_entry, (false, false))?;
        let text = format!("CREATE SCHEMA {}", identifier(to));
        match ws.catalog().get(&to_entry).cloned() {
            Some(now) => catalog::set_validator(statement, ws, &now, &entry::validator(entry::SCHEMA, &text)),
            None => Ok(()),
        }
    })?;
    Ok("ALTER SCHEMA")
}

/// What has to move so that an entry does: the table of a sequence that goes with one.
fn first_to_move(ws: &WriteSet, found: &Collection) -> Namespace {
    match entry::of(found) {
        Some(Object::Sequence(.., Some((table, _)))) => {
            let table = Namespace::new(&*found.ns.db, table.as_str());
            if ws.catalog().get(&table).is_some() {
                table
            } else {
                found.ns.clone()
            }
        }
        _ => found.ns.clone(),
    }
}

/// A view that names something by a schema.
fn naming(ws: &WriteSet, db: &str, schema: &str) -> Option<String> {
    let database = ws.catalog().database(db)?;
    let mut views = database.collections().filter(|collection| {
        let kept = entry::materialized_of(collection).and_then(|table| table.materialized.as_ref());
        let text = entry::view_text(collection).or(kept.map(|own| own.text.as_str()));
        text.is_some_and(|text| crate::parse::schemas::is_named(text, schema))
    });
    views.next().map(|found| found.ns.coll.to_string())
}

/// CREATE SCHEMA: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, if_not_exists): (&SchemaName, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let name = called(session, name)?;
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
