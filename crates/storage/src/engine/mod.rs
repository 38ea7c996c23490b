//! The engine: opening, committing, snapshots, durability.
//!
//! - `directory`: the data directory, its lock and version.
//! - `recovery`: start-up from base and journal.
//! - `backup`: copies while commits go on, and directories made of them.
//! - `checkpoint`: the memtable goes into the base.
//! - `commits`: those who are told of commits.
//! - `reclaim`: a store that lives in memory frees what no snapshot reads any more.
//! - `history`: states of the past, by base and journal.
//! - `load`: sorted entries into a new tree, and the last commit of an index build.
//! - `fill`: the same again where the journal has such a commit and the base does not have the entries.
//! - `log`: how far readers of the log may read, and how much of it is kept.
//! - `reached`: how far commits have come, here and on other members.
//! - `member`: what a member of a replica set does with frames: it hands them out, applies them, and drops them.

mod backup;
mod changed;
mod checkpoint;
mod commits;
mod derived;
pub(crate) mod directory;
pub(crate) mod fill;
mod history;
mod load;
mod log;
mod member;
mod noting;
mod options;
mod reached;
mod reclaim;
pub(crate) mod recovery;

pub use backup::{
    BLOCK_BYTES, Backup, Hash as BlockHash, PutBlock, RestoreOptions, Restored, UPLOAD, block_hashes, hash_of_block,
    restore,
};
pub use commits::Subscription;
pub use fill::{Begun, Filling, MakeEntries};
pub use history::{HistoryStats, PastState};
pub use member::{CollectionDocuments, CommitFrame, FrameReader, time_of_frame};
pub use options::{EngineOptions, EngineStats, Pins, Room};

use crate::base::tree::{Tree, TreeOptions};
use crate::base::{Base, Change, check_change};
use crate::beside::Beside;
use crate::catalog::{Catalog, Collection};
use crate::claims::Reservation;
use crate::faults::{Fault, strikes};
use crate::journal::frame::Seal;
use crate::journal::recover::{self, Access, Known};
use crate::journal::{Frames, Journal, frame};
use crate::log::{self as log_of_commits, Followers, Log, MemoryLog, News};
use crate::memtable::Memtable;
use crate::oplog::OplogCursor;
use crate::scratch::Scratch;
use crate::sequencer::{Accepted, Group, Sequencer, Waste};
use crate::snapshot::{Layers, Published, Snapshot, View};
use crate::watch::Brakes;
use crate::write_set::{Commit, Ids, WriteSet};
use crate::{Bytes, Lsn, Result, StorageError, TreeId};
use changed::Changed;
use checkpoint::Checkpointer;
use commits::Commits;
use directory::Directory;
use fill::Beginnings;
use history::History;
use log::Retention;
use nestor_model::Timestamp;
use reached::Reached;
use reclaim::Reclaimer;
use recovery::Recovery;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A group whose frames have this many bytes takes about a millisecond.
const LONG_GROUP_BYTES: usize = 256 << 10;
/// How many memtables' bytes of journal a start may have to replay before a checkpoint is asked for.
const REPLAY_FACTOR: u64 = 2;

/// A store. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    _guard: Arc<Guard>,
}

pub(crate) struct Inner {
    options: EngineOptions,
    ids: Arc<Ids>,
    published: RwLock<Arc<Published>>,
    /// Commits waiting for their turn.
    queue: Mutex<Vec<(Prepared, Arc<Ticket>)>>,
    sequencer: Mutex<Sequencer>,
    commits: Commits,
    /// Slows down commits that outrun an index build which watches them.
    brakes: Arc<Brakes>,
    /// `None` for a store that lives in memory.
    store: Option<Store>,
    reached: Reached,
    pub(crate) log: Log,
    pub(crate) followers: Followers,
    retention: Retention,
    history: History,
    changed: Changed,
    checkpointer: Checkpointer,
    /// The versions to be freed, in a store that lives in memory.
    reclaimer: Reclaimer,
    /// The active memtable or what would have to be replayed is over its size, and a checkpoint was asked for.
    large: AtomicBool,
    /// The end of the journal when the last checkpoint began: a start replays from there.
    replay_from: AtomicU64,
    /// The group that has the sequencer is large: it takes milliseconds.
    long_group: AtomicBool,
    /// Set under the sequencer's lock. Whoever is about to change the store looks under that lock, or under the
    /// checkpointer's, which closing takes afterwards.
    closed: AtomicBool,
    /// A backup is being made.
    backup: AtomicBool,
    /// Trees of indexes of which the base has entries that no commit has, and the last commit that it had when it got them.
    filled: Mutex<BTreeMap<TreeId, u64>>,
    /// What was begun of indexes that are being built.
    beginnings: Mutex<Beginnings>,
    /// This member leaves entries out of the log: all members know how to make them.
    entries_left_out: AtomicBool,
}

