//! Admission to commits: everybody may commit, or nobody while the data directory is copied (`fsync` with `lock`).

use crate::interrupt::{Interrupt, while_waiting};
use nestor_model::{Result, bail};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often those who wait look whether they were interrupted.
const POLL: Duration = Duration::from_millis(20);

/// A gate before commits. Each attempt at a write passes it, works and commits, and leaves; so a long command
/// (an index build, an update of many documents) can be halted half-way.
#[derive(Debug, Default)]
pub struct Admission {
    closed: AtomicBool,
    /// It will not be opened again.
    over: AtomicBool,
    /// Attempts between passing and leaving.
    running: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

/// An attempt that has passed the gate. It leaves when this is dropped.
#[derive(Debug)]
pub struct Admitted<'a>(&'a Admission);

impl Admission {
    /// Passes the gate, or waits until it is opened. Whoever has passed must not do so again before leaving.
    ///
    /// Errors: those of the interrupt; 11600 when the server stops before it is opened.
    pub fn enter(&self, interrupt: &Interrupt) -> Result<Admitted<'_>> {
        match self.try_enter() {
            Some(admitted) => Ok(admitted),
            None => while_waiting(|| self.await_entry(interrupt)),
        }
    }

    fn await_entry(&self, interrupt: &Interrupt) -> Result<Admitted<'_>> {
        loop {
            if self.over.load(Ordering::SeqCst) {
                bail!(InterruptedAtShutdown, "interrupted at shutdown");
            }
            interrupt.check()?;
            let waits = || self.closed.load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst);
            self.wait(POLL, waits);
            if let Some(admitted) = self.try_enter() {
                return Ok(admitted);
            }
        }
    }

    /// Passes the gate if it is open.
    pub fn try_enter(&self) -> Option<Admitted<'_>> {
        // One of us sees what the other did: either we that the gate was closed, or who closed it that we are in.
        self.running.fetch_add(1, Ordering::SeqCst);
        let admitted = Admitted(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(admitted)
    }

    /// Closes the gate and waits until all that have passed are gone. False, and the gate is open again, if that was not so by
    /// `deadline`.
    ///
    /// Errors: those of the interrupt; the gate is open then too.
    pub fn close(&self, deadline: Instant, interrupt: &Interrupt) -> Result<bool> {
        self.closed.store(true, Ordering::SeqCst);
        let busy = || self.running.load(Ordering::SeqCst) > 0;
        while busy() {
            let interrupted = interrupt.check();
            if interrupted.is_err() || Instant::now() >= deadline {
                self.open();
                return interrupted.map(|()| false);
            }
            self.wait(POLL, busy);
        }
        Ok(true)
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.closed.store(false, Ordering::SeqCst);
        self.notify();
    }

    /// The server stops: those who wait, and those who would, do so no more.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.notify();
    }

    fn wait(&self, time: Duration, condition: impl Fn() -> bool) {
        let guard = self.lock();
        // The holder of the lock has panicked: then this waits no more, and the caller looks again.
        drop(self.changed.wait_timeout_while(guard, time, |()| condition()));
    }

    fn notify(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().expect("no holder of the lock panics")
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let before = self.0.running.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.0.closed.load(Ordering::SeqCst) {
            self.0.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::KillSwitch;
    use nestor_model::ErrorCode;
    use std::sync::Arc;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn nobody_is_inside_while_it_is_closed() {
        let gate = Admission::default();
        let inside = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        /// Ends the threads also when the test fails with the gate closed.
        struct Stop<'s>(&'s AtomicBool, &'s Admission);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
                self.1.open();
            }
        }
        std::thread::scope(|scope| {
            let _stop = Stop(&stop, &gate);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        let _admitted = gate.enter(&Interrupt::default()).expect("nobody interrupts it");
                        inside.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            for _ in 0..200 {
                assert!(gate.close(soon(), &Interrupt::default()).expect("nobody interrupts it"));
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                assert!(gate.try_enter().is_none());
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                gate.open();
            }
        });
        assert_eq!(gate.running.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn one_that_cannot_be_closed_in_time_is_open() {
        let gate = Admission::default();
        let none = Interrupt::default();
        assert!(gate.close(Instant::now(), &none).expect("nobody is in"));
        gate.open();
        let admitted = gate.try_enter().expect("it is open");
        assert!(!gate.close(Instant::now(), &none).expect("too late"));
        assert!(gate.try_enter().is_some());
        drop(admitted);
    }

    #[test]
    fn those_who_wait_can_be_killed() {
        let gate = Admission::default();
        gate.close(soon(), &Interrupt::default()).expect("nobody is in");
        let kill = Arc::new(KillSwitch::default());
        let interrupt = Interrupt::new(kill.clone(), None);
        kill.kill(ErrorCode::Interrupted);
        let error = gate.enter(&interrupt).expect_err("killed");
        assert_eq!(error.code(), ErrorCode::Interrupted);
        gate.open();
        assert!(gate.enter(&Interrupt::default()).is_ok());
        gate.close(soon(), &Interrupt::default()).expect("nobody is in");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter(&Interrupt::default()).map(drop));
            gate.end();
            let error = waiting.join().expect("it does not panic").expect_err("the end");
            assert_eq!(error.code(), ErrorCode::InterruptedAtShutdown);
        });
    }
}
