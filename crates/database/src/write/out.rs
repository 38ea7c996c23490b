//! `$out`: the documents of a pipeline become a collection, all at once at the end.

use super::insert::{self, InsertOptions};
use super::{Progress, check_document_namespace};
use crate::index_build;
use crate::names::NAMESPACE_BYTES_MAX;
use crate::read;
use crate::statement::Statement;
use nestor_exec::write::oplog::{Origin, Retryable};
use nestor_exec::{BoxOperator, Step};
use nestor_model::{Namespace, RawDoc, RawDocBuf, Result, bail, doc};
use nestor_query::env::OpContext;
use nestor_query::stage::Out;
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// Documents written together.
const GROUP_MAX: usize = 1_000;

/// Drains `root` into the collection that `out` names.
///
/// Errors: 17152 for a capped target, 166 for a view, those of inserting. The target stays as it was then.
pub fn write_out(
    statement: &Statement<'_>,
    view: &dyn View,
    root: BoxOperator,
    op: &OpContext,
    out: &Out,
    bypass_validation: bool,
    progress: &mut Progress,
) -> Result<()> {
    let target = &out.target;
    let len = target.to_string().len();
    if len > NAMESPACE_BYTES_MAX {
        bail!(
            IllegalOperation,
            "$out cannot write to a namespace of {len} bytes, the limit is {NAMESPACE_BYTES_MAX}"
        );
    }
    check_document_namespace(target)?;
    if target.is_internal() {
        bail!(17385, "Can't $out to internal database: {}", target.db);
    }
    let existing = view.catalog().get(target).cloned();
    if out.timeseries.is_some() {
        if existing.is_some() {
            bail!(
                7_268_700,
                "cannot create a time-series collection from a non time-series collection or view: '{target}'"
            );
        }
        bail!(NotImplemented, "time-series collections are not supported");
    }
    if let Some(existing) = &existing {
        if existing.is_view() {
            bail!(
                CommandNotSupportedOnView,
                "namespace '{target}' is a view, not a collection"
            );
        }
        statement.check_plain(existing, "$out would replace what you cannot see")?;
        if existing.is_capped() {
            bail!(17152, "namespace '{target}' is capped so it can't be used for $out");
        }
    }
    let temporary = Namespace::new(
        target.db.clone(),
        format!("tmp.agg_out.{:016x}", statement.database.random()),
    );
    let result = fill(
        statement,
        view,
        root,
        op,
        &temporary,
        existing.as_ref(),
        bypass_validation,
        progress,
    )
    .and_then(|()| replace(statement, &temporary, target, progress));
    if result.is_err() {
        // The collection written so far is of no use. If dropping it fails too, there is nothing more to do.
        let _ = statement.atomically(&mut Progress::default(), |ws| {
            if ws.catalog().get(&temporary).is_some() {
                ws.drop_collection(&temporary)?;
            }
            Ok(())
        });
    }
    result
}

#[allow(clippy::too_many_arguments)]
fn fill(
    statement: &Statement<'_>,
    view: &dyn View,
    mut root: BoxOperator,
    op: &OpContext,
    temporary: &Namespace,
    like: Option<&Arc<Collection>>,
    bypass_validation: bool,
    progress: &mut Progress,
) -> Result<()> {
    let uuid = statement.database.new_uuid();
    let options = like.map(|c| c.options.clone()).unwrap_or_default();
    statement.atomically(progress, |ws| {
        ws.create_collection(temporary, uuid, options.clone())?;
        ws.oplog(super::create_entry(temporary, uuid, &options))?;
        for index in like.iter().flat_map(|c| &c.indexes).filter(|index| !index.is_id()) {
            index_build::at_once(statement, ws, temporary, index.spec.clone())?;
        }
        Ok(())
    })?;
    statement.note_plan(&*root);
    let mut batch = read::batch(statement, view, op, true);
    let options = InsertOptions {
        keep_empty_times: false,
        bypass_validation,
    };
    loop {
        let mut rows: Vec<RawDocBuf> = Vec::new();
        while rows.len() < GROUP_MAX {
            match root.next(&mut batch)? {
                Step::Row(row) => rows.push(row.doc.to_raw()),
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        if rows.is_empty() {
            statement.observe(&*root);
            return Ok(());
        }
        let mut documents: Vec<(RawDoc<'_>, Option<Retryable>)> = Vec::with_capacity(rows.len());
        let mut bytes = 0;
        for row in &rows {
            if bytes > 0 && bytes + row.as_raw().len() > insert::GROUP_BYTES_MAX {
                insert::group(statement, temporary, op, &documents, options, progress)?;
                documents.clear();
                bytes = 0;
            }
            documents.push((row.as_raw(), None));
            bytes += row.as_raw().len();
        }
        insert::group(statement, temporary, op, &documents, options, progress)?;
    }
}

/// The filled collection takes the target's place.
fn replace(
    statement: &Statement<'_>,
    temporary: &Namespace,
    target: &Namespace,
    progress: &mut Progress,
) -> Result<()> {
    statement.atomically(progress, |ws| {
        let dropped = ws.catalog().get(target).map(|c| c.uuid);
        let renamed = ws.rename_collection(temporary, target, true)?;
        let mut command =
            doc! { "renameCollection": temporary.to_string(), "to": target.to_string(), "stayTemp": false };
        match dropped {
            Some(uuid) => command.push("dropTarget", crate::uuid::Uuid(uuid).to_value()),
            None => command.push("dropTarget", false),
        }
        let entry = Origin::default().command(&target.db, Some(renamed.uuid), &command, crate::clock::now_ms());
        ws.oplog(entry)?;
        Ok(())
    })
}
