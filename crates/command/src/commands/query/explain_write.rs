//! Explaining a write: what it would have changed, counted by doing it in a write set that is thrown away.

use crate::context::Context;
use nestor_database::write::prepared::{Action, Prepared};
use nestor_exec::write::{Changed, Writer};
use nestor_exec::{Batch, BoxOperator, Row, RowDoc, Step};
use nestor_model::{Document, Result, Value, doc};
use nestor_query::update::Applied;
use nestor_storage::{Collection, Snapshot};
use std::sync::Arc;

/// The documents that a write would have changed.
#[derive(Default)]
pub(super) struct Changes {
    found: i64,
    modified: i64,
    keys_inserted: u64,
    keys_deleted: u64,
}

impl Changes {
    /// Appends what `write` would have done.
    pub(super) fn append_to(&self, write: &Prepared<'_>, out: &mut Document) {
        match &write.action {
            Action::Update { upsert, .. } => {
                out.push("nMatched", self.found as i32);
                out.push("nWouldModify", self.modified as i32);
                out.push("nWouldUpsert", i32::from(upsert.is_some() && self.found == 0));
            }
            Action::Delete => out.push("nWouldDelete", self.found as i32),
        }
        out.push("keysInserted", Value::count(self.keys_inserted));
        out.push("keysDeleted", Value::count(self.keys_deleted));
    }
}

/// Does `write` to what `root` finds in the collection, one document after the other, and undoes it.
pub(super) fn try_write(
    context: &Context<'_>,
    snapshot: &Snapshot,
    (write, collection): (&Prepared<'_>, &Arc<Collection>),
    root: &mut BoxOperator,
    batch: &mut Batch<'_>,
) -> Result<Changes> {
    let mut changes = Changes::default();
    let mut ws = context.service.engine.begin_at(snapshot.clone());
    let mut writer = Writer::new(&mut ws, collection.clone(), batch.op, None)?;
    loop {
        match root.next(batch)? {
            Step::Row(row) => try_on(write, &row, &mut writer, &mut changes)?,
            Step::Pause => {}
            Step::Eof => break,
        }
    }
    changes.keys_inserted = writer.keys_inserted;
    changes.keys_deleted = writer.keys_deleted;
    Ok(changes)
}

fn try_on(write: &Prepared<'_>, row: &Row, writer: &mut Writer<'_>, changes: &mut Changes) -> Result<()> {
    changes.found += 1;
    let (Some(record), RowDoc::Stored(bytes)) = (&row.record, &row.doc) else {
        return Ok(());
    };
    let old = bytes.document();
    let before = writer.ws.savepoint();
    match &write.action {
        Action::Delete => writer.delete(record, old, None)?,
        Action::Update { update, .. } => {
            let position = match update.needs_position() {
                true => write
                    .selection
                    .query
                    .filter
                    .matches_with_position(old.as_doc(), writer.op)?
                    .and_then(|d| d.position),
                false => None,
            };
            if let Applied::Changed(new) = update.apply(old, position, writer.op)? {
                changes.modified += 1;
                let changed = Changed {
                    doc: new.doc,
                    diff: None,
                    touched: update.touched(),
                };
                writer.update(record, old, changed, None)?;
            }
        }
    }
    writer.ws.rollback_to(before);
    Ok(())
}

/// The stage that explain shows a write as.
pub(super) fn stage(write: &Prepared<'_>) -> &'static str {
    match write.action {
        Action::Update { .. } => "UPDATE",
        Action::Delete => "DELETE",
    }
}

/// Explaining changes nothing: the stage tells what the write would have done.
pub(super) fn would_write(write: &Prepared<'_>, changes: &Changes, input: Document) -> Document {
    let mut out = doc! {
        "stage": stage(write),
        "nReturned": 0,
        "works": changes.found as i32 + 1,
        "advanced": 0,
        "needTime": changes.found as i32,
        "needYield": 0,
        "isEOF": 1,
    };
    changes.append_to(write, &mut out);
    out.push("inputStage", input);
    out
}
