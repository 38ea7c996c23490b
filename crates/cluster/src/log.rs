//! What the log of a replica set must do.

use crate::Result;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A commit in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Number of the commit. Those of neighbours follow each other.
    pub seq: u64,
    /// Its frame, as journals have it.
    pub frame: Vec<u8>,
}

/// How often a record was replaced; the first version is 1.
pub type Version = u64;

/// The log of one replica set. Calls block; none may be made on a thread that serves others.
pub trait Log: Send + Sync {
    /// Opens the log for writing and shuts all other writers out. The epoch is durable when this returns.
    fn open_writer(&self) -> Result<Box<dyn Writer>>;

    /// Opens the log for reading; any number of readers may.
    fn open_reader(&self) -> Result<Box<dyn Reader>>;

    /// Finds out whether the store creates an object only if it is not there, on which everything rests. `member` names whoever asks: two that ask
    /// at the same time use different objects.
    ///
    /// Errors: [`LogError::Address`](crate::LogError::Address) if it does not.
    fn verify(&self, member: &str) -> Result<()>;

    /// The newest version of a small record, for whoever looks for what others said.
    fn record(&self, name: &str) -> Result<Option<(Version, Vec<u8>)>>;

    /// Writes version `expected + 1` of a record, if `expected` is the newest one (0 for none). False, and nothing happened, if it is
    /// not. After [`LogError::Unavailable`](crate::LogError::Unavailable) it may have happened.
    fn replace_record(&self, name: &str, expected: Version, contents: &[u8]) -> Result<bool>;

    /// Says something about a member that only the member itself says; the last word holds.
    fn announce(&self, member: &str, contents: &[u8]) -> Result<()>;

    /// What members said last, by name.
    fn announcements(&self) -> Result<Vec<(String, Vec<u8>)>>;

    /// Copies a file to the store, of a checkpoint for instance. Names have `/` between folders.
    fn upload(&self, name: &str, from: &Path) -> Result<()>;

    /// Copies a file of the store to `to`, which must not exist.
    fn download(&self, name: &str, to: &Path) -> Result<()>;

    /// Writes a file of the store that is in memory, in one request.
    fn put(&self, name: &str, contents: &[u8]) -> Result<()>;

    /// A file of the store, which must be there.
    fn contents(&self, name: &str) -> Result<Vec<u8>>;

    /// A part of a file of the store, in one request. Shorter where the file ends.
    fn get(&self, name: &str, part: Range<u64>) -> Result<Vec<u8>>;

    /// Removes a file of the store, if it is there.
    fn remove(&self, name: &str) -> Result<()>;

    /// Names of the files below a folder and those below it, in order.
    fn files(&self, folder: &str) -> Result<Vec<String>>;

    /// Where it is, as whoever opened it said.
    fn address(&self) -> &str;

    /// The log at another address, of whose files this one's refer to some.
    fn elsewhere(&self, address: &str) -> Result<Arc<dyn Log>>;
}

/// The only writer of a log, until another one is opened.
pub trait Writer: Send {
    /// Greater than that of all writers before. One-to-one with calls of [`Log::open_writer`].
    fn epoch(&self) -> u64;

    /// The number of the last entry; 0 for an empty log.
    fn last(&mut self) -> Result<u64>;

    /// Appends entries, of which the first has the number after [`Writer::last`] (any number in an empty log) or repeats what was sent before with an unknown
    /// outcome. When this returns they are durable: no failure of a member loses them. All of a call share one write of the store.
    fn append(&mut self, entries: &[Entry]) -> Result<()>;

    /// Reads the entries after `after`, up to about `bytes_max` bytes but at least one if there is one.
    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>>;

    /// Removes entries with smaller numbers than `below`.
    fn trim(&mut self, below: u64) -> Result<()>;
}

/// A reader of the log, which sees what is durable, some time later.
pub trait Reader: Send {
    /// One entry; `None` if the log does not have it, as far as this knows. Entries may be asked for in any order, before the first
    /// [`Reader::read`].
    fn entry(&mut self, seq: u64) -> Result<Option<Entry>>;

    /// As [`Writer::read`]. Empty if nothing more is durable yet, as far as it knows.
    ///
    /// Errors: [`LogError::Trimmed`](crate::LogError::Trimmed).
    fn read(&mut self, after: u64, bytes_max: usize) -> Result<Vec<Entry>>;
}
