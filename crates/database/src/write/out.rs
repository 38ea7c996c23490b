//! `$out`: the documents of a pipeline become a collection, all at once at the end.

use super::insert::{self, InsertOptions};
use super::{Progress, check_document_namespace, timeseries};
use crate::index_build;
use crate::names::NAMESPACE_BYTES_MAX;
use crate::read;
use crate::statement::Statement;
use nestor_exec::write::oplog::{Origin, Retryable};
use nestor_exec::{BoxOperator, Step};
use nestor_model::memory::Held;
use nestor_model::statement as counted;
use nestor_model::{CollectionOptions, Namespace, RawDoc, RawDocBuf, Result, TimeSeries, bail, doc};
use nestor_query::env::OpContext;
use nestor_query::stage::Out;
use nestor_storage::{Collection, View};
use std::sync::Arc;

/// Documents written together.
const GROUP_MAX: usize = 1_000;

/// Drains `root` into the collection that `out` names.
///
/// Errors: 17152 for a capped target, 166 for a view, 7268700 and 7406103 for time-series options that are not the target's, those of inserting. The target stays as it was then.
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
    let series = series(target, existing.as_deref(), out.timeseries.as_ref())?;
    if let Some(existing) = existing.as_ref().filter(|_| series.is_none()) {
        if existing.is_view() {
            bail!(
                CommandNotSupportedOnView,
                "namespace '{target}' is a view, not a collection"
            );
        }
        statement.check_all_rows(existing)?;
        statement.check_plain(existing, "$out would replace what you cannot see")?;
        if existing.is_capped() {
            bail!(17152, "namespace '{target}' is capped so it can't be used for $out");
        }
    }
    let temporary = Namespace::new(
        target.db.clone(),
        format!("tmp.agg_out.{:016x}", statement.database.random()),
    );
    let options = options(&temporary, existing.as_deref(), series.as_ref())?;
    let result = make(statement, view, &temporary, target, &options, progress)
        .and_then(|()| fill(statement, view, root, op, &temporary, bypass_validation, progress))
        .and_then(|()| match series {
            Some(_) => timeseries::replace::by_filled(statement, &temporary, target, progress),
            None => replace(statement, &temporary, target, progress),
        });
    if result.is_err() {
        // The collection written so far is of no use. If dropping it fails too, there is nothing more to do.
        let _ = statement.atomically(&mut Progress::default(), |ws| {
            for left in [timeseries::buckets_of(&temporary), temporary.clone()] {
                if ws.catalog().get(&left).is_some() {
                    ws.drop_collection(&left)?;
                }
            }
            Ok(())
        });
    }
    result
}

/// The time-series options of what is written to `target`; `None` for an ordinary collection.
///
/// Errors: 7268700 and 7406103 when they are not those of what is there.
fn series(
    target: &Namespace,
    existing: Option<&Collection>,
    wanted: Option<&TimeSeries>,
) -> Result<Option<TimeSeries>> {
    let there = existing.map(|existing| existing.timeseries());
    match (there, wanted) {
        (None, wanted) => Ok(wanted.cloned()),
        (Some(there), None) => Ok(there.cloned()),
        (Some(None), Some(_)) => bail!(
            7_268_700,
            "cannot create a time-series collection from a non time-series collection or view: '{target}'"
        ),
        (Some(Some(there)), Some(wanted)) if there == wanted => Ok(Some(there.clone())),
        (Some(Some(_)), Some(_)) => bail!(
            7_406_103,
            "the time-series options of $out are not those of the collection '{target}'"
        ),
    }
}

/// The options of the temporary collection.
fn options(
    temporary: &Namespace,
    existing: Option<&Collection>,
    series: Option<&TimeSeries>,
) -> Result<CollectionOptions> {
    let mut listed = existing.map(|found| found.options.listed().clone()).unwrap_or_default();
    if let Some(series) = series {
        timeseries::create::as_view(temporary, series, &mut listed);
    }
    CollectionOptions::parse(listed)
}

/// Makes the temporary collection, with the indexes of the target.
fn make(
    statement: &Statement<'_>,
    view: &dyn View,
    temporary: &Namespace,
    target: &Namespace,
    options: &CollectionOptions,
    progress: &mut Progress,
) -> Result<()> {
    let uuid = statement.database.new_uuid();
    let (like, place) = match &options.timeseries {
        Some(_) => (timeseries::buckets_of(target), timeseries::buckets_of(temporary)),
        None => (target.clone(), temporary.clone()),
    };
    let like = view.catalog().get(&like);
    statement.atomically(progress, |ws| {
        if let Some(series) = &options.timeseries {
            timeseries::create::buckets(statement, ws, temporary, options, series)?;
        }
        ws.create_collection(temporary, uuid, options.clone())?;
        ws.oplog(super::create_entry(temporary, uuid, options))?;
        for index in like.iter().flat_map(|c| &c.indexes).filter(|index| !index.is_id()) {
            let is_there = |found: &Arc<Collection>| found.index(&index.name).is_some();
            if !ws.catalog().get(&place).is_some_and(is_there) {
                index_build::at_once(statement, ws, &place, index.spec.clone())?;
            }
        }
        Ok(())
    })
}

fn fill(
    statement: &Statement<'_>,
    view: &dyn View,
    mut root: BoxOperator,
    op: &OpContext,
    temporary: &Namespace,
    bypass_validation: bool,
    progress: &mut Progress,
) -> Result<()> {
    statement.note_plan(&*root);
    let mut batch = read::batch(statement, view, op, true);
    let options = InsertOptions {
        keep_empty_times: false,
        bypass_validation,
    };
    let mut held = Held::by_this_statement();
    loop {
        // Both have a limit: a thousand rows may be gigabytes.
        let mut rows: Vec<RawDocBuf> = Vec::new();
        let mut taken = 0;
        while rows.len() < GROUP_MAX && taken < insert::GROUP_BYTES_MAX {
            match root.next(&mut batch)? {
                Step::Row(row) => {
                    let row = row.doc.to_raw();
                    let bytes = row.as_raw().len();
                    counted::work(bytes / counted::BYTES_PER_UNIT)?;
                    taken += bytes;
                    held.set(taken);
                    rows.push(row);
                }
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
