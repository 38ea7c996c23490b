//! `$group`: one row per distinct key.
//!
//! Groups live in a hash table (`table`); a row costs one evaluation of the key, one hash and one comparison, without
//! copying the key unless the group is new. When the groups outgrow the memory limit all of them leave memory, with what
//! their accumulators collected, for partition files by the hash of their key (`partitions`), and the table begins anew.
//! At the end the partitions are merged one after the other; one that is too large itself is divided again. So a group
//! is written once for each time that the table was full while it was there, and read as often.
//!
//! Rows of columns are numbered without a table where that is enough (`numbered`), with a second thread where a processor is idle (`numbering`).
//!
//! Over measurements of time series it takes whole buckets where it can (`columns`).

mod columns;
mod divided;
mod numbered;
mod numbering;
mod partitions;
mod parts;
mod rows;
mod table;

use crate::batch::Batch;
use crate::columns::ColumnRows;
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step, singly};
use crate::row::Row;
use crate::row_batch::{Content, Filled, RowBatch, Wanted};
use crate::spill::Spilled;
use columns::Columns;
use divided::Given;
use nestor_model::statement::{BYTES_PER_UNIT, ROW, effort, work};
use nestor_model::{DocRef, Document, Error, ErrorCode, Result, Str, TimeSeries, Value, ValueRef, bail};
use nestor_planner::NodeKind;
use nestor_query::accumulator::Accumulator;
use nestor_query::env::Env;
use nestor_query::stage::Group;
use numbered::Numbered;
use numbering::{Ended, Numbering};
use partitions::{LEVELS_MAX, Partition, Partitions};
use rows::Rows;
use std::sync::Arc;
use table::{Bucket, Table};

/// Figures that are counted for explain only.
#[derive(Default)]
struct Figures {
    /// For each field the most that its accumulators held, in bytes.
    accumulators_max: Vec<usize>,
    output_bytes: usize,
}

/// Groups that are given out.
enum Output {
    Buckets(std::vec::IntoIter<Bucket>),
    /// Those from one on, of the last.
    Numbered(Vec<Numbered>, usize),
}

/// The paths that a group looks at, if it can be made of columns.
pub(super) fn paths_of(group: &Arc<Group>) -> Option<Vec<Str>> {
    Rows::of(group).map(|(_, paths)| paths)
}

/// The paths of what a group makes of rows of columns, if that may be such rows again.
pub(super) fn paths_made(group: &Arc<Group>) -> Option<Vec<Str>> {
    Numbering::of(group).and_then(|_| numbered::paths_made(group))
}

/// Groups its input.
pub(super) struct GroupOp {
    input: BoxOperator,
    group: Arc<Group>,
    table: Table,
    /// For the input's buckets, if the group can be made of columns.
    columns: Option<Columns>,
    /// For rows of columns, if the group can be made of these.
    rows: Option<Rows>,
    /// For such rows, if their groups need no table.
    numbering: Option<Box<Numbering>>,
    helpers: u64,
    /// How many batches came.
    batches: u32,
    /// Level of the partitions that groups leave memory for.
    level: u32,
    /// Those partitions, once there are any.
    spill: Option<Partitions>,
    /// Partitions still to be merged.
    waiting: Vec<Partition>,
    spilled: Spilled,
    figures: Figures,
    output: Option<Output>,
    /// The memory of the groups: those of the table, or the output.
    kept: Kept,
    counters: Counters,
}

impl GroupOp {
    /// `series`: what the input gives the measurements of, if it does. `by_columns`: whether it gives rows of columns to who takes them.
    pub(super) fn new(input: BoxOperator, group: Arc<Group>, series: Option<&TimeSeries>, by_columns: bool) -> Self {
        Self {
            input,
            table: Table::new(group.clone()),
            columns: series.and_then(|series| Columns::of(&group, series)),
            rows: by_columns.then(|| Rows::of(&group)).flatten().map(|(rows, _)| rows),
            numbering: by_columns.then(|| Numbering::of(&group)).flatten().map(Box::new),
            helpers: 0,
            batches: 0,
            group,
            level: 0,
            spill: None,
            waiting: Vec::new(),
            spilled: Spilled::default(),
            figures: Figures::default(),
            output: None,
            kept: Kept::default(),
            counters: Counters::default(),
        }
    }

