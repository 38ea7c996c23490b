//! Conditions that a document must satisfy to be stored, beyond being BSON.

use nestor_model::{DocRef, Error, ErrorCode, RawDoc, Result, ValueRef, bail};

/// 52: a `$` name where none may be.
pub(crate) fn dollar_prefixed(name: &str) -> Error {
    Error::new(
        ErrorCode::DollarPrefixedFieldName,
        format!(
            "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's \
             replacement document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}

/// Checks the `_id` of a document about to be stored: not an array, regex or undefined (53,
/// InvalidIdField), no `$` names directly below it (52, DollarPrefixedFieldName).
pub fn check_id(id: ValueRef<'_>) -> Result<()> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex { .. } | ValueRef::Undefined => bail!(
            InvalidIdField,
            "The '_id' value cannot be of type {}",
            id.bson_type().alias()
        ),
        ValueRef::Document(doc) => match doc.iter().find(|(name, _)| name.starts_with('$')) {
            Some(_) if is_reference(doc) => Ok(()),
            Some((name, _)) => bail!(
                DollarPrefixedFieldName,
                "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
            ),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a document is a DBRef: `{$ref: <string>, $id: <any>}`, then maybe `$db: <string>`, then fields without `$`.
/// Source: manual, "Database References"; driver specification "DBRef".
fn is_reference(doc: DocRef<'_>) -> bool {
    let mut fields = doc.iter().peekable();
    let starts =
        matches!(fields.next(), Some(("$ref", ValueRef::String(_)))) && matches!(fields.next(), Some(("$id", _)));
    if let Some(("$db", ValueRef::String(_))) = fields.peek() {
        fields.next();
    }
    starts && fields.all(|(name, _)| !name.starts_with('$'))
}

/// Checks that a document that is stored anew has no `$` names at its top level, unless `insert`.
pub(crate) fn check_names(doc: RawDoc<'_>, insert: bool) -> Result<()> {
    if insert {
        return Ok(());
    }
    match DocRef::Raw(doc).iter().find(|(name, _)| name.starts_with('$')) {
        Some((name, _)) => Err(dollar_prefixed(name)),
        None => Ok(()),
    }
}

/// 66: `_id` would change.
pub(crate) fn immutable_id() -> Error {
    Error::new(
        ErrorCode::ImmutableField,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    )
}
