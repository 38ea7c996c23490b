//! Long reads come behind what is short.
//!
//! Turns keep the run queue short, but a scan that has one would still get as much of a processor as a point read beside it. So a thread whose read turns
//! out to be long becomes nicer than others until that read is over: on a processor that nobody else wants it is as fast as before. Writes do not, since they
//! may hold what others wait for.
//!
//! Every thread may become nicer; to be again what it was takes a privilege (`CAP_SYS_NICE`, or a limit like systemd's `LimitNICE=0`). Where the process does
//! not have it nothing is changed, for the runtime uses its threads again.

use rustix::process::{getpriority_process, setpriority_process};
use std::cell::Cell;
use std::sync::OnceLock;

/// How much nicer: each of the other threads gets about nine times as much of a processor.
const NICER: i32 = 10;
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

/// What was long is over: this thread is again one among others.
pub(crate) fn come_back() {
    if IS_NICER.replace(false)
        && let Some(Some(usual)) = USUAL.get()
    {
        // It could be done when that was tried.
        let _ = setpriority_process(None, *usual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        come_back();
        come_back();
        assert_eq!(getpriority_process(None).expect("it may be read"), before);
    }
}
