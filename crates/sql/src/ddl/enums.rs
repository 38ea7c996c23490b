//! CREATE TYPE … AS ENUM, ALTER TYPE and DROP TYPE.
//!
//! A declared table keeps the labels of its enums in its own text, so whatever changes an enum declares the tables anew that have it.

use super::alter::{self, Edit};
use super::{checked, hold_schema, namespace, new_namespace};
use crate::bind::alter::Source;
use crate::bind::entry::{self, Object};
use crate::bind::object_name;
use crate::catalog::schemas;
use crate::error::{self, error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::enums::{Enum, LABELS_MAX};
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{CollectionOptions, Document, Namespace, Result, doc};
use nestor_storage::{Collection, View, WriteSet};
use sqlparser::ast::{
    AlterType, AlterTypeAddValue, AlterTypeAddValuePosition, AlterTypeOperation, AlterTypeRenameValue,
    ArrayElemTypeDef, DataType, Ident, ObjectName,
};
use std::sync::Arc;

/// Bytes of a label at most.
const LABEL_BYTES_MAX: usize = 63;

fn check_labels(labels: &[String]) -> Result<()> {
    for (at, label) in labels.iter().enumerate() {
        if label.len() > LABEL_BYTES_MAX {
            return fail("42602", format!("invalid enum label \"{label}\""));
        }
        if labels[..at].contains(label) {
            return fail("23505", format!("enum label \"{label}\" used more than once"));
        }
    }
    match labels.len() > LABELS_MAX {
        true => fail("54000", format!("an enum has at most {LABELS_MAX} labels")),
        false => Ok(()),
    }
}

fn validator(name: &str, labels: &[String]) -> Document {
    let quoted = labels.iter().map(|label| format!("'{}'", label.replace('\'', "''")));
    let name = Ident::with_quote('"', name);
    let text = format!("CREATE TYPE {name} AS ENUM ({})", quoted.collect::<Vec<_>>().join(", "));
    entry::validator(entry::ENUM, &text)
}

/// CREATE TYPE … AS ENUM: an entry that holds no documents.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (name, labels): (&ObjectName, &[Ident]),
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = new_namespace(statement, session, name)?;
    if *ns.db != *session.database {
        return unsupported("a type in another database");
    }
    session.check_right(&ns, Right::CreateCollection)?;
    let labels: Vec<String> = labels.iter().map(|label| label.value.clone()).collect();
    check_labels(&labels)?;
    let (_, plain) = object_name(name)?;
    if Type::of_name(&plain).is_some() {
        return fail("42710", format!("type \"{plain}\" already exists"));
    }
    let options = CollectionOptions::parse(doc! {
        "validator": validator(&ns.coll, &labels),
        "validationLevel": "strict",
        "validationAction": "error",
    })?;
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        // Types and tables share their names.
        Some(_) => fail("42710", format!("type \"{plain}\" already exists")),
        None => {
            hold_schema(statement, ws, &ns);
            catalog::create(statement, ws, &ns, uuid, &options)
        }
    })?;
    Ok("CREATE TYPE")
}

/// The enum at a namespace.
///
/// Errors: 42704 when there is none, 42809 for a type that is no enum.
fn found(ws: &WriteSet, ns: &Namespace) -> Result<(Arc<Collection>, Arc<Enum>)> {
    let collection = ws.catalog().get(ns);
    match collection.map(|collection| (collection, entry::of(collection))) {
        Some((collection, Some(Object::Enum(own)))) => Ok((collection.clone(), own.clone())),
        Some(_) => fail("42809", format!("\"{}\" is not an enum", ns.coll)),
        None => fail("42704", format!("type \"{}\" does not exist", ns.coll)),
    }
}

fn is_of(ty: &Type, oid: u32) -> bool {
    match ty {
        Type::Enum(own) => own.oid == oid,
        Type::Array(element) => is_of(element, oid),
        _ => false,
    }
}

/// The tables that have columns of an enum, each with the places of these.
fn users(ws: &WriteSet, db: &str, oid: u32) -> Vec<(Namespace, Vec<usize>)> {
    let database = ws.catalog().database(db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let tables = collections.filter_map(|collection| match entry::of(collection) {
        Some(Object::Table(_, table)) => {
            let own = table.columns.iter().enumerate();
            let places: Vec<usize> = own.filter(|(_, c)| is_of(&c.ty, oid)).map(|(at, _)| at).collect();
            (!places.is_empty()).then(|| (collection.ns.clone(), places))
        }
        _ => None,
    });
    tables.collect()
}

/// Declares the tables that have an enum with what it is now. With `turns` their rows are written anew.
fn redeclare(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    db: &str,
    (new, turns): (&Enum, bool),
) -> Result<()> {
    for (ns, places) in users(ws, db, new.oid) {
        let Some(table) = alter::found(ws, &ns)? else { continue };
        if turns {
            session.check_right(&ns, Right::CollMod)?;
            statement.check_plain(&table.collection, "SQL does not change its rows")?;
        }
        let mut create = table.create.clone();
        let mut sources: Vec<Source> = (0..create.columns.len()).map(Source::Kept).collect();
        for at in places {
            let ty = &mut create.columns[at].data_type;
            *ty = match ty {
                DataType::Array(_) => {
                    if turns {
                        return unsupported("RENAME VALUE of an enum that a column has arrays of");
                    }
                    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(new.written()), None))
                }
                _ => new.written(),
            };
            if turns {
                sources[at] = Source::Turned(at, None);
            }
        }
        let edit = Edit {
            create,
            sources,
            cascades: false,
        };
        alter::declare(statement, session, ws, &table, edit)?;
    }
    Ok(())
}