    /// Adds the rows of a batch to their groups.
    fn add(&mut self, rows: &RowBatch, batch: &Batch<'_>) -> Result<()> {
        self.batches = self.batches.saturating_add(1);
        self.table.set_now(u64::from(self.batches) << 32);
        for content in rows.contents() {
            match (content, &mut self.columns) {
                (Content::Row(row), _) => {
                    // What comes before all numbered rows is first in the table, too.
                    if let Some(numbering) = &self.numbering
                        && numbering.has_begun()
                        && !numbering.stands_beside(row.doc, batch.op)?
                    {
                        self.end_numbering(batch)?;
                    }
                    let mut env = Env::new(row.doc, batch.op).with_meta(row.meta);
                    self.table.add(&mut env, batch.op)?;
                }
                (Content::Bucket(DocRef::Raw(bucket)), Some(columns)) => {
                    columns.add(bucket, &mut self.table, batch.op)?;
                }
                (Content::Bucket(_), _) => bail!(InternalError, "a bucket that nobody asked for"),
                (Content::Columns(found), _) => self.add_columns(found, rows.ahead(), batch)?,
            }
            self.look_at_memory(batch)?;
        }
        Ok(())
    }

    /// Adds rows of columns; about so many may come after them.
    fn add_columns(&mut self, found: &ColumnRows, ahead: usize, batch: &Batch<'_>) -> Result<()> {
        // Words tell apart what may be equal under a collation.
        let fits = |numbering: &mut Box<Numbering>| batch.op.collator.is_none() && numbering.fits(&found.segment);
        match self.numbering.as_mut().map(fits) {
            None => self.add_rows(found, batch),
            Some(false) => {
                self.end_numbering(batch)?;
                self.add_rows(found, batch)
            }
            Some(true) => self.number(found, ahead, batch),
        }
    }

    /// Numbers the groups of rows, here or by a helper.
    fn number(&mut self, found: &ColumnRows, ahead: usize, batch: &Batch<'_>) -> Result<()> {
        let Some(numbering) = &mut self.numbering else {
            return Ok(());
        };
        let refused = numbering.add((self.batches, found.clone()), ahead, batch.op)?;
        self.helpers = numbering.helpers;
        if let Some(rest) = refused {
            self.end_numbering(batch)?;
            return self.add_left(&rest, batch);
        }
        Ok(())
    }

    /// Adds rows that could not be numbered to groups of the table.
    fn add_left(&mut self, (number, rows): &Given, batch: &Batch<'_>) -> Result<()> {
        self.table.set_now(u64::from(*number) << 32 | rows.first() as u64);
        self.add_rows(rows, batch)
    }

    fn give_to_table(
        &mut self,
        groups: &Numbered,
        places: impl Iterator<Item = usize>,
        batch: &Batch<'_>,
    ) -> Result<()> {
        for group in places {
            work(ROW)?;
            groups.give(group, &mut self.table, batch.op)?;
            if self.table.held() > batch.memory_bytes_max {
                self.make_room(batch)?;
            }
        }
        Ok(())
    }

    /// Numbered groups become those of the table.
    fn give_ended(&mut self, ended: &Ended, batch: &Batch<'_>) -> Result<()> {
        for groups in &ended.parts {
            self.give_to_table(groups, 0..groups.len(), batch)?;
        }
        for (groups, places) in &ended.apart {
            self.give_to_table(groups, places.iter().map(|at| *at as usize), batch)?;
        }
        ended.left.iter().try_for_each(|left| self.add_left(left, batch))
    }

    /// Numbered groups become those of the table; rows to come go on being numbered.
    fn give_numbered(&mut self, batch: &Batch<'_>) -> Result<()> {
        match &mut self.numbering {
            Some(numbering) => {
                let ended = numbering.end(batch.op)?;
                self.give_ended(&ended, batch)
            }
            None => Ok(()),
        }
    }

    /// Rows to come go to the table.
    fn end_numbering(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.give_numbered(batch)?;
        self.numbering = None;
        self.table.set_now(u64::from(self.batches) << 32);
        Ok(())
    }

    /// Adds rows of columns to groups of the table.
    fn add_rows(&mut self, found: &ColumnRows, batch: &Batch<'_>) -> Result<()> {
        let Some(mut part) = self.rows.as_mut().map(|own| own.part(found)) else {
            bail!(InternalError, "rows of columns that nobody asked for");
        };
        for places in found.chunks() {
            if let Some(own) = &mut self.rows {
                own.add(&mut part, &places, &mut self.table, batch.op)?;
            }
            self.look_at_memory(batch)?;
        }
        if let Some(own) = &mut self.rows {
            own.keep(found, part);
        }
        Ok(())
    }

    /// Counts what the groups hold, and lets them leave memory when that is too much.
    fn look_at_memory(&mut self, batch: &Batch<'_>) -> Result<()> {
        let beside = self.numbering.as_ref().map_or(0, |numbering| numbering.bytes());
        let held = self.table.held() + beside;
        self.kept.set(held)?;
        // Numbered groups take less memory than those of the table, where they only go to leave it again: they may take more than these.
        if beside > 0 && held > batch.room().unwrap_or(batch.memory_bytes_max) {
            self.give_numbered(batch)?;
        }
        if self.table.held() > batch.memory_bytes_max {
            self.make_room(batch)?;
        }
        Ok(())
    }

