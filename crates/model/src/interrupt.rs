//! When to stop.

use crate::{Error, ErrorCode, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A switch by which the operation that looks at it is stopped.
#[derive(Debug, Default)]
pub struct KillSwitch {
    /// The error code to stop with, 0 while nothing is to stop, below the number of the operation (its turn).
    state: AtomicU64,
    outlives_client: AtomicBool,
}

impl KillSwitch {
    /// Stops whatever checks this switch, with `code` (such as `Interrupted` or `CursorKilled`).
    pub fn kill(&self, code: ErrorCode) {
        while !self.kill_in(self.turn(), code) {}
    }

    /// Stops the operation that ran when [`Self::turn`] gave `turn`; false when another one runs now, which is left alone.
    pub fn kill_in(&self, turn: u32, code: ErrorCode) -> bool {
        let killed = |state| (turn_of(state) == turn).then(|| state_of(turn, code.number()));
        let order = Ordering::Relaxed;
        self.state.fetch_update(order, order, killed).is_ok()
    }

    /// Which operation runs under it now: each reset begins another.
    pub fn turn(&self) -> u32 {
        turn_of(self.state.load(Ordering::Acquire))
    }

    /// Makes the switch ready for the next operation.
    pub fn reset(&self) {
        let order = Ordering::AcqRel;
        let next = |state| Some(state_of(turn_of(state).wrapping_add(1), 0));
        let _ = self.state.fetch_update(order, Ordering::Relaxed, next);
        self.outlives_client.store(false, Ordering::Relaxed);
    }

    /// The code to stop with, if killed.
    pub fn killed(&self) -> Option<ErrorCode> {
        match self.state.load(Ordering::Relaxed) as u32 as i32 {
            0 => None,
            code => Some(ErrorCode::location(code)),
        }
    }
}

fn turn_of(state: u64) -> u32 {
    (state >> 32) as u32
}

fn state_of(turn: u32, code: i32) -> u64 {
    u64::from(turn) << 32 | u64::from(code as u32)
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

    /// How much of `maxTimeMS` is left; `None` without it.
    pub fn left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// An error when it is time to stop. Costs an atomic load and, with a deadline, a look at the clock:
    /// call it every hundred or so documents. Whoever counts work with [`crate::statement::work`] need not.
    pub fn check(&self) -> Result<()> {
        self.check_kill()?;
        if client_has_gone(&|| self.has_to_stop()) && !self.kill.outlives_client.load(Ordering::Relaxed) {
            // Others that check the same switch stop too.
            self.kill.kill(ErrorCode::ClientDisconnect);
            return Err(Error::new(ErrorCode::ClientDisconnect, "operation was interrupted"));
        }
        if self.has_outlived() {
            return Err(Error::new(
                ErrorCode::TransactionExceededLifetimeLimitSeconds,
                "operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'",
            ));
        }
        if self.is_late() {
            return Err(Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"));
        }
        // Hooks may have waited, so the clock is read again.
        self.check_kill()
    }

    fn check_kill(&self) -> Result<()> {
        let Some(code) = self.kill.killed() else { return Ok(()) };
        let message = match code {
            ErrorCode::ExceededMemoryLimit => {
                "operation was ended because all operations together held too much memory, and it held most"
            }
            _ => "operation was interrupted",
        };
        Err(Error::new(code, message))
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn has_outlived(&self) -> bool {
        self.lifetime.is_some_and(|end| Instant::now() >= end)
    }

    fn has_to_stop(&self) -> bool {
        self.kill.killed().is_some() || self.is_late() || self.has_outlived()
    }

    /// To be checked for every record of a loop.
    pub fn paced(&self) -> Paced<'_> {
        Paced {
            interrupt: self,
            seen: 0,
        }
    }

    /// When the operation has to stop at the latest.
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

/// Longest time between two looks.
const INTERVAL_MAX: Duration = Duration::from_millis(20);

/// What a thread does for others while it runs something that turns out to be long.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Called when an [`Interrupt`] is checked after the work has gone on for a while, and again at longer and longer intervals up
    /// to every 20 ms. It may let others go first; its argument tells whether the work has to stop meanwhile.
    pub make_way: fn(stops: &dyn Fn() -> bool),
    /// Called before the thread waits for something.
    pub before_wait: fn(),
    /// Called as often as `make_way`: whether the client has gone that waits for the result.
    pub client_has_gone: fn() -> bool,
}

/// Runs `work` with `hooks` on this thread, the first look after `patience`.
///
/// So whoever runs operations on a few threads can start each where it is, and make room for others and look
/// after its client only when one turns out to be long.
pub fn with_patience<R>(patience: Duration, hooks: Hooks, work: impl FnOnce() -> R) -> R {
    patience::run(patience, hooks, work)
}

/// Calls [`Hooks::before_wait`], if there are hooks, before this thread waits for something without checking an [`Interrupt`].
pub fn lose_patience() {
    patience::lose();
}

/// Runs `wait`, in which this thread waits for something and checks an [`Interrupt`] now and then: it makes way once, at the
/// beginning.
pub fn while_waiting<R>(wait: impl FnOnce() -> R) -> R {
    patience::lose();
    patience::wait(wait)
}

/// Runs what is still to be done for an operation that is over, as telling the log of it: that makes way for nobody, and above all does not pause.
pub fn afterwards<R>(work: impl FnOnce() -> R) -> R {
    patience::wait(work)
}

/// Calls the hooks when it is time; true when they say that the client has gone. `stops` tells whether the operation has to stop.
pub(crate) fn client_has_gone(stops: &dyn Fn() -> bool) -> bool {
    patience::look(stops)
}

mod patience {
    use super::Hooks;
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    #[derive(Clone, Copy)]
    struct Limit {
        next: Instant,
        interval: Duration,
        hooks: Hooks,
        waits: bool,
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

    pub(super) fn run<R>(patience: Duration, hooks: Hooks, work: impl FnOnce() -> R) -> R {
        LIMIT.set(Some(Limit {
            next: Instant::now() + patience,
            interval: patience,
            hooks,
            waits: false,
        }));
        let _reset = Reset;
        work()
    }

    pub(super) fn lose() {
        if let Some(limit) = LIMIT.get() {
            (limit.hooks.before_wait)();
        }
    }

    pub(super) fn wait<R>(wait: impl FnOnce() -> R) -> R {
        /// The waiting is over, also when it panics.
        struct Over;
        impl Drop for Over {
            fn drop(&mut self) {
                set_waits(false);
            }
        }
        fn set_waits(waits: bool) {
            LIMIT.set(LIMIT.get().map(|limit| Limit { waits, ..limit }));
        }
        set_waits(true);
        let _over = Over;
        wait()
    }

    /// True when the hooks were called and said so.
    pub(super) fn look(stops: &dyn Fn() -> bool) -> bool {
        let Some(mut limit) = LIMIT.get() else { return false };
        if Instant::now() < limit.next {
            return false;
        }
        if !limit.waits {
            (limit.hooks.make_way)(stops);
        }
        let gone = (limit.hooks.client_has_gone)();
        limit.interval = (limit.interval * 4).min(super::INTERVAL_MAX);
        // Time in which hooks waited does not count as work.
        limit.next = Instant::now() + limit.interval;
        LIMIT.set(Some(limit));
        gone
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

    /// Hooks of a thread whose client has gone.
    const ALONE: Hooks = Hooks {
        make_way: |_| (),
        before_wait: || (),
        client_has_gone: || true,
    };

    #[test]
    fn reads_stop_when_their_client_has_gone() {
        let kill = Arc::new(KillSwitch::default());
        let one = Interrupt::new(kill.clone(), None);
        let other = Interrupt::new(kill.clone(), None);
        one.outlive_client();
        with_patience(Duration::ZERO, ALONE, || assert!(other.check().is_ok(), "it writes"));
        kill.reset();
        assert!(one.check().is_ok(), "nobody waits any longer");
        with_patience(Duration::ZERO, ALONE, || {
            let stopped = one.check().expect_err("the client has gone");
            assert_eq!(stopped.code(), ErrorCode::ClientDisconnect);
            assert!(other.check().is_err(), "the switch is the operation's");
        });
    }

    thread_local! {
        static CALLS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    fn count() {
        CALLS.set(CALLS.get() + 1);
    }

    const COUNTED: Hooks = Hooks {
        make_way: |_| count(),
        before_wait: count,
        client_has_gone: || false,
    };

    #[test]
    fn patience_ends_ever_more_rarely() {
        let interrupt = Interrupt::default();
        let patience = Duration::from_micros(100);
        let end = Instant::now() + patience * 100;
        with_patience(patience, COUNTED, || {
            while Instant::now() < end {
                interrupt.check().expect("nobody kills it");
            }
        });
        // After 1, 5, 21 and 85 times its length.
        assert!((1..=4).contains(&CALLS.get()), "{}", CALLS.get());
        let before = CALLS.get();
        with_patience(patience * 1_000, COUNTED, lose_patience);
        assert_eq!(CALLS.get(), before + 1, "patience is lost before a wait");
        let before = CALLS.get();
        lose_patience();
        interrupt.check().expect("nobody kills it");
        assert_eq!(CALLS.get(), before, "afterwards nobody is impatient");
    }

    #[test]
    fn one_that_waits_makes_way_once() {
        CALLS.set(0);
        let interrupt = Interrupt::default();
        with_patience(Duration::ZERO, COUNTED, || {
            while_waiting(|| interrupt.check().expect("nobody kills it"));
            assert_eq!(CALLS.get(), 1, "before the wait, not in it");
        });
        with_patience(Duration::ZERO, COUNTED, || interrupt.check().expect("nobody kills it"));
        assert_eq!(CALLS.get(), 2, "the next one works");
    }

    #[test]
    fn what_is_over_makes_way_for_nobody() {
        CALLS.set(0);
        let interrupt = Interrupt::default();
        with_patience(Duration::ZERO, COUNTED, || {
            afterwards(|| interrupt.check().expect("nobody kills it"));
            assert_eq!(CALLS.get(), 0);
            interrupt.check().expect("nobody kills it");
            assert_eq!(CALLS.get(), 1, "the next one does");
        });
    }

    #[test]
    fn whoever_was_killed_while_others_went_first_stops_at_once() {
        thread_local! { static KILL: Arc<KillSwitch> = Arc::default(); }
        let interrupt = Interrupt::new(KILL.with(Arc::clone), None);
        let hooks = Hooks {
            make_way: |stops| {
                assert!(!stops());
                KILL.with(|kill| kill.kill(ErrorCode::Interrupted));
                assert!(stops());
            },
            ..COUNTED
        };
        with_patience(Duration::ZERO, hooks, || {
            assert_eq!(interrupt.check().expect_err("killed").code(), ErrorCode::Interrupted);
        });
    }
}
