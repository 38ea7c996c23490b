//! `$unwind`: one row per element of an array.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use crate::row_batch::{Filled, RowBatch, RowRef, Wanted};
use nestor_model::{DocRef, RawDoc, Result};
use nestor_planner::NodeKind;
use nestor_query::env::DocMeta;
use nestor_query::stage::{Splice, Unwind, Unwound};
use std::sync::Arc;

/// Unwinds each row.
pub(super) struct UnwindOp {
    input: BoxOperator,
    unwind: Arc<Unwind>,
    /// The rest of the last row.
    pending: Option<Unwound>,
    meta: Option<Box<DocMeta>>,
    /// Rows that were pulled together, those up to `at` unwound.
    rows: RowBatch,
    at: usize,
    /// The rest of the row at `at`.
    splice: Option<Splice>,
    /// What came behind these rows.
    behind: Option<Filled>,
    counters: Counters,
}

impl UnwindOp {
    pub(super) fn new(input: BoxOperator, unwind: Arc<Unwind>) -> Self {
        Self {
            input,
            unwind,
            pending: None,
            meta: None,
            rows: RowBatch::new(Wanted::Documents),
            at: 0,
            splice: None,
            behind: None,
            counters: Counters::default(),
        }
    }

    fn start(&mut self, doc: RowDoc, meta: Option<Box<DocMeta>>) {
        self.pending = Some(self.unwind.start(doc.into_document()));
        self.meta = meta;
    }

    /// The next document of the rest of the last row.
    fn of_pending(&mut self) -> Option<Row> {
        let doc = self.pending.as_mut().and_then(|unwound| self.unwind.next(unwound));
        if doc.is_none() {
            self.pending = None;
        }
        let doc = RowDoc::Owned(doc?);
        let meta = self.meta.clone();
        let record = None;
        Some(Row { doc, record, meta })
    }

    /// Gives documents of the row at `at`, which is bytes.
    fn spliced(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let (Some(splice), Some(doc)) = (&mut self.splice, self.rows.get(self.at).and_then(bytes)) else {
            return Ok(Filled::Full);
        };
        while !splice.is_done() {
            if out.is_full() {
                return Ok(Filled::Full);
            }
            // A long array is much work for one row of the input.
            if !batch.spend()? {
                return Ok(Filled::Pause);
            }
            self.counters.advanced += 1;
            match out.wanted() {
                Wanted::Documents => out.push_written(|writer| splice.write(doc, writer)),
                Wanted::Number => {
                    splice.skip(doc);
                    out.push_number(1);
                }
            }
        }
        self.splice = None;
        self.at += 1;
        Ok(Filled::Full)
    }

    /// The next row where some were pulled together.
    fn next_of_rows(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let mut one = RowBatch::new(Wanted::Documents);
        let filled = one.with_room(1, |one| self.next_batch(batch, one))?;
        let row = one.get(0).map(|row| Row {
            doc: RowDoc::Owned(row.doc.to_document()),
            record: None,
            meta: row.meta.cloned().map(Box::new),
        });
        Ok(match (row, filled) {
            (Some(row), _) => Step::Row(row),
            (None, Filled::Eof) => Step::Eof,
            (None, _) => Step::Pause,
        })
    }

    /// Begins with the row at `at`.
    fn start_at(&mut self) {
        let Some(row) = self.rows.get(self.at) else {
            return;
        };
        self.splice = bytes(row).and_then(|doc| self.unwind.splice(doc));
        if self.splice.is_none() {
            let (doc, meta) = (RowDoc::Owned(row.doc.to_document()), row.meta.cloned().map(Box::new));
            self.start(doc, meta);
            self.at += 1;
        }
    }
}

/// The bytes of a row that is nothing else.
fn bytes(row: RowRef<'_>) -> Option<RawDoc<'_>> {
    match row.doc {
        DocRef::Raw(raw) if row.meta.is_none() => Some(raw),
        _ => None,
    }
}

impl Operator for UnwindOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if self.pending.is_none() && self.at < self.rows.slots() {
                return self.next_of_rows(batch);
            }
            if self.pending.is_some() {
                // A long array is much work for one row of the input.
                if !batch.spend()? {
                    return Ok(Step::Pause);
                }
                if let Some(row) = self.of_pending() {
                    self.counters.advanced += 1;
                    return Ok(Step::Row(row));
                }
            }
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.start(row.doc, row.meta),
                end => return Ok(self.counters.gave(end)),
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        while !out.is_full() {
            if self.pending.is_some() {
                if !batch.spend()? {
                    return Ok(Filled::Pause);
                }
                if let Some(row) = self.of_pending() {
                    self.counters.advanced += 1;
                    out.push(row);
                }
            } else if self.splice.is_some() {
                if self.spliced(batch, out)? == Filled::Pause {
                    return Ok(Filled::Pause);
                }
            } else if let Some(rows) = self.rows.columns_at(self.at) {
                // The source has unwound them.
                self.counters.advanced += rows.len() as u64;
                out.push_columns(rows.clone());
                out.set_ahead(self.rows.ahead());
                self.at += 1;
            } else if self.at < self.rows.slots() {
                self.start_at();
            } else if let Some(behind) = self.behind.take() {
                self.counters.is_eof |= behind == Filled::Eof;
                return Ok(behind);
            } else {
                self.at = 0;
                self.rows.clear();
                if out.takes_columns() {
                    self.rows.take_columns();
                }
                // With fewer rows wanted than a batch has, no more are read than are needed.
                let room = if out.is_bounded() { 1 } else { out.room() };
                let filled = self.rows.with_room(room, |rows| self.input.next_batch(batch, rows))?;
                self.counters.pulled_batch(self.rows.len(), filled);
                self.behind = (filled != Filled::Full).then_some(filled);
            }
        }
        Ok(Filled::Full)
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Unwind, &self.counters).over(&*self.input)
    }
}
