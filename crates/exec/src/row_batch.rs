//! Rows that operators hand over together.
//!
//! A consumer that looks at each row once and keeps none (a group, a count) pulls them with
//! [`Operator::next_batch`](crate::operator::Operator::next_batch) into a batch that it uses over and over. A scan then
//! neither makes a handle for each document nor copies record keys: the bytes of small documents go one after the other
//! into the batch's own buffer.
//!
//! Consumers see rows only through [`RowBatch::iter`]. One that can make something of the columns of time-series buckets asks for them
//! ([`RowBatch::take_buckets`]) and reads [`RowBatch::contents`].

use crate::columns::ColumnRows;
use crate::row::{Row, RowDoc};
use crate::row_order::RowOrder;
use nestor_model::{DocRef, RawWriter, Result, raw};
use nestor_query::env::DocMeta;
use nestor_storage::{Bytes, record};

/// Rows of a batch at most.
pub const ROWS_MAX: usize = 128;

/// Bytes of the rows of a batch at most, without the last one: a batch is no buffer that could fill memory.
const BYTES_MAX: usize = 1 << 20;

/// A larger document is handed over as a handle of where it is stored: copying it would cost more.
const COPIED_BYTES_MAX: usize = 512;

/// The fields that a consumer looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The documents with their metadata, no record keys.
    Documents,
    /// Only how many there are.
    Number,
}

/// At most [`ROWS_MAX`] rows, of not much more than a megabyte.
#[derive(Debug)]
pub struct RowBatch {
    wanted: Wanted,
    len: usize,
    /// Nothing when only the number is wanted.
    rows: Vec<Slot>,
    /// Documents that were copied, one after the other.
    bytes: Vec<u8>,
    /// Bytes of the other rows, about.
    row_bytes: usize,
    /// Most rows that may be in it.
    rows_max: usize,
    takes_buckets: bool,
    takes_columns: bool,
    order: Option<Box<RowOrder>>,
    ahead: usize,
}

#[derive(Debug)]
enum Slot {
    /// Where the document begins and ends in the batch's bytes: a copy of a stored one, or written there.
    Copied(u32, u32),
    Row(Row),
    /// A stored time-series bucket, which stands for all its measurements.
    Bucket(Row),
    Columns(ColumnRows),
}

/// What a batch has at one place.
pub enum Content<'b> {
    /// A row.
    Row(RowRef<'b>),
    /// A stored time-series bucket, which stands for all its measurements.
    Bucket(DocRef<'b>),
    /// Rows of columns.
    Columns(&'b ColumnRows),
}

/// A row of a batch.
#[derive(Clone, Copy)]
pub struct RowRef<'b> {
    /// Its document.
    pub doc: DocRef<'b>,
    /// Its metadata.
    pub meta: Option<&'b DocMeta>,
    /// The key of its record, where that is known.
    pub record: Option<&'b [u8]>,
}

/// Why a batch got no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It is full or has some rows; there may be more.
    Full,
    /// The work budget is used up.
    Pause,
    /// There are no more rows.
    Eof,
}

