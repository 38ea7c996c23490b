//! Numbers of sequences, and of the columns of tables that count: the state of each is a document of `system.sequences`.
//!
//! Numbers are reserved with commits of their own, whatever becomes of the statement and its transaction: nobody waits for another one's
//! transaction, and numbers that were taken are not given again. From what is reserved they are given without a write ([`sequences`]). A
//! sequence has no state until its first number is taken, so a transaction can use one that it has made itself.
//!
//! [`sequences`]: crate::sequences

use super::replace::{self, put};
use super::writable;
use crate::Database;
use crate::sequences::{AHEAD, Extending, Reserve, Taken};
pub use crate::sequences::{Counting, Key};
use crate::statement::Statement;
use nestor_exec::Interrupt;
use nestor_exec::point;
use nestor_exec::write::admission::Admitted;
use nestor_exec::write::oplog::Origin;
use nestor_exec::write::{Obstacle, Writer, with_retry};
use nestor_model::namespace::LOCAL;
use nestor_model::number::safe_i64;
use nestor_model::{Binary, Namespace, RawDocBuf, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Collection, Lsn, View, WriteSet};
use std::sync::Arc;

/// The collection of a database's sequences.
pub const COLLECTION: &str = "system.sequences";

fn id_of(key: Key<'_>) -> Value {
    let table = Binary {
        subtype: 4,
        bytes: key.collection.as_slice().into(),
    };
    Value::from(doc! { "table": Value::Binary(table), "column": key.column })
}

/// What is stored of a sequence.
#[derive(Clone, Copy, Debug)]
struct Stored {
    /// The last number that was given, or that is reserved.
    last: i64,
    /// It was given; otherwise it is the next.
    is_called: bool,
    /// The token of the reserve that it is the end of.
    reserve: Option<i64>,
}

impl Stored {
    fn of(doc: nestor_model::RawDoc<'_>) -> Option<Self> {
        match (doc.get("last"), doc.get("isCalled")) {
            (Some(ValueRef::Int64(last)), Some(ValueRef::Bool(is_called))) => Some(Self {
                last,
                is_called,
                reserve: doc.get("reserve").and_then(safe_i64),
            }),
            _ => None,
        }
    }

    fn read(view: &dyn View, db: &str, key: Key<'_>) -> Result<Option<Self>> {
        match view.catalog().get(&Namespace::new(db, COLLECTION)) {
            Some(collection) => Ok(find(view, collection, key)?.1),
            None => Ok(None),
        }
    }

    /// The last number, and whether it was given; `given` tells the last one of a reserve that was.
    fn state(self, given: impl FnOnce(i64) -> Option<i64>) -> (i64, bool) {
        let given = self.reserve.and_then(given);
        given.map_or((self.last, self.is_called), |last| (last, true))
    }

    fn document(&self, id: Value) -> RawDocBuf {
        let mut out = doc! { "_id": id, "last": self.last, "isCalled": self.is_called };
        if let Some(token) = self.reserve {
            out.push("reserve", token);
        }
        out.to_raw()
    }
}

/// The last number of a sequence, and whether it was given; `None` for one that nobody has used. It is the newest, whatever a transaction
/// reads: numbers belong to none.
///
/// Errors: those of reading.
pub fn state(database: &Database, db: &str, key: Key<'_>) -> Result<Option<(i64, bool)>> {
    let stored = Stored::read(&database.engine.snapshot(), db, key)?;
    Ok(stored.map(|stored| stored.state(|token| database.sequences.last(key, token))))
}

/// A record, and its document.
type Found = Option<replace::Found>;

/// The record of a sequence, and what is stored there.
fn find(view: &dyn View, collection: &Arc<Collection>, key: Key<'_>) -> Result<(Found, Option<Stored>)> {
    let found = point::by_id(view, collection, id_of(key).as_ref())?;
    let stored = found.as_ref().and_then(|(_, old)| Stored::of(old.document()));
    Ok((found, stored))
}

