//! `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex` and `listSearchIndexes`.
//!
//! An index is a definition in the catalog entry of its collection; what it holds is made when it is asked
//! ([`nestor_exec::search`]), so that it can be asked at once.

use crate::args::CollectionName;
use crate::batch::{self, Opening};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::write::Progress;
use nestor_database::{clock, names};
use nestor_exec::ops::Values;
use nestor_exec::search::{definition, listed};
use nestor_model::{
    DocRef, Error, ErrorCode, Namespace, ObjectId, RawDoc, RawWriter, Result, SearchIndex, Str, Timestamp, Value, bail,
    doc,
};
use nestor_search::IndexKind;
use nestor_storage::{Collection, Lsn, View};

/// Most search indexes of a collection.
const INDEXES_MAX: usize = 64;
/// The name of an index that is given none.
const DEFAULT_NAME: &str = "default";

const CHANGES: Flags = Flags::WRITE.and(Flags::LONG).and(Flags::WRITE_CONCERN);

/// `createSearchIndexes`.
pub const CREATE: CommandSpec = Facts::collection("createSearchIndexes", "Makes search indexes of a collection.")
    .flags(CHANGES)
    .needs(Needs::collection(Action::CreateSearchIndexes))
    .runs(create);

/// `updateSearchIndex`.
pub const UPDATE: CommandSpec = Facts::collection("updateSearchIndex", "Gives a search index another definition.")
    .flags(CHANGES)
    .needs(Needs::collection(Action::UpdateSearchIndex))
    .runs(update);

/// `dropSearchIndex`.
pub const DROP: CommandSpec = Facts::collection("dropSearchIndex", "Removes a search index.")
    .flags(CHANGES)
    .needs(Needs::collection(Action::DropSearchIndex))
    .runs(drop_index);

/// `listSearchIndexes`.
pub const LIST: CommandSpec = Facts::collection("listSearchIndexes", "Search indexes of a collection.")
    .flags(Flags::PRIMARY_READ)
    .needs(Needs::collection(Action::ListSearchIndexes))
    .runs(list);

crate::args! {
    struct CreateArgs<'a>: "createSearchIndexes" command {
        "createSearchIndexes" => coll: CollectionName<'a>,
        "indexes" => indexes: Vec<RawDoc<'a>>,
    }
}

crate::args! {
    struct New<'a>: "createSearchIndexes.indexes" nested {
        "name" => name: Option<&'a str>,
        "type" => kind: Option<&'a str>,
        "definition" => definition: RawDoc<'a>,
    }
}

crate::args! {
    struct UpdateArgs<'a>: "updateSearchIndex" command {
        "updateSearchIndex" => coll: CollectionName<'a>,
        "id" => id: Option<&'a str>,
        "name" => name: Option<&'a str>,
        "definition" => definition: RawDoc<'a>,
    }
}

crate::args! {
    struct DropArgs<'a>: "dropSearchIndex" command {
        "dropSearchIndex" => coll: CollectionName<'a>,
        "id" => id: Option<&'a str>,
        "name" => name: Option<&'a str>,
    }
}

crate::args! {
    struct ListArgs<'a>: "listSearchIndexes" command {
        "listSearchIndexes" => coll: CollectionName<'a>,
        "id" => id: Option<&'a str>,
        "name" => name: Option<&'a str>,
    }
}

fn create(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CreateArgs::parse(context.body, context.sequences)?;
    let new: Vec<SearchIndex> = args
        .indexes
        .iter()
        .map(|index| parse_new(*index))
        .collect::<Result<_>>()?;
    if new.is_empty() {
        bail!(BadValue, "createSearchIndexes needs at least one index");
    }
    let last = change(context, "createSearchIndexes", args.coll, |collection, indexes| {
        for index in &new {
            definition(index)?;
            if indexes.iter().any(|there| there.name == index.name) {
                bail!(
                    IndexAlreadyExists,
                    "the collection {} has a search index of the name '{}'",
                    collection.ns,
                    index.name
                );
            }
            indexes.push(index.clone());
        }
        if indexes.len() > INDEXES_MAX {
            bail!(
                CannotCreateIndex,
                "a collection has at most {INDEXES_MAX} search indexes"
            );
        }
        Ok(())
    })?;
    let created = |index: &SearchIndex| Value::from(doc! { "id": index.id.to_string(), "name": index.name.clone() });
    let created: Value = new.iter().map(created).collect::<Vec<_>>().into();
    reply.append("indexesCreated", created.as_ref());
    context.finish_concern(last, reply, false)
}

