//! Options of collections and views: which there are, which go together, and how they are stored.

use crate::args::{Arg, At, unknown_field, wrong_type};
use nestor_database::uuid::Uuid;
use nestor_model::collection_options::{ValidationAction, ValidationLevel};
use nestor_model::number::safe_i64;
use nestor_model::storage_settings::{self, COMPRESSORS};
use nestor_model::value::DocRef;
use nestor_model::{Document, RawDoc, Result, RowSecurity, Value, ValueRef, bail, doc};
use nestor_query::collation::Collation;
use nestor_query::validation;

/// Largest size of a capped collection, in bytes.
pub const CAPPED_BYTES_MAX: i64 = 1 << 50;

/// Reads the size of a capped collection.
pub fn capped_size(size: i64) -> Result<i64> {
    if !(1..=CAPPED_BYTES_MAX).contains(&size) {
        bail!(
            BadValue,
            "BSON field 'size' value must be >= 1 and <= {CAPPED_BYTES_MAX}, actual value '{size}'"
        );
    }
    // Sizes are kept in multiples of 256 bytes, as MongoDB rounds them.
    Ok((size + 255) / 256 * 256)
}

/// Reads the number of documents of a capped collection; not positive means no limit.
pub fn capped_max(max: i64) -> Result<i64> {
    if max > i64::from(i32::MAX) {
        bail!(
            BadValue,
            "max in a capped collection has to be < 2^31 or not set, but was {max}"
        );
    }
    Ok(max.max(0))
}

/// Reads after how many seconds documents of a clustered or time-series collection expire.
///
/// Errors: 14 for what is no number, 72 for one that is negative, that is too large to be counted in milliseconds, or that
/// reaches back beyond 1970.
pub fn expire_after_secs(value: ValueRef<'_>, now_ms: i64) -> Result<i64> {
    let Some(secs) = safe_i64(value) else {
        return Err(wrong_type(
            "create.expireAfterSeconds",
            value.bson_type(),
            crate::args::NUMBER_TYPES,
        ));
    };
    match secs.checked_mul(1000) {
        Some(ms) if (0..=now_ms).contains(&ms) => Ok(secs),
        _ => bail!(
            InvalidOptions,
            "'expireAfterSeconds' must be within the range of 0 to the seconds since 1970, but is {secs}"
        ),
    }
}

/// The settings of WiredTiger that `configString` may name.
/// Source: WiredTiger's manual, "WT_SESSION::create".
const WIRED_TIGER_SETTINGS: [&str; 20] = [
    "access_pattern_hint",
    "allocation_size",
    "app_metadata",
    "block_allocation",
    "block_compressor",
    "cache_resident",
    "checksum",
    "dictionary",
    "ignore_in_memory_cache_size",
    "internal_key_truncate",
    "internal_page_max",
    "key_gap",
    "leaf_key_max",
    "leaf_page_max",
    "leaf_value_max",
    "log",
    "memory_page_max",
    "prefix_compression",
    "prefix_compression_min",
    "split_pct",
];

/// Checks options for the storage engine: they are MongoDB's WiredTiger's, and are listed back so that what was dumped from MongoDB can
/// be restored. Of their settings only `block_compressor` has a meaning here.
///
/// Errors: 72 for another engine or option, 2 for a value, setting or compressor that there is not, 9 for a setting with a zero byte.
pub fn check_storage_engine(engines: DocRef<'_>) -> Result<()> {
    for (engine, settings) in engines.iter() {
        let ValueRef::Document(settings) = settings else {
            bail!(BadValue, "'storageEngine.{engine}' has to be an embedded document.");
        };
        if engine != "wiredTiger" {
            bail!(
                InvalidOptions,
                "storageEngine.{engine} is not a registered storage engine for this server"
            );
        }
        for (name, value) in settings.iter() {
            match (name, value) {
                ("configString", ValueRef::String(text)) => check_config_string(text)?,
                ("configString", other) => {
                    return Err(wrong_type(
                        "storageEngine.wiredTiger.configString",
                        other.bson_type(),
                        "string",
                    ));
                }
                (other, _) => bail!(
                    InvalidOptions,
                    "'{other}' is not a supported option of storageEngine.wiredTiger"
                ),
            }
        }
    }
    Ok(())
}

fn check_config_string(text: &str) -> Result<()> {
    if text.contains('\0') {
        bail!(FailedToParse, "malformed 'configString' value: it has a zero byte");
    }
    for (name, value) in storage_settings::settings(text) {
        if !WIRED_TIGER_SETTINGS.contains(&name) {
            bail!(BadValue, "unknown configuration key: '{name}'");
        }
        if name == "block_compressor" && !value.is_empty() && !COMPRESSORS.contains(&value) {
            bail!(BadValue, "unknown compressor '{value}'");
        }
    }
    Ok(())
}

/// Checks a validator and its level and action.
pub fn check_validation(validator: Option<RawDoc<'_>>, level: Option<&str>, action: Option<&str>) -> Result<()> {
    if let Some(level) = level {
        ValidationLevel::parse(level)?;
    }
    if let Some(action) = action {
        ValidationAction::parse(action)?;
    }
    if let Some(validator) = validator {
        validation::Validator::parse(DocRef::Raw(validator))?;
    }
    Ok(())
}

