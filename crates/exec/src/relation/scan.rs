//! Rows of collections, views and tables in memory.

use super::restrict::Restriction;
use super::twin::{Abroad, Share, Twin, together};
use super::{BoxRows, CHUNK_BYTES_MAX, Counts, Drained, Rows, Run, chunk_of_rows, row_done};
use crate::batch::Batch;
use crate::operator::{BoxOperator, Step};
use crate::row::Row;
use crate::row_batch::{Filled, ROWS_MAX, RowBatch, Wanted};
use crate::summary::{self, totals};
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{DocRef, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::relation::chunk::ROWS;
use nestor_planner::relation::explain::{Access, ColumnFigures};
use nestor_planner::relation::{Chunk, Env, Scalar, Scan, Tuple};
use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;

/// Opens the tables of a statement.
pub trait Sources<S> {
    /// Begins to read a part of a table: from 0 on, as long as [`Opened::Documents`] says that there is one more.
    ///
    /// Errors: those of its conditions; that there is no such table any more.
    fn open(&self, scan: &Scan<S>, part: usize, batch: &Batch<'_>, env: &Env<'_>) -> Result<Opened>;

    /// Begins to read those rows of a table that have one of these keys in these columns, in any order; there may be others among them. `None` where no
    /// index finds them. Rows with a null in their key have none.
    ///
    /// Errors: those of [`Sources::open`].
    fn look_up(
        &self,
        scan: &Scan<S>,
        columns: &[usize],
        keys: &[Arc<Vector>],
        batch: &Batch<'_>,
    ) -> Result<Option<Opened>>;

    /// The same for one column that has one of these numbers, in order, where that costs less than all that the conditions leave.
    ///
    /// Errors: those of [`Sources::open`].
    fn among(&self, _: &Scan<S>, _column: usize, _: &[i64], _: &Batch<'_>) -> Result<Option<Opened>> {
        Ok(None)
    }

    /// How many rows a scan has, if that can be told without looking at them.
    ///
    /// Errors: those of [`Sources::open`], and of reading.
    fn count(&self, scan: &Scan<S>, batch: &Batch<'_>, env: &Env<'_>) -> Result<Option<u64>>;

    /// What runs something on another thread with what expressions see here.
    fn abroad(&self) -> Abroad;
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
        /// They are read by chunks also when rows are wanted one by one: these are all documents, and conditions leave few of them, or a
        /// document is several rows.
        whole: bool,
    },
    /// Rows column by column.
    Columns(Box<dyn ColumnSource>),
    /// Rows in memory.
    Rows {
        /// These.
        rows: std::vec::IntoIter<Tuple>,
        /// The conditions of the scan hold of all of them.
        exact: bool,
        /// What they were read by, if that is an index.
        access: Option<Access>,
    },
}

/// Rows that are read column by column, some at a time.
pub trait ColumnSource {
    /// Goes to the next rows, [`ROWS`] at most; how many, `None` at the end.
    ///
    /// Errors: those of reading; a value is not of its column's type.
    fn advance(&mut self) -> Result<Option<usize>>;

    /// A column of the rows that it is at, or of those at `places` among them.
    ///
    /// Errors: a value is not of its column's type.
    fn column(&mut self, at: usize, places: Option<&[u32]>) -> Result<Arc<Vector>>;

    /// What it has read so far.
    fn figures(&self) -> ColumnFigures;

    /// From now on only rows are wanted that meet a restriction of a column. It may give others.
    fn restrict(&mut self, _at: usize, _to: &Restriction) {}

    /// As [`Rows::keep_extremes`], before the first rows.
    fn keep_extremes(&mut self) {}

    /// Another one over a share of the rows that are left, for the thread of a helper, which asks its share before it begins a piece of the table ([`Share::begins`]);
    /// `None` where there is too little left.
    fn twin(&mut self, _batch: &Batch<'_>, _share: &Share) -> Option<Box<dyn ColumnSource + Send>> {
        None
    }

    /// The place of the piece that it is at, as [`Rows::position`].
    fn position(&self) -> usize {
        0
    }

    /// How explain shows what it reads.
    fn access(&self) -> Access {
        Access::columns()
    }
}

/// Makes rows of documents.
pub trait Reader {
    /// The row of a document.
    ///
    /// Errors: a value is not of its column's type.
    fn read(&mut self, row: &Row) -> Result<Tuple>;

