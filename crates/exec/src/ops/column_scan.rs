//! COLUMN_SCAN: all documents of a collection, by columns as far as it has them.
//!
//! What rows become depends on who pulls them: rows of columns for who takes these, a number for who counts, and otherwise documents: small ones that
//! are made of the only paths that somebody looks at, or whole ones, which are read once the condition has been found to hold by
//! columns.

mod picker;
mod pieces;

use super::CollScan;
use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::columns::filter::ColumnFilter;
use crate::columns::made::Shape;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use crate::row_batch::{Filled, RowBatch, Wanted};
use crate::row_order::RowOrder;
use nestor_columns::{Found, Keys, Piece, Segment};
use nestor_model::{Document, RawWriter, Result, Str, Value, bail};
use nestor_planner::NodeKind;
use nestor_planner::explain::column_fields;
use nestor_planner::plan::{ColumnAccess, ColumnReads};
use nestor_planner::relation::explain::ColumnFigures;
use nestor_query::matcher::Filter;
use nestor_storage::{Bytes, Cursor, TreeId, record};
use picker::{ALONE, Picker};
use pieces::Picked;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Rows of columns that cost as much as a document.
const ROWS_PER_WORK: usize = 16;

/// Documents that are made of columns, and cost as much as one that is read.
const MADE_PER_WORK: usize = 4;

/// Documents that are read or made for who pulls them one by one.
const READY: usize = 64;

/// When the condition holds for more than one of so many rows, their documents are read one after the other, with those between.
const READ_PART: usize = 8;

/// Scans the records of a collection.
///
/// The position between two calls is always a key: that of the next row that is not handed over yet, or one before it. Who wants the first rows in an
/// order ([`RowOrder`]) gets segments in that of their ends; the position is what is left of the keys then.
pub struct ColumnScan {
    records: TreeId,
    access: ColumnAccess,
    /// Reads documents where there are no columns at all.
    documents: CollScan,
    filter: Option<(Filter, Arc<ColumnFilter>)>,
    /// The paths that the filter looks at, and those of the consumer.
    paths: (Vec<Str>, Arc<[Str]>),
    /// How documents are made of columns, if that is enough for the consumer.
    shape: Option<Shape>,
    state: State,
    /// Rows that are next, with the keys of their records.
    ready: VecDeque<([u8; 8], Row)>,
    counters: Counters,
    figures: ColumnFigures,
    /// A helper that looks which rows match, and of how many it is known so far, and how many of these do.
    picker: Option<Picker>,
    helpers: u64,
    looked_at: (usize, usize),
    /// The segment whose elements were asked for last, and that of these, where they are the rows.
    unwound: Option<(Arc<Segment>, Option<Arc<Segment>>)>,
}

enum State {
    /// Nothing was read.
    New,
    /// Documents are read, and nothing else.
    Documents,
    Pieces(Pieces),
    /// Saved: goes on from this key.
    From(Vec<u8>),
    /// Saved: goes on with these.
    Left(Vec<Keys>),
    Over,
}

/// The parts that are left.
#[derive(Default)]
struct Pieces {
    left: VecDeque<Piece>,
    /// Within the records of the first.
    cursor: Option<Cursor>,
    /// Rows that come before those.
    picked: Option<Picked>,
    /// They are in the order that the consumer wants, and not in that of their keys.
    are_in_order: bool,
    /// Rows of columns that are left.
    rows: usize,
}

/// When fewer than one of so many rows match, who takes them has little to do.
const FOUND_PART: usize = 8;

/// The form in which rows are handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Columns,
    Number,
    Documents,
}

