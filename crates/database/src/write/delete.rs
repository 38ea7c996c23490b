//! Deleting what a filter selects.

use super::groups::in_groups;
use super::prepared::Prepared;
use super::{Progress, Written, check_capped, check_writable};
use crate::statement::Statement;
use nestor_exec::write::Writer;
use nestor_model::{Namespace, Result};
use nestor_query::env::OpContext;
use nestor_storage::View;

/// Deletes the first selected document.
pub fn one(
    statement: &Statement<'_>,
    ns: &Namespace,
    delete: &Prepared<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    statement.atomically(progress, |ws| {
        let Some(collection) = ws.catalog().get(ns).cloned() else {
            return Ok(Written::default());
        };
        check_writable(&collection)?;
        check_capped(statement, &collection)?;
        let Some((record, old)) = delete.selection.first(statement, ws, &collection, op)? else {
            return Ok(Written::default());
        };
        let origin = statement.origin(&ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        writer.delete(&record, old.document(), delete.retryable)?;
        statement.observe_keys(&writer);
        Ok(Written {
            matched: 1,
            old: delete.images.then(|| old.document().to_buf()),
            ..Written::default()
        })
    })
}

/// Deletes all selected documents.
pub fn many(
    statement: &Statement<'_>,
    ns: &Namespace,
    delete: &Prepared<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Written> {
    let written = in_groups(statement, ns, &delete.selection, op, progress, |writer, met| {
        let mut written = Written::default();
        while let Some((record, now)) = met.next(writer)? {
            writer.delete(record, now.document(), None)?;
            written.matched += 1;
        }
        Ok(written)
    })?;
    Ok(written.unwrap_or_default())
}
