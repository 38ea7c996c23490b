//! `collStats`.

use crate::args::CollectionName;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::sizes::{collection_bytes, index_bytes};
use nestor_database::{names, oplog, write};
use nestor_model::{Document, RawWriter, Result, Value, bail, doc};
use nestor_storage::{Collection, Engine, View};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("collStats", "Sizes of a collection.")
    .aliases(&["collstats"])
    .flags(Flags::LONG.and(Flags::PRIMARY_READ))
    .needs(Needs::collection(Action::CollStats))
    .runs(run);

crate::args! {
    /// Arguments of `collStats`.
    pub struct CollStatsArgs<'a>: "collStats" command {
        "collStats" => coll: CollectionName<'a>,
        "scale" => scale: Option<i64>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CollStatsArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    let scale = args.scale.unwrap_or(1);
    if scale < 1 {
        bail!(
            BadValue,
            "BSON field 'collStats.scale' value must be >= 1, actual value '{scale}'"
        );
    }
    let snapshot = context.read_snapshot()?;
    let mut found = snapshot.catalog().get(&ns).cloned();
    if let Some((_, buckets)) = write::timeseries::found(&snapshot, &ns)? {
        found = Some(buckets);
    }
    if found.as_ref().is_some_and(|c| c.is_view()) {
        bail!(CommandNotSupportedOnView, "Namespace {ns} is a view, not a collection");
    }
    reply.append_namespace("ns", &ns);
    let stats = storage_stats(&context.service.engine, found.as_deref(), &snapshot, scale)?;
    for (name, value) in stats.iter() {
        reply.append(name, value);
    }
    Ok(())
}

/// Sizes as `collStats` and `$collStats` print them, in units of `scale` bytes.
pub fn storage_stats(
    engine: &Engine,
    collection: Option<&Collection>,
    view: &dyn View,
    scale: i64,
) -> Result<Document> {
    let Some(collection) = collection else {
        return Ok(doc! {
            "size": 0, "count": 0, "numOrphanDocs": 0, "storageSize": 0, "totalIndexSize": 0, "totalSize": 0,
            "indexSizes": Document::new(), "nindexes": 0, "scaleFactor": scale as i32,
        });
    };
    let (count, bytes) = oplog::sizes(engine, collection)?;
    let series = collection.buckets().map(|_| {
        doc! {
            "bucketsNs": collection.ns.to_string(),
            "bucketCount": number(count),
            "avgBucketSize": number(if count > 0 { bytes / count } else { 0 }),
        }
    });
    let mut sizes = Document::new();
    let mut total = 0i64;
    for index in &collection.indexes {
        let size = index_bytes(view, index)?;
        total += size;
        sizes.push(index.name.clone(), number(size / scale));
    }
    let mut out = doc! { "size": number(bytes / scale), "count": number(count) };
    if count > 0 {
        out.push("avgObjSize", number(bytes / count));
    }
    if let Some(series) = series {
        out.push("timeseries", series);
    }
    out.push("numOrphanDocs", 0);
    let stored = collection_bytes(view, collection, bytes)?;
    out.push("storageSize", number(stored / scale));
    out.push("freeStorageSize", 0);
    out.push("capped", collection.is_capped());
    if let Some(limits) = collection.options.capped {
        out.push("max", number(limits.documents_max.unwrap_or(0)));
        out.push("maxSize", number(limits.bytes_max / scale));
    }
    out.push("nindexes", collection.indexes.len() as i32);
    out.push("indexDetails", Document::new());
    let building = collection.building.iter().map(|index| Value::from(index.name.clone()));
    out.push("indexBuilds", building.collect::<Vec<_>>());
    out.push("totalIndexSize", number(total / scale));
    out.push("totalSize", number((stored + total) / scale));
    out.push("indexSizes", sizes);
    out.push("scaleFactor", scale as i32);
    Ok(out)
}

/// An int when it fits, a long otherwise.
pub fn number(value: i64) -> Value {
    match i32::try_from(value) {
        Ok(small) => Value::Int32(small),
        Err(_) => Value::Int64(value),
    }
}
