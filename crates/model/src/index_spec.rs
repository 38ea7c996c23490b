//! Index specifications, parsed.
//!
//! ```text
//! {v: 2, key: {a: 1, "b.c": -1}, name: "a_1_b.c_-1", unique: true}    kind "": a ascending, b.c descending
//! {v: 2, key: {h: "hashed", a: 1}, name: "h_hashed_a_1"}              kind "hashed"
//! {v: 2, key: {"x.$**": 1}, name: "x.$**_1"}                          kind "wildcard"
//! ```
//!
//! The BSON form is what listIndexes shows and what the catalog stores; it is kept for that, and for the options that only
//! one kind of index has. What the parts of a key and such options mean is for the kind to say, and whether a
//! specification is sensible is checked where indexes are created.

use crate::number::safe_i64;
use crate::value::{DocRef, Document, ValueRef};
use crate::{RawDocBuf, Result, Str, bail, storage_settings};

/// The kind of an index whose parts are all values in order.
pub const ORDERED: &str = "";
/// The kind of an index on all fields there are. It is written as a path, not as a name.
pub const WILDCARD: &str = "wildcard";

/// The specification of an index.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    listed: RawDocBuf,
    /// Its name, unique within the collection.
    pub name: Str,
    /// `key` as listed.
    pub key_pattern: Document,
    /// The parts of the key, in order.
    pub key: Vec<KeyPart>,
    /// No two documents may have the same key. Always true of `_id_`.
    pub unique: bool,
    /// Not unique yet, but what would keep it from becoming so is refused.
    pub prepare_unique: bool,
    /// Documents without any of the fields have no entry.
    pub sparse: bool,
    /// The planner may not use it.
    pub hidden: bool,
    /// Only documents that match have entries.
    pub partial_filter: Option<Document>,
    /// Documents expire that many seconds after the date in the key.
    pub expire_after_secs: Option<i64>,
    /// Collation of string keys, as given.
    pub collation: Option<Document>,
    /// Whether its entries are packed on disk, if `storageEngine` says.
    pub packs: Option<bool>,
    /// For each part of a stored key whether it is in reverse order. A wildcard is stored as two parts, the path of a
    /// value and the value; the path ascends.
    pub descending: Vec<bool>,
}

/// One part of an index key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// The field, or a wildcard.
    pub path: Str,
    /// What is stored of it.
    pub order: KeyOrder,
}

/// What an index stores of a field, as the value in the key pattern says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyOrder {
    /// The values, in their order.
    Ascending,
    /// The values, in reverse order.
    Descending,
    /// What the kind of this name makes of the values.
    Special(Str),
}

impl KeyOrder {
    /// Reads a value of a key pattern: a string is the name of a kind, a number below zero descends, whatever its type
    /// and however small.
    pub fn of(value: ValueRef<'_>) -> Self {
        let descends = match value {
            ValueRef::String(kind) => return Self::Special(kind.into()),
            ValueRef::Int32(v) => v < 0,
            ValueRef::Int64(v) => v < 0,
            ValueRef::Double(v) => v < 0.0,
            ValueRef::Decimal128(v) => !v.is_nan() && crate::compare(value, 0).is_lt(),
            _ => false,
        };
        if descends { Self::Descending } else { Self::Ascending }
    }
}

impl KeyPart {
    /// Whether it stands for all fields below some path.
    pub fn is_wildcard(&self) -> bool {
        is_wildcard_path(&self.path)
    }
}

/// Whether a path of a key pattern stands for all fields: `$**` or `path.$**`.
pub fn is_wildcard_path(path: &str) -> bool {
    path == "$**" || path.ends_with(".$**")
}

impl IndexSpec {
    /// Parses a specification in the form in which it is listed: `key`, `name` and options.
    ///
    /// Errors: 9 without `key` or `name`, 14 for one of another type.
    pub fn parse(listed: RawDocBuf) -> Result<Self> {
        let doc = DocRef::Raw(listed.as_raw());
        let Some(name) = doc.get("name") else {
            bail!(FailedToParse, "index specification without name: {listed:?}");
        };
        let Some(key) = doc.get("key") else {
            bail!(FailedToParse, "index specification without key: {listed:?}");
        };
        let name: Str = text("name", name)?.into();
        let key_pattern = document("key", key)?.to_document();
        let key = key_pattern
            .iter()
            .map(|(path, value)| KeyPart {
                path: path.into(),
                order: KeyOrder::of(value),
            })
            .collect::<Vec<_>>();
        let flag = |field: &str| doc.get(field).is_some_and(ValueRef::truthy);
        let optional = |field: &str| doc.get(field).map(|value| document(field, value)).transpose();
        let unique = name == "_id_" || flag("unique");
        Ok(Self {
            unique,
            prepare_unique: !unique && flag("prepareUnique"),
            sparse: flag("sparse"),
            hidden: flag("hidden"),
            partial_filter: optional("partialFilterExpression")?.map(DocRef::to_document),
            expire_after_secs: doc.get("expireAfterSeconds").and_then(safe_i64),
            collation: optional("collation")?.map(DocRef::to_document),
            packs: optional("storageEngine")?.and_then(storage_settings::packs),
            descending: descending(&key),
            name,
            key_pattern,
            key,
            listed,
        })
    }

