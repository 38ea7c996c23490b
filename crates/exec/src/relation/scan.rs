//! Rows of collections, views and tables in memory.

use super::{BoxRows, Rows, Run, row_done};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Step};
use crate::row::Row;
use crate::summary::{Totals, totals};
use nestor_model::Result;
use nestor_planner::relation::{Env, Scan, Tuple};
use std::cell::RefCell;
use std::rc::Rc;

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
    /// Where the counts go when it is over.
    read: Option<Rc<RefCell<Totals>>>,
}

impl<S> Drop for Scanned<S> {
    fn drop(&mut self) {
        if let (Some(Opened::Documents { root, .. }), Some(read)) = (&self.opened, &self.read) {
            read.borrow_mut().add(totals(&**root));
        }
    }
}

pub(super) fn scan<S: 'static>(scan: &Scan<S>) -> BoxRows<S>
where
    Scan<S>: Clone,
{
    Box::new(Scanned {
        scan: scan.clone(),
        opened: None,
        read: None,
    })
}

impl<S> Rows<S> for Scanned<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.opened.is_none() {
            self.opened = Some(run.sources.open(&self.scan, run.batch, &run.env)?);
            self.read = Some(run.shared.read.clone());
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
