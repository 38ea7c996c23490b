//! Temporary files of blocking operators.

use nestor_model::statement::{BYTES_PER_UNIT, ROW, work};
use nestor_model::{Document, Error, ErrorCode, RawDocBuf, Result, Value};
use nestor_storage::{Scratch, ScratchFile};
use std::io::{self, Read};

/// The figures of the temporary files of a blocking operator, as explain prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Times it ran out of memory and wrote.
    pub spills: u64,
    /// Rows written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl Spilled {
    /// Counts one time.
    pub fn add(&mut self, records: u64, bytes: u64) {
        self.spills += 1;
        self.records += records;
        self.bytes += bytes;
    }

    /// Adds what another operator wrote.
    pub fn merge(&mut self, other: Self) {
        self.spills += other.spills;
        self.records += other.records;
        self.bytes += other.bytes;
    }

    /// Appends the fields of explain, with the numbers as `count` writes them. Files hold what was in memory as it is, so
    /// both sizes are the same.
    pub fn append_to(&self, out: &mut Document, count: fn(u64) -> Value) {
        out.push("usedDisk", self.spills > 0);
        out.push("spills", count(self.spills));
        out.push("spilledRecords", count(self.records));
        out.push("spilledBytes", count(self.bytes));
        out.push("spilledDataStorageSize", count(self.bytes));
    }
}

/// A file in `dir` (made if missing) that is gone when it is closed.
pub fn temporary_file(dir: &Scratch) -> Result<ScratchFile> {
    dir.file().map_err(io_error)
}

/// The next document of a temporary file, which begins with its length. Counts as work.
///
/// Errors: those of the file; DataCorruptionDetected for bytes that are none; those of the interrupt.
pub(crate) fn read_document(input: &mut impl Read) -> Result<RawDocBuf> {
    let mut len = [0; 4];
    input.read_exact(&mut len).map_err(io_error)?;
    let mut bytes = len.to_vec();
    let len = u32::from_le_bytes(len) as usize;
    work(ROW + len / BYTES_PER_UNIT)?;
    bytes.resize(len.max(4), 0);
    input.read_exact(&mut bytes[4..]).map_err(io_error)?;
    RawDocBuf::validate_spilled(bytes).map_err(|e| {
        Error::new(
            ErrorCode::DataCorruptionDetected,
            format!("spilled row does not decode: {e}"),
        )
    })
}

/// A failure of a temporary file as an error of the command.
pub fn io_error(error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::OutOfDiskSpace,
        _ => ErrorCode::FileStreamFailed,
    };
    Error::new(code, format!("temporary file: {error}"))
}