/// Errors: those of its fields and of its type.
fn parse_new(index: RawDoc<'_>) -> Result<SearchIndex> {
    let new = New::parse(index, &[])?;
    let kind = match new.kind {
        None => IndexKind::Search,
        Some(name) => match IndexKind::named(name) {
            Some(kind) => kind,
            None => bail!(
                BadValue,
                "Enumeration value '{name}' for field 'createSearchIndexes.indexes.type' is not a valid value."
            ),
        },
    };
    let name = new.name.unwrap_or(DEFAULT_NAME);
    if name.is_empty() {
        bail!(BadValue, "the name of a search index must not be empty");
    }
    Ok(SearchIndex {
        name: Str::from(name),
        id: ObjectId::generate(clock::now_ms()),
        kind: kind.name().into(),
        version: 0,
        definition: DocRef::Raw(new.definition).to_document(),
    })
}

fn update(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = UpdateArgs::parse(context.body, context.sequences)?;
    let which = Which::one("updateSearchIndex", args.id, args.name)?;
    let last = change(context, "updateSearchIndex", args.coll, |collection, indexes| {
        let Some(index) = indexes.iter_mut().find(|index| index.is(which.id, which.name)) else {
            return Err(which.not_found(&collection.ns));
        };
        index.definition = DocRef::Raw(args.definition).to_document();
        index.version += 1;
        definition(index).map(drop)
    })?;
    context.finish_concern(last, reply, false)
}

fn drop_index(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropArgs::parse(context.body, context.sequences)?;
    let which = Which::one("dropSearchIndex", args.id, args.name)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    if context.service.engine.snapshot().catalog().get(&ns).is_none() {
        // Drivers take 26 for success.
        return Err(which.not_found(&ns));
    }
    let last = change(context, "dropSearchIndex", args.coll, |collection, indexes| {
        let before = indexes.len();
        indexes.retain(|index| !index.is(which.id, which.name));
        match indexes.len() == before {
            true => Err(which.not_found(&collection.ns)),
            false => Ok(()),
        }
    })?;
    context.finish_concern(last, reply, false)
}

/// Which of a collection's search indexes a command is about.
struct Which<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
}

impl<'a> Which<'a> {
    /// The one that a command names, by its id or by its name.
    ///
    /// Error: 72 when it names both or none.
    fn one(command: &str, id: Option<&'a str>, name: Option<&'a str>) -> Result<Self> {
        match id.is_some() == name.is_some() {
            true => bail!(InvalidOptions, "{command} takes either 'id' or 'name'"),
            false => Ok(Self { id, name }),
        }
    }

    fn not_found(&self, ns: &Namespace) -> Error {
        let which = self.name.or(self.id).unwrap_or_default();
        let why = format!("Search index '{which}' not found in {ns}");
        Error::new(ErrorCode::IndexNotFound, why)
    }
}

/// Changes the search indexes of a collection; the commit.
///
/// Errors: 26 without the collection, 166 on views, 13 for who does not see it plain, those of `work`.
fn change(
    context: &mut Context<'_>,
    command: &str,
    coll: CollectionName<'_>,
    work: impl Fn(&Collection, &mut Vec<SearchIndex>) -> Result<()>,
) -> Result<Option<(Lsn, Timestamp)>> {
    let ns = names::collection(context.db(), coll.0)?;
    context.check_write_concern()?;
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| {
        let Some(collection) = ws.catalog().get(&ns).cloned() else {
            bail!(NamespaceNotFound, "{command}: Collection '{ns}' does not exist.");
        };
        if collection.is_view() {
            bail!(
                CommandNotSupportedOnView,
                "search indexes on views and time-series collections are not supported: {ns}"
            );
        }
        if ns.is_oplog() || ns.coll.starts_with("system.") {
            bail!(InvalidNamespace, "search indexes on {ns} are not supported");
        }
        context.check_plain(&collection, "its indexes are changed by who sees it plain")?;
        let mut indexes = collection.options.search_indexes.clone();
        work(&collection, &mut indexes)?;
        ws.set_options(collection.id, collection.options.with_search_indexes(&indexes)?)?;
        Ok(())
    })?;
    Ok(progress.last)
}

fn list(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ListArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    let snapshot = context.read_snapshot()?;
    let listed = listed(&snapshot, &ns, args.id, args.name);
    let (op, _) = context.operation(None)?;
    let opening = Opening::of_values(ns, Box::new(Values::new(listed)), op);
    batch::first(context, &snapshot, opening, reply)
}
