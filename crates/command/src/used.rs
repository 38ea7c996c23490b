//! The collections that a command of a transaction uses, told before it runs.

use crate::commands::query::prepare::{self, Command};
use crate::context::Context;
use crate::facts::Flags;
use nestor_database::operation::Access;
use nestor_model::{RawDoc, ValueRef};
use nestor_storage::{CollectionId, View};

/// Stages by which a pipeline may reach other collections.
const REACHING: &[&str] = &["$facet", "$graphLookup", "$lookup", "$merge", "$out", "$unionWith"];

/// The collections and views of `view` that the command reads or writes. One that is not there is left out: nobody can change it.
pub fn collections(context: &Context<'_>, view: &dyn View) -> Vec<CollectionId> {
    if context.spec.flags.has(Flags::ENDS_TXN) {
        return Vec::new();
    }
    let catalog = view.catalog();
    if let Some((db, coll)) = context.named_collection()
        && !reaches_further(context.body)
    {
        match catalog.collection(db, coll) {
            None => return Vec::new(),
            Some(found) if !found.is_view() => return vec![found.id],
            Some(_) => {}
        }
    }
    let command = Command {
        facts: context.spec,
        body: context.body,
        sequences: context.sequences,
    };
    // A command that cannot be prepared fails when it runs.
    let intent = prepare::intent(context, view, command).ok().flatten();
    let Some(access) = intent.and_then(|intent| Access::of(&intent, view).ok()) else {
        return Vec::new();
    };
    let named = access.reads.iter().chain(&access.writes);
    let mut ids: Vec<_> = named.filter_map(|ns| Some(catalog.get(ns)?.id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Whether a pipeline may read more than the collection that the command names.
fn reaches_further(body: RawDoc<'_>) -> bool {
    let Some(pipeline) = body.get("pipeline").and_then(ValueRef::as_array) else {
        return false;
    };
    let mut stages = pipeline.iter().filter_map(ValueRef::as_document);
    stages.any(|stage| stage.iter().any(|(name, _)| REACHING.contains(&name)))
}
