//! Why a document cannot be stored, as PostgreSQL says it.

use crate::catalog::Table;
use crate::error::{self, Field};
use nestor_model::{DocRef, Document, Error, ErrorCode, Value};
use nestor_storage::Collection;

/// The name of the constraint that a unique index is.
pub(super) fn constraint_name(table: &Table, index: &str) -> String {
    match index {
        "_id_" => table.key_name.clone(),
        name => name.to_owned(),
    }
}

/// 23502.
pub(super) fn null(column: &str, table: &str) -> Error {
    let message = format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint");
    let error = error::error("23502", message);
    error::with(error, &[(Field::Table, table), (Field::Column, column)])
}

/// 23514.
pub(super) fn check(constraint: &str, table: &str) -> Error {
    let message = format!("new row for relation \"{table}\" violates check constraint \"{constraint}\"");
    let error = error::error("23514", message);
    error::with(error, &[(Field::Table, table), (Field::Constraint, constraint)])
}

/// The error of a write to `table`, with the words of SQL.
pub(crate) fn told(error: Error, table: &Table, collection: &Collection) -> Error {
    match error.code() {
        ErrorCode::DuplicateKey => duplicate(&error, table, collection),
        ErrorCode::DocumentValidationFailure => error::with(
            error::error(
                "23514",
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}_check\"",
                    table.name, table.name
                ),
            ),
            &[(Field::Table, &table.name)],
        ),
        _ => error,
    }
}

/// The columns and values of a key that is there already.
fn key_of(error: &Error, table: &Table) -> String {
    let part = |name: &str| pattern_of(error, name);
    let names: Vec<String> = part("keyPattern")
        .iter()
        .map(|(path, _)| {
            let column = table.columns.iter().find(|column| column.path == path);
            column.map_or_else(|| path.to_owned(), |column| column.name.clone())
        })
        .collect();
    let shown: Vec<String> = part("keyValue")
        .iter()
        .map(|(_, value)| match value.to_value() {
            Value::Null => "null".to_owned(),
            value => crate::types::json::text(value.as_ref()),
        })
        .collect();
    format!("Key ({})=({})", names.join(", "), shown.join(", "))
}

fn pattern_of(error: &Error, name: &str) -> Document {
    match error.extra().and_then(|extra| extra.get(name)) {
        Some(value) => value.as_document().map(DocRef::to_document).unwrap_or_default(),
        None => Document::new(),
    }
}

fn duplicate(error: &Error, table: &Table, collection: &Collection) -> Error {
    let pattern = pattern_of(error, "keyPattern");
    let index = collection
        .indexes
        .iter()
        .find(|index| nestor_model::values_equal(&index.key_pattern, &pattern));
    let name = constraint_name(table, index.map_or("_id_", |index| index.name.as_str()));
    let detail = format!("{} already exists.", key_of(error, table));
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    let told = error::error("23505", message);
    error::with(
        told,
        &[
            (Field::Detail, &detail),
            (Field::Table, &table.name),
            (Field::Constraint, &name),
        ],
    )
}

/// The error of making the unique index `name` of rows of `table` that are there.
pub(crate) fn duplicated(error: Error, table: &Table, name: &str) -> Error {
    if error.code() != ErrorCode::DuplicateKey {
        return error;
    }
    let detail = format!("{} is duplicated.", key_of(&error, table));
    let told = error::error("23505", format!("could not create unique index \"{name}\""));
    error::with(
        told,
        &[
            (Field::Detail, &detail),
            (Field::Table, &table.name),
            (Field::Constraint, name),
        ],
    )
}
