//! Deleting what a filter selects.

use super::target::{Groups, Selection};
use super::{Progress, check_writable};
use crate::Context;
use nestor_exec::write::Writer;
use nestor_model::{Namespace, RawDocBuf, Result};
use nestor_query::env::OpContext;
use nestor_storage::View;

/// Documents per commit of a delete of many.
const GROUP_MAX: usize = 1_000;

/// Deletes the first selected document and returns it.
pub fn delete_one(
    context: &Context<'_>,
    ns: &Namespace,
    selection: &Selection,
    op: &OpContext,
    stmt_id: Option<i32>,
    progress: &mut Progress,
) -> Result<Option<RawDocBuf>> {
    context.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(None);
        };
        check_writable(&collection)?;
        let Some((record, old)) = selection.first(context, ws, &collection, op)? else {
            return Ok(None);
        };
        let origin = context.origin(&ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        writer.delete(&record, old.document(), stmt_id)?;
        context.observe_keys(&writer);
        Ok(Some(old.document().to_buf()))
    })
}

/// Deletes all selected documents, in groups with a commit each; returns how many.
pub fn delete_many(
    context: &Context<'_>,
    ns: &Namespace,
    selection: &Selection,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<i64> {
    let Some(mut groups) = Groups::new(context, ns, selection)? else {
        return Ok(0);
    };
    let mut deleted = 0i64;
    loop {
        let group = groups.next(context, op, GROUP_MAX)?;
        if group.is_empty() {
            return Ok(deleted);
        }
        deleted += context.atomically(progress, |ws| {
            // A collection dropped meanwhile ends the operation.
            let Some(collection) = ws.catalog().by_id(groups.collection.id).cloned() else {
                return Ok(0);
            };
            let records = collection.records;
            let origin = context.origin(&ns.db);
            let mut writer = Writer::new(ws, collection, op, origin)?;
            let mut count = 0;
            for (record, seen) in &group {
                let Some(now) = writer.ws.get(records, record)? else {
                    continue;
                };
                if now != *seen && !selection.filter.matches(now.document().as_doc(), op)? {
                    continue;
                }
                writer.delete(record, now.document(), None)?;
                count += 1;
            }
            context.observe_keys(&writer);
            Ok(count)
        })?;
    }
}
