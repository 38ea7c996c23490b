//! Why a document cannot be stored, as PostgreSQL says it.

use crate::catalog::Table;
use crate::error::{self, Field};
use nestor_model::{DocRef, Document, Error, ErrorCode, Value};
use nestor_storage::Collection;

/// The name of the constraint that a unique index is.
pub(super) fn constraint_name(table: &Table, index: &str) -> String {
    match index {
        "_id_" => format!("{}_pkey", table.name),
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

fn duplicate(error: &Error, table: &Table, collection: &Collection) -> Error {
    let part = |name: &str| match error.extra().and_then(|extra| extra.get(name)) {
        Some(value) => value.as_document().map(DocRef::to_document).unwrap_or_default(),
        None => Document::new(),
    };
    let (pattern, values) = (part("keyPattern"), part("keyValue"));
    let index = collection
        .indexes
        .iter()
        .find(|index| nestor_model::values_equal(&index.key_pattern, &pattern));
    let name = constraint_name(table, index.map_or("_id_", |index| index.name.as_str()));
    let names: Vec<String> = pattern
        .iter()
        .map(|(path, _)| {
            let column = table.columns.iter().find(|column| column.path == path);
            column.map_or_else(|| path.to_owned(), |column| column.name.clone())
        })
        .collect();
    let shown: Vec<String> = values
        .iter()
        .map(|(_, value)| match value.to_value() {
            Value::Null => "null".to_owned(),
            value => crate::types::json::text(value.as_ref()),
        })
        .collect();
    let detail = format!("Key ({})=({}) already exists.", names.join(", "), shown.join(", "));
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
