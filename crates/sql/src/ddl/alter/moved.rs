//! SET SCHEMA: what stands in a schema gets its name in another one.

use super::found::found;
use super::rename::{self, Kind};
use crate::bind::entry::{self, Object};
use crate::bind::ident;
use crate::catalog::schemas;
use crate::ddl::{checked, enums, name_of, namespace};
use crate::error::{Field, error, fail, unsupported, with};
use crate::parse;
use crate::run::numbers::Sequence;
use crate::run::tables::SessionFacts;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{Document, Error, Namespace, Result};
use nestor_storage::{Collection, View, WriteSet};
use sqlparser::ast::{Ident, ObjectName, Statement as Ast};

/// What something is called in a schema that there is.
///
/// Errors: 3F000, 0A000 for schemas of temporary tables.
fn there(view: &dyn View, session: &SessionFacts, from: &Namespace, schema: &str) -> Result<Namespace> {
    let (before, name) = schemas::split(view, from);
    let is_temporary = |schema: &str| schema == schemas::TEMPORARY || schemas::is_temporary(schema);
    if is_temporary(schema) || is_temporary(before) {
        return fail("0A000", "cannot move objects into or out of temporary schemas");
    }
    if schema != schemas::PUBLIC && !schemas::exists(view, &session.database, schema) {
        return fail("3F000", format!("schema \"{schema}\" does not exist"));
    }
    checked(Namespace::new(&*from.db, schemas::collection(schema, name)))
}

/// ALTER … SET SCHEMA of what is no function; its tag.
///
/// Errors: those of renaming, 3F000, 0A000 for sequences of columns.
pub(in crate::ddl) fn set_schema(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (kind, name, schema): (&str, &ObjectName, &Ident),
    if_exists: bool,
    progress: &mut Progress,
) -> Result<String> {
    let from = namespace(statement, session, name)?;
    let schema = ident(schema);
    let to = there(statement.current_view().view(), session, &from, &schema);
    let tag = format!("ALTER {kind}");
    let kind = match kind {
        "TABLE" => Kind::Any,
        "VIEW" => Kind::View,
        "MATERIALIZED VIEW" => Kind::Materialized,
        "SEQUENCE" => Kind::Sequence,
        "TYPE" | "DOMAIN" => {
            let to = to?;
            enums::set_schema(statement, session, (name, &to), kind == "DOMAIN", progress)?;
            return Ok(tag);
        }
        _ => return unsupported(format!("{tag} … SET SCHEMA")),
    };
    // What there is not is told before where it should be.
    let to = match statement.current_view().view().catalog().get(&from) {
        Some(_) => to?,
        None => to.unwrap_or_else(|_| from.clone()),
    };
    if from == to && statement.current_view().view().catalog().get(&from).is_some() {
        return Ok(tag);
    }
    rename::moved(statement, session, (&from, &to), (kind, if_exists), progress)?;
    Ok(tag)
}

/// 0A000: a sequence goes where its table goes.
pub(super) fn owned(sequence: &str, table: &str) -> Error {
    let told = error("0A000", "cannot move an owned sequence into another schema");
    let detail = format!("Sequence \"{sequence}\" is linked to table \"{table}\".");
    with(told, &[(Field::Detail, &detail)])
}

/// Refuses to move a sequence away from its table.
///
/// Errors: 0A000.
pub(super) fn check_free(view: &dyn View, source: &Collection) -> Result<()> {
    match entry::of(source) {
        Some(Object::Sequence(.., Some((table, _)))) => {
            let owner = Namespace::new(&*source.ns.db, table.as_str());
            let name = |ns| schemas::split(view, ns).1.to_owned();
            Err(owned(&name(&source.ns), &name(&owner)))
        }
        _ => Ok(()),
    }
}

/// The sequences that go with a table and have entries of their own.
pub(super) fn sequences_of(ws: &WriteSet, table: &Namespace) -> Vec<Namespace> {
    let database = ws.catalog().database(&table.db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter(
        |collection| matches!(entry::of(collection), Some(Object::Sequence(.., Some((owner, _)))) if *owner == *table.coll),
    );
    own.map(|collection| collection.ns.clone()).collect()
}

/// The validator of what is declared by a text with its schema, as it is in another one; `None` of what says no schema.
///
/// Errors: those of the text.
pub(super) fn declared_there(ws: &WriteSet, from: &Namespace, to: &Namespace) -> Result<Option<Document>> {
    let Some(collection) = ws.catalog().get(from).cloned() else {
        return Ok(None);
    };
    let new = name_of(ws, to);
    Ok(match entry::of(&collection) {
        Some(Object::Table(..)) => match found(ws, from)? {
            Some(mut table) => {
                table.create.name = new;
                Some(table.declared.validator(&table.create.to_string()))
            }
            None => None,
        },
        Some(Object::Sequence(..) | Object::Materialized(_)) => {
            let mut texts = Vec::new();
            for mut own in parse::parse(&entry::text(&collection).unwrap_or_default())? {
                match &mut own {
                    Ast::CreateTable(create) => create.name = new.clone(),
                    Ast::CreateSequence { name, .. } => *name = new.clone(),
                    _ => {}
                }
                texts.push(own.to_string());
            }
            let title = entry::title(&collection).unwrap_or_default();
            Some(entry::validator(title, &texts.join("; ")))
        }
        _ => None,
    })
}

/// Declares what was moved to where it is.
///
/// Errors: those of the catalog.
pub(super) fn declare(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    to: &Namespace,
    validator: Option<&Document>,
) -> Result<()> {
    match (ws.catalog().get(to).cloned(), validator) {
        (Some(collection), Some(validator)) => catalog::set_validator(statement, ws, &collection, validator),
        _ => Ok(()),
    }
}

/// Whether a sequence of a column is to be moved alone.
pub(super) fn check_column(view: &dyn View, found: &Sequence) -> Error {
    owned(&found.name, schemas::split(view, &found.ns).1)
}
