//! What the operation that runs on this thread takes of the processor, where limits count that.
//!
//! An operation runs on one thread from beginning to end, so the thread's processor time is the operation's.

use super::limit::Limit;
use rustix::time::{ClockId, clock_gettime};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

thread_local! {
    /// The limits that count the processor time of the operation on this thread.
    static COUNTING: RefCell<Vec<Arc<Limit>>> = const { RefCell::new(Vec::new()) };
    /// The thread's processor time up to which was counted.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How often an operation that pauses looks whether it has to stop.
const POLL: Duration = Duration::from_millis(50);

/// From here on the operation on this thread counts for `limit` too.
pub(crate) fn begin(limit: &Arc<Limit>) {
    // What was used before is not counted twice, nor for who comes later.
    count();
    COUNTING.with_borrow_mut(|counting| counting.push(limit.clone()));
}

/// The operation is over.
pub(crate) fn end() {
    count();
    COUNTING.with_borrow_mut(Vec::clear);
}

/// Counts what the operation on this thread has used. Returns how long it has to pause, if it has to.
pub fn count() -> Option<Duration> {
    COUNTING.with_borrow(|counting| {
        let now = cpu_time();
        let used = now.saturating_sub(COUNTED.replace(now));
        let at = Instant::now();
        counting.iter().filter_map(|limit| limit.charge(used, at)).max()
    })
}

/// Whether the operation on this thread has to pause; it costs next to nothing where no limit asks.
pub fn is_behind() -> bool {
    let is_counted = COUNTING.with_borrow(|counting| !counting.is_empty());
    is_counted && count().is_some()
}

/// Pauses the operation on this thread until what it used is paid for, or until `stops`, which is asked every 50 ms.
pub fn pause(stops: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while let Some(wait) = count() {
        if stops() {
            break;
        }
        std::thread::park_timeout(wait.min(POLL));
    }
    let paused = begun.elapsed();
    COUNTING.with_borrow(|counting| {
        for limit in counting {
            limit.note_pause(paused);
        }
    });
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::gauge::Bounds;
    use crate::traffic::limit::{Definition, Subject};

    #[test]
    fn whoever_uses_more_than_allowed_pauses_until_it_is_paid_for() {
        let definition = Definition {
            name: "l".into(),
            subject: Subject::default(),
            bounds: Bounds {
                cpu_millis_per_second: Some(10.0),
                ..Bounds::default()
            },
            priority: None,
        };
        let limit = Arc::new(Limit::new(definition, Instant::now()));
        assert!(!is_behind());
        begin(&limit);
        let begun = Instant::now();
        let mut sum = 0u64;
        while !is_behind() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is never behind");
            sum = std::hint::black_box(sum + 1);
        }
        pause(&|| begun.elapsed() > Duration::from_secs(60));
        end();
        assert!(!is_behind());
        let shown = limit.to_document();
        let number = |name: &str| shown.get(name).and_then(nestor_model::number::safe_i64).unwrap_or(0);
        assert!(number("cpuMicros") >= 9_000, "{shown:?}");
        assert!(number("pausedMicros") > 0, "{shown:?}");
    }

    #[test]
    fn a_pause_ends_when_the_operation_has_to_stop() {
        let definition = Definition {
            name: "l".into(),
            subject: Subject::default(),
            bounds: Bounds {
                cpu_millis_per_second: Some(0.001),
                ..Bounds::default()
            },
            priority: None,
        };
        let limit = Arc::new(Limit::new(definition, Instant::now()));
        begin(&limit);
        limit.charge(Duration::from_secs(10), Instant::now());
        assert!(is_behind());
        pause(&|| true);
        end();
    }
}
