//! Index specifications: what a client writes, checked and completed to what the catalog keeps.
//!
//! What is true of all indexes is here; what belongs to one kind of index is in its folder of [`nestor_planner::kinds`].

use crate::commands::collections::options;
use nestor_model::number::safe_i64;
use nestor_model::{
    DocRef, Document, Error, IndexSpec, RawDoc, RawDocBuf, RawWriter, Result, Value, ValueRef, bail, doc, index_spec,
    values_equal,
};
use nestor_planner::kinds::{self, KindDef};
use nestor_query::collation::Collation;
use nestor_query::env::Scope;
use nestor_query::keys::KEY_FIELDS_MAX;
use nestor_query::matcher::{Context, MatchExpr};
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// The locale of no collation.
const SIMPLE: &str = "simple";

/// The version of indexes that do not say which.
const NEWEST: i32 = 2;

/// The options that the index on `_id` may be given, which say what it is anyway.
const ID_OPTIONS: &[&str] = &["key", "name", "ns", "v", "collation"];

/// Checks one element of `createIndexes.indexes`. What it says of collations is for [`inherit`] to settle.
///
/// Errors: 9 for missing or mistyped parts, 67 for impossible keys, 197 for unknown options, 72, and those of the kind.
pub fn parse(spec: RawDoc<'_>) -> Result<IndexSpec> {
    let (key, name) = required(spec)?;
    check_name(name)?;
    check_key(key)?;
    let is_id = is_id_key(key);
    if !is_id && name == "_id_" {
        bail!(
            BadValue,
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}"
        );
    }
    let name = if is_id { "_id_" } else { name };
    let version = spec.get("v").map_or(Ok(NEWEST), version)?;
    let mut out = doc! { "v": version, "key": key.to_document(), "name": name };
    let kind = kinds::of(&IndexSpec::parse(out.to_raw())?)?;
    let mut seen: Vec<&str> = Vec::new();
    for (option, value) in spec.iter() {
        if seen.contains(&option) {
            bail!(BadValue, "duplicate field '{option}' in index specification");
        }
        seen.push(option);
        if let Some(listed) = listed_option(kind, spec, option, value)? {
            out.push(option, listed);
        }
    }
    let parsed = kinds::check(IndexSpec::parse(out.to_raw())?)?;
    check_together(spec, &parsed)?;
    // The index on _id is as it is.
    let foreign = spec.iter().find(|(option, _)| !ID_OPTIONS.contains(option));
    if let (true, Some((option, _))) = (is_id, foreign) {
        bail!(
            InvalidIndexSpecificationOption,
            "The field '{option}' is not valid for an _id index specification. Specification: {spec:?}"
        );
    }
    Ok(parsed)
}

/// `key` and `name`.
fn required(spec: RawDoc<'_>) -> Result<(DocRef<'_>, &str)> {
    let key = match spec.get("key") {
        Some(ValueRef::Document(key)) => key,
        Some(other) => return Err(wrong_type("key", "an object", other)),
        None => bail!(
            FailedToParse,
            "The 'key' field is a required property of an index specification"
        ),
    };
    match spec.get("name") {
        Some(ValueRef::String(name)) => Ok((key, name)),
        Some(other) => Err(wrong_type("name", "a string", other)),
        None => bail!(
            FailedToParse,
            "The 'name' field is a required property of an index specification"
        ),
    }
}

/// Checks an option by itself; what it is listed as, if it is.
fn listed_option(kind: &KindDef, spec: RawDoc<'_>, name: &str, value: ValueRef<'_>) -> Result<Option<Value>> {
    let document = || match value {
        ValueRef::Document(document) => Ok(document),
        other => Err(wrong_type(name, "an object", other)),
    };
    let listed = match name {
        "key" | "name" | "ns" | "v" => return Ok(None),
        // The last is listed and means nothing: no build drops documents.
        "unique" | "sparse" | "prepareUnique" | "dropDups" => {
            return Ok(flag(name, value)?.then_some(Value::Bool(true)));
        }
        "hidden" => match value {
            ValueRef::Bool(hidden) => return Ok(hidden.then_some(Value::Bool(true))),
            other => return Err(wrong_type(name, "a boolean", other)),
        },
        // It is listed as it was given and means nothing: all builds leave writers alone.
        "background" => flag(name, value)?.into(),
        "expireAfterSeconds" => expire(value)?.into(),
        "partialFilterExpression" => {
            let filter = document()?;
            check_partial(&MatchExpr::parse_in(filter, &mut Scope::new(), Context::Validator)?)?;
            filter.to_document().into()
        }
        "collation" => {
            let collation = document()?;
            if collation.is_empty() {
                bail!(BadValue, "The field 'collation' cannot be an empty object");
            }
            // Simple is written down until it is known what would be inherited: see `inherit`.
            match Collation::parse(collation)? {
                Some(collation) => collation.to_document().into(),
                None => doc! { "locale": SIMPLE }.into(),
            }
        }
        "storageEngine" => {
            options::check_storage_engine(document()?)?;
            document()?.to_document().into()
        }
        "clustered" => bail!(InvalidOptions, "a clustered index can only be made with the collection"),
        "bucketSize" | "columnstoreProjection" => {
            bail!(CannotCreateIndex, "the index option '{name}' is not supported")
        }
        other => match kind.option(other) {
            Ok(option) => {
                let key = spec.get("key").and_then(ValueRef::as_document);
                (option.parse)(value, &key.map(DocRef::to_document).unwrap_or_default())?
            }
            Err(Some(owner)) => {
                return Err(Error::new(owner.misplaced_option, owner.only_here(name)));
            }
            Err(None) => bail!(
                InvalidIndexSpecificationOption,
                "The field '{other}' is not valid for an index specification. Specification: {spec:?}"
            ),
        },
    };
    Ok(Some(listed))
}

