//! Values of keywords.

use crate::types::TypeSet;
use nestor_model::{DocRef, Error, Result, Str, ValueRef, bail};

/// The error 14 of a keyword with a value of another kind.
pub(super) fn wrong(keyword: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    let found = value.bson_type().alias();
    Error::type_mismatch(format!(
        "$jsonSchema keyword '{keyword}' must be {wanted}, but found {found}"
    ))
}

/// A text. Errors: 14.
pub(super) fn string(keyword: &str, value: ValueRef<'_>) -> Result<Str> {
    value
        .as_str()
        .map(Str::from)
        .ok_or_else(|| wrong(keyword, "a string", value))
}

/// A document. Errors: 14.
pub(super) fn object<'a>(keyword: &str, value: ValueRef<'a>) -> Result<DocRef<'a>> {
    value.as_document().ok_or_else(|| wrong(keyword, "an object", value))
}

/// One type or an array of them. Errors: 14; 2 for unknown names; 9 for `integer` and for none.
pub(super) fn types(keyword: &str, value: ValueRef<'_>, by_name: impl Fn(&str) -> Option<TypeSet>) -> Result<TypeSet> {
    let one = |value: ValueRef<'_>| -> Result<TypeSet> {
        let name = value
            .as_str()
            .ok_or_else(|| wrong(keyword, "a string or an array of strings", value))?;
        if name == "integer" {
            bail!(FailedToParse, "$jsonSchema type 'integer' is not currently supported");
        }
        by_name(name).ok_or_else(|| Error::bad_value(format!("unknown type name alias: {name}")))
    };
    let ValueRef::Array(items) = value else {
        return one(value);
    };
    let mut set = TypeSet::default();
    let mut seen = Vec::new();
    for item in items {
        set.extend(one(item)?);
        if seen.contains(&item.as_str()) {
            bail!(
                FailedToParse,
                "$jsonSchema keyword '{keyword}' has duplicate value {item:?}"
            );
        }
        seen.push(item.as_str());
    }
    if set.is_empty() {
        bail!(
            FailedToParse,
            "$jsonSchema keyword '{keyword}' must name at least one type"
        );
    }
    Ok(set)
}
