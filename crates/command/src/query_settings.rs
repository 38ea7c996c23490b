//! Query settings: what is set for all queries of a shape, by `setQuerySettings`.
//!
//! They are the cluster's: one document of `config.clusterParameters`, as in MongoDB, read back at the start. Queries
//! look here only while there are any.
//!
//! Source: manual, "setQuerySettings", "removeQuerySettings", "$querySettings".

use crate::Context;
use crate::args::{NotNull, StrictBool};
use crate::operation::shape::Shape;
use crate::write::Progress;
use crate::write::replace::{read_by_id, replace_by_id};
use nestor_model::{
    ArrayRef, DocRef, Document, Error, Namespace, RawDoc, Result, Timestamp, Value, ValueRef, bail, doc,
};
use nestor_planner::FindQuery;
use nestor_planner::find::AllowedIndex;
use nestor_planner::shape::Written;
use nestor_storage::Engine;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// `_id` of the document.
const ID: &str = "querySettings";

fn namespace() -> Namespace {
    Namespace::new("config", "clusterParameters")
}

/// What the indexes of one collection are restricted to.
#[derive(Clone, Debug)]
struct IndexHint {
    ns: Namespace,
    indexes: Vec<AllowedIndex>,
    /// A scan of the collection will do: forwards, or backwards.
    natural: Option<bool>,
}

/// What is set for one query shape.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Hash of the shape.
    pub hash: String,
    /// The shape.
    pub shape: Document,
    /// A query of that shape, with its `$db`.
    pub representative: Document,
    /// As it was set.
    pub settings: Document,
    ns: Namespace,
    reject: bool,
    hints: Vec<IndexHint>,
}

impl Entry {
    /// Settings for `shape`, that of `representative`.
    ///
    /// Errors: 2 an unknown framework, 7746608 two hints for one collection, 8727500 and 8727501 a namespace without
    /// database or collection, 9 for what is no index, and those of wrong and unknown fields.
    pub fn new(hash: String, shape: Document, representative: Document, settings: Document) -> Result<Self> {
        let text = |name: &str| representative.get(name).and_then(ValueRef::as_str).unwrap_or_default();
        let coll = representative.iter().next().and_then(|(_, first)| first.as_str());
        Ok(Self {
            ns: Namespace::new(text("$db"), coll.unwrap_or_default()),
            reject: settings.get("reject").is_some_and(ValueRef::truthy),
            hints: check(settings.as_ref())?,
            hash,
            shape,
            representative,
            settings,
        })
    }

    /// True when nothing is different from what holds for queries without settings. A comment changes nothing.
    pub fn is_default(&self) -> bool {
        self.hints.is_empty() && !self.reject && self.settings.get("queryFramework").is_none()
    }

    /// Error: 411 when such queries are to be refused.
    pub fn check_rejection(&self) -> Result<()> {
        if self.reject {
            bail!(QueryRejectedBySettings, "Query rejected by admin query settings");
        }
        Ok(())
    }

    /// Makes a query on `ns` use what is set for that collection, and not its own hint. False when nothing is.
    fn restrict(&self, ns: &Namespace, query: &mut FindQuery) -> bool {
        let Some(hint) = self.hints.iter().find(|hint| hint.ns == *ns) else {
            return false;
        };
        query.hint = None;
        query.natural = hint.natural.filter(|_| hint.indexes.is_empty());
        query.allowed = (!hint.indexes.is_empty()).then(|| hint.indexes.clone());
        query.any_otherwise = true;
        true
    }

    /// As the commands and `$querySettings` show it.
    pub fn to_document(&self) -> Document {
        doc! {
            "queryShapeHash": self.hash.as_str(),
            "settings": self.settings.clone(),
            "representativeQuery": self.representative.clone(),
        }
    }

    fn parse(doc: DocRef<'_>, shape_of: ShapeOf) -> Result<Self> {
        let part = |name: &str| doc.get(name).and_then(ValueRef::as_document).map(DocRef::to_document);
        let hash = doc.get("queryShapeHash").and_then(ValueRef::as_str).unwrap_or_default();
        let (settings, representative) = (part("settings"), part("representativeQuery"));
        let representative = representative.unwrap_or_default();
        // What an earlier version took for a query keeps its settings even if it is none any more.
        let shape = shape_of(representative.to_raw().as_raw()).unwrap_or_default();
        Self::new(hash.to_owned(), shape, representative, settings.unwrap_or_default())
    }
}