impl ColumnScan {
    /// A scan of `records`; `None` when its filter cannot be one of columns.
    pub fn new(records: TreeId, plan: &nestor_planner::plan::CollScan, access: &ColumnAccess) -> Option<Self> {
        let mut paths = Vec::new();
        let filter = match &plan.filter {
            None => None,
            Some(filter) => {
                let columns = ColumnFilter::of(filter)?;
                columns.paths(&mut paths);
                Some((Filter::new(filter.clone()), Arc::new(columns)))
            }
        };
        let own: Arc<[Str]> = match &access.reads {
            ColumnReads::Documents => Arc::default(),
            ColumnReads::Paths { paths, .. } | ColumnReads::Rows(paths) => paths.clone(),
        };
        Some(Self {
            records,
            documents: CollScan::new(records, plan),
            filter,
            shape: match &access.reads {
                ColumnReads::Paths { paths, shaped } => Some(Shape::new(paths, *shaped)),
                ColumnReads::Documents | ColumnReads::Rows(_) => None,
            },
            access: access.clone(),
            paths: (paths, own),
            state: State::New,
            ready: VecDeque::new(),
            counters: Counters::default(),
            figures: ColumnFigures::default(),
            picker: None,
            helpers: 0,
            looked_at: (0, 0),
            unwound: None,
        })
    }

    /// Decides how to read on; `false` when documents are read, and nothing else.
    fn begin(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let from = match &self.state {
            State::Documents => return Ok(false),
            State::Over | State::Pieces(_) => return Ok(true),
            State::Left(keys) => {
                let all = pieces::from(&[], self.records, batch)?;
                let left = match all {
                    Some(all) => pieces::within(all, keys),
                    None => keys.iter().cloned().map(Piece::Records).collect(),
                };
                self.state = State::Pieces(Pieces::of(left));
                return Ok(true);
            }
            State::New => Vec::new(),
            State::From(key) => key.clone(),
        };
        let left = pieces::from(&from, self.records, batch)?;
        self.state = match (left, from.is_empty()) {
            (None, true) => State::Documents,
            // Without columns by now the rest are documents.
            (left, _) => State::Pieces(Pieces::of(
                left.unwrap_or_else(|| [Piece::Records(Keys { from, to: None })].into()),
            )),
        };
        Ok(!matches!(self.state, State::Documents))
    }

    fn pieces(&mut self) -> Result<&mut Pieces> {
        match &mut self.state {
            State::Pieces(pieces) => Ok(pieces),
            _ => bail!(InternalError, "a scan by columns that is nowhere"),
        }
    }

    fn has_all(&self, segment: &Segment, paths: &[Str]) -> bool {
        let mut paths = paths.iter();
        paths.all(|path| !matches!(segment.find(path.split('.')), Found::Unknown))
    }

    /// The segment of which the consumer takes rows: that of the elements of the array that is unwound, if there is one.
    fn given(&mut self, segment: &Arc<Segment>) -> Option<Arc<Segment>> {
        let Some(unwinds) = &self.access.unwinds else {
            return Some(segment.clone());
        };
        if let Some((last, unwound)) = &self.unwound
            && Arc::ptr_eq(last, segment)
        {
            return unwound.clone();
        }
        let unwound = segment.unwound(&unwinds.array, unwinds.preserves, unwinds.index.as_deref());
        let unwound = unwound.map(Arc::new);
        self.unwound = Some((segment.clone(), unwound.clone()));
        unwound
    }

    /// Whether the rows of a segment can be handed over in this form.
    fn serves(&mut self, segment: &Arc<Segment>, form: Form) -> bool {
        if form == Form::Columns && self.access.unwinds.is_some() {
            let given = self.given(segment);
            return given.is_some_and(|given| self.has_all(&given, &self.paths.1));
        }
        let has_values = || self.has_all(segment, &self.paths.1);
        match (form, &self.access.reads, &self.shape) {
            (Form::Columns, ColumnReads::Rows(_) | ColumnReads::Paths { .. }, _) => has_values(),
            (Form::Documents, ColumnReads::Paths { .. }, Some(shape)) => {
                segment.records().is_some() && shape.maker(segment).is_some()
            }
            _ => segment.records().is_some(),
        }
    }

