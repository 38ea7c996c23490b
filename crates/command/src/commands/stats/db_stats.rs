//! `dbStats`.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::sizes;
use nestor_model::{RawWriter, Result, ValueRef, bail};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("dbStats", "Sizes of a database.")
    .aliases(&["dbstats"])
    .flags(Flags::LONG.and(Flags::PRIMARY_READ))
    .needs(Needs::database(Action::DbStats))
    .runs(run);

crate::args! {
    /// Arguments of `dbStats`.
    pub struct DbStatsArgs<'a>: "dbStats" command {
        "dbStats" => marker: Option<ValueRef<'a>>,
        "scale" => scale: Option<i64>,
        "freeStorage" => free_storage: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DbStatsArgs::parse(context.body, context.sequences)?;
    let scale = args.scale.unwrap_or(1);
    if scale < 1 {
        bail!(
            BadValue,
            "BSON field 'dbStats.scale' value must be >= 1, actual value '{scale}'"
        );
    }
    let snapshot = context.read_snapshot()?;
    let (mut collections, mut views, mut objects, mut data, mut storage, mut indexes, mut index_bytes) =
        (0i64, 0i64, 0i64, 0i64, 0i64, 0i64, 0i64);
    if let Some(database) = snapshot.catalog().database(context.db()) {
        for collection in database.collections() {
            if collection.is_view() {
                views += 1;
                continue;
            }
            collections += 1;
            let (documents, bytes) = nestor_database::oplog::sizes(&context.service.engine, collection)?;
            objects += documents;
            data += bytes;
            storage += sizes::collection_bytes(&snapshot, collection, bytes)?;
            indexes += collection.indexes.len() as i64;
            for index in &collection.indexes {
                index_bytes += sizes::index_bytes(&snapshot, index)?;
            }
        }
    }
    let scaled = |bytes: i64| bytes as f64 / scale as f64;
    reply.append("db", context.db());
    reply.append("collections", collections);
    reply.append("views", views);
    reply.append("objects", objects);
    reply.append(
        "avgObjSize",
        if objects > 0 { data as f64 / objects as f64 } else { 0.0 },
    );
    reply.append("dataSize", scaled(data));
    reply.append("storageSize", scaled(storage));
    if args.free_storage {
        reply.append("freeStorageSize", 0.0);
    }
    reply.append("indexes", indexes);
    reply.append("indexSize", scaled(index_bytes));
    if args.free_storage {
        reply.append("indexFreeStorageSize", 0.0);
        reply.append("totalFreeStorageSize", 0.0);
    }
    reply.append("totalSize", scaled(storage + index_bytes));
    reply.append("scaleFactor", scale);
    if let Some(room) = context.service.engine.room() {
        reply.append("fsUsedSize", room.used as f64 / scale as f64);
        reply.append("fsTotalSize", room.total as f64 / scale as f64);
    }
    Ok(())
}
