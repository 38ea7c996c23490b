//! The states that snapshot reads ask for, by their times (`minSnapshotHistoryWindowInSeconds`).
//!
//! A snapshot read that names no time gets the newest state, and is told its time; the reads that follow name it. So the states that
//! were told are kept for a while, which costs nothing as long as their memtables are in use anyway. Any other time is put together
//! out of base and journal ([`Engine::snapshot_at`]), one at a time, and kept as well. Of states that take memory of their own
//! the last one used is kept, and others as long as they come to no more than a memtable: who asks for another one again has it put
//! together again. A store that lives in memory has no journal to do that with: there the times that were told can be read, and no
//! others.

use crate::clock;
use crate::lock;
use crate::observe::counters::Counter;
use nestor_exec::interrupt::{self, Interrupt};
use nestor_model::{Result, Timestamp, bail};
use nestor_storage::{Engine, PastState, Snapshot};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most states kept; those longest unused go first.
const KEPT_MAX: usize = 64;
/// How often who waits for its turn looks whether it should go on.
const LOOK: Duration = Duration::from_millis(10);

/// The states by their times.
#[derive(Default)]
pub struct Snapshots {
    kept: Mutex<BTreeMap<Timestamp, Kept>>,
    /// Somebody puts a state together.
    is_busy: Mutex<bool>,
    is_free: Condvar,
    /// States that were put together.
    pub put_together: Counter,
    /// Reads of times that were too old.
    pub too_old: Counter,
}

struct Kept {
    snapshot: Snapshot,
    /// When it was told, or when the next commit replaced it.
    since: Instant,
    used: Instant,
}

impl Snapshots {
    /// The state at `time`, or the newest one for `None`; it is kept for a while.
    ///
    /// Errors: 239 (SnapshotTooOld) for a time whose state was replaced before the window, or is not kept; the operation is to stop.
    pub fn at(
        &self,
        engine: &Engine,
        time: Option<Timestamp>,
        window: Duration,
        interrupt: &Interrupt,
    ) -> Result<Snapshot> {
        let newest = engine.snapshot();
        let time = time.unwrap_or_else(|| newest.optime());
        if newest.optime() <= time {
            self.keep(engine, time, &newest, Duration::ZERO);
            return Ok(newest);
        }
        if let Some(found) = self.find(time, window) {
            return Ok(found);
        }
        let _turn = self.turn(interrupt)?;
        // The operation that had the turn before may have done the same.
        if let Some(found) = self.find(time, window) {
            return Ok(found);
        }
        let Some(PastState { snapshot, until }) = engine.snapshot_at(time, || interrupt.check())? else {
            self.too_old.add(1);
            bail!(
                SnapshotTooOld,
                "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp.",
                time.secs,
                time.inc
            );
        };
        self.put_together.add(1);
        let age_secs = clock::now_ms().div_euclid(1000).saturating_sub(i64::from(until.secs));
        let age = Duration::from_secs(u64::try_from(age_secs).unwrap_or(0));
        self.keep(engine, time, &snapshot, age);
        Ok(snapshot)
    }

    /// Lets go of states that are older than `window`, and of those that take more memory than they should.
    pub fn sweep(&self, engine: &Engine, window: Duration) {
        let mut gone = Vec::new();
        let mut kept = lock(&self.kept);
        let now = Instant::now();
        let past: Vec<_> = kept
            .iter()
            .filter(|(_, state)| now.duration_since(state.since) >= window)
            .map(|(time, _)| *time)
            .collect();
        gone.extend(past.iter().filter_map(|time| kept.remove_entry(time)));
        shed(&mut kept, engine, &mut gone);
        drop(kept);
        // Taking one apart may take a while.
        drop(gone);
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        lock(&self.kept).len()
    }

    /// True when none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, time: Timestamp, window: Duration) -> Option<Snapshot> {
        let now = Instant::now();
        let mut kept = lock(&self.kept);
        let state = kept.get_mut(&time)?;
        if now.duration_since(state.since) >= window {
            return None;
        }
        state.used = now;
        Some(state.snapshot.clone())
    }

    fn keep(&self, engine: &Engine, time: Timestamp, snapshot: &Snapshot, age: Duration) {
        let now = Instant::now();
        let state = Kept {
            snapshot: snapshot.clone(),
            since: now.checked_sub(age).unwrap_or(now),
            used: now,
        };
        let mut gone = Vec::new();
        let mut kept = lock(&self.kept);
        kept.insert(time, state);
        shed(&mut kept, engine, &mut gone);
        drop(kept);
    }

    /// The turn of one who puts a state together.
    fn turn(&self, interrupt: &Interrupt) -> Result<Turn<'_>> {
        interrupt::while_waiting(|| {
            let mut is_busy = lock(&self.is_busy);
            while *is_busy {
                let waited = self.is_free.wait_timeout(is_busy, LOOK);
                is_busy = waited.unwrap_or_else(PoisonError::into_inner).0;
                interrupt.check()?;
            }
            *is_busy = true;
            Ok(Turn(self))
        })
    }
}

struct Turn<'s>(&'s Snapshots);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_busy) = false;
        self.0.is_free.notify_one();
    }
}

/// Moves those beyond the limits to `gone`, the longest unused first.
fn shed(kept: &mut BTreeMap<Timestamp, Kept>, engine: &Engine, gone: &mut Vec<(Timestamp, Kept)>) {
    let mut states: Vec<_> = kept.iter().map(|(time, state)| (state.used, *time)).collect();
    states.sort_unstable();
    let (mut bytes_left, mut is_last_used) = (engine.past_bytes_max(), true);
    for (place, (_, time)) in states.iter().rev().enumerate() {
        let bytes = kept.get(time).map_or(0, |state| engine.past_bytes(&state.snapshot));
        let is_large = bytes > bytes_left && !is_last_used;
        if place >= KEPT_MAX || is_large {
            gone.extend(kept.remove_entry(time));
        } else if bytes > 0 && !std::mem::take(&mut is_last_used) {
            // The last one used is kept however large it is, and counts for nothing.
            bytes_left -= bytes;
        }
    }
}
