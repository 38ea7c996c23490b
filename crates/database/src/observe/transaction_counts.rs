//! Transactions, counted: for `serverStatus` and `currentOp`.

use crate::observe::counters::Counter;
use crate::observe::log::time_text;
use nestor_model::{Document, Timestamp, doc};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The transactions of a service since its start. Those that are neither committed nor aborted are open.
#[derive(Debug, Default)]
pub struct TransactionCounts {
    /// Those started.
    pub started: Counter,
    /// Those committed.
    pub committed: Counter,
    /// Those aborted, whoever did it.
    pub aborted: Counter,
    /// Looks for transactions that have been open for too long.
    pub expiry_passes: Counter,
    active: AtomicI64,
    last_committed: Mutex<Option<Committed>>,
}

/// Counts of a transaction's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its operations.
    pub operations: usize,
    /// Their size in bytes.
    pub bytes: usize,
}

impl TransactionCounts {
    /// Those open now, and those of them that a command is at.
    pub fn open(&self) -> (i64, i64) {
        let open = self.started.get() - self.committed.get() - self.aborted.get();
        (open.max(0), self.active.load(Relaxed))
    }

    /// The one committed last.
    pub fn last_committed(&self) -> Option<Committed> {
        *crate::lock(&self.last_committed)
    }
}

/// One transaction in the counts. It ends as aborted unless it was committed.
#[derive(Debug)]
pub struct Tally {
    counts: Arc<TransactionCounts>,
    facts: Arc<TransactionFacts>,
    is_committed: bool,
}

impl Tally {
    /// A transaction that starts now.
    pub fn new(counts: Arc<TransactionCounts>, facts: TransactionFacts) -> Self {
        counts.started.add(1);
        Self {
            counts,
            facts: Arc::new(facts),
            is_committed: false,
        }
    }

    /// The part of it that others may see.
    pub fn facts(&self) -> &Arc<TransactionFacts> {
        &self.facts
    }

    /// A command begins to work on it; until what this returns is dropped.
    pub fn activate(&self) -> Active {
        self.counts.active.fetch_add(1, Relaxed);
        Active {
            counts: self.counts.clone(),
            facts: self.facts.clone(),
            since: Instant::now(),
        }
    }

    /// It was committed.
    pub fn commit(mut self, what: Committed) {
        self.is_committed = true;
        *crate::lock(&self.counts.last_committed) = Some(what);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let counter = match self.is_committed {
            true => &self.counts.committed,
            false => &self.counts.aborted,
        };
        counter.add(1);
    }
}

/// A command at work on a transaction.
#[derive(Debug)]
pub struct Active {
    counts: Arc<TransactionCounts>,
    facts: Arc<TransactionFacts>,
    since: Instant,
}

impl Drop for Active {
    fn drop(&mut self) {
        self.counts.active.fetch_sub(1, Relaxed);
        self.facts
            .active_micros
            .fetch_add(micros(self.since.elapsed()), Relaxed);
    }
}

/// The part of an open transaction that others may see.
#[derive(Debug)]
pub struct TransactionFacts {
    /// Its number within its session.
    pub number: i64,
    /// Name of its read concern level.
    pub read_level: &'static str,
    /// The time that it reads.
    pub read_time: Timestamp,
    /// When it was started.
    pub started: Instant,
    /// The same in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// How long it may stay open (`transactionLifetimeLimitSeconds` when it was started).
    pub lifetime: Duration,
    /// For how long commands that are done were at work on it.
    pub active_micros: AtomicU64,
}

impl TransactionFacts {
    /// When it has to be over; `None` when that is beyond all times.
    pub fn end(&self) -> Option<Instant> {
        self.started.checked_add(self.lifetime)
    }

    /// It has been open for too long.
    pub fn is_too_old(&self) -> bool {
        self.started.elapsed() > self.lifetime
    }

    /// `transaction` of `currentOp`; `running` is for how long a command has been at work on it.
    pub fn document(&self, running: Duration) -> Document {
        let open = micros(self.started.elapsed());
        let active = (self.active_micros.load(Relaxed) + micros(running)).min(open);
        let as_long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let expiry_ms = self
            .started_ms
            .saturating_add(i64::try_from(self.lifetime.as_millis()).unwrap_or(i64::MAX));
        doc! {
            "parameters": doc! {
                "txnNumber": self.number,
                "autocommit": false,
                "readConcern": doc! { "level": self.read_level },
            },
            "readTimestamp": self.read_time,
            "startWallClockTime": time_text(self.started_ms),
            "timeOpenMicros": as_long(open),
            "timeActiveMicros": as_long(active),
            "timeInactiveMicros": as_long(open - active),
            "expiryTime": time_text(expiry_ms),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(counts: &Arc<TransactionCounts>) -> Tally {
        let facts = TransactionFacts {
            number: 1,
            read_level: "local",
            read_time: Timestamp::default(),
            started: Instant::now(),
            started_ms: 0,
            lifetime: Duration::from_secs(60),
            active_micros: AtomicU64::new(0),
        };
        Tally::new(counts.clone(), facts)
    }

    #[test]
    fn what_is_dropped_uncommitted_was_aborted() {
        let counts = Arc::<TransactionCounts>::default();
        let (one, two, three) = (start(&counts), start(&counts), start(&counts));
        let active = three.activate();
        assert_eq!(counts.open(), (3, 1));
        drop(active);
        drop(one);
        let what = Committed {
            operations: 2,
            bytes: 100,
        };
        two.commit(what);
        assert_eq!((counts.committed.get(), counts.aborted.get()), (1, 1));
        assert_eq!(counts.open(), (1, 0));
        assert_eq!(counts.last_committed(), Some(what));
    }
}
