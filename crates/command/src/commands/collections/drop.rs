//! `drop`: removes a collection or view.

use super::DDL_FLAGS;
use crate::args::CollectionName;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_database::system_profile;
use nestor_database::uuid::Uuid;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_model::namespace::{ADMIN, LOCAL};
use nestor_model::{Namespace, RawWriter, Result, bail};
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("drop", "Removes a collection or view.")
    .flags(DDL_FLAGS.and(Flags::API_V1).and(Flags::DROPS))
    .needs(Needs::collection(Action::DropCollection))
    .audited(Audited::Attempts(audited::drop_collection))
    .runs(run);

crate::args! {
    /// Arguments of `drop`.
    pub struct DropArgs<'a>: "drop" command {
        "drop" => coll: CollectionName<'a>,
        "collectionUUID" => collection_uuid: Option<Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    write::check_uuid(context, &ns, args.collection_uuid)?;
    check_droppable(&ns)?;
    if ns.coll == system_profile::COLLECTION && context.service.profiler.level(&ns.db) > 0 {
        bail!(
            IllegalOperation,
            "turn off profiling before dropping system.profile collection"
        );
    }
    context.check_write_concern()?;
    let mut progress = Progress::default();
    let dropped = context.atomically(&mut progress, |ws| {
        let Some(collection) = ws.catalog().get(&ns).cloned() else {
            return Ok(None);
        };
        write::catalog::drop(context, ws, &ns)?;
        Ok(Some(collection))
    })?;
    if let Some(collection) = dropped {
        if !collection.is_view() {
            reply.append("nIndexesWas", collection.indexes.len() as i32);
        }
        reply.append_namespace("ns", &ns);
    }
    context.finish_concern(progress.last, reply, false)
}

fn check_droppable(ns: &Namespace) -> Result<()> {
    let kept = matches!(
        (ns.db.as_str(), ns.coll.as_str()),
        (LOCAL, "oplog.rs" | "system.replset") | (ADMIN, "system.version")
    );
    if kept {
        bail!(IllegalOperation, "can't drop system collection {ns}");
    }
    Ok(())
}
