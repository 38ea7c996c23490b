//! Index specifications: what a client writes, checked and completed to what the catalog keeps.

use crate::args::safe_i64;
use nestor_model::{DocRef, Document, Error, RawDoc, RawDocBuf, Result, ValueRef, bail, values_equal};
use nestor_query::env::Scope;
use nestor_query::keys::KEY_FIELDS_MAX;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// Checks one element of `createIndexes.indexes`.
///
/// Errors: 9 for missing or mistyped parts, 67 for impossible keys, 197 for unknown options, 72.
pub fn parse(spec: RawDoc<'_>) -> Result<RawDocBuf> {
    let key = match spec.get("key") {
        Some(ValueRef::Document(key)) => key,
        Some(other) => bail!(
            TypeMismatch,
            "The field 'key' must be an object, but got {}",
            other.bson_type().alias()
        ),
        None => bail!(
            FailedToParse,
            "The 'key' field is a required property of an index specification"
        ),
    };
    let name = match spec.get("name") {
        Some(ValueRef::String(name)) => name,
        Some(other) => bail!(
            TypeMismatch,
            "The field 'name' must be a string, but got {}",
            other.bson_type().alias()
        ),
        None => bail!(
            FailedToParse,
            "The 'name' field is a required property of an index specification"
        ),
    };
    check_name(name)?;
    check_key(key)?;
    let mut out = Document::new();
    out.push("v", 2);
    out.push("key", key.to_document());
    out.push("name", name);
    let mut seen: Vec<&str> = Vec::new();
    for (option, value) in spec.iter() {
        if seen.contains(&option) {
            bail!(BadValue, "duplicate field '{option}' in index specification");
        }
        seen.push(option);
        match option {
            "key" | "name" | "ns" | "background" | "dropDups" => {}
            "v" => check_version(value)?,
            "unique" | "sparse" | "hidden" | "prepareUnique" => {
                if flag(option, value)? {
                    out.push(option, true);
                }
            }
            "expireAfterSeconds" => out.push(option, expire(value)?),
            "partialFilterExpression" => {
                let ValueRef::Document(filter) = value else {
                    bail!(
                        TypeMismatch,
                        "The field 'partialFilterExpression' must be an object, but got {}",
                        value.bson_type().alias()
                    );
                };
                MatchExpr::parse(filter, &mut Scope::new())?;
                out.push(option, filter.to_document());
            }
            "collation" => match value {
                ValueRef::Document(DocRef::Raw(collation)) => crate::read::refuse_collation(Some(collation))?,
                other => bail!(
                    TypeMismatch,
                    "The field 'collation' must be an object, but got {}",
                    other.bson_type().alias()
                ),
            },
            "storageEngine" => match value {
                ValueRef::Document(_) => {}
                other => bail!(
                    TypeMismatch,
                    "The field 'storageEngine' must be an object, but got {}",
                    other.bson_type().alias()
                ),
            },
            "clustered" => bail!(InvalidOptions, "a clustered index can only be made with the collection"),
            "weights"
            | "default_language"
            | "language_override"
            | "textIndexVersion"
            | "2dsphereIndexVersion"
            | "bits"
            | "min"
            | "max"
            | "bucketSize"
            | "wildcardProjection"
            | "columnstoreProjection" => bail!(CannotCreateIndex, "the index option '{option}' is not supported"),
            other => bail!(
                InvalidIndexSpecificationOption,
                "The field '{other}' is not valid for an index specification. Specification: {spec:?}"
            ),
        }
    }
    let is_id = is_id_key(key);
    if is_id && name != "_id_" {
        out.set("name", "_id_");
    }
    if !is_id && name == "_id_" {
        bail!(
            BadValue,
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}"
        );
    }
    if out.get("sparse").is_some() && out.get("partialFilterExpression").is_some() {
        bail!(
            CannotCreateIndex,
            "cannot mix \"partialFilterExpression\" and \"sparse\" options"
        );
    }
    Ok(out.to_raw())
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        bail!(CannotCreateIndex, "index name cannot be empty");
    }
    if name == "*" {
        bail!(BadValue, "The index name '*' is not valid.");
    }
    if name.contains('\0') {
        bail!(CannotCreateIndex, "index name cannot contain NUL bytes");
    }
    Ok(())
}

fn check_version(value: ValueRef<'_>) -> Result<()> {
    match safe_i64(value) {
        Some(1 | 2) => Ok(()),
        Some(v) => bail!(
            CannotCreateIndex,
            "Invalid index specification; cannot create an index with v={v}"
        ),
        None => bail!(
            TypeMismatch,
            "The field 'v' must be a number, but got {}",
            value.bson_type().alias()
        ),
    }
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(v) => Ok(v),
        number if number.is_number() => Ok(number.truthy()),
        other => bail!(
            TypeMismatch,
            "The field '{name}' has value {name}: {other:?}, which is not convertible to bool"
        ),
    }
}

