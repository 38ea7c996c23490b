//! Rows that wait in temporary files: sorted runs and their merge, and parts of an input that are read again.
//!
//! A file has a row after the other, each as a document with an array of its values.

use super::sort::{Keyed, compare};
use super::{Rows, Run};
use crate::spill::{self, Spilled};
use nestor_model::statement::{BYTES_PER_UNIT, ROW, work};
use nestor_model::{Array, Document, Error, ErrorCode, Result, Value, ValueRef};
use nestor_planner::relation::{Scalar, SortKey, Tuple};
use nestor_storage::{Scratch, ScratchFile};
use std::cmp::Ordering;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};

/// Bytes written to and read from a file at a time.
pub(super) const BUFFER_BYTES: usize = 1 << 16;
/// A file that rows are written to.
///
/// Errors: disk must not be used; those of files.
pub(super) fn file<S>(run: &Run<'_, '_, S>) -> Result<Writing> {
    let dir: &Scratch = run.batch.spill_dir.ok_or_else(|| {
        Error::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            "the statement must not use temporary files",
        )
    })?;
    Ok(Writing {
        out: BufWriter::with_capacity(BUFFER_BYTES, spill::temporary_file(dir)?),
        rows: 0,
        bytes: 0,
    })
}

/// Rows that are being written.
pub(super) struct Writing {
    out: BufWriter<ScratchFile>,
    rows: u64,
    bytes: u64,
}

impl Writing {
    /// Adds a row.
    ///
    /// Errors: those of the file and of the interrupt.
    pub fn push(&mut self, values: Vec<Value>) -> Result<()> {
        let mut row = Document::new();
        row.push("", Value::Array(Array::new(values)));
        let row = row.to_raw();
        self.out.write_all(row.as_bytes()).map_err(spill::io_error)?;
        self.rows += 1;
        self.bytes += row.as_bytes().len() as u64;
        work(ROW + row.as_bytes().len() / BYTES_PER_UNIT)
    }

    /// What was written.
    pub fn figures(&self) -> Spilled {
        let mut figures = Spilled::default();
        figures.add(self.rows, self.bytes);
        figures
    }

    /// The rows from the first on.
    ///
    /// Errors: those of the file.
    pub fn read(self) -> Result<Written> {
        let mut file = self.out.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
        Ok(Written {
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            left: self.rows,
        })
    }
}

/// Rows that were written, to be read once.
pub(super) struct Written {
    file: BufReader<ScratchFile>,
    left: u64,
}

impl Written {
    /// The next row.
    ///
    /// Errors: those of the file and of the interrupt.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let row = spill::read_document(&mut self.file)?;
        match row.as_raw().get("") {
            Some(ValueRef::Array(values)) => Ok(Some(values.iter().map(|value| value.to_value()).collect())),
            _ => Err(Error::new(
                ErrorCode::DataCorruptionDetected,
                "a row of a temporary file has no values",
            )),
        }
    }
}

impl<S: Scalar> Rows<S> for Written {
    fn next(&mut self, _run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        Written::next(self)
    }
}

/// Runs of rows in order, of which those of the later ones come behind equal ones of the earlier.
pub(super) struct Merge {
    runs: Vec<Written>,
    /// What comes behind all runs.
    memory: std::vec::IntoIter<Keyed>,
    /// The next row of each run, and of what is in memory.
    heads: Vec<Option<Keyed>>,
    keys: usize,
}

impl Merge {
    /// Rows have so many keys, which stand before their values.
    ///
    /// Errors: those of [`Written::next`].
    pub fn new(runs: Vec<Written>, memory: Vec<Keyed>, keys: usize) -> Result<Self> {
        let mut merge = Self {
            heads: (0..=runs.len()).map(|_| None).collect(),
            runs,
            memory: memory.into_iter(),
            keys,
        };
        for source in 0..merge.heads.len() {
            merge.refill(source)?;
        }
        Ok(merge)
    }

    fn refill(&mut self, source: usize) -> Result<()> {
        self.heads[source] = match self.runs.get_mut(source) {
            None => self.memory.next(),
            Some(run) => run.next()?.map(|mut keys| {
                let row = keys.split_off(self.keys.min(keys.len()));
                (keys, row)
            }),
        };
        Ok(())
    }

    /// The next row.
    ///
    /// Errors: those of [`Written::next`].
    pub fn next<S: Scalar>(&mut self, by: &[SortKey<S>]) -> Result<Option<Keyed>> {
        let heads = self.heads.iter().enumerate();
        let heads = heads.filter_map(|(source, head)| Some((source, &head.as_ref()?.0)));
        let first = heads.reduce(|a, b| match compare(by, a.1, b.1) {
            Ordering::Greater => b,
            Ordering::Less | Ordering::Equal => a,
        });
        let Some((source, _)) = first else { return Ok(None) };
        let row = self.heads[source].take();
        self.refill(source)?;
        Ok(row)
    }
}
