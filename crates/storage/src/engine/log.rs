//! The engine's side of the log: what is visible, who follows, how much is kept.

use super::Inner;
use crate::log::{Follower, Interest, Log, LogPosition, LogReader, LogRetention, LogTruncation, Upto};
use crate::{Engine, Guarantee, Result, StorageError};
use nestor_model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How far the history reaches for a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible {
    /// The last commit. Never ahead of what `optime` says.
    pub(crate) seq: u64,
    pub(crate) optime: Timestamp,
}

/// [`LogRetention`], settable while others read it, and counts of the removals.
pub(super) struct Retention {
    bytes_max: AtomicU64,
    age_min_secs: AtomicU64,
    removed: AtomicU64,
    removing_micros: AtomicU64,
}

impl Retention {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max: AtomicU64::new(bytes_max),
            age_min_secs: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            removing_micros: AtomicU64::new(0),
        }
    }

    /// Counts segments that were removed.
    pub(super) fn note_removed(&self, segments: usize, took: Duration) {
        if segments > 0 {
            self.removed.fetch_add(segments as u64, Ordering::Relaxed);
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.removing_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> LogRetention {
        LogRetention {
            bytes_max: self.bytes_max.load(Ordering::Relaxed),
            age_min: Duration::from_secs(self.age_min_secs.load(Ordering::Relaxed)),
        }
    }
}

impl Engine {
    /// Reads the log behind `after`: changes that `interest` names. Nothing is read yet.
    pub fn read_log(&self, after: LogPosition, interest: Interest) -> LogReader {
        LogReader::new(self.clone(), after, interest)
    }

    /// Everything after this time is in the log. A reader that starts before it gets
    /// [`StorageError::OplogHistoryLost`].
    pub fn log_begins(&self) -> Timestamp {
        self.inner.log.begins()
    }

    /// Size of the log in bytes, with what it keeps beside the entries.
    pub fn log_bytes(&self) -> u64 {
        match &self.inner.log {
            Log::Journal(journal) => journal.bytes(),
            Log::Memory(memory) => memory.bytes(),
        }
    }

    /// How many entries the log has. Headers of frames that were not counted before are read: for the first time in a while this
    /// takes time in proportion to the size of the log.
    pub fn log_entries(&self) -> Result<u64> {
        match &self.inner.log {
            Log::Journal(journal) => journal.segments().iter().map(|segment| segment.entries()).sum(),
            Log::Memory(memory) => Ok(memory.entries()),
        }
    }

    /// The entries removed from the log since the start, because they need not be kept any more.
    pub fn log_truncation(&self) -> LogTruncation {
        let retention = &self.inner.retention;
        LogTruncation {
            removed: match &self.inner.log {
                Log::Journal(_) => retention.removed.load(Ordering::Relaxed),
                Log::Memory(memory) => memory.removed(),
            },
            micros: retention.removing_micros.load(Ordering::Relaxed),
        }
    }

    /// How long the log is kept.
    pub fn log_retention(&self) -> LogRetention {
        self.inner.retention.get()
    }

    /// Changes how long the log is kept, from now on. What is no longer to be kept goes now, as far as a start does not need it.
    pub fn set_log_retention(&self, retention: LogRetention) {
        let inner = &self.inner;
        inner.retention.bytes_max.store(retention.bytes_max, Ordering::Relaxed);
        inner
            .retention
            .age_min_secs
            .store(retention.age_min.as_secs(), Ordering::Relaxed);
        match &inner.log {
            Log::Memory(memory) => memory.set_bytes_max(retention.bytes_max),
            Log::Journal(_) => inner.checkpointer.trim_log(inner),
        }
    }

    /// How many readers are at the end of the log.
    pub fn log_followers(&self) -> usize {
        self.inner.followers.count()
    }
}

impl Inner {
    /// How far readers may read.
    pub(crate) fn visible(&self, upto: Upto) -> Visible {
        match upto {
            Upto::Committed => self.committed(),
            Upto::Accepted => {
                let state = self.current();
                let (seq, optime) = (state.seq, state.optime);
                Visible { seq, optime }
            }
        }
    }

    /// Why nothing more will become visible.
    pub(crate) fn log_failure(&self, upto: Upto) -> Option<StorageError> {
        match (upto, &self.store) {
            (Upto::Committed, Some(store)) => store.journal.syncer.failure(),
            _ => None,
        }
    }

    /// Calls `then` once a commit that was accepted is visible, or it cannot be known.
    pub(crate) fn on_visible(&self, seq: u64, upto: Upto, then: impl FnOnce() + Send + 'static) {
        match (upto, &self.store) {
            (Upto::Committed, Some(_)) => {
                self.on_reached(seq, Guarantee::Committed, Box::new(move |_: Result<()>| then()));
            }
            _ => {
                // The thread that accepted it shows it before anybody else gets the lock.
                drop(self.lock_sequencer());
                then();
            }
        }
    }

    /// Tells a reader of commits from now on; those so far may concern it.
    pub(crate) fn follow(&self, follower: &Arc<Follower>) {
        let sequencer = self.lock_sequencer();
        self.followers.add(follower.clone());
        follower.mark(sequencer.current().seq);
    }
}
