//! Index specifications: what a client writes, checked and completed to what the catalog keeps.

use crate::args::safe_i64;
use nestor_model::{DocRef, Document, Error, RawDoc, RawDocBuf, Result, ValueRef, bail, doc, values_equal};
use nestor_planner::wildcard::Wildcard;
use nestor_query::collation::Collation;
use nestor_query::env::Scope;
use nestor_query::keys::KEY_FIELDS_MAX;
use nestor_query::matcher::MatchExpr;
use nestor_storage::catalog::is_wildcard_path;
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// The locale of no collation.
const SIMPLE: &str = "simple";

/// Checks one element of `createIndexes.indexes`. What it says of collations is for [`inherit`] to settle.
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
                check_partial(&MatchExpr::parse(filter, &mut Scope::new())?)?;
                out.push(option, filter.to_document());
            }
            "collation" => match value {
                ValueRef::Document(collation) if collation.is_empty() => {
                    bail!(BadValue, "The field 'collation' cannot be an empty object")
                }
                // Simple is written down until it is known what would be inherited: see `inherit`.
                ValueRef::Document(collation) => out.push(
                    option,
                    match Collation::parse(collation)? {
                        Some(collation) => collation.to_document(),
                        None => doc! { "locale": SIMPLE },
                    },
                ),
                other => bail!(
                    TypeMismatch,
                    "The field 'collation' must be an object, but got {}",
                    other.bson_type().alias()
                ),
            },
            "wildcardProjection" => match value {
                ValueRef::Document(projection) => {
                    check_wildcard_projection(key, projection)?;
                    out.push(option, projection.to_document());
                }
                other => bail!(
                    TypeMismatch,
                    "The field 'wildcardProjection' must be an object, but got {}",
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
            | "columnstoreProjection" => bail!(CannotCreateIndex, "the index option '{option}' is not supported"),
            other => bail!(
                InvalidIndexSpecificationOption,
                "The field '{other}' is not valid for an index specification. Specification: {spec:?}"
            ),
        }
    }
    let first_version = spec.get("v").and_then(safe_i64) == Some(1);
    let simple = |collation: DocRef<'_>| collation.get("locale").and_then(ValueRef::as_str) == Some(SIMPLE);
    if first_version
        && out
            .get("collation")
            .and_then(ValueRef::as_document)
            .is_some_and(|c| !simple(c))
    {
        bail!(
            CannotCreateIndex,
            "Invalid index specification {spec:?}; cannot create an index with the 'collation' option and v=1"
        );
    }
    check_together(&out, key)?;
    let is_id = is_id_key(key);
    if is_id {
        // The index on _id is as it is.
        let foreign = spec
            .iter()
            .find(|(option, _)| !matches!(*option, "key" | "name" | "ns" | "v" | "collation"));
        if let Some((option, _)) = foreign {
            bail!(
                InvalidIndexSpecificationOption,
                "The field '{option}' is not valid for an _id index specification. Specification: {spec:?}"
            );
        }
    }
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

