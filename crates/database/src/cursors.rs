//! Open cursors between `find` or `aggregate` and the `getMore`s that follow.
//!
//! A cursor is idle in the registry or checked out by the one operation that uses it. Killing an idle
//! cursor removes it; killing one that is in use stops its operation, which then does not put it back.
//! Idle cursors hold no snapshot, only positions and what blocking operators have collected.

use crate::lock;
use crate::observe::counters::Counter;
use crate::query_stats::Recording;
use crate::rights::Privilege;
use crate::session_id::Lsid;
use crate::traffic::limit::Limit;
use crate::users::UserName;
use nestor_exec::summary::memory;
use nestor_exec::{BoxOperator, KillSwitch, Row};
use nestor_model::random::Random;
use nestor_model::{Error, ErrorCode, Namespace, RawDocBuf, Result, bail};
use nestor_query::env::OpContext;
use nestor_storage::{CollectionId, Snapshot};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// An idle cursor lives that long (`cursorTimeoutMillis`).
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Most cursors open at one time; beyond it opening one fails.
pub const CURSORS_MAX: usize = 100_000;
/// Most bytes that idle cursors may hold together in blocking operators.
pub const IDLE_BYTES_MAX: usize = 1 << 30;

/// An open cursor.
pub struct ClientCursor {
    /// Its id, never 0.
    pub id: i64,
    /// Namespace that `getMore` has to name.
    pub ns: Namespace,
    /// The session that opened it; only that one may use it.
    pub lsid: Option<Lsid>,
    /// The transaction that opened it.
    pub txn_number: Option<i64>,
    /// The user who opened it, if rights are asked for; only that one may use it.
    pub user: Option<Arc<UserName>>,
    /// The rights that it was opened by: each batch needs them again.
    pub privileges: Arc<[Privilege]>,
    /// The limits for its query shape, which hold for each batch.
    pub limits: Vec<Arc<Limit>>,
    /// What the query has cost, if that is recorded.
    pub recording: Option<Recording>,
    /// The collection it reads; it dies when that is dropped or renamed.
    pub collection: Option<(CollectionId, Namespace)>,
    /// The running plan.
    pub root: BoxOperator,
    /// A row that did not fit into the last batch.
    pub pending: Option<Row>,
    /// Time, variables and randomness of the operation that opened it.
    pub op: OpContext,
    /// Read this state in every batch (read concern snapshot, blocking plans), not the newest.
    pub snapshot: Option<Snapshot>,
    /// Stays open at the end of the data.
    pub tailable: bool,
    /// Waits at the end of the data for a while.
    pub await_data: bool,
    /// Idle for ever.
    pub no_timeout: bool,
    /// Whether blocking operators may spill to disk.
    pub disk_use: bool,
    /// The command that opened it.
    pub originating: Arc<RawDocBuf>,
    /// When it was opened.
    pub created: Instant,
    /// When it was last used.
    pub last_used: Instant,
    /// Work time left of the `maxTimeMS` of the command that opened it.
    pub time_left: Option<Duration>,
    /// Rows returned so far.
    pub returned: u64,
    /// Batches returned so far.
    pub batches: u64,
}

enum Entry {
    Idle(Box<ClientCursor>),
    InUse(InUse),
}

/// The entry of a cursor while an operation has it.
struct InUse {
    /// As it was when the operation took it.
    cursor: CursorSummary,
    kill: Arc<KillSwitch>,
    killed: bool,
}

/// The part of a cursor that others may see.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct CursorSummary {
    pub id: i64,
    pub ns: Namespace,
    pub lsid: Option<Lsid>,
    pub user: Option<Arc<UserName>>,
    pub created: Instant,
    pub last_used: Instant,
    pub tailable: bool,
    pub await_data: bool,
    pub no_timeout: bool,
    pub returned: u64,
    pub batches: u64,
    pub originating: Arc<RawDocBuf>,
}

impl ClientCursor {
    fn summary(&self) -> CursorSummary {
        CursorSummary {
            id: self.id,
            ns: self.ns.clone(),
            lsid: self.lsid,
            user: self.user.clone(),
            created: self.created,
            last_used: self.last_used,
            tailable: self.tailable,
            await_data: self.await_data,
            no_timeout: self.no_timeout,
            returned: self.returned,
            batches: self.batches,
            originating: self.originating.clone(),
        }
    }
}

