//! How much memory segments take, and what became of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters of the segments of a store.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Gives up columns that can be read again.
    relief: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) disk_bytes: AtomicU64,
    pub(crate) built: AtomicU64,
    pub(crate) merged: AtomicU64,
    pub(crate) columns_read: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) not_saved: AtomicU64,
}

/// What there is of columns, and what became of them since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes in memory, and how many there may be.
    pub bytes: u64,
    /// See [`Figures::bytes`].
    pub bytes_max: u64,
    /// Bytes of files.
    pub disk_bytes: u64,
    /// Segments that were made of documents.
    pub built: u64,
    /// Segments that were made of others and the documents that were changed.
    pub merged: u64,
    /// Columns that were read from files.
    pub columns_read: u64,
    /// Bytes of these.
    pub bytes_read: u64,
    /// Files that were damaged or missing, so that records were read in their place.
    pub damaged: u64,
    /// Segments that could not be written to a file.
    pub not_saved: u64,
    /// How often a collection was read by columns.
    pub readings: u64,
    /// How often it was not, because too little of it was in columns.
    pub passed_over: u64,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            ..Self::default()
        }
    }

    pub(crate) fn relieve_by(&self, relief: impl Fn() + Send + Sync + 'static) {
        let _ = self.relief.set(Box::new(relief));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether one more segment is too many.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.bytes_max
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn sub(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Has columns given up when there are too many.
    pub(crate) fn relieve(&self) {
        if self.is_full()
            && let Some(relief) = self.relief.get()
        {
            relief();
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            bytes: self.bytes() as u64,
            bytes_max: self.bytes_max as u64,
            disk_bytes: self.disk_bytes.load(Relaxed),
            built: self.built.load(Relaxed),
            merged: self.merged.load(Relaxed),
            columns_read: self.columns_read.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            damaged: self.damaged.load(Relaxed),
            not_saved: self.not_saved.load(Relaxed),
            ..Figures::default()
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.figures().fmt(f)
    }
}