fn expire(value: ValueRef<'_>) -> Result<i64> {
    let Some(secs) = safe_i64(value) else {
        bail!(
            TypeMismatch,
            "The field 'expireAfterSeconds' must be a number, but got {}",
            value.bson_type().alias()
        );
    };
    if !(0..=i64::from(i32::MAX)).contains(&secs) {
        bail!(
            CannotCreateIndex,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range: {secs}"
        );
    }
    Ok(secs)
}

fn is_id_key(key: DocRef<'_>) -> bool {
    let mut parts = key.iter();
    matches!(parts.next(), Some(("_id", v)) if safe_i64(v) == Some(1)) && parts.next().is_none()
}

/// Checks a key pattern.
fn check_key(key: DocRef<'_>) -> Result<()> {
    let bad = |message: String| Err(Error::new(nestor_model::ErrorCode::CannotCreateIndex, message));
    if key.is_empty() {
        return bad("Index keys cannot be empty.".into());
    }
    if key.iter().count() > KEY_FIELDS_MAX {
        bail!(13103, "too many compound keys");
    }
    let mut seen: Vec<&str> = Vec::new();
    for (path, direction) in key.iter() {
        if seen.contains(&path) {
            return bad(format!("Index keys cannot have duplicate fields: {path}"));
        }
        seen.push(path);
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return bad(format!("Index keys cannot be an empty field: '{path}'"));
        }
        if path
            .split('.')
            .any(|part| part.starts_with('$') && !matches!(part, "$ref" | "$id" | "$db" | "$**"))
        {
            return bad(format!(
                "Index key contains an illegal field name: field name starts with '$': '{path}'"
            ));
        }
        match direction {
            ValueRef::String(plugin) => {
                let known = matches!(plugin, "text" | "2d" | "2dsphere" | "hashed" | "geoHaystack");
                return bad(if known {
                    format!("indexes of type '{plugin}' are not supported")
                } else {
                    format!("Unknown index plugin '{plugin}'")
                });
            }
            ValueRef::Double(v) if v == 0.0 || v.is_nan() => {
                return bad(format!("Values in the index key pattern cannot be 0: {path}"));
            }
            number if number.is_number() => {
                if !number.truthy() {
                    return bad(format!("Values in the index key pattern cannot be 0: {path}"));
                }
            }
            other => {
                return bad(format!(
                    "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                    other.bson_type().alias()
                ));
            }
        }
        if path.split('.').any(|part| part == "$**") {
            return bad("wildcard indexes are not supported".into());
        }
    }
    Ok(())
}

/// Whether a collection has an index like this one already.
///
/// Errors: 85 for the same key with other options or under another name, 86 for the same name with another key.
pub fn exists(collection: &Collection, spec: &RawDocBuf) -> Result<bool> {
    let doc = DocRef::Raw(spec.as_raw());
    let name = doc.get("name").and_then(ValueRef::as_str).unwrap_or_default();
    let key = doc.get("key").unwrap_or(ValueRef::Null);
    let same_key = |index: &Index| same_pattern(ValueRef::Document(index.key_pattern.as_ref()), key);
    if let Some(index) = collection.index(name) {
        if same_key(index) {
            if same_options(index, doc) {
                return Ok(true);
            }
            return Err(conflict(
                86,
                "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.",
                spec,
                index,
            ));
        }
        return Err(conflict(
            86,
            "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.",
            spec,
            index,
        ));
    }
    for index in &collection.indexes {
        if !same_key(index) || !same_filter(index, doc) {
            continue;
        }
        if index.unique == doc.get("unique").is_some_and(ValueRef::truthy)
            && index.sparse == doc.get("sparse").is_some_and(ValueRef::truthy)
        {
            return Err(conflict(85, "Index already exists with a different name", spec, index));
        }
        return Err(conflict(
            85,
            "An equivalent index already exists with the same key but different options",
            spec,
            index,
        ));
    }
    Ok(false)
}

fn conflict(code: i32, message: &str, requested: &RawDocBuf, existing: &Arc<Index>) -> Error {
    Error::location(
        code,
        format!(
            "{message} Requested index: {requested:?}, existing index: {:?}",
            existing.spec
        ),
    )
}

/// Same fields in the same order with equal directions.
fn same_pattern(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    values_equal(a, b)
}

fn same_filter(index: &Index, doc: DocRef<'_>) -> bool {
    match (&index.partial_filter, doc.get("partialFilterExpression")) {
        (None, None) => true,
        (Some(a), Some(b)) => values_equal(ValueRef::Document(a.as_ref()), b),
        _ => false,
    }
}

fn same_options(index: &Index, doc: DocRef<'_>) -> bool {
    let flag = |name: &str| doc.get(name).is_some_and(ValueRef::truthy);
    (index.unique == flag("unique") || index.is_id())
        && index.sparse == flag("sparse")
        && index.expire_after_secs == doc.get("expireAfterSeconds").and_then(safe_i64)
        && same_filter(index, doc)
}