/// How long cursors lived: the names of the classes, and below how many seconds they end.
const LIFESPANS: [(&str, u64); 7] = [
    ("lessThan1Second", 1),
    ("lessThan5Seconds", 5),
    ("lessThan15Seconds", 15),
    ("lessThan30Seconds", 30),
    ("lessThan1Minute", 60),
    ("lessThan10Minutes", 600),
    ("greaterThanOrEqual10Minutes", u64::MAX),
];

/// Counts of cursors since the start.
#[derive(Debug, Default)]
pub struct CursorCounts {
    /// Those opened.
    pub opened: Counter,
    /// Cursors that were closed because they were idle for too long.
    pub timed_out: Counter,
    /// Cursors that returned more than one batch.
    pub more_than_one_batch: Counter,
    lifespans: [Counter; LIFESPANS.len()],
}

impl CursorCounts {
    fn count_end(&self, created: Instant) {
        let secs = created.elapsed().as_secs();
        let class = LIFESPANS.iter().position(|(_, below)| secs < *below);
        if let Some(count) = class.and_then(|class| self.lifespans.get(class)) {
            count.add(1);
        }
    }

    /// How many cursors lived how long, by the names of the classes.
    pub fn lifespans(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        LIFESPANS
            .iter()
            .zip(&self.lifespans)
            .map(|((name, _), count)| (*name, count.get()))
    }
}

/// The open cursors of a service.
#[derive(Default)]
pub struct Cursors {
    open: Mutex<HashMap<i64, Entry>>,
    ids: Random,
    /// Counts since the start.
    pub counts: CursorCounts,
    last_sweep: Mutex<Option<Instant>>,
    /// In milliseconds.
    idle_timeout: AtomicU64,
}

impl Cursors {
    /// A registry whose ids start from `seed`. Ids are spread over the whole range, so that a client cannot
    /// hit another's cursor by counting.
    pub fn new(seed: u64) -> Self {
        Self {
            ids: Random::new(seed),
            idle_timeout: AtomicU64::new(IDLE_TIMEOUT.as_millis() as u64),
            ..Self::default()
        }
    }

    /// Changes how long a cursor may be idle, [`IDLE_TIMEOUT`] at first (parameter `cursorTimeoutMillis`).
    pub fn set_idle_timeout(&self, timeout: Duration) {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.idle_timeout.store(millis, Ordering::Relaxed);
    }

    fn next_id(&self) -> i64 {
        // Positive, as drivers expect.
        (self.ids.next() >> 1).max(1) as i64
    }

    /// Registers an idle cursor and returns its id.
    pub fn open(&self, mut cursor: Box<ClientCursor>) -> Result<i64> {
        self.sweep();
        let mut open = lock(&self.open);
        if open.len() >= CURSORS_MAX {
            bail!(ExceededMemoryLimit, "too many open cursors: {}", open.len());
        }
        let mut id = self.next_id();
        while open.contains_key(&id) {
            id = self.next_id();
        }
        cursor.id = id;
        cursor.last_used = Instant::now();
        open.insert(id, Entry::Idle(cursor));
        self.counts.opened.add(1);
        Ok(id)
    }

    /// Takes a cursor for a `getMore` of that namespace, session and user. It stays listed as in use until
    /// [`Cursors::give_back`] or [`Cursors::close`].
    ///
    /// Errors: 43 unknown, 13 another namespace or another user, 50738 another session, 20 in use.
    pub fn take(
        &self,
        id: i64,
        ns: &Namespace,
        (lsid, txn_number): (Option<Lsid>, Option<i64>),
        user: Option<&UserName>,
        kill: &Arc<KillSwitch>,
    ) -> Result<Box<ClientCursor>> {
        let mut open = lock(&self.open);
        let not_found = || Error::new(ErrorCode::CursorNotFound, format!("cursor id {id} not found"));
        let entry = open.get_mut(&id).ok_or_else(not_found)?;
        let cursor = match entry {
            Entry::Idle(cursor) => cursor,
            Entry::InUse(_) => bail!(CursorInUse, "cursor id {id} is already in use"),
        };
        if cursor.ns != *ns {
            bail!(
                Unauthorized,
                "Requested getMore on namespace '{ns}', but cursor belongs to a different namespace {}",
                cursor.ns
            );
        }
        if cursor.user.as_deref() != user {
            bail!(Unauthorized, "cursor id {id} was not created by the authenticated user");
        }
        check_session(cursor, lsid, txn_number)?;
        let in_use = Entry::InUse(InUse {
            cursor: cursor.summary(),
            kill: kill.clone(),
            killed: false,
        });
        match std::mem::replace(entry, in_use) {
            Entry::Idle(cursor) => Ok(cursor),
            Entry::InUse(_) => Err(not_found()),
        }
    }

