//! Files of either kind, written batch by batch or document by document.

use super::encode::{Encoder, Misfit};
use super::shape::{Shape, fields_of};
use super::{RecordBatch, SchemaRef, ipc, parquet};
use arrow_array::cast::AsArray;
use arrow_schema::{ArrowError, Schema};
use nestor_model::{RawDoc, RawDocBuf, ValueRef};
use std::io::Write;
use std::sync::Arc;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Parquet.
    Parquet,
    /// A stream of Arrow's IPC.
    Stream,
}

/// Writes batches of rows.
pub enum Writer<W: Write + Send> {
    /// To a Parquet file.
    Parquet(Box<parquet::Writer<W>>),
    /// To a stream.
    Stream(Box<ipc::Writer<W>>),
}

/// The schema of a file of columns.
pub fn schema(columns: &[(String, Shape)]) -> SchemaRef {
    Arc::new(Schema::new(fields_of(columns)))
}

impl<W: Write + Send> Writer<W> {
    /// Begins a file.
    ///
    /// Errors: those of writing.
    pub fn new(kind: Kind, output: W, schema: &SchemaRef) -> Result<Self, ArrowError> {
        Ok(match kind {
            Kind::Parquet => Self::Parquet(Box::new(parquet::Writer::new(output, schema.clone())?)),
            Kind::Stream => Self::Stream(Box::new(ipc::Writer::new(output, schema)?)),
        })
    }

    /// Adds rows.
    ///
    /// Errors: those of writing.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Parquet(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    /// Bytes that wait to be written.
    pub fn waiting(&self) -> usize {
        match self {
            Self::Parquet(writer) => writer.waiting(),
            Self::Stream(_) => 0,
        }
    }

    /// What it writes to.
    pub fn output(&mut self) -> &mut W {
        match self {
            Self::Parquet(writer) => writer.output(),
            Self::Stream(writer) => writer.output(),
        }
    }

    /// Ends the file.
    ///
    /// Errors: those of writing.
    pub fn finish(self) -> Result<W, ArrowError> {
        match self {
            Self::Parquet(writer) => writer.finish(),
            Self::Stream(writer) => writer.finish(),
        }
    }
}

/// Documents by which the columns of a file are found.
const FIRST_DOCUMENTS: usize = 1 << 16;
/// Bytes of them, about.
const FIRST_BYTES: usize = 64 << 20;
/// Documents of a batch.
const BATCH_DOCUMENTS: usize = 16 << 10;
/// Bytes of them, about.
const BATCH_BYTES: usize = 16 << 20;

/// Writes documents, whose fields are the columns. The first ones decide which there are; a later one that does not fit is an error.
pub struct Documents<W: Write + Send> {
    kind: Kind,
    output: Option<W>,
    /// The first documents, until there are enough of them.
    first: Vec<RawDocBuf>,
    shape: Shape,
    begun: Option<(SchemaRef, Encoder, Writer<W>)>,
    rows: usize,
    bytes: usize,
}

/// Why documents cannot be written.
#[derive(Debug)]
pub enum Failed {
    /// A value that its column cannot hold.
    Misfit(Misfit),
    /// Those of writing.
    File(ArrowError),
}

impl From<ArrowError> for Failed {
    fn from(failed: ArrowError) -> Self {
        Self::File(failed)
    }
}

impl<W: Write + Send> Documents<W> {
    /// Begins a file.
    pub fn new(kind: Kind, output: W) -> Self {
        Self {
            kind,
            output: Some(output),
            first: Vec::new(),
            shape: Shape::default(),
            begun: None,
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a document.
    ///
    /// Errors: those of writing; it does not fit.
    pub fn add(&mut self, doc: RawDoc<'_>) -> Result<(), Failed> {
        match &mut self.begun {
            None => {
                self.shape.note(ValueRef::Document(doc.as_doc()));
                self.bytes += doc.len();
                self.first.push(doc.to_buf());
                if self.first.len() >= FIRST_DOCUMENTS || self.bytes >= FIRST_BYTES {
                    self.begin()?;
                }
            }
            Some((_, encoder, _)) => {
                encoder.push(ValueRef::Document(doc.as_doc())).map_err(Failed::Misfit)?;
                self.rows += 1;
                self.bytes += doc.len();
                if self.rows >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES {
                    self.batch()?;
                }
            }
        }
        Ok(())
    }

    /// Bytes that wait in memory to be written, about.
    pub fn waiting(&self) -> usize {
        self.bytes + self.begun.as_ref().map_or(0, |(_, _, writer)| writer.waiting())
    }

    fn begin(&mut self) -> Result<(), Failed> {
        let shape = match std::mem::take(&mut self.shape) {
            Shape::Struct(fields) => Shape::Struct(fields).settled(),
            _ => Shape::Struct(Vec::new()),
        };
        let Shape::Struct(fields) = &shape else {
            let none = ArrowError::SchemaError("the documents have no fields".to_owned());
            return Err(Failed::File(none));
        };
        let schema = schema(fields);
        let Some(output) = self.output.take() else {
            return Ok(());
        };
        let writer = Writer::new(self.kind, output, &schema)?;
        self.begun = Some((schema, Encoder::new(&shape), writer));
        self.bytes = 0;
        for doc in std::mem::take(&mut self.first) {
            self.add(doc.as_raw())?;
        }
        Ok(())
    }

    fn batch(&mut self) -> Result<(), Failed> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if let (Some((schema, encoder, writer)), true) = (&mut self.begun, rows > 0) {
            let all = encoder.finish();
            writer.write(&RecordBatch::try_new(
                schema.clone(),
                all.as_struct().columns().to_vec(),
            )?)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// Errors: those of [`Documents::add`].
    pub fn finish(mut self) -> Result<W, Failed> {
        if self.begun.is_none() {
            self.begin()?;
        }
        self.batch()?;
        match self.begun {
            Some((_, _, writer)) => Ok(writer.finish()?),
            None => Err(Failed::File(ArrowError::SchemaError(
                "the file did not begin".to_owned(),
            ))),
        }
    }
}
