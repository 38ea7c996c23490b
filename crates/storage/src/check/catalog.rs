//! Whether each tree belongs to one collection or index that exists.

use super::{CheckReport, Recovered};
use crate::base::BaseSnapshot;
use crate::catalog::entry;
use crate::{Result, TreeId, View};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn check(recovered: &Recovered, report: &mut CheckReport) -> Result<()> {
    let snapshot = &recovered.snapshot;
    let mut owners = BTreeMap::from([(TreeId::CATALOG, "the catalog".to_owned())]);
    let mut uuids = BTreeMap::new();
    for collection in snapshot.catalog().databases().flat_map(|db| db.collections()) {
        let ns = &collection.ns;
        if let Some(other) = uuids.insert(collection.uuid, ns.clone()) {
            report.fault(format!("{other} and {ns} have the same UUID"));
        }
        let indexes = collection
            .all_indexes()
            .map(|index| (index.tree, format!("index {} of {ns}", index.name)));
        for (tree, owner) in indexes.chain([(collection.records, format!("{ns}"))]) {
            if let Some(other) = owners.insert(tree, owner.clone()) {
                report.fault(format!("tree {} belongs to {other} and to {owner}", tree.0));
            }
        }
        for index in &collection.building {
            report.note(format!(
                "{ns}: index {} was being built; the next start drops it",
                index.name
            ));
        }
    }
    entries(recovered, report)?;
    // Dropped trees go from the base with the next checkpoint.
    let memtable = &snapshot.state.layers.active;
    let known: BTreeSet<TreeId> = owners.into_keys().chain(memtable.dropped_trees()).collect();
    let mut found = trees_in_base(&recovered.base)?;
    found.extend(memtable.tables().iter().map(|(tree, _)| *tree));
    for tree in found.difference(&known) {
        report.fault(format!("tree {} has entries and belongs to nothing", tree.0));
    }
    Ok(())
}

/// Every entry of the catalog's tree has to be of a kind that is known. What they hold recovery has decoded.
fn entries(recovered: &Recovered, report: &mut CheckReport) -> Result<()> {
    let mut cursor = recovered.snapshot.cursor(TreeId::CATALOG);
    let mut more = cursor.first()?;
    while more {
        let key = cursor.key();
        let is_known = entry::collection_ns(key).is_some()
            || entry::numbers_collection(key).is_some()
            || entry::filled_tree(key).is_some();
        if !is_known {
            report.fault(format!(
                "entry {:?} of the catalog does not decode",
                crate::Bytes::from(key)
            ));
        }
        more = cursor.next()?;
    }
    Ok(())
}

/// Trees with entries: from the first entry of one to the first entry behind it.
fn trees_in_base(base: &Arc<dyn BaseSnapshot>) -> Result<BTreeSet<TreeId>> {
    let mut found = BTreeSet::new();
    let mut cursor = base.clone().cursor();
    let mut more = cursor.first()?;
    while more && let Some(tree) = cursor.key().first_chunk().map(|tree| u32::from_be_bytes(*tree)) {
        if !found.insert(TreeId(tree)) {
            // Keys out of order lead back to it. That is told of the base's pages.
            break;
        }
        more = match tree.checked_add(1) {
            Some(next) => cursor.seek(&next.to_be_bytes())?,
            None => false,
        };
    }
    Ok(found)
}
