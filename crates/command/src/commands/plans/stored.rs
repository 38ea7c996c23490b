//! Query settings as clients give them and as they are stored: one document of `config.clusterParameters`, as in MongoDB,
//! read back at the start, and on members that are not primary when another has changed them.

use super::representative::stored_shape;
use crate::args::{NotNull, StrictBool};
use crate::collection_at::collection_text;
use crate::commands::administration::cluster_parameter::namespace;
use crate::context::Context;
use nestor_database::query_settings::{Entries, Entry, IndexHint};
use nestor_database::write::Progress;
use nestor_database::write::replace::{read_by_id, replace_by_id};
use nestor_model::{ArrayRef, DocRef, Document, Error, Namespace, RawDoc, Result, Value, ValueRef, bail, doc};
use nestor_planner::find::AllowedIndex;
use nestor_storage::Engine;
use std::sync::Arc;

/// `_id` of the document.
const ID: &str = "querySettings";

/// The settings that were stored. What cannot be understood is left out.
pub fn load(engine: &Engine) -> Result<Entries> {
    let found = read_by_id(engine, &namespace(), ID)?;
    let entries = found.as_ref().and_then(|doc| doc.get("settingsArray"));
    let entries = entries.and_then(ValueRef::as_array).unwrap_or(ArrayRef::Items(&[]));
    Ok(entries
        .iter()
        .filter_map(|entry| stored(entry.as_document()?).ok())
        .map(|entry| (entry.hash.clone(), Arc::new(entry)))
        .collect())
}

/// Stores the settings.
pub fn store(context: &Context<'_>, entries: &Entries, progress: &mut Progress) -> Result<()> {
    let array: Vec<Value> = entries.values().map(|entry| entry.to_document().into()).collect();
    let time = context.service.last_time();
    let document = doc! { "_id": ID, "clusterParameterTime": time, "settingsArray": array };
    replace_by_id(context, &namespace(), &document, progress)
}

/// Settings for `shape`, that of `representative`.
///
/// Errors: 2 an unknown framework, 7746608 two hints for one collection, 8727500 and 8727501 a namespace without
/// database or collection, 9 for what is no index, and those of wrong and unknown fields.
pub fn entry(hash: String, shape: Document, representative: Document, settings: Document) -> Result<Entry> {
    let text = |name: &str| representative.get(name).and_then(ValueRef::as_str).unwrap_or_default();
    let coll = representative
        .iter()
        .next()
        .and_then(|(_, first)| collection_text(first));
    Ok(Entry {
        ns: Namespace::new(text("$db"), coll.unwrap_or_default()),
        reject: settings.get("reject").is_some_and(ValueRef::truthy),
        hints: check(settings.as_ref())?,
        hash,
        shape,
        representative,
        settings,
    })
}

fn stored(doc: DocRef<'_>) -> Result<Entry> {
    let part = |name: &str| doc.get(name).and_then(ValueRef::as_document).map(DocRef::to_document);
    let hash = doc.get("queryShapeHash").and_then(ValueRef::as_str).unwrap_or_default();
    let (settings, representative) = (part("settings"), part("representativeQuery"));
    let representative = representative.unwrap_or_default();
    // A query that an earlier version accepted keeps its settings even if this version refuses it.
    let shape = stored_shape(representative.to_raw().as_raw()).unwrap_or_default();
    entry(hash.to_owned(), shape, representative, settings.unwrap_or_default())
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
            ValueRef::Document(pattern) if !pattern.is_empty() => match nestor_database::read::natural(pattern)? {
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

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_planner::FindQuery;
    use nestor_query::MatchExpr;

    fn entry_of(settings: Document) -> Result<Entry> {
        let query = doc! { "find": "c", "filter": doc! { "a": 1 }, "$db": "d" };
        entry("0".into(), doc! {}, query, settings)
    }

    fn hints(hints: Vec<Document>) -> Document {
        doc! { "indexHints": hints.into_iter().map(Value::from).collect::<Vec<_>>() }
    }

    fn on(coll: &str, indexes: Vec<Value>) -> Document {
        doc! { "ns": doc! { "db": "d", "coll": coll }, "allowedIndexes": indexes }
    }

    #[test]
    fn hints_are_for_their_collection() {
        let entry = entry_of(hints(vec![
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
        let code = |settings: Document| entry_of(settings).expect_err("bad settings").code().number();
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
        let rejecting = entry_of(doc! { "reject": true }).expect("good settings");
        assert_eq!(rejecting.check_rejection().expect_err("rejected").code().number(), 411);
    }
}
