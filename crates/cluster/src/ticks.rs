//! The clock that SlateDB is given: it never goes back, not even from one writer to the next on another machine.
//!
//! Each entry of SlateDB has the time at which it was written, and one that is earlier than the last one is refused. A member whose clock is
//! an hour behind that of the primary before it could write nothing for an hour. So the clock of a writer begins no earlier than the
//! last entry. What it shows is no time of the day then, and nobody takes it for one.

use chrono::{DateTime, TimeDelta, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The clock of one writer.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    clock: DefaultSystemClock,
    ahead_ms: AtomicI64,
}

impl Ticks {
    /// From now on it shows no time before this one, in milliseconds since the epoch.
    pub(crate) fn begin_at(&self, ms: i64) {
        let behind = ms.saturating_sub(self.now().timestamp_millis());
        if behind > 0 {
            self.ahead_ms.fetch_add(behind, Ordering::Relaxed);
        }
    }
}

impl SystemClock for Ticks {
    fn now(&self) -> DateTime<Utc> {
        let ahead = TimeDelta::milliseconds(self.ahead_ms.load(Ordering::Relaxed));
        self.clock.now() + ahead
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.clock.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_goes_ahead() {
        let ticks = Ticks::default();
        let begun = ticks.now().timestamp_millis();
        ticks.begin_at(begun - 10_000);
        assert!(ticks.now().timestamp_millis() < begun + 1_000_000);
        ticks.begin_at(begun + 5_000_000);
        assert!(ticks.now().timestamp_millis() >= begun + 5_000_000);
    }
}