fn wrong_type(name: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    let kind = value.bson_type().alias();
    Error::new(
        nestor_model::ErrorCode::TypeMismatch,
        format!("The field '{name}' must be {wanted}, but got {kind}"),
    )
}

/// The options that an index may have, supported here or not; those of one kind are in its folder.
const OPTIONS: [&str; 16] = [
    "key",
    "name",
    "ns",
    "v",
    "background",
    "dropDups",
    "unique",
    "sparse",
    "hidden",
    "prepareUnique",
    "expireAfterSeconds",
    "partialFilterExpression",
    "collation",
    "storageEngine",
    "clustered",
    "bucketSize",
];

/// The specification without options that nobody knows (`ignoreUnknownIndexOptions`).
pub fn without_unknown(spec: RawDoc<'_>) -> RawDocBuf {
    let is_known = |name: &str| OPTIONS.contains(&name) || kinds::option(name).is_some();
    let mut out = RawWriter::with_capacity(spec.len());
    for element in spec.elements().filter(|element| is_known(element.name())) {
        out.append_element_bytes(element.as_bytes());
    }
    out.into_doc()
}

/// Settles the collation of an index of `collection`: without one in the specification it has that of the collection, and
/// simple is not written down.
///
/// Errors: 2 when that of the index on `_id` is not the collection's; those of the kind.
pub fn inherit(spec: &IndexSpec, collection: &Collection) -> Result<IndexSpec> {
    let default = collection.options.collation.as_ref();
    let given = match &spec.collation {
        None => default,
        Some(given) if is_simple(given) => None,
        Some(given) => Some(given),
    };
    if spec.is_id() && !same_documents(given, default) {
        bail!(
            BadValue,
            "The _id index must have the same collation as the collection. Index collation: {given:?}, collection collation: {default:?}"
        );
    }
    let mut listed = Document::from(spec.listed().clone());
    match given {
        Some(collation) => listed.set("collation", collation.clone()),
        None => {
            listed.remove("collation");
        }
    }
    // Not every kind can have a collation.
    kinds::check(IndexSpec::parse(listed.to_raw())?)
}

fn is_simple(collation: &Document) -> bool {
    collation.get("locale").and_then(ValueRef::as_str) == Some(SIMPLE)
}

