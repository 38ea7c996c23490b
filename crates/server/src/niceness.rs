//! Long reads come behind what is short.
//!
//! Turns keep the run queue short, but a scan that has one would still get as much of a processor as a point read beside it. So a thread whose read turns
//! out to be long becomes nicer than others until that read is over: on a processor that nobody else wants it is as fast as before. Writes do not, since they
//! may hold what others wait for. A connection that reads long most of the time ([`Habit`]) is not given the first millisecond of each: of queries that take
//! a few of them one after the other, that would be a large part.
//!
//! Every thread may become nicer; to be again what it was takes a privilege (`CAP_SYS_NICE`, or a limit like systemd's `LimitNICE=0`). Where the process does
//! not have it nothing is changed, for the runtime uses its threads again.

use rustix::process::{getpriority_process, setpriority_process};
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

/// How much nicer: each of the other threads gets about nine times as much of a processor.
const NICER: i32 = 10;
/// How long a command is taken for a short one.
const PATIENCE: Duration = Duration::from_millis(1);
/// The same where it is expected to be long: as long as a read by key may take.
const PATIENCE_LEAST: Duration = Duration::from_micros(100);

/// As nice as can be.
const NICEST: i32 = 19;

/// What threads of this process are to begin with, if they can be that again.
static USUAL: OnceLock<Option<i32>> = OnceLock::new();

thread_local! {
    static IS_NICER: Cell<bool> = const { Cell::new(false) };
}

/// Tries on a thread of its own whether threads can be as they were after they were nicer. To be called once, before anything is served; until
/// then nothing is changed.
pub fn find_out() {
    let usual = std::thread::Builder::new().spawn(|| {
        let usual = getpriority_process(None).ok()?;
        setpriority_process(None, (usual + NICER).min(NICEST)).ok()?;
        setpriority_process(None, usual).ok()?;
        Some(usual)
    });
    let usual = usual.ok().and_then(|thread| thread.join().ok()).flatten();
    // Who starts several servers in one process finds the same.
    let _ = USUAL.set(usual);
}

/// To be called by each thread that serves: one that comes behind others may have made it, and it would come behind them for ever.
pub(crate) fn begin() {
    if let Some(Some(usual)) = USUAL.get()
        && getpriority_process(None) != Ok(*usual)
    {
        // As in `come_back`.
        let _ = setpriority_process(None, *usual);
    }
}

/// This thread comes behind others from here on.
pub(crate) fn come_behind() {
    if IS_NICER.get() {
        return;
    }
    if let Some(Some(usual)) = USUAL.get()
        && setpriority_process(None, (usual + NICER).min(NICEST)).is_ok()
    {
        IS_NICER.set(true);
    }
}

/// What was long is over: this thread is again one among others. Whether it came behind them.
pub(crate) fn come_back() -> bool {
    let was_behind = IS_NICER.replace(false);
    if was_behind && let Some(Some(usual)) = USUAL.get() {
        // It could be done when that was tried.
        let _ = setpriority_process(None, *usual);
    }
    was_behind
}

/// What the last commands of a connection were like.
#[derive(Debug, Default)]
pub(crate) struct Habit(u8);

impl Habit {
    /// What one that came behind others adds, and others take away one by one: it counts when there are more than one of four.
    const LONG: u8 = 3;
    /// From here on the next one is expected to be long.
    const EXPECTED: u8 = Self::LONG + 1;
    const MOST: u8 = 2 * Self::LONG;

    /// How long the next command is taken for a short one.
    pub(crate) fn patience(&self) -> Duration {
        match self.0 >= Self::EXPECTED {
            true => PATIENCE_LEAST,
            false => PATIENCE,
        }
    }

    /// A command has ended.
    pub(crate) fn note(&mut self, was_behind: bool) {
        self.0 = match was_behind {
            true => Self::MOST.min(self.0 + Self::LONG),
            false => self.0.saturating_sub(1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_read_of_four_is_a_habit() {
        let patience = |which: &str| {
            let mut habit = Habit::default();
            which.chars().for_each(|command| habit.note(command == 'l'));
            habit.patience()
        };
        for short in ["", "l", "lsssl", "lssslsssl", "llsssss", "llllllllsss"] {
            assert_eq!(patience(short), PATIENCE, "{short}");
        }
        for long in ["ll", "lsl", "lslsls", "lsslsslsslss", "llllllllss"] {
            assert_eq!(patience(long), PATIENCE_LEAST, "{long}");
        }
    }

    #[test]
    fn a_thread_is_nicer_for_a_while_or_not_at_all() {
        find_out();
        let before = getpriority_process(None).expect("it may be read");
        come_behind();
        let behind = getpriority_process(None).expect("it may be read");
        let can_come_back = USUAL.get().copied().flatten().is_some();
        assert_eq!(behind > before, can_come_back && before < NICEST);
        come_behind();
        // Threads take after those that make them.
        let of_new = std::thread::spawn(|| {
            begin();
            getpriority_process(None).expect("it may be read")
        });
        assert_eq!(of_new.join().expect("it does not panic"), before);
        assert_eq!(come_back(), can_come_back);
        assert!(!come_back());
        assert_eq!(getpriority_process(None).expect("it may be read"), before);
    }
}
