//! Numbers for the columns of tables that count: each is a document of `system.sequences`.
//!
//! Numbers are taken with commits of their own, whatever becomes of the statement and its transaction: nobody waits for another one's
//! transaction, and numbers that were taken are not given again.

use super::writable;
use crate::statement::Statement;
use nestor_exec::point;
use nestor_exec::write::oplog::Origin;
use nestor_exec::write::{Changed, Writer, with_retry};
use nestor_model::{Binary, Document, Namespace, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_query::update::Touched;
use nestor_storage::{View, WriteSet};

/// The collection of a database's sequences.
pub const COLLECTION: &str = "system.sequences";

fn id(table: [u8; 16], column: &str) -> Document {
    let table = Binary {
        subtype: 4,
        bytes: table.as_slice().into(),
    };
    doc! { "table": Value::Binary(table), "column": column }
}

/// Takes `count` numbers of a column of the collection with a UUID; the first of them. The first that there is is 1.
///
/// Errors: those of writing.
pub fn take(statement: &Statement<'_>, db: &str, (table, column): ([u8; 16], &str), count: i64) -> Result<i64> {
    let ns = Namespace::new(db, COLLECTION);
    let database = statement.database;
    let op = OpContext::new(crate::clock::now_ms(), database.last_time(), 0);
    let key = Value::from(id(table, column));
    let mut uuid = None;
    with_retry(&statement.interrupt, |obstacle| {
        // A statement outside of transactions has passed the gate already.
        let _admitted = match statement.in_transaction() {
            true => Some(database.node.gates.admission.enter(&statement.interrupt)?),
            false => None,
        };
        let mut ws = database.engine.begin();
        let collection = writable(&mut ws, &ns, statement, &mut uuid)?;
        let found = point::by_id(&ws, &collection, key.as_ref())?;
        let first = match &found {
            Some((_, old)) => match old.document().get("next") {
                Some(ValueRef::Int64(next)) => next,
                _ => 1,
            },
            None => 1,
        };
        let new = doc! { "_id": key.clone(), "next": first.saturating_add(count) }.to_raw();
        let mut writer = Writer::new(&mut ws, collection, &op, (db != "local").then(Origin::default))?;
        match &found {
            None => drop(writer.insert(new, None)?),
            Some((record, old)) => {
                let changed = Changed {
                    doc: new,
                    diff: None,
                    touched: &Touched::All,
                };
                writer.update(record, old.document(), changed, None)?;
            }
        }
        obstacle.commit(&database.engine, ws)?;
        Ok(first)
    })
}

/// Forgets the sequences of a collection that is dropped.
///
/// Errors: those of writing.
pub fn forget(statement: &Statement<'_>, ws: &mut WriteSet, db: &str, table: [u8; 16], columns: &[&str]) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    let Some(collection) = ws.catalog().get(&ns).cloned() else {
        return Ok(());
    };
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    for column in columns {
        let key = Value::from(id(table, column));
        if let Some((record, old)) = point::by_id(ws, &collection, key.as_ref())? {
            let mut writer = Writer::new(ws, collection.clone(), &op, statement.origin(db))?;
            writer.delete(&record, old.document(), None)?;
        }
    }
    Ok(())
}
