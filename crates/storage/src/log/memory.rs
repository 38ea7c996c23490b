//! The log of a store that lives in memory: the newest frames, without what replay would repeat, up to a size, and the newest one
//! whatever its size.

use crate::journal::frame;
use nestor_model::Timestamp;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// A frame in memory.
pub(crate) struct MemoryFrame {
    pub(super) seq: u64,
    /// Of its last entry.
    pub(super) optime: Timestamp,
    pub(super) bytes: Box<[u8]>,
}

/// See the module's description.
pub(crate) struct MemoryLog(Mutex<Queue>);

struct Queue {
    bytes_max: u64,
    /// In the order of their numbers; none without an entry.
    frames: VecDeque<Arc<MemoryFrame>>,
    bytes: u64,
    /// Optime of the last frame that was dropped.
    dropped: Timestamp,
    /// How many were.
    dropped_count: u64,
}

impl MemoryLog {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self(Mutex::new(Queue {
            bytes_max,
            frames: VecDeque::new(),
            bytes: 0,
            dropped: Timestamp::default(),
            dropped_count: 0,
        }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().expect("no holder of the lock panics")
    }

    /// Adds a commit's frame, which has entries.
    pub(crate) fn push(&self, seq: u64, optime: Timestamp, bytes: Vec<u8>) {
        let bytes = bytes.into_boxed_slice();
        let mut queue = self.queue();
        queue.bytes += bytes.len() as u64;
        queue.frames.push_back(Arc::new(MemoryFrame { seq, optime, bytes }));
        queue.trim();
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.queue().bytes
    }

    /// Frames that were dropped.
    pub(crate) fn removed(&self) -> u64 {
        self.queue().dropped_count
    }

    /// Oplog entries of the frames.
    pub(crate) fn entries(&self) -> u64 {
        let queue = self.queue();
        let entries = queue.frames.iter().map(|frame| frame::entry_count(&frame.bytes));
        entries.map(u64::from).sum()
    }

    pub(crate) fn set_bytes_max(&self, bytes_max: u64) {
        let mut queue = self.queue();
        queue.bytes_max = bytes_max;
        queue.trim();
    }

    /// All entries after this time are there.
    pub(super) fn begins(&self) -> Timestamp {
        self.queue().dropped
    }

    /// The first frame with an entry after `after`; an error if it may be gone, unless the oldest one there is will do.
    pub(super) fn next(&self, after: Timestamp, from_oldest: bool) -> Result<Option<Arc<MemoryFrame>>, Dropped> {
        let queue = self.queue();
        if after < queue.dropped && !from_oldest {
            return Err(Dropped);
        }
        let at = queue.frames.partition_point(|frame| frame.optime <= after);
        Ok(queue.frames.get(at).cloned())
    }

    /// The frames that begin before `before`, newest first, as far as they were accepted by `limit`.
    pub(super) fn before(&self, before: Timestamp, limit: u64) -> Vec<Arc<MemoryFrame>> {
        let queue = self.queue();
        // The one in which `before` lies may have earlier entries.
        let at = queue.frames.partition_point(|frame| frame.optime < before);
        let upto = (at + 1).min(queue.frames.len());
        let from = upto.saturating_sub(2);
        let found = queue.frames.range(from..upto).rev();
        found.filter(|frame| frame.seq <= limit).cloned().collect()
    }
}

/// The entries asked for may have been dropped.
pub(super) struct Dropped;

impl Queue {
    fn trim(&mut self) {
        while self.bytes > self.bytes_max && self.frames.len() > 1 {
            let Some(frame) = self.frames.pop_front() else { break };
            self.bytes -= frame.bytes.len() as u64;
            self.dropped = frame.optime;
            self.dropped_count += 1;
        }
    }
}
