//! Keys that wait to be looked at: what a session remembers of its transaction.
//!
//! A transaction chooses for constraints that are deferrable whether they wait ([`Deferred::choose`]). What waits is a question about a key,
//! not about a row ([`Waiting`]), so that it does not matter what becomes of the row meanwhile. Questions that were answered within a savepoint stay
//! until that is gone: to roll back to it asks them anew.

use crate::catalog::Timing;
use crate::error::{error, fail};
use nestor_model::{Namespace, Result, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a transaction's waiting keys may take.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// What is asked of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// A row got it: is it one of the other table?
    There,
    /// A row of the other table lost it: has nobody it any more?
    Unused,
    /// A row got it that no other one may have.
    Single,
    /// A row got what it is compared by: does another one exclude it? The key is its `_id`.
    Apart,
    /// A trigger is to be called for a row: the key is the row's document before and after, nulls where there is none.
    Called,
}

/// A key that is to be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The table that has the constraint.
    pub(crate) table: Namespace,
    /// The name of the constraint.
    pub(crate) constraint: String,
    /// The table whose row was written.
    pub(crate) written: Namespace,
    /// The values of its columns, none of them null unless nulls are values like others.
    pub(crate) key: Vec<Value>,
    /// What is asked.
    pub(crate) question: Question,
}

impl Waiting {
    /// What it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let names = self.constraint.len() + self.table.coll.len() + self.written.coll.len();
        size_of::<Self>() + names + self.key.iter().map(Value::weight).sum::<usize>()
    }
}

/// Which constraints wait, as the transaction has chosen.
#[derive(Clone, Debug, Default)]
struct Choice {
    /// All of which nothing else is said.
    all: Option<bool>,
    /// Of some, by table and name.
    of: BTreeMap<(Namespace, String), bool>,
}

impl Choice {
    fn waits(&self, table: &Namespace, constraint: &str) -> Option<bool> {
        let own = match self.of.is_empty() {
            true => None,
            false => self.of.get(&(table.clone(), constraint.to_owned())).copied(),
        };
        own.or(self.all)
    }
}

#[derive(Debug)]
struct Item {
    waiting: Waiting,
    /// In which round it was answered; 0 while it waits.
    answered: u64,
}

#[derive(Clone, Debug)]
struct Mark {
    items: usize,
    round: u64,
    choice: Choice,
}

#[derive(Debug, Default)]
struct State {
    items: Vec<Item>,
    bytes: usize,
    round: u64,
    choice: Choice,
    savepoints: Vec<Mark>,
}

impl State {
    fn count(&mut self) {
        self.bytes = self.items.iter().map(|item| item.waiting.bytes()).sum();
    }
}

/// The foreign keys of a transaction that wait.
#[derive(Debug, Default)]
pub struct Deferred(Mutex<State>);

impl Deferred {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a constraint of `table` waits.
    pub(crate) fn waits(&self, table: &Namespace, (name, timing): (&str, Timing)) -> bool {
        let chosen = || self.state().choice.waits(table, name);
        match timing {
            Timing::AtOnce => false,
            Timing::Deferrable => chosen().unwrap_or(false),
            Timing::Deferred => chosen().unwrap_or(true),
        }
    }

    /// What the transaction chooses: for all constraints (`None`), or for these.
    pub(crate) fn choose(&self, which: Option<Vec<(Namespace, String)>>, waits: bool) {
        let choice = &mut self.state().choice;
        match which {
            None => {
                *choice = Choice {
                    all: Some(waits),
                    of: BTreeMap::new(),
                }
            }
            Some(which) => choice
                .of
                .extend(which.into_iter().map(|constraint| (constraint, waits))),
        }
    }

    /// Notes keys that wait.
    ///
    /// Errors: 53200.
    pub(crate) fn add(&self, waiting: Vec<Waiting>) -> Result<()> {
        let mut state = self.state();
        let bytes: usize = waiting.iter().map(Waiting::bytes).sum();
        if state.bytes + bytes > WAITING_BYTES_MAX {
            return fail("53200", "the keys that are deferred take too much memory");
        }
        state.bytes += bytes;
        state
            .items
            .extend(waiting.into_iter().map(|waiting| Item { waiting, answered: 0 }));
        Ok(())
    }

    /// Whether there is any that waits.
    pub(crate) fn is_any(&self) -> bool {
        self.state().items.iter().any(|item| item.answered == 0)
    }

