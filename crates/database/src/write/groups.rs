//! Writes of many documents: groups of them, with a commit for each group.

use super::insert;
use super::target::{self, Selection};
use super::{Progress, Written, check_capped, check_writable};
use crate::observe::figures;
use crate::read;
use crate::statement::Statement;
use crate::statement::transaction::ReadView;
use nestor_exec::BoxOperator;
use nestor_exec::write::Writer;
use nestor_model::memory::Held;
use nestor_model::{Namespace, Result, bail};
use nestor_query::env::OpContext;
use nestor_storage::{Bytes, Collection, Snapshot, TreeId, View};
use std::sync::Arc;

/// Documents per commit at most; there are fewer when they are large ([`insert::GROUP_BYTES_MAX`]).
const GROUP_MAX: usize = 1_000;

/// Lets `work` change the selected documents of `ns`, and adds up what it did; `None` when there is no such collection.
///
/// What is read is the state at the start, so that no document is met twice however the writes move it; `work` is
/// given those that are still there and still selected. Within a transaction all of them are one group, as there is
/// one commit. `work` runs again after a conflict.
///
/// Errors: 175 when the collection is dropped meanwhile, those of reading and of `work`.
pub fn in_groups(
    statement: &Statement<'_>,
    ns: &Namespace,
    selection: &Selection<'_>,
    op: &OpContext,
    progress: &mut Progress,
    mut work: impl FnMut(&mut Writer<'_>, &mut Met<'_>) -> Result<Written>,
) -> Result<Option<Written>> {
    let Some(mut groups) = Groups::new(statement, ns, selection)? else {
        return Ok(None);
    };
    let mut total = Written::default();
    loop {
        let group = groups.next(statement, op)?;
        if group.is_empty() {
            return Ok(Some(total));
        }
        let written = statement.atomically(progress, |ws| {
            let Some(collection) = ws.catalog().by_id(groups.collection.id).cloned() else {
                bail!(
                    QueryPlanKilled,
                    "collection dropped: {ns} while its documents were written"
                );
            };
            let mut met = Met {
                selection,
                op,
                records: collection.records,
                rest: group.iter(),
            };
            let mut writer = Writer::new(ws, collection, op, statement.origin(&ns.db))?;
            let written = work(&mut writer, &mut met)?;
            statement.observe_keys(&writer);
            Ok(written)
        })?;
        total.matched += written.matched;
        total.modified += written.modified;
    }
}

/// The documents of a group, looked at again just before they are changed.
pub struct Met<'g> {
    selection: &'g Selection<'g>,
    op: &'g OpContext,
    records: TreeId,
    rest: std::slice::Iter<'g, (Bytes, Bytes)>,
}

impl<'g> Met<'g> {
    /// The next one that is still there and still selected: its record key, and its bytes as they are now.
    pub fn next(&mut self, writer: &Writer<'_>) -> Result<Option<(&'g Bytes, Bytes)>> {
        for (record, seen) in self.rest.by_ref() {
            let Some(now) = writer.ws.get(self.records, record)? else {
                continue;
            };
            if now == *seen || self.selection.query.filter.matches(now.document().as_doc(), self.op)? {
                return Ok(Some((record, now)));
            }
        }
        Ok(None)
    }
}

struct Groups {
    collection: Arc<Collection>,
    root: BoxOperator,
    snapshot: Option<Snapshot>,
    /// The documents of the group.
    held: Held,
}

impl Groups {
    fn new(statement: &Statement<'_>, ns: &Namespace, selection: &Selection<'_>) -> Result<Option<Self>> {
        let read = statement.current_view();
        let Some(collection) = read.view().catalog().get(ns).cloned() else {
            return Ok(None);
        };
        check_writable(&collection)?;
        check_capped(statement, &collection)?;
        let root = selection.plan(statement, &collection, None)?;
        statement.note_plan(&*root);
        Ok(Some(Self {
            root,
            collection,
            snapshot: read.snapshot().cloned(),
            held: Held::by_this_statement(),
        }))
    }

    /// The next group; empty at the end.
    fn next(&mut self, statement: &Statement<'_>, op: &OpContext) -> Result<Vec<(Bytes, Bytes)>> {
        let (read, count_max, bytes_max) = match &self.snapshot {
            Some(snapshot) => (ReadView::Snapshot(snapshot.clone()), GROUP_MAX, insert::GROUP_BYTES_MAX),
            None => (statement.current_view(), usize::MAX, usize::MAX),
        };
        let before = figures::so_far(&self.root);
        let mut batch = read::batch(statement, read.view(), op, true);
        let mut group = Vec::new();
        let mut bytes = 0;
        while group.len() < count_max && bytes < bytes_max {
            match target::next(&mut self.root, &mut batch)? {
                Some(found) => {
                    bytes += found.1.len();
                    self.held.set(bytes);
                    group.push(found);
                }
                None => break,
            }
        }
        statement.observe_since(&*self.root, before);
        Ok(group)
    }
}
