//! States of the past: what a snapshot would have shown at any time within a window.
//!
//! ```text
//! base 1 ──── journal ────▶ base 2 ──── journal ────▶ base 3 ──── journal ────▶ now
//! └ ends[1]                 └ ends[2]                 └ the present base
//! ```
//!
//! No version is kept for this. The journal has every commit, so a state of the past is the base of the last checkpoint before it with
//! the commits from there on in a memtable of its own, put together by the code that start-up recovers with. A commit pays
//! nothing; a checkpoint keeps the state of the base that it replaces, of which only the pages that it changed take room; who asks for a
//! time pays for replaying what lies between two checkpoints, at most about three memtables.
//!
//! Why not versions in the memtable: each write would keep its predecessor for the whole window, be it a counter that changes
//! ten thousand times a second.
//!
//! What bounds it: bases whose replacement is older than the window go; so do the oldest when what their replacements freed comes to more
//! than [`HELD_BYTES_MIN`] or half of the data, whichever is more; and a base whose journal is gone is of no use, so the log's
//! size is a bound too. [`Engine::history`] tells from when on times can be read. A store that lives in memory has none of it.

use super::recovery::{Meta, Recovery};
use super::{Inner, Store};
use crate::base::BaseSnapshot;
use crate::catalog::{Catalog, Collection, entry};
use crate::journal::frame::{self, Frame};
use crate::journal::{Checkpoint, Journal, Position, segment};
use crate::snapshot::{Layers, Published};
use crate::{Engine, Result, Snapshot, StorageError};
use nestor_model::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The bytes that replaced bases may take in any case.
const HELD_BYTES_MIN: u64 = 64 << 20;
/// The share of the data that they may take.
const HELD_SHARE: u64 = 2;
/// Bytes of the journal that are read at a time, unless a frame is longer.
const READ_BYTES: u64 = 1 << 20;

/// The bases that checkpoints replaced, and for how long they are kept.
#[derive(Default)]
pub(super) struct History {
    window_secs: AtomicU64,
    past: Mutex<Past>,
}

#[derive(Default)]
struct Past {
    /// Oldest first.
    bases: VecDeque<Replaced>,
    /// The checkpoint that replaces the last of them has not come to its end.
    is_merging: bool,
}

/// A base that a checkpoint replaced.
struct Replaced {
    base: Arc<dyn BaseSnapshot>,
    /// Optime of the last commit that lies between it and the next base.
    end: Timestamp,
    /// When the checkpoint began, in seconds since the epoch.
    replaced_secs: u32,
    /// The bytes that the checkpoint freed: no more than that is kept for this base alone.
    freed_bytes: u64,
}

/// How much of the past can be read. See [`Engine::history`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryStats {
    /// How far back times are wanted.
    pub window: Duration,
    /// The oldest time that can be read, but for what the window excludes.
    pub oldest: Timestamp,
    /// How many replaced bases are kept for it.
    pub bases: u64,
    /// The bytes that these take in the base's file, at most.
    pub bytes: u64,
}

/// A state of the past.
pub struct PastState {
    /// The state, to be read.
    pub snapshot: Snapshot,
    /// When the next commit replaced it.
    pub until: Timestamp,
}

impl Engine {
    /// Sets how far back times are to be read: at first not at all. What is no longer wanted goes now; what is wanted from now on is not
    /// there before the time has passed.
    pub fn set_history_window(&self, window: Duration) {
        let history = &self.inner.history;
        history.window_secs.store(window.as_secs(), Ordering::Relaxed);
        self.trim_history();
    }

    /// Lets go of what is older than the window.
    pub fn trim_history(&self) {
        self.inner.history.trim(&self.inner);
    }

