//! COLUMN_SCAN: all documents of a collection, as rows of columns as far as it has them. Who cannot take these gets the documents.

use super::CollScan;
use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::columns::filter::ColumnFilter;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row_batch::{Filled, RowBatch};
use nestor_columns::{Found, Keys, Piece, Segment};
use nestor_model::{Document, Result, Str, Value};
use nestor_planner::NodeKind;
use nestor_planner::relation::explain::ColumnFigures;
use nestor_query::matcher::Filter;
use nestor_storage::{Cursor, TreeId, record};
use std::collections::VecDeque;

/// Rows of columns that cost as much as a document.
const ROWS_PER_WORK: usize = 16;

/// Scans the records of a collection.
///
/// A piece of columns is handed over as a whole, so that the position between two calls is always a key.
pub struct ColumnScan {
    records: TreeId,
    /// Reads documents for who takes no columns, and where there are none.
    documents: CollScan,
    filter: Option<(Filter, ColumnFilter)>,
    /// All that the consumer and the filter look at.
    paths: Vec<Str>,
    state: State,
    counters: Counters,
    figures: ColumnFigures,
}

enum State {
    /// Nothing was read.
    New,
    /// Documents are read, and nothing else.
    Documents,
    /// The pieces that are left, and a cursor within the records of the first.
    Pieces(VecDeque<Piece>, Option<Cursor>),
    /// Saved: goes on from this key.
    From(Vec<u8>),
    Over,
}

impl ColumnScan {
    /// A scan of `records` for a consumer of these paths; `None` when its filter cannot be one of columns.
    pub fn new(records: TreeId, plan: &nestor_planner::plan::CollScan, paths: &[Str]) -> Option<Self> {
        let mut paths = paths.to_vec();
        let filter = match &plan.filter {
            None => None,
            Some(filter) => {
                let columns = ColumnFilter::of(filter)?;
                columns.paths(&mut paths);
                Some((Filter::new(filter.clone()), columns))
            }
        };
        Some(Self {
            records,
            documents: CollScan::new(records, plan),
            filter,
            paths,
            state: State::New,
            counters: Counters::default(),
            figures: ColumnFigures::default(),
        })
    }

    /// The pieces from a key on; `None` when there are no columns.
    fn pieces(&self, from: &[u8], batch: &Batch<'_>) -> Result<Option<VecDeque<Piece>>> {
        let Some(columns) = batch.columns else {
            return Ok(None);
        };
        let Some(reading) = columns.read(batch.view, self.records)? else {
            return Ok(None);
        };
        let mut pieces = VecDeque::from(reading.pieces);
        let keys = |piece: &Piece| match piece {
            Piece::Columns(_, _, keys) | Piece::Records(keys) => keys.clone(),
        };
        while let Some(first) = pieces.front() {
            let Keys { from: begin, to } = keys(first);
            if to.as_deref().is_some_and(|to| to <= from) {
                pieces.pop_front();
                continue;
            }
            if begin.as_slice() < from {
                pieces[0] = Piece::Records(Keys {
                    from: from.to_vec(),
                    to,
                });
            }
            break;
        }
        Ok(Some(pieces))
    }

    fn has_all(&self, segment: &Segment) -> bool {
        let mut paths = self.paths.iter();
        paths.all(|path| !matches!(segment.find(path.split('.')), Found::Unknown))
    }

