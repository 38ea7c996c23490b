//! What may stand between a statement and its running: locks and blocks that an operator set, and fail
//! points. All of it is rare, so one
//! load says that there is nothing.

use crate::fail_points::FailPoints;
use nestor_exec::Interrupt;
use nestor_exec::write::admission::Admission;
use nestor_exec::write::collection_locks::CollectionLocks;
use nestor_model::namespace::is_internal_database;
use nestor_model::{Error, Result, bail};
use nestor_storage::{BaseHold, Engine};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// How often a write that waits for `fsyncUnlock`, or an `fsync` that waits for another, looks again.
pub const LOCK_POLL: Duration = Duration::from_millis(20);

/// Gates by bit.
#[derive(Debug, Default)]
pub struct Gates {
    /// Bits of [`FSYNC`], [`WRITE_BLOCK`], [`FAIL`], [`API`].
    closed: AtomicU32,
    fsync_locks: AtomicI64,
    /// The hold on the base while `fsync` has writes locked out.
    held: Mutex<Option<BaseHold>>,
    /// Attempts at a write pass it.
    pub admission: Admission,
    /// Transactions share those of the collections that they use.
    pub collections: Arc<CollectionLocks>,
    write_block: Mutex<Option<String>>,
    /// Fail points.
    pub fail_points: FailPoints,
}

const FSYNC: u32 = 1;
const WRITE_BLOCK: u32 = 2;
const FAIL: u32 = 4;
const API: u32 = 8;

/// The gates that are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed(u32);

impl Closed {
    /// None is.
    pub fn none(self) -> bool {
        self.0 == 0
    }

    /// `fsync` has locked writes out.
    pub fn fsync(self) -> bool {
        self.0 & FSYNC != 0
    }

    /// There are fail points.
    pub fn fail_points(self) -> bool {
        self.0 & FAIL != 0
    }

    /// An API version is required.
    pub fn api(self) -> bool {
        self.0 & API != 0
    }
}