    /// Goes on to rows that are picked, or records; what there is to hand over.
    fn advance(&mut self, batch: &mut Batch<'_>, form: Form, order: Option<&RowOrder>) -> Result<Next> {
        if let (State::Pieces(pieces), Some(order)) = (&mut self.state, order)
            && !pieces.are_in_order
        {
            pieces.put_in_order(order);
        }
        loop {
            let pieces = self.pieces()?;
            if pieces.picked.is_some() {
                return Ok(Next::Picked);
            }
            let (segment, rows, keys) = match pieces.left.front() {
                None => {
                    self.state = State::Over;
                    self.picker = None;
                    self.counters.is_eof = true;
                    return Ok(Next::Eof);
                }
                Some(Piece::Records(_)) => return Ok(Next::Records),
                Some(Piece::Columns(segment, rows, keys)) => (segment.clone(), rows.clone(), keys.clone()),
            };
            let filter = self.filter.as_ref().map(|(_, filter)| filter);
            let is_too_late = order.is_some_and(|order| order.is_too_late(&segment));
            let may_match = !is_too_late && filter.is_none_or(|filter| filter.may_match(&segment));
            // What no row can match is not read from its file.
            if may_match && filter.is_some_and(|filter| !filter.is_served(&segment)) {
                self.pieces()?.left[0] = Piece::Records(keys);
                continue;
            }
            if !batch.spend_for(1 + rows.len() / ROWS_PER_WORK)? {
                return Ok(Next::Pause);
            }
            let picked = match filter.filter(|_| may_match) {
                Some(filter) => match &self.picker {
                    Some(picker) => picker.pick(&segment, &rows, batch.op)?,
                    None => filter.pick(&segment, &rows, batch.op)?,
                },
                None => None,
            };
            let found = match (&picked, may_match) {
                (_, false) => 0,
                (None, _) => rows.len(),
                (Some(picked), _) => picked.len(),
            };
            if may_match {
                self.looked_at = (self.looked_at.0 + rows.len(), self.looked_at.1 + found);
                if order.is_none() {
                    self.have_picked(batch, form);
                }
            }
            let is_read = form == Form::Documents && self.shape.is_none();
            let is_dense = is_read && found * READ_PART > rows.len();
            if found > 0 && (is_dense || !self.serves(&segment, form)) {
                self.pieces()?.left[0] = Piece::Records(keys);
                continue;
            }
            let pieces = self.pieces()?;
            pieces.left.pop_front();
            pieces.rows = pieces.rows.saturating_sub(rows.len());
            self.counters.works += rows.len() as u64;
            self.count(&segment, &rows, (may_match, found > 0));
            if found > 0 {
                self.pieces()?.picked = Some(Picked::new(ColumnRows { segment, rows, picked }));
                return Ok(Next::Picked);
            }
        }
    }

    /// Lets a helper look which rows match, where much is left to be looked at, and little becomes of it here: what groups many rows has a use for helpers itself.
    fn have_picked(&mut self, batch: &Batch<'_>, form: Form) {
        let (rows, found) = self.looked_at;
        let is_picking = match form {
            Form::Number => true,
            Form::Columns => found * FOUND_PART <= rows,
            Form::Documents => false,
        };
        let (State::Pieces(pieces), Some((_, filter)), true) = (&self.state, &self.filter, is_picking) else {
            return;
        };
        if self.picker.is_none() && rows >= ALONE && filter.is_portable() {
            self.picker = Picker::start(filter, pieces.left.iter().skip(1), batch.op);
            self.helpers += u64::from(self.picker.is_some());
        }
    }

