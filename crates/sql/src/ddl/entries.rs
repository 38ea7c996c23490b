//! Entries of types, which hold no documents, and what has a type.
//!
//! A declared table keeps the labels of its enums and the attributes of its composite types in its own text, so whatever changes a type
//! declares the tables, functions and types anew that have it.

use super::alter as tables;
use super::alter::Edit;
use super::{made_namespace, namespace, note_made, routines};
use crate::bind::alter::Source;
use crate::bind::entry::{self, Object};
use crate::bind::{made, object_name, types};
use crate::catalog::routines::Routine;
use crate::error::{Field, error, fail, state, unsupported, with};
use crate::parse;
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::composite::Composite;
use crate::types::domain::Domain;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Document, Error, Namespace, Result, doc};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{Ident, ObjectName, Statement as Ast};
use std::sync::Arc;

/// CREATE TYPE: an entry with the validator that is made for its name.
///
/// Errors: 42710 for a name that a type or a table has; those of `validator`.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    name: &ObjectName,
    progress: &mut Progress,
    validator: impl Fn(&WriteSet, &Namespace) -> Result<Document>,
) -> Result<&'static str> {
    let ns = made_namespace(statement, session, (false, name), progress)?;
    if *ns.db != *session.database {
        return unsupported("a type in another database");
    }
    session.check_right(&ns, Right::CreateCollection)?;
    let (_, plain) = object_name(name)?;
    if Type::of_name(&plain).is_some() {
        return fail("42710", format!("type \"{plain}\" already exists"));
    }
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        // Types and tables share their names.
        Some(_) => fail("42710", format!("type \"{plain}\" already exists")),
        None => {
            let options = CollectionOptions::parse(doc! {
                "validator": validator(ws, &ns)?,
                "validationLevel": "strict",
                "validationAction": "error",
            })?;
            note_made(statement, session, ws, &ns)?;
            catalog::create(statement, ws, &ns, uuid, &options)
        }
    })?;
    Ok("CREATE TYPE")
}

/// ALTER TYPE: a change of an entry and of what has the type.
///
/// Errors: those of [`found`] and of `change`.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    name: &ObjectName,
    progress: &mut Progress,
    change: impl Fn(&mut WriteSet, &Arc<Collection>, Type) -> Result<()>,
) -> Result<&'static str> {
    let ns = namespace(statement, session, name)?;
    session.check_right(&ns, Right::CollMod)?;
    statement.atomically(progress, |ws| {
        let (collection, own) = found(ws, &ns)?;
        change(ws, &collection, own)
    })?;
    Ok("ALTER TYPE")
}

/// The validator that keeps the declaration of a composite type.
///
/// Errors: those of [`Composite::check_size`].
pub(super) fn composite(own: &Composite) -> Result<Document> {
    own.check_size()?;
    let each = own.attributes.iter().map(|own| {
        let name = Ident::with_quote('"', own.name.as_str());
        format!("{name} {}", own.ty.written(own.modifier))
    });
    let name = Ident::with_quote('"', own.name.as_str());
    let text = format!("CREATE TYPE {name} AS ({})", each.collect::<Vec<_>>().join(", "));
    Ok(entry::validator(entry::COMPOSITE, &text))
}

/// The validator that keeps the declaration of a domain: a type with one attribute, which is the domain.
///
/// Errors: those of [`Domain::check_size`].
pub(super) fn domain(own: &Domain) -> Result<Document> {
    own.check_size()?;
    let name = Ident::with_quote('"', own.name.as_str());
    Ok(entry::validator(
        entry::DOMAIN,
        &format!("CREATE TYPE {name} AS ({name} {})", own.written()),
    ))
}

/// The type at a namespace.
///
/// Errors: 42704 when there is none, 42809 for what is no type.
pub(super) fn found(ws: &WriteSet, ns: &Namespace) -> Result<(Arc<Collection>, Type)> {
    let collection = ws.catalog().get(ns);
    match collection.map(|collection| (collection, entry::type_of(collection))) {
        Some((collection, Some(own))) => Ok((collection.clone(), own.clone())),
        Some(_) => fail("42809", format!("\"{}\" is not a type", ns.coll)),
        None => fail("42704", format!("type \"{}\" does not exist", ns.coll)),
    }
}

/// The collections and entries of a database.
fn collections<'w>(ws: &'w WriteSet, db: &str) -> impl Iterator<Item = &'w Arc<Collection>> + use<'w> {
    let database = ws.catalog().database(db);
    database.into_iter().flat_map(|database| database.collections())
}

/// The tables that have columns of a type, or of one that is made of it, each with the places of these.
pub(super) fn users(ws: &WriteSet, db: &str, oid: u32) -> Vec<(Namespace, Vec<usize>)> {
    let tables = collections(ws, db).filter_map(|collection| match entry::of(collection) {
        Some(Object::Table(_, table)) => {
            let own = table.columns.iter().enumerate();
            let places: Vec<usize> = own
                .filter(|(_, c)| c.declared_type().is_of(oid))
                .map(|(at, _)| at)
                .collect();
            (!places.is_empty()).then(|| (collection.ns.clone(), places))
        }
        _ => None,
    });
    tables.collect()
}