/// Settles the collation of an index of `collection`: without one in the specification it has that of the collection, and
/// simple is not written down.
///
/// Error: 2 when that of the index on `_id` is not the collection's.
pub fn inherit(spec: RawDocBuf, collection: &Collection) -> Result<RawDocBuf> {
    let mut out = Document::from(spec);
    let default = collection.options.collation.as_ref().map(Document::as_ref);
    let given = match out.get("collation") {
        None => default.map(DocRef::to_document),
        Some(ValueRef::Document(given)) if given.get("locale").and_then(ValueRef::as_str) == Some(SIMPLE) => None,
        Some(ValueRef::Document(given)) => Some(given.to_document()),
        Some(_) => None,
    };
    let same = |a: Option<DocRef<'_>>, b: Option<DocRef<'_>>| match (a, b) {
        (Some(a), Some(b)) => values_equal(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    if out.get("key").and_then(ValueRef::as_document).is_some_and(is_id_key)
        && !same(given.as_ref().map(Document::as_ref), default)
    {
        bail!(
            BadValue,
            "The _id index must have the same collation as the collection. Index collation: {given:?}, collection collation: {default:?}"
        );
    }
    match given {
        Some(collation) => out.set("collation", collation),
        None => {
            out.remove("collation");
        }
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

/// Seconds until expiry: the whole part of any number, as 32 bits.
fn expire(value: ValueRef<'_>) -> Result<i32> {
    if !value.is_number() {
        bail!(
            CannotCreateIndex,
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of {}",
            value.bson_type().alias()
        );
    }
    let secs = match value {
        ValueRef::Double(v) if v.is_nan() => i64::from(i32::MAX),
        ValueRef::Double(v) => v as i64,
        ValueRef::Decimal128(v) if v.is_nan() => i64::from(i32::MAX),
        ValueRef::Decimal128(v) => v.to_i64_truncated().unwrap_or(-1),
        other => safe_i64(other).unwrap_or(-1),
    };
    match i32::try_from(secs) {
        Ok(secs) if secs >= 0 => Ok(secs),
        _ => bail!(
            CannotCreateIndex,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range: {secs}"
        ),
    }
}

/// Refuses what a partial index cannot be about: all but comparisons, `$in`, `$exists: true`, `$type`, `$and`, `$or`.
fn check_partial(filter: &MatchExpr) -> Result<()> {
    use nestor_query::matcher::Predicate;
    let fits = match filter {
        MatchExpr::AlwaysTrue => true,
        MatchExpr::And(all) | MatchExpr::Or(all) => return all.iter().try_for_each(check_partial),
        // `$in: []`.
        MatchExpr::AlwaysFalse => true,
        MatchExpr::Leaf(leaf) => match &leaf.predicate {
            Predicate::Compare { .. } | Predicate::Exists | Predicate::Type(_) => true,
            Predicate::In(set) => set.regexes().is_empty(),
            _ => false,
        },
        _ => false,
    };
    if !fits {
        bail!(
            CannotCreateIndex,
            "Expression not supported in partial index: {:?}",
            filter.serialize()
        );
    }
    Ok(())
}

/// Checks that options and kinds of parts go together.
///
/// Errors: 16764 for a unique hashed index, 31303 for several hashed parts, 67.
fn check_together(out: &Document, key: DocRef<'_>) -> Result<()> {
    let hashed = key
        .iter()
        .filter(|(_, kind)| matches!(kind, ValueRef::String("hashed")))
        .count();
    if hashed > 1 {
        bail!(
            31303,
            "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {key:?}"
        );
    }
    if hashed == 1 && out.get("unique").is_some_and(ValueRef::truthy) {
        bail!(
            16764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index."
        );
    }
    let wildcards = key.iter().filter(|(path, _)| is_wildcard_path(path)).count();
    if wildcards > 0 {
        check_wildcard(out, key, wildcards)?;
    }
    if out.get("expireAfterSeconds").is_some() && key.iter().count() > 1 {
        bail!(
            CannotCreateIndex,
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {out:?}"
        );
    }
    Ok(())
}

/// Checks what goes together with a wildcard.
fn check_wildcard(out: &Document, key: DocRef<'_>, wildcards: usize) -> Result<()> {
    if wildcards > 1 {
        bail!(CannotCreateIndex, "an index may have one wildcard only: {key:?}");
    }
    for option in ["unique", "sparse", "expireAfterSeconds", "prepareUnique"] {
        if out.get(option).is_some() {
            bail!(
                CannotCreateIndex,
                "Index type 'wildcard' does not support the '{option}' option"
            );
        }
    }
    if key.iter().any(|(_, kind)| matches!(kind, ValueRef::String(_))) {
        bail!(
            CannotCreateIndex,
            "wildcard indexes do not allow parts of other types: {key:?}"
        );
    }
    let projection = out.get("wildcardProjection").and_then(ValueRef::as_document);
    let compound = key.iter().count() > 1;
    if compound && projection.is_none() && key.get("$**").is_some() {
        bail!(
            CannotCreateIndex,
            "Compound wildcard indexes over all fields need a wildcardProjection that leaves out the other fields: {key:?}"
        );
    }
    let Some(wildcard) = Wildcard::of(key, projection) else {
        return Ok(());
    };
    let shared = key
        .iter()
        .find(|(path, _)| !is_wildcard_path(path) && wildcard.covers(path));
    if let Some((path, _)) = shared {
        bail!(
            CannotCreateIndex,
            "The field '{path}' of a compound wildcard index must not be among those of the wildcard"
        );
    }
    Ok(())
}

/// Checks a `wildcardProjection`.
///
/// Errors: 2 without a wildcard over all fields in the key (9 for one below a path), 67, and 31253 or 31254 when it
/// both keeps and leaves out fields.
fn check_wildcard_projection(key: DocRef<'_>, projection: DocRef<'_>) -> Result<()> {
    if key.get("$**").is_none() {
        if key.iter().any(|(path, _)| is_wildcard_path(path)) {
            bail!(
                FailedToParse,
                "The field 'wildcardProjection' is only allowed when the wildcard is over all fields ('$**')"
            );
        }
        bail!(
            BadValue,
            "The field 'wildcardProjection' is only allowed in a wildcard index"
        );
    }
    if projection.is_empty() {
        bail!(
            CannotCreateIndex,
            "The 'wildcardProjection' field can't be an empty object"
        );
    }
    let mut keeps = None;
    check_projected("", projection, &mut keeps, 0)
}

fn check_projected(prefix: &str, projection: DocRef<'_>, keeps: &mut Option<bool>, depth: usize) -> Result<()> {
    for (name, value) in projection.iter() {
        let path = format!("{prefix}{name}");
        match value {
            ValueRef::Document(inner) if depth < 100 && !inner.is_empty() => {
                check_projected(&format!("{path}."), inner, keeps, depth + 1)?;
            }
            ValueRef::Bool(_) => {}
            number if number.is_number() => {}
            _ => bail!(
                CannotCreateIndex,
                "'wildcardProjection' keeps or leaves out fields: {path} has another value"
            ),
        }
        if path == "_id" || matches!(value, ValueRef::Document(_)) {
            continue;
        }
        match *keeps {
            None => *keeps = Some(value.truthy()),
            Some(true) if !value.truthy() => {
                bail!(31254, "Cannot do exclusion on field {path} in inclusion projection")
            }
            Some(false) if value.truthy() => {
                bail!(31253, "Cannot do inclusion on field {path} in exclusion projection")
            }
            Some(_) => {}
        }
    }
    Ok(())
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
    if let (1, Some(("_id", direction))) = (key.iter().count(), key.iter().next()) {
        if direction.is_number() && safe_i64(direction) == Some(-1) {
            bail!(
                BadValue,
                "The field 'key' for an _id index must be {{_id: 1}}, but got {key:?}"
            );
        }
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
                if plugin == "hashed" && !is_wildcard_path(path) {
                    continue;
                }
                if plugin == "wildcard" {
                    bail!(
                        7246202,
                        "Index type 'wildcard' is not a type that a key part can have: {path}"
                    );
                }
                let known = matches!(plugin, "text" | "2d" | "2dsphere" | "geoHaystack");
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
        if path.split('.').any(|part| part == "$**") && !is_wildcard_path(path) {
            return bad(format!("a wildcard must be the end of its path: {path}"));
        }
    }
    Ok(())
}

/// The index of a collection, built or being built, that is like this one.
///
/// Errors: 85 for the same key with other options or under another name, 86 for the same name with another key.
pub fn find<'c>(collection: &'c Collection, spec: &RawDocBuf) -> Result<Option<&'c Arc<Index>>> {
    let doc = DocRef::Raw(spec.as_raw());
    let name = doc.get("name").and_then(ValueRef::as_str).unwrap_or_default();
    let key = doc.get("key").unwrap_or(ValueRef::Null);
    let same_key = |index: &Index| same_pattern(ValueRef::Document(index.key_pattern.as_ref()), key);
    let same = |index: &Index| same_key(index) && same_identity(index, doc);
    if let Some(index) = collection.all_indexes().find(|index| index.name == name) {
        if !same(index) {
            return Err(conflict(
                86,
                "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.",
                spec,
                index,
            ));
        }
        if same_options(index, doc) {
            return Ok(Some(index));
        }
        return Err(conflict(
            85,
            "An equivalent index already exists with the same name but different options.",
            spec,
            index,
        ));
    }
    match collection.all_indexes().find(|index| same(index)) {
        Some(index) if same_options(index, doc) => {
            Err(conflict(85, "Index already exists with a different name", spec, index))
        }
        Some(index) => Err(conflict(
            85,
            "An equivalent index already exists with a different name and options.",
            spec,
            index,
        )),
        None => Ok(None),
    }
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

/// Whether the options agree by which indexes with one key pattern are told apart.
fn same_identity(index: &Index, doc: DocRef<'_>) -> bool {
    let flag = |name: &str| doc.get(name).is_some_and(ValueRef::truthy);
    (index.unique == flag("unique") || index.is_id())
        && index.sparse == flag("sparse")
        && same_filter(index, doc)
        && match (&index.collation, doc.get("collation")) {
            (None, None) => true,
            (Some(a), Some(b)) => values_equal(ValueRef::Document(a.as_ref()), b),
            _ => false,
        }
        && match (
            index.spec.as_raw().get("wildcardProjection"),
            doc.get("wildcardProjection"),
        ) {
            (None, None) => true,
            (Some(a), Some(b)) => values_equal(a, b),
            _ => false,
        }
}

/// Whether the other options agree; being hidden is a state, not an option.
fn same_options(index: &Index, doc: DocRef<'_>) -> bool {
    index.expire_after_secs == doc.get("expireAfterSeconds").and_then(safe_i64)
}
