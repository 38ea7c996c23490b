//! What people say about collections and what they consist of: documents of `system.comments`, one for each collection that somebody
//! has said something about.
//!
//! ```text
//! {_id: UUID, comment: "people we know", columns: {name: "as in the passport"}, indexes: {...}, constraints: {...}, triggers: {...}, policies: {...}}
//! ```
//!
//! What is said of a database, and of the users and roles that belong to it, is there as well, by numbers ([`DATABASE`], [`ROLES`]).
//!
//! They are written with the write set of whoever changes them.

use super::{replace, writable};
use crate::statement::Statement;
use nestor_exec::point;
use nestor_exec::write::Writer;
use nestor_model::{Binary, Document, Namespace, Result, Value, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Collection, View, WriteSet};

/// The collection of a database's comments.
pub const COLLECTION: &str = "system.comments";

/// By what the comment on a database is called in it.
pub const DATABASE: i64 = 1262;

/// By what the comments on the users and roles of a database are called, each in the field `roles` by its name.
pub const ROLES: i64 = 1260;

/// The fields that have comments on parts that tables are declared with.
const PARTS: [&str; 3] = ["columns", "indexes", "constraints"];

/// By what comments on something are called that is built in and has no collection: its number behind zeros, as no UUID is.
pub fn built_in(number: i64) -> [u8; 16] {
    let mut out = [0; 16];
    out[8..].copy_from_slice(&number.to_be_bytes());
    out
}

fn id(uuid: [u8; 16]) -> Value {
    Value::Binary(Binary {
        subtype: 4,
        bytes: uuid.as_slice().into(),
    })
}

/// All that is said in a database, each beside the UUID of what it is about.
///
/// Errors: those of reading.
pub fn all(view: &dyn View, db: &str) -> Result<Vec<([u8; 16], Document)>> {
    let each = replace::read_all(view, &Namespace::new(db, COLLECTION))?.into_iter();
    let with_uuid = each.filter_map(|comments| {
        let uuid = match comments.get("_id")?.to_value() {
            Value::Binary(Binary { bytes, .. }) => <[u8; 16]>::try_from(&bytes[..]).ok()?,
            _ => return None,
        };
        Some((uuid, comments))
    });
    Ok(with_uuid.collect())
}

/// What is said in a database about the one thing with a UUID.
///
/// Errors: those of reading.
pub fn one(view: &dyn View, db: &str, uuid: [u8; 16]) -> Result<Option<Document>> {
    let Some(collection) = view.catalog().get(&Namespace::new(db, COLLECTION)).cloned() else {
        return Ok(None);
    };
    let found = point::by_id(view, &collection, id(uuid).as_ref())?;
    Ok(found.map(|(_, bytes)| bytes.document().as_doc().to_document()))
}

/// Has the comments on parts of a kind go with them: one that is there by no other name than before has got another name if it alone has.
///
/// Errors: those of writing.
pub fn follow(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    (db, uuid): (&str, [u8; 16]),
    kind: &str,
    (before, now): (&[String], &[String]),
) -> Result<()> {
    let gone: Vec<&String> = before.iter().filter(|name| !now.contains(name)).collect();
    let new: Vec<&String> = now.iter().filter(|name| !before.contains(name)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    change(statement, ws, db, uuid, |said| {
        let Some(Value::Document(of_kind)) = said.remove(kind) else {
            return;
        };
        let mut kept = Document::new();
        for (name, text) in of_kind.iter() {
            match (gone.iter().any(|own| **own == name), gone.as_slice(), new.as_slice()) {
                (false, ..) => kept.push(name, text),
                (true, [_], [to]) => kept.push(to.as_str(), text),
                _ => {}
            }
        }
        if !kept.is_empty() {
            said.set(kind, kept);
        }
    })
}

/// Changes what is said about the collection with a UUID, and what it consists of. What says nothing any more goes.
///
/// Errors: those of writing.
pub fn change(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    db: &str,
    uuid: [u8; 16],
    change: impl FnOnce(&mut Document),
) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    let found = match ws.catalog().get(&ns).cloned() {
        Some(collection) => point::by_id(ws, &collection, id(uuid).as_ref())?,
        None => None,
    };
    let mut new = match &found {
        Some((_, old)) => old.document().as_doc().to_document(),
        None => doc! { "_id": id(uuid) },
    };
    change(&mut new);
    let is_empty = new.len() == 1;
    if is_empty && found.is_none() {
        return Ok(());
    }
    let collection = writable(ws, &ns, statement, &mut None)?;
    let mut writer = Writer::new(ws, collection, &op, statement.origin(db))?;
    match &found {
        Some((record, old)) if is_empty => writer.delete(record, old.document(), None),
        found => replace::put(&mut writer, found.as_ref(), new.to_raw()),
    }
}

/// Forgets what was said about a collection that is dropped.
///
/// Errors: those of writing.
pub fn forget(statement: &Statement<'_>, ws: &mut WriteSet, db: &str, uuid: [u8; 16]) -> Result<()> {
    change(statement, ws, db, uuid, |comments| {
        comments.fields_mut().retain(|(name, _)| name == "_id");
    })
}

/// Keeps of the comments on parts of a collection those for whose kind and name `now` gives a name.
///
/// Errors: those of writing.
pub fn keep(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    collection: &Collection,
    now: &dyn Fn(&str, &str) -> Option<String>,
) -> Result<()> {
    change(statement, ws, &collection.ns.db, collection.uuid, |said| {
        for kind in PARTS {
            let Some(Value::Document(of_kind)) = said.remove(kind) else {
                continue;
            };
            let mut kept = Document::new();
            for (name, text) in of_kind.iter() {
                if let Some(name) = now(kind, name) {
                    kept.push(name, text);
                }
            }
            if !kept.is_empty() {
                said.set(kind, kept);
            }
        }
    })
}
