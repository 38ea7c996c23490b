//! What a collection or view was created with, parsed.
//!
//! The BSON form is what listCollections shows and what the catalog stores; it is kept for that alone. Everything else
//! reads the fields of [`CollectionOptions`]:
//!
//! ```text
//! {capped: true, size: 4096, max: 10}                     capped: 4096 bytes, 10 documents
//! {viewOn: "people", pipeline: [{$match: {...}}]}          view: on "people"
//! {clusteredIndex: {v: 2, key: {_id: 1}, unique: true}}    clustered: named "_id_"
//! ```
//!
//! Parsing checks names and types. Whether options go together, and what a client is told of one that is wrong, is
//! settled where collections are created and modified.

use crate::number::safe_i64;
use crate::row_security::RowSecurity;
use crate::search_index::SearchIndex;
use crate::timeseries::TimeSeries;
use crate::value::{Array, DocRef, Document, ValueRef};
use crate::{Result, Str, bail, doc, storage_settings};

/// The options of a collection or view.
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    listed: Document,
    /// It keeps the newest documents within these limits.
    pub capped: Option<Capped>,
    /// It is a view.
    pub view: Option<ViewDefinition>,
    /// Its records are in the order of `_id`, without an index on it.
    pub clustered: Option<ClusteredIndex>,
    /// The collation of operations and indexes that name none, as a client wrote it and the parser completed it.
    pub collation: Option<Document>,
    /// What documents have to match.
    pub validator: Option<Document>,
    /// Which writes the validator judges.
    pub validation_level: ValidationLevel,
    /// What becomes of a document that does not match the validator.
    pub validation_action: ValidationAction,
    /// Documents as they were before and after changes are kept for change streams.
    pub pre_and_post_images: bool,
    /// What becomes of fields for users who may not see them plain, by path.
    pub masking: Option<Document>,
    /// Who may see and write which of its documents.
    pub row_security: Option<RowSecurity>,
    /// It is a time-series collection, and thereby a view of the collection of its buckets; or it is such a collection of
    /// buckets, which is clustered.
    pub timeseries: Option<TimeSeries>,
    /// Documents of a clustered collection expire that many seconds after the date in `_id`, measurements after their time.
    pub expire_after_secs: Option<i64>,
    /// Whether its documents are packed on disk, if `storageEngine` says.
    pub packs: Option<bool>,
    /// Its search indexes.
    pub search_indexes: Vec<SearchIndex>,
    /// Whether indexes of it are that don't say themselves, if `indexOptionDefaults` says.
    pub packs_indexes: Option<bool>,
}

/// The option that the catalog keeps search indexes under. No client gives it.
const SEARCH_INDEXES: &str = "searchIndexes";

/// The limits of a capped collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capped {
    /// Bytes of documents.
    pub bytes_max: i64,
    /// Number of documents, if limited.
    pub documents_max: Option<i64>,
}

/// What a view reads.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// Name of the collection or view that the view is on, in the same database.
    pub on: Str,
    /// The stages, as the client wrote them.
    pub pipeline: Array,
}

/// The key of a clustered collection.
#[derive(Clone, Debug)]
pub struct ClusteredIndex {
    /// The name by which hints refer to the key.
    pub name: Str,
    /// `clusteredIndex` as listed.
    pub spec: Document,
}

/// Which writes a validator judges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ValidationLevel {
    /// None.
    Off,
    /// All but updates of documents that did not match before.
    Moderate,
    /// All.
    #[default]
    Strict,
}

impl ValidationLevel {
    /// Errors: 2 (BadValue).
    pub fn parse(level: &str) -> Result<Self> {
        match level {
            "off" => Ok(Self::Off),
            "moderate" => Ok(Self::Moderate),
            "strict" => Ok(Self::Strict),
            _ => bail!(
                BadValue,
                "Enumeration value '{level}' for field 'validationLevel' is not a valid value."
            ),
        }
    }
}

/// What becomes of a document that does not match the validator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ValidationAction {
    /// It is refused.
    #[default]
    Error,
    /// It is stored and logged.
    Warn,
    /// It is refused and logged.
    ErrorAndLog,
}

