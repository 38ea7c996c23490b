//! COLLSCAN: every record in the order of record keys, and CLUSTERED_IXSCAN: those of a range.

use crate::batch::Batch;
use crate::keys::id_key;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row::Row;
use crate::row_batch::{Filled, RowBatch};
use nestor_model::{DocRef, Document, Error, ErrorCode, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::interval::Interval;
use nestor_query::matcher::Filter;
use nestor_storage::{Bytes, Cursor, TreeId, record};

/// Scans the records of a collection.
///
/// The position is the key of the last record looked at. Going on after [`Operator::save`] starts behind
/// it whether or not that record still exists; a tailable scan of a capped collection, however, fails with
/// `CappedPositionLost` (136) when its record was removed, because more may have been removed with it.
pub struct CollScan {
    records: TreeId,
    filter: Option<Filter>,
    forward: bool,
    tailable: bool,
    range: Option<Box<Range>>,
    cursor: Option<Cursor>,
    position: Option<Bytes>,
    counters: Counters,
}

/// Which records of a clustered collection a scan is about.
struct Range {
    ids: Interval,
    /// The record key of the least `_id`.
    low: Bytes,
    /// The record key of the greatest.
    high: Bytes,
}

impl Range {
    /// Moves to the first record that is not before the range; `false` when there is none.
    fn enter(&self, cursor: &mut Cursor, forward: bool) -> Result<bool> {
        let (end, is_in) = match forward {
            true => (&self.low, self.ids.low_inclusive),
            false => (&self.high, self.ids.high_inclusive),
        };
        let found = match forward {
            true => cursor.seek(end)?,
            false => cursor.seek_back(end)?,
        };
        Ok(match (found && !is_in && cursor.key() == end.as_slice(), forward) {
            (false, _) => found,
            (true, true) => cursor.next()?,
            (true, false) => cursor.prev()?,
        })
    }

    /// Whether a record lies behind the range.
    fn is_behind(&self, key: &[u8], forward: bool) -> bool {
        let (beyond, is_in) = match forward {
            true => (key.cmp(self.high.as_slice()), self.ids.high_inclusive),
            false => (self.low.as_slice().cmp(key), self.ids.low_inclusive),
        };
        beyond.is_gt() || (beyond.is_eq() && !is_in)
    }
}

impl CollScan {
    /// A scan of `records`.
    pub fn new(records: TreeId, plan: &nestor_planner::plan::CollScan) -> Self {
        Self {
            records,
            filter: plan.filter.clone().map(Filter::new),
            forward: plan.forward,
            tailable: plan.tailable,
            // Strings in it are sort keys already.
            range: plan.range().map(|ids| {
                Box::new(Range {
                    low: id_key((&ids.low).into(), None),
                    high: id_key((&ids.high).into(), None),
                    ids: ids.clone(),
                })
            }),
            cursor: None,
            position: None,
            counters: Counters::default(),
        }
    }

    /// Moves to the next record; `false` at the end.
    fn advance(&mut self, batch: &Batch<'_>) -> Result<bool> {
        if let Some(cursor) = &mut self.cursor {
            return Ok(if self.forward { cursor.next()? } else { cursor.prev()? });
        }
        let mut cursor = batch.view.cursor(self.records);
        let found = match &self.position {
            None => match &self.range {
                None if self.forward => cursor.first()?,
                None => cursor.last()?,
                Some(range) => range.enter(&mut cursor, self.forward)?,
            },
            Some(key) => {
                let found = if self.forward {
                    cursor.seek(key)?
                } else {
                    cursor.seek_back(key)?
                };
                let there = found && cursor.key() == key.as_slice();
                if self.tailable && !there {
                    return Err(Error::new(
                        ErrorCode::CappedPositionLost,
                        "CollectionScan died due to position in capped collection being deleted",
                    ));
                }
                match (there, self.forward) {
                    (false, _) => found,
                    (true, true) => cursor.next()?,
                    (true, false) => cursor.prev()?,
                }
            }
        };
        if found || !self.tailable {
            self.cursor = Some(cursor);
        }
        Ok(found)
    }

    /// Whether the record that the cursor is at lies behind the range.
    #[inline]
    fn is_over(&self) -> bool {
        let (Some(range), Some(cursor)) = (&self.range, &self.cursor) else {
            return false;
        };
        range.is_behind(cursor.key(), self.forward)
    }

    /// Moves to the next record that matches: the cursor is there then.
    #[inline]
    fn find(&mut self, batch: &mut Batch<'_>) -> Result<Found<'_>> {
        if self.counters.is_eof && !self.tailable {
            return Ok(Found::Eof);
        }
        loop {
            if !batch.spend()? {
                return Ok(Found::Pause);
            }
            self.counters.works += 1;
            if !self.advance(batch)? || self.is_over() {
                self.counters.is_eof = true;
                self.cursor = None;
                return Ok(Found::Eof);
            }
            let Some(cursor) = &self.cursor else {
                return Ok(Found::Eof);
            };
            self.counters.docs_examined += 1;
            if self.tailable {
                // At the end of the data the cursor is at nothing, and there it goes on later.
                self.position = Some(Bytes::copy_from(cursor.key()));
            }
            if let Some(filter) = &self.filter {
                let doc = record::document(cursor.value()?);
                if !filter.matches(doc.as_doc(), batch.op)? {
                    continue;
                }
            }
            self.counters.advanced += 1;
            break;
        }
        Ok(self.cursor.as_ref().map_or(Found::Eof, Found::Record))
    }
}

/// The result of looking for the next record.
enum Found<'c> {
    Record(&'c Cursor),
    Pause,
    Eof,
}

impl Operator for CollScan {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        Ok(match self.find(batch)? {
            Found::Record(cursor) => Step::Row(Row::stored(Bytes::copy_from(cursor.key()), cursor.value_bytes()?)),
            Found::Pause => Step::Pause,
            Found::Eof => Step::Eof,
        })
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        while !out.is_full() {
            match self.find(batch)? {
                Found::Record(cursor) => out.push_stored(cursor.value()?, || Ok(cursor.value_bytes()?))?,
                Found::Pause => return Ok(Filled::Pause),
                Found::Eof => return Ok(Filled::Eof),
            }
        }
        Ok(Filled::Full)
    }

    fn next_documents(
        &mut self,
        batch: &mut Batch<'_>,
        most: usize,
        each: &mut dyn FnMut(DocRef<'_>) -> Result<()>,
    ) -> Result<Option<Filled>> {
        for _ in 0..most {
            match self.find(batch)? {
                Found::Record(cursor) => each(record::document(cursor.value()?).as_doc())?,
                Found::Pause => return Ok(Some(Filled::Pause)),
                Found::Eof => return Ok(Some(Filled::Eof)),
            }
        }
        Ok(Some(Filled::Full))
    }

    fn save(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            if cursor.is_valid() {
                self.position = Some(Bytes::copy_from(cursor.key()));
            }
        }
    }

    fn report(&self) -> Report<'_> {
        let kind = match self.range {
            Some(_) => NodeKind::ClusteredScan,
            None => NodeKind::CollScan,
        };
        Report::new(kind, &self.counters).explained_by(self)
    }
}

impl Explain for CollScan {
    fn plan_fields(&self, out: &mut Document) {
        if let Some(filter) = &self.filter {
            out.push("filter", filter.expr().serialize());
        }
        out.push("direction", if self.forward { "forward" } else { "backward" });
        if let Some(range) = &self.range {
            out.push("minRecord", range.ids.low.clone());
            out.push("maxRecord", range.ids.high.clone());
        }
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