/// `masking`: the policy of the collection `coll`, checked.
///
/// Errors: 72 for collections of the server's own; what is wrong with the policy.
pub fn masking(coll: &str, policy: RawDoc<'_>) -> Result<Document> {
    if coll.starts_with("system.") {
        bail!(InvalidOptions, "masking is not allowed on the system collection {coll}");
    }
    let policy = DocRef::Raw(policy).to_document();
    nestor_database::masking::check_policy(&policy)?;
    Ok(policy)
}

/// `rowSecurity` of the collection `coll`, checked as far as commands know it.
///
/// Errors: 72 for collections of the server's own; what is wrong with it.
pub fn row_security(coll: &str, given: RawDoc<'_>) -> Result<RowSecurity> {
    if coll.starts_with("system.") {
        bail!(
            InvalidOptions,
            "rowSecurity is not allowed on the system collection {coll}"
        );
    }
    RowSecurity::parse(DocRef::Raw(given))
}

/// `clusteredIndex`: `{key: {_id: 1}, unique: true, name, v}`; returns it completed.
pub fn clustered_index(value: ValueRef<'_>) -> Result<Option<Document>> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        other if other.is_number() || matches!(other, ValueRef::Bool(_)) => {
            if !other.truthy() {
                return Ok(None);
            }
            bail!(
                5979703,
                "The 'clusteredIndex' option is only supported on time-series buckets collections in this form"
            );
        }
        other => {
            return Err(wrong_type("create.clusteredIndex", other.bson_type(), "[bool, object]"));
        }
    };
    let (mut key, mut unique, mut name, mut version) = (None, None, None, 2i64);
    for (field, value) in doc.iter() {
        let at = At {
            path: "create.clusteredIndex",
            field,
        };
        match field {
            "key" => key = <RawDoc<'_> as Arg>::parse(value, at)?,
            "unique" => unique = <bool as Arg>::parse(value, at)?,
            "name" => name = <&str as Arg>::parse(value, at)?,
            "v" => version = <i64 as Arg>::parse(value, at)?.unwrap_or(2),
            other => return Err(unknown_field("create.clusteredIndex", other)),
        }
    }
    let missing = |field: &str| {
        nestor_model::Error::location(
            40414,
            format!("BSON field 'create.clusteredIndex.{field}' is missing but a required field"),
        )
    };
    let key = key.ok_or_else(|| missing("key"))?;
    let unique = unique.ok_or_else(|| missing("unique"))?;
    if !unique {
        bail!(
            5979700,
            "The clusteredIndex option requires unique: true to be specified"
        );
    }
    if version != 2 {
        bail!(5979704, "The clusteredIndex option requires v: 2 to be specified");
    }
    let mut fields = key.iter();
    let by_id = matches!(fields.next(), Some(("_id", v)) if safe_i64(v) == Some(1)) && fields.next().is_none();
    if !by_id {
        bail!(
            InvalidIndexSpecificationOption,
            "The clusteredIndex option is not supported for keys other than {{ _id: 1 }}"
        );
    }
    Ok(Some(doc! {
        "v": 2,
        "key": doc! { "_id": 1 },
        "name": name.unwrap_or("_id_"),
        "unique": true,
    }))
}

/// `idIndex`: only what the index on `_id` is anyway may be said.
pub fn check_id_index(spec: RawDoc<'_>, default: Option<&Collation>) -> Result<()> {
    let mut has_key = false;
    let mut has_name = false;
    for (field, value) in spec.iter() {
        match field {
            "key" => {
                let ValueRef::Document(key) = value else {
                    return Err(wrong_type("key", value.bson_type(), "object"));
                };
                let mut parts = key.iter();
                let by_id =
                    matches!(parts.next(), Some(("_id", v)) if safe_i64(v) == Some(1)) && parts.next().is_none();
                if !by_id {
                    bail!(
                        BadValue,
                        "The field 'key' for an _id index must be {{_id: 1}}, but got {key:?}"
                    );
                }
                has_key = true;
            }
            "name" => match value {
                ValueRef::String("") => bail!(CannotCreateIndex, "index name cannot be empty"),
                ValueRef::String(_) => has_name = true,
                other => return Err(wrong_type("name", other.bson_type(), "string")),
            },
            "v" => match safe_i64(value) {
                Some(1 | 2) if !matches!(value, ValueRef::Double(v) if v.fract() != 0.0) => {}
                Some(1 | 2) => bail!(BadValue, "Index version must be representable as a 32-bit integer"),
                Some(other) => bail!(
                    CannotCreateIndex,
                    "Invalid index specification; cannot create an index with v={other}"
                ),
                None => return Err(wrong_type("v", value.bson_type(), crate::args::NUMBER_TYPES)),
            },
            "ns" => {}
            "collation" => match value {
                ValueRef::Document(DocRef::Raw(collation)) => {
                    if Collation::parse(DocRef::Raw(collation))?.as_ref() != default {
                        bail!(BadValue, "the _id index must have the same collation as the collection");
                    }
                }
                other => return Err(wrong_type("collation", other.bson_type(), "object")),
            },
            other => bail!(
                InvalidIndexSpecificationOption,
                "The field '{other}' is not valid for an _id index specification"
            ),
        }
    }
    if !has_key {
        bail!(
            FailedToParse,
            "The 'key' field is a required property of an index specification"
        );
    }
    if !has_name {
        bail!(
            FailedToParse,
            "The 'name' field is a required property of an index specification"
        );
    }
    Ok(())
}

/// A UUID as the options of listCollections' `info` print it.
pub fn uuid_value(uuid: [u8; 16]) -> Value {
    Uuid(uuid).to_value()
}