/// The files of a store.
struct Store {
    base: Arc<dyn Base>,
    journal: Arc<Journal>,
    scratch: Scratch,
    beside: Beside,
}

/// A write set and its frame for the journal (empty if there is none).
pub(crate) struct Prepared {
    /// Boxed, because a commit moves it from hand to hand and it is large.
    pub(crate) ws: Box<WriteSet>,
    pub(crate) frame: Vec<u8>,
}

/// The work that a group leaves for when the sequencer is free again.
#[derive(Default)]
struct Done {
    own: Option<Result<Commit>>,
    lsn: Option<Lsn>,
    /// Kept only to be dropped outside of the lock.
    accepted: Vec<Accepted>,
    replaced: Option<Arc<Published>>,
    /// The versions that the commits left behind, in a store that lives in memory.
    waste: Waste,
    /// Readers of the log that wait for them.
    news: News,
}

/// Where the leader of a group leaves a commit's result.
#[derive(Default)]
struct Ticket {
    result: Mutex<Option<Result<Commit>>>,
}

/// Closes the engine when the last handle goes, and holds what belongs to the open directory.
struct Guard {
    inner: Arc<Inner>,
    running: Mutex<Option<Running>>,
}

struct Running {
    threads: Vec<JoinHandle<()>>,
    /// `None` for a store that lives in memory.
    _directory: Option<Directory>,
}

