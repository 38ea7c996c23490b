//! Rows of collections, views and tables in memory.

use super::{BoxRows, Rows, Run, row_done};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Step};
use crate::row::Row;
use nestor_model::Result;
use nestor_planner::relation::{Env, Scan, Tuple};

/// Opens the tables of a statement.
pub trait Sources<S> {
    /// Begins to read a table.
    ///
    /// Errors: those of its conditions; that there is no such table any more.
    fn open(&self, scan: &Scan<S>, batch: &Batch<'_>, env: &Env<'_>) -> Result<Opened>;
}

/// A table that is being read.
pub enum Opened {
    /// Documents, which become rows.
    Documents {
        /// Finds them.
        root: BoxOperator,
        /// Makes rows of them.
        reader: Box<dyn Reader>,
    },
    /// Rows in memory.
    Rows(std::vec::IntoIter<Tuple>),
}

/// Makes rows of documents.
pub trait Reader {
    /// The row of a document.
    ///
    /// Errors: a value is not of its column's type.
    fn read(&mut self, row: &Row) -> Result<Tuple>;
}

/// A scan.
pub(super) struct Scanned<S> {
    scan: Scan<S>,
    opened: Option<Opened>,
}

pub(super) fn scan<S: 'static>(scan: &Scan<S>) -> BoxRows<S>
where
    Scan<S>: Clone,
{
    Box::new(Scanned {
        scan: scan.clone(),
        opened: None,
    })
}

impl<S> Rows<S> for Scanned<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.opened.is_none() {
            self.opened = Some(run.sources.open(&self.scan, run.batch, &run.env)?);
        }
        match &mut self.opened {
            Some(Opened::Documents { root, reader }) => {
                let mut batch = run.batch.within(run.batch.op);
                loop {
                    match root.next(&mut batch)? {
                        Step::Row(row) => return reader.read(&row).map(Some),
                        Step::Pause => {}
                        Step::Eof => return Ok(None),
                    }
                }
            }
            Some(Opened::Rows(rows)) => {
                row_done()?;
                Ok(rows.next())
            }
            None => Ok(None),
        }
    }
}
