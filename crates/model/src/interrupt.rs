//! When to stop.

use crate::{Error, ErrorCode, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Kills the operation that runs under it.
#[derive(Debug, Default)]
pub struct KillSwitch {
    /// The error code to stop with, 0 while nothing is to stop.
    code: AtomicI32,
    outlives_client: AtomicBool,
}

impl KillSwitch {
    /// Stops whatever checks this switch, with `code` (such as `Interrupted` or `CursorKilled`).
    pub fn kill(&self, code: ErrorCode) {
        self.code.store(code.number(), Ordering::Relaxed);
    }

    /// Makes it ready for the next operation.
    pub fn reset(&self) {
        self.code.store(0, Ordering::Relaxed);
        self.outlives_client.store(false, Ordering::Relaxed);
    }

    /// The code to stop with, if killed.
    pub fn killed(&self) -> Option<ErrorCode> {
        match self.code.load(Ordering::Relaxed) {
            0 => None,
            code => Some(ErrorCode::location(code)),
        }
    }
}

/// Says when an operation has to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    kill: Arc<KillSwitch>,
    deadline: Option<Instant>,
    /// End of the transaction that the operation belongs to.
    lifetime: Option<Instant>,
}

impl Interrupt {
    /// Stops when `kill` says so or after `deadline` (`maxTimeMS`).
    pub fn new(kill: Arc<KillSwitch>, deadline: Option<Instant>) -> Self {
        Self {
            kill,
            deadline,
            lifetime: None,
        }
    }

    /// The operation goes on when the client that wants the result has gone: for whatever has effects. Holds for
    /// everyone who looks at the same switch, until it is reset.
    pub fn outlive_client(&self) {
        self.kill.outlives_client.store(true, Ordering::Relaxed);
    }

    /// Stops after `end` too, with the error of a transaction that has been open for too long.
    pub fn limit_lifetime(&mut self, end: Option<Instant>) {
        self.lifetime = end;
    }

    /// An error when it is time to stop. Costs an atomic load and, with a deadline, a look at the clock:
    /// call it every hundred or so documents. Whoever counts work with [`crate::statement::work`] need not.
    pub fn check(&self) -> Result<()> {
        if let Some(code) = self.kill.killed() {
            let message = match code {
                ErrorCode::ExceededMemoryLimit => {
                    "operation was ended because all operations together held too much memory, and it held most"
                }
                _ => "operation was interrupted",
            };
            return Err(Error::new(code, message));
        }
        if client_has_gone() && !self.kill.outlives_client.load(Ordering::Relaxed) {
            // Others that check the same switch stop too.
            self.kill.kill(ErrorCode::ClientDisconnect);
            return Err(Error::new(ErrorCode::ClientDisconnect, "operation was interrupted"));
        }
        if self.lifetime.is_some_and(|end| Instant::now() >= end) {
            return Err(Error::new(
                ErrorCode::TransactionExceededLifetimeLimitSeconds,
                "operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'",
            ));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"))
            }
            _ => Ok(()),
        }
    }

    /// To be checked for every record of a loop.
    pub fn paced(&self) -> Paced<'_> {
        Paced {
            interrupt: self,
            seen: 0,
        }
    }

    /// When it has to stop at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

/// An interrupt that loops over records look at each time, and that looks itself at every 128th.
#[derive(Debug)]
pub struct Paced<'i> {
    interrupt: &'i Interrupt,
    seen: u32,
}

impl Paced<'_> {
    /// An error when it is time to stop.
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        self.seen = self.seen.wrapping_add(1);
        match self.seen.is_multiple_of(128) {
            true => self.interrupt.check(),
            false => Ok(()),
        }
    }
}

/// Longest time between two calls of a hook.
const INTERVAL_MAX: Duration = Duration::from_millis(250);

/// Runs `work`, and calls `hook` when an [`Interrupt`] is checked on this thread after `work` has gone on for
/// `patience`, again at four times that, and so on up to every 250 ms. The hook tells whether the client has gone
/// that waits for the result.
///
/// So whoever runs operations on a few threads can start each where it is, and make room for others and look
/// after its client only when one turns out to be long.
pub fn with_patience<R>(patience: Duration, hook: fn() -> bool, work: impl FnOnce() -> R) -> R {
    patience::run(patience, hook, work)
}

