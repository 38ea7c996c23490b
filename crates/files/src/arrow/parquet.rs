//! Parquet files.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::Write;

/// Rows of a row group: what is passed over as a whole when its statistics say so.
pub const GROUP_ROWS: usize = 122_880;
/// Bytes of a row group that wait in memory at most, about.
const GROUP_BYTES: usize = 64 << 20;

/// Writes batches of rows to a file.
pub struct Writer<W: Write + Send>(ArrowWriter<W>);

impl<W: Write + Send> Writer<W> {
    /// Begins a file.
    ///
    /// Errors: those of writing.
    pub fn new(output: W, schema: SchemaRef) -> Result<Self, ArrowError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_created_by(format!("nestor {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self(ArrowWriter::try_new(output, schema, Some(properties))?))
    }

    /// Adds rows.
    ///
    /// Errors: those of writing.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.0.write(batch)?;
        if self.0.in_progress_size() > GROUP_BYTES {
            self.0.flush()?;
        }
        Ok(())
    }

    /// Bytes of the row group that waits to be written.
    pub fn waiting(&self) -> usize {
        self.0.memory_size()
    }

    /// What it writes to.
    pub fn output(&mut self) -> &mut W {
        self.0.inner_mut()
    }

    /// Ends the file.
    ///
    /// Errors: those of writing.
    pub fn finish(self) -> Result<W, ArrowError> {
        Ok(self.0.into_inner()?)
    }
}

/// A file that is being read.
pub struct Reader {
    builder: ParquetRecordBatchReaderBuilder<File>,
}

impl Reader {
    /// Reads what a file says of itself.
    ///
    /// Errors: it is no Parquet file, or damaged.
    pub fn open(file: File) -> Result<Self, ParquetError> {
        Ok(Self {
            builder: ParquetRecordBatchReaderBuilder::try_new(file)?,
        })
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// Row groups that it has.
    pub fn groups(&self) -> usize {
        self.builder.metadata().num_row_groups()
    }

    /// The least and the greatest value of a column in each row group, null where that is not known; `None` of columns without statistics. Texts may
    /// have been cut, so that the least is less and the greatest is greater. NaN does not count.
    pub fn ranges(&self, column: &str) -> Option<(ArrayRef, ArrayRef)> {
        let metadata = self.builder.metadata();
        let converter = StatisticsConverter::try_new(column, self.schema(), self.builder.parquet_schema()).ok()?;
        let least = converter.row_group_mins(metadata.row_groups()).ok()?;
        let most = converter.row_group_maxes(metadata.row_groups()).ok()?;
        Some((least, most))
    }

    /// Reads some columns, as places in the schema and in their order there, of some row groups.
    ///
    /// Errors: the file is damaged.
    pub fn batches(
        self,
        columns: &[usize],
        groups: Vec<usize>,
        rows: usize,
    ) -> Result<ParquetRecordBatchReader, ParquetError> {
        let mask = ProjectionMask::roots(self.builder.parquet_schema(), columns.iter().copied());
        self.builder
            .with_projection(mask)
            .with_row_groups(groups)
            .with_batch_size(rows)
            .build()
    }
}
