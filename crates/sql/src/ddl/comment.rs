//! COMMENT ON.

use super::namespace_in;
use super::table::Kind;
use crate::bind::declared::Declared;
use crate::bind::{entry, ident, object_name};
use crate::catalog::{schemas, system};
use crate::error::{fail, unsupported};
use crate::notices;
use crate::run::tables::{Reading, SessionFacts, index_name};
use crate::types::Type;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, comments};
use nestor_model::{Document, Namespace, Result, Value};
use nestor_storage::{Collection, View as _, WriteSet};
use sqlparser::ast::{CommentObject, FunctionDesc, Ident, ObjectName, ObjectNamePart};
use std::sync::Arc;

/// What somebody says something about.
pub(super) enum Object<'o> {
    /// An object of a kind.
    Of(CommentObject, &'o ObjectName),
    /// A constraint of a table.
    Constraint(&'o Ident, &'o ObjectName),
    /// What the grammar does not know: its kind, its name, and what it is of.
    Own(&'o str, &'o Ident, Option<&'o ObjectName>),
    /// A function, which is said to be of a kind.
    Routine(&'o str, &'o FunctionDesc),
}

/// A part of a collection, or the collection.
struct Place {
    /// Whose right it takes.
    of: Namespace,
    /// By what its document of comments is called.
    uuid: [u8; 16],
    /// The field of its document of comments, and within it the name.
    part: Option<(&'static str, String)>,
}

impl Place {
    fn new(collection: &Collection, part: Option<(&'static str, String)>) -> Self {
        let schema = collection.ns.coll.strip_prefix(schemas::ENTRIES);
        let of = schema.map(|schema| Namespace::new(&*collection.ns.db, schema));
        Self {
            of: of.unwrap_or_else(|| collection.ns.clone()),
            uuid: collection.uuid,
            part,
        }
    }

    /// What is built in and has no collection.
    fn built_in(session: &SessionFacts, number: i64) -> Self {
        Self::numbered(&session.database, number)
    }

    /// What has no collection in a database.
    fn numbered(db: &str, number: i64) -> Self {
        Self {
            of: Namespace::new(db, comments::COLLECTION),
            uuid: comments::built_in(number),
            part: None,
        }
    }
}

/// COMMENT ON.
pub(super) fn comment(
    statement: &Statement<'_>,
    session: &SessionFacts,
    object: &Object<'_>,
    text: Option<&str>,
    progress: &mut Progress,
) -> Result<&'static str> {
    if let Object::Own("DATABASE", name, _) = object {
        let name = ident(name);
        let is_there = || statement.current_view().view().catalog().database(&name).is_some();
        if name != session.database && !is_there() {
            // As PostgreSQL, so that a dump goes on that is restored under another name.
            notices::warn("3D000", &format!("database \"{name}\" does not exist"));
            return Ok("COMMENT");
        }
    }
    statement.atomically(progress, |ws| {
        let Place { of, uuid, part } = place(statement, session, ws, object)?;
        session.check_right(&of, Right::CollMod)?;
        // An empty text is none, as with PostgreSQL.
        let text = text.filter(|text| !text.is_empty());
        comments::change(statement, ws, &of.db, uuid, |said| match (&part, text) {
            (None, Some(text)) => said.set("comment", text),
            (None, None) => drop(said.remove("comment")),
            (Some((kind, name)), text) => {
                let mut of_kind = match said.remove(kind) {
                    Some(Value::Document(of_kind)) => of_kind,
                    _ => Document::new(),
                };
                match text {
                    Some(text) => of_kind.set(name, text),
                    None => drop(of_kind.remove(name)),
                }
                if !of_kind.is_empty() {
                    said.set(kind, of_kind);
                }
            }
        })
    })?;
    Ok("COMMENT")
}

fn place(statement: &Statement<'_>, session: &SessionFacts, ws: &WriteSet, object: &Object<'_>) -> Result<Place> {
    match object {
        Object::Of(CommentObject::Column, name) => {
            let Some((ObjectNamePart::Identifier(column), table)) = name.0.split_last() else {
                return unsupported("a column of this form");
            };
            if table.is_empty() {
                return fail("42601", "column name must be qualified");
            }
            let ns = namespace_in(ws, session, &ObjectName(table.to_vec()))?;
            let collection = found(ws, &ns)?;
            let column = ident(column);
            let (op, _) = statement.operation(None)?;
            let shown = Reading::new(statement, ws, &op, session).table_at(&ns)?;
            if shown.is_none_or(|table| table.column(&column).is_none()) {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", ns.coll);
                return fail("42703", message);
            }
            Ok(Place::new(&collection, Some(("columns", column))))
        }
        Object::Of(CommentObject::Index, name) => {
            let (_, name) = object_name(name)?;
            let database = ws.catalog().database(&session.database).cloned();
            let mut all = database.iter().flat_map(|database| database.collections());
            let found = all.find_map(|collection| {
                let mut own = collection.indexes.iter();
                let index = own.find(|index| *index.name == *name || index_name(collection, index) == name)?;
                Some((collection.clone(), index.name.to_string()))
            });
            match found {
                Some((collection, name)) => Ok(Place::new(&collection, Some(("indexes", name)))),
                None => fail("42704", format!("index \"{name}\" does not exist")),
            }
        }
        Object::Of(CommentObject::Schema, name) => {
            let (_, name) = object_name(name)?;
            match ws.catalog().get(&schemas::entry(&session.database, &name)) {
                Some(collection) => Ok(Place::new(collection, None)),
                None if name == schemas::PUBLIC => Ok(Place::built_in(session, system::PUBLIC)),
                None if matches!(name.as_str(), "pg_catalog" | "information_schema") => {
                    unsupported(format!("COMMENT ON SCHEMA {name}"))
                }
                None => fail("3F000", format!("schema \"{name}\" does not exist")),
            }
        }
        Object::Of(CommentObject::Extension, name) => {
            let (_, name) = object_name(name)?;
            match system::EXTENSIONS.iter().find(|own| own.name == name) {
                Some(own) => Ok(Place::built_in(session, own.number())),
                None => fail("42704", format!("extension \"{name}\" does not exist")),
            }
        }
        Object::Own("DATABASE", name, _) => Ok(Place::numbered(&ident(name), comments::DATABASE)),
        Object::Own("ROLE", name, _) => {
            let user = super::roles::settings::user(ws, session, name)?;
            let place = Place::numbered(&user.db, comments::ROLES);
            Ok(Place {
                part: Some(("roles", user.user.to_string())),
                ..place
            })
        }
        Object::Own("CONSTRAINT", name, Some(domain)) => {
            let (schema, plain) = object_name(domain)?;
            let path = session.path();
            let all = schemas::candidates(ws, &session.database, &path, (schema.as_deref(), &plain));
            let mut all = all.iter().filter_map(|ns| ws.catalog().get(ns));
            let found = all.find_map(|own| match entry::type_of(own) {
                Some(Type::Domain(domain)) => Some((own, domain.clone())),
                _ => None,
            });
            let Some((collection, own)) = found else {
                return fail("42704", format!("type \"{plain}\" does not exist"));
            };
            let name = ident(name);
            match own.checks.iter().any(|check| check.name == name) {
                true => Ok(Place::new(collection, Some(("constraints", name)))),
                false => fail(
                    "42704",
                    format!("constraint \"{name}\" for domain {} does not exist", own.shown()),
                ),
            }
        }
        Object::Own(kind, name, table) => {
            let Some(table) = table else {
                return fail("XX000", "a part of nothing was said something about");
            };
            let ns = namespace_in(ws, session, table)?;
            let collection = found(ws, &ns)?;
            let name = ident(name);
            let declared = Declared::of_collection(&collection);
            let (part, is_there) = match *kind {
                "POLICY" => {
                    let own = declared.iter().flat_map(|declared| &declared.row_security.policies);
                    ("policies", own.into_iter().any(|own| own.name == name))
                }
                _ => {
                    let own = match &declared {
                        Some(declared) => declared.triggers.clone(),
                        None => entry::view_triggers(&collection)?,
                    };
                    ("triggers", own.iter().any(|own| own.name == name))
                }
            };
            match is_there {
                true => Ok(Place::new(&collection, Some((part, name)))),
                false => {
                    let kind = kind.to_lowercase();
                    fail(
                        "42704",
                        format!("{kind} \"{name}\" for table \"{}\" does not exist", ns.coll),
                    )
                }
            }
        }
        Object::Routine(kind, described) => {
            let entry = super::routines::entry_of(ws, session, (kind, described))?;
            Ok(Place::new(&*self::found(ws, &entry)?, None))
        }
        Object::Of(CommentObject::Type | CommentObject::Domain, name) => {
            let path = session.path();
            let (schema, plain) = object_name(name)?;
            let all = schemas::candidates(ws, &session.database, &path, (schema.as_deref(), &plain));
            let mut all = all.iter().filter_map(|ns| ws.catalog().get(ns));
            match all.find(|own| entry::type_of(own).is_some()) {
                Some(own) => Ok(Place::new(own, None)),
                None => fail("42704", format!("type \"{plain}\" does not exist")),
            }
        }
        Object::Of(kind, name) => {
            let ns = namespace_in(ws, session, name)?;
            let (wanted, is): (&str, fn(&Collection) -> bool) = match kind {
                CommentObject::Table => ("table", |c| Kind::of(c) == Some(Kind::Table)),
                CommentObject::View => ("view", |c| Kind::of(c) == Some(Kind::View)),
                CommentObject::MaterializedView => ("materialized view", |c| Kind::of(c) == Some(Kind::Materialized)),
                CommentObject::Sequence => ("sequence", |c| {
                    matches!(entry::of(c), Some(entry::Object::Sequence(..)))
                }),
                other => return unsupported(format!("COMMENT ON {other}")),
            };
            let collection = found(ws, &ns)?;
            if !is(&collection) {
                return fail("42809", format!("\"{}\" is not a {wanted}", ns.coll));
            }
            Ok(Place::new(&collection, None))
        }
        Object::Constraint(constraint, table) => {
            let ns = namespace_in(ws, session, table)?;
            let collection = found(ws, &ns)?;
            let constraint = ident(constraint);
            let names = Declared::of_collection(&collection).map(|declared| declared.constraint_names());
            if !names.is_some_and(|names| names.contains(&constraint)) {
                let message = format!("constraint \"{constraint}\" for table \"{}\" does not exist", ns.coll);
                return fail("42704", message);
            }
            Ok(Place::new(&collection, Some(("constraints", constraint))))
        }
    }
}

fn found(ws: &WriteSet, ns: &Namespace) -> Result<Arc<Collection>> {
    match ws.catalog().get(ns) {
        Some(collection) => Ok(collection.clone()),
        None => fail("42P01", format!("relation \"{}\" does not exist", ns.coll)),
    }
}
