//! Rows of files as documents.

use super::decode::value;
use super::{ArrowError, RecordBatch, ipc, parquet};
use crate::records::{BadRecord, Place, Record, Records};
use nestor_model::{RawWriter, Value};
use std::fs::File;

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 8192;

/// The rows of a file.
pub struct Rows {
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
    batch: Option<RecordBatch>,
    /// The next row of the batch, and of the file.
    next: usize,
    row: u64,
}

fn bad(failed: impl std::fmt::Display) -> BadRecord {
    BadRecord {
        place: None,
        reason: failed.to_string(),
    }
}

impl Rows {
    /// Those of a Parquet file.
    ///
    /// Errors: it is none, or damaged.
    pub fn of_parquet(file: File) -> Result<Self, BadRecord> {
        let reader = parquet::Reader::open(file).map_err(bad)?;
        let columns: Vec<usize> = (0..reader.schema().fields().len()).collect();
        let groups = (0..reader.groups()).collect();
        let batches = reader.batches(&columns, groups, BATCH_ROWS).map_err(bad)?;
        Ok(Self::of(Box::new(batches)))
    }

    /// Those of a file or stream of Arrow's IPC.
    ///
    /// Errors: it is none, or damaged.
    pub fn of_ipc(file: File) -> Result<Self, BadRecord> {
        Ok(Self::of(Box::new(ipc::Reader::open(file, None).map_err(bad)?)))
    }

    fn of(batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>) -> Self {
        Self {
            batches,
            batch: None,
            next: 0,
            row: 0,
        }
    }
}

impl Records for Rows {
    fn next_record(&mut self) -> Result<Option<Record>, BadRecord> {
        let batch = loop {
            match &self.batch {
                Some(batch) if self.next < batch.num_rows() => break batch,
                _ => match self.batches.next() {
                    Some(batch) => (self.batch, self.next) = (Some(batch.map_err(bad)?), 0),
                    None => return Ok(None),
                },
            }
        };
        let row = self.next;
        self.next += 1;
        self.row += 1;
        let place = Place::Row(self.row);
        let mut writer = RawWriter::new();
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let value = value(field, column, row).map_err(|reason| BadRecord {
                place: Some(place),
                reason,
            })?;
            if !matches!(value, Value::Null) {
                writer.append(field.name(), value.as_ref());
            }
        }
        Ok(Some(Record {
            place,
            bson: writer.finish(),
        }))
    }
}
