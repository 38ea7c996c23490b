//! States of the store that snapshot reads were given, so that later reads can ask for the same time.
//!
//! A snapshot pins what it shows, so only the times that clients were told are kept, and not for long
//! (`minSnapshotHistoryWindowInSeconds`).

use crate::lock;
use nestor_model::{Result, Timestamp, bail};
use nestor_storage::{Engine, Snapshot};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a state is kept after it was last asked for.
const WINDOW: Duration = Duration::from_secs(300);
/// Most states kept; the oldest go first.
const KEPT_MAX: usize = 64;

/// The kept states by their optimes.
#[derive(Default)]
pub struct Snapshots {
    kept: Mutex<BTreeMap<Timestamp, (Snapshot, Instant)>>,
}

impl Snapshots {
    /// The state at `time`, or the newest one for `None`; it is kept from now on.
    ///
    /// Errors: 239 (SnapshotTooOld) for a time whose state is not kept any more or never was.
    pub fn at(&self, engine: &Engine, time: Option<Timestamp>) -> Result<Snapshot> {
        let newest = engine.snapshot();
        let now = Instant::now();
        let mut kept = lock(&self.kept);
        kept.retain(|_, (_, used)| now.duration_since(*used) < WINDOW);
        let time = time.unwrap_or_else(|| newest.optime());
        if let Some((snapshot, used)) = kept.get_mut(&time) {
            *used = now;
            return Ok(snapshot.clone());
        }
        if newest.optime() > time {
            bail!(
                SnapshotTooOld,
                "Read timestamp Timestamp({}, {}) is older than the oldest available timestamp.",
                time.secs,
                time.inc
            );
        }
        while kept.len() >= KEPT_MAX {
            kept.pop_first();
        }
        kept.insert(time, (newest.clone(), now));
        Ok(newest)
    }

    /// Lets go of states that nobody asked for lately.
    pub fn sweep(&self) {
        let now = Instant::now();
        lock(&self.kept).retain(|_, (_, used)| now.duration_since(*used) < WINDOW);
    }
}
