//! Why a document cannot be stored, as PostgreSQL says it.

use crate::catalog::Table;
use crate::error::{self, Field};
use crate::run::reader::whole_row;
use crate::types::output;
use nestor_model::{DocRef, Document, Error, ErrorCode, Value};
use nestor_storage::Collection;

/// The name of the constraint that a unique index is.
pub(super) fn constraint_name(table: &Table, index: &str) -> String {
    match index {
        "_id_" => table.key_name.clone(),
        name => name.to_owned(),
    }
}

/// 23502, of the row that a document is.
pub(super) fn null(column: &str, table: &Table, doc: Option<DocRef<'_>>) -> Error {
    let message = format!(
        "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
        table.name
    );
    let error = error::with(
        error::error("23502", message),
        &[
            (Field::Schema, &table.schema),
            (Field::Table, &table.name),
            (Field::Column, column),
        ],
    );
    with_row(error, table, doc)
}

/// 23514, of the row that a document is.
pub(super) fn check(constraint: &str, table: &Table, doc: Option<DocRef<'_>>) -> Error {
    let message = format!(
        "new row for relation \"{}\" violates check constraint \"{constraint}\"",
        table.name
    );
    let fields = [
        (Field::Schema, table.schema.as_str()),
        (Field::Table, table.name.as_str()),
        (Field::Constraint, constraint),
    ];
    with_row(error::with(error::error("23514", message), &fields), table, doc)
}

/// 23514, of the row that a document is, which does not belong to a partition.
pub(super) fn bound(table: &Table, doc: Option<DocRef<'_>>) -> Error {
    let message = format!("new row for relation \"{}\" violates partition constraint", table.name);
    let told = error::with(
        error::error("23514", message),
        &[(Field::Schema, &table.schema), (Field::Table, &table.name)],
    );
    with_row(told, table, doc)
}

/// Bytes of a value that a detail shows.
const SHOWN_BYTES_MAX: usize = 64;

/// An error with the values of the row that it is about. Who writes a row sees all of it: changes of documents with masked fields are refused before.
fn with_row(error: Error, table: &Table, doc: Option<DocRef<'_>>) -> Error {
    let row = doc.and_then(|doc| whole_row(table, doc).ok());
    let Some(row) = row else { return error };
    let shown: Vec<String> = table
        .columns
        .iter()
        .zip(&row)
        .map(|(column, value)| match value {
            Value::Null => "null".to_owned(),
            value => clipped(output::text(&column.ty, value)),
        })
        .collect();
    let detail = format!("Failing row contains ({}).", shown.join(", "));
    error::with(error, &[(Field::Detail, &detail)])
}

/// The beginning of a long text, with dots behind it.
fn clipped(text: String) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    let end = (0..=SHOWN_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
    format!("{}...", &text[..end.unwrap_or(0)])
}

/// The error of a write to `table`, with the words of SQL; it `shows` the values of keys.
pub(crate) fn told(error: Error, (table, shows): (&Table, bool), collection: &Collection) -> Error {
    match error.code() {
        ErrorCode::DuplicateKey => duplicate(&error, (table, shows), collection),
        ErrorCode::DocumentValidationFailure => error::with(
            error::error(
                "23514",
                format!(
                    "new row for relation \"{}\" violates check constraint \"{}_check\"",
                    table.name, table.name
                ),
            ),
            &[(Field::Schema, &table.schema), (Field::Table, &table.name)],
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
        .map(|(path, value)| match value.to_value() {
            Value::Null => "null".to_owned(),
            value => {
                let column = table.columns.iter().find(|column| column.path == path);
                let read = column.and_then(|column| Some((column, column.read(value.as_ref()).ok()?)));
                match read {
                    Some((column, value)) => output::text(&column.ty, &value),
                    None => crate::types::json::text(value.as_ref()),
                }
            }
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

fn duplicate(error: &Error, (table, shows): (&Table, bool), collection: &Collection) -> Error {
    // Several indexes may have the key, and all but one be partial or not unique: the message names the one.
    let (pattern, message) = (pattern_of(error, "keyPattern"), error.to_string());
    let index = collection.indexes.iter().find(|index| {
        let named = format!(" index: {} ", index.name);
        let after = message.split_once(&named).map(|(_, after)| after);
        let is_named = || after.is_some_and(|after| after.starts_with("dup key: ") || after.starts_with("collation: "));
        nestor_model::values_equal(&index.key_pattern, &pattern) && is_named()
    });
    let name = constraint_name(table, index.map_or("_id_", |index| index.name.as_str()));
    let detail = format!("{} already exists.", key_of(error, table));
    let message = format!("duplicate key value violates unique constraint \"{name}\"");
    let told = error::error("23505", message);
    let told = match shows {
        true => error::with(told, &[(Field::Detail, &detail)]),
        false => told,
    };
    error::with(
        told,
        &[
            (Field::Schema, &table.schema),
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
            (Field::Schema, &table.schema),
            (Field::Table, &table.name),
            (Field::Constraint, name),
        ],
    )
}
