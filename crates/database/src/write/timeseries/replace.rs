//! A filled time-series collection takes the place of another, or of none.

use super::{buckets_of, create, found};
use crate::statement::Statement;
use crate::write::{Progress, create_entry};
use nestor_exec::write::oplog::Origin;
use nestor_model::{CollectionOptions, Namespace, Result, bail, doc};
use nestor_storage::{View, WriteSet};

/// The time-series collection at `temporary` becomes that at `target`.
///
/// Errors: 26 when it is gone, 48 when something else has taken its place.
pub fn by_filled(
    statement: &Statement<'_>,
    temporary: &Namespace,
    target: &Namespace,
    progress: &mut Progress,
) -> Result<()> {
    statement.atomically(progress, |ws| {
        let Some((view, buckets)) = found(ws, temporary)? else {
            bail!(NamespaceNotFound, "the collection {temporary} is gone");
        };
        if ws.catalog().get(target).is_some() {
            if found(ws, target)?.is_none() {
                bail!(NamespaceExists, "a collection or view has been made meanwhile: {target}");
            }
            drop_logged(ws, target)?;
            drop_logged(ws, &buckets_of(target))?;
        }
        drop_logged(ws, temporary)?;
        let renamed = ws.rename_collection(&buckets.ns, &buckets_of(target), false)?;
        let command = doc! {
            "renameCollection": buckets.ns.to_string(), "to": renamed.ns.to_string(), "stayTemp": false, "dropTarget": false,
        };
        ws.oplog(Origin::default().command(&target.db, Some(renamed.uuid), &command, crate::clock::now_ms()))?;
        let mut listed = view.options.listed().clone();
        if let Some(series) = view.timeseries() {
            create::as_view(target, series, &mut listed);
        }
        let (uuid, options) = (statement.database.new_uuid(), CollectionOptions::parse(listed)?);
        ws.create_collection(target, uuid, options.clone())?;
        Ok(ws.oplog(create_entry(target, uuid, &options))?)
    })
}

fn drop_logged(ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let dropped = ws.drop_collection(ns)?;
    let mut before = doc! { "numRecords": 0 };
    if let Some(view) = &dropped.options.view {
        before.push("viewOn", view.on.as_str());
    }
    let entry = Origin::default().command_with(
        &ns.db,
        Some(dropped.uuid),
        &doc! { "drop": ns.coll.clone() },
        Some(&before),
        crate::clock::now_ms(),
    );
    Ok(ws.oplog(entry)?)
}
