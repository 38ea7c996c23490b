//! Groups that left memory, in files by the hash of their key.
//!
//! ```text
//! partition  record*
//! record     u64 hash of the key, little-endian | u64 when its first row came | document {k: key, s: partial result, s: ...}
//! ```
//!
//! The records of a group are in the order in which they were written, so merging them in the order of the file gives
//! `$push` and `$first` their order.

use super::table::Bucket;
use crate::kept::Kept;
use crate::spill;
use nestor_model::{Error, ErrorCode, RawDoc, RawWriter, Result};
use nestor_query::accumulator::Accumulator;
use nestor_storage::{Scratch, ScratchFile};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};

/// Partitions per level.
const PARTITIONS: usize = 16;
const PARTITION_BITS: u32 = 4;
/// Levels: 16^6 partitions are enough for any disk.
pub(super) const LEVELS_MAX: u32 = 6;
/// The bits of a hash above this one choose the partition; hash tables use the lowest and the highest.
const FIRST_BIT: u32 = 30;
const BUFFER_BYTES: usize = 64 * 1024;

/// The partitions of one level, while they are written.
pub(super) struct Partitions {
    level: u32,
    /// Made when something is written into them.
    files: [Option<BufWriter<ScratchFile>>; PARTITIONS],
    /// The record that is being made.
    record: Vec<u8>,
    /// The buffers of the files, and the record.
    buffers: Kept,
}

impl Partitions {
    pub(super) fn new(level: u32) -> Self {
        Self {
            level,
            files: Default::default(),
            record: Vec::new(),
            buffers: Kept::default(),
        }
    }

    /// Writes a group; returns the bytes written. Errors: 146 when it is too large for a record; those of [`Kept::grow`].
    pub(super) fn write(&mut self, bucket: &Bucket, dir: &Scratch) -> Result<u64> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.extend_from_slice(&bucket.hash.to_le_bytes());
        record.extend_from_slice(&bucket.first.to_le_bytes());
        let mut writer = RawWriter::onto(record);
        writer.append("k", &bucket.key);
        for partial in bucket.states.iter().map(Accumulator::partial) {
            writer.append("s", &partial);
        }
        let record = writer.finish();
        if i32::try_from(record.len()).is_err() {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                "a group is too large to spill to disk",
            ));
        }
        let at = (bucket.hash >> (FIRST_BIT + self.level * PARTITION_BITS)) as usize % PARTITIONS;
        let file = match &mut self.files[at] {
            Some(file) => file,
            none => none.insert(BufWriter::with_capacity(BUFFER_BYTES, spill::temporary_file(dir)?)),
        };
        file.write_all(&record).map_err(spill::io_error)?;
        self.record = record;
        let open = self.files.iter().flatten().count();
        self.buffers.set(open * BUFFER_BYTES + self.record.capacity())?;
        Ok(self.record.len() as u64)
    }

    /// The operator is saved.
    pub(super) fn rest(&mut self) {
        self.buffers.rest();
    }

    /// The partitions that hold something, to be read.
    pub(super) fn finish(self) -> Result<Vec<Partition>> {
        let level = self.level + 1;
        let read = |writer: BufWriter<ScratchFile>| {
            let mut file = writer.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
            file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
            let mut buffers = Kept::default();
            buffers.grow(BUFFER_BYTES)?;
            Ok(Partition {
                level,
                input: BufReader::with_capacity(BUFFER_BYTES, file),
                document: Vec::new(),
                buffers,
            })
        };
        self.files.into_iter().flatten().map(read).collect()
    }
}

/// A partition, while it is read.
pub(super) struct Partition {
    /// Level of the partitions that it is divided into when it does not fit in memory.
    pub(super) level: u32,
    input: BufReader<ScratchFile>,
    document: Vec<u8>,
    /// The buffer, and the document.
    buffers: Kept,
}

impl Partition {
    /// The next group: the hash of its key, when its first row came, and its record.
    pub(super) fn next(&mut self) -> Result<Option<((u64, u64), RawDoc<'_>)>> {
        let mut head = [0u8; 20];
        match self.input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(spill::io_error(error)),
        }
        let [times @ .., a, b, c, d] = head;
        let (hash, first) = times.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (hash, first) = (word(hash), word(first));
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        self.document.clear();
        self.document.extend_from_slice(&[a, b, c, d]);
        if length > self.document.capacity() {
            self.buffers.set(BUFFER_BYTES + length)?;
            self.document.reserve_exact(length - self.document.len());
        }
        self.document.resize(length.max(4), 0);
        self.input
            .read_exact(&mut self.document[4..])
            .map_err(spill::io_error)?;
        let document = RawDoc::validate_spilled(&self.document).map_err(|error| {
            Error::new(
                ErrorCode::DataCorruptionDetected,
                format!("spilled group does not decode: {error}"),
            )
        })?;
        Ok(Some(((hash, first), document)))
    }

    /// The operator is saved.
    pub(super) fn rest(&mut self) {
        self.buffers.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Value;
    use nestor_model::interrupt::Interrupt;
    use nestor_model::memory::Pool;
    use nestor_model::statement;
    use std::sync::Arc;

    #[test]
    fn the_statement_holds_the_buffers() {
        let dir = std::env::temp_dir().join(format!("nestor-partitions-{}", std::process::id()));
        let account = Arc::new(Pool::default()).open(Arc::default());
        statement::under(&Interrupt::default(), Some(&account), || {
            let mut partitions = Partitions::new(0);
            for at in 0..PARTITIONS as u64 {
                let bucket = Bucket {
                    hash: at << FIRST_BIT,
                    key: Value::from("k".repeat(BUFFER_BYTES)),
                    states: Vec::new(),
                    first: 0,
                };
                partitions.write(&bucket, &Scratch::plain(&dir)).expect("room");
            }
            assert!(account.held() > (PARTITIONS + 1) * BUFFER_BYTES, "{}", account.held());
            let mut waiting = partitions.finish().expect("files");
            let open = waiting.len() * BUFFER_BYTES;
            assert_eq!((waiting.len(), account.held()), (PARTITIONS, open));
            assert!(waiting[0].next().expect("a record").is_some());
            assert!(account.held() >= open + BUFFER_BYTES, "{}", account.held());
            drop(waiting);
            assert_eq!(account.held(), 0);
        });
        std::fs::remove_dir_all(&dir).expect("an empty directory");
    }
}
