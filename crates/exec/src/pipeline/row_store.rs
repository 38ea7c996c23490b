//! Rows that are visited again, as those of a window's partition: in memory, or in a temporary file once they are too
//! many.

use crate::batch::Batch;
use crate::row::RowDoc;
use crate::spill;
use nestor_model::{Error, ErrorCode, RawDocBuf, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

/// Rows by position.
#[derive(Default)]
pub(super) struct RowStore {
    memory: Vec<RowDoc>,
    held: usize,
    held_max: usize,
    disk: Option<Disk>,
}

struct Disk {
    out: BufWriter<File>,
    /// Where each row starts, and where the next one will.
    offsets: Vec<u64>,
    /// True when everything written is in the file.
    flushed: bool,
}

impl RowStore {
    pub(super) fn len(&self) -> usize {
        match &self.disk {
            Some(disk) => disk.offsets.len() - 1,
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

    /// Bytes in the file, if there is one.
    pub(super) fn bytes_on_disk(&self) -> Option<u64> {
        self.disk.as_ref().and_then(|disk| disk.offsets.last().copied())
    }

    /// The most that was held in memory, in bytes.
    pub(super) fn held_max(&self) -> usize {
        self.held_max
    }

    /// Bytes held in memory.
    pub(super) fn bytes(&self) -> usize {
        self.held
    }

    /// Appends a row of `stage`. Error 292 when memory is full and disk is not allowed.
    pub(super) fn push(&mut self, row: RowDoc, stage: &str, batch: &Batch<'_>) -> Result<()> {
        if let Some(disk) = &mut self.disk {
            return disk.push(&row);
        }
        self.held += size_of::<RowDoc>() + row.size();
        self.held_max = self.held;
        self.memory.push(row);
        if self.held <= batch.memory_bytes_max {
            return Ok(());
        }
        let mut disk = Disk::new(stage, batch)?;
        for row in std::mem::take(&mut self.memory) {
            disk.push(&row)?;
        }
        self.held = 0;
        self.disk = Some(disk);
        Ok(())
    }

    /// Makes what was pushed readable. Call once before [`RowStore::get`].
    pub(super) fn seal(&mut self) -> Result<()> {
        match &mut self.disk {
            Some(disk) if !disk.flushed => {
                disk.flushed = true;
                disk.out.flush().map_err(spill::io_error)
            }
            _ => Ok(()),
        }
    }

    /// The row at `at`, which must be below [`RowStore::len`].
    pub(super) fn get(&self, at: usize) -> Result<RowDoc> {
        let Some(disk) = &self.disk else {
            return Ok(self.memory[at].clone());
        };
        let (from, to) = (disk.offsets[at], disk.offsets[at + 1]);
        let mut bytes = vec![0; (to - from) as usize];
        disk.out
            .get_ref()
            .read_exact_at(&mut bytes, from)
            .map_err(spill::io_error)?;
        Ok(RowDoc::Raw(RawDocBuf::validate_spilled(bytes)?))
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
        Ok(Self {
            out: BufWriter::new(spill::temporary_file(dir)?),
            offsets: vec![0],
            flushed: true,
        })
    }

    fn push(&mut self, row: &RowDoc) -> Result<()> {
        let raw = row.to_raw();
        self.out.write_all(raw.as_bytes()).map_err(spill::io_error)?;
        let end = self.offsets.last().copied().unwrap_or(0) + raw.as_bytes().len() as u64;
        self.offsets.push(end);
        self.flushed = false;
        Ok(())
    }
}
