//! The first rows in an order, by columns: of those that are not among them no document is read.
//!
//! Rows of columns are compared by the values at the paths of the sort. What is among the first as far as the rows before tell is kept with the key of its record, and
//! the documents are read once the rows are known, or before the operator pauses: later the view may be another. Of rows that were computed documents are made at once.
//!
//! The scan is told what is wanted ([`RowOrder`]), so that segments with nothing of it are passed over. Rows come in the order of their segments' ends then, and of rows
//! with equal sort keys those come first whose records do.

use super::{Sort, Sortable, State};
use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::columns::fields::column;
use crate::columns::made::Shape;
use crate::leading::{leading, rank};
use crate::row::{Row, RowDoc};
use crate::row_batch::{Content, Filled, RowBatch, Wanted};
use crate::row_order::RowOrder;
use nestor_columns::{Column, Places, Values};
use nestor_model::statement::{ROW, work};
use nestor_model::{Result, Str, ValueRef, bail};
use nestor_query::sort::{SortBy, SortSpec};
use nestor_storage::{Bytes, TreeId, record};

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 16;

/// With more rows wanted than these documents are sorted.
pub(crate) const ROWS_MAX: u64 = 10_000;

/// The paths that a sort looks at, if columns can have all of it.
pub(crate) fn paths_of(spec: &SortSpec) -> Option<Vec<Str>> {
    let path = |by: &SortBy| match by {
        SortBy::Path(path) => Some(Str::from(path.as_str())),
        SortBy::Meta(_) => None,
    };
    spec.parts().iter().map(|part| path(&part.by)).collect()
}

/// How a sort takes rows of columns.
pub(super) struct ByColumns {
    /// Where the documents of rows are; `None` where rows were computed.
    records: Option<TreeId>,
    paths: Vec<Str>,
    rows: RowBatch,
    /// There may be rows whose documents have not been read.
    unread: bool,
}

impl ByColumns {
    pub(super) fn of(records: Option<TreeId>, spec: &SortSpec) -> Option<Self> {
        let mut rows = RowBatch::new(Wanted::Documents);
        rows.take_columns();
        rows.set_order(RowOrder::of(spec)?);
        Some(Self {
            records,
            paths: paths_of(spec)?,
            rows,
            unread: false,
        })
    }
}

/// What a row has, as sorts see it.
fn value<'c>(column: Option<&'c Column>, row: usize) -> ValueRef<'c> {
    match column.map(|column| column.value(row)) {
        None | Some(ValueRef::Missing) => ValueRef::Null,
        Some(value) => value,
    }
}

impl Sort {
    /// Takes the input in; `false` when the work has to pause.
    pub(super) fn collect(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        while let State::Collect { .. } = self.state
            && let Some(mut own) = self.columns.take()
        {
            own.rows.clear();
            if let (Some(order), Some((worst, _))) = (own.rows.order_mut(), self.worst()) {
                order.set_last(worst);
            }
            let filled = self.input.next_batch(batch, &mut own.rows)?;
            for content in own.rows.contents() {
                match content {
                    Content::Columns(rows) => {
                        own.unread |= self.add_columns(rows, &own.paths)?;
                        if own.records.is_none() && self.kept.bytes() > batch.memory_bytes_max {
                            self.spill(batch)?;
                        }
                    }
                    Content::Row(row) => {
                        // Rows may be spilled.
                        if std::mem::take(&mut own.unread) {
                            self.read(own.records, batch)?;
                        }
                        let row = Row {
                            record: row.record.map(Bytes::copy_from),
                            ..Row::from(RowDoc::Raw(row.doc.to_raw()))
                        };
                        self.add(row, batch)?;
                    }
                    Content::Bucket(_) => bail!(InternalError, "a bucket that nobody asked for"),
                }
            }
            if !matches!(filled, Filled::Full) && std::mem::take(&mut own.unread) {
                self.read(own.records, batch)?;
            }
            self.columns = Some(own);
            match filled {
                Filled::Full => {}
                Filled::Pause => return Ok(false),
                Filled::Eof => self.finish()?,
            }
        }
        Ok(true)
    }

    /// Whether some of the rows are among the first so far and have to be read.
    fn add_columns(&mut self, rows: &ColumnRows, paths: &[Str]) -> Result<bool> {
        let record = rows.segment.records();
        let made = match &record {
            None => Some(Shape::of_computed(&rows.segment)),
            Some(_) => None,
        };
        let maker = made.as_ref().and_then(|shape| shape.maker(&rows.segment));
        if record.is_none() && maker.is_none() {
            bail!(InternalError, "rows of columns that are neither records nor computed");
        }
        let columns: Vec<Option<&Column>> = paths.iter().map(|path| column(&rows.segment, path)).collect();
        let mut key = Vec::new();
        let mut are_some = false;
        for places in rows.chunks() {
            work(1 + places.len() / ROWS_PER_UNIT)?;
            for row in self.candidates(&columns, &places) {
                work(1)?;
                let values: Vec<ValueRef<'_>> = columns.iter().map(|column| value(*column, row)).collect();
                key.clear();
                self.keys.encode(&values, &mut key);
                let record = record.as_ref().map(|record| record(row));
                let arrival = self.arrival(record.as_ref().map(<[u8; 8]>::as_slice));
                if self.is_late(&key, arrival) {
                    continue;
                }
                are_some |= record.is_some();
                let doc = maker
                    .as_ref()
                    .map_or(RowDoc::Unread, |maker| RowDoc::Raw(maker.document(row)));
                let row = Row {
                    record: record.map(|record| Bytes::copy_from(&record)),
                    ..Row::from(doc)
                };
                self.keep(key.clone(), arrival, row)?;
            }
        }
        Ok(are_some)
    }