    /// The state at `time`, which is before that of the last commit: all commits up to `time`, and none after. `None` if it was replaced
    /// before the window, or what it takes is not kept. It takes a second for each 100 MB of journal to put together and as much memory as two
    /// or three memtables, so keep it if it will be asked for again.
    ///
    /// `check` is called now and then. Errors: its own, and those of reading the journal.
    pub fn snapshot_at<E: From<StorageError>>(
        &self,
        time: Timestamp,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<PastState>, E> {
        let inner = &*self.inner;
        match &inner.store {
            Some(store) => inner.history.at(inner, store, time, check),
            None => Ok(None),
        }
    }

    /// Memory in bytes that `snapshot` takes of its own: memtables that are not in use otherwise.
    pub fn past_bytes(&self, snapshot: &Snapshot) -> usize {
        let current = self.inner.current();
        let is_used = |memtable: &_| current.layers.memtables().any(|used| Arc::ptr_eq(used, memtable));
        let own = snapshot.state.layers.memtables().filter(|memtable| !is_used(*memtable));
        own.map(|memtable| memtable.bytes().max(1)).sum()
    }

    /// How much memory in bytes states of the past may reasonably take beside the one in use: as much as a memtable.
    pub fn past_bytes_max(&self) -> usize {
        self.inner.options.memtable_bytes_max
    }

    /// How much of the past can be read; `None` for a store that lives in memory.
    pub fn history(&self) -> Option<HistoryStats> {
        let inner = &self.inner;
        let store = inner.store.as_ref()?;
        let past = inner.history.lock();
        let journal_from = store.journal.segments().first().map_or(0, |segment| segment.first_seq);
        let bases = past.bases.iter().map(|replaced| &replaced.base);
        let present = store.base.snapshot();
        let mut starts = bases.chain([&present]).filter_map(|base| start(base).ok());
        let oldest = starts.find(|start| start.position.segment >= journal_from);
        Some(HistoryStats {
            window: inner.history.window(),
            oldest: oldest.map_or_else(|| inner.current().optime, |start| start.optime),
            bases: past.bases.len() as u64,
            bytes: past.bases.iter().map(|replaced| replaced.freed_bytes).sum(),
        })
    }
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Past> {
        self.past.lock().expect("no holder of the lock panics")
    }

    fn window(&self) -> Duration {
        Duration::from_secs(self.window_secs.load(Ordering::Relaxed))
    }

    /// A checkpoint that writes all commits up to `end` is about to change the base. Called before it changes it.
    pub(super) fn begin(&self, base: Arc<dyn BaseSnapshot>, end: Timestamp, now_secs: u32) {
        let mut past = self.lock();
        past.is_merging = true;
        past.bases.push_back(Replaced {
            base,
            end,
            replaced_secs: now_secs,
            freed_bytes: 0,
        });
    }

    /// One transaction of that checkpoint has freed so much.
    pub(super) fn freed(&self, bytes: u64) {
        if let Some(last) = self.lock().bases.back_mut() {
            last.freed_bytes += bytes;
        }
    }

    /// The checkpoint has come to its end.
    pub(super) fn end(&self, inner: &Inner) {
        self.lock().is_merging = false;
        self.trim(inner);
    }

    fn trim(&self, inner: &Inner) {
        let Some(store) = &inner.store else { return };
        let window = u32::try_from(self.window().as_secs()).unwrap_or(u32::MAX);
        let horizon = (inner.options.clock)().saturating_sub(window);
        let journal_from = store.journal.segments().first().map_or(0, |segment| segment.first_seq);
        let data = store.base.file_bytes().saturating_sub(store.base.held_bytes());
        let bytes_max = HELD_BYTES_MIN.max(data / HELD_SHARE);
        let mut gone = Vec::new();
        let mut past = self.lock();
        let mut bytes: u64 = past.bases.iter().map(|replaced| replaced.freed_bytes).sum();
        // A checkpoint that is under way may have changed the present base already: until its end, the one before is the only one that
        // shows what was before it.
        while past.bases.len() > usize::from(past.is_merging)
            && let Some(oldest) = past.bases.front()
        {
            let is_old = window == 0 || oldest.replaced_secs < horizon;
            let is_useless = start(&oldest.base).is_ok_and(|start| start.position.segment < journal_from);
            if !is_old && !is_useless && bytes <= bytes_max {
                break;
            }
            bytes -= oldest.freed_bytes;
            gone.extend(past.bases.pop_front());
        }
        drop(past);
        drop(gone);
    }

    /// See [`Engine::snapshot_at`].
    fn at<E: From<StorageError>>(
        &self,
        inner: &Inner,
        store: &Store,
        time: Timestamp,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<PastState>, E> {
        let window = u32::try_from(self.window().as_secs()).unwrap_or(u32::MAX);
        let horizon = (inner.options.clock)().saturating_sub(window);
        let base = {
            let past = self.lock();
            let replaced = past.bases.iter().find(|replaced| replaced.end > time);
            // Under the lock: a checkpoint says here that it is about to change the base before it does.
            replaced.map_or_else(|| store.base.snapshot(), |replaced| replaced.base.clone())
        };
        let from = start(&base)?;
        if from.optime > time {
            return Ok(None);
        }
        let (mut state, _) = Recovery::from_base(&base, inner.options.memtable_bytes_max)?;
        let until = match replay(&store.journal, from.position, time, &mut state, &mut check)? {
            Some(until) if window > 0 && until.secs >= horizon => until,
            _ => return Ok(None),
        };
        if !state.unfilled().is_empty() {
            // This base got entries as of a later time.
            return Ok(None);
        }
        let memtable = Arc::new(state.memtable);
        // The last holder need not take it apart.
        inner.checkpointer.bury(memtable.clone());
        let layers = Layers {
            active: memtable,
            frozen: None,
            base: Some(base),
        };
        let state = Arc::new(Published {
            seq: state.seq,
            optime: state.optime,
            layers: Arc::new(layers),
            catalog: shared(state.changes.catalog, &inner.current().catalog),
        });
        let snapshot = Snapshot { state };
        Ok(Some(PastState { snapshot, until }))
    }
}

/// The checkpoint that a base is of; for a new one the beginning of the first segment.
pub(super) fn start(base: &Arc<dyn BaseSnapshot>) -> Result<Checkpoint> {
    let first = Checkpoint {
        position: Position {
            segment: 1,
            offset: segment::HEADER_BYTES as u64,
        },
        ..Checkpoint::default()
    };
    Ok(Meta::decode(base.meta())?.map_or(first, |meta| meta.checkpoint))
}

/// Replays the commits from `from` up to `time` and returns the optime of the one that follows; `None` if none follows, or the journal
/// does not reach back so far.
fn replay<E: From<StorageError>>(
    journal: &Journal,
    from: Position,
    time: Timestamp,
    state: &mut Recovery,
    check: &mut impl FnMut() -> Result<(), E>,
) -> Result<Option<Timestamp>, E> {
    let segments = journal.segments();
    let mut offset = from.offset;
    let Some(first) = segments.iter().position(|segment| segment.first_seq == from.segment) else {
        return Ok(None);
    };
    let (mut bytes, mut plain) = (Vec::new(), Vec::new());
    for segment in &segments[first..] {
        let len = segment.len();
        let mut wanted = READ_BYTES;
        while offset < len {
            check()?;
            bytes.resize(wanted.min(len - offset) as usize, 0);
            segment.read(&mut bytes, offset)?;
            let mut done = 0;
            wanted = READ_BYTES;
            while bytes.len() - done >= frame::HEADER_BYTES {
                let unsound = |unsound: frame::Unsound| segment.corrupt(offset + done as u64, unsound.0);
                let length = frame::length(&bytes[done..]).map_err(unsound)?;
                if length > bytes.len() - done {
                    wanted = READ_BYTES.max(length as u64);
                    break;
                }
                let frame = Frame::read(&bytes[done..]).map_err(unsound)?;
                if frame.optime() > time {
                    return Ok(Some(frame.optime()));
                }
                let contents = segment.contents(frame, offset + done as u64, &mut plain)?;
                state.replay(&contents)?;
                done += length;
            }
            if done == 0 && wanted == READ_BYTES {
                // The rest is shorter than a frame's header.
                return Err(segment.corrupt(offset, "frame header is cut off").into());
            }
            offset += done as u64;
        }
        offset = segment::HEADER_BYTES as u64;
    }
    Ok(None)
}

/// A catalog of the past, with the present version of every entry that has not changed since: what was derived from it serves on, and a
/// transaction that reads the past may write to it. Other entries share what is counted of their collections.
fn shared(past: Catalog, present: &Arc<Catalog>) -> Arc<Catalog> {
    let is_same =
        |a: &Collection, b: &Collection| a.ns == b.ns && entry::encode(a).as_bytes() == entry::encode(b).as_bytes();
    let (mut all, mut catalog) = (true, Catalog::default());
    for collection in past.collections() {
        catalog.put(match present.by_id(collection.id) {
            Some(now) if is_same(now, collection) => now.clone(),
            other => {
                all = false;
                let mut collection = Collection::clone(collection);
                if let Some(now) = other {
                    collection.state = now.state.clone();
                }
                Arc::new(collection)
            }
        });
    }
    match all && catalog.collections().count() == present.collections().count() {
        true => present.clone(),
        false => Arc::new(catalog),
    }
}

#[cfg(test)]
mod tests;
