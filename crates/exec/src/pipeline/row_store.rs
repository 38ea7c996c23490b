//! Rows that are visited again, as those of a window's partition: in memory, or in a temporary file once they are too
//! many.
//!
//! ```text
//! rows      document*
//! offsets   u64*      little-endian: where each row begins, and where the last one ends
//! ```

use crate::batch::Batch;
use crate::kept::Kept;
use crate::row::RowDoc;
use crate::spill;
use nestor_model::statement::{BYTES_PER_UNIT, work};
use nestor_model::{Error, ErrorCode, RawDocBuf, Result};
use nestor_storage::ScratchFile;
use std::io::{BufWriter, Write};

/// Units of work of reading a row from a file.
const READ: usize = 8;

/// Rows by position.
#[derive(Default)]
pub(super) struct RowStore {
    memory: Vec<RowDoc>,
    kept: Kept,
    held_max: usize,
    disk: Option<Disk>,
}

struct Disk {
    rows: BufWriter<ScratchFile>,
    /// In a file of their own: those of very many rows would not fit in memory either.
    offsets: BufWriter<ScratchFile>,
    len: usize,
    /// Where the next row will begin.
    end: u64,
    /// True when everything written is in the files.
    flushed: bool,
}

impl RowStore {
    pub(super) fn len(&self) -> usize {
        match &self.disk {
            Some(disk) => disk.len,
            None => self.memory.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An empty store that keeps all its rows in a file.
    pub(super) fn on_disk(stage: &str, batch: &Batch<'_>) -> Result<Self> {
        Ok(Self {
            disk: Some(Disk::new(stage, batch)?),
            ..Self::default()
        })
    }

    /// Bytes of the rows in the file, if there is one.
    pub(super) fn bytes_on_disk(&self) -> Option<u64> {
        self.disk.as_ref().map(|disk| disk.end)
    }

    /// The most that was held in memory, in bytes.
    pub(super) fn held_max(&self) -> usize {
        self.held_max
    }

    /// Bytes held in memory.
    pub(super) fn bytes(&self) -> usize {
        self.kept.bytes()
    }

    /// The operator that has it is saved.
    pub(super) fn rest(&mut self) {
        self.kept.rest();
    }

    /// Appends a row of `stage`. Error 292 when memory is full and disk is not allowed.
    pub(super) fn push(&mut self, row: RowDoc, stage: &str, batch: &Batch<'_>) -> Result<()> {
        self.keep(row)?;
        if self.kept.bytes() > batch.memory_bytes_max {
            self.leave_memory(stage, batch)?;
        }
        Ok(())
    }

    /// Appends a row, whether or not memory is full.
    pub(super) fn keep(&mut self, row: RowDoc) -> Result<()> {
        if let Some(disk) = &mut self.disk {
            return disk.push(&row);
        }
        let bytes = size_of::<RowDoc>() + row.size();
        self.memory.push(row);
        self.kept.grow(bytes)?;
        self.held_max = self.kept.bytes();
        Ok(())
    }

    /// Puts the rows into a file. Error 292 when disk is not allowed.
    pub(super) fn leave_memory(&mut self, stage: &str, batch: &Batch<'_>) -> Result<()> {
        if self.disk.is_some() {
            return Ok(());
        }
        let mut disk = Disk::new(stage, batch)?;
        for row in std::mem::take(&mut self.memory) {
            work(1)?;
            disk.push(&row)?;
        }
        self.kept.clear();
        self.disk = Some(disk);
        Ok(())
    }

    /// Makes what was pushed readable. Call once before [`RowStore::get`].
    pub(super) fn seal(&mut self) -> Result<()> {
        match &mut self.disk {
            Some(disk) if !disk.flushed => disk.flush().map_err(spill::io_error),
            _ => Ok(()),
        }
    }

    /// The row at `at`, which must be below [`RowStore::len`].
    pub(super) fn get(&self, at: usize) -> Result<RowDoc> {
        let Some(disk) = &self.disk else {
            return Ok(self.memory[at].clone());
        };
        let raw = disk.read(at).map_err(spill::io_error)?;
        work(READ + raw.len() / BYTES_PER_UNIT)?;
        Ok(RowDoc::Raw(RawDocBuf::validate_spilled(raw)?))
    }
}

impl Disk {
    fn new(stage: &str, batch: &Batch<'_>) -> Result<Self> {
        let Some(dir) = batch.spill_dir else {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "exceeded memory limit for {stage}, but didn't allow external spilling; pass allowDiskUse: true"
                ),
            ));
        };
        let file = || Ok::<_, Error>(BufWriter::new(spill::temporary_file(dir)?));
        Ok(Self {
            rows: file()?,
            offsets: file()?,
            len: 0,
            end: 0,
            flushed: false,
        })
    }

    fn push(&mut self, row: &RowDoc) -> Result<()> {
        let raw = row.to_raw();
        let bytes = raw.as_bytes();
        work(1 + bytes.len() / BYTES_PER_UNIT)?;
        let offset = self.end.to_le_bytes();
        let written = self
            .offsets
            .write_all(&offset)
            .and_then(|()| self.rows.write_all(bytes));
        written.map_err(spill::io_error)?;
        self.end += bytes.len() as u64;
        self.len += 1;
        self.flushed = false;
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.offsets.write_all(&self.end.to_le_bytes())?;
        self.offsets.flush()?;
        self.rows.flush()?;
        self.flushed = true;
        Ok(())
    }

    fn read(&self, at: usize) -> std::io::Result<Vec<u8>> {
        let mut offsets = [0; 16];
        self.offsets.get_ref().read_exact_at(&mut offsets, at as u64 * 8)?;
        let [from, to] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&offsets[at..at + 8]);
            u64::from_le_bytes(word)
        });
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        self.rows.get_ref().read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }
}