impl Engine {
    /// Opens the store in a directory, making it if there is none, and recovers what was committed. Indexes that were being
    /// built are dropped, unless the disk is full: then they are in the catalog as such.
    ///
    /// Errors: [`StorageError::NoDataDirectory`], [`StorageError::DirectoryInUse`], [`StorageError::Encryption`],
    /// [`StorageError::NewerFormat`], [`StorageError::Corrupt`], [`StorageError::CommitsLost`], [`StorageError::Io`].
    pub fn open(dir: &Path, options: EngineOptions) -> Result<Engine> {
        let mut options = options;
        let now_secs = u64::from((options.clock)());
        let mut directory = Directory::open(dir, options.master_key.as_ref(), now_secs)?;
        // The master key is needed no longer and is cleared.
        options.master_key = None;
        options.journal.seals = directory.seals().cloned();
        let scratch = match directory.seals() {
            Some(_) => Scratch::encrypted(dir.join("tmp")).map_err(|e| StorageError::io("open", dir, &e))?,
            None => Scratch::plain(dir.join("tmp")),
        };
        let tree = TreeOptions {
            cache_bytes_max: options.base_cache_bytes_max,
            ..TreeOptions::default()
        };
        let base = match &options.base {
            Some(base) => base.clone(),
            None => {
                directory.has_base()?;
                Arc::new(Tree::open_sealed(&directory.base(), tree, directory.seals())?)
            }
        };
        let snapshot = base.snapshot();
        let (mut state, meta) = Recovery::from_base(&snapshot, options.memtable_bytes_max)?;
        let known = Known {
            checkpoint: meta.map(|meta| meta.checkpoint),
            mark: directory.read_mark()?,
            mark_file: directory.mark(),
            give_up_after: options.give_up_after,
            until: options.recover_until,
            last_kept: options.last_kept,
        };
        if known.mark.mark().is_none() && directory.version() > 1 {
            tracing::warn!(path = %known.mark_file.display(), "whether durable commits are missing is not known");
        }
        let (path, journal) = (directory.journal(), options.journal.clone());
        let replay = |frame: &frame::Frame<'_>| state.replay(frame);
        let journal = recover::open(&path, journal, &known, Access::Write, replay)?;
        directory.upgrade()?;
        if state.memtable.newest() > 0 {
            tracing::info!(
                commits = state.seq - known.checkpoint.map_or(0, |checkpoint| checkpoint.seq),
                bytes = state.memtable.bytes(),
                "replayed the journal"
            );
        }
        let journal = Arc::new(journal);
        let beside = Beside::new(dir, directory.seals().cloned(), options.beside.clone());
        let store = Store {
            base,
            journal: journal.clone(),
            scratch,
            beside,
        };
        let unfilled = state.unfilled();
        let layers = Layers {
            active: Arc::new(state.memtable),
            frozen: None,
            base: Some(snapshot),
        };
        let first = Published {
            seq: state.seq,
            optime: state.optime,
            layers: Arc::new(layers),
            catalog: Arc::new(state.changes.catalog),
        };
        let inner = Arc::new(Inner::new(
            options,
            state.changes.ids,
            first,
            Some(store),
            Log::Journal(journal.clone()),
        ));
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .name(name.into())
                .spawn(work)
                .map_err(|e| StorageError::io("start a thread for", dir, &e))
        };
        *inner.filled() = state.filled;
        if let Some(meta) = meta {
            inner.checkpointer.set_needed(meta.checkpoint.position);
        }
        let worker = inner.clone();
        let threads = vec![
            spawn("journal-sync", Box::new(move || journal.syncer.run()))?,
            spawn("checkpoint", Box::new(move || worker.checkpointer.run(&worker)))?,
        ];
        let running = Running {
            threads,
            _directory: Some(directory),
        };
        let engine = Engine::with(inner, Some(running));
        for (collection, indexes) in unfilled {
            engine.make_entries(collection, &indexes)?;
        }
        if !engine.inner.reached.is_member() {
            engine.begin_writing()?;
        }
        Ok(engine)
    }

    /// A store that lives in memory and leaves no trace.
    pub fn ephemeral(options: EngineOptions) -> Engine {
        let layers = Layers {
            active: Arc::new(Memtable::lasting()),
            frozen: None,
            base: None,
        };
        let first = Published {
            seq: 0,
            optime: Timestamp::default(),
            layers: Arc::new(layers),
            catalog: Arc::new(Catalog::default()),
        };
        let log = Log::Memory(Arc::new(MemoryLog::new(options.ephemeral_oplog_bytes_max)));
        let inner = Inner::new(options, Arc::new(Ids::new(1)), first, None, log);
        let inner = Arc::new(inner);
        let worker = inner.clone();
        let reclaim = thread::Builder::new()
            .name("reclaim".into())
            .spawn(move || worker.reclaimer.run(&worker));
        let running = match reclaim {
            Ok(thread) => Some(Running {
                threads: vec![thread],
                _directory: None,
            }),
            Err(error) => {
                tracing::warn!(%error, "no thread for giving memory back");
                None
            }
        };
        Engine::with(inner, running)
    }

    fn with(inner: Arc<Inner>, running: Option<Running>) -> Engine {
        Engine {
            _guard: Arc::new(Guard {
                inner: inner.clone(),
                running: Mutex::new(running),
            }),
            inner,
        }
    }

    /// The present moment: all commits published so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.inner.current(),
        }
    }

    /// An empty write set on a fresh snapshot.
    pub fn begin(&self) -> WriteSet {
        self.begin_at(self.snapshot())
    }

    /// An empty write set on a given snapshot.
    pub fn begin_at(&self, snapshot: Snapshot) -> WriteSet {
        WriteSet::new(snapshot, self.inner.ids.clone())
    }

    /// As [`Engine::begin_at`], for a transaction of several statements: after each of them, [`Engine::claim`] reserves
    /// the keys it wrote until the write set is committed or dropped.
    pub fn begin_transaction(&self, snapshot: Snapshot) -> WriteSet {
        let mut ws = self.begin_at(snapshot);
        ws.claim = Some(self.inner.lock_sequencer().open_claim());
        ws
    }

    /// Memory in bytes that open transactions take, about.
    pub fn transaction_bytes(&self) -> usize {
        self.inner.lock_sequencer().claims().bytes()
    }

    /// Sets how much memory open transactions may take together; 0, which it is at first, for any amount.
    pub fn set_transaction_bytes_max(&self, bytes_max: usize) {
        self.inner.lock_sequencer().claims().set_bytes_max(bytes_max);
    }

    /// As [`Engine::begin_transaction`] at the present moment, for a transaction that is to be serializable: what is read through
    /// the write set is noted, and its commit conflicts if another one has written any of it meanwhile: keys that were
    /// looked up, there or not, and everything in the ranges that cursors passed. A transaction that writes nothing is at the place
    /// of its snapshot in the order of commits, and never conflicts. All transactions have to be serializable
    /// for their order to be serial; those that are not are ordered as they were.
    pub fn begin_serializable(&self) -> WriteSet {
        let mut ws = self.begin_noting();
        ws.claim = Some(self.inner.lock_sequencer().open_claim());
        ws
    }

    /// Reserves the keys that a transaction has written so far: from now on, others that write one of them get a write
    /// conflict, and the transaction's commit cannot conflict over them.
    ///
    /// Errors: [`StorageError::WriteConflict`]: another transaction has reserved one of them, or a commit after the
    /// transaction's snapshot wrote it.
    pub fn claim(&self, ws: &mut WriteSet) -> Result<()> {
        self.inner.lock_sequencer().claim(ws)?;
        if strikes(Fault::NewerSnapshot) {
            ws.snapshot = self.snapshot();
        }
        Ok(())
    }

    /// Whether another transaction than that of `ws` has reserved a key in a way that keeps this one from holding it, alone or in common. It may
    /// give it up, or reserve it, at any time.
    pub fn is_claimed(&self, ws: &WriteSet, key: (TreeId, &Bytes), alone: bool) -> bool {
        self.claimer(ws, key, alone).is_some()
    }

    fn claimer(&self, ws: &WriteSet, (tree, key): (TreeId, &Bytes), alone: bool) -> Option<Reservation> {
        let sequencer = self.inner.lock_sequencer();
        let key = std::iter::once((tree, key, alone));
        sequencer.claims().conflict(ws.claim.as_ref(), key)
    }

    /// Another transaction than that of `ws` that has written the key that `ws` could not put last ([`WriteSet::note_taken`]): it may have deleted
    /// it. Asked once for each such key.
    pub fn claimer_of_taken(&self, ws: &mut WriteSet) -> Option<Reservation> {
        let (tree, key) = ws.take_taken()?;
        self.claimer(ws, (tree, &key), true)
    }

    /// Tells of arrays that a transaction found since the last time ([`WriteSet::set_multikey`]), with a commit of its own, whatever
    /// becomes of the transaction: an index that is taken for multikey is right either way. So transactions that
    /// are the first to find an array, and others who write the collection meanwhile, are not in each other's way.
    ///
    /// Errors: [`StorageError::WriteConflict`]: an index or the collection is gone, or an open transaction has changed the catalog's
    /// entry; those of [`Engine::commit`].
    pub fn publish_multikey(&self, ws: &mut WriteSet) -> Result<()> {
        let found = std::mem::take(&mut ws.multikey);
        loop {
            let mut own = self.begin();
            for (id, index, multikey) in &found {
                // The one or the other is gone.
                own.set_multikey(*id, *index, multikey)
                    .map_err(|_| StorageError::WriteConflict)?;
            }
            match self.commit(own) {
                // Somebody else has changed the entry, which does not happen again and again.
                Err(StorageError::WriteConflict) => {}
                result => return result.map(|_| ()),
            }
        }
    }

    /// Commits a write set: all of it or, on error, nothing. When this returns, snapshots show it; it is durable once
    /// the engine says so of its [`Lsn`]. An empty write set commits at the present moment and leaves no trace.
    ///
    /// Errors: [`StorageError::WriteConflict`], [`StorageError::OutOfDiskSpace`],
    /// [`StorageError::ReadOnlyAfterFailure`], [`StorageError::Closed`], `TransactionTooLarge`.
    pub fn commit(&self, ws: WriteSet) -> Result<Commit> {
        let inner = &*self.inner;
        if ws.is_empty() {
            let state = inner.current();
            return Ok(Commit {
                optime: state.optime,
                lsn: Lsn(state.seq),
            });
        }
        inner.check_open()?;
        inner.reached.check_writable()?;
        let mut ws = Box::new(ws);
        if let Some(reads) = &mut ws.reads {
            // While others commit, so that little is left to check when they cannot.
            reads.check()?;
        }
        let prepared = inner.prepare(ws)?;
        inner.make_room(prepared.frame.len())?;
        inner.brakes.wait(&prepared.ws.trees);
        if let Ok(mut sequencer) = inner.sequencer.try_lock() {
            let done = inner.run(&mut sequencer, inner.queued(), Some(prepared));
            drop(sequencer);
            return inner.finish(done).unwrap_or(Err(StorageError::Closed));
        }
        let ticket = Arc::new(Ticket::default());
        let entry = (prepared, ticket.clone());
        inner.queue.lock().expect("no holder of the lock panics").push(entry);
        if inner.long_group.load(Ordering::Relaxed) {
            inner.before_wait();
        }
        let mut sequencer = inner.lock_sequencer();
        // The holder of the lock may have committed it meanwhile.
        if let Some(result) = ticket.take() {
            return result;
        }
        let done = inner.run(&mut sequencer, inner.queued(), None);
        drop(sequencer);
        inner.finish(done);
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
        self.inner.lock_sequencer().advance_clock(heard);
    }

    /// Reads oplog entries after `after`.
    pub fn oplog_cursor(&self, after: Timestamp) -> OplogCursor {
        OplogCursor::new(self.clone(), self.inner.log.clone(), after)
    }

    /// The optimes of the first and last oplog entry that are kept; `None` if there is none.
    pub fn oplog_range(&self) -> Result<Option<(Timestamp, Timestamp)>> {
        self.oplog_cursor(Timestamp::default()).range()
    }

    /// Documents and bytes that commits have counted in a collection; `None` if something was committed since what `view` shows, it
    /// shows changes of its own there, or notes what is read through it.
    pub fn counts_at(&self, view: &dyn View, collection: &Collection) -> Option<(i64, i64)> {
        let shown = view.lsn_of(collection.records).filter(|_| !view.notes_reads())?;
        // Counts change before the commit is shown, both under this lock.
        let _sequencer = self.inner.lock_sequencer();
        let state = &collection.state;
        (self.last_lsn() == shown).then(|| (state.documents(), state.bytes()))
    }

    /// Waits until something is committed after `seen` or until the deadline. True if something was.
    pub fn wait_for_commit(&self, seen: Lsn, deadline: Instant) -> bool {
        self.inner.commits.wait(deadline, || self.last_lsn() > seen)
    }

    /// Calls `notify` after every commit (or group of them) until the subscription is dropped. It runs on the thread
    /// that commits: it should only pass the news on. Of several threads the news may arrive out of order.
    pub fn subscribe(&self, notify: impl Fn(Lsn) + Send + Sync + 'static) -> Subscription {
        self.inner.commits.subscribe(Arc::new(notify))
    }

    /// Merges everything committed so far into the base, and returns when that is durable.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint(Inner::check_open)
    }

    /// Keeps the base as it is: until the hold is dropped or the store closes, no checkpoint and no [`Engine::load`] changes it, and
    /// no segment of the journal is removed. Waits for one that runs. Commits go on, into the journal.
    pub fn hold_base(&self) -> BaseHold {
        self.inner.checkpointer.hold();
        if let Some(store) = &self.inner.store {
            store.journal.syncer.mark().hold();
        }
        BaseHold(self.inner.clone())
    }

    /// Closes the store: a checkpoint, so that the next start has nothing to replay, and no commits any more. Reading
    /// from snapshots goes on. Dropping the last handle does the same and ignores errors.
    pub fn close(&self) -> Result<()> {
        self._guard.close()
    }

    /// Where it is on disk; `None` for a store that lives in memory.
    /// The data directory; `None` for a store that lives in memory.
    pub fn directory(&self) -> Option<&Path> {
        self.inner.store.as_ref()?.journal.dir().parent()
    }

    /// Whether the store lives in memory.
    pub fn is_ephemeral(&self) -> bool {
        self.inner.store.is_none()
    }

    /// A local directory for temporary files of those who use this store. It need not exist.
    pub fn scratch(&self) -> Scratch {
        let store = self.inner.store.as_ref();
        store.map_or_else(|| Scratch::plain(std::env::temp_dir()), |store| store.scratch.clone())
    }

    /// Room where the data is; `None` for a store that lives in memory, or where nobody knows.
    pub fn room(&self) -> Option<Room> {
        let stat = rustix::fs::statvfs(self.directory()?).ok()?;
        let total = stat.f_blocks.saturating_mul(stat.f_frsize);
        let free = stat.f_bfree.saturating_mul(stat.f_frsize);
        Some(Room {
            used: total.saturating_sub(free),
            total,
        })
    }

    /// Sizes and counters.
    pub fn stats(&self) -> EngineStats {
        let layers = &self.inner.current().layers;
        let store = self.inner.store.as_ref();
        EngineStats {
            memtable_bytes: layers.memtables().map(|m| m.bytes() as u64).sum(),
            journal_bytes: store.map_or(0, |s| s.journal.bytes()),
            base_bytes: store.map_or(0, |s| s.base.file_bytes()),
        }
    }

    /// The memory and pages that held snapshots keep from being freed.
    pub fn pins(&self) -> Pins {
        let inner = &self.inner;
        let (states, oldest) = inner.lock_sequencer().held();
        let oldest = oldest.unwrap_or_else(|| inner.current());
        let store = inner.store.as_ref();
        Pins {
            oldest: Lsn(oldest.seq),
            oldest_optime: oldest.optime,
            states,
            memory_bytes: inner.checkpointer.buried_bytes() + inner.reclaimer.held_bytes(inner),
            base_bytes: store.map_or(0, |store| store.base.held_bytes()),
        }
    }

    /// For tests: stops as a crash would, without a checkpoint. What was appended to the journal stays.
    #[cfg(test)]
    pub(crate) fn crash(self) {
        self.abandon();
    }
}

