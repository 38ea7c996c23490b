//! Rows of collections, views and tables in memory.

use super::{BoxRows, Counts, Rows, Run, row_done};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Step};
use crate::row::Row;
use crate::summary::{self, totals};
use nestor_model::{Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::relation::explain::Access;
use nestor_planner::relation::{Env, Scalar, Scan, Tuple};
use std::mem::take;
use std::rc::Rc;

/// Opens the tables of a statement.
pub trait Sources<S> {
    /// Begins to read a part of a table: from 0 on, as long as [`Opened::Documents`] says that there is one more.
    ///
    /// Errors: those of its conditions; that there is no such table any more.
    fn open(&self, scan: &Scan<S>, part: usize, batch: &Batch<'_>, env: &Env<'_>) -> Result<Opened>;

    /// How many rows a scan has, if that can be told without looking at them.
    ///
    /// Errors: those of [`Sources::open`], and of reading.
    fn count(&self, scan: &Scan<S>, batch: &Batch<'_>, env: &Env<'_>) -> Result<Option<u64>>;
}

/// A table that is being read.
pub enum Opened {
    /// Documents, which become rows.
    Documents {
        /// Finds them.
        root: BoxOperator,
        /// Makes rows of them.
        reader: Box<dyn Reader>,
        /// The conditions of the scan hold of all of them.
        exact: bool,
        /// They come in the order that the scan asks for, and the parts that follow behind them.
        in_order: bool,
        /// Another part follows.
        more: bool,
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
    /// The number of the part that is open.
    part: usize,
    /// Where the counts go when it is over, and the number of the node there.
    counts: Option<(Rc<Counts>, usize)>,
    /// Bytes of the documents that were rows.
    bytes: u64,
}

impl<S> Drop for Scanned<S> {
    fn drop(&mut self) {
        self.account();
    }
}

pub(super) fn scan<S: Scalar>(scan: &Scan<S>) -> BoxRows<S> {
    Box::new(scanned(scan))
}

fn scanned<S: Scalar>(scan: &Scan<S>) -> Scanned<S> {
    Scanned {
        scan: scan.clone(),
        opened: None,
        part: 0,
        counts: None,
        bytes: 0,
    }
}

impl<S> Scanned<S> {
    /// Adds up what the open part has read.
    fn account(&mut self) {
        if let (Some(Opened::Documents { root, in_order, .. }), Some((counts, number))) = (&self.opened, &self.counts) {
            let (totals, in_order) = (totals(&**root), *in_order && !self.scan.order.is_empty());
            counts.read.borrow_mut().add(totals);
            if let Some(nodes) = &counts.nodes {
                nodes.note(*number, |ran| {
                    ran.keys += totals.keys_examined;
                    ran.documents += totals.docs_examined;
                    ran.bytes += take(&mut self.bytes);
                    ran.spilled |= totals.used_disk;
                    let mut leaves = Vec::new();
                    summary::leaves(&**root, &mut leaves);
                    ran.access = Some(Access {
                        path: summary::plan_summary(&leaves),
                        in_order,
                        index_only: summary::has_kind(&**root, NodeKind::Covered),
                    });
                });
            }
        }
    }

    fn open(&mut self, run: &Run<'_, '_, S>) -> Result<&mut Opened> {
        if self.opened.is_none() {
            let counts = &run.shared.counts;
            let number = counts.nodes.as_ref().map_or(0, |nodes| nodes.current.get());
            self.counts = Some((counts.clone(), number));
        }
        Ok(match &mut self.opened {
            Some(opened) => opened,
            none => none.insert(run.sources.open(&self.scan, self.part, run.batch, &run.env)?),
        })
    }
}

impl<S: Scalar> Scanned<S> {
    /// Whether the conditions hold of a row.
    fn holds(&self, row: &Tuple, env: &Env<'_>) -> Result<bool> {
        for condition in &self.scan.conditions {
            if !condition.holds(row, env)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<S: Scalar> Rows<S> for Scanned<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        loop {
            let (row, exact, bytes) = match self.open(run)? {
                Opened::Documents {
                    root,
                    reader,
                    exact,
                    more,
                    ..
                } => {
                    let mut batch = run.batch.within(run.batch.op);
                    match root.next(&mut batch)? {
                        Step::Row(row) => {
                            let bytes = row.doc.size() as u64;
                            (reader.read(&row)?, *exact, bytes)
                        }
                        Step::Pause => continue,
                        Step::Eof if *more => {
                            self.account();
                            self.opened = None;
                            self.part += 1;
                            continue;
                        }
                        Step::Eof => return Ok(None),
                    }
                }
                Opened::Rows(rows) => match rows.next() {
                    Some(row) => (row, false, 0),
                    None => return Ok(None),
                },
            };
            self.bytes += bytes;
            row_done()?;
            if exact || !self.scan.settles || self.holds(&row, &run.env)? {
                return Ok(Some(row));
            }
        }
    }

    fn in_order(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        if self.scan.order.is_empty() {
            return Ok(false);
        }
        Ok(matches!(self.open(run)?, Opened::Documents { in_order: true, .. }))
    }
}

/// The number of rows of a scan, once.
struct Counted<S> {
    scan: Option<Scanned<S>>,
}

pub(super) fn count<S: Scalar>(scan: &Scan<S>) -> BoxRows<S> {
    Box::new(Counted {
        scan: Some(scanned(scan)),
    })
}

impl<S: Scalar> Rows<S> for Counted<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let Some(mut scanned) = self.scan.take() else {
            return Ok(None);
        };
        let rows = match run.sources.count(&scanned.scan, run.batch, &run.env)? {
            Some(rows) => rows,
            None => {
                let mut rows = 0;
                while scanned.next(run)?.is_some() {
                    rows += 1;
                }
                rows
            }
        };
        Ok(Some(vec![Value::Int64(i64::try_from(rows).unwrap_or(i64::MAX))]))
    }
}
