//! Advisory locks: numbers that sessions lock by agreement, which the database gives no meaning.
//!
//! A lock is shared or exclusive, belongs to a session or to a transaction of it, and is held as often as it was taken. Who wants one that
//! others hold waits, and hears of it when they wait, be it over others, for the one that wants to. Source: PostgreSQL's manual, "Advisory Locks"
//! and "Advisory Lock Functions".

use crate::lock;
use nestor_model::{Error, ErrorCode, Result, Str, bail};
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Most locks that all sessions hold together: each takes about 100 bytes.
const LOCKS_MAX: usize = 100_000;
/// Between two looks whether the statement that waits is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Databases have numbers of their own.
    pub db: Str,
    /// One number of 64 bits or two of 32, which are never the same.
    pub is_pair: bool,
    /// The number, or both.
    pub number: i64,
}

/// How it is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Nobody else may hold it; otherwise nobody else may hold it so.
    pub is_exclusive: bool,
    /// It ends with the transaction.
    pub of_transaction: bool,
}

/// A lock that a session holds.
#[derive(Debug)]
struct Held {
    session: i64,
    mode: Mode,
    times: u64,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<Key, Vec<Held>>,
    /// How many entries `held` has in all.
    count: usize,
    /// What sessions wait for.
    waiting: HashMap<i64, (Key, bool)>,
}

/// The advisory locks of a database process.
#[derive(Debug, Default)]
pub struct AdvisoryLocks {
    state: Mutex<State>,
    released: Condvar,
}

impl State {
    /// The sessions that stand in the way.
    fn in_the_way<'s>(&'s self, session: i64, key: &Key, is_exclusive: bool) -> impl Iterator<Item = i64> + use<'s> {
        let held = self.held.get(key).into_iter().flatten();
        held.filter(move |held| held.session != session && (is_exclusive || held.mode.is_exclusive))
            .map(|held| held.session)
    }

    /// Whether a session that waits for this waits for itself.
    fn is_circle(&self, session: i64, key: &Key, is_exclusive: bool) -> bool {
        let mut seen = HashSet::new();
        let mut open: Vec<i64> = self.in_the_way(session, key, is_exclusive).collect();
        while let Some(other) = open.pop() {
            if other == session {
                return true;
            }
            if let Some((key, is_exclusive)) = self.waiting.get(&other).filter(|_| seen.insert(other)) {
                open.extend(self.in_the_way(other, key, *is_exclusive));
            }
        }
        false
    }

    fn grant(&mut self, session: i64, key: &Key, mode: Mode) -> Result<()> {
        if self.count >= LOCKS_MAX && !self.held.contains_key(key) {
            bail!(
                ExceededMemoryLimit,
                "out of memory for advisory locks: there are {LOCKS_MAX}"
            );
        }
        let held = self.held.entry(key.clone()).or_default();
        match held
            .iter_mut()
            .find(|held| held.session == session && held.mode == mode)
        {
            Some(held) => held.times += 1,
            None => {
                held.push(Held {
                    session,
                    mode,
                    times: 1,
                });
                self.count += 1;
            }
        }
        Ok(())
    }

    /// Drops what is no longer held; whether there was any.
    fn drop_where(&mut self, mut is_over: impl FnMut(&mut Held) -> bool) -> bool {
        let before = self.count;
        self.held.retain(|_, held| {
            let all = held.len();
            held.retain_mut(|held| !is_over(held));
            self.count -= all - held.len();
            !held.is_empty()
        });
        self.count < before
    }
}

impl AdvisoryLocks {
    /// Takes a lock, or says that others hold it.
    ///
    /// Errors: 146 when there are too many.
    pub fn try_take(&self, session: i64, key: &Key, mode: Mode) -> Result<bool> {
        let mut state = lock(&self.state);
        if state.in_the_way(session, key, mode.is_exclusive).next().is_some() {
            return Ok(false);
        }
        state.grant(session, key, mode).map(|()| true)
    }

