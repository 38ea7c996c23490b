//! Collections and indexes made and dropped within a write set, with their oplog entries.

use super::create_entry;
use super::timeseries;
use crate::index_build;
use crate::statement::Statement;
use crate::uuid::Uuid;
use nestor_exec::write::oplog::Origin;
use nestor_model::{CollectionOptions, Document, IndexSpec, Namespace, Result, Value, bail, doc};
use nestor_storage::{Collection, Index, View, WriteSet};

/// Makes a collection.
///
/// Errors: 48 when there is one, 73 for its name.
pub fn create(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    uuid: [u8; 16],
    options: &CollectionOptions,
) -> Result<()> {
    ws.create_collection(ns, uuid, options.clone())?;
    if statement.origin(&ns.db).is_some() {
        ws.oplog(create_entry(ns, uuid, options))?;
    }
    Ok(())
}

/// Makes an index, and fills it at once.
///
/// Errors: those of [`index_build::at_once`].
pub fn create_index(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace, spec: &IndexSpec) -> Result<()> {
    let index = index_build::at_once(statement, ws, ns, spec.clone())?;
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    index_build::log(statement, ws, &collection, &index)
}

/// Drops an index. One that is being built has no oplog entry: nothing has told others of it.
///
/// Errors: those of the catalog.
pub fn drop_index(statement: &Statement<'_>, ws: &mut WriteSet, collection: &Collection, index: &Index) -> Result<()> {
    ws.drop_index(collection.id, index.id)?;
    let is_known = collection.building_by_id(index.id).is_none();
    if is_known && statement.origin(&collection.ns.db).is_some() {
        let command: Document = doc! { "dropIndexes": collection.ns.coll.clone(), "index": index.name.clone() };
        let before = Document::from(index.spec.listed().clone());
        let entry = Origin::default().command_with(
            &collection.ns.db,
            Some(collection.uuid),
            &command,
            Some(&before),
            crate::clock::now_ms(),
        );
        ws.oplog(entry)?;
    }
    Ok(())
}

/// Drops what is at `ns`; of a time-series collection and its buckets neither stays without the other.
///
/// Errors: 26 when there is nothing.
pub fn drop(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let other = ws.catalog().get(ns).and_then(timeseries::other_of);
    if let Some(other) = other.filter(|other| ws.catalog().get(other).is_some()) {
        drop_alone(statement, ws, &other)?;
    }
    drop_alone(statement, ws, ns)
}

/// Drops all that a database has.
///
/// Errors: those of the catalog.
pub fn drop_database(statement: &Statement<'_>, ws: &mut WriteSet, db: &str) -> Result<()> {
    let Some(database) = ws.catalog().database(db).cloned() else {
        return Ok(());
    };
    for collection in database.collections() {
        let ns = Namespace::new(db, collection.ns.coll.clone());
        // Buckets go with their time-series collection.
        if ws.catalog().get(&ns).is_some() {
            drop(statement, ws, &ns)?;
        }
    }
    super::begun::forget_database(statement, ws, db)?;
    let entry = Origin::default().command(db, None, &doc! { "dropDatabase": 1 }, crate::clock::now_ms());
    Ok(ws.oplog(entry)?)
}

fn drop_alone(statement: &Statement<'_>, ws: &mut WriteSet, ns: &Namespace) -> Result<()> {
    let (documents, _) = match ws.catalog().get(ns) {
        Some(collection) => ws.counts(collection),
        None => (0, 0),
    };
    let collection = ws.drop_collection(ns)?;
    if statement.origin(&ns.db).is_some() {
        let mut before = doc! { "numRecords": documents };
        if let Some(view) = &collection.options.view {
            // It tells those who follow the log that no collection was dropped.
            before.push("viewOn", view.on.as_str());
        }
        let entry = Origin::default().command_with(
            &ns.db,
            Some(collection.uuid),
            &doc! { "drop": ns.coll.clone() },
            Some(&before),
            crate::clock::now_ms(),
        );
        ws.oplog(entry)?;
    }
    Ok(())
}

/// Replaces the validator of a collection.
///
/// Errors: those of options that mean nothing.
pub fn set_validator(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    validator: &Document,
) -> Result<()> {
    let mut changes = Document::new();
    changes.set("validator", validator.clone());
    changes.set("validationLevel", "strict");
    changes.set("validationAction", "error");
    set_options(statement, ws, collection, &changes)
}

/// Replaces the row security of a collection.
///
/// Errors: those of options that mean nothing.
pub fn set_row_security(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    row_security: &Document,
) -> Result<()> {
    let mut changes = Document::new();
    changes.set("rowSecurity", row_security.clone());
    set_options(statement, ws, collection, &changes)
}

/// Sets options of a collection, as `collMod` does.
fn set_options(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    changes: &Document,
) -> Result<()> {
    let mut options = collection.options.listed().clone();
    let mut command = doc! { "collMod": collection.ns.coll.clone() };
    for to in [&mut options, &mut command] {
        for (name, value) in changes.iter() {
            to.set(name, value.to_value());
        }
    }
    ws.set_options(collection.id, CollectionOptions::parse(options)?)?;
    if statement.origin(&collection.ns.db).is_some() {
        let mut old = doc! { "uuid": Uuid(collection.uuid).to_value() };
        for (name, value) in collection.options.shown().iter() {
            old.push(name, value);
        }
        let before = doc! { "collectionOptions_old": old };
        let now_ms = crate::clock::now_ms();
        let db = &collection.ns.db;
        let entry = Origin::default().command_with(db, Some(collection.uuid), &command, Some(&before), now_ms);
        ws.oplog(entry)?;
    }
    Ok(())
}

/// Moves a collection to another namespace; what is there is dropped if `drop_target`. `is_temporary` is what the oplog says of it.
///
/// Errors: 26, 48, 73, and others of names.
pub fn rename(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    source: &Collection,
    to: &Namespace,
    (drop_target, is_temporary): (bool, bool),
) -> Result<()> {
    let from = &source.ns;
    let target = ws.catalog().get(to).cloned();
    ws.rename_collection(from, to, drop_target)?;
    if statement.origin(&to.db).is_some() {
        let dropped = target.map_or(Value::Bool(false), |target| Uuid(target.uuid).to_value());
        let mut command = doc! { "renameCollection": from.to_string(), "to": to.to_string(), "stayTemp": is_temporary };
        command.push("dropTarget", dropped);
        let entry = Origin::default().command(&from.db, Some(source.uuid), &command, crate::clock::now_ms());
        ws.oplog(entry)?;
    }
    Ok(())
}