/// ALTER TYPE.
pub(super) fn alter(
    statement: &Statement<'_>,
    session: &SessionFacts,
    alter: &AlterType,
    progress: &mut Progress,
) -> Result<&'static str> {
    let ns = namespace(statement, session, &alter.name)?;
    session.check_right(&ns, Right::CollMod)?;
    statement.atomically(progress, |ws| {
        let (collection, own) = found(ws, &ns)?;
        let mut new = (*own).clone();
        let mut turns = false;
        match &alter.operation {
            AlterTypeOperation::AddValue(AlterTypeAddValue {
                if_not_exists,
                value,
                position,
            }) => {
                if new.labels.contains(&value.value) {
                    let taken = error("42710", format!("enum label \"{}\" already exists", value.value));
                    return pass_over(*if_not_exists, taken);
                }
                let at = |label: &Ident| place(&own, &label.value, "22023");
                let at = match position {
                    None => new.labels.len(),
                    Some(AlterTypeAddValuePosition::Before(label)) => at(label)?,
                    Some(AlterTypeAddValuePosition::After(label)) => at(label)? + 1,
                };
                new.labels.insert(at, value.value.clone());
                check_labels(&new.labels)?;
            }
            AlterTypeOperation::RenameValue(AlterTypeRenameValue { from, to }) => {
                let at = place(&own, &from.value, "22023")?;
                if new.labels.contains(&to.value) {
                    return fail("42710", format!("enum label \"{}\" already exists", to.value));
                }
                to.value.clone_into(&mut new.labels[at]);
                check_labels(&new.labels)?;
                turns = true;
            }
            AlterTypeOperation::Rename(rename) => {
                let (schema, _) = schemas::split(&*ws, &ns);
                let name = crate::bind::ident(&rename.new_name);
                let to = checked(Namespace::new(&*ns.db, schemas::collection(schema, &name)))?;
                if ws.catalog().get(&to).is_some() || Type::of_name(&name).is_some() {
                    return fail("42710", format!("type \"{name}\" already exists"));
                }
                catalog::rename(statement, ws, &collection, &to, (false, false))?;
                new.name = to.coll.to_string();
                return redeclare(statement, session, ws, &ns.db, (&new, false));
            }
        }
        catalog::set_validator(statement, ws, &collection, &validator(&ns.coll, &new.labels))?;
        redeclare(statement, session, ws, &ns.db, (&new, turns))
    })?;
    Ok("ALTER TYPE")
}

fn place(own: &Enum, label: &str, state: &str) -> Result<usize> {
    let place = own.labels.iter().position(|own| own == label);
    place.ok_or_else(|| error(state, format!("\"{label}\" is not an existing enum label")))
}

/// DROP TYPE. With CASCADE columns of the type go with it.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists, cascades): (&[ObjectName], bool, bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    statement.atomically(progress, |ws| {
        for name in names {
            let ns = super::namespace_in(&*ws, session, name)?;
            if ws.catalog().get(&ns).is_none() && if_exists {
                pass_over(true, error("42704", format!("type \"{}\" does not exist", ns.coll)))?;
                continue;
            }
            let (collection, own) = found(ws, &ns)?;
            session.check_right(&ns, Right::DropCollection)?;
            let_go(statement, session, ws, (&collection, &own), cascades)?;
        }
        Ok(())
    })?;
    Ok("DROP TYPE")
}

/// Drops an enum, with `cascades` from the tables as well that have columns of it.
///
/// Errors: 2BP01; those of dropping columns.
pub(super) fn let_go(
    statement: &Statement<'_>,
    session: &SessionFacts,
    ws: &mut WriteSet,
    (collection, own): (&Collection, &Enum),
    cascades: bool,
) -> Result<()> {
    let ns = &collection.ns;
    for (table, places) in users(ws, &ns.db, own.oid) {
        if !cascades {
            let message = format!("cannot drop type {} because other objects depend on it", own.name);
            let detail = format!("a column of table {} depends on type {}", table.coll, own.name);
            return Err(error::with(error("2BP01", message), &[(error::Field::Detail, &detail)]));
        }
        session.check_right(&table, Right::CollMod)?;
        let Some(found) = alter::found(ws, &table)? else {
            continue;
        };
        statement.check_plain(&found.collection, "SQL does not change its rows")?;
        let edit = alter::without_columns(&found, &places)?;
        alter::declare(statement, session, ws, &found, edit)?;
    }
    catalog::drop(statement, ws, ns)?;
    comments::forget(statement, ws, &ns.db, collection.uuid)
}
