//! Updating what a filter selects, and upserts.

use super::target::{Groups, Selection};
use super::{Progress, check_writable, prepare, writable};
use crate::Context;
use crate::validate::Validator;
use nestor_exec::write::{Changed, Writer};
use nestor_model::collection_options::Capped;
use nestor_model::{DocRef, Namespace, RawDoc, RawDocBuf, Result, Value, bail};
use nestor_query::env::OpContext;
use nestor_query::update::{Applied, Update};
use nestor_storage::{Bytes, View};

/// Documents per commit of an update of many.
const GROUP_MAX: usize = 1_000;

/// One update, compiled.
pub struct UpdateStatement<'a> {
    /// Which documents.
    pub selection: Selection,
    /// The filter as the client wrote it, for upserts.
    pub q: DocRef<'a>,
    /// What to do.
    pub update: Update,
    /// Insert a document when none matches.
    pub upsert: bool,
    /// Do not apply the collection's validator.
    pub bypass_validation: bool,
    /// [`Updated::old`] and [`Updated::new`] are wanted.
    pub images: bool,
    /// Id for the oplog of a retryable write.
    pub stmt_id: Option<i32>,
    /// Return the document before and after.
    pub keep_versions: bool,
}

/// What an update did.
#[derive(Clone, Debug, Default)]
pub struct Updated {
    /// Documents that matched.
    pub matched: i64,
    /// Documents that changed.
    pub modified: i64,
    /// `_id` of the inserted document.
    pub upserted: Option<Value>,
    /// The document before (of an update of one).
    pub old: Option<RawDocBuf>,
    /// The document after (of an update of one).
    pub new: Option<RawDocBuf>,
}

/// Updates the first selected document, or upserts.
pub fn update_one(
    context: &Context<'_>,
    ns: &Namespace,
    statement: &UpdateStatement<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Updated> {
    let mut uuid = None;
    context.atomically(progress, |ws| {
        if let Some(collection) = ws.catalog().get(ns).cloned() {
            check_writable(&collection)?;
            if let Some((record, old)) = statement.selection.first(context, ws, &collection, op)? {
                let validator = Validator::of(context, &collection, statement.bypass_validation)?;
                let origin = context.origin(&ns.db);
                let mut writer = Writer::new(ws, collection, op, origin)?;
                let changed = change(&mut writer, statement, validator.as_ref(), &record, &old);
                context.observe_keys(&writer);
                return changed;
            }
        }
        if !statement.upsert {
            return Ok(Updated::default());
        }
        let collection = writable(ws, ns, context, &mut uuid)?;
        let doc = statement.update.upsert_document(statement.q, op)?;
        let doc = prepare::for_insert(doc.as_raw(), op, true)?;
        if let Some(validator) = Validator::of(context, &collection, statement.bypass_validation)? {
            validator.check(doc.as_raw(), op)?;
        }
        let origin = context.origin(&ns.db);
        let mut writer = Writer::new(ws, collection, op, origin)?;
        writer.insert(doc.clone(), statement.stmt_id)?;
        context.observe_keys(&writer);
        let id = doc.as_raw().get("_id").map_or(Value::Null, |id| id.to_value());
        Ok(Updated {
            upserted: Some(id),
            new: Some(doc),
            ..Updated::default()
        })
    })
}

/// Applies the update to one record.
fn change(
    writer: &mut Writer<'_>,
    statement: &UpdateStatement<'_>,
    validator: Option<&Validator<'_>>,
    record: &Bytes,
    old: &Bytes,
) -> Result<Updated> {
    let before: RawDoc<'_> = old.document();
    let position = if statement.update.needs_position() {
        match statement
            .selection
            .filter
            .matches_with_position(before.as_doc(), writer.op)?
        {
            Some(details) => details.position,
            None => None,
        }
    } else {
        None
    };
    let mut out = Updated {
        matched: 1,
        old: statement.images.then(|| before.to_buf()),
        ..Updated::default()
    };
    match statement.update.apply(before, position, writer.op)? {
        Applied::NoChange => out.new = out.old.clone(),
        Applied::Changed(changed) => {
            if let Some(validator) = validator {
                validator.check_update(before, changed.doc.as_raw(), writer.op)?;
            }
            if let Some(limits) = &writer.collection.options.capped {
                check_capped_size(limits, before.len(), changed.doc.as_bytes().len())?;
            }
            out.modified = 1;
            out.new = Some(changed.doc.clone());
            writer.update(
                record,
                before,
                Changed {
                    doc: changed.doc,
                    diff: changed.diff.as_ref().map(RawDocBuf::as_raw),
                    touched: statement.update.touched(),
                },
                statement.stmt_id,
            )?;
        }
    }
    Ok(out)
}

/// Documents of capped collections may change their size since MongoDB 5.0, but not beyond the whole.
fn check_capped_size(limits: &Capped, before: usize, after: usize) -> Result<()> {
    let bytes_max = limits.bytes_max;
    if after > before && after as i64 > bytes_max {
        bail!(
            DocTooLargeForCapped,
            "document of {after} bytes does not fit the capped collection of {bytes_max}"
        );
    }
    Ok(())
}

/// Updates all selected documents, in groups with a commit each, or upserts.
pub fn update_many(
    context: &Context<'_>,
    ns: &Namespace,
    statement: &UpdateStatement<'_>,
    op: &OpContext,
    progress: &mut Progress,
) -> Result<Updated> {
    let Some(mut groups) = Groups::new(context, ns, &statement.selection)? else {
        return update_one(context, ns, statement, op, progress);
    };
    let mut total = Updated::default();
    loop {
        let group = groups.next(context, op, GROUP_MAX)?;
        if group.is_empty() {
            break;
        }
        let (matched, modified) = context.atomically(progress, |ws| {
            let Some(collection) = ws.catalog().by_id(groups.collection.id).cloned() else {
                return Ok((0, 0));
            };
            let validator = Validator::of(context, &collection, statement.bypass_validation)?;
            let records = collection.records;
            let origin = context.origin(&ns.db);
            let mut writer = Writer::new(ws, collection, op, origin)?;
            let (mut matched, mut modified) = (0, 0);
            for (record, seen) in &group {
                let Some(now) = writer.ws.get(records, record)? else {
                    continue;
                };
                if now != *seen && !statement.selection.filter.matches(now.document().as_doc(), op)? {
                    continue;
                }
                let one = change(&mut writer, statement, validator.as_ref(), record, &now)?;
                matched += one.matched;
                modified += one.modified;
            }
            context.observe_keys(&writer);
            Ok((matched, modified))
        })?;
        total.matched += matched;
        total.modified += modified;
    }
    if total.matched == 0 && statement.upsert {
        return update_one(context, ns, statement, op, progress);
    }
    Ok(total)
}
