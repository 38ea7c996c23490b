//! The connection whose statement this thread runs, for the functions that are about it.
//!
//! A statement runs on one thread from its beginning to its end, as [`under`](nestor_model::statement::under) has it too.

use nestor_database::advisory::{AdvisoryLocks, Key, Mode};
use nestor_database::channels::Channels;
use nestor_exec::Interrupt;
use nestor_exec::interrupt::while_waiting;
use nestor_exec::write::check_wait;
use nestor_model::{Result, Str};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What functions see of the connection.
pub struct Current {
    /// Its number.
    pub id: i64,
    /// Its database.
    pub db: Str,
    /// The locks of all connections.
    pub locks: Arc<AdvisoryLocks>,
    /// Channels on which sessions tell each other something.
    pub channels: Arc<Channels>,
    /// Says when the statement has to stop.
    pub interrupt: Interrupt,
    /// How long it waits for a lock.
    pub lock_timeout: Cell<Option<Duration>>,
    /// Its user may do everything.
    pub is_superuser: bool,
}

impl Current {
    /// Takes a lock, waiting for it; other statements run on the thread's processor meanwhile.
    ///
    /// Errors: those of [`AdvisoryLocks::take`] and of the interrupt.
    pub fn wait_for(&self, key: &Key, mode: Mode) -> Result<()> {
        if self.locks.try_take(self.id, key, mode)? {
            return Ok(());
        }
        let until = self.lock_timeout.get().map(|most| Instant::now() + most);
        let look = || {
            self.interrupt.check()?;
            check_wait(until)
        };
        while_waiting(|| self.locks.take(self.id, key, mode, look))
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Current>>> = const { RefCell::new(None) };
}

/// The connection, if a statement of one runs.
pub fn get() -> Option<Rc<Current>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` as a statement of `current`.
pub fn with<T>(current: Current, work: impl FnOnce() -> T) -> T {
    struct Before(Option<Rc<Current>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(Some(Rc::new(current))));
    work()
}
