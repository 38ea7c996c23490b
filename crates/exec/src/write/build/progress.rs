//! How far a build is.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// The phase of a build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Makes the keys of all documents.
    Scan,
    /// Puts them into the tree in order.
    Load,
    /// Makes up for what was written meanwhile.
    Drain,
    /// Makes the indexes ready.
    Commit,
}

/// How far a build is, for others to look at.
#[derive(Debug, Default)]
pub struct BuildProgress {
    phase: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
}

impl BuildProgress {
    pub(super) fn begin(&self, phase: Phase, total: u64) {
        self.phase.store(phase as u8, Relaxed);
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
    }

    pub(super) fn set_done(&self, done: u64) {
        self.done.store(done, Relaxed);
    }

    pub(super) fn add_done(&self, more: u64) {
        self.done.fetch_add(more, Relaxed);
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Scan,
            1 => Phase::Load,
            2 => Phase::Drain,
            _ => Phase::Commit,
        }
    }

    /// How many documents (scanning), keys (loading) or records (draining) of how many. Of the documents the number is that of
    /// the beginning, so `done` is held below it.
    pub fn done(&self) -> (u64, u64) {
        let total = self.total.load(Relaxed);
        (self.done.load(Relaxed).min(total), total)
    }
}