/// See [`Engine::hold_base`].
pub struct BaseHold(Arc<Inner>);

impl Drop for BaseHold {
    fn drop(&mut self) {
        self.0.checkpointer.release();
        if let Some(store) = &self.0.store {
            store.journal.syncer.mark().release();
        }
    }
}

impl std::fmt::Debug for BaseHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BaseHold")
    }
}

impl Inner {
    fn new(options: EngineOptions, ids: Arc<Ids>, first: Published, store: Option<Store>, log: Log) -> Self {
        let first = Arc::new(first);
        let is_member = options.is_member;
        let log_bytes_max = match &log {
            Log::Journal(_) => options.oplog_bytes_max,
            Log::Memory(_) => options.ephemeral_oplog_bytes_max,
        };
        Self {
            sequencer: Mutex::new(Sequencer::new(options.clock.clone(), first.clone(), store.is_none())),
            options,
            ids,
            published: RwLock::new(first),
            queue: Mutex::default(),
            commits: Commits::default(),
            brakes: Arc::default(),
            store,
            log,
            followers: Followers::default(),
            retention: Retention::new(log_bytes_max),
            history: History::default(),
            changed: Changed::default(),
            checkpointer: Checkpointer::default(),
            reclaimer: Reclaimer::default(),
            reached: Reached::new(is_member),
            large: AtomicBool::new(false),
            replay_from: AtomicU64::new(0),
            long_group: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            backup: AtomicBool::new(false),
            filled: Mutex::default(),
            beginnings: Mutex::default(),
            entries_left_out: AtomicBool::new(false),
        }
    }

