//! Documents of the server's own: settings that outlive the process, and what is beside collections and users.

use super::{Progress, writable};
use crate::statement::Statement;
use nestor_exec::point;
use nestor_exec::write::{Changed, Writer};
use nestor_model::{Document, Namespace, RawDocBuf, Result, ValueRef};
use nestor_query::env::OpContext;
use nestor_query::update::Touched;
use nestor_storage::{Bytes, Engine, View};

/// Puts `doc` in the place of the document with its `_id`, or adds it.
pub fn replace_by_id(statement: &Statement<'_>, ns: &Namespace, doc: &Document, progress: &mut Progress) -> Result<()> {
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    let raw = doc.to_raw();
    let id = doc.get("_id").unwrap_or(ValueRef::Null);
    let mut uuid = None;
    statement.atomically(progress, |ws| {
        let collection = writable(ws, ns, statement, &mut uuid)?;
        let found = point::by_id(ws, &collection, id)?;
        let mut writer = Writer::new(ws, collection, &op, statement.origin(&ns.db))?;
        put(&mut writer, found.as_ref(), raw.clone())
    })
}

/// A record's key, and its document as it is stored.
pub(crate) type Found = (Bytes, Bytes);

/// Writes a document, over the one that there is.
///
/// Errors: those of writing.
pub(crate) fn put(writer: &mut Writer<'_>, found: Option<&Found>, new: RawDocBuf) -> Result<()> {
    match found {
        None => writer.insert(new, None).map(drop),
        Some((record, old)) => {
            let changed = Changed {
                doc: new,
                diff: None,
                touched: &Touched::All,
            };
            writer.update(record, old.document(), changed, None).map(drop)
        }
    }
}

/// All documents of a collection; none where it is not there.
///
/// Errors: those of reading.
pub(crate) fn read_all(view: &dyn View, ns: &Namespace) -> Result<Vec<Document>> {
    let mut out = Vec::new();
    let Some(collection) = view.catalog().get(ns).cloned() else {
        return Ok(out);
    };
    let mut cursor = view.cursor(collection.records);
    let mut more = cursor.first()?;
    while more {
        nestor_model::statement::work(1)?;
        out.push(cursor.value_bytes()?.document().as_doc().to_document());
        more = cursor.next()?;
    }
    Ok(out)
}

/// The document with that `_id`, if there is one.
pub fn read_by_id(engine: &Engine, ns: &Namespace, id: &str) -> Result<Option<Document>> {
    let snapshot = engine.snapshot();
    let Some(collection) = snapshot.catalog().get(ns) else {
        return Ok(None);
    };
    let found = point::by_id(&snapshot, collection, ValueRef::String(id))?;
    Ok(found.map(|(_, bytes)| bytes.document().as_doc().to_document()))
}