fn same_documents(a: Option<&Document>, b: Option<&Document>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => values_equal(ValueRef::Document(a.as_ref()), ValueRef::Document(b.as_ref())),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether two filters of partial indexes are the same however their conditions are ordered.
fn same_filters(a: Option<&Document>, b: Option<&Document>) -> bool {
    let normal = |filter: &Document| {
        let parsed = MatchExpr::parse(filter.as_ref(), &mut Scope::new());
        parsed.map(|filter| filter.normalize().serialize())
    };
    match (a.map(normal), b.map(normal)) {
        (Some(Ok(a)), Some(Ok(b))) => same_documents(Some(&a), Some(&b)),
        _ => same_documents(a, b),
    }
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

/// The version of an index, which is listed: entries are written alike in both.
fn version(value: ValueRef<'_>) -> Result<i32> {
    match safe_i64(value) {
        Some(1) => Ok(1),
        Some(2) => Ok(NEWEST),
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
        number if is_nan(number) => bail!(
            CannotCreateIndex,
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, and NaN is in none"
        ),
        ValueRef::Double(v) => v as i64,
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
        MatchExpr::Text(_) => bail!(BadValue, "$text is not allowed in the filter of a partial index"),
        MatchExpr::Expr(_) => bail!(
            QueryFeatureNotAllowed,
            "$expr is not allowed in the filter of a partial index"
        ),
        // `$in: []`.
        MatchExpr::AlwaysFalse => true,
        MatchExpr::Leaf(leaf) => match &leaf.predicate {
            Predicate::Compare { .. } | Predicate::Exists | Predicate::Type(_) | Predicate::Geo(_) => true,
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

/// Checks that options go together.
///
/// Error: 67.
fn check_together(written: RawDoc<'_>, spec: &IndexSpec) -> Result<()> {
    let first_version = written.get("v").and_then(safe_i64) == Some(1);
    if first_version && spec.key.iter().any(|part| part.is_wildcard()) {
        bail!(
            CannotCreateIndex,
            "Invalid index specification {written:?}; cannot create a wildcard index with v=1"
        );
    }
    if first_version && spec.collation.as_ref().is_some_and(|collation| !is_simple(collation)) {
        bail!(
            CannotCreateIndex,
            "Invalid index specification {written:?}; cannot create an index with the 'collation' option and v=1"
        );
    }
    // As it was written: that of a text index is listed with a second part. Documents expire by dates in the only field.
    let parts = written
        .get("key")
        .and_then(ValueRef::as_document)
        .map_or(0, |key| key.iter().count());
    if spec.expire_after_secs.is_some() && parts > 1 {
        bail!(
            CannotCreateIndex,
            "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {:?}",
            spec.listed()
        );
    }
    if spec.sparse && spec.partial_filter.is_some() {
        bail!(
            CannotCreateIndex,
            "cannot mix \"partialFilterExpression\" and \"sparse\" options"
        );
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
            ValueRef::String("") => return bad("Unknown index plugin ''".into()),
            ValueRef::String("wildcard") if !index_spec::is_wildcard_path(path) => bail!(
                7246202,
                "Index type 'wildcard' is not a type that a key part can have: {path}"
            ),
            ValueRef::String(_) => {}
            number if number.is_number() => {
                if !number.truthy() || is_nan(number) {
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
        if path.split('.').rev().skip(1).any(|part| part == "$**") {
            return bad(format!("a wildcard must be the end of its path: {path}"));
        }
    }
    Ok(())
}

fn is_nan(number: ValueRef<'_>) -> bool {
    match number {
        ValueRef::Double(v) => v.is_nan(),
        ValueRef::Decimal128(v) => v.is_nan(),
        _ => false,
    }
}

/// The index of a collection, built or being built, that is like this one.
///
/// Errors: 85 for the same key with other options or under another name, 86 for the same name with another key.
pub fn find<'c>(collection: &'c Collection, spec: &IndexSpec) -> Result<Option<&'c Arc<Index>>> {
    let kind = kinds::of(spec)?;
    let same = |index: &Index| is_same(kind, index, spec);
    let same_options = |index: &Index| index.expire_after_secs == spec.expire_after_secs && index.hidden == spec.hidden;
    if let Some(index) = collection.all_indexes().find(|index| index.name == spec.name) {
        let differs_besides = kind.is_single && same_documents(Some(&index.key_pattern), Some(&spec.key_pattern));
        if !same(index) && !differs_besides {
            return Err(conflict(
                86,
                "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.",
                spec,
                index,
            ));
        }
        if same(index) && same_options(index) {
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
        Some(index) if same_options(index) => {
            Err(conflict(85, "Index already exists with a different name", spec, index))
        }
        Some(index) => Err(conflict(
            85,
            "An equivalent index already exists with a different name and options.",
            spec,
            index,
        )),
        None => match collection
            .all_indexes()
            .find(|index| kind.is_single && index.kind() == kind.name)
        {
            Some(index) => Err(conflict(
                85,
                &format!(
                    "only one {0} index per collection allowed, found existing {0} index \"{1}\".",
                    kind.name, index.name
                ),
                spec,
                index,
            )),
            None => Ok(None),
        },
    }
}

fn conflict(code: i32, message: &str, requested: &IndexSpec, existing: &Index) -> Error {
    Error::location(
        code,
        format!(
            "{message} Requested index: {:?}, existing index: {:?}",
            requested.listed(),
            existing.listed()
        ),
    )
}

/// Whether key pattern and options agree by which indexes are told apart.
fn is_same(kind: &KindDef, index: &IndexSpec, spec: &IndexSpec) -> bool {
    same_documents(Some(&index.key_pattern), Some(&spec.key_pattern))
        && (index.unique == spec.unique || index.is_id())
        && index.sparse == spec.sparse
        && same_filters(index.partial_filter.as_ref(), spec.partial_filter.as_ref())
        && same_documents(index.collation.as_ref(), spec.collation.as_ref())
        && kind
            .options
            .iter()
            .all(|option| match (index.option(option.name), spec.option(option.name)) {
                (Some(a), Some(b)) => values_equal(a, b),
                (a, b) => a.is_none() && b.is_none(),
            })
}