/// Tells the shape of a query as it is stored, with its `$db`.
pub type ShapeOf = fn(RawDoc<'_>) -> Result<Document>;

/// All settings.
#[derive(Debug, Default)]
pub struct QuerySettings {
    any: AtomicBool,
    by_hash: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Held while settings are changed and stored.
    changing: Mutex<()>,
}

impl QuerySettings {
    /// The settings that were stored. What cannot be understood is left out.
    pub fn load(engine: &Engine, shape_of: ShapeOf) -> Result<Self> {
        let out = Self::default();
        let stored = read_by_id(engine, &namespace(), ID)?;
        let entries = stored.as_ref().and_then(|doc| doc.get("settingsArray"));
        let entries = entries.and_then(ValueRef::as_array).unwrap_or(ArrayRef::Items(&[]));
        out.replace(
            entries
                .iter()
                .filter_map(|entry| Entry::parse(entry.as_document()?, shape_of).ok())
                .map(|entry| (entry.hash.clone(), Arc::new(entry)))
                .collect(),
        );
        Ok(out)
    }

    fn replace(&self, by_hash: BTreeMap<String, Arc<Entry>>) {
        let mut held = self.by_hash.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(!by_hash.is_empty(), Ordering::Release);
        *held = by_hash;
    }

    /// All of them, by hash.
    pub fn all(&self) -> BTreeMap<String, Arc<Entry>> {
        self.by_hash.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is set for queries of that shape, if anything. Costs one load while nothing is set at all.
    pub fn of(&self, shape: &Shape<'_>) -> Option<Arc<Entry>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let by_hash = self.by_hash.read().unwrap_or_else(PoisonError::into_inner);
        if !by_hash.values().any(|entry| entry.ns == shape.ns) {
            return None;
        }
        by_hash.get(&shape.hash()).cloned()
    }

    /// Changes the settings: stores what `change` makes of them, then lets queries see it.
    pub fn change<T>(
        &self,
        context: &Context<'_>,
        progress: &mut Progress,
        change: impl FnOnce(&mut BTreeMap<String, Arc<Entry>>) -> Result<T>,
    ) -> Result<T> {
        let _changing = crate::lock(&self.changing);
        let mut entries = self.all();
        let out = change(&mut entries)?;
        let time: Timestamp = context.service.last_time();
        let array: Vec<Value> = entries.values().map(|entry| entry.to_document().into()).collect();
        let stored = doc! { "_id": ID, "clusterParameterTime": time, "settingsArray": array };
        replace_by_id(context, &namespace(), &stored, progress)?;
        self.replace(entries);
        Ok(out)
    }
}

crate::args! {
    /// `settings` of `setQuerySettings`.
    pub struct SettingsArgs<'a>: "setQuerySettings.settings" nested {
        "indexHints" => hints: Option<ValueRef<'a>>,
        "queryFramework" => framework: Option<&'a str>,
        "reject" => reject: Option<NotNull<StrictBool>>,
        "comment" => comment: Option<ValueRef<'a>>,
    }
}

crate::args! {
    struct NsArgs<'a>: "setQuerySettings.settings.indexHints.ns" nested {
        "db" => db: Option<&'a str>,
        "coll" => coll: Option<&'a str>,
    }
}

crate::args! {
    struct HintArgs<'a>: "setQuerySettings.settings.indexHints" nested {
        "ns" => ns: RawDoc<'a>,
        "allowedIndexes" => indexes: crate::args::RawArray<'a>,
    }
}

/// Checks settings and reads their index hints.
fn check(settings: DocRef<'_>) -> Result<Vec<IndexHint>> {
    let raw = settings.to_raw();
    let settings = SettingsArgs::parse(raw.as_raw(), &[])?;
    // Both run on the one engine there is. MongoDB too runs what "sbe" cannot run the classic way.
    if let Some(framework) = settings.framework.filter(|name| !matches!(*name, "classic" | "sbe")) {
        bail!(
            BadValue,
            "Enumeration value '{framework}' for field 'setQuerySettings.settings.queryFramework' is not a valid value."
        );
    }
    let hints: Vec<RawDoc<'_>> = match settings.hints {
        None | Some(ValueRef::Null) => Vec::new(),
        Some(ValueRef::Document(DocRef::Raw(one))) => vec![one],
        Some(ValueRef::Array(items)) => items
            .iter()
            .map(|item| match item {
                ValueRef::Document(DocRef::Raw(hint)) => Ok(hint),
                other => Err(wrong_hint(other)),
            })
            .collect::<Result<_>>()?,
        Some(other) => return Err(wrong_hint(other)),
    };
    let mut out: Vec<IndexHint> = Vec::new();
    for hint in hints {
        let hint = index_hint(hint)?;
        if out.iter().any(|other| other.ns == hint.ns) {
            bail!(
                7_746_608,
                "In the query settings, more than one index hint is for namespace {}",
                hint.ns
            );
        }
        out.push(hint);
    }
    out.retain(|hint| !hint.indexes.is_empty() || hint.natural.is_some());
    Ok(out)
}

fn wrong_hint(value: ValueRef<'_>) -> Error {
    crate::args::wrong_type(
        "setQuerySettings.settings.indexHints",
        value.bson_type(),
        "[array, object]",
    )
}