    /// Lets the groups leave memory. Errors: 292 when they may not, 146 when that would not help.
    #[cold]
    fn make_room(&mut self, batch: &Batch<'_>) -> Result<()> {
        let limit = batch.memory_bytes_max;
        // One group has to be in memory as a whole in the end.
        if batch.spill_dir.is_none() || (self.table.len() > 1 && self.level < LEVELS_MAX) {
            return self.leave_memory(batch);
        }
        if self.table.held() > limit.saturating_mul(2) {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                format!("$group used too much memory and cannot spill to disk; memory limit: {limit} bytes"),
            ));
        }
        Ok(())
    }

    fn leave_memory(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Some(dir) = batch.spill_dir else {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "exceeded memory limit for $group, but didn't allow external spilling; pass allowDiskUse: true; limit is {} bytes",
                    batch.memory_bytes_max
                ),
            ));
        };
        self.count_accumulators(&[], batch);
        let level = self.level;
        let partitions = self.spill.get_or_insert_with(|| Partitions::new(level));
        let mut bytes = 0;
        let buckets = self.table.take();
        let records = buckets.len() as u64;
        for bucket in buckets {
            let written = partitions.write(&bucket, dir)?;
            bytes += written;
            work(ROW + written as usize / BYTES_PER_UNIT)?;
        }
        self.spilled.add(records, bytes);
        self.kept.clear();
        Ok(())
    }

    /// All rows or partial groups are in: they are the output if nothing left memory, else the partitions wait.
    fn finish_pass(&mut self, batch: &Batch<'_>) -> Result<()> {
        if let Some(mut numbering) = self.numbering.take() {
            let ended = numbering.end(batch.op)?;
            self.kept
                .set(ended.parts.iter().map(Numbered::bytes).sum::<usize>() + self.table.held())?;
            let is_whole = ended.apart.is_empty() && ended.left.is_empty();
            let are_told_apart = is_whole && !ended.parts.iter().any(Numbered::has_equals);
            if are_told_apart && !ended.parts.is_empty() && self.table.len() == 0 && self.spill.is_none() {
                self.count_accumulators(&ended.parts, batch);
                self.output = Some(Output::Numbered(ended.parts, 0));
                return Ok(());
            }
            self.give_ended(&ended, batch)?;
        }
        if self.spill.is_some() {
            self.leave_memory(batch)?;
        }
        match self.spill.take() {
            Some(partitions) => self.waiting.extend(partitions.finish()?),
            None => self.count_accumulators(&[], batch),
        }
        self.output = Some(Output::Buckets(self.table.take().into_iter()));
        Ok(())
    }

    /// Merges the groups of a partition. Runs to its end: the rows were paid for when they were pulled.
    fn merge_partition(&mut self, mut partition: Partition, batch: &Batch<'_>) -> Result<()> {
        self.level = partition.level;
        while let Some((at, record)) = partition.next()? {
            work(ROW + record.len() / BYTES_PER_UNIT)?;
            let mut values = record.iter().map(|(_, value)| value);
            let key = values.next().unwrap_or(ValueRef::Null);
            self.table.merge(at, key, values, batch.op)?;
            self.kept.set(self.table.held())?;
            if self.table.held() > batch.memory_bytes_max {
                self.make_room(batch)?;
            }
        }
        self.finish_pass(batch)
    }

    /// Accumulators are at their largest just before the groups leave memory or go out.
    fn count_accumulators(&mut self, numbered: &[Numbered], batch: &Batch<'_>) {
        if !batch.explains {
            return;
        }
        let held_max = &mut self.figures.accumulators_max;
        held_max.resize(self.group.fields.len(), 0);
        for (at, max) in held_max.iter_mut().enumerate() {
            let held = |bucket: &Bucket| size_of::<Accumulator>() + bucket.states[at].memory();
            let held = self.table.buckets().iter().map(held).sum::<usize>();
            let held = held + numbered.iter().map(|numbered| numbered.field_bytes(at)).sum::<usize>();
            *max = held.max(*max);
        }
    }

    /// Takes all rows of the input; false when the budget is used up before. A function of its own, with little on the stack: the input
    /// may be another group, and that one's.
    fn collect(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        let mut rows = RowBatch::new(Wanted::Documents);
        if self.columns.is_some() {
            rows.take_buckets();
        }
        if self.rows.is_some() {
            rows.take_columns();
        }
        loop {
            rows.clear();
            let filled = self.input.next_batch(batch, &mut rows)?;
            self.counters.pulled_batch(rows.len(), filled);
            self.add(&rows, batch)?;
            match filled {
                Filled::Full => {}
                Filled::Pause => return Ok(false),
                Filled::Eof => break,
            }
        }
        self.finish_pass(batch)?;
        Ok(true)
    }

    /// The next group.
    fn give(&mut self, batch: &Batch<'_>) -> Result<Step> {
        loop {
            if let Some((key, states)) = self.next_group(batch)? {
                work(ROW)?;
                effort::made();
                let row = self.emit(key, &states)?;
                if batch.explains {
                    self.figures.output_bytes += row.doc.size();
                }
                return Ok(self.counters.gave(Step::Row(row)));
            }
            match self.waiting.pop() {
                Some(partition) => self.merge_partition(partition, batch)?,
                None => return Ok(self.counters.gave(Step::Eof)),
            }
        }
    }

    /// The next groups as rows of columns, if all of a part are that.
    fn next_rows(&mut self) -> Result<Option<ColumnRows>> {
        let Some(Output::Numbered(parts, 0)) = &mut self.output else {
            return Ok(None);
        };
        let Some(segment) = parts.last().and_then(Numbered::segment) else {
            return Ok(None);
        };
        parts.pop();
        let left: usize = parts.iter().map(Numbered::bytes).sum();
        // Until the next ones are asked for.
        self.kept.set(left + segment.bytes())?;
        let rows = 0..segment.rows();
        work(1 + rows.len() / ROW)?;
        Ok(Some(ColumnRows {
            segment: Arc::new(segment),
            rows,
            picked: None,
        }))
    }

    /// The key of the next group, and what its accumulators have.
    fn next_group(&mut self, batch: &Batch<'_>) -> Result<Option<(Value, Vec<Accumulator>)>> {
        let (left, next) = match &mut self.output {
            None => return Ok(None),
            Some(Output::Buckets(buckets)) => {
                let left = buckets.len();
                (left, buckets.next().map(|bucket| (bucket.key, bucket.states)))
            }
            Some(Output::Numbered(parts, at)) => {
                while parts.last().is_some_and(|groups| *at == groups.len()) {
                    parts.pop();
                    *at = 0;
                }
                let left = parts.iter().map(Numbered::len).sum::<usize>() - *at;
                let next = parts.last().map(|groups| groups.bucket(*at, batch.op)).transpose()?;
                *at += usize::from(next.is_some());
                (left, next)
            }
        };
        if next.is_some() {
            self.kept.shrink_by_one_of(left);
        }
        Ok(next)
    }

    fn emit(&self, key: Value, states: &[Accumulator]) -> Result<Row> {
        let mut doc = Document::with_capacity(1 + self.group.fields.len());
        doc.push("_id", key);
        for (field, state) in self.group.fields.iter().zip(states) {
            let value = state.finish()?;
            doc.push(field.name.clone(), if value.is_missing() { Value::Null } else { value });
        }
        Ok(Row::computed(doc))
    }
}