/// Passes the gate. A statement outside of transactions has passed it already.
fn enter<'s>(statement: &'s Statement<'_>) -> Result<Option<Admitted<'s>>> {
    let admission = &statement.database.node.gates.admission;
    match statement.in_transaction() {
        true => admission.enter(&statement.interrupt).map(Some),
        false => Ok(None),
    }
}

/// A sequence whose document is written in a commit of its own.
struct Writing<'w, 'r> {
    statement: &'w Statement<'r>,
    db: &'w str,
    key: Key<'w>,
    /// That of the collection, however often its making is tried.
    uuid: Option<[u8; 16]>,
}

impl<'w, 'r> Writing<'w, 'r> {
    fn new(statement: &'w Statement<'r>, db: &'w str, key: Key<'w>) -> Self {
        let uuid = None;
        Self {
            statement,
            db,
            key,
            uuid,
        }
    }

    /// Makes what is stored what `next` makes of it, behind the gate; once, as one attempt of several.
    fn change<T>(
        &mut self,
        obstacle: &mut Obstacle,
        next: impl FnOnce(Option<Stored>) -> Option<(Stored, T)>,
    ) -> Result<Option<(T, Lsn)>> {
        let database = self.statement.database;
        let op = OpContext::new(crate::clock::now_ms(), database.last_time(), 0);
        let mut ws = database.engine.begin();
        let ns = Namespace::new(self.db, COLLECTION);
        let collection = writable(&mut ws, &ns, self.statement, &mut self.uuid)?;
        let (found, before) = find(&ws, &collection, self.key)?;
        let Some((stored, out)) = next(before) else {
            return Ok(None);
        };
        let mut writer = Writer::new(&mut ws, collection, &op, origin(self.db))?;
        put(&mut writer, found.as_ref(), stored.document(id_of(self.key)))?;
        Ok(Some((out, obstacle.commit(&database.engine, ws)?.lsn)))
    }

    /// Numbers that are reserved already. Whoever may not write gives none.
    fn reserved(&self, counting: &Counting, count: i64) -> Result<Option<Taken>> {
        let database = self.statement.database;
        if !database.engine.is_writable() {
            return Ok(None);
        }
        let stored = Stored::read(&database.engine.snapshot(), self.db, self.key)?;
        let token = stored.and_then(|stored| stored.reserve);
        Ok(token.and_then(|token| database.sequences.take(self.key, token, counting, count)))
    }

    /// Takes numbers, and reserves those that follow.
    fn reserve(
        &mut self,
        extending: &Extending<'_>,
        obstacle: &mut Obstacle,
        (counting, count): (&Counting, i64),
    ) -> Result<Option<Taken>> {
        let token = self.statement.database.random().cast_signed();
        let changed = self.change(obstacle, |stored| {
            let state = stored.map(|stored| stored.state(|token| extending.close(token)));
            let first = counting.next(state)?;
            let all = counting.run(first, count.max(1).saturating_add(AHEAD));
            let end = counting.end(first, all);
            let stored = Stored {
                last: end,
                is_called: true,
                reserve: Some(token),
            };
            Some((stored, (first, all.min(count.max(1)), end)))
        })?;
        Ok(changed.map(|((first, count, end), lsn)| {
            extending.keep(Reserve {
                token,
                last: counting.end(first, count),
                end,
                counting: *counting,
                lsn,
            });
            Taken { first, count, lsn }
        }))
    }
}

fn origin(db: &str) -> Option<Origin> {
    (db != LOCAL).then(Origin::default)
}