impl Gates {
    fn set(&self, bit: u32, is_closed: bool) {
        if is_closed {
            self.closed.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.closed.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// How often `fsync` has locked.
    pub fn fsync_locks(&self) -> i64 {
        self.fsync_locks.load(Ordering::Acquire)
    }

    /// Locks once more; returns how often it is locked now. The first lock waits for the writes that run, and puts all that is
    /// committed into the base: from then on the files do not change, and a copy of them opens without replay.
    ///
    /// Errors: 24 when writes, or another that locks, still run at `deadline`; those of the interrupt and of a checkpoint. It
    /// is not locked by this then.
    pub fn fsync_lock(&self, engine: &Engine, deadline: Instant, interrupt: &Interrupt) -> Result<i64> {
        let mut held = self.wait_for_held(Some(deadline), interrupt)?;
        if held.is_none() {
            self.set(FSYNC, true);
            match self.stand_still(engine, deadline, interrupt) {
                Ok(hold) => *held = Some(hold),
                Err(error) => {
                    self.set(FSYNC, false);
                    return Err(error);
                }
            }
        }
        Ok(self.fsync_locks.fetch_add(1, Ordering::AcqRel) + 1)
    }

    fn stand_still(&self, engine: &Engine, deadline: Instant, interrupt: &Interrupt) -> Result<BaseHold> {
        if !self.admission.close(deadline, interrupt)? {
            bail!(
                LockTimeout,
                "timed out waiting for writes to end before locking them out"
            );
        }
        if let Err(error) = engine.checkpoint() {
            self.admission.open();
            return Err(error.into());
        }
        Ok(engine.hold_base())
    }

    /// Whoever is just locking keeps `held` for as long as writes run: waiting for it ends with the deadline and the interrupt.
    fn wait_for_held(
        &self,
        deadline: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Result<MutexGuard<'_, Option<BaseHold>>> {
        loop {
            match self.held.try_lock() {
                Ok(held) => return Ok(held),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            interrupt.check()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                bail!(LockTimeout, "timed out waiting for another fsync to lock writes out");
            }
            std::thread::sleep(LOCK_POLL);
        }
    }

    /// Unlocks once; returns how often it is still locked, or `None` when it was not. It waits for an `fsync` that is just
    /// locking.
    ///
    /// Errors: those of the interrupt.
    pub fn fsync_unlock(&self, interrupt: &Interrupt) -> Result<Option<i64>> {
        let mut held = self.wait_for_held(None, interrupt)?;
        if held.is_none() {
            return Ok(None);
        }
        let left = self.fsync_locks.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 {
            *held = None;
            self.set(FSYNC, false);
            self.admission.open();
        }
        Ok(Some(left))
    }

    /// The reason for which users' writes are blocked, if they are.
    pub fn write_block(&self) -> Option<String> {
        crate::lock(&self.write_block).clone()
    }

    /// Blocks users' writes for a reason, or lifts the block.
    pub fn set_write_block(&self, reason: Option<String>) {
        let mut block = crate::lock(&self.write_block);
        self.set(WRITE_BLOCK, reason.is_some());
        *block = reason;
    }

    /// Refuses users' writes to a database while they are blocked.
    ///
    /// Error: 371.
    pub fn check_user_write(&self, db: &str) -> Result<()> {
        let blocked = self.closed.load(Ordering::Acquire) & WRITE_BLOCK != 0;
        if blocked && !is_internal_database(db) {
            bail!(371, "User writes blocked");
        }
        Ok(())
    }

    /// To be called before a statement of a retryable write commits: whether a fail point wants the connection closed after
    /// the statement, and the commit to fail.
    pub fn on_retryable_write(&self) -> (bool, Option<Error>) {
        match self.closed().fail_points() {
            false => (false, None),
            true => self.fail_points.on_retryable_write(),
        }
    }

    /// Whether a fail point has an operation exceed its time limit.
    pub fn times_out(&self) -> bool {
        self.closed().fail_points() && self.fail_points.times_out()
    }

    /// To be called when fail points changed.
    pub fn fail_points_changed(&self) {
        self.set(FAIL, self.fail_points.any());
    }

    /// Which gates are closed. Costs one load.
    pub fn closed(&self) -> Closed {
        Closed(self.closed.load(Ordering::Acquire))
    }

    /// To be called when `requireApiVersion` changed.
    pub fn set_api_required(&self, required: bool) {
        self.set(API, required);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fsync_locks_nest() {
        let gates = Gates::default();
        let engine = Engine::ephemeral(nestor_storage::EngineOptions::at_time(1_700_000_000));
        let lock = || {
            gates
                .fsync_lock(&engine, Instant::now(), &Interrupt::default())
                .expect("nobody writes")
        };
        let unlock = || gates.fsync_unlock(&Interrupt::default()).expect("nobody interrupts it");
        assert_eq!(unlock(), None);
        assert_eq!((lock(), lock()), (1, 2));
        assert_eq!(gates.closed.load(Ordering::Relaxed), FSYNC);
        assert_eq!((unlock(), unlock()), (Some(1), Some(0)));
        assert_eq!(gates.closed.load(Ordering::Relaxed), 0);
        let writing = gates.admission.try_enter();
        let error = gates.fsync_lock(&engine, Instant::now(), &Interrupt::default());
        assert_eq!(error.expect_err("somebody writes").code().number(), 24);
        assert_eq!(gates.closed.load(Ordering::Relaxed), 0);
        drop(writing);
        assert_eq!(lock(), 1);
    }

    #[test]
    fn waiting_for_another_fsync_ends() {
        let gates = Gates::default();
        let engine = Engine::ephemeral(nestor_storage::EngineOptions::at_time(1_700_000_000));
        let _locking = crate::lock(&gates.held);
        let error = gates.fsync_lock(&engine, Instant::now(), &Interrupt::default());
        assert_eq!(error.expect_err("another is locking").code().number(), 24);
        let interrupt = Interrupt::new(std::sync::Arc::default(), Some(Instant::now()));
        let error = gates.fsync_unlock(&interrupt);
        assert_eq!(error.expect_err("it is out of time").code().number(), 50);
    }
}
