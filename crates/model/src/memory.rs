//! Memory of statements: an account for each, and the pool that they share.
//!
//! ```text
//! Pool (a limit for the process)
//!  └─ Account (a connection's statement): values being built + what operators hold (Held)
//! ```
//!
//! Counting costs nothing where values are built (see [`crate::statement`]); accounts are brought up to date whenever the
//! statement looks at its interrupt. When all together hold more than the pool may, the statement that holds most is ended
//! ([`Pool::shed`]) through its [`KillSwitch`], with error 146.

use crate::interrupt::KillSwitch;
use crate::{Error, ErrorCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
    accounts: Mutex<Vec<Weak<Account>>>,
}

impl Default for Pool {
    /// Without a limit.
    fn default() -> Self {
        Self {
            limit: AtomicUsize::new(usize::MAX),
            held: AtomicUsize::new(0),
            accounts: Mutex::default(),
        }
    }
}

impl Pool {
    /// Bytes that all statements together may hold.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that all statements together hold.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
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

    /// Ends the statement that holds most; the bytes it held. Does nothing while the pool is within its limit, or
    /// when a statement that was ended has not stopped yet.
    pub fn shed(&self) -> Option<usize> {
        if !self.over_limit() {
            return None;
        }
        let accounts: Vec<Arc<Account>> = self.accounts().iter().filter_map(Weak::upgrade).collect();
        let ended = |account: &Arc<Account>| account.kill.killed() == Some(ErrorCode::ExceededMemoryLimit);
        if accounts.iter().any(|account| ended(account) && account.held() > 0) {
            return None;
        }
        let largest = accounts.iter().max_by_key(|account| account.held())?;
        largest.kill.kill(ErrorCode::ExceededMemoryLimit);
        Some(largest.held())
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
        self.values.load(Ordering::Relaxed) + self.kept.load(Ordering::Relaxed)
    }

    /// The pool it belongs to.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Sets what the values being built take; ends the largest statement when all together hold too much.
    pub(crate) fn set_values(&self, bytes: usize) {
        let before = self.values.swap(bytes, Ordering::Relaxed);
        self.moved(before, bytes);
    }

    fn moved(&self, before: usize, now: usize) {
        if now > before {
            self.pool.held.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.pool.held.fetch_sub(before - now, Ordering::Relaxed);
        }
        // Also after something was given back: the one that was ended may not have been enough, and the others may only be waiting.
        self.pool.shed();
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.moved(self.held(), 0);
    }
}

/// Bytes that something holds for a statement, such as the buffer of an operator; given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    account: Option<Arc<Account>>,
    bytes: usize,
}

impl Held {
    /// Nothing yet, for the statement that runs on this thread.
    pub fn by_this_statement() -> Self {
        Self {
            account: crate::statement::account(),
            bytes: 0,
        }
    }

    /// Nothing yet, for statements of `account` and for the connection that sends them.
    pub fn by(account: Option<Arc<Account>>) -> Self {
        Self { account, bytes: 0 }
    }

    /// It holds so much now.
    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(account) = &self.account {
            if bytes > before {
                account.kept.fetch_add(bytes - before, Ordering::Relaxed);
            } else {
                account.kept.fetch_sub(before - bytes, Ordering::Relaxed);
            }
            account.moved(before, bytes);
        }
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
}
