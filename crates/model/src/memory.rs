//! Memory of statements: an account for each, and the pool that they share.
//!
//! ```text
//! Pool (a limit for the process)
//!  ├─ Account (a connection's statement): values being built + what operators hold (Held)
//!  └─ what the operators of idle cursors hold (Held at rest)
//! ```
//!
//! Counting costs nothing where values are built (see [`crate::statement`]); accounts are brought up to date whenever the
//! statement looks at its interrupt. When all together hold more than the pool may, the statement that holds most is ended
//! ([`Pool::shed`]) through its [`KillSwitch`], with error 146. An idle cursor has no statement that could be ended: one that holds
//! more than any statement is closed, by whoever has the cursors ([`Pool::close_idle_by`]).

use crate::interrupt::KillSwitch;
use crate::{Error, ErrorCode};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The error of a statement that holds too much.
pub fn exceeded(bytes: usize, limit: usize) -> Error {
    Error::new(
        ErrorCode::ExceededMemoryLimit,
        format!("the values being computed take {bytes} bytes, which exceeds the limit of {limit} bytes"),
    )
}

/// Memory that all statements share.
#[derive(Debug)]
pub struct Pool {
    limit: AtomicUsize,
    held: AtomicUsize,
    /// Of that, what belongs to no statement now.
    at_rest: AtomicUsize,
    close_idle: OnceLock<CloseIdle>,
    /// Somebody looks just now what is to be ended.
    is_shedding: AtomicBool,
    accounts: Mutex<Vec<Weak<Account>>>,
}

/// What came of making room.
enum Room {
    /// They hold no more than they may.
    Enough,
    /// A statement that held so many bytes was ended.
    Ended(usize),
    /// One that was ended has not stopped yet, or nobody is there to be ended.
    Awaited,
}

/// Closes an idle cursor; see [`Pool::close_idle_by`].
struct CloseIdle(Box<dyn Fn(usize) -> bool + Send + Sync>);

impl fmt::Debug for CloseIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CloseIdle")
    }
}

impl Default for Pool {
    /// Without a limit.
    fn default() -> Self {
        Self {
            limit: AtomicUsize::new(usize::MAX),
            held: AtomicUsize::new(0),
            at_rest: AtomicUsize::new(0),
            close_idle: OnceLock::new(),
            is_shedding: AtomicBool::new(false),
            accounts: Mutex::default(),
        }
    }
}

impl Pool {
    /// Bytes that all may hold together.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that all statements together may hold.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that all statements and idle cursors together hold.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// Bytes of that which belong to no statement now, but to idle cursors.
    pub fn at_rest(&self) -> usize {
        self.at_rest.load(Ordering::Relaxed)
    }

    /// `close` closes the idle cursor that holds most if it holds more than so many bytes, and says whether it did. It is called by
    /// whichever thread finds that all together hold too much, so it must not wait for a lock that this thread may have. Only the
    /// first call of this counts.
    pub fn close_idle_by(&self, close: impl Fn(usize) -> bool + Send + Sync + 'static) {
        self.close_idle.get_or_init(|| CloseIdle(Box::new(close)));
    }

    /// They hold more than they may.
    pub fn over_limit(&self) -> bool {
        self.held() > self.limit.load(Ordering::Relaxed)
    }

    /// An account for statements that `kill` ends. It is gone when the last reference to it is.
    pub fn open(self: &Arc<Self>, kill: Arc<KillSwitch>) -> Arc<Account> {
        let account = Arc::new(Account {
            values: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            pool: self.clone(),
            kill,
        });
        let mut accounts = self.accounts();
        // Those that are gone are cleared away when the list would grow.
        if accounts.len() == accounts.capacity() {
            accounts.retain(|account| account.strong_count() > 0);
        }
        accounts.push(Arc::downgrade(&account));
        account
    }

    /// Ends the statement that holds most, or closes the idle cursors that hold more; the bytes that the statement held. Does
    /// nothing while the pool is within its limit, or when a statement that was ended has not stopped yet.
    pub fn shed(&self) -> Option<usize> {
        // Another thread that went over the limit while this one looked has left it to this one.
        while self.over_limit() && !self.is_shedding.swap(true, Ordering::AcqRel) {
            let ended = self.make_room(None);
            self.is_shedding.swap(false, Ordering::AcqRel);
            if let Room::Ended(bytes) = ended {
                return Some(bytes);
            }
            if let Room::Awaited = ended {
                return None;
            }
        }
        None
    }

    /// Ends the statement that holds most, or closes the idle cursor that holds more, although the pool may be within its limit: the
    /// process as a whole takes too much. Bytes that the statement held. Nobody is ended who holds less than `least` bytes, because
    /// that would not help, and nobody as long as a statement that was ended has not stopped.
    pub fn end_largest(&self, least: usize) -> Option<usize> {
        if self.is_shedding.swap(true, Ordering::AcqRel) {
            return None;
        }
        let ended = self.make_room(Some(least));
        self.is_shedding.swap(false, Ordering::AcqRel);
        // Whoever went over the limit in the meantime left it to this thread.
        self.shed();
        match ended {
            Room::Ended(bytes) => Some(bytes),
            Room::Enough | Room::Awaited => None,
        }
    }

