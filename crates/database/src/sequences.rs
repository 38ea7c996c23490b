//! Numbers of sequences that are reserved: they are given from memory, without a write for each.
//!
//! What is stored of a sequence is ahead of what was given by up to [`AHEAD`] numbers, as it is in PostgreSQL's log, and has a token; the last
//! number that was given stands here beside the same token:
//!
//! ```text
//! stored {last: 33, isCalled: true, reserve: 7}   here (7, given 5, up to 33)   the next number is 6, nothing is written
//! stored {last: 33, isCalled: true, reserve: 7}   here nothing, or (4, …)       the next number is 34: a process ended, or another one wrote
//! stored {last: 9, isCalled: true}                                              the next number is 10: setval, or the process was shut down
//! ```
//!
//! A reserve counts for nothing once the token stored is another one, so whoever writes a sequence's document ends its reserve, wherever that was
//! written, and a process that ends without a word leaves a gap, never a number that is given twice. Numbers of a reserve are given while its
//! commit may still be on its way to the disk: who tells a client of one waits for it ([`Taken::lsn`]).

use crate::lock;
use nestor_exec::Interrupt;
use nestor_exec::interrupt::while_waiting;
use nestor_model::{Result, Str};
use nestor_storage::Lsn;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Numbers that are reserved beyond those that are wanted. PostgreSQL has as many.
pub const AHEAD: i64 = 32;
/// Between two looks whether the statement that waits is to stop.
const LOOK: Duration = Duration::from_millis(50);

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
    /// How many numbers a session is said to reserve. It is shown, and nothing depends on it: numbers are reserved for all sessions.
    pub cache: i64,
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
            cache: 1,
        }
    }

    /// The next number after a state, the last number and whether it was given; `None` when there is none.
    pub(crate) fn next(&self, state: Option<(i64, bool)>) -> Option<i64> {
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
    pub(crate) fn run(&self, first: i64, count: i64) -> i64 {
        let end = if self.increment > 0 { self.max } else { self.min };
        self.between(first, end).clamp(1, count.max(1))
    }

    /// How many numbers there are from one to another.
    fn between(&self, first: i64, end: i64) -> i64 {
        let count = (i128::from(end) - i128::from(first)) / i128::from(self.increment) + 1;
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// The last of `count` numbers from `first` on.
    pub(crate) fn end(&self, first: i64, count: i64) -> i64 {
        first.saturating_add((count - 1).saturating_mul(self.increment))
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

/// Numbers that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The first of them.
    pub first: i64,
    /// How many follow each other.
    pub count: i64,
    /// The commit that reserved them.
    pub lsn: Lsn,
}

/// Numbers that were reserved in one commit.
#[derive(Clone, Debug)]
pub(crate) struct Reserve {
    /// What stands beside them where they are stored.
    pub token: i64,
    /// The last number that was given.
    pub last: i64,
    /// The last of them.
    pub end: i64,
    /// How they follow each other.
    pub counting: Counting,
    /// Their commit.
    pub lsn: Lsn,
}

impl Reserve {
    fn take(&mut self, count: i64) -> Option<Taken> {
        if self.last == self.end {
            return None;
        }
        let first = self.last.checked_add(self.counting.increment)?;
        let count = self.counting.between(first, self.end).min(count.max(1));
        self.last = self.counting.end(first, count);
        let lsn = self.lsn;
        Some(Taken { first, count, lsn })
    }
}

/// A reserve of which no number is given any more.
#[derive(Debug)]
pub(crate) struct GivenUp {
    /// The database.
    pub db: Str,
    collection: [u8; 16],
    column: Box<str>,
    /// What stands beside it where it is stored.
    pub token: i64,
    /// The last number that was given.
    pub last: i64,
}

impl GivenUp {
    /// The sequence.
    pub fn key(&self) -> Key<'_> {
        Key {
            collection: self.collection,
            column: &self.column,
        }
    }
}

/// What is known of a sequence.
#[derive(Debug)]
struct Entry {
    db: Str,
    column: Box<str>,
    reserve: Option<Reserve>,
    /// A statement is about to reserve more.
    is_extended: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By the UUIDs of collections.
    entries: HashMap<[u8; 16], Vec<Entry>>,
    /// How many collections there may be until those that are gone are looked for.
    sweep_at: usize,
}

impl State {
    fn find(&mut self, key: Key<'_>) -> Option<&mut Entry> {
        let entries = self.entries.get_mut(&key.collection)?;
        entries.iter_mut().find(|entry| *entry.column == *key.column)
    }

    fn reserve(&mut self, key: Key<'_>, token: i64) -> Option<&mut Reserve> {
        let reserve = self.find(key)?.reserve.as_mut()?;
        (reserve.token == token).then_some(reserve)
    }
}

/// The reserves of a process.
#[derive(Debug, Default)]
pub struct Sequences {
    state: Mutex<State>,
    /// A statement has reserved more, or given it up.
    extended: Condvar,
}

impl Sequences {
    /// Takes up to `count` numbers from the reserve with a token, unless the sequence counts otherwise by now.
    pub(crate) fn take(&self, key: Key<'_>, token: i64, counting: &Counting, count: i64) -> Option<Taken> {
        let mut state = lock(&self.state);
        let reserve = state.reserve(key, token)?;
        (reserve.counting == *counting).then(|| reserve.take(count))?
    }

    /// The last number that was given of the reserve with a token.
    pub(crate) fn last(&self, key: Key<'_>, token: i64) -> Option<i64> {
        Some(lock(&self.state).reserve(key, token)?.last)
    }

    /// Begins to reserve numbers, which one statement at a time does for a sequence: others wait for what it brings. `None` for one that has
    /// waited.
    ///
    /// Errors: those of the interrupt.
    pub(crate) fn extend<'s>(&'s self, db: &str, key: Key<'s>, interrupt: &Interrupt) -> Result<Option<Extending<'s>>> {
        let mut state = lock(&self.state);
        match state.find(key) {
            Some(entry) if entry.is_extended => {}
            Some(entry) => {
                entry.is_extended = true;
                return Ok(Some(Extending { sequences: self, key }));
            }
            None => {
                let entry = Entry {
                    db: db.into(),
                    column: key.column.into(),
                    reserve: None,
                    is_extended: true,
                };
                state.entries.entry(key.collection).or_default().push(entry);
                return Ok(Some(Extending { sequences: self, key }));
            }
        }
        while_waiting(|| {
            while state.find(key).is_some_and(|entry| entry.is_extended) {
                interrupt.check()?;
                let waited = self.extended.wait_timeout(state, LOOK);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
            Ok(None)
        })
    }

    /// Whether there are so many that it is time to [`sweep`](Self::sweep).
    pub(crate) fn is_full(&self) -> bool {
        let state = lock(&self.state);
        state.entries.len() > state.sweep_at.max(64)
    }

    /// Forgets the reserves of collections that are gone.
    pub(crate) fn sweep(&self, is_there: impl Fn(&[u8; 16]) -> bool) {
        let mut state = lock(&self.state);
        let in_use = |entries: &Vec<Entry>| entries.iter().any(|entry| entry.is_extended);
        state.entries.retain(|uuid, entries| is_there(uuid) || in_use(entries));
        state.sweep_at = state.entries.len() * 2;
    }

    /// Gives up all reserves.
    pub(crate) fn give_up(&self) -> Vec<GivenUp> {
        let mut out = Vec::new();
        for (uuid, entries) in &mut lock(&self.state).entries {
            for entry in entries {
                if let Some(reserve) = entry.reserve.take() {
                    out.push(GivenUp {
                        db: entry.db.clone(),
                        collection: *uuid,
                        column: entry.column.clone(),
                        token: reserve.token,
                        last: reserve.last,
                    });
                }
            }
        }
        out
    }
}

/// A statement that reserves numbers.
pub(crate) struct Extending<'s> {
    sequences: &'s Sequences,
    key: Key<'s>,
}

impl Extending<'_> {
    /// Ends the reserve with a token: the last number that was given of it. What is left of it is not given any more.
    pub(crate) fn close(&self, token: i64) -> Option<i64> {
        let mut state = lock(&self.sequences.state);
        let reserve = state.reserve(self.key, token)?;
        reserve.end = reserve.last;
        Some(reserve.last)
    }

    /// Has numbers given from what was reserved.
    pub(crate) fn keep(&self, reserve: Reserve) {
        if let Some(entry) = lock(&self.sequences.state).find(self.key) {
            entry.reserve = Some(reserve);
        }
    }
}

