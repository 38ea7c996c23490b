//! The base: a durable ordered map from byte keys to byte values that changes only by [`Base::apply`].
//!
//! A background checkpoint hands `apply` everything a frozen memtable holds; the base merges it in one durable, atomic
//! transaction. Readers take a [`BaseSnapshot`] and are never blocked by a merge.
//!
//! ```text
//! let snapshot = base.snapshot();                      // pins one committed state
//! let value = snapshot.get(b"key")?;                   // Option<BaseBytes>
//! let mut cursor = snapshot.clone().cursor();          // owns its snapshot
//! let mut more = cursor.seek(b"k")?;                   // first entry >= "k"
//! while more {
//!     use_entry(cursor.key(), cursor.value()?);
//!     more = cursor.next()?;
//! }
//! base.apply(&[], &mut changes(sorted.iter().map(..)), b"checkpoint 17")?;
//! ```
//!
//! What this module does not know: collections, records, documents, journals. Keys and values are bytes; keys order as
//! byte strings (`[u8]::cmp`).
//!
//! - [`tree`] is the durable implementation: a copy-on-write B+tree in one checksummed file.
//! - [`memory`] is the model: a `BTreeMap`, for tests of everything that stands on the base.

pub mod memory;
pub mod tree;

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use self::tree::frame::Page;

/// Result of a base operation.
pub type Result<T> = std::result::Result<T, BaseError>;

/// Longest key the base accepts, in bytes.
pub const KEY_BYTES_MAX: usize = 17 << 20;
/// Longest value the base accepts, in bytes.
pub const VALUE_BYTES_MAX: usize = 17 << 20;

/// Why the base could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The operating system refused: disk full, permission, read error. The committed state is unchanged and usable.
    #[error("{operation} {}: {source}", file.display())]
    Io {
        /// The file of the base.
        file: Arc<Path>,
        /// What was tried: `open`, `read`, `write`, `truncate`.
        operation: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A sync failed: whether the last writes reached the disk is unknown. The state before them is still what
    /// snapshots show; the engine should stop accepting writes that rely on this checkpoint.
    #[error("sync {}: {source}", file.display())]
    Sync {
        /// The file of the base.
        file: Arc<Path>,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file does not hold what was written to it.
    #[error("{} is corrupt at byte {offset}: {reason}", file.display())]
    Corrupt {
        /// The file of the base.
        file: Arc<Path>,
        /// Byte offset in the file of the page or field that is wrong.
        offset: u64,
        /// The fault.
        reason: String,
    },
    /// The file was written by a later version of Nestor.
    #[error("{} has format version {found}, this version reads up to {supported}", file.display())]
    NewerFormat {
        /// The file of the base.
        file: Arc<Path>,
        /// Version in the file.
        found: u32,
        /// Newest version this build reads.
        supported: u32,
    },
    /// `apply` on a base that was opened for reading only.
    #[error("{} is open for reading only", file.display())]
    ReadOnly {
        /// The file of the base.
        file: Arc<Path>,
    },
    /// A key, value or metadata blob is longer than the base stores.
    #[error("{what} of {len} bytes is longer than the limit of {max}")]
    TooLarge {
        /// `key`, `value` or `metadata`.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The caller's changes or range deletions do not ascend: nothing was applied.
    #[error("{what} do not ascend")]
    Unordered {
        /// `changes` or `range deletions`.
        what: &'static str,
    },
}

/// One change to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The new value, or `None` to remove the key (which need not exist).
    pub value: Option<&'a [u8]>,
}

/// A sorted run of changes that can be looked at before it is consumed.
///
/// Keys ascend strictly. `current` borrows from the source, so a source may build keys in a buffer of its own.
pub trait ChangeSource {
    /// The change at the current position, `None` behind the last. Cheap: it is asked several times per change.
    fn current(&self) -> Option<Change<'_>>;
    /// Moves to the next change; does nothing behind the last.
    fn advance(&mut self);
}

/// A [`ChangeSource`] over an iterator whose items outlive it; see [`changes`].
#[derive(Debug)]
pub struct Changes<'a, I> {
    current: Option<Change<'a>>,
    rest: I,
}