    /// Counts the rows of a segment: whether its filter was looked at, and whether the consumer looks at some.
    fn count(&mut self, segment: &Arc<Segment>, of: &Range<usize>, (may_match, any): (bool, bool)) {
        let rows = of.len();
        let given = if any { self.given(segment) } else { None };
        let weight =
            |segment: &Segment, paths: &[Str], rows: usize| segment.weight(paths.iter().map(Str::as_str), rows);
        let of_filter = weight(segment, &self.paths.0, rows);
        let of_consumer = match given {
            Some(given) if !Arc::ptr_eq(&given, segment) => {
                let elements = given.of_documents(of).len();
                weight(&given, &self.paths.1, elements)
            }
            _ => weight(segment, &self.paths.1, rows),
        };
        match may_match {
            true => {
                self.figures.segments += 1;
                self.figures.rows += rows as u64;
                self.figures.bytes += of_filter;
            }
            false => {
                self.figures.skipped += 1;
                self.figures.bytes_skipped += of_filter;
            }
        }
        match any {
            true => self.figures.bytes += of_consumer,
            false => self.figures.bytes_skipped += of_consumer,
        }
    }

    /// Hands over rows of a segment, as many as there is room for; whether there was work left for them.
    fn give_picked(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch, form: Form) -> Result<bool> {
        let Some(mut picked) = self.pieces()?.picked.take() else {
            return Ok(true);
        };
        match form {
            Form::Columns => {
                let rows = picked.rest();
                self.counters.advanced += rows.len() as u64;
                let given = match self.access.unwinds {
                    Some(_) => self.unwind(&rows),
                    None => Some(rows),
                };
                given.into_iter().for_each(|rows| out.push_columns(rows));
                return Ok(true);
            }
            Form::Number => {
                let count = picked.left().min(out.room());
                picked.next += count;
                self.counters.advanced += count as u64;
                out.push_number(count);
            }
            Form::Documents => {
                let count = picked.left().min(out.room());
                if !batch.spend_for(self.work(count))? {
                    self.pieces()?.picked = Some(picked);
                    return Ok(false);
                }
                match self.shape.as_ref().map(|shape| shape.maker(&picked.rows.segment)) {
                    Some(Some(maker)) => {
                        let until = picked.next + count;
                        while picked.next < until && !out.is_full() {
                            let row = picked.row(picked.next);
                            out.push_written(|writer| maker.write(row, writer));
                            picked.next += 1;
                            self.counters.advanced += 1;
                        }
                    }
                    Some(None) => return self.give_back(&picked),
                    None => {
                        for (_, document) in self.read(&mut picked, count, batch)? {
                            out.push_stored(document.as_slice(), || Ok(document.clone()))?;
                        }
                    }
                }
            }
        }
        if picked.left() > 0 {
            self.pieces()?.picked = Some(picked);
        }
        Ok(true)
    }

    /// The elements of rows as rows, if there are any.
    fn unwind(&mut self, rows: &ColumnRows) -> Option<ColumnRows> {
        let segment = self.given(&rows.segment)?;
        let all = segment.of_documents(&rows.rows);
        let picked = rows.picked.as_ref().map(|picked| {
            let of_row = |at: &u32| {
                let row = rows.rows.start + *at as usize;
                let own = segment.of_documents(&(row..row + 1));
                (own.start - all.start) as u32..(own.end - all.start) as u32
            };
            picked.iter().flat_map(of_row).collect()
        });
        let rows = ColumnRows {
            segment,
            rows: all,
            picked,
        };
        (rows.len() > 0).then_some(rows)
    }

    /// The units of work of so many rows as documents.
    fn work(&self, rows: usize) -> usize {
        match self.shape {
            Some(_) => 1 + rows / MADE_PER_WORK,
            None => rows,
        }
    }

