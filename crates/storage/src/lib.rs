//! The storage engine: journal, memtable, base B-tree, snapshots, catalog, recovery.
//!
//! ```text
//! reading   Snapshot or WriteSet (both a View): get, cursor, catalog
//!             private overlay > active memtable > frozen memtable > base
//! writing   WriteSet -> Engine::commit -> conflict check, optime, journal, memtable, published
//! later     checkpoint: frozen memtable -> base; journal segments stay as the oplog
//! ```
//!
//! Only this crate knows how keys are encoded and how anything is laid out on disk. It does not know what a query, an
//! index key of a document or a command is: callers compute keys and values, the store keeps them.
//!
//! Reading order: [`ids`], [`bytes`], [`record`], [`keys`] (order-preserving keys), [`catalog`], [`snapshot`],
//! [`cursor`], `record_reader`, [`write_set`], `sequencer`, [`watch`], `memtable`, `journal`, [`base`], [`engine`], [`oplog`],
//! [`check`], [`files`], [`error`].

pub mod base;
pub mod bytes;
pub mod catalog;
pub mod check;
mod claims;
pub mod clock;
pub mod cursor;
pub mod engine;
pub mod error;
pub mod files;
pub mod ids;
mod journal;
pub mod keys;
mod memtable;
pub mod oplog;
pub mod record;
mod record_reader;
mod sequencer;
pub mod snapshot;
pub mod watch;
pub mod write_set;

pub use bytes::Bytes;
pub use catalog::{Catalog, Collection, Database, Derive, Index};
pub use cursor::Cursor;
pub use engine::{BaseHold, Engine, EngineOptions, EngineStats, Subscription};
pub use error::{Result, StorageError};
pub use ids::{CollectionId, IndexId, Lsn, TreeId};
pub use oplog::OplogCursor;
pub use record_reader::RecordReader;
pub use snapshot::{Snapshot, View};
pub use watch::{Touched, Watch};
pub use write_set::{Commit, Savepoint, WriteSet};