/// The other types that are made of a type, each with its entry.
pub(super) fn made_of(ws: &WriteSet, db: &str, oid: u32) -> Vec<(Arc<Collection>, Type)> {
    let types =
        collections(ws, db).filter_map(|collection| Some((collection.clone(), entry::type_of(collection)?.clone())));
    types.filter(|(_, own)| own.oid() != oid && own.is_of(oid)).collect()
}

/// A function that has a type, or one that is made of it.
pub(super) fn function_with(ws: &WriteSet, db: &str, oid: u32) -> Option<Arc<Routine>> {
    entry::functions(ws, db).into_iter().find(|own| own.uses(oid))
}

/// Declares the functions that have a type with what it is now.
fn redeclare_functions(statement: &Statement<'_>, ws: &mut WriteSet, db: &str, new: &Type) -> Result<()> {
    let is_it = |collection: &&Arc<Collection>| match entry::of(collection) {
        Some(Object::Function(own)) => own.uses(new.oid()),
        _ => false,
    };
    let functions: Vec<Arc<Collection>> = collections(ws, db).filter(is_it).cloned().collect();
    for collection in functions {
        let text = entry::text(&collection).unwrap_or_default();
        let Some(Ast::CreateFunction(mut create)) = parse::parse(&text)?.pop() else {
            continue;
        };
        let args = create.args.iter_mut().flatten().map(|arg| &mut arg.data_type);
        for ty in args.chain(made::returned(&mut create.return_type)) {
            // What is no type is a table, whose rows are returned.
            let Ok((before, _)) = types::data_type(ty) else {
                continue;
            };
            if let Some(now) = types::written(&before.with(new)) {
                *ty = now;
            }
        }
        let text = routines::kept(create).to_string();
        catalog::set_validator(statement, ws, &collection, &entry::validator(entry::FUNCTION, &text))?;
    }
    Ok(())
}

/// Declares the tables, functions and types that have a type with what it is now. With `turns` rows are written anew.
pub(super) fn redeclare(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    db: &str,
    (new, turns): (&Type, bool),
) -> Result<()> {
    redeclare_functions(statement, ws, db, new)?;
    for (collection, own) in made_of(ws, db, new.oid()) {
        let validator = match own.with(new) {
            Type::Composite(own) => composite(&own)?,
            Type::Domain(own) => domain(&own)?,
            _ => continue,
        };
        catalog::set_validator(statement, ws, &collection, &validator)?;
    }
    for (ns, places) in users(ws, db, new.oid()) {
        if !turns {
            redeclare_columns(statement, session, ws, (&ns, &places), (new, false))?;
            continue;
        }
        session.check_right(&ns, Right::CollMod)?;
        // One by one, so that whatever is wrong is known by its column.
        for at in places {
            redeclare_columns(statement, session, ws, (&ns, &[at]), (new, true))?;
        }
    }
    Ok(())
}

/// Declares columns of a table that have a type with what it is now. With `turns` rows are written anew.
fn redeclare_columns(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (ns, places): (&Namespace, &[usize]),
    (new, turns): (&Type, bool),
) -> Result<()> {
    let Some(table) = tables::found(ws, ns)? else {
        return Ok(());
    };
    if turns {
        statement.check_plain(&table.collection, "SQL does not change its rows")?;
    }
    let mut create = table.create.clone();
    let mut sources: Vec<Source> = (0..create.columns.len()).map(Source::Kept).collect();
    let mut name = String::new();
    for at in places {
        let def = &mut create.columns[*at];
        name = crate::bind::ident(&def.name);
        let before = types::data_type(&def.data_type)?.0;
        let is_whole = match new {
            Type::Domain(_) => before.is_constrained(),
            new => before.clone().plain().oid() == new.oid(),
        };
        if turns && !is_whole {
            let column = format!("{}.{name}", ns.coll);
            return unsupported(format!(
                "a change of type {new} that column {column} has within another type"
            ));
        }
        if let Some(now) = types::written(&before.with(new)) {
            def.data_type = now;
        }
        if turns {
            sources[*at] = Source::Turned(*at, None);
        }
    }
    let edit = Edit {
        create,
        sources,
        cascades: false,
    };
    let done = tables::declare(statement, session, ws, &table, edit);
    let is_domain = turns && matches!(new, Type::Domain(_));
    done.map_err(|told| match &*state(&told) {
        "23514" if is_domain => {
            let message = "contains values that violate the new constraint";
            of_column(
                error("23514", format!("column \"{name}\" of table \"{}\" {message}", ns.coll)),
                ns,
                &name,
            )
        }
        "23502" if is_domain => of_column(
            error(
                "23502",
                format!("column \"{name}\" of table \"{}\" contains null values", ns.coll),
            ),
            ns,
            &name,
        ),
        _ => told,
    })
}

/// An error of what a column of a table has.
fn of_column(told: Error, ns: &Namespace, column: &str) -> Error {
    let (schema, table) = ns.coll.split_once('.').unwrap_or(("public", &ns.coll));
    with(
        told,
        &[(Field::Schema, schema), (Field::Table, table), (Field::Column, column)],
    )
}
