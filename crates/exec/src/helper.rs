//! The right to have a second thread for a statement, which other statements come before.

use nestor_model::statement::manners;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};

/// Helpers of all statements that are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// How many there may be.
static MOST: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from) - 1);

/// The right to have a helper, of which there are one fewer than processors.
pub(crate) struct Permit(());

impl Permit {
    /// Whether the statement may have any, and there are any for anybody.
    pub(crate) fn may_be() -> bool {
        manners().has_helpers && *MOST > 0
    }

    /// One, if there is one left and the statement may have any.
    pub(crate) fn take() -> Option<Self> {
        if !manners().has_helpers {
            return None;
        }
        let more = |at_work: usize| (at_work < *MOST).then_some(at_work + 1);
        let taken = AT_WORK.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        taken.ok().map(|_| Self(()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What threads share; `None` where another one is at it, unless that is waited for.
pub(crate) fn lock<T>(shared: &Mutex<T>, waits: bool) -> Option<MutexGuard<'_, T>> {
    match (waits, shared.try_lock()) {
        (_, Ok(guard)) => Some(guard),
        (_, Err(TryLockError::Poisoned(guard))) => Some(guard.into_inner()),
        (true, Err(TryLockError::WouldBlock)) => Some(shared.lock().unwrap_or_else(PoisonError::into_inner)),
        (false, Err(TryLockError::WouldBlock)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_permits_as_processors_but_one() {
        let all: Vec<Permit> = std::iter::from_fn(Permit::take).collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(all.len() < processors);
        assert!(Permit::take().is_none());
        drop(all);
        assert_eq!(Permit::take().is_some(), processors > 1);
    }
}
