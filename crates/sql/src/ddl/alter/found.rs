//! The table that is altered.

use crate::bind::declared::{Declared, name_in_schema};
use crate::bind::entry;
use crate::error::{self, error, fail, unsupported};
use nestor_model::{Error, Namespace, Result};
use nestor_storage::{Collection, View};
use sqlparser::ast::{CreateTable, Statement as Ast};
use std::sync::Arc;

/// 2BP01: something goes that something else depends on.
pub(super) fn depends(what: &str, detail: &str) -> Error {
    let message = format!("cannot drop {what} because other objects depend on it");
    error::with(error("2BP01", message), &[(error::Field::Detail, detail)])
}

/// A declared table, and the statement that declares it with every constraint by its name.
pub(in crate::ddl) struct Found {
    pub(in crate::ddl) collection: Arc<Collection>,
    pub(in crate::ddl) declared: Arc<Declared>,
    pub(in crate::ddl) create: CreateTable,
    /// Its name in its schema.
    pub(in crate::ddl) name: String,
}

/// The declared table at a namespace; `None` when there is nothing.
///
/// Errors: 42809 for what is no table, 0A000 for a collection whose columns were not declared.
pub(in crate::ddl) fn found(ws: &dyn View, ns: &Namespace) -> Result<Option<Found>> {
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        return Ok(None);
    };
    let Some(declared) = Declared::of_collection(&collection) else {
        return match collection.is_view() || entry::of(&collection).is_some() {
            true => fail("42809", format!("\"{}\" is not a table", ns.coll)),
            false => unsupported("to alter the columns of a collection that was not declared as a table"),
        };
    };
    let text = entry::text(&collection).unwrap_or_default();
    match crate::parse::parse(&text)?.into_iter().next() {
        Some(Ast::CreateTable(create)) => Ok(Some(Found {
            name: name_in_schema(&create.name, &ns.coll).1.to_owned(),
            create: Declared::of(&create, name_in_schema(&create.name, &ns.coll).1)?.named(&create),
            collection,
            declared,
        })),
        _ => fail("XX000", "a table is declared by no CREATE TABLE"),
    }
}