/// Makes a [`ChangeSource`] of an iterator of ascending changes.
pub fn changes<'a, I>(changes: I) -> Changes<'a, I::IntoIter>
where
    I: IntoIterator<Item = Change<'a>>,
{
    let mut rest = changes.into_iter();
    Changes {
        current: rest.next(),
        rest,
    }
}

impl<'a, I: Iterator<Item = Change<'a>>> ChangeSource for Changes<'a, I> {
    fn current(&self) -> Option<Change<'_>> {
        self.current
    }

    fn advance(&mut self) {
        if self.current.is_some() {
            self.current = self.rest.next();
        }
    }
}

/// The keys from `start` (included) to `end` (excluded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// First key of the range.
    pub start: &'a [u8],
    /// First key behind the range; `None`: the range has no end.
    pub end: Option<&'a [u8]>,
}

impl KeyRange<'_> {
    /// Whether `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && self.end.is_none_or(|end| key < end)
    }
}

/// The name of a node. Within one process two nodes of the same name have the same entries, whatever state of the base they belong to;
/// between processes if both belong to one line of names ([`Base::keep_names`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeName {
    /// Its first page.
    pub page: u32,
    /// Its checksum, which covers those of the nodes below it.
    pub checksum: u32,
    /// Which `apply` wrote it, counted from where names began to be known; 0 for those before.
    pub born: u32,
}

/// The part of the keys that a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePart {
    /// The node.
    pub name: NodeName,
    /// No key of it is less. Empty for the first node of the base.
    pub from: Vec<u8>,
    /// How many entries it has.
    pub entries: u64,
}

/// Which entries are packed on disk. It settles how pages are written from now on; what is there stays as it is until it is written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// Whether those are that are no exceptions.
    pub usual: bool,
    /// The first four bytes of the keys with which it is the other way round, ascending.
    pub except: Vec<[u8; 4]>,
}

impl Default for Packing {
    fn default() -> Packing {
        Packing {
            usual: true,
            except: Vec::new(),
        }
    }
}

impl Packing {
    /// Whether the entry of this key is packed.
    pub fn packs(&self, key: &[u8]) -> bool {
        let is_exception = |prefix: &[u8; 4]| self.except.binary_search(prefix).is_ok();
        self.usual != key.first_chunk().is_some_and(is_exception)
    }
}

/// The figures of one `apply`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApplyStats {
    /// Keys that were not there before.
    pub inserted: u64,
    /// Keys whose value was replaced.
    pub replaced: u64,
    /// Keys removed by a change.
    pub removed: u64,
    /// Keys removed by a range deletion.
    pub range_removed: u64,
    /// Leaf pages rewritten or made.
    pub leaves_written: u64,
    /// Interior pages rewritten or made.
    pub interiors_written: u64,
    /// Bytes written to the file.
    pub bytes_written: u64,
    /// Pages that the new state no longer uses.
    pub pages_freed: u64,
    /// Their size in bytes.
    pub bytes_freed: u64,
}

/// The findings of a check of a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Entries.
    pub entries: u64,
    /// Bytes of keys, before prefix compression.
    pub key_bytes: u64,
    /// Bytes of values.
    pub value_bytes: u64,
    /// Levels of the tree; 0 when it is empty, 1 for a single leaf.
    pub depth: u32,
    /// Leaf nodes.
    pub leaves: u64,
    /// Bytes in use in leaf nodes, headers included.
    pub leaf_bytes_used: u64,
    /// Bytes of leaf nodes, those not in use included, as they are in memory.
    pub leaf_bytes: u64,
    /// Pages of the file that leaf nodes take; fewer than their bytes where they are packed.
    pub leaf_pages: u64,
    /// Interior nodes.
    pub interiors: u64,
    /// Values stored outside their leaf.
    pub overflow_values: u64,
    /// Bytes per page.
    pub page_bytes: u32,
    /// Pages of the file, used or free.
    pub pages: u64,
    /// Pages that nothing uses.
    pub free_pages: u64,
    /// Bytes of the file behind its last page: a transaction left them that did not come to its end.
    pub bytes_behind: u64,
    /// One of the meta pages names the state before: a transaction was interrupted between writing them.
    pub stale_meta: bool,
}

