//! Trying again after a write conflict.

use crate::interrupt::{Interrupt, while_waiting};
use nestor_model::{ErrorCode, Result, bail};
use nestor_storage::{Commit, Engine, Reservation, StorageError, WriteSet};
use std::time::{Duration, Instant};

/// How often one that waits for a transaction's end looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// The obstacle to an attempt.
#[derive(Debug, Default)]
pub struct Obstacle(Option<Box<Reservation>>);

impl Obstacle {
    /// Commits; if an open transaction has written one of the keys, the next attempt waits for that transaction's end.
    pub fn commit(&mut self, engine: &Engine, ws: WriteSet) -> Result<Commit> {
        let result = engine.commit(ws);
        if let Err(StorageError::Reserved(reservation)) = &result {
            self.0 = Some(reservation.clone());
        }
        Ok(result?)
    }

    /// Reserves the keys of a transaction; if another one has written one of them, the next attempt waits for its end.
    pub fn claim(&mut self, engine: &Engine, ws: &mut WriteSet) -> Result<()> {
        let result = engine.claim(ws);
        if let Err(StorageError::Reserved(reservation)) = &result {
            self.0 = Some(reservation.clone());
        }
        Ok(result?)
    }

    /// The next attempt waits for the end of a transaction that has written a key.
    pub fn meet(&mut self, reservation: Box<Reservation>) {
        self.0 = Some(reservation);
    }

    /// Waits until it is gone, no longer than `most`; true if there was one.
    fn wait(&mut self, interrupt: &Interrupt, most: Option<Duration>) -> Result<bool> {
        let Some(reservation) = self.0.take() else {
            return Ok(false);
        };
        let until = most.map(|most| Instant::now() + most);
        let left = || {
            let ends = [interrupt.deadline(), until].into_iter().flatten().min();
            ends.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()).min(LOOK))
        };
        while_waiting(|| {
            while !reservation.wait(left()) {
                interrupt.check()?;
                check_wait(until)?;
            }
            Ok(true)
        })
    }
}

/// Ends a wait for somebody else's transaction at its time.
///
/// Errors: 24.
pub fn check_wait(until: Option<Instant>) -> Result<()> {
    match until.is_some_and(|until| Instant::now() >= until) {
        true => bail!(LockTimeout, "canceling statement due to lock timeout"),
        false => Ok(()),
    }
}

/// Runs `attempt` until it does not end in a write conflict. Single statements are retried inside the server,
/// as MongoDB does; only transactions hand conflicts to the client. Each attempt takes a fresh snapshot.
pub fn with_retry<T>(interrupt: &Interrupt, attempt: impl FnMut(&mut Obstacle) -> Result<T>) -> Result<T> {
    with_retry_within(interrupt, None, attempt)
}

/// As [`with_retry`]; it waits for each obstacle no longer than `most`.
///
/// Errors: 24.
pub fn with_retry_within<T>(
    interrupt: &Interrupt,
    most: Option<Duration>,
    mut attempt: impl FnMut(&mut Obstacle) -> Result<T>,
) -> Result<T> {
    let mut obstacle = Obstacle::default();
    let mut tries = 0u32;
    loop {
        match attempt(&mut obstacle) {
            Err(error) if error.code() == ErrorCode::WriteConflict => {
                interrupt.check()?;
                if obstacle.wait(interrupt, most)? {
                    continue;
                }
                tries += 1;
                // The winner has committed already, so going on at once mostly succeeds. If not, many compete for one
                // document.
                match tries {
                    0..=4 => {}
                    5..=16 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_millis(u64::from(tries - 16).min(10))),
                }
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Error;
    use nestor_storage::{EngineOptions, TreeId};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn conflicts_are_tried_again_and_other_errors_are_not() {
        let mut left = 7;
        let result = with_retry(&Interrupt::default(), |_| {
            left -= 1;
            if left > 0 {
                Err(Error::new(ErrorCode::WriteConflict, "conflict"))
            } else {
                Ok(left)
            }
        });
        assert_eq!(result.expect("the seventh attempt succeeds"), 0);
        let mut calls = 0;
        let result: Result<()> = with_retry(&Interrupt::default(), |_| {
            calls += 1;
            Err(Error::bad_value("no"))
        });
        assert!(result.is_err() && calls == 1);
    }
    #[test]
    fn a_reserved_key_is_waited_for_and_not_longer_than_allowed() {
        const TREE: TreeId = TreeId(1_000_000);
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let mut txn = engine.begin_transaction(engine.snapshot());
        txn.put(TREE, b"a", b"1");
        engine.claim(&mut txn).expect("nobody else writes it");
        let attempts = AtomicU32::new(0);
        let write = |interrupt: &Interrupt| {
            with_retry(interrupt, |obstacle| {
                attempts.fetch_add(1, Ordering::SeqCst);
                let mut ws = engine.begin();
                ws.put(TREE, b"a", b"2");
                obstacle.commit(&engine, ws)
            })
        };
        let soon = Interrupt::new(Arc::default(), Some(Instant::now() + Duration::from_millis(20)));
        let error = write(&soon).expect_err("the transaction does not end");
        assert_eq!(error.code(), ErrorCode::MaxTimeMSExpired);
        assert_eq!(attempts.swap(0, Ordering::SeqCst), 1, "it waited instead of trying");
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| write(&Interrupt::default()));
            while attempts.load(Ordering::SeqCst) == 0 && !writing.is_finished() {
                std::thread::yield_now();
            }
            drop(txn);
            let written = writing.join().expect("it does not panic");
            written.expect("the transaction has ended");
        });
        assert!(attempts.load(Ordering::SeqCst) <= 2);
    }
}