    /// The documents of the next rows.
    fn read(&mut self, picked: &mut Picked, count: usize, batch: &Batch<'_>) -> Result<Vec<([u8; 8], Bytes)>> {
        let Some(record) = picked.rows.segment.records() else {
            bail!(InternalError, "rows of columns that are no records");
        };
        let rows = picked.next..picked.next + count;
        let keys: Vec<[u8; 8]> = rows.map(|at| record(picked.row(at))).collect();
        let asked: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        let found = batch.view.get_many(self.records, &asked)?;
        let mut out = Vec::with_capacity(count);
        for (key, found) in keys.into_iter().zip(found) {
            let Some(found) = found else {
                bail!(InternalError, "a row of columns has no record");
            };
            self.counters.docs_examined += 1;
            self.counters.advanced += 1;
            self.figures.documents += 1;
            self.figures.document_bytes += found.len() as u64;
            out.push((key, found));
        }
        picked.next += count;
        Ok(out)
    }

    /// Gets rows ready that are pulled one by one; whether there was work left for them.
    fn make_ready(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        let Some(mut picked) = self.pieces()?.picked.take() else {
            return Ok(true);
        };
        let count = picked.left().min(READY);
        if !batch.spend_for(self.work(count))? {
            self.pieces()?.picked = Some(picked);
            return Ok(false);
        }
        match &self.shape {
            None => {
                for (key, document) in self.read(&mut picked, count, batch)? {
                    let record = Bytes::copy_from(&key);
                    self.ready.push_back((key, Row::stored(record, document)));
                }
            }
            Some(shape) => {
                let (Some(maker), Some(record)) = (shape.maker(&picked.rows.segment), picked.rows.segment.records())
                else {
                    return self.give_back(&picked);
                };
                for at in picked.next..picked.next + count {
                    let (row, mut writer) = (picked.row(at), RawWriter::new());
                    maker.write(row, &mut writer);
                    let key = record(row);
                    let row = Row {
                        record: Some(Bytes::copy_from(&key)),
                        ..RowDoc::Raw(writer.into_doc()).into()
                    };
                    self.ready.push_back((key, row));
                }
                self.counters.advanced += count as u64;
                picked.next += count;
            }
        }
        if picked.left() > 0 {
            self.pieces()?.picked = Some(picked);
        }
        Ok(true)
    }

    /// Has rows read as records that were picked for who takes them in another form; true.
    #[cold]
    fn give_back(&mut self, picked: &Picked) -> Result<bool> {
        let Some(from) = picked.key() else {
            bail!(InternalError, "rows of columns that are no records");
        };
        let pieces = self.pieces()?;
        let to = pieces.position();
        pieces.left.push_front(Piece::Records(Keys { from, to }));
        Ok(true)
    }

    /// Calls `give` with each record of the first piece that matches, until that says that it is enough; the end is that of the piece.
    fn records(&mut self, batch: &mut Batch<'_>, mut give: impl FnMut(&Cursor) -> Result<bool>) -> Result<Filled> {
        let records = self.records;
        let pieces = self.pieces()?;
        let Some(Piece::Records(keys)) = pieces.left.pop_front() else {
            return Ok(Filled::Eof);
        };
        let (mut cursor, begun) = match pieces.cursor.take() {
            Some(cursor) => (cursor, true),
            None => (batch.view.cursor(records), false),
        };
        let mut more = match begun {
            true => cursor.next()?,
            false => cursor.seek(&keys.from)?,
        };
        let filled = loop {
            if !more || keys.to.as_deref().is_some_and(|to| cursor.key() >= to) {
                return Ok(Filled::Eof);
            }
            let value = cursor.value()?;
            self.counters.works += 1;
            self.counters.docs_examined += 1;
            self.figures.documents += 1;
            self.figures.document_bytes += value.len() as u64;
            let matches = match &self.filter {
                Some((filter, _)) => filter.matches(record::document(value).as_doc(), batch.op)?,
                None => true,
            };
            let is_enough = matches && give(&cursor)?;
            self.counters.advanced += u64::from(matches);
            if !batch.spend()? {
                break Filled::Pause;
            }
            if is_enough {
                break Filled::Full;
            }
            more = cursor.next()?;
        };
        // The position is what comes next, for when the cursor is given up.
        let from = [cursor.key(), &[0]].concat();
        let pieces = self.pieces()?;
        pieces.left.push_front(Piece::Records(Keys { from, to: keys.to }));
        pieces.cursor = Some(cursor);
        Ok(filled)
    }
}

