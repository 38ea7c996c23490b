//! Records whose keys were gathered, read in the order of their ids.
//!
//! An index leads to records that lie anywhere. Where nobody minds their order, many keys are gathered first: read in their order, each leaf of
//! records is visited once, and the next record mostly lies in the leaf of the last one.

use crate::row_batch::RowBatch;
use nestor_model::{DocRef, Error, ErrorCode, Result};
use nestor_storage::{RecordReader, View, record};

/// Keys that are gathered together, at first and at most.
const TOGETHER: std::ops::RangeInclusive<usize> = 32..=16_384;

/// Records that are read in one go.
const READ: usize = 128;

/// Keys of records, and how far these were read.
pub(crate) struct Gathered {
    keys: Vec<[u8; 8]>,
    next: usize,
    /// How many are gathered next.
    room: usize,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            next: 0,
            room: *TOGETHER.start(),
        }
    }
}

impl Gathered {
    /// Whether all that was gathered has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.keys.len()
    }

    /// How many keys are wanted now: few at first, because it is not known whether all records will be.
    pub(crate) fn room(&self) -> usize {
        self.room.saturating_sub(self.keys.len())
    }

    /// Forgets what was read, before keys are gathered.
    pub(crate) fn begin(&mut self) {
        self.keys.clear();
        self.next = 0;
    }

    /// Adds the key of a record, which is an id.
    ///
    /// Errors: for other keys; nobody gathers those.
    pub(crate) fn add(&mut self, key: &[u8]) -> Result<()> {
        let Ok(key) = key.try_into() else {
            return Err(Error::new(ErrorCode::InternalError, "the key of a record is no id"));
        };
        self.keys.push(key);
        Ok(())
    }

    /// Puts the keys in order, each once. Call it when enough are there.
    pub(crate) fn settle(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.room = (self.room * 4).min(*TOGETHER.end());
    }

    /// The next key, in place of [`Gathered::read`].
    pub(crate) fn pop(&mut self) -> Option<[u8; 8]> {
        let key = self.keys.get(self.next).copied()?;
        self.next += 1;
        Some(key)
    }

    /// The next keys, at most so many.
    fn take(&mut self, most: usize) -> Vec<&[u8]> {
        let from = self.next;
        self.next = self.keys.len().min(from + most.min(READ));
        self.keys[from..self.next].iter().map(<[u8; 8]>::as_slice).collect()
    }

    /// Adds the next records to a batch, as many as it has room for; how many were looked for.
    ///
    /// Errors: those of storage.
    pub(crate) fn read(&mut self, records: &mut RecordReader, view: &dyn View, out: &mut RowBatch) -> Result<usize> {
        let keys = self.take(out.room());
        records.look_at(view, &keys, |value, handle| out.push_stored(value, || Ok(handle()?)))?;
        Ok(keys.len())
    }

    /// Gives the next records to `each`, at most so many; how many were looked for, and how many there were.
    ///
    /// Errors: those of storage and of `each`.
    pub(crate) fn visit(
        &mut self,
        records: &mut RecordReader,
        view: &dyn View,
        most: usize,
        each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<(usize, usize)> {
        let keys = self.take(most);
        let mut found = 0;
        records.look_at(view, &keys, |value, _| {
            found += 1;
            each(record::document(value).as_doc())
        })?;
        Ok((keys.len(), found))
    }
}
