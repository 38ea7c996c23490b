//! State that changes with every write, and so is not part of the immutable catalog: counts and the record id allocator.

use crate::{IndexId, Lsn};
use nestor_model::RecordId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared by all versions of one collection's catalog entry. Counts change when a commit is published and survive
/// crashes exactly; the allocator only promises never to give an id twice.
#[derive(Debug)]
pub struct CollectionState {
    documents: AtomicI64,
    bytes: AtomicI64,
    next_record: AtomicU64,
    last_write: AtomicU64,
    scans: AtomicI64,
    tailable_scans: AtomicI64,
    index_use: Mutex<BTreeMap<IndexId, IndexUse>>,
}

/// How often plans have used an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IndexUse {
    /// Times.
    pub count: i64,
    /// Since when it is counted, in milliseconds; `None` since the store was opened.
    pub since_ms: Option<i64>,
}

impl CollectionState {
    pub(crate) fn new(documents: i64, bytes: i64, next_record: u64) -> Self {
        Self {
            documents: AtomicI64::new(documents),
            bytes: AtomicI64::new(bytes),
            next_record: AtomicU64::new(next_record.max(1)),
            last_write: AtomicU64::new(0),
            scans: AtomicI64::new(0),
            tailable_scans: AtomicI64::new(0),
            index_use: Mutex::default(),
        }
    }

    /// Documents of all published commits.
    pub fn documents(&self) -> i64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Notes that a query scans the collection.
    pub fn note_scan(&self, tailable: bool) {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.tailable_scans.fetch_add(i64::from(tailable), Ordering::Relaxed);
    }

    /// Scans since the store was opened: all, and those that were tailable.
    pub fn scans(&self) -> (i64, i64) {
        let tailable = self.tailable_scans.load(Ordering::Relaxed);
        (self.scans.load(Ordering::Relaxed), tailable)
    }

    /// Size in bytes of the documents.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The next record id, never given before.
    pub fn allocate_record_id(&self) -> RecordId {
        self.allocate_record_ids(1)
    }

    /// The first of `count` consecutive record ids, never given before.
    pub fn allocate_record_ids(&self, count: u64) -> RecordId {
        RecordId(self.next_record.fetch_add(count, Ordering::Relaxed))
    }

    /// The id that would be given next.
    pub(crate) fn next_record(&self) -> u64 {
        self.next_record.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, documents: i64, bytes: i64) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a plan that uses an index.
    pub fn note_index_use(&self, index: IndexId) {
        let mut uses = self.index_use.lock().unwrap_or_else(PoisonError::into_inner);
        let used = uses.entry(index).or_default();
        used.count = used.count.saturating_add(1);
    }

    /// Counts the uses of an index from here on.
    pub fn start_index_use(&self, index: IndexId, now_ms: i64) {
        let mut uses = self.index_use.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ms = Some(now_ms);
        uses.insert(index, IndexUse { count: 0, since_ms });
    }

    /// How often an index was used.
    pub fn index_use(&self, index: IndexId) -> IndexUse {
        let uses = self.index_use.lock().unwrap_or_else(PoisonError::into_inner);
        uses.get(&index).copied().unwrap_or_default()
    }

    /// The last commit (of this process) that wrote to the collection, known before anybody sees what it wrote.
    pub fn last_commit(&self) -> Lsn {
        Lsn(self.last_write())
    }

    /// Sequence number of the last commit (of this process) that required the collection; 0 for none.
    pub(crate) fn last_write(&self) -> u64 {
        self.last_write.load(Ordering::Acquire)
    }

    pub(crate) fn note_write(&self, seq: u64) {
        self.last_write.fetch_max(seq, Ordering::AcqRel);
    }

    /// Notes that `id` is in use.
    pub(crate) fn raise_record(&self, id: u64) {
        self.next_record.fetch_max(id.saturating_add(1), Ordering::Relaxed);
    }
}
