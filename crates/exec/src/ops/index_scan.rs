//! IXSCAN: the entries of an index within bounds, in the order of keys.

use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::ops::dedup::Dedup;
use crate::ops::scan_bounds::{ScanBounds, Verdict};
use crate::row::{EntryRow, Row, RowDoc};
use crate::row_batch::Filled;
use nestor_model::statement::{ROW, effort, work};
use nestor_model::{Document, Result, Value};
use nestor_planner::catalog::KeyTest;
use nestor_planner::explain::index_scan_fields;
use nestor_planner::plan::ScanPurpose;
use nestor_query::env::DocMeta;
use nestor_storage::keys::{self, Entry, EntryFormat};
use nestor_storage::{Bytes, Collection, Cursor, Index};
use std::sync::Arc;

/// Scans an index.
///
/// The position is the key of the last entry looked at; after [`Operator::save`] the scan goes on behind it. A row
/// carries its record's key and, unless [`IndexScan::records_only`], its index entry, no document.
pub struct IndexScan {
    index: Arc<Index>,
    format: Arc<EntryFormat>,
    plan: nestor_planner::plan::IndexScan,
    bounds: ScanBounds,
    cursor: Option<Cursor>,
    position: Option<Bytes>,
    jump: Vec<u8>,
    chosen: Chosen,
    /// The consumer does not look at the entries.
    records_only: bool,
    /// The entries within the bounds are neighbours, and it neither jumps from value to value nor counts.
    ends_at_bound: bool,
    counters: Counters,
}

impl IndexScan {
    /// A scan of `index`.
    pub fn new(collection: &Collection, index: Arc<Index>, plan: nestor_planner::plan::IndexScan) -> Self {
        let bounds = ScanBounds::new(&plan.bounds, &index.descending, plan.forward);
        let format = Arc::new(index.entry_format(collection));
        let may_repeat = plan.index.is_multikey();
        let ends_at_bound = bounds.is_single() && matches!(plan.purpose, ScanPurpose::Entries | ScanPurpose::Keys);
        let counters = Counters {
            is_eof: bounds.is_empty(),
            ..Counters::default()
        };
        Self {
            index,
            format,
            plan,
            bounds,
            cursor: None,
            position: None,
            jump: Vec::new(),
            chosen: Chosen {
                may_repeat,
                dedup: Dedup::default(),
            },
            records_only: false,
            ends_at_bound,
            counters,
        }
    }

    /// Gives each entry of a record, not only the first one.
    #[must_use]
    pub(crate) fn with_repeats(mut self) -> Self {
        self.chosen.may_repeat = false;
        self
    }

    /// What is scanned.
    pub(crate) fn plan(&self) -> &nestor_planner::plan::IndexScan {
        &self.plan
    }

    /// How entries are laid out.
    pub(crate) fn format(&self) -> &EntryFormat {
        &self.format
    }

    /// Its figures so far.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Leaves the entries out of the rows: for what fetches the records and looks at nothing else.
    #[must_use]
    pub fn records_only(mut self) -> Self {
        self.records_only = self.plan.key_filter.is_none();
        self
    }

