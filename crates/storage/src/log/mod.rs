//! The log: what commits did, in their order, for who follows the data.
//!
//! ```text
//! Engine::read_log(after, Interest) -> LogReader
//!     LogReader::next     Change | Passed (looked at some, wanted none: look at the interrupt) | End (for now)
//!     LogReader::signal   LogSignal: wakes whoever waits at the end
//! ```
//!
//! # The contract
//!
//! - **Order.** A reader gives the changes of commits in the order of the commits, each once, and no part of a commit that is not
//!   accepted. With [`Upto::Committed`] it gives a change only when its commit is never rolled back (on a node alone: when it is
//!   on disk), which is what change streams promise; [`Upto::Accepted`] is what snapshots show.
//! - **Position.** Each change has a [`LogPosition`], greater than that of the one before: the commit's time and, within a transaction,
//!   the number of the operation. It is the same for every reader and after every restart, and a reader that is opened with it gives
//!   what follows. [`LogReader::position`] also moves on over what the reader did not want, so it is what a client that saw
//!   nothing for an hour resumes from.
//! - **Transactions.** All operations of a transaction have its commit's time, whether they stand in one `applyOps` entry or in a
//!   chain of several; the reader takes them out of there one by one. Other `applyOps` entries do not exist: the command logs what
//!   it did.
//! - **What is wanted** ([`Interest`]): the kinds of change and the namespace are compared on the bytes of an entry, before
//!   anything is decoded or copied. What else a stream filters by is its own business.
//! - **Waiting.** At the end a reader is known to the engine, and commits that concern its namespaces mark it; others cost it
//!   nothing, not even reading: [`LogReader::next`] then says [`LogStep::End`] without looking at the log. A thousand readers that wait cost a
//!   commit two hash lookups. [`LogSignal::news`] is a future, [`LogSignal::wait`] the same for a thread,
//!   [`LogSignal::on_news`] a callback; one of them at a time, the last one counts. Somebody who waits for [`Upto::Committed`] makes
//!   the journal sync at once.
//! - **History.** What is kept is bounded by size, unless it is younger than a minimum age ([`LogRetention`], settable while the
//!   store is open); a store that lives in memory keeps its log there, within the same kind of bound. Behind what is kept a reader
//!   gets [`StorageError::OplogHistoryLost`](crate::StorageError::OplogHistoryLost), at once and not a gap; [`Engine::log_begins`](crate::Engine::log_begins)
//!   says from where on all is there.
//! - **Memory.** A reader holds 64 KiB, or one entry if that is longer, of a frame; and between two batches, after
//!   [`LogReader::rest`] or at the end, nothing: no file of the journal either, so that a stream that nobody reads keeps nothing alive.
//! - **Images.** A commit may keep documents as they were before its changes ([`WriteSet::oplog_with`](crate::WriteSet::oplog_with)). They
//!   stand in its frame beside the oplog entries, so they are there after a crash exactly when the change is, and go with it.
//!   `local.oplog.rs` does not show them. Readers get them if they ask ([`Interest::with_images`]).

mod follow;
mod frames;
mod head;
mod memory;
mod reader;

pub use follow::LogSignal;
pub use head::{ChangeKind, Kinds};
pub use reader::LogReader;

pub(crate) use follow::{Follower, Followers, News, spread};
pub(crate) use frames::{Found, Frames, Log};
pub(crate) use memory::MemoryLog;

use nestor_model::{Namespace, RawDocBuf, Timestamp};
use std::time::Duration;

/// A place in the log: behind the change that it is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LogPosition {
    /// Time of the commit: `clusterTime`.
    pub optime: Timestamp,
    /// Which of a transaction's operations, from 0 on; 0 for a change outside of transactions; [`LogPosition::LAST`] for the place
    /// behind everything of that time.
    pub index: u32,
}

impl LogPosition {
    /// See [`LogPosition::index`].
    pub const LAST: u32 = u32::MAX;

    /// Behind everything of that time.
    pub fn after(optime: Timestamp) -> Self {
        let index = Self::LAST;
        Self { optime, index }
    }

    /// Before everything of that time.
    pub fn before(optime: Timestamp) -> Self {
        Self::after(Timestamp::from_u64(optime.to_u64().saturating_sub(1)))
    }

    /// The place from which a reader's first change is the one at `self`, if that is in the log.
    pub fn just_before(self) -> Self {
        match self.index.checked_sub(1) {
            Some(index) if self.index != Self::LAST => Self { index, ..self },
            _ => Self::before(self.optime),
        }
    }
}

/// Which commits a reader of the log sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upto {
    /// The commits that snapshots show.
    Accepted,
    /// The commits that are never rolled back.
    Committed,
}

/// Whose changes a reader of the log wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everybody's.
    Everything,
    /// The changes of a database's collections.
    Database(String),
    /// Changes of one collection, by its name, and all commands of its database: the name of a collection stands where it could not be
    /// compared without decoding, so readers ignore drops, renames and so on of other collections.
    Collection(Namespace),
}

/// The interest of a reader of the log.
#[derive(Clone, Debug)]
pub struct Interest {
    pub(crate) scope: Scope,
    pub(crate) kinds: Kinds,
    pub(crate) images: bool,
    pub(crate) upto: Upto,
}

impl Interest {
    /// Changes of these kinds in this scope. A command that renames a collection into the scope belongs to it.
    pub fn new(scope: Scope, kinds: Kinds, upto: Upto) -> Self {
        Self {
            scope,
            kinds,
            images: false,
            upto,
        }
    }

    /// Also documents as they were before changes, where commits kept them.
    #[must_use]
    pub fn with_images(mut self) -> Self {
        self.images = true;
        self
    }
}

/// One change of one document, or one command.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Where it is in the log.
    pub position: LogPosition,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The oplog entry, `{op, ns, ui, o, o2, ts, ...}`; of a transaction the operation, `{op, ns, ui, o, o2}`.
    pub operation: RawDocBuf,
    /// When it was made, in milliseconds since the epoch (`wall`); 0 if the entry does not say.
    pub wall_ms: i64,
    /// The transaction that it is of.
    pub transaction: Option<TransactionId>,
    /// The document before the change, if the reader wants it and it was kept. Whether it is too old to be shown
    /// (`expireAfterSeconds`) is for who knows the time; [`Change::wall_ms`] says when it was made.
    pub before: Option<RawDocBuf>,
}

/// Which transaction of which session.
#[derive(Clone, PartialEq, Debug)]
pub struct TransactionId {
    /// `lsid`, as the oplog has it.
    pub lsid: RawDocBuf,
    /// `txnNumber`.
    pub number: i64,
}

/// The result of [`LogReader::next`].
#[derive(Clone, PartialEq, Debug)]
pub enum LogStep {
    /// A change that is wanted.
    Change(Box<Change>),
    /// A good deal of the log and nothing wanted; there is more. About a millisecond went by.
    Passed,
    /// The end, for now.
    End,
}

/// How long the log is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogRetention {
    /// Size in bytes up to which all is kept. Older commits go a segment (32 MiB) at a time, and on disk not before a checkpoint
    /// has them.
    pub bytes_max: u64,
    /// Younger entries are kept whatever the size. Not in a store that lives in memory.
    pub age_min: Duration,
}

/// The entries removed from the log because they need not be kept any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogTruncation {
    /// How many pieces: segments of the journal, or commits of a store that lives in memory.
    pub removed: u64,
    /// The time that it took, in microseconds; 0 in a store that lives in memory, where it is part of each commit.
    pub micros: u64,
}

#[cfg(test)]
mod tests;
