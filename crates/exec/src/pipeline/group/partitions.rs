//! Groups that left memory, in files by the hash of their key.
//!
//! ```text
//! partition  record*
//! record     u64 hash of the key, little-endian | document {k: key, s: partial result, s: ...}
//! ```
//!
//! The records of a group are in the order in which they were written, so merging them in the order of the file gives
//! `$push` and `$first` their order.

use super::table::Bucket;
use crate::spill;
use nestor_model::{Error, ErrorCode, RawDoc, RawWriter, Result};
use nestor_query::accumulator::Accumulator;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

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
    files: [Option<BufWriter<File>>; PARTITIONS],
    /// The record that is being made.
    record: Vec<u8>,
}

impl Partitions {
    pub(super) fn new(level: u32) -> Self {
        Self {
            level,
            files: Default::default(),
            record: Vec::new(),
        }
    }

    /// Writes a group; returns the bytes written. Error: 146 when it is too large for a record.
    pub(super) fn write(&mut self, bucket: &Bucket, dir: &Path) -> Result<u64> {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.extend_from_slice(&bucket.hash.to_le_bytes());
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
        Ok(self.record.len() as u64)
    }

    /// The partitions that hold something, to be read.
    pub(super) fn finish(self) -> Result<Vec<Partition>> {
        let level = self.level + 1;
        let read = |writer: BufWriter<File>| {
            let mut file = writer.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
            file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
            Ok(Partition {
                level,
                input: BufReader::with_capacity(BUFFER_BYTES, file),
                document: Vec::new(),
            })
        };
        self.files.into_iter().flatten().map(read).collect()
    }
}

/// A partition, while it is read.
pub(super) struct Partition {
    /// Level of the partitions that it is divided into when it does not fit in memory.
    pub(super) level: u32,
    input: BufReader<File>,
    document: Vec<u8>,
}

impl Partition {
    /// The next group: the hash of its key, and its record.
    pub(super) fn next(&mut self) -> Result<Option<(u64, RawDoc<'_>)>> {
        let mut head = [0u8; 12];
        match self.input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(spill::io_error(error)),
        }
        let [hash @ .., a, b, c, d] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        self.document.clear();
        self.document.extend_from_slice(&[a, b, c, d]);
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
        Ok(Some((u64::from_le_bytes(hash), document)))
    }
}