impl ValidationAction {
    /// Errors: 2 (BadValue).
    pub fn parse(action: &str) -> Result<Self> {
        match action {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "errorAndLog" => Ok(Self::ErrorAndLog),
            _ => bail!(
                BadValue,
                "Enumeration value '{action}' for field 'validationAction' is not a valid value."
            ),
        }
    }
}

impl CollectionOptions {
    /// Parses options in the form in which they are listed.
    ///
    /// Errors: 14 for an option of another type, 72 for one that this version does not know: a collection must not be
    /// used without regard to what it was created with.
    pub fn parse(listed: Document) -> Result<Self> {
        let mut out = Self::default();
        let (mut capped, mut view_on) = (false, None);
        let (mut bytes_max, mut documents_max, mut pipeline) = (i64::MAX, None, Array::default());
        for (name, value) in listed.iter() {
            match name {
                "capped" => capped = flag(name, value)?,
                "size" => bytes_max = number(name, value)?,
                "max" => documents_max = Some(number(name, value)?).filter(|max| *max > 0),
                "viewOn" => view_on = Some(text(name, value)?.into()),
                "pipeline" => match value {
                    ValueRef::Array(stages) => pipeline = stages.to_array(),
                    other => return wrong(name, "array", other),
                },
                "collation" => out.collation = Some(document(name, value)?.to_document()),
                "validator" => out.validator = Some(document(name, value)?.to_document()),
                "validationLevel" => out.validation_level = ValidationLevel::parse(text(name, value)?)?,
                "validationAction" => out.validation_action = ValidationAction::parse(text(name, value)?)?,
                // The form in which collections of buckets are listed.
                "clusteredIndex" if matches!(value, ValueRef::Bool(true)) => {
                    out.clustered = Some(ClusteredIndex {
                        name: "_id_".into(),
                        spec: doc! { "v": 2, "key": doc! { "_id": 1 }, "name": "_id_", "unique": true },
                    });
                }
                "timeseries" => out.timeseries = Some(TimeSeries::parse(document(name, value)?)?),
                "clusteredIndex" => {
                    let spec = document(name, value)?;
                    let name = spec.get("name").map_or(Ok("_id_"), |name| text("name", name))?;
                    out.clustered = Some(ClusteredIndex {
                        name: name.into(),
                        spec: spec.to_document(),
                    });
                }
                "changeStreamPreAndPostImages" => {
                    let enabled = document(name, value)?.get("enabled");
                    out.pre_and_post_images = enabled.map_or(Ok(false), |on| flag("enabled", on))?;
                }
                "masking" => out.masking = Some(document(name, value)?.to_document()),
                "rowSecurity" => out.row_security = Some(RowSecurity::parse(document(name, value)?)?),
                "expireAfterSeconds" => out.expire_after_secs = Some(number(name, value)?),
                SEARCH_INDEXES => out.search_indexes = SearchIndex::parse_all(document(name, value)?)?,
                "storageEngine" => out.packs = storage_settings::packs(document(name, value)?),
                "indexOptionDefaults" => {
                    let engines = document(name, value)?
                        .get("storageEngine")
                        .and_then(ValueRef::as_document);
                    out.packs_indexes = engines.and_then(storage_settings::packs);
                }
                // It means nothing here: it is for local collections of MongoDB.
                "autoIndexId" => {
                    flag(name, value)?;
                }
                other => bail!(InvalidOptions, "unknown option of a collection: '{other}'"),
            }
        }
        out.capped = capped.then_some(Capped {
            bytes_max,
            documents_max,
        });
        out.view = view_on.map(|on| ViewDefinition { on, pipeline });
        out.listed = listed;
        Ok(out)
    }

    /// The options as the catalog keeps them.
    pub fn listed(&self) -> &Document {
        &self.listed
    }

    /// The options as clients see them: search indexes have a list of their own.
    pub fn shown(&self) -> Document {
        let mut shown = self.listed.clone();
        shown.remove(SEARCH_INDEXES);
        shown
    }

