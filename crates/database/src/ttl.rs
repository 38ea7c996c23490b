//! When expired documents are deleted.

use crate::observe::counters::Counter;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// When the monitor runs, and what it did.
#[derive(Debug, Default)]
pub struct TtlMonitor {
    /// Seconds since the last pass.
    secs: AtomicI64,
    /// Passes over all that may expire.
    pub passes: Counter,
    /// Documents deleted.
    pub deleted: Counter,
}

impl TtlMonitor {
    /// Counts a second; true when a pass is due.
    pub fn second(&self, sleep_secs: i64) -> bool {
        if self.secs.fetch_add(1, Relaxed) + 1 < sleep_secs {
            return false;
        }
        self.secs.store(0, Relaxed);
        true
    }
}