    fn current(&self) -> Arc<Published> {
        self.published.read().expect("no holder of the lock panics").clone()
    }

    fn filled(&self) -> MutexGuard<'_, BTreeMap<TreeId, u64>> {
        self.filled.lock().expect("no holder of the lock panics")
    }

    fn lock_sequencer(&self) -> MutexGuard<'_, Sequencer> {
        self.sequencer.lock().expect("no holder of the lock panics")
    }

    /// Shows the sequencer's state to new snapshots. Returns what they saw before.
    ///
    /// The sequencer is what only the holder of its lock has. A state that was made under the lock and handed in here later could
    /// take back a commit that came in between.
    fn publish(&self, sequencer: &Sequencer) -> Arc<Published> {
        let next = sequencer.current().clone();
        let mut published = self.published.write().expect("no holder of the lock panics");
        debug_assert!(published.seq <= next.seq, "what was shown once is never taken back");
        std::mem::replace(&mut *published, next)
    }

    /// Changes the layers below the active memtable and shows that.
    fn change_layers(&self, change: impl FnOnce(&mut Sequencer)) {
        let mut sequencer = self.lock_sequencer();
        change(&mut sequencer);
        let replaced = self.publish(&sequencer);
        // Parts that only the old state held are taken apart while others commit.
        drop(sequencer);
        drop(replaced);
    }

    /// Asks for a checkpoint when the memtable is large, and slows a commit of `commit_bytes` down when that does not keep
    /// up. Also when the journal grew by much more: a memtable keeps one version of a document that is changed again and
    /// again, the journal all of them.
    fn make_room(&self, commit_bytes: usize) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let bytes_max = self.options.memtable_bytes_max;
        loop {
            let state = self.current();
            let bytes = state.layers.active.bytes();
            if bytes < bytes_max {
                let replay = store.journal.appended() - self.replay_from.load(Ordering::Relaxed);
                if replay > REPLAY_FACTOR * bytes_max as u64 && !self.large.swap(true, Ordering::AcqRel) {
                    self.checkpointer.request();
                }
                return Ok(());
            }
            if !self.large.swap(true, Ordering::AcqRel) {
                self.checkpointer.request();
            }
            drop(state);
            let before = || self.before_wait();
            let is_full = self.checkpointer.hold_back(bytes, bytes_max, commit_bytes, before)?;
            if !is_full {
                return Ok(());
            }
            self.check_open()?;
        }
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(StorageError::Closed),
            false => Ok(()),
        }
    }

    fn before_wait(&self) {
        if let Some(before_wait) = self.options.before_wait {
            before_wait();
        }
    }

    /// A write set with its frame for the journal.
    fn prepare(&self, mut ws: Box<WriteSet>) -> Result<Prepared> {
        // What the base cannot store must not be accepted: no checkpoint would succeed any more.
        for (key, value) in ws.kept_trees().flat_map(|(_, overlay)| overlay) {
            let value = value.as_deref();
            check_change(&Change { key, value })?;
        }
        let frame = match &self.store {
            Some(_) => frame::prepare(&ws, self.options.journal.seals.is_some())?,
            None => frame::prepare_log(&ws)?,
        };
        ws.forget_logged();
        Ok(Prepared { ws, frame })
    }

    /// Takes the commits that wait.
    fn queued(&self) -> Vec<(Prepared, Arc<Ticket>)> {
        std::mem::take(&mut *self.queue.lock().expect("no holder of the lock panics"))
    }

    /// Commits everything in the queue and `own` as one group. What is left to do goes to [`Inner::finish`], without the
    /// lock.
    fn run(&self, sequencer: &mut Sequencer, queue: Vec<(Prepared, Arc<Ticket>)>, own: Option<Prepared>) -> Done {
        let members = queue.iter().map(|(prepared, _)| prepared).chain(&own);
        let is_long = members.map(|prepared| prepared.frame.len()).sum::<usize>() >= LONG_GROUP_BYTES;
        self.long_group.store(is_long, Ordering::Relaxed);
        let done = self.run_group(sequencer, queue, own);
        self.long_group.store(false, Ordering::Relaxed);
        done
    }

    fn run_group(&self, sequencer: &mut Sequencer, queue: Vec<(Prepared, Arc<Ticket>)>, own: Option<Prepared>) -> Done {
        let mut group = sequencer.begin_group();
        let mut left = queue.len() + usize::from(own.is_some());
        let mut done = Done::default();
        let mut tickets = Vec::with_capacity(left);
        let members = queue.into_iter().map(|(prepared, ticket)| (prepared, Some(ticket)));
        for (prepared, ticket) in members.chain(own.map(|prepared| (prepared, None))) {
            left -= 1;
            // The engine may have been closed while the commit waited.
            let accepted = self
                .check_open()
                .and_then(|()| self.reached.check_writable())
                .and_then(|()| sequencer.accept(&mut group, prepared, left > 0));
            match accepted {
                Ok(()) => tickets.push(ticket),
                Err(error) => leave(ticket, Err(error), &mut done.own),
            }
        }
        if group.accepted.is_empty() {
            return done;
        }
        if let Err(error) = self.log(sequencer, &mut group) {
            for ticket in tickets {
                leave(ticket, Err(error.clone()), &mut done.own);
            }
            return done;
        }
        done.news = self.followers.note(&group.accepted);
        let (accepted, waste) = sequencer.apply(group);
        done.waste = waste;
        done.lsn = Some(Lsn(sequencer.current().seq));
        done.replaced = Some(self.publish(sequencer));
        for (ticket, commit) in tickets.into_iter().zip(&accepted) {
            leave(ticket, Ok(commit.commit), &mut done.own);
        }
        done.accepted = accepted;
        done
    }

    /// Tells of a group's commits and drops what they leave behind. Returns the result of its own commit, if there is
    /// one.
    fn finish(&self, done: Done) -> Option<Result<Commit>> {
        let Done {
            own,
            lsn,
            accepted,
            replaced,
            waste,
            news,
        } = done;
        if let Some(lsn) = lsn {
            self.commits.announce(lsn);
            if !news.is_empty() {
                log_of_commits::spread(self, news, lsn.0);
            }
        }
        // These refer to states that still need what the commits left behind.
        drop((accepted, replaced));
        if !waste.is_empty() {
            self.reclaimer.add(waste);
        }
        if self.store.is_none() && self.current().layers.active.is_filter_full() {
            self.reclaimer.look();
        }
        own
    }

    /// Writes a group to the journal, or to the log in memory.
    fn log(&self, sequencer: &Sequencer, group: &mut Group) -> Result<()> {
        let term = self.reached.term();
        let journal = match &self.log {
            Log::Journal(journal) => journal,
            Log::Memory(memory) => {
                for accepted in &mut group.accepted {
                    let (seq, first, last) = (accepted.seq, accepted.first, accepted.commit.optime);
                    let Prepared { ws, frame } = &mut accepted.prepared;
                    let seal = Seal {
                        seq,
                        first,
                        last,
                        durable: seq,
                        previous: 0,
                        term,
                    };
                    if !frame.is_empty() {
                        frame::fill_in(frame, ws, seal);
                        memory.push(seq, last, std::mem::take(frame));
                    }
                }
                return Ok(());
            }
        };
        // What was durable here says nothing about other members, which have the same frames.
        let durable = match self.reached.is_member() {
            true => 0,
            false => journal.syncer.durable(),
        };
        let seals = journal.seals().map(|seals| &**seals);
        let first_seq = group.accepted.first().map_or(0, |a| a.seq);
        let (mut last_seq, mut last_optime, mut last_at) = (first_seq, Timestamp::default(), 0);
        let mut previous = journal.last().map_or(0, |last| last.checksum);
        let mut len = 0;
        for accepted in &mut group.accepted {
            let Prepared { ws, frame } = &mut accepted.prepared;
            (last_seq, last_optime, last_at) = (accepted.seq, accepted.commit.optime, len);
            len += frame.len();
            let seal = Seal {
                seq: last_seq,
                first: accepted.first,
                last: last_optime,
                durable,
                previous,
                term,
            };
            previous = frame::seal(frame, ws, seal, seals);
        }
        let joined: Vec<u8>;
        let frames = match group.accepted.as_slice() {
            [one] => &one.prepared.frame,
            many => {
                let frames: Vec<&[u8]> = many.iter().map(|a| a.prepared.frame.as_slice()).collect();
                joined = frames.concat();
                &joined
            }
        };
        let before = sequencer.current().optime;
        journal.append(&Frames {
            bytes: frames,
            last_at,
            seqs: (first_seq, last_seq),
            before,
            optime: last_optime,
        })
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

impl Guard {
    fn close(&self) -> Result<()> {
        let Some(running) = self.running.lock().expect("no holder of the lock panics").take() else {
            return Ok(());
        };
        let inner = &self.inner;
        let sequencer = inner.lock_sequencer();
        inner.closed.store(true, Ordering::Release);
        drop(sequencer);
        inner.end_beginnings();
        inner.checkpointer.end_holds();
        inner.reached.end();
        let result = inner.checkpoint(|_| Ok(()));
        inner.checkpointer.stop();
        inner.reclaimer.stop();
        if let Some(store) = &inner.store {
            store.journal.syncer.stop();
        }
        for thread in running.threads {
            // A callback may have dropped the last handle: a thread does not wait for itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
        if let Some(store) = &inner.store {
            store.journal.trim();
            store.journal.syncer.note_closed();
        }
        match result {
            // The journal has everything: nothing is lost, the next start only has more to replay.
            Err(error @ StorageError::OutOfDiskSpace { .. }) => {
                tracing::warn!(%error, "no room for the checkpoint at closing; the next start replays the journal");
                Ok(())
            }
            // The log of the set does not have all of it.
            Err(StorageError::Closed) if inner.reached.is_member() => Ok(()),
            result => result,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the checkpoint at closing failed; the next start replays the journal");
        }
    }
}

#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod fill_tests;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod member_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod power_tests;
#[cfg(test)]
pub(crate) mod recovery_tests;
#[cfg(test)]
mod tests;