/// Calls the hook of [`with_patience`], if there is one, before this thread waits for something.
pub fn lose_patience() {
    patience::lose();
}

/// Calls the hook of [`with_patience`] when it is time; true when it says that the client has gone.
pub(crate) fn client_has_gone() -> bool {
    patience::look()
}

mod patience {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    #[derive(Clone, Copy)]
    struct Limit {
        next: Instant,
        interval: Duration,
        hook: fn() -> bool,
    }

    thread_local! {
        static LIMIT: Cell<Option<Limit>> = const { Cell::new(None) };
    }

    /// Takes the limit away again, also when the work panics.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            LIMIT.set(None);
        }
    }

    pub(super) fn run<R>(patience: Duration, hook: fn() -> bool, work: impl FnOnce() -> R) -> R {
        LIMIT.set(Some(Limit {
            next: Instant::now() + patience,
            interval: patience,
            hook,
        }));
        let _reset = Reset;
        work()
    }

    pub(super) fn lose() {
        if let Some(limit) = LIMIT.get() {
            (limit.hook)();
        }
    }

    /// True when the hook was called and said so.
    pub(super) fn look() -> bool {
        let Some(mut limit) = LIMIT.get() else { return false };
        let now = Instant::now();
        if now < limit.next {
            return false;
        }
        limit.interval = (limit.interval * 4).min(super::INTERVAL_MAX);
        limit.next = now + limit.interval;
        LIMIT.set(Some(limit));
        (limit.hook)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_when_killed_or_late() {
        let kill = Arc::new(KillSwitch::default());
        let interrupt = Interrupt::new(kill.clone(), None);
        assert!(interrupt.check().is_ok());
        kill.kill(ErrorCode::Interrupted);
        assert_eq!(interrupt.check().expect_err("killed").code(), ErrorCode::Interrupted);
        kill.reset();
        assert!(interrupt.check().is_ok());
        let late = Interrupt::new(kill, Some(Instant::now()));
        assert_eq!(late.check().expect_err("late").code(), ErrorCode::MaxTimeMSExpired);
    }

    #[test]
    fn a_paced_one_looks_at_every_128th_record() {
        let kill = Arc::new(KillSwitch::default());
        let interrupt = Interrupt::new(kill.clone(), None);
        let mut paced = interrupt.paced();
        kill.kill(ErrorCode::Interrupted);
        let checks = (1..).find(|_| paced.check().is_err());
        assert_eq!(checks, Some(128));
    }

    #[test]
    fn reads_stop_when_their_client_has_gone() {
        let kill = Arc::new(KillSwitch::default());
        let one = Interrupt::new(kill.clone(), None);
        let other = Interrupt::new(kill.clone(), None);
        one.outlive_client();
        with_patience(Duration::ZERO, || true, || assert!(other.check().is_ok(), "it writes"));
        kill.reset();
        assert!(one.check().is_ok(), "nobody waits any longer");
        with_patience(
            Duration::ZERO,
            || true,
            || {
                let stopped = one.check().expect_err("the client has gone");
                assert_eq!(stopped.code(), ErrorCode::ClientDisconnect);
                assert!(other.check().is_err(), "the switch is the operation's");
            },
        );
    }

    #[test]
    fn patience_ends_ever_more_rarely() {
        thread_local! { static CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) } }
        let interrupt = Interrupt::default();
        let patience = Duration::from_micros(100);
        let end = Instant::now() + patience * 100;
        fn count() -> bool {
            CALLS.set(CALLS.get() + 1);
            false
        }
        with_patience(patience, count, || {
            while Instant::now() < end {
                interrupt.check().expect("nobody kills it");
            }
        });
        // After 1, 5, 21 and 85 times its length.
        assert!((1..=4).contains(&CALLS.get()), "{}", CALLS.get());
        let before = CALLS.get();
        with_patience(patience * 1_000, count, lose_patience);
        assert_eq!(CALLS.get(), before + 1, "patience is lost before a wait");
        let before = CALLS.get();
        lose_patience();
        interrupt.check().expect("nobody kills it");
        assert_eq!(CALLS.get(), before, "afterwards nobody is impatient");
    }
}
