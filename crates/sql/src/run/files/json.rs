//! JSON files: documents, whose columns are inferred as those of collections are.

use super::{CHUNK_BYTES, Part, ROW_BYTES_MAX, each, io_error, open, told};
use crate::catalog::documents::Inference;
use crate::catalog::files::{JsonForm, Source};
use crate::catalog::{Column, Table};
use crate::error::error;
use crate::types::stored;
use nestor_files::json::{Lines, Values};
use nestor_files::records::{BadRecord, Place, Records};
use nestor_model::statement::{ROW, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{RawDocBuf, Result, Value, ValueRef};
use nestor_planner::relation::chunk::ROWS;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The documents of a file.
pub(super) struct Documents {
    records: Box<dyn Records>,
    file: PathBuf,
    table: Arc<Table>,
    /// Those that it is at, each with its line.
    rows: Vec<(u64, RawDocBuf)>,
    bytes: usize,
}

fn records(source: &Source, file: &Path, form: JsonForm) -> Result<Box<dyn Records>> {
    let input = open(source, file)?;
    Ok(match form {
        JsonForm::Values => Box::new(Values::new(input).with_text_max(ROW_BYTES_MAX)),
        JsonForm::Lines => Box::new(Lines::new(input).with_text_max(ROW_BYTES_MAX)),
    })
}

/// The next document of a file with its line.
fn next(records: &mut dyn Records, file: &Path) -> Result<Option<(u64, RawDocBuf)>> {
    let failed = |bad: BadRecord| match bad.place {
        Some(Place::Line(line)) => told(error("22032", bad.reason), file, Some(line)),
        _ => io_error(&io::Error::other(bad.reason), file),
    };
    let Some(record) = records.next_record().map_err(failed)? else {
        return Ok(None);
    };
    let line = match record.place {
        Place::Line(line) => line,
        Place::Offset(_) | Place::Row(_) => 0,
    };
    let doc = RawDocBuf::validate(record.bson);
    let doc = doc.map_err(|bad| told(error("22032", bad.to_string()), file, Some(line)))?;
    Ok(Some((line, doc)))
}

/// The columns of files: what the first rows of the first of them have.
///
/// Errors: those of the system; the file is damaged, at which line.
pub(super) fn columns(source: &Source, form: JsonForm, sample: u64) -> Result<Vec<Column>> {
    let mut inference = Inference::default();
    let mut left = sample;
    for file in &source.files {
        let mut records = records(source, file, form)?;
        while left > 0 {
            let Some((_, doc)) = next(&mut *records, file)? else {
                break;
            };
            work(ROW)?;
            inference.note(doc.as_raw().as_doc());
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    // Nothing says that each document has one.
    let all = inference.columns().into_iter().map(|column| Column {
        not_null: false,
        is_key: false,
        ..column
    });
    Ok(all.collect())
}

impl Documents {
    /// The documents of a file, from the first one on.
    ///
    /// Errors: those of opening it.
    pub(super) fn open(source: &Source, file: &Path, form: JsonForm, table: &Arc<Table>) -> Result<Self> {
        Ok(Self {
            records: records(source, file, form)?,
            file: file.to_owned(),
            table: table.clone(),
            rows: Vec::new(),
            bytes: 0,
        })
    }
}

impl Part for Documents {
    fn advance(&mut self) -> Result<usize> {
        self.rows.clear();
        self.bytes = 0;
        while self.rows.len() < ROWS && self.bytes < CHUNK_BYTES {
            let Some((line, doc)) = next(&mut *self.records, &self.file)? else {
                break;
            };
            self.bytes += doc.as_bytes().len();
            self.rows.push((line, doc));
        }
        Ok(self.rows.len())
    }

    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Vector> {
        let mut out = Builder::default();
        let column = self.table.columns.get(at);
        for place in each(self.rows.len(), places) {
            let (line, doc) = &self.rows[place];
            let Some(column) = column else {
                // Behind the columns stands the document.
                out.push(Value::Document(doc.clone().into()));
                continue;
            };
            let value = doc.as_raw().get(&column.path).unwrap_or(ValueRef::Missing);
            stored::read_into(&column.ty, &value, &column.path, &mut out)
                .map_err(|error| told(error, &self.file, Some(*line)))?;
        }
        Ok(out.finish())
    }

    fn weight(&self) -> usize {
        self.bytes
    }
}