/// Takes up to `count` numbers that follow each other: the first of them and how many there are; `None` when there are no more. They come from
/// memory, or with a commit that reserves more of them, which [`Statement::settle_numbers`] waits for.
///
/// Errors: those of writing.
pub fn take(
    statement: &Statement<'_>,
    db: &str,
    key: Key<'_>,
    counting: &Counting,
    count: i64,
) -> Result<Option<(i64, i64)>> {
    let mut writing = Writing::new(statement, db, key);
    let taken = with_retry(&statement.interrupt, |obstacle| {
        loop {
            if let Some(taken) = writing.reserved(counting, count)? {
                return Ok(Some(taken));
            }
            // Nobody waits at the gate, or for another one's transaction, while others wait for numbers.
            let _admitted = enter(statement)?;
            let Some(extending) = statement.database.sequences.extend(db, key, &statement.interrupt)? else {
                continue;
            };
            // Another one may have brought some since.
            if let Some(taken) = writing.reserved(counting, count)? {
                return Ok(Some(taken));
            }
            return writing.reserve(&extending, obstacle, (counting, count));
        }
    })?;
    let Some(taken) = taken else { return Ok(None) };
    statement.got_numbers(taken.lsn);
    Ok(Some((taken.first, taken.count)))
}

/// Sets the last number of a sequence, or, when it was not given yet, the next.
///
/// Errors: those of writing.
pub fn set(statement: &Statement<'_>, db: &str, key: Key<'_>, (last, is_called): (i64, bool)) -> Result<()> {
    let stored = Stored {
        last,
        is_called,
        reserve: None,
    };
    let mut writing = Writing::new(statement, db, key);
    let changed = with_retry(&statement.interrupt, |obstacle| {
        let _admitted = enter(statement)?;
        writing.change(obstacle, |_| Some((stored, ())))
    })?;
    if let Some(((), lsn)) = changed {
        statement.got_numbers(lsn);
    }
    Ok(())
}

/// Sequences written back in one commit.
const WRITTEN_BACK: usize = 1000;

/// Writes what was given of each sequence that has numbers reserved, so that no gap is left: for an orderly end. Numbers that are taken
/// meanwhile are reserved anew. Where that fails, numbers are left out as after a crash, and the log says so.
pub fn write_back(database: &Database) {
    if !database.engine.is_writable() {
        return;
    }
    if let Err(error) = written_back(database) {
        database.node.log().warn(
            "CONTROL",
            9_000_070,
            "SignalHandler",
            "Cannot write which numbers sequences have given",
            doc! { "error": error.to_string() },
        );
    }
}

fn written_back(database: &Database) -> Result<()> {
    let op = OpContext::new(crate::clock::now_ms(), database.last_time(), 0);
    for some in database.sequences.give_up().chunks(WRITTEN_BACK) {
        with_retry(&Interrupt::default(), |obstacle| {
            let mut ws = database.engine.begin();
            for own in some {
                let (db, key) = (&*own.db, own.key());
                let Some(collection) = ws.catalog().get(&Namespace::new(db, COLLECTION)).cloned() else {
                    continue;
                };
                let (found, before) = find(&ws, &collection, key)?;
                if before.is_some_and(|stored| stored.reserve == Some(own.token)) {
                    let stored = Stored {
                        last: own.last,
                        is_called: true,
                        reserve: None,
                    };
                    let mut writer = Writer::new(&mut ws, collection, &op, origin(db))?;
                    put(&mut writer, found.as_ref(), stored.document(id_of(key)))?;
                }
            }
            match ws.is_empty() {
                true => Ok(()),
                false => obstacle.commit(&database.engine, ws).map(drop),
            }
        })?;
    }
    Ok(())
}

/// Forgets the sequences of a collection that is dropped.
///
/// Errors: those of writing.
pub fn forget(statement: &Statement<'_>, ws: &mut WriteSet, db: &str, keys: &[Key<'_>]) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    let Some(collection) = ws.catalog().get(&ns).cloned() else {
        return Ok(());
    };
    let op = OpContext::new(crate::clock::now_ms(), statement.database.last_time(), 0);
    for key in keys {
        if let Some((record, old)) = point::by_id(ws, &collection, id_of(*key).as_ref())? {
            let mut writer = Writer::new(ws, collection.clone(), &op, statement.origin(db))?;
            writer.delete(&record, old.document(), None)?;
        }
    }
    Ok(())
}