    /// Gives the entries whose keys begin with `prefix`, which is a whole number of parts, to `each`, and nothing of them to the caller: as
    /// [`Operator::next`], but for many entries of which only bytes are looked at. `false` when it is not over yet.
    ///
    /// Errors: those of `each`, of storage and of the statement's interrupt.
    pub(crate) fn for_each_entry(
        &mut self,
        batch: &mut Batch<'_>,
        prefix: &[u8],
        each: &mut dyn FnMut(Entry<'_>) -> Result<()>,
    ) -> Result<bool> {
        while !self.counters.is_eof {
            if !batch.spend()? {
                return Ok(false);
            }
            self.counters.works += 1;
            effort::made();
            let found = match &mut self.cursor {
                Some(cursor) => cursor.next()?,
                None => {
                    self.counters.seeks += 1;
                    let mut cursor = batch.view.cursor(self.index.tree);
                    let found = match &self.position {
                        None => cursor.seek(prefix)?,
                        Some(key) => cursor.seek(key)? && (cursor.key() != key.as_slice() || cursor.next()?),
                    };
                    self.cursor = Some(cursor);
                    found
                }
            };
            let entry = self
                .cursor
                .as_ref()
                .filter(|cursor| found && cursor.key().starts_with(prefix));
            let Some(cursor) = entry else {
                self.counters.is_eof = true;
                self.cursor = None;
                break;
            };
            self.counters.keys_examined += 1;
            self.counters.advanced += 1;
            each(self.format.split(cursor.key(), cursor.value()?)?)?;
        }
        Ok(true)
    }

    /// Moves to the next entry to look at; `false` at the end.
    fn advance(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let forward = self.plan.forward;
        if let Some(cursor) = &mut self.cursor {
            if let ScanPurpose::Distinct { parts } = self.plan.purpose {
                // Behind every entry with the same first parts.
                let end = keys::part_bytes(cursor.key(), &self.format.descending[..parts])?;
                self.jump.clear();
                self.jump.extend_from_slice(&cursor.key()[..end]);
                if forward {
                    self.jump.push(0xFF);
                }
                self.counters.seeks += 1;
                return Ok(if forward {
                    cursor.seek(&self.jump)?
                } else {
                    cursor.seek_below(&self.jump)?
                });
            }
            return Ok(if forward { cursor.next()? } else { cursor.prev()? });
        }
        let mut cursor = batch.view.cursor(self.index.tree);
        let found = match &self.position {
            None => {
                self.counters.seeks += 1;
                let start = self.bounds.start();
                if let Some(end) = self.bounds.end() {
                    cursor.read_ahead_to(end);
                }
                match (forward, start.is_empty()) {
                    (true, true) => cursor.first()?,
                    (true, false) => cursor.seek(&start)?,
                    (false, true) => cursor.last()?,
                    (false, false) => cursor.seek_below(&start)?,
                }
            }
            Some(key) => {
                let found = if forward {
                    cursor.seek(key)?
                } else {
                    cursor.seek_back(key)?
                };
                match (found && cursor.key() == key.as_slice(), forward) {
                    (false, _) => found,
                    (true, true) => cursor.next()?,
                    (true, false) => cursor.prev()?,
                }
            }
        };
        self.cursor = Some(cursor);
        Ok(found)
    }

    /// Looks at entries from the cursor's position on until one is in, jumping where the bounds allow it.
    ///
    /// The entry behind a single range is not counted as examined: MongoDB gives its cursors that end, and figures should
    /// compare. Scans for distinct values and counts look at the entry where they end there, too.
    fn settle(&mut self) -> Result<bool> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(false);
        };
        if self.ends_at_bound {
            effort::made();
            let is_in = !self.bounds.is_beyond(cursor.key());
            self.counters.keys_examined += u64::from(is_in);
            return Ok(is_in);
        }
        loop {
            effort::made();
            let verdict = self.bounds.check(cursor.key(), &mut self.jump)?;
            self.counters.keys_examined += 1;
            match verdict {
                Verdict::In => return Ok(true),
                Verdict::Over => return Ok(false),
                Verdict::Jump => {
                    // There may be no end of it, and the caller has counted one step.
                    work(ROW)?;
                    self.counters.works += 1;
                    self.counters.seeks += 1;
                    let found = if self.plan.forward {
                        cursor.seek(&self.jump)?
                    } else {
                        cursor.seek_below(&self.jump)?
                    };
                    if !found {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// The row of the current entry, if there is one.
    fn row(&mut self) -> Result<Option<Row>> {
        let keeps_key = self.plan.purpose == ScanPurpose::Keys;
        let records_only = self.records_only;
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let entry = self.format.split(cursor.key(), cursor.value()?)?;
        if !self.chosen.has(&self.plan, &self.format, entry)? {
            return Ok(None);
        }
        let record = Bytes::copy_from(entry.record);
        if records_only && !keeps_key {
            return Ok(Some(Row {
                doc: RowDoc::Unread,
                record: Some(record),
                meta: None,
            }));
        }
        let (format, index) = (&self.format, &self.index);
        let key = EntryRow { entry, format, index }.to_key_row();
        let mut meta = None;
        if keeps_key {
            // The names of a wildcard's key are those it has in this scan.
            let names = self.plan.index.key_pattern.iter().map(|(name, _)| name.into());
            meta = Some(Box::new(DocMeta {
                index_key: Some(names.zip(key.values()?).collect()),
                ..DocMeta::default()
            }));
        }
        Ok(Some(Row {
            doc: if records_only {
                RowDoc::Unread
            } else {
                RowDoc::Key(Box::new(key))
            },
            record: Some(record),
            meta,
        }))
    }
}

/// Which of the entries within the bounds become rows.
struct Chosen {
    /// A record may have several entries within the bounds.
    may_repeat: bool,
    dedup: Dedup,
}

impl Chosen {
    /// Whether an entry does: its key passes the test, and its record was not given before.
    fn has(&mut self, plan: &nestor_planner::plan::IndexScan, format: &EntryFormat, entry: Entry<'_>) -> Result<bool> {
        if let Some(KeyTest { part, test }) = &plan.key_test {
            let value = keys::decode_part(entry.key, entry.type_bits, &format.descending, *part)?;
            // Before the record counts as seen: another entry of it may pass.
            if !plan.index.kind.may_pass(test, value.as_ref()) {
                return Ok(false);
            }
        }
        Ok(!self.may_repeat || self.dedup.is_new_record(entry.record)?)
    }
}

/// What a step of a scan came to.
pub(crate) enum Scanned<E> {
    /// An entry.
    Entry(E),
    /// The batch is spent.
    Pause,
    /// There are no more.
    Eof,
}

impl IndexScan {
    /// Moves to the next entry within the bounds.
    fn find(&mut self, batch: &mut Batch<'_>) -> Result<Scanned<()>> {
        if self.counters.is_eof {
            return Ok(Scanned::Eof);
        }
        if !batch.spend()? {
            return Ok(Scanned::Pause);
        }
        self.counters.works += 1;
        if !(self.advance(batch)? && self.settle()?) {
            self.counters.is_eof = true;
            self.cursor = None;
            return Ok(Scanned::Eof);
        }
        Ok(Scanned::Entry(()))
    }

    /// The next entry: the value of one part of its key, and its record. For who takes entries instead of rows.
    pub(crate) fn next_part(&mut self, batch: &mut Batch<'_>, part: usize) -> Result<Scanned<(Value, Bytes)>> {
        loop {
            match self.find(batch)? {
                Scanned::Entry(()) => {}
                Scanned::Pause => return Ok(Scanned::Pause),
                Scanned::Eof => return Ok(Scanned::Eof),
            }
            let Some(cursor) = &self.cursor else {
                continue;
            };
            let entry = self.format.split(cursor.key(), cursor.value()?)?;
            let value = keys::decode_part(entry.key, entry.type_bits, &self.format.descending, part)?;
            let record = Bytes::copy_from(entry.record);
            self.counters.advanced += 1;
            return Ok(Scanned::Entry((value, record)));
        }
    }
}

impl Operator for IndexScan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            match self.find(batch)? {
                Scanned::Entry(()) => {}
                Scanned::Pause => return Ok(Step::Pause),
                Scanned::Eof => return Ok(Step::Eof),
            }
            let Some(row) = self.row()? else {
                continue;
            };
            if let (Some(filter), RowDoc::Key(key)) = (&self.plan.key_filter, &row.doc) {
                if !filter.matches(key.as_nested_document()?.as_ref(), batch.op)? {
                    continue;
                }
            }
            self.counters.advanced += 1;
            return Ok(Step::Row(row));
        }
    }

    fn next_entries(
        &mut self,
        batch: &mut Batch<'_>,
        most: usize,
        each: &mut dyn FnMut(EntryRow<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        if self.plan.key_filter.is_some() || self.plan.purpose == ScanPurpose::Keys {
            return Ok(None);
        }
        let mut given = 0;
        while given < most {
            match self.find(batch)? {
                Scanned::Entry(()) => {}
                Scanned::Pause => return Ok(Some(Filled::Pause)),
                Scanned::Eof => return Ok(Some(Filled::Eof)),
            }
            let Some(cursor) = &self.cursor else {
                continue;
            };
            let (format, index) = (&self.format, &self.index);
            let entry = format.split(cursor.key(), cursor.value()?)?;
            if self.chosen.has(&self.plan, format, entry)? {
                each(EntryRow { entry, format, index })?;
                given += 1;
                self.counters.advanced += 1;
            }
        }
        Ok(Some(Filled::Full))
    }

    fn save(&mut self) {
        self.chosen.dedup.rest();
        if let Some(cursor) = self.cursor.take() {
            if cursor.is_valid() {
                self.position = Some(Bytes::copy_from(cursor.key()));
            }
        }
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(self.plan.purpose.kind(), &self.counters);
        Report {
            index: Some(&self.index),
            ..report.holding(self.chosen.dedup.memory()).explained_by(self)
        }
    }
}

impl Explain for IndexScan {
    fn plan_fields(&self, out: &mut Document) {
        index_scan_fields(&self.plan, out);
        out.push("keysExamined", Value::count(self.counters.keys_examined));
        out.push("seeks", Value::count(self.counters.seeks));
        self.chosen.dedup.plan_fields(out);
    }
}