    /// The keys that wait and that `is_due` says are to be looked at, with their numbers.
    pub(crate) fn due(&self, is_due: &dyn Fn(&Waiting) -> bool) -> Vec<(usize, Waiting)> {
        let state = self.state();
        let all = state.items.iter().enumerate().filter(|(_, item)| item.answered == 0);
        let due = all.filter(|(_, item)| is_due(&item.waiting));
        due.map(|(at, item)| (at, item.waiting.clone())).collect()
    }

    /// These have been looked at.
    pub(crate) fn answered(&self, numbers: &[usize]) {
        let mut state = self.state();
        state.round += 1;
        let round = state.round;
        for at in numbers {
            if let Some(item) = state.items.get_mut(*at) {
                item.answered = round;
            }
        }
        if state.savepoints.is_empty() {
            state.items.retain(|item| item.answered == 0);
            state.count();
        }
    }

    /// Refuses to change a table otherwise of which something waits.
    ///
    /// Errors: 55006.
    pub(crate) fn check_none_of(&self, table: &Namespace, verb: &str) -> Result<()> {
        let waits = |item: &Item| item.answered == 0 && item.waiting.written == *table;
        match self.state().items.iter().any(waits) {
            true => Err(error(
                "55006",
                format!("cannot {verb} \"{}\" because it has pending trigger events", table.coll),
            )),
            false => Ok(()),
        }
    }

    /// How many savepoints there are.
    pub(crate) fn savepoints(&self) -> usize {
        self.state().savepoints.len()
    }

    /// A savepoint begins.
    pub(crate) fn set_savepoint(&self) {
        let mut state = self.state();
        let mark = Mark {
            items: state.items.len(),
            round: state.round,
            choice: state.choice.clone(),
        };
        state.savepoints.push(mark);
    }

    /// All is as it was at the savepoint of this number, which stays.
    pub(crate) fn roll_back_to(&self, savepoint: usize) {
        let mut state = self.state();
        state.savepoints.truncate(savepoint + 1);
        let Some(mark) = state.savepoints.last().cloned() else {
            return;
        };
        state.items.truncate(mark.items);
        for item in state.items.iter_mut().filter(|item| item.answered > mark.round) {
            item.answered = 0;
        }
        state.choice = mark.choice;
        state.count();
    }

    /// The savepoint of this number and those behind it are gone.
    pub(crate) fn release(&self, savepoint: usize) {
        self.state().savepoints.truncate(savepoint);
    }

    /// The transaction is over.
    pub(crate) fn clear(&self) {
        *self.state() = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(n: i32) -> Waiting {
        Waiting {
            table: Namespace::new("d", "t"),
            constraint: "c".to_owned(),
            written: Namespace::new("d", "t"),
            key: vec![Value::Int32(n)],
            question: Question::There,
        }
    }

    fn keys(deferred: &Deferred) -> Vec<i32> {
        let due = deferred.due(&|_| true).into_iter();
        let keys = due.flat_map(|(_, waiting)| waiting.key);
        keys.map(|key| match key {
            Value::Int32(n) => n,
            other => panic!("another key: {other:?}"),
        })
        .collect()
    }

    #[test]
    fn savepoints_bring_back_what_was_answered_within_them() {
        let deferred = Deferred::default();
        deferred.add(vec![waiting(1), waiting(2)]).unwrap();
        deferred.answered(&[0]);
        assert_eq!(keys(&deferred), [2]);
        deferred.set_savepoint();
        deferred.add(vec![waiting(3)]).unwrap();
        deferred.set_savepoint();
        deferred.answered(&[0, 1]);
        assert!(!deferred.is_any());
        deferred.roll_back_to(1);
        assert_eq!(keys(&deferred), [2, 3]);
        deferred.answered(&[0]);
        deferred.release(1);
        deferred.roll_back_to(0);
        assert_eq!(keys(&deferred), [2]);
        assert_eq!(deferred.state().bytes, waiting(2).bytes());
    }

    #[test]
    fn what_waits_is_bounded() {
        let deferred = Deferred::default();
        let mut large = waiting(1);
        large.key = vec![Value::from("x".repeat(WAITING_BYTES_MAX).as_str())];
        assert!(deferred.add(vec![large]).is_err());
        assert!(!deferred.is_any());
    }
}
