//! Writing one document of the server's own: settings that outlive the process.

use super::{Progress, writable};
use crate::statement::Statement;
use nestor_exec::point;
use nestor_exec::write::{Changed, Writer};
use nestor_model::{Document, Namespace, Result, ValueRef};
use nestor_query::env::OpContext;
use nestor_query::update::Touched;
use nestor_storage::{Engine, View};

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
        match found {
            None => drop(writer.insert(raw.clone(), None)?),
            Some((record, old)) => {
                let changed = Changed {
                    doc: raw.clone(),
                    diff: None,
                    touched: &Touched::All,
                };
                writer.update(&record, old.document(), changed, None)?;
            }
        }
        Ok(())
    })
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