    /// The same with these search indexes.
    ///
    /// Errors: as [`CollectionOptions::parse`].
    pub fn with_search_indexes(&self, indexes: &[SearchIndex]) -> Result<Self> {
        let mut listed = self.shown();
        if !indexes.is_empty() {
            listed.push(SEARCH_INDEXES, SearchIndex::listed(indexes));
        }
        Self::parse(listed)
    }
}

fn wrong<T>(name: &str, wanted: &str, value: ValueRef<'_>) -> Result<T> {
    bail!(
        TypeMismatch,
        "option '{name}' of a collection is of type '{}', expected '{wanted}'",
        value.bson_type().alias()
    )
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(_) => Ok(value.truthy()),
        number if number.is_number() => Ok(number.truthy()),
        other => wrong(name, "bool", other),
    }
}

fn number(name: &str, value: ValueRef<'_>) -> Result<i64> {
    safe_i64(value).map_or_else(|| wrong(name, "long", value), Ok)
}

fn text<'v>(name: &str, value: ValueRef<'v>) -> Result<&'v str> {
    value.as_str().map_or_else(|| wrong(name, "string", value), Ok)
}

fn document<'v>(name: &str, value: ValueRef<'v>) -> Result<DocRef<'v>> {
    value.as_document().map_or_else(|| wrong(name, "object", value), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    fn parse(options: Document) -> CollectionOptions {
        CollectionOptions::parse(options).expect("valid options")
    }

    #[test]
    fn options_are_parsed_and_listed_as_they_were() {
        let listed = doc! { "capped": true, "size": 4096, "max": 0 };
        let options = parse(listed.clone());
        assert_eq!(format!("{:?}", options.listed()), format!("{listed:?}"));
        let limits = Capped {
            bytes_max: 4096,
            documents_max: None,
        };
        assert_eq!(options.capped, Some(limits));
        assert!(parse(doc! { "capped": false }).capped.is_none());

        let view = parse(doc! { "viewOn": "c" }).view.expect("a view");
        assert!(view.on == "c" && view.pipeline.as_ref().is_empty());

        let clustered = parse(doc! { "clusteredIndex": doc! { "key": doc! { "_id": 1 }, "unique": true } });
        assert_eq!(clustered.clustered.expect("clustered").name, "_id_");

        let images = |on: bool| parse(doc! { "changeStreamPreAndPostImages": doc! { "enabled": on } });
        assert!(images(true).pre_and_post_images && !images(false).pre_and_post_images);

        let checked = parse(doc! { "validator": doc! { "a": 1 }, "validationLevel": "moderate" });
        assert_eq!(checked.validation_level, ValidationLevel::Moderate);
        assert_eq!(checked.validation_action, ValidationAction::Error);
    }

    #[test]
    fn search_indexes_are_kept_and_not_shown() {
        let index = SearchIndex {
            name: "default".into(),
            id: crate::ObjectId([7; 12]),
            kind: "search".into(),
            version: 2,
            definition: doc! { "mappings": doc! { "dynamic": true } },
        };
        let plain = parse(doc! { "validationLevel": "moderate" });
        let with = plain
            .with_search_indexes(std::slice::from_ref(&index))
            .expect("valid options");
        let again = parse(with.listed().clone());
        assert_eq!(format!("{:?}", again.search_indexes), format!("{:?}", [index]));
        assert_eq!(format!("{:?}", with.shown()), format!("{:?}", plain.listed()));
        let without = with.with_search_indexes(&[]).expect("valid options");
        assert_eq!(format!("{:?}", without.listed()), format!("{:?}", plain.listed()));
        let wrong = CollectionOptions::parse(doc! { "searchIndexes": doc! { "a": 1 } });
        assert_eq!(wrong.expect_err("refused").code().number(), 72);
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (options, code) in [
            (doc! { "nope": 1 }, 72),
            (doc! { "size": "large" }, 14),
            (doc! { "viewOn": 1 }, 14),
            (doc! { "pipeline": doc! {} }, 14),
            (doc! { "clusteredIndex": false }, 14),
            (doc! { "timeseries": doc! {} }, 72),
            (doc! { "validationLevel": "high" }, 2),
        ] {
            let error = CollectionOptions::parse(options.clone()).expect_err("refused");
            assert_eq!(error.code().number(), code, "{options:?}");
        }
    }
}