/// A durable ordered map that changes only by [`apply`](Base::apply).
pub trait Base: Send + Sync {
    /// Pins the last committed state. Never waits for an `apply` that is under way; costs two atomic increments.
    fn snapshot(&self) -> Arc<dyn BaseSnapshot>;

    /// Merges changes into the map in one durable, atomic transaction and replaces the metadata blob by `meta`.
    ///
    /// Range deletions act on the state before; then the changes. So a key that `changes` sets inside a deleted range
    /// is there afterwards. `deletions` ascend and don't overlap; `changes` ascend strictly by key.
    ///
    /// One `apply` runs at a time; a second waits. When it returns `Ok`, the new state is durable and new snapshots
    /// show it. When it returns an error, the state before is intact, durable and current, and a later `apply` may
    /// succeed. (When the last write of a transaction or its sync failed, no one can tell whether it reached the disk: then a
    /// restart before the next `apply` that succeeds may also find the state after.) Memory use does not grow with the number of changes.
    ///
    /// `meta` has a limit of a few kilobytes (page size less 128 bytes for the tree).
    fn apply(&self, deletions: &[KeyRange<'_>], changes: &mut dyn ChangeSource, meta: &[u8]) -> Result<ApplyStats>;

    /// Sets what the next `apply` packs, if this base packs anything.
    fn set_packing(&self, _packing: Packing) {}

    /// Length of the file in bytes.
    fn file_bytes(&self) -> u64;

    /// Keeps the names of nodes across restarts from now on. Names of one line, whose number is the answer, are names of the same nodes in
    /// every process; `None` where they cannot be kept. Waits for an `apply` that is under way.
    fn keep_names(&self) -> Option<u64> {
        None
    }

    /// The line of names that are kept by now.
    fn names_kept(&self) -> Option<u64> {
        None
    }

    /// A number that grows with every `apply`.
    fn applied(&self) -> u64 {
        0
    }

    /// Bytes of the file that are there only because states are held that were replaced, when the last `apply` began. Each such
    /// state keeps what it had, and nothing that came and went after it.
    fn held_bytes(&self) -> u64;

    /// Reads everything and verifies it: checksums, order, counts, and that each page is used exactly once or free.
    /// The first fault found is the error. Waits for an `apply` that is under way; readers are not disturbed.
    fn check(&self) -> Result<CheckReport>;
}

/// One committed state of the map. It stays as it is, whatever is applied later, for as long as it is held; the space
/// of what was replaced meanwhile is reused only after that.
pub trait BaseSnapshot: Send + Sync {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<BaseBytes>>;

    /// The values of some keys, in their order.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<BaseBytes>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// A cursor on this state, not yet positioned. It keeps the state alive.
    fn cursor(self: Arc<Self>) -> Box<dyn BaseCursor>;

    /// The metadata blob of the `apply` that made this state; empty for a new base.
    fn meta(&self) -> &[u8];

    /// A number of this state, which grows with every `apply`.
    fn state(&self) -> u64;

    /// Number of entries.
    fn entries(&self) -> u64;

    /// The nodes right above the leaves that have keys of a range, in order of their keys; none of a base that has no such nodes.
    fn nodes(&self, _range: KeyRange<'_>) -> Result<Vec<NodePart>> {
        Ok(Vec::new())
    }

    /// The leaves below the one of [`BaseSnapshot::nodes`] that has the key `from`.
    fn leaves(&self, _from: &[u8]) -> Result<Vec<NodePart>> {
        Ok(Vec::new())
    }

    /// Bytes of the file that the entries of a range take: their leaves, of the first and the last of them the share that the range has
    /// of their entries, and the values outside. `None` of a base that has no file.
    fn stored_bytes(&self, _range: KeyRange<'_>) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Number of entries with a key less than `key`; so the difference of two ranks counts a range without reading it
    /// (cost of about one `get`).
    fn rank(&self, key: &[u8]) -> Result<u64>;
}

/// A position in the entries of one state, in key order.
///
/// A cursor is at an entry or at none. It is at none when new, and after a call that returned `false` or an error.
/// `next` and `prev` from none stay at none: seek again.
pub trait BaseCursor: Send {
    /// Moves to the first entry with a key `>= key`; `false` if there is none. Cheap when the target is in or next to the
    /// page of the current (or last) position.
    fn seek(&mut self, key: &[u8]) -> Result<bool>;

    /// Moves to the last entry with a key `<= key`; `false` if there is none.
    fn seek_back(&mut self, key: &[u8]) -> Result<bool>;

    /// Moves to the first entry.
    fn first(&mut self) -> Result<bool>;

    /// Moves to the last entry.
    fn last(&mut self) -> Result<bool>;

    /// Moves to the next entry; `false` at the end.
    fn next(&mut self) -> Result<bool>;

    /// Moves to the previous entry; `false` at the beginning.
    fn prev(&mut self) -> Result<bool>;

    /// Whether the cursor is at an entry.
    fn is_valid(&self) -> bool;

    /// Key of the current entry; empty when at none.
    fn key(&self) -> &[u8];

    /// Value of the current entry; empty when at none. Values inside their page cost nothing; a long value (from about
    /// half a page) is read at the first call for it.
    fn value(&self) -> Result<&[u8]>;

    /// The value as a handle that outlives the cursor's position: no copy, one atomic increment.
    fn value_bytes(&self) -> Result<BaseBytes>;

    /// Length of the value in bytes, without reading it.
    fn value_len(&self) -> usize;
}

/// Bytes of a value, shared with the page they were read from. Cloning costs one atomic increment; the page stays in
/// memory as long as a handle does, so copy what is kept for long.
#[derive(Clone)]
pub struct BaseBytes {
    page: Arc<Page>,
    start: u32,
    len: u32,
}

impl BaseBytes {
    /// `len` bytes of `page` from `start`.
    pub(crate) fn new(page: Arc<Page>, start: u32, len: u32) -> BaseBytes {
        debug_assert!(
            start as usize + len as usize <= page.bytes().len(),
            "a value lies inside its page"
        );
        BaseBytes { page, start, len }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.page.bytes()[self.start as usize..][..self.len as usize]
    }
}

impl Deref for BaseBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for BaseBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<Vec<u8>> for BaseBytes {
    /// # Panics
    /// If the vector is longer than 4 GiB.
    fn from(bytes: Vec<u8>) -> BaseBytes {
        let len = u32::try_from(bytes.len()).expect("values are far shorter than 4 GiB");
        BaseBytes {
            page: Arc::new(Page::raw(bytes.into_boxed_slice())),
            start: 0,
            len,
        }
    }
}

impl PartialEq for BaseBytes {
    fn eq(&self, other: &BaseBytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for BaseBytes {}

impl fmt::Debug for BaseBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

/// Checks what `apply` demands of `deletions`: each range has a start below its end, and they ascend without overlap.
pub(crate) fn check_deletions(deletions: &[KeyRange<'_>]) -> Result<()> {
    let whole = deletions
        .iter()
        .all(|range| range.end.is_none_or(|end| range.start < end));
    let apart = deletions
        .windows(2)
        .all(|pair| pair[0].end.is_some_and(|end| end <= pair[1].start));
    if whole && apart {
        Ok(())
    } else {
        Err(BaseError::Unordered {
            what: "range deletions",
        })
    }
}

/// Checks the limits of one change.
pub(crate) fn check_change(change: &Change<'_>) -> Result<()> {
    if change.key.len() > KEY_BYTES_MAX {
        return Err(BaseError::TooLarge {
            what: "key",
            len: change.key.len(),
            max: KEY_BYTES_MAX,
        });
    }
    match change.value {
        Some(value) if value.len() > VALUE_BYTES_MAX => Err(BaseError::TooLarge {
            what: "value",
            len: value.len(),
            max: VALUE_BYTES_MAX,
        }),
        _ => Ok(()),
    }
}