    /// The specification as listIndexes shows it.
    pub fn listed(&self) -> &RawDocBuf {
        &self.listed
    }

    /// An option as it is listed.
    pub fn option(&self, name: &str) -> Option<ValueRef<'_>> {
        self.listed.as_raw().get(name)
    }

    /// The name of its kind: the first that its key pattern has (`"hashed"`), else [`WILDCARD`] or [`ORDERED`].
    pub fn kind(&self) -> &str {
        kind(&self.key)
    }

    /// Whether this is the index on `_id` that every collection has.
    pub fn is_id(&self) -> bool {
        self.name == "_id_"
    }
}

fn kind(key: &[KeyPart]) -> &str {
    let special = key.iter().find_map(|part| match &part.order {
        KeyOrder::Special(kind) => Some(kind.as_str()),
        _ => None,
    });
    special.unwrap_or_else(|| match key.iter().any(KeyPart::is_wildcard) {
        true => WILDCARD,
        false => ORDERED,
    })
}

fn descending(key: &[KeyPart]) -> Vec<bool> {
    let wildcard = kind(key) == WILDCARD;
    key.iter()
        .flat_map(|part| {
            let path = (wildcard && part.is_wildcard()).then_some(false);
            path.into_iter().chain([part.order == KeyOrder::Descending])
        })
        .collect()
}

fn text<'v>(name: &str, value: ValueRef<'v>) -> Result<&'v str> {
    match value.as_str() {
        Some(text) => Ok(text),
        None => wrong(name, "a string", value),
    }
}

fn document<'v>(name: &str, value: ValueRef<'v>) -> Result<DocRef<'v>> {
    match value.as_document() {
        Some(document) => Ok(document),
        None => wrong(name, "an object", value),
    }
}

fn wrong<T>(name: &str, wanted: &str, value: ValueRef<'_>) -> Result<T> {
    bail!(
        TypeMismatch,
        "The field '{name}' must be {wanted}, but got {}",
        value.bson_type().alias()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, Value, doc};

    fn spec(key: Document) -> IndexSpec {
        IndexSpec::parse(doc! { "key": key, "name": "i" }.to_raw()).expect("a specification")
    }

    #[test]
    fn kinds_and_directions_come_from_the_key_pattern() {
        let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).expect("a decimal").0);
        for (key, kind, descending) in [
            (doc! { "a": 1, "b.c": -1 }, "", vec![false, true]),
            (doc! { "a": -0.5, "b": decimal("-0.5") }, "", vec![true, true]),
            (
                doc! { "a": decimal("-1E-400"), "b": decimal("0.5") },
                "",
                vec![true, false],
            ),
            (doc! { "a": -1, "h": "hashed" }, "hashed", vec![true, false]),
            (doc! { "a": -1, "$**": -1 }, "wildcard", vec![true, false, true]),
            (doc! { "a.$**": 1 }, "wildcard", vec![false, false]),
            (doc! { "$**": "text" }, "text", vec![false]),
        ] {
            let spec = spec(key);
            assert_eq!(
                (spec.kind(), spec.descending.clone()),
                (kind, descending),
                "{:?}",
                spec.key_pattern
            );
        }
    }

    #[test]
    fn a_unique_index_needs_no_preparation() {
        let spec = doc! { "key": doc! { "a": 1 }, "name": "a", "unique": true, "prepareUnique": true };
        let spec = IndexSpec::parse(spec.to_raw()).expect("a specification");
        assert!(spec.unique && !spec.prepare_unique);
        for (spec, code) in [
            (doc! { "name": "a" }, 9),
            (doc! { "key": doc! { "a": 1 } }, 9),
            (doc! { "key": 1, "name": "a" }, 14),
            (doc! { "key": doc! { "a": 1 }, "name": "a", "collation": 1 }, 14),
        ] {
            let error = IndexSpec::parse(spec.to_raw()).expect_err("refused");
            assert_eq!(error.code().number(), code, "{spec:?}");
        }
    }
}
