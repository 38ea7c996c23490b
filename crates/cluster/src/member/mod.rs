//! A member of a replica set: it writes the log, or applies it, and stands by.
//!
//! ```text
//! start    lease free -> take it, shut others out, drop what the log does not have if it went on, apply the rest -> primary
//!          lease held -> drop what the log does not have, follow                                               -> secondary
//! primary  shipper: journal -> log; keeper: renews the lease
//! secondary follower: log -> engine; keeper: looks whether the lease is over, and then takes it
//! ```
//!
//! A role is for the life of a process: whoever is to become primary or to be it no more ends what it does and starts anew
//! ([`Roles::over`]), so that nothing in memory can be of the role before. What a start does is the same after a crash.
//!
//! Reading order: [`config`] (who is there), [`mod@start`], `shipper`, `follower`, `keeper`, `knocks`, `rollback`, [`checkpoints`].

pub mod checkpoints;
pub mod config;
mod follower;
mod keeper;
mod knocks;
mod patience;
mod rollback;
mod shipper;
mod start;

pub use start::start;

use crate::{Log, LogError};
use keeper::Keeper;
use nestor_storage::{Engine, EngineOptions, StorageError};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a member behaves.
#[derive(Clone)]
pub struct MemberOptions {
    /// The name of the set.
    pub set: String,
    /// `host:port` under which clients and other members know it.
    pub host: String,
    /// Its data directory.
    pub dir: PathBuf,
    /// How its store is opened.
    pub engine: EngineOptions,
    /// How long the lease of a primary holds that does not renew it.
    pub lease: Duration,
    /// A checkpoint is uploaded when there are so many commits since the one before.
    pub checkpoint_commits: u64,
    /// Told when its role is over.
    pub roles: Arc<dyn Roles>,
}

/// Whoever starts a member.
pub trait Roles: Send + Sync {
    /// The member's role is over: it accepts nothing any more, and is to be started anew. Called once at most, from a thread of the member.
    fn over(&self, why: &str);
}

/// Why a member does not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MemberError {
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Something else is there than was asked for.
    #[error("{0}")]
    Refused(String),
    /// Its role was over before it had started: [`Roles::over`] is called, and whoever starts members has not ended this one yet.
    #[error("the role was over before the member had started")]
    Over,
}

/// A member that has started. Dropping it ends its threads, but for a checkpoint's last request to a store that does not answer.
pub struct Member {
    engine: Engine,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
    threads: Vec<JoinHandle<()>>,
    /// The thread that uploads checkpoints.
    uploader: JoinHandle<()>,
}

/// How long it is waited for a request of the uploader: what is half uploaded is nothing.
const LAST_REQUEST: Duration = Duration::from_secs(5);

impl Member {
    /// The store.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether it started as the primary.
    pub fn is_primary(&self) -> bool {
        self.keeper.is_primary()
    }

    /// Ends it in good order: a primary accepts nothing more, waits for `patience` until the log has everything, and gives the lease up, so
    /// that another member takes over at once.
    pub fn stop(self, patience: Duration) {
        self.keeper.retire(patience);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.set();
        self.engine.end_beginnings();
        // The store wakes whoever waits in it.
        for thread in self.threads.drain(..) {
            if thread.thread().id() != std::thread::current().id() {
                // One that panicked has nothing more to do.
                let _ = thread.join();
            }
        }
        let until = Instant::now() + LAST_REQUEST;
        while !self.uploader.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Tells threads to end.
#[derive(Default)]
pub(crate) struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so long. True if it is time to end.
    fn wait(&self, at_most: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, at_most, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Opens the log at an address: `s3://bucket/path` or `file:///path`.
///
/// Errors: in a build without the feature `cluster`, always.
pub fn open_log(address: &str) -> Result<Arc<dyn Log>, LogError> {
    #[cfg(feature = "cluster")]
    return Ok(Arc::new(crate::SlateLog::open(address)?));
    #[cfg(not(feature = "cluster"))]
    Err(LogError::Address(format!(
        "{address}: this build has no log of a replica set; build it with --features cluster"
    )))
}
