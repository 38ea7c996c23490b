//! The storage engine: journal, memtable, base B-tree, snapshots, catalog, recovery.
//!
//! ```text
//! reading   Snapshot or WriteSet (both a View): get, cursor, catalog
//!             private overlay > active memtable > frozen memtable > base
//! writing   WriteSet -> Engine::commit -> conflict check, optime, journal, memtable, published
//! later     checkpoint: frozen memtable -> base; journal segments stay as the oplog
//! ```
//!
//! # The contract
//!
//! What the crates above use is a sealed set of types, and no trait: another engine stands behind the same types (why is in
//! `docs/decisions/0003-engine-contract.md`). Nothing of it names a file or assumes that there is one node.
//!
//! | part | types | what holds |
//! |---|---|---|
//! | snapshot | [`Snapshot`], [`View`] | shows all commits up to one and none after, for as long as it is held |
//! | the past | [`Engine::snapshot_at`], [`Engine::history`] | the snapshot of any time within a window, as far as the log and room for it reach |
//! | ordered cursor | [`Cursor`], [`RecordReader`] | [`Cursor::seek`] and [`Cursor::seek_back`], `first`, `last`, `next`, `prev`; keys order as byte strings; it keeps its state alive; at no entry after `false` or an error, and then stays there until it seeks |
//! | parts | [`View::blocks`], [`Blocks`] | names of parts that are the same in every snapshot that has them, and which keys of a snapshot are in none |
//! | write set | [`WriteSet`], [`Savepoint`] | a view of its own writes over a snapshot; nothing of it is seen before its commit |
//! | serializable | [`Engine::begin_serializable`] | its commit conflicts if a commit since its snapshot wrote what it read, absent keys and ranges too |
//! | conflicts | [`Engine::commit`], [`Engine::claim`], [`WriteSet::check_unchanged`], [`WriteSet::require_collection`], [`WriteSet::require_unwritten`] | the first writer of a key wins, the other gets [`StorageError::WriteConflict`] and has written nothing; keys of unique indexes are keys, so they are claimed in the same way |
//! | accepted | [`Commit`], [`Lsn`] | when `commit` returns every later snapshot shows it; numbers ascend without holes |
//! | durable, committed | [`Guarantee`]: [`Engine::has_reached`], [`Engine::wait_reached`], [`Engine::on_reached`] | survives a crash of this node; is never rolled back. Both come later than acceptance, in the order of commits |
//! | positions, members | [`Engine::positions`], [`Engine::topology`], [`Engine::members`] | the only source of terms, elections, members and optimes |
//! | member of a set | [`Engine::frames`], [`Engine::apply`], [`Engine::note_committed`], [`Engine::begin_term`], [`Engine::end_term`] | commits leave as frames and arrive as frames; the base never has what the log of the set does not have |
//! | catalog | [`Catalog`], [`Collection`], [`Index`], [`WriteSet::create_collection`] and so on | part of a snapshot, changed by commits only |
//! | log | [`LogReader`] through [`Engine::read_log`], [`LogSignal`], [`Engine::log_begins`], [`LogRetention`]; as documents [`OplogCursor`], [`Engine::oplog_range`] | changes of commits in order, each once, from any position that is kept; [`StorageError::OplogHistoryLost`] instead of a gap; waiting costs nothing. The contract is in [`log`] |
//! | news | [`Engine::subscribe`], [`Engine::wait_for_commit`] | of every accepted commit |
//! | watch and load | [`Watch`], [`Touched`], [`Engine::load`], [`MakeEntries`] | which records were written since a snapshot; sorted entries into a new tree, atomic with its catalog entry; the same entries again where only the commit came |
//! | backup | [`Engine::backup`], [`restore`] | a copy of all commits before the call, made while others go on; as of its end, or of a time before |
//! | what is derived | [`Engine::beside`], [`Engine::keep_names`] | files that may be gone at the next start, and names of parts that mean the same then |
//! | upkeep | [`Engine::checkpoint`], [`Engine::hold_base`], [`Engine::stats`], [`Engine::pins`], [`Engine::room`], [`Engine::scratch`], [`Engine::close`] | no effect on what snapshots show |
//!
//! [`keys`] and [`record`] are the encoding that any engine has to keep, since the crates above compute bounds with it.
//!
//! Only this crate knows how keys are encoded and how anything is laid out on disk. It does not know what a query, an
//! index key of a document or a command is: callers compute keys and values, the store keeps them.
//!
//! Reading order: [`ids`], [`bytes`], [`record`], [`keys`] (order-preserving keys), [`catalog`], [`snapshot`],
//! [`cursor`], [`blocks`], `record_reader`, [`write_set`], `read_set`, `recent`, `sequencer`, [`watch`], `memtable`, `journal`, [`base`], [`engine`], [`topology`], [`log`], [`oplog`], [`beside`],
//! [`check`], [`files`], [`fuzz`], `faults`, [`error`].

mod ahead;
pub mod base;
pub mod beside;
pub mod blocks;
pub mod bytes;
pub mod catalog;
pub mod check;
mod claims;
pub mod clock;
pub mod cursor;
pub mod encryption;
pub mod engine;
pub mod error;
mod faults;
pub mod files;
pub mod fuzz;
mod holds;
mod ids;
mod journal;
pub mod keys;
pub mod log;
mod memtable;
pub mod oplog;
mod read_set;
mod recent;
pub mod record;
mod record_reader;
pub mod scratch;
mod sequencer;
pub mod snapshot;
pub mod topology;
pub mod watch;
pub mod write_set;

pub use beside::Beside;
pub use blocks::{Block, Blocks};
pub use bytes::Bytes;
pub use catalog::{Catalog, Collection, Database, Derive, Index};
pub use claims::{Reservation, Waited};
pub use clock::Clock;
pub use cursor::Cursor;
pub use encryption::MasterKey;
pub use engine::{
    BLOCK_BYTES, Backup, BaseHold, Begun, BlockHash, CollectionDocuments, CommitFrame, Engine, EngineOptions,
    EngineStats, Filling, FrameReader, HistoryStats, MakeEntries, PastState, Pins, PutBlock, RestoreOptions, Restored,
    Room, Subscription, UPLOAD, block_hashes, hash_of_block, restore, time_of_frame,
};
pub use error::{Result, StorageError};
pub use ids::{CollectionId, IndexId, Lsn, TreeId};
pub use log::{LogPosition, LogReader, LogRetention, LogSignal, LogTruncation};
pub use oplog::OplogCursor;
pub use record_reader::RecordReader;
pub use scratch::{Scratch, ScratchFile};
pub use snapshot::{Snapshot, View};
pub use topology::{
    Configuration, Guarantee, MemberConfig, MemberState, OpTime, Positions, Steward, Topology, WantedTags,
};
pub use watch::{Touched, Watch};
pub use write_set::{Commit, Savepoint, WriteSet};