    /// What tells apart rows with equal sort keys: the records of rows of columns, which come in another order.
    pub(super) fn arrival(&mut self, record: Option<&[u8]>) -> u64 {
        self.arrivals += 1;
        let record = record.and_then(record::record_id).filter(|_| self.is_by_record);
        record.map_or(self.arrivals, |record| record.0)
    }

    /// Whether there are as many rows as are wanted, and all of them come before one.
    pub(super) fn is_late(&self, key: &[u8], arrival: u64) -> bool {
        self.worst().is_some_and(|worst| (key, arrival) > worst)
    }

    /// The key of the last of the rows, if there are as many as are wanted, and its arrival.
    fn worst(&self) -> Option<(&[u8], u64)> {
        let State::Collect { heap, .. } = &self.state else {
            return None;
        };
        let is_full = self.limit.is_some_and(|limit| heap.len() as u64 >= limit);
        let worst = heap.peek().filter(|_| is_full);
        worst.map(|worst| (worst.key.as_slice(), worst.arrival))
    }

    /// The rows that may be among the first as far as their first value tells.
    fn candidates(&self, columns: &[Option<&Column>], places: &Places<'_>) -> Vec<usize> {
        let all = places.map(|row| row);
        let (Some(Some(column)), Some(part)) = (columns.first(), self.spec.parts().first()) else {
            return all;
        };
        let descending = !part.ascending;
        let worst = self.worst().map(|(key, _)| key);
        let may_be = |value: ValueRef<'_>| {
            let Some(worst) = worst else {
                return true;
            };
            let mut bytes = Vec::new();
            self.keys.encode(&[value], &mut bytes);
            bytes.as_slice() <= worst
        };
        let keep = self
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX);
        let numbers = match column.values() {
            Values::Int32(numbers) | Values::Int64(numbers) | Values::Date(numbers) => numbers,
            _ => {
                let Some((count, numbers)) = worst.and_then(|_| column.numbers(places)) else {
                    return all;
                };
                let mut known: Vec<Option<bool>> = vec![None; count];
                let mut test = |row: usize, number: u32| {
                    let known = &mut known[number as usize];
                    *known.get_or_insert_with(|| may_be(value(Some(column), row)))
                };
                let rows = all.into_iter().zip(numbers);
                return rows
                    .filter(|(row, number)| test(*row, *number))
                    .map(|(row, _)| row)
                    .collect();
            }
        };
        let nulls = column.nulls(places);
        let ranks = numbers.pick(places, |number| Some(rank(number, descending)));
        let ranks: Vec<Option<i64>> = match &nulls {
            None => ranks,
            Some(nulls) => ranks
                .into_iter()
                .zip(nulls)
                .map(|(rank, is_null)| rank.filter(|_| !is_null))
                .collect(),
        };
        // The last rank that may be, of those that are here.
        let (least, most) = ranks
            .iter()
            .flatten()
            .fold((i64::MAX, i64::MIN), |(least, most), rank| {
                (least.min(*rank), most.max(*rank))
            });
        let of_rank = |at: i64| match column.values() {
            Values::Int32(_) => ValueRef::Int32(rank(at, descending) as i32),
            Values::Int64(_) => ValueRef::Int64(rank(at, descending)),
            _ => ValueRef::DateTime(rank(at, descending)),
        };
        let worst = worst
            .filter(|_| least <= most)
            .map(|_| last(least, most, |at| may_be(of_rank(at))));
        let places = leading(&ranks, worst, keep);
        places.into_iter().map(|place| all[place as usize]).collect()
    }

    /// Reads the documents of rows that have none yet.
    fn read(&mut self, records: Option<TreeId>, batch: &Batch<'_>) -> Result<()> {
        let (State::Collect { heap, .. }, Some(records)) = (&mut self.state, records) else {
            return Ok(());
        };
        let mut items: Vec<Sortable> = std::mem::take(heap).into_vec();
        let mut unread: Vec<&mut Row> = items.iter_mut().map(|item| &mut item.row).collect();
        unread.retain(|row| matches!(row.doc, RowDoc::Unread));
        work(ROW * unread.len())?;
        let keys: Vec<&[u8]> = unread.iter().filter_map(|row| row.record.as_deref()).collect();
        let found = batch.view.get_many(records, &keys)?;
        let mut bytes = 0;
        for (row, found) in unread.into_iter().zip(found) {
            let Some(found) = found else {
                bail!(InternalError, "a row of columns has no record");
            };
            bytes += found.len();
            row.doc = RowDoc::Stored(found);
        }
        *heap = items.into();
        self.kept.grow(bytes)?;
        if self.kept.bytes() > batch.memory_bytes_max {
            self.spill(batch)?;
        }
        Ok(())
    }
}

/// The largest number from `least` to `most` for which `holds`, which does for all before it; one before `least` if it does for none.
fn last(least: i64, most: i64, holds: impl Fn(i64) -> bool) -> i64 {
    let (mut from, mut to) = (i128::from(least) - 1, i128::from(most));
    while from < to {
        let middle = from + (to - from + 1) / 2;
        match i64::try_from(middle).is_ok_and(&holds) {
            true => from = middle,
            false => to = middle - 1,
        }
    }
    i64::try_from(from).unwrap_or(i64::MIN)
}
