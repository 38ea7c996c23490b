//! `listCollections`.

use super::options::uuid_value;
use crate::args::{NonNegative, StrictBool};
use crate::batch::{self, Opening};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::{self, Needs};
use crate::privileges;
use crate::spec::CommandSpec;
use nestor_database::read;
use nestor_exec::ops::Values;
use nestor_model::{Document, Namespace, RawDoc, RawWriter, Result, ValueRef, doc};
use nestor_query::matcher::Context as Place;
use nestor_storage::{Collection, View};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("listCollections", "Collections and views of a database.")
    .flags(Flags::API_V1.and(Flags::PRIMARY_READ))
    .needs(Needs::Arguments(needs::list_collections))
    .runs(run);

crate::args! {
    /// Arguments of `listCollections`.
    pub struct ListCollectionsArgs<'a>: "listCollections" command {
        "listCollections" => marker: Option<ValueRef<'a>>,
        "cursor" => cursor: Option<RawDoc<'a>>,
        "filter" => filter: Option<RawDoc<'a>>,
        "nameOnly" => name_only: StrictBool,
        "authorizedCollections" => authorized_collections: StrictBool,
    }
}

crate::args! {
    /// `cursor` of commands that list things.
    pub struct ListCursor: "cursor" nested {
        "batchSize" => batch_size: Option<NonNegative>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ListCollectionsArgs::parse(context.body, context.sequences)?;
    let batch_size = batch_size(args.cursor)?;
    let (op, scope) = context.operation(None)?;
    let mut scope = scope.without_clock();
    let filter = read::parse_filter_in(args.filter, &mut scope, Place::Validator)?;
    let snapshot = context.read_snapshot()?;
    let grants = privileges::grants(context).filter(|_| args.authorized_collections.0);
    let mut rows = Vec::new();
    if let Some(database) = snapshot.catalog().database(context.db()) {
        for collection in database.collections() {
            if grants.is_some_and(|grants| grants.on_collection(&collection.ns).is_empty()) {
                continue;
            }
            let row = describe(collection, args.name_only.0);
            if filter.matches(row.as_ref(), &op)? {
                rows.push(row);
            }
        }
    }
    let opening = Opening {
        batch_size,
        ..Opening::of_values(
            Namespace::new(context.db(), "$cmd.listCollections"),
            Box::new(Values::new(rows)),
            op,
        )
    };
    batch::first(context, &snapshot, opening, reply)
}

/// Reads `cursor: {batchSize}`.
pub(crate) fn batch_size(cursor: Option<RawDoc<'_>>) -> Result<Option<u64>> {
    match cursor {
        Some(cursor) => Ok(ListCursor::parse(cursor, &[])?.batch_size.map(|n| n.0 as u64)),
        None => Ok(None),
    }
}

/// A collection or view as listCollections shows it.
pub(crate) fn describe(collection: &Collection, name_only: bool) -> Document {
    let kind = match collection.is_view() {
        true if collection.timeseries().is_some() => "timeseries",
        true => "view",
        false => "collection",
    };
    let mut row = doc! { "name": collection.ns.coll.clone(), "type": kind };
    if name_only {
        return row;
    }
    let mut options = collection.options.shown();
    if collection.timeseries().is_some() {
        // How it is a view is nobody's concern.
        options.remove("viewOn");
        options.remove("pipeline");
    }
    row.push("options", options);
    let is_read_only = collection.is_view() && collection.timeseries().is_none();
    let mut info = doc! { "readOnly": is_read_only };
    if !collection.is_view() {
        info.push("uuid", uuid_value(collection.uuid));
    }
    row.push("info", info);
    if let Some(index) = collection.id_index() {
        row.push("idIndex", index.spec.listed().clone());
    }
    row
}
