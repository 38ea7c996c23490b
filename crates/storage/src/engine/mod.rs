//! The engine: opening, committing, snapshots.

use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::sequencer::{self, Sequencer};
use crate::snapshot::{Published, Snapshot};
use crate::write_set::{Commit, Ids, WriteSet};
use crate::{Lsn, Result, StorageError};
use nestor_model::Timestamp;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::time::{Duration, Instant};

/// How an engine behaves.
#[derive(Clone)]
pub struct EngineOptions {
    /// The wall clock: seconds since the Unix epoch.
    pub clock: Clock,
    /// Size in bytes at which a memtable is merged into the base.
    pub memtable_bytes_max: usize,
    /// Size in bytes to which the oplog is kept.
    pub oplog_bytes_max: u64,
}

impl EngineOptions {
    /// The defaults, with that clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            memtable_bytes_max: 64 << 20,
            oplog_bytes_max: 512 << 20,
        }
    }

    /// For tests: a clock that stands still at `secs`.
    pub fn at_time(secs: u32) -> Self {
        Self::new(Arc::new(move || secs))
    }
}

/// A store. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    ids: Arc<Ids>,
    published: RwLock<Arc<Published>>,
    /// Write sets waiting for their turn.
    queue: Mutex<Vec<(WriteSet, Arc<Ticket>)>>,
    sequencer: Mutex<Sequencer>,
    commits: Commits,
}

/// Where a commit's result is left by whoever did it.
#[derive(Default)]
struct Ticket {
    result: Mutex<Option<Result<Commit>>>,
}

/// Who wants to know of commits.
#[derive(Default)]
struct Commits {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Engine {
    /// A store that lives in memory and leaves no trace.
    pub fn ephemeral(options: EngineOptions) -> Engine {
        let state = sequencer::first_state(0, Timestamp::default(), Catalog::default());
        Engine {
            inner: Arc::new(Inner {
                ids: Arc::new(Ids::new(1)),
                published: RwLock::new(state.clone()),
                queue: Mutex::default(),
                sequencer: Mutex::new(Sequencer::new(options.clock.clone(), state)),
                commits: Commits::default(),
            }),
        }
    }

    /// The present moment: all commits published so far.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.current().into()
    }

    /// An empty write set on a fresh snapshot.
    pub fn begin(&self) -> WriteSet {
        self.begin_at(self.snapshot())
    }

    /// An empty write set on a given snapshot.
    pub fn begin_at(&self, snapshot: Snapshot) -> WriteSet {
        WriteSet::new(snapshot, self.inner.ids.clone())
    }

    /// Commits a write set: all of it or, on error, nothing. When this returns, snapshots show it; it is durable once
    /// the engine says so of its [`Lsn`]. An empty write set commits at the present moment and leaves no trace.
    pub fn commit(&self, ws: WriteSet) -> Result<Commit> {
        let inner = &*self.inner;
        if ws.is_empty() {
            let state = inner.current();
            return Ok(Commit {
                optime: state.optime,
                lsn: Lsn(state.seq),
            });
        }
        if let Ok(mut sequencer) = inner.sequencer.try_lock() {
            return inner.run(&mut sequencer, Some(ws)).unwrap_or(Err(StorageError::Closed));
        }
        let ticket = Arc::new(Ticket::default());
        let entry = (ws, ticket.clone());
        inner.queue.lock().expect("no holder of the lock panics").push(entry);
        let mut sequencer = inner.sequencer.lock().expect("no holder of the lock panics");
        // Whoever held the lock may have done it meanwhile.
        if let Some(result) = ticket.take() {
            return result;
        }
        inner.run(&mut sequencer, None);
        ticket.take().unwrap_or(Err(StorageError::Closed))
    }

    /// The optime of the last commit.
    pub fn last_optime(&self) -> Timestamp {
        self.inner.current().optime
    }

    /// The last commit.
    pub fn last_lsn(&self) -> Lsn {
        Lsn(self.inner.current().seq)
    }

    /// Takes notice of a cluster time: optimes given from now on are after it.
    pub fn advance_clock(&self, heard: Timestamp) {
        let mut sequencer = self.inner.sequencer.lock().expect("no holder of the lock panics");
        sequencer.advance_clock(heard);
    }

    /// Waits until something is committed after `seen` or until the deadline. True if something was.
    pub fn wait_for_commit(&self, seen: Lsn, deadline: Instant) -> bool {
        let commits = &self.inner.commits;
        commits.waiting.fetch_add(1, Ordering::SeqCst);
        let mut guard = commits.lock.lock().expect("no holder of the lock panics");
        let found = loop {
            if self.last_lsn() > seen {
                break true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break false;
            }
            let waited = commits.changed.wait_timeout(guard, left);
            guard = waited.expect("no holder of the lock panics").0;
        };
        drop(guard);
        commits.waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

impl Inner {
    fn current(&self) -> Arc<Published> {
        self.published.read().expect("no holder of the lock panics").clone()
    }

    /// Commits `own` and everything in the queue as one group. Returns the result of `own`.
    fn run(&self, sequencer: &mut Sequencer, own: Option<WriteSet>) -> Option<Result<Commit>> {
        let queue = std::mem::take(&mut *self.queue.lock().expect("no holder of the lock panics"));
        let mut group = sequencer.begin_group();
        let mut left = queue.len() + usize::from(own.is_some());
        let mut own_result = None;
        let mut tickets = Vec::with_capacity(left);
        let members = queue.into_iter().map(|(ws, ticket)| (ws, Some(ticket)));
        for (ws, ticket) in members.chain(own.map(|ws| (ws, None))) {
            left -= 1;
            match sequencer.accept(&mut group, ws, left > 0) {
                Ok(()) => tickets.push(ticket),
                Err(error) => leave(ticket, Err(error), &mut own_result),
            }
        }
        if group.is_empty() {
            return own_result;
        }
        let results: Vec<Commit> = group.accepted.iter().map(|a| a.commit).collect();
        let next = sequencer.apply(group);
        *self.published.write().expect("no holder of the lock panics") = next;
        for (ticket, commit) in tickets.into_iter().zip(results) {
            leave(ticket, Ok(commit), &mut own_result);
        }
        self.commits.announce();
        own_result
    }
}

/// Leaves a result on its ticket; without one it is the caller's own.
fn leave(ticket: Option<Arc<Ticket>>, result: Result<Commit>, own: &mut Option<Result<Commit>>) {
    match ticket {
        Some(ticket) => *ticket.result.lock().expect("no holder of the lock panics") = Some(result),
        None => *own = Some(result),
    }
}

impl Ticket {
    fn take(&self) -> Option<Result<Commit>> {
        self.result.lock().expect("no holder of the lock panics").take()
    }
}

impl Commits {
    fn announce(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().expect("no holder of the lock panics"));
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests;