    /// Makes room until the pool is within its limit; with `least` once, and by somebody who holds at least so many bytes. Only one
    /// thread does this at a time. What closing a cursor gives back comes here again through [`Self::shed`], which leaves it to this
    /// loop.
    fn make_room(&self, least: Option<usize>) -> Room {
        while least.is_some() || self.over_limit() {
            let accounts: Vec<Arc<Account>> = self.accounts().iter().filter_map(Weak::upgrade).collect();
            // The turn of a statement is read before its memory: if the statement ends in between, the next one of its connection is not ended.
            let seen = accounts
                .iter()
                .map(|account| (account.kill.turn(), account.held(), account));
            let seen: Vec<_> = seen.collect();
            let ended = |account: &Arc<Account>| account.kill.killed() == Some(ErrorCode::ExceededMemoryLimit);
            if seen.iter().any(|(_, held, account)| *held > 0 && ended(account)) {
                return Room::Awaited;
            }
            let largest = seen.iter().max_by_key(|(_, held, _)| *held);
            let most = largest.map_or(0, |(_, held, _)| *held).max(least.unwrap_or(0));
            let closes = |close: &CloseIdle| self.at_rest() > most && (close.0)(most);
            match (self.close_idle.get().is_some_and(closes), least) {
                (true, Some(_)) => return Room::Enough,
                (true, None) => continue,
                (false, _) => {}
            }
            // What was given back since this began is gone from the pool before it is gone from the accounts that were read.
            if least.is_none() && !self.over_limit() {
                return Room::Enough;
            }
            match largest {
                Some((turn, held, account)) if *held > 0 && *held >= least.unwrap_or(0) => {
                    if account.kill.kill_in(*turn, ErrorCode::ExceededMemoryLimit) {
                        return Room::Ended(*held);
                    }
                }
                _ => return Room::Awaited,
            }
        }
        Room::Enough
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Weak<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of a statement.
#[derive(Debug)]
pub struct Account {
    /// Values being built, as last looked at.
    values: AtomicUsize,
    /// What operators hold.
    kept: AtomicUsize,
    pool: Arc<Pool>,
    kill: Arc<KillSwitch>,
}

impl Account {
    /// Bytes held.
    pub fn held(&self) -> usize {
        self.values.load(Ordering::Acquire) + self.kept.load(Ordering::Acquire)
    }

    /// The pool that the account belongs to.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Sets what the values being built take; ends the largest statement when all together hold too much.
    pub(crate) fn set_values(&self, bytes: usize) {
        let before = self.values.load(Ordering::Relaxed);
        self.change(&self.values, before, bytes);
    }

    /// What `of` counts goes from `before` to `now`. The pool never holds more than the accounts say: else somebody would look for a
    /// statement to end just when the one that was ended gives back what it held, and find an innocent one.
    fn change(&self, of: &AtomicUsize, before: usize, now: usize) {
        if now > before {
            change(of, before, now);
            change(&self.pool.held, before, now);
        } else {
            change(&self.pool.held, before, now);
            change(of, before, now);
        }
        // Also after something was given back: the one that was ended may not have been enough, and the others may only be waiting.
        self.pool.shed();
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        change(&self.pool.held, self.held(), 0);
        self.pool.shed();
    }
}

/// Bytes that something holds for a statement, such as the buffer of an operator; given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    account: Option<Arc<Account>>,
    bytes: usize,
    is_at_rest: bool,
}

impl Held {
    /// Nothing yet, for the statement that runs on this thread.
    pub fn by_this_statement() -> Self {
        Self::by(crate::statement::account())
    }

    /// Nothing yet, for statements of `account` and for the connection that sends them.
    pub fn by(account: Option<Arc<Account>>) -> Self {
        Self {
            account,
            bytes: 0,
            is_at_rest: false,
        }
    }

    /// The memory held is now so many bytes.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(account) = &self.account {
            let of = match self.is_at_rest {
                true => &account.pool.at_rest,
                false => &account.kept,
            };
            account.change(of, before, bytes);
        }
    }

    /// The statement is over and what it held is kept for another one.
    pub fn rest(&mut self) {
        if let (Some(account), false) = (&self.account, self.is_at_rest) {
            self.is_at_rest = true;
            change(&account.kept, self.bytes, 0);
            change(&account.pool.at_rest, 0, self.bytes);
        }
    }

    /// What it holds belongs to the statement that runs on this thread, if it was at rest and there is one.
    pub fn wake(&mut self) {
        if self.is_at_rest
            && let Some(account) = crate::statement::account()
        {
            let bytes = self.bytes;
            self.set(0);
            *self = Self::by(Some(account));
            self.set(bytes);
        }
    }
}