    /// Makes a taken cursor idle again, or drops it if it was killed meanwhile: then the error 237.
    pub fn give_back(&self, mut cursor: Box<ClientCursor>) -> Result<()> {
        let mut open = lock(&self.open);
        let id = cursor.id;
        match open.get_mut(&id) {
            Some(Entry::InUse(in_use)) if !in_use.killed => {
                self.count_batches(&in_use.cursor, cursor.batches);
                cursor.last_used = Instant::now();
                open.insert(id, Entry::Idle(cursor));
                Ok(())
            }
            _ => {
                open.remove(&id);
                self.counts.count_end(cursor.created);
                bail!(CursorKilled, "cursor id {id} was killed")
            }
        }
    }

    /// Goes on recording what the query of an idle cursor costs. One that is gone is recorded as it is.
    pub fn record(&self, id: i64, recording: Recording) {
        let mut open = lock(&self.open);
        match open.get_mut(&id) {
            Some(Entry::Idle(cursor)) => cursor.recording = Some(recording),
            _ => {
                drop(open);
                drop(recording);
            }
        }
    }

    /// Forgets a taken cursor: it is exhausted or failed.
    pub fn close(&self, cursor: &ClientCursor) {
        if let Some(Entry::InUse(in_use)) = lock(&self.open).remove(&cursor.id) {
            self.count_batches(&in_use.cursor, cursor.batches);
        }
        self.counts.count_end(cursor.created);
    }

    /// Counts a cursor that has returned its second batch just now.
    fn count_batches(&self, before: &CursorSummary, batches: u64) {
        if before.batches < 2 && batches >= 2 {
            self.counts.more_than_one_batch.add(1);
        }
    }

    /// Whether a cursor was opened by another user.
    pub fn is_of_another(&self, id: i64, user: Option<&UserName>) -> bool {
        match lock(&self.open).get(&id) {
            Some(Entry::Idle(cursor)) => cursor.user.as_deref() != user,
            Some(Entry::InUse(in_use)) => in_use.cursor.user.as_deref() != user,
            None => false,
        }
    }

    /// Kills a cursor of that namespace; `false` when there is none.
    pub fn kill(&self, id: i64, ns: Option<&Namespace>) -> bool {
        let mut open = lock(&self.open);
        let Some(entry) = open.get_mut(&id) else { return false };
        let owner = match entry {
            Entry::Idle(cursor) => &cursor.ns,
            Entry::InUse(in_use) => &in_use.cursor.ns,
        };
        if ns.is_some_and(|ns| ns != owner) {
            return false;
        }
        match entry {
            Entry::InUse(in_use) => {
                in_use.killed = true;
                in_use.kill.kill(ErrorCode::CursorKilled);
            }
            Entry::Idle(cursor) => {
                self.counts.count_end(cursor.created);
                open.remove(&id);
            }
        }
        true
    }

    /// Kills every cursor that `which` names by its session.
    pub fn kill_sessions(&self, which: impl Fn(&Lsid) -> bool) -> usize {
        let ids: Vec<i64> = lock(&self.open)
            .iter()
            .filter(|(_, entry)| match entry {
                Entry::Idle(cursor) => cursor.lsid.as_ref().is_some_and(&which),
                Entry::InUse(in_use) => in_use.cursor.lsid.as_ref().is_some_and(&which),
            })
            .map(|(id, _)| *id)
            .collect();
        ids.iter().filter(|id| self.kill(**id, None)).count()
    }

    /// Kills the cursors that a transaction opened.
    pub fn kill_transaction(&self, lsid: Lsid, txn_number: i64) {
        lock(&self.open).retain(|_, entry| match entry {
            Entry::Idle(cursor) => {
                let ends = cursor.lsid == Some(lsid) && cursor.txn_number == Some(txn_number);
                if ends {
                    self.counts.count_end(cursor.created);
                }
                !ends
            }
            Entry::InUse(_) => true,
        });
    }

