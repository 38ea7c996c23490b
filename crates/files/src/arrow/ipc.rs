//! Arrow's IPC: files (Feather's second version) and streams.

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

/// What a file begins with that is no stream.
const FILE_MAGIC: &[u8; 6] = b"ARROW1";

/// Writes batches of rows as a stream.
pub struct Writer<W: Write>(StreamWriter<W>);

impl<W: Write> Writer<W> {
    /// Begins a stream.
    ///
    /// Errors: those of writing.
    pub fn new(output: W, schema: &Schema) -> Result<Self, ArrowError> {
        StreamWriter::try_new(output, schema).map(Self)
    }

    /// Adds rows.
    ///
    /// Errors: those of writing.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.0.write(batch)
    }

    /// What it writes to.
    pub fn output(&mut self) -> &mut W {
        self.0.get_mut()
    }

    /// Ends the stream.
    ///
    /// Errors: those of writing.
    pub fn finish(mut self) -> Result<W, ArrowError> {
        self.0.finish()?;
        self.0.into_inner()
    }
}

/// Batches of a file or a stream, whichever it is.
pub enum Reader<R: Read + Seek> {
    /// A file.
    File(Box<FileReader<BufReader<R>>>),
    /// A stream.
    Stream(Box<StreamReader<BufReader<R>>>),
}

impl<R: Read + Seek> Reader<R> {
    /// Begins to read; `columns` are places in the schema, nothing for all.
    ///
    /// Errors: it is neither, or damaged; those of reading.
    pub fn open(mut input: R, columns: Option<Vec<usize>>) -> Result<Self, ArrowError> {
        let mut magic = Vec::new();
        input.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut magic)?;
        input.seek(SeekFrom::Start(0))?;
        let input = BufReader::new(input);
        Ok(match magic == FILE_MAGIC {
            true => Self::File(Box::new(FileReader::try_new(input, columns)?)),
            false => Self::Stream(Box::new(StreamReader::try_new(input, columns)?)),
        })
    }

    /// Its columns, as far as they are read.
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::File(reader) => reader.schema(),
            Self::Stream(reader) => reader.schema(),
        }
    }
}

impl<R: Read + Seek> Iterator for Reader<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::File(reader) => reader.next(),
            Self::Stream(reader) => reader.next(),
        }
    }
}