impl RowBatch {
    /// An empty batch for a consumer that looks at `wanted`.
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            len: 0,
            rows: Vec::new(),
            bytes: Vec::new(),
            row_bytes: 0,
            rows_max: ROWS_MAX,
            takes_buckets: false,
            takes_columns: false,
            order: None,
            ahead: 0,
        }
    }

    /// From now on for a consumer of [`RowBatch::contents`].
    pub fn take_buckets(&mut self) {
        self.takes_buckets = true;
    }

    /// Whether the consumer takes time-series buckets in the place of their measurements.
    pub fn takes_buckets(&self) -> bool {
        self.takes_buckets
    }

    /// Adds the `rows` measurements of a stored time-series bucket. Only for a consumer that takes buckets.
    pub fn push_bucket(&mut self, bucket: Row, rows: usize) {
        debug_assert!(self.takes_buckets, "the consumer would not find its rows");
        self.len += rows;
        self.row_bytes += bucket.doc.size();
        self.rows.push(Slot::Bucket(bucket));
    }

    /// From now on for a consumer of [`RowBatch::contents`] that can do with rows of columns.
    pub fn take_columns(&mut self) {
        self.takes_columns = true;
    }

    /// Whether the consumer takes rows of columns in the place of documents.
    pub fn takes_columns(&self) -> bool {
        self.takes_columns
    }

    /// From now on for a consumer that wants the first rows in an order, and looks at their records where it gets documents
    /// ([`RowRef::record`]): rows need not come in the order of these.
    pub(crate) fn set_order(&mut self, order: RowOrder) {
        self.order = Some(Box::new(order));
    }

    /// The order of which the consumer wants the first rows.
    pub(crate) fn order(&self) -> Option<&RowOrder> {
        self.order.as_deref()
    }

    /// The same, to tell more of it.
    pub(crate) fn order_mut(&mut self) -> Option<&mut RowOrder> {
        self.order.as_deref_mut()
    }

    /// Adds rows of columns. Only for a consumer that takes them.
    pub fn push_columns(&mut self, rows: ColumnRows) {
        debug_assert!(self.takes_columns, "the consumer would not find its rows");
        self.len += rows.len();
        self.rows.push(Slot::Columns(rows));
    }

    /// About so many rows of columns may come after those that are in it.
    pub fn set_ahead(&mut self, rows: usize) {
        self.ahead = rows;
    }

    /// How many may come, as far as that is known.
    pub fn ahead(&self) -> usize {
        self.ahead
    }

    /// The fields that the consumer looks at.
    pub fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// How many more rows may be added.
    pub fn room(&self) -> usize {
        match self.is_full() {
            true => 0,
            false => self.rows_max - self.len,
        }
    }

    /// Whether fewer rows are wanted than a batch may have.
    pub fn is_bounded(&self) -> bool {
        self.rows_max < ROWS_MAX
    }

    /// Does `fill`, which adds at most `room` more rows.
    pub fn with_room<R>(&mut self, room: usize, fill: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.rows_max;
        self.rows_max = before.min(self.len.saturating_add(room));
        let out = fill(self);
        self.rows_max = before;
        out
    }

    /// Forgets the rows and keeps the room.
    pub fn clear(&mut self) {
        self.len = 0;
        self.rows.clear();
        self.bytes.clear();
        self.row_bytes = 0;
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when no more rows may be added.
    pub fn is_full(&self) -> bool {
        self.len >= self.rows_max || self.row_bytes >= BYTES_MAX
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.len += 1;
        if self.wanted == Wanted::Documents {
            self.row_bytes += row.doc.size();
            self.rows.push(Slot::Row(row));
        }
    }

    /// Adds the stored document `value`, the value of a record tree; `handle` makes a handle for it.
    pub fn push_stored(&mut self, value: &[u8], handle: impl FnOnce() -> Result<Bytes>) -> Result<()> {
        self.len += 1;
        if self.wanted == Wanted::Number {
            return Ok(());
        }
        self.rows.push(if value.len() <= COPIED_BYTES_MAX {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(value);
            Slot::Copied(start as u32, self.bytes.len() as u32)
        } else {
            self.row_bytes += value.len();
            Slot::Row(RowDoc::Stored(handle()?).into())
        });
        Ok(())
    }

    /// Adds the document that `write` writes. Only for documents that somebody looks at.
    pub fn push_written(&mut self, write: impl FnOnce(&mut RawWriter)) {
        debug_assert_eq!(self.wanted, Wanted::Documents, "nobody looks at it");
        let start = self.bytes.len();
        let mut writer = RawWriter::onto(std::mem::take(&mut self.bytes));
        write(&mut writer);
        self.add_written(start, writer);
    }

    /// As [`RowBatch::push_written`], also of a document that is only counted, or nothing when `write` fails, whatever it has written.
    ///
    /// Errors: those of `write`.
    pub fn push_tried(&mut self, write: impl FnOnce(&mut RawWriter) -> Result<()>) -> Result<()> {
        let start = self.bytes.len();
        let mut writer = RawWriter::onto(std::mem::take(&mut self.bytes));
        let written = write(&mut writer);
        match (&written, self.wanted) {
            (Ok(()), Wanted::Documents) => self.add_written(start, writer),
            _ => {
                self.bytes = writer.abandon();
                self.len += usize::from(written.is_ok());
            }
        }
        written
    }

    /// Adds the document of a writer that began at `start`.
    fn add_written(&mut self, start: usize, writer: RawWriter) {
        self.bytes = writer.finish();
        self.len += 1;
        self.row_bytes += self.bytes.len() - start;
        self.rows.push(Slot::Copied(start as u32, self.bytes.len() as u32));
    }

    /// Adds so many rows of which only the number is wanted.
    pub fn push_number(&mut self, rows: usize) {
        debug_assert_eq!(self.wanted, Wanted::Number, "somebody looks at them");
        self.len += rows;
    }

    /// Keeps those of the rows from `from` on for which `keeps` returns true. Only for documents whose fields are looked at.
    pub fn retain_from(&mut self, from: usize, mut keeps: impl FnMut(RowRef<'_>) -> Result<bool>) -> Result<()> {
        debug_assert_eq!(self.wanted, Wanted::Documents, "nobody looks at them");
        let mut kept = from;
        for at in from..self.rows.len() {
            if keeps(row(&self.rows[at], &self.bytes))? {
                self.rows.swap(kept, at);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        self.len = kept;
        if kept == 0 {
            self.clear();
        }
        Ok(())
    }

    /// As [`RowBatch::retain_from`], of a batch that takes columns, from a place on: `narrow` leaves those rows of columns that are kept.
    pub(crate) fn retain_with_columns(
        &mut self,
        from: usize,
        mut keeps: impl FnMut(RowRef<'_>) -> Result<bool>,
        mut narrow: impl FnMut(&mut ColumnRows) -> Result<()>,
    ) -> Result<()> {
        let mut kept = from;
        for at in from..self.rows.len() {
            let is_kept = match &mut self.rows[at] {
                Slot::Columns(rows) => {
                    let before = rows.len();
                    narrow(rows)?;
                    self.len -= before - rows.len();
                    rows.len() > 0
                }
                _ => {
                    let keeps = keeps(row(&self.rows[at], &self.bytes))?;
                    self.len -= usize::from(!keeps);
                    keeps
                }
            };
            if is_kept {
                self.rows.swap(kept, at);
                kept += 1;
            }
        }
        self.rows.truncate(kept);
        if kept == 0 {
            self.clear();
        }
        Ok(())
    }

    /// How many places it has: one for each row, and one for rows of columns that came together.
    pub(crate) fn slots(&self) -> usize {
        self.rows.len()
    }

    /// The rows of columns at a place, if it has such.
    pub(crate) fn columns_at(&self, at: usize) -> Option<&ColumnRows> {
        match self.rows.get(at) {
            Some(Slot::Columns(rows)) => Some(rows),
            _ => None,
        }
    }

    /// The rows, in order; none when only the number is wanted. Not for a batch that takes buckets.
    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_>> {
        debug_assert!(!self.takes_buckets && !self.takes_columns, "a bucket is no row");
        self.rows.iter().map(|slot| row(slot, &self.bytes))
    }

    /// The row at a place. Not for a batch that takes buckets, nor at a place with rows of columns.
    pub fn get(&self, at: usize) -> Option<RowRef<'_>> {
        debug_assert!(
            !self.takes_buckets && self.columns_at(at).is_none(),
            "a bucket is no row"
        );
        self.rows.get(at).map(|slot| row(slot, &self.bytes))
    }

    /// The rows and buckets, in order.
    pub fn contents(&self) -> impl Iterator<Item = Content<'_>> {
        self.rows.iter().map(|slot| match slot {
            Slot::Bucket(bucket) => Content::Bucket(bucket.as_doc()),
            Slot::Columns(rows) => Content::Columns(rows),
            other => Content::Row(row(other, &self.bytes)),
        })
    }
}

fn row<'b>(slot: &'b Slot, bytes: &'b [u8]) -> RowRef<'b> {
    match slot {
        Slot::Copied(from, to) => RowRef {
            doc: record::document(&bytes[*from as usize..*to as usize]).as_doc(),
            meta: None,
            record: None,
        },
        // Whoever takes columns looks at contents.
        Slot::Columns(_) => RowRef {
            doc: raw::EMPTY.as_doc(),
            meta: None,
            record: None,
        },
        Slot::Row(row) | Slot::Bucket(row) => RowRef {
            doc: row.as_doc(),
            meta: row.meta.as_deref(),
            record: row.record.as_deref(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn documents_come_out_as_they_went_in() {
        let mut batch = RowBatch::new(Wanted::Documents);
        for round in 0..2 {
            batch.clear();
            let mut handles = 0;
            for at in 0..6 {
                let doc = doc! { "round": round, "at": at, "text": "x".repeat(at as usize * 200) }.to_raw();
                let bytes = doc.as_bytes();
                let handle = || {
                    handles += 1;
                    Ok(Bytes::copy_from(bytes))
                };
                batch.push_stored(bytes, handle).expect("a handle");
            }
            batch.push(Row::computed(doc! { "at": 6 }));
            assert_eq!((batch.len(), handles), (7, 3), "large documents are not copied");
            for (at, row) in batch.iter().enumerate() {
                let found = row.doc.get("at").map(|value| value.to_value());
                assert_eq!(
                    format!("{found:?}"),
                    format!("{:?}", Some(nestor_model::Value::Int32(at as i32)))
                );
            }
        }
    }

    #[test]
    fn a_number_needs_no_documents() {
        let mut batch = RowBatch::new(Wanted::Number);
        while !batch.is_full() {
            batch
                .push_stored(b"", || panic!("nobody looks at it"))
                .expect("counted");
        }
        assert_eq!((batch.len(), batch.iter().count()), (ROWS_MAX, 0));
    }
}