impl Drop for Extending<'_> {
    fn drop(&mut self) {
        if let Some(entry) = lock(&self.sequences.state).find(self.key) {
            entry.is_extended = false;
        }
        self.sequences.extended.notify_all();
    }
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
            cache: 1,
        };
        assert_eq!(down.next(Some((-1, true))), Some(-3));
        assert_eq!(down.next(Some((i64::MIN, true))), Some(-1));
        assert_eq!(down.run(i64::MIN + 1, 5), 1);
    }

    #[test]
    fn a_reserve_is_given_up_to_its_end_and_by_its_token() {
        let key = Key {
            collection: [1; 16],
            column: "id",
        };
        let sequences = Sequences::default();
        let counting = Counting {
            increment: -3,
            min: i64::MIN,
            ..Counting::up_to(i64::MAX)
        };
        let extending = sequences.extend("d", key, &Interrupt::default()).expect("no interrupt");
        let extending = extending.expect("nobody else reserves");
        extending.keep(Reserve {
            token: 7,
            last: 10,
            end: 1,
            counting,
            lsn: Lsn(5),
        });
        let take = |token, count| sequences.take(key, token, &counting, count).map(|t| (t.first, t.count));
        assert_eq!(take(6, 1), None);
        assert_eq!(take(7, 1), Some((7, 1)));
        assert_eq!(sequences.take(key, 7, &Counting::up_to(9), 1), None);
        assert_eq!(take(7, 5), Some((4, 2)));
        assert_eq!((take(7, 1), sequences.last(key, 7)), (None, Some(1)));
        drop(extending);
        sequences.sweep(|_| false);
        assert_eq!(sequences.last(key, 7), None);
    }
}
