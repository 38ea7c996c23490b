//! `dropIndexes`.

use crate::args::CollectionName;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_model::number::safe_i64;
use nestor_model::{DocRef, RawWriter, Result, ValueRef, bail, doc, values_equal};
use nestor_planner::timeseries::key_of_buckets;
use nestor_storage::{Collection, Index, View};
use std::sync::Arc;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("dropIndexes", "Removes indexes.")
    .aliases(&["deleteIndexes"])
    .flags(
        Flags::API_V1
            .and(Flags::WRITE)
            .and(Flags::LONG)
            .and(Flags::WRITE_CONCERN),
    )
    .needs(Needs::collection(Action::DropIndex))
    .audited(Audited::Attempts(audited::drop_indexes))
    .runs(run);

crate::args! {
    /// Arguments of `dropIndexes`.
    pub struct DropIndexesArgs<'a>: "dropIndexes" command {
        "dropIndexes" => coll: CollectionName<'a>,
        "index" => index: ValueRef<'a>,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropIndexesArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    context.check_write_concern()?;
    let mut progress = Progress::default();
    let all = matches!(args.index, ValueRef::String("*"));
    let was = context.atomically(&mut progress, |ws| {
        let Some(mut collection) = ws.catalog().get(&ns).cloned() else {
            bail!(NamespaceNotFound, "ns not found {ns}");
        };
        let mut of_buckets = None;
        if let Some((_, buckets)) = write::timeseries::found(ws, &ns)? {
            collection = buckets;
            if let (Some(series), ValueRef::Document(key)) = (collection.buckets(), args.index) {
                of_buckets = Some(key_of_buckets(key, series)?);
            }
        }
        write::check_writable(&collection)?;
        let which = match &of_buckets {
            Some(key) => ValueRef::Document(key.as_ref()),
            None => args.index,
        };
        for index in select(&collection, which)? {
            write::catalog::drop_index(context, ws, &collection, &index)?;
        }
        Ok(collection.all_indexes().count())
    })?;
    reply.append("nIndexesWas", was as i32);
    if all {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    context.finish_concern(progress.last, reply, false)
}

/// The indexes that the argument names, those being built included: their builds end with 276.
fn select(collection: &Collection, which: ValueRef<'_>) -> Result<Vec<Arc<Index>>> {
    match which {
        ValueRef::String("*") => Ok(collection.all_indexes().filter(|i| !i.is_id()).cloned().collect()),
        ValueRef::Array(names) if names.len() == 1 && matches!(names.get(0), Some(ValueRef::String("*"))) => {
            select(collection, ValueRef::String("*"))
        }
        ValueRef::String(name) => Ok(vec![by_name(collection, name)?]),
        ValueRef::Array(names) => names
            .iter()
            .map(|name| match name {
                ValueRef::String(name) => by_name(collection, name),
                other => bail!(
                    TypeMismatch,
                    "dropIndexes {} ({}) failed: the list of names holds a value of type {}",
                    collection.ns,
                    collection.id.0,
                    other.bson_type().alias()
                ),
            })
            .collect(),
        ValueRef::Document(pattern) => {
            let found: Vec<_> = collection
                .all_indexes()
                .filter(|i| values_equal(ValueRef::Document(i.key_pattern.as_ref()), ValueRef::Document(pattern)))
                .cloned()
                .collect();
            match found.as_slice() {
                [] if collection.is_clustered() && is_id_pattern(pattern) => {
                    bail!(5979800, "It is illegal to drop the clusteredIndex")
                }
                [] => bail!(IndexNotFound, "can't find index with key: {pattern:?}"),
                [index] if index.is_id() => bail!(InvalidOptions, "cannot drop _id index"),
                [_] => Ok(found),
                _ => bail!(
                    AmbiguousIndexKeyPattern,
                    "{} indexes found for key: {pattern:?}, identify by name instead.",
                    found.len()
                ),
            }
        }
        other => bail!(
            TypeMismatch,
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, object]'",
            other.bson_type().alias()
        ),
    }
}

fn is_id_pattern(pattern: DocRef<'_>) -> bool {
    pattern.iter().count() == 1 && pattern.get("_id").and_then(safe_i64) == Some(1)
}

fn by_name(collection: &Collection, name: &str) -> Result<Arc<Index>> {
    if name == "_id_" && collection.is_clustered() {
        bail!(5979800, "It is illegal to drop the clusteredIndex");
    }
    match collection.all_indexes().find(|index| index.name == name) {
        Some(index) if index.is_id() => bail!(InvalidOptions, "cannot drop _id index"),
        Some(index) => Ok(index.clone()),
        None => bail!(IndexNotFound, "index not found with name [{name}]"),
    }
}