    /// Whether it looks at documents only, and not at the keys of their records.
    fn reads_documents_only(&self) -> bool;

    /// Whether rows of one document may have different values in a column.
    fn tells_apart(&self, _column: usize) -> bool {
        false
    }

    /// From now on the `first` columns are read by themselves, and the others afterwards of documents that are wanted still.
    fn split(&mut self, first: &[bool]);

    /// Whether these columns may as well be read with those of conditions: they are few, and their values small and of their types.
    fn reads_in_passing(&self, _columns: &[bool]) -> bool {
        false
    }

    /// Adds the rows of a document to columns, which are one unless it stands for the elements of an array; how many. A column of which nothing
    /// was added is null.
    ///
    /// Errors: a value is not of its column's type.
    fn read_into(&mut self, doc: DocRef<'_>, columns: &mut [Builder]) -> Result<usize>;

    /// Adds the rest of some of the rows of a document, by their numbers in it, which ascend.
    ///
    /// Errors: those of [`Reader::read_into`].
    fn read_rest(&mut self, doc: DocRef<'_>, rows: &[u32], columns: &mut [Builder]) -> Result<()>;
}

/// Rows of columns that are read in about a unit of work.
const ROWS_PER_UNIT: usize = 32;

/// Rows of the first chunk of a scan.
const FIRST_ROWS: usize = 64;

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
    /// Documents that are being made a chunk, and how many the next one may have: the first ones are small, because more may not be wanted.
    documents: RowBatch,
    rows_max: usize,
    /// Rows that a document was, about.
    rows_each: usize,
    /// The columns that are read first, when conditions are looked at here.
    first: Option<Rc<[bool]>>,
    /// These are all columns, so that documents need not be kept for the others.
    in_passing: bool,
    /// What is wanted of its rows.
    restrictions: Vec<Restricted>,
    /// Columns that are restricted are read before the others, whether or not there are conditions.
    picks: bool,
    /// Only the least and the largest values matter.
    only_extremes: bool,
    /// What of the columns was accounted for already.
    accounted: ColumnFigures,
    /// Rows that wait to be pulled one by one.
    waiting: Drained,
    /// Where several threads read, whether they go on.
    share: Option<Share>,
}

/// A restriction of a column, and how many rows it was asked for and met by.
#[derive(Clone)]
struct Restricted {
    at: usize,
    to: Restriction,
    asked: usize,
    met: usize,
    /// The source has not been told yet.
    is_new: bool,
}

/// Rows after which it is known whether a restriction is worth a look at each row: it leaves out one of so many.
const ASKED_MIN: usize = 16 * ROWS;
const MET_PART: usize = 8;

impl Restricted {
    fn pays(&self) -> bool {
        self.asked < ASKED_MIN || self.met < self.asked - self.asked / MET_PART
    }
}

impl<S> Drop for Scanned<S> {
    fn drop(&mut self) {
        self.account();
    }
}

pub(super) fn scan<S: Scalar>(scan: &Scan<S>) -> BoxRows<S> {
    Box::new(scanned(scan))
}

/// A scan whose table is open already, of whose rows only those are wanted that meet these restrictions of columns. It may give others.
pub(super) fn opened<S: Scalar>(
    scan: &Scan<S>,
    opened: Opened,
    wanted: impl Iterator<Item = (usize, Restriction)>,
    run: &Run<'_, '_, S>,
) -> BoxRows<S> {
    let counts = &run.shared.counts;
    let number = counts.nodes.as_ref().map_or(0, |nodes| nodes.current.get());
    let mut made = scanned(scan);
    made.counts = Some((counts.clone(), number));
    // Of a document that is several rows an index tells that one of them is wanted: which one is seen before the rest of it is read.
    for (at, to) in wanted {
        if matches!(&opened, Opened::Documents { reader, .. } if reader.tells_apart(at)) {
            made.restrict(at, &to);
            made.picks = true;
        }
    }
    made.opened = Some(opened);
    Box::new(made)
}

fn scanned<S: Scalar>(scan: &Scan<S>) -> Scanned<S> {
    Scanned {
        scan: scan.clone(),
        opened: None,
        part: 0,
        counts: None,
        bytes: 0,
        documents: RowBatch::new(Wanted::Documents),
        rows_max: FIRST_ROWS,
        rows_each: 1,
        first: None,
        in_passing: false,
        restrictions: Vec::new(),
        picks: false,
        only_extremes: false,
        accounted: ColumnFigures::default(),
        waiting: Drained::default(),
        share: None,
    }
}

impl<S> Scanned<S> {
    /// Adds up what the open part has read.
    fn account(&mut self) {
        if let (Some(Opened::Columns(source)), Some((counts, number))) = (&self.opened, &self.counts) {
            let figures = source.figures();
            let new = figures.since(&std::mem::replace(&mut self.accounted, figures));
            counts.read.borrow_mut().docs_examined += new.documents;
            if let Some(nodes) = &counts.nodes {
                nodes.note(*number, |ran| {
                    ran.documents += new.documents;
                    ran.bytes += new.document_bytes;
                    ran.columns.add(&new);
                    ran.access = Some(source.access());
                });
            }
        }
        if let (Some(Opened::Rows { access, .. }), Some((counts, number))) = (&mut self.opened, &self.counts)
            && let (Some(access), Some(nodes)) = (access.take(), &counts.nodes)
        {
            nodes.note(*number, |ran| ran.access = Some(access));
        }
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
        if self.counts.is_none() {
            let counts = &run.shared.counts;
            let number = counts.nodes.as_ref().map_or(0, |nodes| nodes.current.get());
            self.counts = Some((counts.clone(), number));
        }
        Ok(match &mut self.opened {
            Some(opened) => opened,
            none => {
                let few = self.restrictions.iter().filter_map(|own| match &own.to {
                    Restriction::Among(numbers) => Some((own.at, numbers.few()?)),
                    Restriction::Order(_) => None,
                });
                let fewest = few.min_by_key(|(_, numbers)| numbers.len());
                let among = match fewest.filter(|_| self.part == 0 && self.scan.order.is_empty()) {
                    Some((at, numbers)) => run.sources.among(&self.scan, at, numbers, run.batch)?,
                    None => None,
                };
                let opened = none.insert(match among {
                    Some(opened) => opened,
                    None => run.sources.open(&self.scan, self.part, run.batch, &run.env)?,
                });
                if let (true, Opened::Columns(source)) = (self.only_extremes, &mut *opened) {
                    source.keep_extremes();
                }
                if let (Some(first), Opened::Documents { reader, .. }) = (&self.first, &mut *opened) {
                    reader.split(first);
                }
                opened
            }
        })
    }
}

impl<S: Scalar> Scanned<S> {
    /// Whether the conditions hold of a row.
    fn holds(&self, row: &Tuple, env: &Env<'_>) -> Result<bool> {
        let _values = Scope::begin();
        for condition in &self.scan.conditions {
            if !condition.holds(row, env)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<S: Scalar> Scanned<S> {
    /// From now on the columns of conditions are read first, and of documents those that are restricted.
    fn split(&mut self) {
        let mut first = vec![false; self.scan.needed.len()];
        if let Some(Opened::Documents { .. }) = &self.opened {
            self.restrictions.iter().for_each(|own| first[own.at] = true);
        }
        for condition in &self.scan.conditions {
            let columns = condition.columns(first.len());
            first
                .iter_mut()
                .zip(columns)
                .for_each(|(first, is_used)| *first |= is_used);
        }
        if let Some(Opened::Documents { reader, .. }) = &mut self.opened {
            let needed = self.scan.needed.iter().zip(&first);
            let rest: Vec<bool> = needed.map(|(needed, first)| *needed && !first).collect();
            self.in_passing = reader.reads_in_passing(&rest);
            if self.in_passing {
                first.iter_mut().zip(&rest).for_each(|(first, rest)| *first |= rest);
            }
            reader.split(&first);
        }
        self.first = Some(first.into());
    }

    /// Goes on to the next part, if there is one.
    fn begin_next(&mut self, more: bool) -> bool {
        if more {
            self.account();
            self.opened = None;
            self.part += 1;
        }
        more
    }

    /// Notes how many rows some documents were.
    fn note_rows(&mut self, documents: usize, rows: usize) -> Result<()> {
        self.rows_each = rows.div_ceil(documents.max(1)).max(1);
        work(ROW * rows.saturating_sub(documents))
    }

    /// The rows of the next documents; `None` at the end. The columns that conditions look at are read first, and the others of rows of
    /// which all conditions hold.
    fn documents(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        let (rows_max, width) = (self.rows_max, self.scan.needed.len());
        self.rows_max = (rows_max * 4).min(ROWS);
        let builders = || (0..width).map(|_| Builder::default()).collect::<Vec<_>>();
        let mut columns = builders();
        let (mut rows, mut bytes) = (0, 0);
        while rows < rows_max && bytes < CHUNK_BYTES_MAX {
            let mut documents = std::mem::replace(&mut self.documents, RowBatch::new(Wanted::Documents));
            documents.clear();
            let (first, in_passing) = (self.first.clone(), self.in_passing);
            let room = ((rows_max - rows) / self.rows_each).max(1);
            let Opened::Documents { root, reader, more, .. } = self.open(run)? else {
                break;
            };
            let mut batch = run.batch.within(run.batch.op);
            let more = *more;
            if first.is_none() || in_passing {
                let mut looked_at = first.as_ref().map(|_| builders());
                let (mut read, mut found, mut own) = (0, 0, 0);
                let into = looked_at.as_mut().unwrap_or(&mut columns);
                let each = &mut |doc: DocRef<'_>| -> Result<()> {
                    read += 1;
                    own += size(doc);
                    found += reader.read_into(doc, into)?;
                    Ok(())
                };
                if let Some(filled) = root.next_documents(&mut batch, room.min(ROWS_MAX), each)? {
                    self.documents = documents;
                    self.bytes += own as u64;
                    work(ROW * read)?;
                    self.note_rows(read, found)?;
                    if let (Some(looked_at), Some(first)) = (looked_at, &first) {
                        let (kept, places) = self.settled(Chunk::of(looked_at, found), run)?;
                        let (kept, _) = self.wanted(kept, places, first);
                        let own = own / found.max(1) * kept.rows;
                        (rows, bytes) = (rows + kept.rows, bytes + own);
                        for (column, values) in columns.iter_mut().zip(&kept.columns) {
                            column.extend(values, None);
                        }
                    } else {
                        (rows, bytes) = (rows + found, bytes + own);
                    }
                    if filled == Filled::Eof && !self.begin_next(more) {
                        break;
                    }
                    continue;
                }
            }
            let filled = documents.with_room(room, |documents| root.next_batch(&mut batch, documents))?;
            work(ROW * documents.len())?;
            match first {
                None => {
                    let (bytes_before, rows_before) = (bytes, rows);
                    for row in documents.iter() {
                        bytes += size(row.doc);
                        rows += reader.read_into(row.doc, &mut columns)?;
                    }
                    self.bytes += (bytes - bytes_before) as u64;
                    self.note_rows(documents.len(), rows - rows_before)?;
                }
                Some(first) => {
                    let (mut looked_at, mut read, mut all) = (builders(), 0, 0);
                    // Where the rows of each document end.
                    let mut ends = Vec::with_capacity(documents.len());
                    for row in documents.iter() {
                        read += size(row.doc);
                        all += reader.read_into(row.doc, &mut looked_at)? as u32;
                        ends.push(all);
                    }
                    self.bytes += read as u64;
                    self.note_rows(documents.len(), all as usize)?;
                    let (found, places) = self.settled(Chunk::of(looked_at, all as usize), run)?;
                    let (found, places) = self.wanted(found, places, &first);
                    let Some(Opened::Documents { reader, .. }) = &mut self.opened else {
                        break;
                    };
                    for (column, values) in columns
                        .iter_mut()
                        .zip(&found.columns)
                        .zip(&*first)
                        .filter_map(|(pair, is_first)| is_first.then_some(pair))
                    {
                        column.extend(values, None);
                    }
                    let (mut wanted, mut from, mut own) = (places.iter().peekable(), 0, Vec::new());
                    for (row, to) in documents.iter().zip(ends) {
                        own.clear();
                        while let Some(place) = wanted.next_if(|place| **place < to) {
                            own.push(*place - from);
                        }
                        from = to;
                        if !own.is_empty() {
                            bytes += size(row.doc);
                            reader.read_rest(row.doc, &own, &mut columns)?;
                        }
                    }
                    rows += places.len();
                }
            }
            self.documents = documents;
            if filled == Filled::Eof && !self.begin_next(more) {
                break;
            }
        }
        Ok((rows > 0).then(|| Chunk::of(columns, rows)))
    }

    /// The rows of a chunk, at these places of what was read, that meet restrictions of the columns that have been read first.
    fn wanted(&mut self, mut found: Chunk, mut places: Vec<u32>, first: &[bool]) -> (Chunk, Vec<u32>) {
        for restricted in self.restrictions.iter_mut().filter(|own| first[own.at] && own.pays()) {
            restricted.asked += found.rows;
            if let Some(met) = restricted.to.places(&found.columns[restricted.at]) {
                places = met.iter().map(|met| places[*met as usize]).collect();
                found = found.gather(&met);
            }
            restricted.met += found.rows;
        }
        (found, places)
    }

    /// The next rows of a source of columns. The columns of conditions are read first, and the others for the rows of which all conditions hold.
    fn columns(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        let first = match &self.first {
            Some(first) => first.clone(),
            None => {
                self.split();
                self.first.clone().unwrap_or_default()
            }
        };
        let settles = self.scan.settles && !self.scan.conditions.is_empty();
        let needed = self.scan.needed.clone();
        loop {
            self.open(run)?;
            let Some(Opened::Columns(source)) = &mut self.opened else {
                return Ok(None);
            };
            for restricted in self.restrictions.iter_mut().filter(|own| own.is_new) {
                source.restrict(restricted.at, &restricted.to);
                restricted.is_new = false;
            }
            let is_broken = self.share.as_ref().is_some_and(Share::is_broken);
            let next = if is_broken { None } else { source.advance()? };
            let Some(rows) = next else {
                self.account();
                return Ok(None);
            };
            work(1 + rows / ROWS_PER_UNIT)?;
            let nothing = Arc::new(Vector::same(Value::Null, rows));
            let mut columns = vec![nothing; needed.len()];
            let is_first = |at: &usize| settles && first[*at];
            for at in (0..needed.len()).filter(is_first) {
                columns[at] = source.column(at, None)?;
            }
            let whole = Chunk { columns, rows };
            let (mut found, mut places) = match settles {
                true => self.settled(whole, run)?,
                false => (whole, Vec::new()),
            };
            let Some(Opened::Columns(source)) = &mut self.opened else {
                return Ok(None);
            };
            let mut is_read: Vec<bool> = (0..needed.len()).map(|at| is_first(&at)).collect();
            for restricted in self.restrictions.iter_mut().filter(|own| own.pays()) {
                let at = restricted.at;
                if found.rows > 0 && !is_read[at] {
                    let picked = (found.rows < rows).then_some(places.as_slice());
                    found.columns[at] = source.column(at, picked)?;
                    is_read[at] = true;
                }
                restricted.asked += found.rows;
                if let Some(met) = restricted.to.places(&found.columns[at]) {
                    places = match found.rows < rows {
                        true => met.iter().map(|met| places[*met as usize]).collect(),
                        false => met.clone(),
                    };
                    found = found.gather_used(&met, &|at| is_read[at]);
                }
                restricted.met += found.rows;
            }
            if found.rows == 0 {
                continue;
            }
            let picked = (found.rows < rows).then_some(places.as_slice());
            for at in (0..needed.len()).filter(|at| needed[*at] && !is_read[*at]) {
                found.columns[at] = source.column(at, picked)?;
            }
            return Ok(Some(found));
        }
    }

    /// The rows of a chunk of which all conditions hold, and their places in it.
    fn settled(&self, mut chunk: Chunk, run: &Run<'_, '_, S>) -> Result<(Chunk, Vec<u32>)> {
        let mut places: Vec<u32> = (0..chunk.rows as u32).collect();
        let _values = Scope::begin();
        for condition in &self.scan.conditions {
            if let Some(holds) = condition.places(&chunk, &run.env)? {
                chunk = chunk.gather(&holds);
                places = holds.iter().map(|at| places[*at as usize]).collect();
            }
        }
        Ok((chunk, places))
    }
}

impl<S: Scalar> Rows<S> for Scanned<S> {
    fn next_chunk(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Chunk>> {
        if let Some(rest) = self.waiting.rest() {
            return Ok(Some(rest));
        }
        let settles = self.scan.settles;
        let (settles, by_documents) = match self.open(run)? {
            Opened::Documents { reader, exact, .. } => (settles && !*exact, reader.reads_documents_only()),
            Opened::Columns(_) => return self.columns(run),
            Opened::Rows { .. } => (settles, false),
        };
        if !by_documents {
            return chunk_of_rows(self, run);
        }
        if self.first.is_none() && (self.picks || settles && !self.scan.conditions.is_empty()) {
            self.split();
        }
        self.documents(run)
    }

    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let by_chunks = match self.open(run)? {
            Opened::Documents { reader, whole, .. } => *whole && reader.reads_documents_only(),
            Opened::Columns(_) => true,
            Opened::Rows { .. } => false,
        };
        if by_chunks {
            let mut waiting = std::mem::take(&mut self.waiting);
            let row = waiting.next(|| self.next_chunk(run));
            self.waiting = waiting;
            return row;
        }
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
                Opened::Columns(_) => return Ok(None),
                Opened::Rows { rows, exact, .. } => match rows.next() {
                    Some(row) => (row, *exact, 0),
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

    fn keep_extremes(&mut self) {
        self.only_extremes = self.scan.conditions.is_empty();
    }

    fn twin(&mut self, run: &Run<'_, '_, S>, share: &Share) -> Result<Option<Twin<S>>> {
        let is_portable = !self.scan.settles || self.scan.conditions.iter().all(Scalar::is_portable);
        if !is_portable || self.only_extremes {
            return Ok(None);
        }
        let Opened::Columns(source) = self.open(run)? else {
            return Ok(None);
        };
        let Some(source) = source.twin(run.batch, share) else {
            return Ok(None);
        };
        self.share = Some(share.clone());
        let (scan, restrictions, share) = (self.scan.clone(), self.restrictions.clone(), share.clone());
        Ok(Some(Box::new(move || {
            let mut own = scanned(&scan);
            own.opened = Some(Opened::Columns(source));
            own.restrictions = restrictions;
            own.share = Some(share);
            Box::new(own)
        })))
    }

    fn position(&self) -> usize {
        match &self.opened {
            Some(Opened::Columns(source)) => source.position(),
            _ => 0,
        }
    }

    fn restrict(&mut self, place: usize, to: &Restriction) {
        if !self.scan.needed.get(place).is_some_and(|is_needed| *is_needed) {
            return;
        }
        let is_replaced = |own: &&mut Restricted| own.at == place && to.replaces(&own.to);
        match self.restrictions.iter_mut().find(is_replaced) {
            Some(own) => (own.to, own.is_new) = (to.clone(), true),
            None => self.restrictions.push(Restricted {
                at: place,
                to: to.clone(),
                asked: 0,
                met: 0,
                is_new: true,
            }),
        }
    }
}

/// Bytes of a document.
fn size(doc: DocRef<'_>) -> usize {
    match doc {
        DocRef::Raw(raw) => raw.len(),
        DocRef::Fields(fields) => fields.iter().map(|(name, value)| name.len() + value.weight()).sum(),
    }
}

/// The number of rows of a scan, once.
struct Counted<S> {
    scan: Option<Scan<S>>,
}

pub(super) fn count<S: Scalar>(scan: &Scan<S>) -> BoxRows<S> {
    Box::new(Counted {
        scan: Some(scan.clone()),
    })
}

impl<S: Scalar> Rows<S> for Counted<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let Some(scan) = self.scan.take() else {
            return Ok(None);
        };
        let rows = match run.sources.count(&scan, run.batch, &run.env)? {
            Some(rows) => rows,
            None => {
                let count = |input: &mut BoxRows<S>, run: &Run<'_, '_, S>| {
                    let mut rows = 0;
                    while let Some(chunk) = input.next_chunk(run)? {
                        rows += chunk.rows as u64;
                    }
                    Ok(rows)
                };
                let (mut input, mut rows) = (self::scan(&scan), 0);
                let own = |input: &mut BoxRows<S>, _: &Share| {
                    rows = count(input, run)?;
                    Ok(())
                };
                match together(&mut input, run, |_| (), |input, run, _, ()| count(input, run), own)? {
                    Some(helped) => rows + helped.into_iter().sum::<u64>(),
                    None => count(&mut input, run)?,
                }
            }
        };
        Ok(Some(vec![Value::Int64(i64::try_from(rows).unwrap_or(i64::MAX))]))
    }
}