    /// Hands over what is next.
    fn fill(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        while !out.is_full() {
            let State::Pieces(pieces, cursor) = &mut self.state else {
                return Ok(Filled::Eof);
            };
            match pieces.front() {
                None => {
                    self.state = State::Over;
                    self.counters.is_eof = true;
                    return Ok(Filled::Eof);
                }
                Some(Piece::Records(keys)) => {
                    let keys = keys.clone();
                    let (mut own, begun) = match cursor.take() {
                        Some(cursor) => (cursor, true),
                        None => (batch.view.cursor(self.records), false),
                    };
                    let filled = self.records(batch, out, (&mut own, begun), &keys)?;
                    let State::Pieces(pieces, cursor) = &mut self.state else {
                        return Ok(Filled::Eof);
                    };
                    match filled {
                        Filled::Eof => {
                            pieces.pop_front();
                        }
                        // The position is what comes next, for when the cursor is given up.
                        filled => {
                            let from = match own.is_valid() {
                                true => [own.key(), &[0]].concat(),
                                false => keys.from,
                            };
                            pieces[0] = Piece::Records(Keys { from, to: keys.to });
                            *cursor = own.is_valid().then_some(own);
                            return Ok(filled);
                        }
                    }
                }
                Some(Piece::Columns(segment, rows, keys)) => {
                    let (segment, rows, keys) = (segment.clone(), rows.clone(), keys.clone());
                    let filter = self.filter.as_ref().map(|(_, filter)| filter);
                    let may_match = filter.is_none_or(|filter| filter.may_match(&segment));
                    // What no row can match is not read from its file.
                    if may_match && !self.has_all(&segment) {
                        let State::Pieces(pieces, _) = &mut self.state else {
                            return Ok(Filled::Eof);
                        };
                        pieces[0] = Piece::Records(keys);
                        continue;
                    }
                    if !batch.spend_for(1 + rows.len() / ROWS_PER_WORK)? {
                        return Ok(Filled::Pause);
                    }
                    if let State::Pieces(pieces, _) = &mut self.state {
                        pieces.pop_front();
                    }
                    self.counters.works += rows.len() as u64;
                    let filter = self.filter.as_ref().map(|(_, filter)| filter);
                    if !may_match {
                        self.figures.skipped += 1;
                        continue;
                    }
                    self.figures.segments += 1;
                    self.figures.rows += rows.len() as u64;
                    let picked = match filter {
                        Some(filter) => filter.pick(&segment, &rows, batch.op)?,
                        None => None,
                    };
                    let rows = ColumnRows { segment, rows, picked };
                    self.counters.advanced += rows.len() as u64;
                    if rows.len() > 0 {
                        out.push_columns(rows);
                        return Ok(Filled::Full);
                    }
                }
            }
        }
        Ok(Filled::Full)
    }

    /// Hands over records of a piece; the end is that of the piece.
    fn records(
        &mut self,
        batch: &mut Batch<'_>,
        out: &mut RowBatch,
        (cursor, begun): (&mut Cursor, bool),
        keys: &Keys,
    ) -> Result<Filled> {
        let mut more = match begun {
            true => cursor.next()?,
            false => cursor.seek(&keys.from)?,
        };
        loop {
            if !more || keys.to.as_deref().is_some_and(|to| cursor.key() >= to) {
                return Ok(Filled::Eof);
            }
            let value = cursor.value()?;
            self.counters.works += 1;
            self.counters.docs_examined += 1;
            let matches = match &self.filter {
                Some((filter, _)) => filter.matches(record::document(value).as_doc(), batch.op)?,
                None => true,
            };
            if matches {
                self.counters.advanced += 1;
                out.push_stored(value, || Ok(cursor.value_bytes()?))?;
            }
            if !batch.spend()? {
                return Ok(Filled::Pause);
            }
            if out.is_full() {
                return Ok(Filled::Full);
            }
            more = cursor.next()?;
        }
    }
}

impl Operator for ColumnScan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        self.state = State::Documents;
        self.documents.next(batch)
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        let from = match &self.state {
            State::Documents => return self.documents.next_batch(batch, out),
            State::Over => return Ok(Filled::Eof),
            State::Pieces(..) => return self.fill(batch, out),
            State::New if !out.takes_columns() => None,
            State::New => Some(Vec::new()),
            State::From(key) => Some(key.clone()),
        };
        let pieces = match &from {
            Some(from) => self.pieces(from, batch)?,
            None => None,
        };
        self.state = match (pieces, from) {
            (Some(pieces), _) => State::Pieces(pieces, None),
            // The columns are gone; the rest are documents.
            (None, Some(from)) if !from.is_empty() => {
                State::Pieces([Piece::Records(Keys { from, to: None })].into(), None)
            }
            (None, _) => State::Documents,
        };
        self.next_batch(batch, out)
    }

    fn save(&mut self) {
        self.documents.save();
        if let State::Pieces(pieces, _) = &self.state {
            self.state = match pieces.front() {
                Some(Piece::Columns(_, _, keys) | Piece::Records(keys)) => State::From(keys.from.clone()),
                None => State::Over,
            };
        }
    }

    fn report(&self) -> Report<'_> {
        match self.state {
            State::Documents => self.documents.report(),
            _ => Report::new(NodeKind::ColumnScan, &self.counters).explained_by(self),
        }
    }
}

impl Explain for ColumnScan {
    fn plan_fields(&self, out: &mut Document) {
        if let Some((filter, ..)) = &self.filter {
            out.push("filter", filter.expr().serialize());
        }
        out.push("direction", "forward");
        out.push("columnSegments", Value::count(self.figures.segments));
        out.push("columnSegmentsSkipped", Value::count(self.figures.skipped));
        out.push("columnRows", Value::count(self.figures.rows));
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
