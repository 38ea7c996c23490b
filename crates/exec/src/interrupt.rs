//! When to stop.

use nestor_model::{Error, ErrorCode, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

/// Kills what runs under it: holds the error code to stop with, 0 while nothing is to stop.
#[derive(Debug, Default)]
pub struct KillSwitch(AtomicI32);

impl KillSwitch {
    /// Stops whatever checks this switch, with `code` (such as `Interrupted` or `CursorKilled`).
    pub fn kill(&self, code: ErrorCode) {
        self.0.store(code.number(), Ordering::Relaxed);
    }

    /// Makes it ready for the next operation.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The code to stop with, if killed.
    pub fn killed(&self) -> Option<ErrorCode> {
        match self.0.load(Ordering::Relaxed) {
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
}

impl Interrupt {
    /// Stops when `kill` says so or after `deadline` (`maxTimeMS`).
    pub fn new(kill: Arc<KillSwitch>, deadline: Option<Instant>) -> Self {
        Self { kill, deadline }
    }

    /// An error when it is time to stop. Costs an atomic load and, with a deadline, a look at the clock:
    /// call it every hundred or so documents.
    pub fn check(&self) -> Result<()> {
        if let Some(code) = self.kill.killed() {
            return Err(Error::new(code, "operation was interrupted"));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"))
            }
            _ => Ok(()),
        }
    }

    /// When it has to stop at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
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
}