fn change(count: &AtomicUsize, before: usize, now: usize) {
    if now > before {
        count.fetch_add(now - before, Ordering::AcqRel);
    } else {
        count.fetch_sub(before - now, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::statement;

    #[test]
    fn the_largest_statement_ends() {
        let pool = Arc::new(Pool::default());
        pool.set_limit(1000);
        let kills: Vec<Arc<KillSwitch>> = (0..3).map(|_| Arc::default()).collect();
        let accounts: Vec<_> = kills.iter().map(|kill| pool.open(kill.clone())).collect();
        accounts[0].set_values(300);
        let mut held = statement::under(&Interrupt::default(), Some(&accounts[1]), Held::by_this_statement);
        held.set(500);
        assert!(!pool.over_limit() && kills.iter().all(|kill| kill.killed().is_none()));
        accounts[2].set_values(400);
        assert_eq!((pool.held(), pool.over_limit()), (1200, true));
        let killed: Vec<bool> = kills.iter().map(|kill| kill.killed().is_some()).collect();
        assert_eq!(killed, [false, true, false]);
        let error = Interrupt::new(kills[1].clone(), None).check().expect_err("ended");
        assert_eq!(error.code(), ErrorCode::ExceededMemoryLimit);
        accounts[2].set_values(450);
        assert!(kills[2].killed().is_none(), "one is enough until it has stopped");
        accounts[0].set_values(900);
        drop(held);
        assert!(
            kills[0].killed().is_some(),
            "it was not enough, and nobody grows any more"
        );
        drop(accounts);
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn the_largest_statement_ends_when_the_process_takes_too_much() {
        let pool = Arc::new(Pool::default());
        let kills: Vec<Arc<KillSwitch>> = (0..3).map(|_| Arc::default()).collect();
        let accounts: Vec<_> = kills.iter().map(|kill| pool.open(kill.clone())).collect();
        let killed = || kills.iter().map(|kill| kill.killed().is_some()).collect::<Vec<_>>();
        for (account, bytes) in accounts.iter().zip([300, 500, 400]) {
            account.set_values(bytes);
        }
        assert_eq!(pool.end_largest(501), None, "to end the small ones would not help");
        assert_eq!((pool.end_largest(200), killed()), (Some(500), vec![false, true, false]));
        assert_eq!(pool.end_largest(200), None, "one is enough until it has stopped");
        accounts[1].set_values(0);
        assert_eq!((pool.end_largest(200), killed()), (Some(400), vec![false, true, true]));
    }

    #[test]
    fn an_idle_cursor_that_holds_most_is_closed() {
        let pool = Arc::new(Pool::default());
        pool.set_limit(1000);
        let kills: Vec<Arc<KillSwitch>> = (0..2).map(|_| Arc::default()).collect();
        let accounts: Vec<_> = kills.iter().map(|kill| pool.open(kill.clone())).collect();
        let cursors: Arc<Mutex<Vec<Held>>> = Arc::default();
        let open = cursors.clone();
        pool.close_idle_by(move |than| {
            let mut open = open.try_lock().expect("nobody else has it");
            let largest = open.iter().enumerate().max_by_key(|(_, held)| held.bytes);
            let largest = largest.filter(|(_, held)| held.bytes > than).map(|(at, _)| at);
            let closed = largest.map(|at| open.remove(at));
            drop(open);
            closed.is_some()
        });
        for bytes in [300, 250] {
            let mut held = Held::by(Some(accounts[0].clone()));
            held.set(bytes);
            held.rest();
            cursors.lock().expect("sound").push(held);
        }
        assert_eq!((accounts[0].held(), pool.at_rest(), pool.held()), (0, 550, 550));
        // The cursor that is larger than the statement goes; then there is room.
        accounts[1].set_values(280);
        let mut more = Held::by(Some(accounts[0].clone()));
        more.set(200);
        assert_eq!((pool.at_rest(), pool.held()), (250, 730));
        assert!(kills.iter().all(|kill| kill.killed().is_none()));
        // Now the statement is the largest.
        more.set(600);
        assert_eq!((pool.at_rest(), pool.held()), (250, 1130));
        let killed: Vec<bool> = kills.iter().map(|kill| kill.killed().is_some()).collect();
        assert_eq!(killed, [true, false]);
        drop(more);
        // A cursor that is used again belongs to the statement that uses it.
        let mut used = cursors.lock().expect("sound").pop().expect("the smaller one");
        statement::under(&Interrupt::default(), Some(&accounts[1]), || used.wake());
        assert_eq!(
            (accounts[1].held(), pool.at_rest(), pool.held()),
            (250, 0, 250),
            "the statement's values are gone"
        );
        drop(used);
        drop(accounts);
        assert_eq!(pool.held(), 0);
    }
}