fn index_hint(hint: RawDoc<'_>) -> Result<IndexHint> {
    let hint = HintArgs::parse(hint, &[])?;
    let ns = NsArgs::parse(hint.ns, &[])?;
    let Some(db) = ns.db.filter(|db| !db.is_empty()) else {
        bail!(8_727_500, "the namespace of an index hint has no 'db'");
    };
    let Some(coll) = ns.coll.filter(|coll| !coll.is_empty()) else {
        bail!(8_727_501, "the namespace of an index hint has no 'coll'");
    };
    let mut out = IndexHint {
        ns: Namespace::new(db, coll),
        indexes: Vec::new(),
        natural: None,
    };
    for item in hint.indexes.iter() {
        match item {
            ValueRef::String("$natural") => out.natural = Some(true),
            ValueRef::String(name) if !name.is_empty() => out.indexes.push(AllowedIndex::Name(name.into())),
            ValueRef::Document(pattern) if !pattern.is_empty() => match crate::read::natural(pattern)? {
                Some(forward) => out.natural = Some(forward),
                None => out.indexes.push(AllowedIndex::KeyPattern(pattern.to_document())),
            },
            other => bail!(
                FailedToParse,
                "Hint must be a string or an object, found {}",
                other.bson_type().alias()
            ),
        }
    }
    Ok(out)
}

impl Context<'_> {
    /// Looks up what is set for operations of that shape, for all that is planned from here on. Error: 411 when those are
    /// refused.
    pub fn look_up_settings(&self, shape: &Shape<'_>) -> Result<()> {
        if let Some(entry) = self.service.query_settings.of(shape) {
            entry.check_rejection()?;
            *self.query_settings.borrow_mut() = Some(entry);
        }
        Ok(())
    }

    /// As [`Context::look_up_settings`], for an operation that is explained: it may be one that is refused.
    pub fn show_settings(&self, shape: &Shape<'_>) {
        *self.query_settings.borrow_mut() = self.service.query_settings.of(shape);
    }

    /// What is set, as explain shows it.
    pub fn shown_settings(&self) -> Option<Document> {
        let settings = self.query_settings.borrow();
        settings.as_ref().map(|entry| entry.settings.clone())
    }

    /// Whether the indexes of a collection are restricted by what is set.
    pub fn are_indexes_set(&self, ns: &Namespace) -> bool {
        let settings = self.query_settings.borrow();
        settings
            .as_ref()
            .is_some_and(|entry| entry.hints.iter().any(|hint| hint.ns == *ns))
    }

    /// Makes a query use the indexes that are set for it, or else those that a filter of its shape allows. True when there
    /// are such, and its own hint does not count.
    pub fn restrict_indexes(&self, ns: &Namespace, query: &mut FindQuery, written: Written<'_>) -> bool {
        // A range of keys is one of the hinted index.
        let is_range = query.min.is_some() || query.max.is_some();
        let settings = self.query_settings.borrow();
        let is_set = !is_range && settings.as_ref().is_some_and(|entry| entry.restrict(ns, query));
        is_set || self.apply_index_filter(ns, query, written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_query::MatchExpr;

    fn entry(settings: Document) -> Result<Entry> {
        let query = doc! { "find": "c", "filter": doc! { "a": 1 }, "$db": "d" };
        Entry::new("0".into(), doc! {}, query, settings)
    }

    fn hints(hints: Vec<Document>) -> Document {
        doc! { "indexHints": hints.into_iter().map(Value::from).collect::<Vec<_>>() }
    }

    fn on(coll: &str, indexes: Vec<Value>) -> Document {
        doc! { "ns": doc! { "db": "d", "coll": coll }, "allowedIndexes": indexes }
    }

    #[test]
    fn hints_are_for_their_collection() {
        let entry = entry(hints(vec![
            on("c", vec!["a_1".into(), doc! { "b": 1 }.into()]),
            on("n", vec![doc! { "$natural": -1 }.into()]),
            on("e", vec![]),
        ]))
        .expect("good settings");
        let restricted = |coll: &str| {
            let mut query = FindQuery::all(Arc::new(MatchExpr::AlwaysTrue));
            query.hint = Some("own".into());
            let is_set = entry.restrict(&Namespace::new("d", coll), &mut query);
            assert_eq!(query.hint.is_none(), is_set);
            is_set.then_some((query.allowed.map_or(0, |all| all.len()), query.natural))
        };
        assert_eq!(restricted("c"), Some((2, None)));
        assert_eq!(restricted("n"), Some((0, Some(false))));
        assert_eq!((restricted("e"), restricted("other")), (None, None));
        assert!(entry.check_rejection().is_ok());
    }

    #[test]
    fn refusals() {
        let code = |settings: Document| entry(settings).expect_err("bad settings").code().number();
        assert_eq!(code(doc! { "queryFramework": "magic" }), 2);
        assert_eq!(code(doc! { "nosuch": 1 }), 40415);
        assert_eq!(code(doc! { "reject": "x" }), 14);
        assert_eq!(code(doc! { "indexHints": 1 }), 14);
        assert_eq!(code(hints(vec![on("c", vec![]), on("c", vec![])])), 7_746_608);
        assert_eq!(code(hints(vec![on("", vec![])])), 8_727_501);
        assert_eq!(
            code(hints(vec![doc! { "ns": doc! {}, "allowedIndexes": Vec::new() }])),
            8_727_500
        );
        assert_eq!(code(hints(vec![on("c", vec![1.into()])])), 9);
        let rejecting = entry(doc! { "reject": true }).expect("good settings");
        assert_eq!(rejecting.check_rejection().expect_err("rejected").code().number(), 411);
    }
}