/// What comes next.
enum Next {
    Picked,
    Records,
    Pause,
    Eof,
}

impl Operator for ColumnScan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if !self.begin(batch)? {
            return self.documents.next(batch);
        }
        loop {
            if let Some((_, row)) = self.ready.pop_front() {
                return Ok(Step::Row(row));
            }
            if let State::Over = self.state {
                return Ok(Step::Eof);
            }
            match self.advance(batch, Form::Documents, None)? {
                Next::Picked if self.make_ready(batch)? => {}
                Next::Picked | Next::Pause => return Ok(Step::Pause),
                Next::Eof => return Ok(Step::Eof),
                Next::Records => {
                    let mut found = None;
                    let filled = self.records(batch, |cursor| {
                        found = Some(Row::stored(Bytes::copy_from(cursor.key()), cursor.value_bytes()?));
                        Ok(true)
                    })?;
                    match (found, filled) {
                        (Some(row), _) => return Ok(Step::Row(row)),
                        (None, Filled::Pause) => return Ok(Step::Pause),
                        (None, Filled::Full | Filled::Eof) => {}
                    }
                }
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        if !self.begin(batch)? {
            return self.documents.next_batch(batch, out);
        }
        let form = match out.wanted() {
            _ if out.takes_columns() && self.access.reads != ColumnReads::Documents => Form::Columns,
            Wanted::Number => Form::Number,
            Wanted::Documents => Form::Documents,
        };
        while !out.is_full() {
            if let Some((_, row)) = self.ready.pop_front() {
                out.push(row);
                continue;
            }
            if let State::Over = self.state {
                return Ok(Filled::Eof);
            }
            let order = out.order().filter(|_| form == Form::Columns);
            match self.advance(batch, form, order)? {
                Next::Picked => {
                    if !self.give_picked(batch, out, form)? {
                        return Ok(Filled::Pause);
                    }
                    if form == Form::Columns {
                        out.set_ahead(self.pieces()?.rows);
                        return Ok(Filled::Full);
                    }
                }
                Next::Records => {
                    let with_keys = out.order().is_some();
                    let filled = self.records(batch, |cursor| {
                        match with_keys {
                            true => out.push(Row::stored(Bytes::copy_from(cursor.key()), cursor.value_bytes()?)),
                            false => out.push_stored(cursor.value()?, || Ok(cursor.value_bytes()?))?,
                        }
                        Ok(out.is_full())
                    })?;
                    if filled == Filled::Pause {
                        return Ok(Filled::Pause);
                    }
                }
                Next::Pause => return Ok(Filled::Pause),
                Next::Eof => return Ok(Filled::Eof),
            }
        }
        Ok(Filled::Full)
    }

    fn save(&mut self) {
        self.picker = None;
        self.documents.save();
        let next = self.ready.drain(..).next().map(|(key, _)| key.to_vec());
        if let State::Pieces(pieces) = &self.state
            && pieces.are_in_order
        {
            self.state = match pieces.keys() {
                keys if keys.is_empty() => State::Over,
                keys => State::Left(keys),
            };
        }
        if let State::Pieces(pieces) = &self.state {
            let from = next.or_else(|| pieces.position());
            self.state = match from {
                Some(from) => State::From(from),
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
        column_fields(&self.access, out);
        if self.helpers > 0 {
            out.push("helpers", Value::count(self.helpers));
        }
        out.push("columnSegments", Value::count(self.figures.segments));
        out.push("columnSegmentsSkipped", Value::count(self.figures.skipped));
        out.push("columnRows", Value::count(self.figures.rows));
        out.push("columnBytes", Value::count(self.figures.bytes));
        out.push("columnBytesSkipped", Value::count(self.figures.bytes_skipped));
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