impl Operator for GroupOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if self.output.is_none() && !self.collect(batch)? {
            return Ok(Step::Pause);
        }
        self.give(batch)
    }

    fn next_batch(&mut self, batch: &mut Batch<'_>, out: &mut RowBatch) -> Result<Filled> {
        if out.takes_columns() {
            if self.output.is_none() && !self.collect(batch)? {
                return Ok(Filled::Pause);
            }
            if let Some(rows) = self.next_rows()? {
                self.counters.advanced += rows.len() as u64;
                self.figures.output_bytes += rows.segment.bytes();
                out.push_columns(rows);
                return Ok(Filled::Full);
            }
        }
        singly(self, batch, out)
    }

    fn save(&mut self) {
        self.kept.rest();
        self.columns.iter_mut().for_each(Columns::rest);
        self.rows.iter_mut().for_each(Rows::rest);
        self.spill.iter_mut().for_each(Partitions::rest);
        self.waiting.iter_mut().for_each(Partition::rest);
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Group, &self.counters).over(&*self.input);
        report
            .holding(self.kept.bytes())
            .spilling(self.spilled)
            .explained_by(self)
    }
}

impl Explain for GroupOp {
    fn stage_fields(&self, out: &mut Document) {
        let fields = self.group.fields.iter().zip(&self.figures.accumulators_max);
        let held_max: Document = fields
            .map(|(field, max)| (field.name.clone(), Value::Int64(*max as i64)))
            .collect();
        out.push("maxAccumulatorMemoryUsageBytes", held_max);
        out.push("totalOutputDataSizeBytes", self.figures.output_bytes as i64);
        if self.helpers > 0 {
            out.push("helpers", self.helpers as i64);
        }
    }
}