    /// Drops cursors that were idle for too long. Called when cursors are opened and by the server's clock.
    pub fn sweep(&self) {
        let now = Instant::now();
        {
            let mut last = lock(&self.last_sweep);
            if last.is_some_and(|last| now.duration_since(last) < Duration::from_secs(4)) {
                return;
            }
            *last = Some(now);
        }
        let idle_timeout = Duration::from_millis(self.idle_timeout.load(Ordering::Relaxed));
        let mut open = lock(&self.open);
        let mut held = 0usize;
        open.retain(|_, entry| match entry {
            Entry::Idle(cursor) => {
                let own = memory(&*cursor.root);
                held = held.saturating_add(own);
                let stays = (cursor.no_timeout || now.duration_since(cursor.last_used) < idle_timeout)
                    && (held <= IDLE_BYTES_MAX || own == 0);
                if !stays {
                    self.counts.timed_out.add(1);
                    self.counts.count_end(cursor.created);
                }
                stays
            }
            Entry::InUse(_) => true,
        });
    }

    /// Closes the idle cursor that holds most in blocking operators, if that is more than `than` bytes. `false` when there is none, or
    /// when the cursors are in use just now: whoever asks may be the one who uses them.
    pub fn close_largest_idle(&self, than: usize) -> bool {
        let mut open = match self.open.try_lock() {
            Ok(open) => open,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let held = open.iter().filter_map(|(id, entry)| match entry {
            Entry::Idle(cursor) => Some((memory(&*cursor.root), *id)),
            Entry::InUse(_) => None,
        });
        let largest = held.max().filter(|(held, _)| *held > than);
        let closed = largest.and_then(|(_, id)| open.remove(&id));
        drop(open);
        if let Some(Entry::Idle(cursor)) = &closed {
            self.counts.count_end(cursor.created);
        }
        closed.is_some()
    }

    /// Number of open cursors, and of those that may be idle for ever, and of those in use.
    pub fn numbers(&self) -> (usize, usize, usize) {
        let open = lock(&self.open);
        let no_timeout = open
            .values()
            .filter(|entry| match entry {
                Entry::Idle(cursor) => cursor.no_timeout,
                Entry::InUse(in_use) => in_use.cursor.no_timeout,
            })
            .count();
        let in_use = open.values().filter(|entry| matches!(entry, Entry::InUse(_))).count();
        (open.len(), no_timeout, in_use)
    }

    /// The idle cursors.
    pub fn idle(&self) -> Vec<CursorSummary> {
        let open = lock(&self.open);
        open.values()
            .filter_map(|entry| match entry {
                Entry::Idle(cursor) => Some(cursor.summary()),
                Entry::InUse(_) => None,
            })
            .collect()
    }

    /// The command that opened an idle cursor.
    pub fn originating(&self, id: i64) -> Option<Arc<RawDocBuf>> {
        match lock(&self.open).get(&id) {
            Some(Entry::Idle(cursor)) => Some(cursor.originating.clone()),
            _ => None,
        }
    }

    /// The cursor that an operation has, by what kills the operation.
    pub fn used_by(&self, kill: &Arc<KillSwitch>) -> Option<CursorSummary> {
        let open = lock(&self.open);
        open.values().find_map(|entry| match entry {
            Entry::InUse(in_use) if Arc::ptr_eq(&in_use.kill, kill) => Some(in_use.cursor.clone()),
            _ => None,
        })
    }
}

fn check_session(cursor: &ClientCursor, lsid: Option<Lsid>, txn_number: Option<i64>) -> Result<()> {
    let id = cursor.id;
    match (cursor.lsid, lsid) {
        (a, b) if a == b => {}
        (None, Some(given)) => bail!(
            50736,
            "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
            given.id
        ),
        (Some(own), None) => bail!(
            50738,
            "Cannot run getMore on cursor {id}, which was created in session {}, without an lsid",
            own.id
        ),
        (Some(own), Some(given)) => bail!(
            50738,
            "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
            own.id,
            given.id
        ),
        (None, None) => {}
    }
    if cursor.txn_number != txn_number {
        bail!(
            50739,
            "Cannot run getMore on cursor {id}, which was created in another transaction"
        );
    }
    Ok(())
}
