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
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

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

/// A row, and all that `next` gives behind it, in a file.
///
/// Errors: those of [`file()`], of `next` and of files.
pub(super) fn rest<S>(
    first: Tuple,
    mut next: impl FnMut() -> Result<Option<Tuple>>,
    run: &Run<'_, '_, S>,
) -> Result<Written> {
    let mut others = file(run)?;
    others.push(first)?;
    while let Some(row) = next()? {
        others.push(row)?;
    }
    others.read(run)
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

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file with all rows; what was written is noted of the node that is asked for a row.
    ///
    /// Errors: those of the file.
    pub fn finish<S>(self, run: &Run<'_, '_, S>) -> Result<ScratchFile> {
        if let Some(nodes) = &run.shared.counts.nodes {
            let mut figures = Spilled::default();
            figures.add(self.rows, self.bytes);
            nodes.note_spilled(figures);
        }
        self.out.into_inner().map_err(|e| spill::io_error(e.into_error()))
    }

    /// The rows from the first on. Errors as those of [`Writing::finish`].
    pub fn read<S>(self, run: &Run<'_, '_, S>) -> Result<Written> {
        let rows = self.rows;
        let mut written = Written {
            file: Reading::Later(self.finish(run)?),
            rows,
            left: 0,
        };
        written.rewind()?;
        Ok(written)
    }
}

/// Rows that were written.
pub(super) struct Written {
    file: Reading,
    rows: u64,
    left: u64,
}

/// A file that waits has no buffer.
enum Reading {
    Later(ScratchFile),
    Now(BufReader<ScratchFile>),
    /// It could not be read.
    Lost,
}

impl Written {
    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether all have been read.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Goes back to the first row.
    ///
    /// Errors: those of the file.
    pub fn rewind(&mut self) -> Result<()> {
        let mut file = match std::mem::replace(&mut self.file, Reading::Lost) {
            Reading::Later(file) => file,
            Reading::Now(reader) => reader.into_inner(),
            Reading::Lost => return Err(lost()),
        };
        file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
        self.file = Reading::Later(file);
        self.left = self.rows;
        Ok(())
    }

    /// The next row.
    ///
    /// Errors: those of the file and of the interrupt.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.file = match std::mem::replace(&mut self.file, Reading::Lost) {
            Reading::Later(file) => Reading::Now(BufReader::with_capacity(BUFFER_BYTES, file)),
            other => other,
        };
        let Reading::Now(file) = &mut self.file else {
            return Err(lost());
        };
        read_row(file).map(Some)
    }
}

/// The next row of a file.
///
/// Errors: those of the file and of the interrupt.
pub(super) fn read_row(file: &mut impl Read) -> Result<Vec<Value>> {
    let row = spill::read_document(file)?;
    match row.as_raw().get("") {
        Some(ValueRef::Array(values)) => Ok(values.iter().map(|value| value.to_value()).collect()),
        _ => Err(Error::new(
            ErrorCode::DataCorruptionDetected,
            "a row of a temporary file has no values",
        )),
    }
}

fn lost() -> Error {
    Error::new(ErrorCode::FileStreamFailed, "a temporary file could not be read before")
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
