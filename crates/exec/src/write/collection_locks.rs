//! Collections that transactions use and that others want to change: a drop, a rename, an index made or dropped, other options wait
//! until no open transaction uses the collection.
//!
//! Snapshots would let a transaction go on reading what was dropped, but what it writes could not be committed. Therefore a
//! transaction shares the lock of each collection from the first command that touches the collection until it ends, and whoever changes
//! the collection's catalog entry has the lock alone until that is committed. Whoever waits for it comes before
//! transactions that touch the collection later, so it does not wait for ever. Statements outside of transactions know nothing of these
//! locks: they are done again when the entry has changed.
//!
//! Source: manual, "Production Considerations", "Pending DDL Operations and Transactions".

use super::retry::check_wait;
use crate::interrupt::{Interrupt, while_waiting};
use nestor_model::{Result, bail};
use nestor_storage::CollectionId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often those who wait look whether they were interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// The locks of all collections.
#[derive(Debug, Default)]
pub struct CollectionLocks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many transactions share the lock.
    shared: HashMap<CollectionId, usize>,
    /// Locks that somebody has alone, or will have as soon as nobody shares them.
    exclusive: HashSet<CollectionId>,
}

impl State {
    fn is_free(&self, ids: &[CollectionId]) -> bool {
        !ids.iter().any(|id| self.exclusive.contains(id))
    }

    fn is_shared(&self, ids: &[CollectionId]) -> bool {
        ids.iter().any(|id| self.shared.contains_key(id))
    }
}

/// The locks that a transaction shares, until this is dropped.
#[derive(Debug)]
pub struct Shared {
    locks: Arc<CollectionLocks>,
    ids: Vec<CollectionId>,
}

/// Locks that nobody else has or shares, until this is dropped.
#[derive(Debug)]
pub struct Exclusion<'l> {
    locks: &'l CollectionLocks,
    ids: Vec<CollectionId>,
}

impl CollectionLocks {
    /// The locks of a transaction that has touched nothing.
    pub fn begin(self: &Arc<Self>) -> Shared {
        Shared {
            locks: self.clone(),
            ids: Vec::new(),
        }
    }

    /// Has the locks of these collections alone, if nobody has or shares one of them.
    pub fn try_exclude(&self, ids: &[CollectionId]) -> Option<Exclusion<'_>> {
        let mut state = self.lock();
        (state.is_free(ids) && !state.is_shared(ids)).then(|| self.take(&mut state, ids))
    }

    /// Waits until nobody has or shares the locks of these collections, and has them alone from then on. Transactions that touch one of
    /// the collections meanwhile have to wait.
    ///
    /// Errors: those of the interrupt.
    pub fn exclude(
        &self,
        ids: &[CollectionId],
        until: Option<Instant>,
        interrupt: &Interrupt,
    ) -> Result<Exclusion<'_>> {
        if let Some(exclusion) = self.try_exclude(ids) {
            return Ok(exclusion);
        }
        while_waiting(|| {
            // All at once, so that no two wait for each other.
            let mut state = self.wait(self.lock(), (until, interrupt), |state| state.is_free(ids))?;
            let exclusion = self.take(&mut state, ids);
            let waited = self.wait(state, (until, interrupt), |state| !state.is_shared(ids));
            // Giving the locks back takes the mutex that comes with the result.
            drop(waited?);
            Ok(exclusion)
        })
    }

    fn take(&self, state: &mut State, ids: &[CollectionId]) -> Exclusion<'_> {
        state.exclusive.extend(ids);
        Exclusion {
            locks: self,
            ids: ids.to_vec(),
        }
    }

    /// Waits until it is so, or the time is over.
    ///
    /// Errors: `LockTimeout`; those of the interrupt.
    fn wait<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        (until, interrupt): (Option<Instant>, &Interrupt),
        is_so: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'s, State>> {
        while !is_so(&state) {
            check_wait(until)?;
            let ends = [interrupt.deadline(), until].into_iter().flatten().min();
            let look = match ends {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()).min(LOOK),
                None => LOOK,
            };
            let waited = self.changed.wait_timeout(state, look);
            state = waited.expect("no holder of the lock panics").0;
            interrupt.check()?;
        }
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

impl Shared {
    /// Shares the locks of these collections, too. While somebody has one of them alone, or waits for that, this waits for `at_most`, or
    /// without limit.
    ///
    /// Errors: `LockTimeout`, after that time; those of the interrupt.
    pub fn share(&mut self, ids: &[CollectionId], at_most: Option<Duration>, interrupt: &Interrupt) -> Result<()> {
        let mut until = None;
        for id in ids {
            if self.ids.contains(id) {
                continue;
            }
            let mut state = self.locks.lock();
            if state.exclusive.contains(id) {
                // The time is that of all of them together.
                let until = *until.get_or_insert_with(|| at_most.map(|at_most| Instant::now() + at_most));
                state = while_waiting(|| self.await_end(state, *id, (at_most, until), interrupt))?;
            }
            *state.shared.entry(*id).or_default() += 1;
            drop(state);
            self.ids.push(*id);
        }
        Ok(())
    }

