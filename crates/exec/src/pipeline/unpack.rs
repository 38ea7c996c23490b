//! `$_internalUnpackBucket`: the measurements of buckets.

use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::row::RowDoc;
use crate::row_batch::{Filled, RowBatch, Wanted};
use nestor_model::{DocRef, RawDocBuf, RawWriter, Result, TimeSeries, Value, ValueRef};
use nestor_planner::NodeKind;
use nestor_query::matcher::{MatchExpr, Predicate};
use nestor_query::stage::Unpack;
use nestor_query::timeseries::{Bucket, Header};
use std::sync::Arc;

/// Gives a row for each measurement of the buckets of its input, in the order of their times within each bucket.
pub(super) struct UnpackOp {
    input: BoxOperator,
    unpack: Arc<Unpack>,
    /// Whether the times of a bucket alone may tell that all its measurements satisfy the condition of the stage.
    is_told_by_times: bool,
    /// The bucket that is being unpacked, and its next measurement.
    pending: Option<(Bucket, usize)>,
    kept: Kept,
    counters: Counters,
}

impl UnpackOp {
    pub(super) fn new(input: BoxOperator, unpack: Arc<Unpack>) -> Self {
        let is_told_by_times = unpack
            .filter
            .as_deref()
            .is_none_or(|filter| bounds_times(filter, &unpack.series));
        Self {
            input,
            is_told_by_times,
            unpack,
            pending: None,
            kept: Kept::default(),
            counters: Counters::default(),
        }
    }

    /// Pulls the next bucket; the step tells why there is none. A bucket all of whose measurements are wanted goes to `whole` as it is.
    fn pull(&mut self, batch: &mut Batch<'_>, whole: Option<&mut RowBatch>) -> Result<Option<Step>> {
        let step = self.input.next(batch)?;
        self.counters.pulled(&step);
        let Step::Row(row) = step else {
            return Ok(Some(self.counters.gave(step)));
        };
        if let (Some(whole), DocRef::Raw(doc), true) = (whole, row.as_doc(), self.is_told_by_times) {
            let header = Header::parse(doc)?;
            if self.wants_all(&header, batch)? {
                let measurements = header.len;
                self.counters.advanced += measurements as u64;
                whole.push_bucket(row, measurements);
                return Ok(None);
            }
        }
        let bucket = match row.as_doc() {
            DocRef::Raw(doc) => Bucket::decode(doc, &self.unpack.series)?,
            other => Bucket::decode(other.to_raw().as_raw(), &self.unpack.series)?,
        };
        self.kept.set(bucket.memory())?;
        self.pending = Some((bucket, 0));
        Ok(None)
    }

    /// Whether all measurements of a bucket satisfy the condition of the stage, as its times tell.
    fn wants_all(&self, header: &Header<'_>, batch: &Batch<'_>) -> Result<bool> {
        let Some(filter) = &self.unpack.filter else {
            return Ok(true);
        };
        let series = &self.unpack.series;
        for ms in [header.begins_ms(series)?, header.last_ms(series)?] {
            let mut time = RawWriter::with_capacity(32);
            time.append(&series.time_field, ValueRef::DateTime(ms));
            if !filter.matches(time.into_doc().as_raw().as_doc(), batch.op)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a condition only says between which dates the time lies: then it holds between two times for which it holds.
fn bounds_times(filter: &MatchExpr, series: &TimeSeries) -> bool {
    match filter {
        MatchExpr::And(all) => all.iter().all(|one| bounds_times(one, series)),
        MatchExpr::Leaf(leaf) => {
            let is_of_dates = matches!(
                &leaf.predicate,
                Predicate::Compare {
                    value: Value::DateTime(_),
                    ..
                }
            );
            is_of_dates && leaf.path.as_str() == series.time_field
        }
        _ => false,
    }
}

/// Whether a measurement satisfies the condition of the stage.
fn is_wanted(unpack: &Unpack, row: &RawDocBuf, batch: &Batch<'_>) -> Result<bool> {
    match &unpack.filter {
        Some(filter) => filter.matches(row.as_raw().as_doc(), batch.op),
        None => Ok(true),
    }
}

impl Operator for UnpackOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some((bucket, next)) = &mut self.pending {
                if *next < bucket.len {
                    // A bucket is much work for one row of the input.
                    if !batch.spend()? {
                        return Ok(Step::Pause);
                    }
                    let row = bucket.row(*next, &self.unpack.series);
                    *next += 1;
                    if is_wanted(&self.unpack, &row, batch)? {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(RowDoc::Raw(row).into()));
                    }
                    continue;
                }
                self.pending = None;
            }
            if let Some(end) = self.pull(batch, None)? {
                return Ok(end);
            }
        }
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        while !out.is_full() {
            if let Some((bucket, next)) = &mut self.pending {
                if *next < bucket.len {
                    if !batch.spend()? {
                        return Ok(Filled::Pause);
                    }
                    let at = *next;
                    *next += 1;
                    if self.unpack.filter.is_some() {
                        let row = bucket.row(at, &self.unpack.series);
                        if !is_wanted(&self.unpack, &row, batch)? {
                            continue;
                        }
                        out.push(RowDoc::Raw(row).into());
                    } else if out.wanted() == Wanted::Documents {
                        out.push_written(|row| bucket.write_row(at, &self.unpack.series, row));
                    } else {
                        out.push(RowDoc::Unread.into());
                    }
                    self.counters.advanced += 1;
                    continue;
                }
                self.pending = None;
            }
            let whole = out.takes_buckets().then_some(&mut *out);
            match self.pull(batch, whole)? {
                None => {}
                Some(Step::Pause) => return Ok(Filled::Pause),
                Some(_) => return Ok(Filled::Eof),
            }
        }
        Ok(Filled::Full)
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Unpack, &self.counters).over(&*self.input)
    }
}
