//! Sorted entries that are watched for duplicates.

use super::{BuildProgress, Sorted};
use crate::index_writer::IndexWriter;
use nestor_storage::Bytes;
use nestor_storage::base::{Change, ChangeSource};

/// Sorted entries that end where an index that refuses duplicates has one.
pub(super) struct Distinct<'w> {
    writer: &'w IndexWriter,
    progress: &'w BuildProgress,
    /// The entries.
    pub(super) sorted: Sorted,
    /// Key of the entry before, without its record.
    last: Vec<u8>,
    /// A key that two records have, and the second of them.
    pub(super) duplicate: Option<(Vec<u8>, Bytes)>,
}

impl<'w> Distinct<'w> {
    pub(super) fn new(writer: &'w IndexWriter, sorted: Sorted, progress: &'w BuildProgress) -> Self {
        Self {
            writer,
            progress,
            sorted,
            last: Vec::new(),
            duplicate: None,
        }
    }
}

impl ChangeSource for Distinct<'_> {
    fn current(&self) -> Option<Change<'_>> {
        match self.duplicate {
            None => self.sorted.current(),
            Some(_) => None,
        }
    }

    fn advance(&mut self) {
        self.progress.add_done(1);
        if !self.writer.refuses_duplicates() {
            return self.sorted.advance();
        }
        let format = &self.writer.encoder.format;
        let split = |change: Change<'_>| {
            let entry = format.split(change.key, change.value.unwrap_or_default()).ok()?;
            Some((entry.key.to_vec(), Bytes::from(entry.record)))
        };
        if let Some((key, _)) = self.sorted.current().and_then(split) {
            self.last = key;
        }
        self.sorted.advance();
        self.duplicate = self
            .sorted
            .current()
            .and_then(split)
            .filter(|(key, _)| *key == self.last);
    }
}
