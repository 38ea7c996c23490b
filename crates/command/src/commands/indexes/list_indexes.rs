//! `listIndexes`.

use super::{shown, timeseries};
use crate::batch::{self, Opening};
use crate::commands::collections::list_collections::batch_size;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::read::Target;
use nestor_database::rights::Action;
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_exec::ops::Values;
use nestor_model::{Document, RawDoc, RawWriter, Result, TimeSeries, bail, doc};
use nestor_storage::{Collection, View};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("listIndexes", "Indexes of a collection.")
    .flags(Flags::API_V1.and(Flags::PRIMARY_READ))
    .needs(Needs::collection(Action::ListIndexes))
    .runs(run);

crate::args! {
    /// Arguments of `listIndexes`.
    pub struct ListIndexesArgs<'a>: "listIndexes" command {
        "listIndexes" => target: Target<'a>,
        "cursor" => cursor: Option<RawDoc<'a>>,
        "includeBuildUUIDs" => include_build_uuids: bool,
        "includeIndexBuildInfo" => include_index_build_info: bool,
        "isTimeseriesNamespace" => is_timeseries_namespace: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ListIndexesArgs::parse(context.body, context.sequences)?;
    let batch_size = batch_size(args.cursor)?;
    if args.include_build_uuids && args.include_index_build_info {
        bail!(
            InvalidOptions,
            "'includeBuildUUIDs' and 'includeIndexBuildInfo' cannot both be true"
        );
    }
    let snapshot = context.read_snapshot()?;
    let ns = context.namespace(&snapshot, args.target)?;
    let Some(collection) = snapshot.catalog().get(&ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    let (collection, is_series) = match write::timeseries::found(&snapshot, &ns)? {
        Some((_, buckets)) => (buckets, true),
        None => (collection, false),
    };
    if collection.is_view() {
        bail!(CommandNotSupportedOnView, "Namespace {ns} is a view, not a collection");
    }
    let mut specs = match collection.buckets().filter(|_| is_series) {
        Some(series) => measured(&collection, series),
        None => specs(&collection),
    };
    if args.include_index_build_info {
        specs = specs.into_iter().map(|spec| doc! { "spec": spec }).collect();
    }
    for index in &collection.building {
        let mut spec = shown(&index.spec);
        // A build whose command has not listed it yet has no UUID to show.
        let build = context.service.index_builds.get(index.id);
        let uuid = build.map(|build| Uuid(build.uuid).to_value());
        if args.include_index_build_info {
            spec = doc! { "spec": spec };
            spec.push("indexBuildInfo", doc! { "buildUUID": uuid });
        } else if args.include_build_uuids {
            spec = doc! { "spec": spec };
            spec.push("buildUUID", uuid);
        }
        specs.push(spec);
    }
    let (op, _) = context.operation(None)?;
    let opening = Opening {
        batch_size,
        ..Opening::of_values(ns, Box::new(Values::new(specs)), op)
    };
    batch::first(context, &snapshot, opening, reply)
}

/// The indexes of the buckets of a time-series collection, as indexes of its measurements.
fn measured(buckets: &Collection, series: &TimeSeries) -> Vec<Document> {
    buckets
        .indexes
        .iter()
        .filter_map(|index| timeseries::listed(&index.spec, series))
        .collect()
}

/// The specifications of built indexes that clients see, that of a clustered collection's key among them.
pub(crate) fn specs(collection: &Collection) -> Vec<Document> {
    let mut out = Vec::new();
    if let Some(clustered) = collection
        .options
        .clustered
        .as_ref()
        .filter(|_| collection.buckets().is_none())
    {
        let mut spec = clustered.spec.clone();
        if let Some(collation) = &collection.options.collation {
            spec.set("collation", collation.clone());
        }
        spec.set("clustered", true);
        out.push(spec);
    }
    out.extend(collection.indexes.iter().map(|index| shown(&index.spec)));
    out
}