    fn await_end<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        id: CollectionId,
        (at_most, until): (Option<Duration>, Option<Instant>),
        interrupt: &Interrupt,
    ) -> Result<MutexGuard<'s, State>> {
        while state.exclusive.contains(&id) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                let limit_ms = at_most.unwrap_or_default().as_millis();
                bail!(
                    LockTimeout,
                    "Unable to acquire lock within a max lock request timeout of '{limit_ms}ms' milliseconds"
                );
            }
            let waited = self
                .locks
                .changed
                .wait_timeout(state, left.map_or(LOOK, |left| left.min(LOOK)));
            state = waited.expect("no holder of the lock panics").0;
            interrupt.check()?;
        }
        Ok(state)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.ids.is_empty() {
            return;
        }
        let mut state = self.locks.lock();
        for id in &self.ids {
            if let Some(count) = state.shared.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    state.shared.remove(id);
                }
            }
        }
        let is_awaited = !state.exclusive.is_empty();
        drop(state);
        if is_awaited {
            self.locks.changed.notify_all();
        }
    }
}

impl Exclusion<'_> {
    /// Whether it has the locks of these collections.
    pub fn covers(&self, ids: &[CollectionId]) -> bool {
        ids.iter().all(|id| self.ids.contains(id))
    }
}

impl Drop for Exclusion<'_> {
    fn drop(&mut self) {
        let mut state = self.locks.lock();
        for id in &self.ids {
            state.exclusive.remove(id);
        }
        drop(state);
        self.locks.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::ErrorCode;

    const A: CollectionId = CollectionId(1);
    const B: CollectionId = CollectionId(2);

    fn within(time: Duration) -> Interrupt {
        Interrupt::new(Arc::default(), Some(Instant::now() + time))
    }

    #[test]
    fn who_changes_a_collection_waits_for_transactions_and_they_for_whoever_changes_it() {
        let locks = Arc::new(CollectionLocks::default());
        let long = || within(Duration::from_secs(60));
        let mut txn = locks.begin();
        txn.share(&[A], Some(Duration::ZERO), &long())
            .expect("nobody changes it");
        drop(locks.exclude(&[B], None, &long()).expect("nobody uses it"));
        assert!(locks.try_exclude(&[A, B]).is_none());
        let error = locks
            .exclude(&[B, A], None, &within(Duration::from_millis(20)))
            .expect_err("the transaction is open");
        assert_eq!(error.code(), ErrorCode::MaxTimeMSExpired);
        drop(locks.try_exclude(&[B]).expect("it was given back"));
        let soon = Instant::now() + Duration::from_millis(20);
        let error = locks
            .exclude(&[B, A], Some(soon), &long())
            .expect_err("the transaction is open");
        assert_eq!(error.code(), ErrorCode::LockTimeout);
        drop(locks.try_exclude(&[B]).expect("it was given back"));
        let mut later = locks.begin();
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| drop(locks.exclude(&[A], None, &long()).expect("the transaction ends")));
            // From some moment on it waits, and others come after it.
            while later.share(&[A], Some(Duration::ZERO), &long()).is_ok() {
                assert!(!changing.is_finished());
                later = locks.begin();
                std::thread::yield_now();
            }
            let error = later.share(&[B, A], Some(Duration::from_millis(1)), &long());
            assert_eq!(error.expect_err("it still waits").code(), ErrorCode::LockTimeout);
            txn.share(&[A], Some(Duration::ZERO), &long())
                .expect("it has it already");
            drop(txn);
            changing.join().expect("it does not panic");
        });
        later.share(&[A], None, &long()).expect("nobody changes it any more");
        drop(later);
        assert!(locks.lock().shared.is_empty() && locks.lock().exclusive.is_empty());
    }

    #[test]
    fn two_that_change_the_same_collections_take_turns() {
        let locks = CollectionLocks::default();
        std::thread::scope(|scope| {
            for ids in [[A, B], [B, A]] {
                let locks = &locks;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let exclusion = locks
                            .exclude(&ids, None, &within(Duration::from_secs(60)))
                            .expect("it ends");
                        assert!(exclusion.covers(&[A]) && !exclusion.covers(&[CollectionId(3)]));
                    }
                });
            }
        });
    }
}
