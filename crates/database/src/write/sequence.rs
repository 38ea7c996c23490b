//! Numbers of sequences, and of the columns of tables that count: the state of each is a document of `system.sequences`.
//!
//! Numbers are taken with commits of their own, whatever becomes of the statement and its transaction: nobody waits for another one's
//! transaction, and numbers that were taken are not given again. A sequence has no state until its first number is taken, so a
//! transaction can use one that it has made itself.

use super::writable;
use crate::statement::Statement;
use nestor_exec::point;
use nestor_exec::write::oplog::Origin;
use nestor_exec::write::{Changed, Writer, with_retry};
use nestor_model::namespace::LOCAL;
use nestor_model::{Binary, Namespace, Result, Value, ValueRef, doc};
use nestor_query::env::OpContext;
use nestor_query::update::Touched;
use nestor_storage::{View, WriteSet};

/// The collection of a database's sequences.
pub const COLLECTION: &str = "system.sequences";

/// How a sequence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Its first number.
    pub start: i64,
    /// What is added to a number to get the next; not 0.
    pub increment: i64,
    /// The least number.
    pub min: i64,
    /// The largest number.
    pub max: i64,
    /// After the last number comes the first one at the other end.
    pub cycle: bool,
}

impl Counting {
    /// From 1 up to `max`.
    pub fn up_to(max: i64) -> Self {
        Self {
            start: 1,
            increment: 1,
            min: 1,
            max,
            cycle: false,
        }
    }

    /// The next number after a state, the last number and whether it was given; `None` when there is none.
    fn next(&self, state: Option<(i64, bool)>) -> Option<i64> {
        let (last, is_called) = match state {
            None => return Some(self.start),
            Some(state) => state,
        };
        if !is_called {
            return Some(last);
        }
        self.after(last)
    }

    /// The number after another one; `None` when there is none.
    pub fn after(&self, last: i64) -> Option<i64> {
        let within = |n: &i64| (self.min..=self.max).contains(n);
        match last.checked_add(self.increment).filter(within) {
            Some(next) => Some(next),
            None if self.cycle => Some(if self.increment > 0 { self.min } else { self.max }),
            None => None,
        }
    }

    /// How many numbers there are from `first` on, at most `count`.
    fn run(&self, first: i64, count: i64) -> i64 {
        let end = if self.increment > 0 { self.max } else { self.min };
        let left = (i128::from(end) - i128::from(first)) / i128::from(self.increment) + 1;
        i64::try_from(left.clamp(1, i128::from(count.max(1)))).unwrap_or(1)
    }
}

/// Which sequence of a database: a column of the collection with a UUID, or with an empty name the sequence that the collection is.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    /// The collection.
    pub collection: [u8; 16],
    /// The column.
    pub column: &'k str,
}

impl Key<'_> {
    fn id(&self) -> Value {
        let table = Binary {
            subtype: 4,
            bytes: self.collection.as_slice().into(),
        };
        Value::from(doc! { "table": Value::Binary(table), "column": self.column })
    }
}

fn state_of(doc: nestor_model::RawDoc<'_>) -> Option<(i64, bool)> {
    match (doc.get("last"), doc.get("isCalled")) {
        (Some(ValueRef::Int64(last)), Some(ValueRef::Bool(is_called))) => Some((last, is_called)),
        _ => None,
    }
}

/// The last number of a sequence, and whether it was given; `None` for one that nobody has used.
///
/// Errors: those of reading.
pub fn state(view: &dyn View, db: &str, key: Key<'_>) -> Result<Option<(i64, bool)>> {
    let Some(collection) = view.catalog().get(&Namespace::new(db, COLLECTION)).cloned() else {
        return Ok(None);
    };
    let found = point::by_id(view, &collection, key.id().as_ref())?;
    Ok(found.and_then(|(_, old)| state_of(old.document())))
}

/// Makes the state of a sequence what `next` makes of it, in a commit of its own.
fn change<T>(
    statement: &Statement<'_>,
    db: &str,
    key: Key<'_>,
    mut next: impl FnMut(Option<(i64, bool)>) -> Option<((i64, bool), T)>,
) -> Result<Option<T>> {
    let ns = Namespace::new(db, COLLECTION);
    let database = statement.database;
    let op = OpContext::new(crate::clock::now_ms(), database.last_time(), 0);
    let id = key.id();
    let mut uuid = None;
    with_retry(&statement.interrupt, |obstacle| {
        // A statement outside of transactions has passed the gate already.
        let _admitted = match statement.in_transaction() {
            true => Some(database.node.gates.admission.enter(&statement.interrupt)?),
            false => None,
        };
        let mut ws = database.engine.begin();
        let collection = writable(&mut ws, &ns, statement, &mut uuid)?;
        let found = point::by_id(&ws, &collection, id.as_ref())?;
        let before = found.as_ref().and_then(|(_, old)| state_of(old.document()));
        let Some(((last, is_called), out)) = next(before) else {
            return Ok(None);
        };
        let new = doc! { "_id": id.clone(), "last": last, "isCalled": is_called }.to_raw();
        let mut writer = Writer::new(&mut ws, collection, &op, (db != LOCAL).then(Origin::default))?;
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
        Ok(Some(out))
    })
}

/// Takes up to `count` numbers that follow each other: the first of them and how many there are; `None` when there are no more.
///
/// Errors: those of writing.
pub fn take(
    statement: &Statement<'_>,
    db: &str,
    key: Key<'_>,
    counting: &Counting,
    count: i64,
) -> Result<Option<(i64, i64)>> {
    change(statement, db, key, |state| {
        let first = counting.next(state)?;
        let taken = counting.run(first, count);
        let last = first.saturating_add((taken - 1).saturating_mul(counting.increment));
        Some(((last, true), (first, taken)))
    })
}

/// Sets the last number of a sequence, or, when it was not given yet, the next.
///
/// Errors: those of writing.
pub fn set(statement: &Statement<'_>, db: &str, key: Key<'_>, state: (i64, bool)) -> Result<()> {
    change(statement, db, key, |_| Some((state, ()))).map(drop)
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
        if let Some((record, old)) = point::by_id(ws, &collection, key.id().as_ref())? {
            let mut writer = Writer::new(ws, collection.clone(), &op, statement.origin(db))?;
            writer.delete(&record, old.document(), None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_steps_between_two_ends() {
        let up = Counting::up_to(3);
        assert_eq!(up.next(None), Some(1));
        assert_eq!(up.next(Some((2, false))), Some(2));
        assert_eq!(up.next(Some((2, true))), Some(3));
        assert_eq!(up.next(Some((3, true))), None);
        assert_eq!((up.run(2, 10), up.run(1, 2)), (2, 2));
        let down = Counting {
            start: -1,
            increment: -2,
            min: i64::MIN,
            max: -1,
            cycle: true,
        };
        assert_eq!(down.next(Some((-1, true))), Some(-3));
        assert_eq!(down.next(Some((i64::MIN, true))), Some(-1));
        assert_eq!(down.run(i64::MIN + 1, 5), 1);
    }
}
