//! How an engine behaves, and what it says about itself.

use crate::Lsn;
use crate::base::Base;
use crate::beside::{self, OpenFile};
use crate::clock::Clock;
use crate::encryption::MasterKey;
use crate::engine::MakeEntries;
use crate::journal::JournalOptions;
use nestor_model::Timestamp;
use std::sync::Arc;

/// How an engine behaves.
#[derive(Clone)]
pub struct EngineOptions {
    /// The wall clock: seconds since the Unix epoch.
    pub clock: Clock,
    /// Size in bytes at which a memtable is merged into the base.
    pub memtable_bytes_max: usize,
    /// Size in bytes to which journal segments are kept as the oplog. What recovery needs is kept in any case.
    pub oplog_bytes_max: u64,
    /// Size in bytes to which a store that lives in memory keeps its oplog.
    pub ephemeral_oplog_bytes_max: u64,
    /// Memory in bytes for leaf pages of the base.
    pub base_cache_bytes_max: usize,
    /// Opens a store whose journal ends with this commit although later ones were durable
    /// ([`StorageError::CommitsLost`](crate::StorageError::CommitsLost)): they are given up. It has to be that very number.
    pub give_up_after: Option<u64>,
    /// Recovers commits up to this time only, and gives up what comes after: for a copy of a directory.
    pub recover_until: Option<Timestamp>,
    /// The store is a member of a replica set with a log elsewhere: nothing is committed before
    /// [`Engine::begin_term`](crate::Engine::begin_term), and the base gets what that log has ([`Engine::note_committed`](crate::Engine::note_committed)).
    pub is_member: bool,
    /// Recovers commits up to this number only, and gives up what comes after: they are not in the log of the set.
    pub last_kept: Option<u64>,
    /// The master key of an encrypted store. A new directory is encrypted if there is one.
    pub master_key: Option<MasterKey>,
    /// Whether collections and indexes that say nothing about it are packed on disk.
    pub packs: bool,
    /// Called on a committing thread before it waits for long, so that a server can let another thread do what else this
    /// one has to do.
    pub before_wait: Option<fn()>,
    /// Called on a thread of a store that lives in memory after it gave much memory back to the allocator, so that whoever chose
    /// the allocator can have it return some to the system.
    pub after_reclaim: Option<fn()>,
    /// Makes the entries of indexes that the journal leaves out; without it a store that lacks some does not open.
    pub entries: Option<Arc<dyn MakeEntries>>,
    /// How files of what is derived are opened, and made, for tests.
    pub beside: OpenFile,
    pub(crate) journal: JournalOptions,
    /// Bytes of keys and values that a checkpoint gives to the base in one transaction.
    pub(crate) slice_bytes: usize,
    /// Another base than the tree in the directory, for tests.
    pub(crate) base: Option<Arc<dyn Base>>,
}

impl EngineOptions {
    /// The defaults, with that clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            memtable_bytes_max: 64 << 20,
            oplog_bytes_max: 512 << 20,
            ephemeral_oplog_bytes_max: 32 << 20,
            base_cache_bytes_max: 256 << 20,
            give_up_after: None,
            recover_until: None,
            is_member: false,
            last_kept: None,
            master_key: None,
            packs: true,
            before_wait: None,
            after_reclaim: None,
            entries: None,
            beside: beside::open_file(),
            journal: JournalOptions::new(),
            slice_bytes: 8 << 20,
            base: None,
        }
    }

    /// For tests: a clock that stands still at `secs`.
    pub fn at_time(secs: u32) -> Self {
        Self::new(Arc::new(move || secs))
    }
}

/// Room in bytes where data is kept, whoever takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Taken.
    pub used: u64,
    /// All there is.
    pub total: u64,
}

/// What snapshots that are held keep from being freed. It is bounded: a snapshot keeps two memtables at most, and of the base the
/// pages that it had itself, so no more than the base was then. In a store that lives in memory it keeps a version of each
/// key that it shows. The journal is kept by no snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pins {
    /// The last commit that the oldest of them shows; the last of all, if none is held.
    pub oldest: Lsn,
    /// The optime of `oldest`.
    pub oldest_optime: Timestamp,
    /// How many different states are held, without the present one.
    pub states: u64,
    /// Memory of memtables that are in the base already, or, in a store that lives in memory, of what was replaced or dropped; in
    /// bytes.
    pub memory_bytes: u64,
    /// Bytes of the base's file, when the last checkpoint began.
    pub base_bytes: u64,
}

/// Sizes and counters of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EngineStats {
    /// Memory taken by what is not in the base yet, in bytes, about.
    pub memtable_bytes: u64,
    /// Size of all journal segments.
    pub journal_bytes: u64,
    /// Size of the base's file.
    pub base_bytes: u64,
}
