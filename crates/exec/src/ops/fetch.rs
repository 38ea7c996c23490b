//! FETCH: the documents of rows that are index entries.

use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Each, EachRow, Pull, Step, one_by_one};
use crate::ops::gathered::Gathered;
use crate::row::{Row, RowDoc};
use crate::row_batch::{Filled, RowBatch, Wanted};
use nestor_model::{DocRef, Document, Result, Value};
use nestor_planner::NodeKind;
use nestor_query::matcher::MatchExpr;
use nestor_storage::{Bytes, RecordReader, TreeId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Reads the record of each row and checks what the index could not.
pub type Fetch = Each<Fetching>;

/// Records that are read together, at first and at most.
const TOGETHER: std::ops::RangeInclusive<usize> = 4..=32;

/// From records of so many bytes on they are read one by one: to find them is the least of their cost.
const LARGE_BYTES: usize = 64 << 10;

/// The work of a [`Fetch`] on a row.
pub struct Fetching {
    records: RecordReader,
    filter: Option<Arc<MatchExpr>>,
    already_has: u64,
    /// Rows that the consumer will pull.
    expected: usize,
    /// How many records are read together next.
    together: usize,
    /// Rows whose records were read together, with these.
    read: VecDeque<(Row, Option<Bytes>)>,
    /// What came behind them.
    end: Option<Step>,
    /// The record of the row that was pulled, if it was read.
    found: Option<Option<Bytes>>,
    /// Keys of records that become rows of a batch.
    keys: Keys,
    /// Keys that wait to be read in their order, where rows may come in any.
    gathered: Option<Gathered>,
}

impl Fetch {
    /// Documents of `records` for the rows of `input`, if they match.
    pub fn new(input: BoxOperator, records: TreeId, filter: Option<Arc<MatchExpr>>) -> Self {
        let each = Fetching {
            records: RecordReader::new(records),
            filter,
            already_has: 0,
            expected: 0,
            together: *TOGETHER.start(),
            read: VecDeque::new(),
            end: None,
            found: None,
            keys: Keys::default(),
            gathered: None,
        };
        Self::over(input, each)
    }
}

fn is_entry(row: &Row) -> bool {
    matches!(row.doc, RowDoc::Key(_) | RowDoc::Unread) && row.record.is_some()
}

impl Fetching {
    /// Pulls up to so many rows, and reads their records. The last row may be one that needs none.
    fn read_together(&mut self, rows: usize, input: &mut BoxOperator, batch: &mut Batch<'_>) -> Result<()> {
        let mut entries = Vec::with_capacity(rows);
        while entries.len() < rows {
            match input.next(batch)? {
                Step::Row(row) if is_entry(&row) => entries.push(row),
                end => {
                    self.end = Some(end);
                    break;
                }
            }
        }
        let keys: Vec<&[u8]> = entries.iter().filter_map(|row| row.record.as_deref()).collect();
        let found = self.records.get_many(batch.view, &keys)?;
        let bytes: usize = found.iter().flatten().map(|record| record.len()).sum();
        self.together = together_next(self.together, bytes, entries.len());
        self.read.extend(entries.into_iter().zip(found));
        Ok(())
    }

    /// Adds rows in the order of their records; `None` for an input that gives no entries, before anything was pulled of it.
    fn rows_gathered(
        &mut self,
        gathered: &mut Gathered,
        input: &mut BoxOperator,
        (batch, counters): (&mut Batch<'_>, &mut Counters),
        out: &mut RowBatch,
    ) -> Result<Option<Filled>> {
        while !out.is_full() {
            if gathered.is_empty() {
                match gather(gathered, input, batch, counters)? {
                    None => return Ok(None),
                    Some((0, filled)) => return Ok(Some(filled)),
                    Some(_) => {}
                }
            }
            let before = out.len();
            let examined = gathered.read(&mut self.records, batch.view, out)?;
            counters.docs_examined += examined as u64;
            if let Some(filter) = &self.filter {
                out.retain_from(before, |row| filter.matches(row.doc, batch.op))?;
            }
            counters.advanced += (out.len() - before) as u64;
        }
        Ok(Some(Filled::Full))
    }

    /// Adds the documents of the records whose keys were noted, those that match.
    fn add_records(&mut self, batch: &Batch<'_>, counters: &mut Counters, out: &mut RowBatch) -> Result<()> {
        let before = out.len();
        let keys: Vec<&[u8]> = self.keys.iter().collect();
        let mut bytes = 0;
        self.records.look_at(batch.view, &keys, |value, handle| {
            bytes += value.len();
            out.push_stored(value, || Ok(handle()?))
        })?;
        counters.docs_examined += keys.len() as u64;
        self.together = together_next(self.together, bytes, keys.len());
        if let Some(filter) = &self.filter {
            out.retain_from(before, |row| filter.matches(row.doc, batch.op))?;
        }
        counters.advanced += (out.len() - before) as u64;
        Ok(())
    }
}

/// Gathers the records of the next entries of `input`: how many these were, and how it ended. `None` for an input that gives no entries, before anything
/// was pulled of it.
fn gather(
    gathered: &mut Gathered,
    input: &mut BoxOperator,
    batch: &mut Batch<'_>,
    counters: &mut Counters,
) -> Result<Option<(usize, Filled)>> {
    gathered.begin();
    let (room, mut entries) = (gathered.room(), 0);
    let filled = input.next_entries(batch, room, &mut |row| {
        entries += 1;
        gathered.add(row.entry.record)
    })?;
    let Some(filled) = filled else { return Ok(None) };
    counters.pulled_batch(entries, filled);
    gathered.settle();
    Ok(Some((entries, filled)))
}

/// How many records are read together after so many of them with so many bytes.
fn together_next(together: usize, bytes: usize, records: usize) -> usize {
    match bytes > LARGE_BYTES * records {
        true => 1,
        false => (together * 2).min(*TOGETHER.end()),
    }
}

/// Keys of records, one after the other.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn add(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends
            .iter()
            .map(move |to| &self.bytes[std::mem::replace(&mut from, *to)..*to])
    }
}