    /// Takes a lock, waiting until nobody else holds it; `look` says whether to wait on.
    ///
    /// Errors: 107 when those who hold it wait for this session; those of `look`; 146 when there are too many.
    pub fn take(&self, session: i64, key: &Key, mode: Mode, look: impl Fn() -> Result<()>) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            if state.in_the_way(session, key, mode.is_exclusive).next().is_none() {
                state.waiting.remove(&session);
                return state.grant(session, key, mode);
            }
            // Holders and those who wait change only under the lock, so whoever closes a circle sees it.
            let verdict = match state.is_circle(session, key, mode.is_exclusive) {
                true => Err(Error::new(ErrorCode::LockFailed, "deadlock detected")),
                false => look(),
            };
            if let Err(error) = verdict {
                state.waiting.remove(&session);
                return Err(error);
            }
            state.waiting.insert(session, (key.clone(), mode.is_exclusive));
            state = match self.released.wait_timeout(state, LOOK) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Gives a session's lock up once; whether it was held.
    pub fn give_up(&self, session: i64, key: &Key, is_exclusive: bool) -> bool {
        let mut state = lock(&self.state);
        let mode = Mode {
            is_exclusive,
            of_transaction: false,
        };
        let Some(all) = state.held.get_mut(key) else {
            return false;
        };
        let Some(at) = all.iter().position(|held| held.session == session && held.mode == mode) else {
            return false;
        };
        all[at].times -= 1;
        if all[at].times == 0 {
            all.swap_remove(at);
            if all.is_empty() {
                state.held.remove(key);
            }
            state.count -= 1;
            drop(state);
            self.released.notify_all();
        }
        true
    }

    /// Gives up what a session took for itself.
    pub fn give_up_all(&self, session: i64) {
        self.end(|held| held.session == session && !held.mode.of_transaction);
    }

    /// A session's transaction is over.
    pub fn end_transaction(&self, session: i64) {
        self.end(|held| held.session == session && held.mode.of_transaction);
    }

    /// A session is over.
    pub fn end_session(&self, session: i64) {
        self.end(|held| held.session == session);
    }

    fn end(&self, is_over: impl Fn(&Held) -> bool) {
        let mut state = lock(&self.state);
        if state.count > 0 && state.drop_where(|held| is_over(held)) {
            drop(state);
            self.released.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const SHARED: Mode = Mode {
        is_exclusive: false,
        of_transaction: false,
    };
    const EXCLUSIVE: Mode = Mode {
        is_exclusive: true,
        of_transaction: false,
    };
    const OF_TRANSACTION: Mode = Mode {
        is_exclusive: true,
        of_transaction: true,
    };

    fn key(number: i64) -> Key {
        Key {
            db: "d".into(),
            is_pair: false,
            number,
        }
    }

    #[test]
    fn who_may_hold_what() {
        let locks = AdvisoryLocks::default();
        let take = |session, mode| locks.try_take(session, &key(1), mode).expect("there is room");
        assert!(take(1, SHARED) && take(2, SHARED) && !take(2, EXCLUSIVE));
        assert!(locks.give_up(1, &key(1), false) && !locks.give_up(1, &key(1), false));
        assert!(
            take(2, EXCLUSIVE) && take(2, EXCLUSIVE) && !take(1, SHARED),
            "one's own locks are in nobody's way"
        );
        assert!(
            locks.give_up(2, &key(1), true) && !take(1, SHARED),
            "as often as it was taken"
        );
        locks.give_up_all(2);
        assert!(take(1, OF_TRANSACTION) && !take(2, SHARED));
        assert!(
            !locks.give_up(1, &key(1), true),
            "that of a transaction is given up by its end"
        );
        locks.end_transaction(1);
        assert!(take(2, SHARED));
        let pair = Key {
            is_pair: true,
            ..key(1)
        };
        assert!(
            locks.try_take(1, &pair, EXCLUSIVE).expect("there is room"),
            "pairs are numbers of their own"
        );
        locks.end_session(1);
        locks.end_session(2);
        assert_eq!(lock(&locks.state).count, 0);
        assert!(lock(&locks.state).held.is_empty());
    }

    #[test]
    fn waiting_ends_by_release_by_the_look_and_by_a_circle() {
        let locks = Arc::new(AdvisoryLocks::default());
        locks.try_take(1, &key(1), EXCLUSIVE).expect("there is room");
        locks.try_take(2, &key(2), EXCLUSIVE).expect("there is room");
        let stopped = locks.take(2, &key(1), SHARED, || Err(Error::new(ErrorCode::Interrupted, "stop")));
        assert_eq!(stopped.expect_err("it was stopped").code(), ErrorCode::Interrupted);
        let other = locks.clone();
        let waits = std::thread::spawn(move || other.take(2, &key(1), EXCLUSIVE, || Ok(())));
        while lock(&locks.state).waiting.is_empty() {
            std::thread::yield_now();
        }
        let refused = locks.take(1, &key(2), SHARED, || Ok(()));
        assert_eq!(refused.expect_err("a circle").code(), ErrorCode::LockFailed);
        locks.end_session(1);
        waits.join().expect("it ends").expect("it has the lock");
        assert!(lock(&locks.state).waiting.is_empty());
    }
}