impl EachRow for Fetching {
    fn kind(&self) -> NodeKind {
        NodeKind::Fetch
    }

    fn pull(&mut self, input: &mut BoxOperator, batch: &mut Batch<'_>) -> Result<Step> {
        let together = self.expected.min(self.together);
        if together > 1 && self.read.is_empty() && self.end.is_none() && !batch.is_limited() {
            self.read_together(together, input, batch)?;
        }
        if let Some(key) = self.gathered.as_mut().and_then(Gathered::pop) {
            let row = Row {
                doc: RowDoc::Unread,
                record: Some(Bytes::copy_from(&key)),
                meta: None,
            };
            return Ok(Step::Row(row));
        }
        if let Some((row, found)) = self.read.pop_front() {
            self.found = Some(found);
            return Ok(Step::Row(row));
        }
        self.end.take().map_or_else(|| input.next(batch), Ok)
    }

    fn row(&mut self, mut row: Row, batch: &Batch<'_>, counters: &mut Counters) -> Result<Option<Row>> {
        if matches!(row.doc, RowDoc::Key(_) | RowDoc::Unread) {
            let Some(record) = &row.record else {
                return Ok(None);
            };
            counters.docs_examined += 1;
            let found = match self.found.take() {
                Some(found) => found,
                None => self.records.get(batch.view, record)?,
            };
            // The record may be gone since the entry was read.
            let Some(bytes) = found else {
                return Ok(None);
            };
            row.doc = RowDoc::Stored(bytes);
        } else {
            self.already_has += 1;
        }
        if let Some(filter) = &self.filter
            && !filter.matches(row.as_doc(), batch.op)?
        {
            return Ok(None);
        }
        self.expected = self.expected.saturating_sub(1);
        Ok(Some(row))
    }

    fn rows(&mut self, input: &mut BoxOperator, pull: Pull<'_, '_>, out: &mut RowBatch) -> Result<Filled> {
        let Pull { batch, counters } = pull;
        let has_plain_rows = self.read.is_empty() && self.end.is_none();
        if has_plain_rows
            && out.wanted() == Wanted::Documents
            && let Some(mut gathered) = self.gathered.take()
        {
            let filled = self.rows_gathered(&mut gathered, input, (&mut *batch, &mut *counters), out)?;
            if let Some(filled) = filled {
                self.gathered = Some(gathered);
                return Ok(filled);
            }
        }
        while has_plain_rows && !out.is_full() && (self.filter.is_none() || out.wanted() == Wanted::Documents) {
            let together = out.room().min(self.together);
            self.keys.clear();
            let keys = &mut self.keys;
            let filled = input.next_entries(batch, together, &mut |row| {
                keys.add(row.entry.record);
                Ok(())
            })?;
            let Some(filled) = filled else { break };
            counters.pulled_batch(self.keys.len(), filled);
            self.add_records(batch, counters, out)?;
            if filled != Filled::Full {
                return Ok(filled);
            }
        }
        self.expected = out.room();
        one_by_one(self, input, Pull { batch, counters }, out)
    }

    fn documents(
        &mut self,
        input: &mut BoxOperator,
        pull: Pull<'_, '_>,
        most: usize,
        each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        let Pull { batch, counters } = pull;
        let is_plain = self.read.is_empty() && self.end.is_none() && self.filter.is_none();
        let Some(mut gathered) = self.gathered.take_if(|_| is_plain) else {
            return Ok(None);
        };
        let mut left = most;
        while left > 0 {
            if gathered.is_empty() {
                match gather(&mut gathered, input, batch, counters)? {
                    // Rows are all that there is.
                    None => return Ok(None),
                    Some((0, filled)) => {
                        self.gathered = Some(gathered);
                        return Ok(Some(filled));
                    }
                    Some(_) => {}
                }
            }
            let (examined, found) = gathered.visit(&mut self.records, batch.view, left, each)?;
            counters.docs_examined += examined as u64;
            counters.advanced += found as u64;
            left -= found;
        }
        self.gathered = Some(gathered);
        Ok(Some(Filled::Full))
    }

    fn expect(&mut self, rows: usize) {
        self.expected = rows;
    }

    fn in_any_order(&mut self) {
        self.gathered.get_or_insert_default();
    }

    fn has_all_given(&self) -> bool {
        self.read.is_empty() && self.gathered.as_ref().is_none_or(Gathered::is_empty)
    }

    fn save(&mut self) {
        self.records.save();
    }

    fn plan_fields(&self, counters: &Counters, out: &mut Document) {
        if let Some(filter) = &self.filter {
            out.push("filter", filter.serialize());
        }
        out.push("docsExamined", Value::count(counters.docs_examined));
        out.push("alreadyHasObj", Value::count(self.already_has));
    }
}
