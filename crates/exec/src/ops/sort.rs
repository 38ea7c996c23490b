//! SORT: all rows in order, or the first of them.
//!
//! Each row gets its sort key as order-preserving bytes, so comparing is comparing memory. With a limit a
//! heap keeps the best rows only (top-k). Without, rows are collected and sorted; beyond the memory limit
//! sorted runs go to temporary files (`run`) and are merged at the end. Rows with equal keys keep the
//! order they came in.

pub(crate) mod by_columns;
mod ordered;
mod run;

use crate::batch::Batch;
use crate::kept::Kept;
use crate::keys::SortKeys;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::row::Row;
use crate::spill::Spilled;
use by_columns::ByColumns;
use nestor_model::statement::{ROW, work};
use nestor_model::{Array, Document, Error, ErrorCode, Result, Value, ValueRef};
use nestor_planner::NodeKind;
use nestor_planner::explain::sort_fields;
use nestor_query::sort::SortSpec;
use nestor_storage::TreeId;
use ordered::Ordered;
use run::{Merge, RunWriter};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Runs of one level at most. Each takes a file and a buffer, so as many of them become one of the next level: a row is
/// written once for each level.
const RUNS_MAX: usize = 64;

/// Bytes that a row takes besides its key and document.
const ROW_OVERHEAD: usize = size_of::<Sortable>() + 32;

/// A row with its sort key.
pub(crate) struct Sortable {
    pub(crate) key: Vec<u8>,
    /// Order of arrival; breaks ties.
    pub(crate) arrival: u64,
    pub(crate) row: Row,
}

impl Sortable {
    fn bytes(&self) -> usize {
        ROW_OVERHEAD + self.key.len() + self.row.doc.size()
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Sortable {}
impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sortable {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.arrival.cmp(&other.arrival))
    }
}

enum State {
    /// Pulling input; without a limit the rows are in no order yet, with one they form a heap.
    Collect {
        rows: Vec<Sortable>,
        heap: BinaryHeap<Sortable>,
    },
    /// Giving rows.
    Memory(Ordered),
    /// Giving rows out of files.
    Files(Merge),
}

/// Sorts its input.
pub struct Sort {
    input: BoxOperator,
    spec: Arc<SortSpec>,
    keys: SortKeys,
    limit: Option<u64>,
    keep_key: bool,
    /// For rows of columns, if the input gives these.
    columns: Option<ByColumns>,
    state: State,
    /// Room for the key of a row.
    key: Vec<u8>,
    arrivals: u64,
    /// Rows with equal keys are in the order of their records, and not in that in which they came.
    is_by_record: bool,
    /// The memory of the rows.
    kept: Kept,
    /// Bytes that were sorted, once all are.
    sorted_bytes: Option<u64>,
    /// `runs[l]` were made of `RUNS_MAX` to the power of `l` times what memory holds.
    runs: Vec<Vec<RunWriter>>,
    spilled: Spilled,
    counters: Counters,
}

impl Sort {
    /// Sorts `input` by `spec`; only the first `limit` rows are wanted. `keep_key` attaches sort keys to rows.
    pub fn new(input: BoxOperator, spec: Arc<SortSpec>, limit: Option<u64>, keep_key: bool) -> Self {
        Self {
            input,
            keys: SortKeys::new(&spec),
            spec,
            limit: limit.filter(|limit| *limit > 0),
            keep_key,
            columns: None,
            state: State::Collect {
                rows: Vec::new(),
                heap: BinaryHeap::new(),
            },
            key: Vec::new(),
            arrivals: 0,
            is_by_record: false,
            kept: Kept::default(),
            sorted_bytes: None,
            runs: Vec::new(),
            spilled: Spilled::default(),
            counters: Counters::default(),
        }
    }

    /// As it is, over rows of columns, which its input gives to who takes them: of these records, or rows that were computed.
    #[must_use]
    pub fn over_columns(mut self, records: Option<TreeId>) -> Self {
        self.columns = ByColumns::of(records, &self.spec).filter(|_| self.limit.is_some() && !self.keep_key);
        self.is_by_record = self.columns.is_some() && records.is_some();
        self
    }

    /// Takes one row into the collection.
    fn add(&mut self, mut row: Row, batch: &Batch<'_>) -> Result<()> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let mut parts: Vec<ValueRef<'_>> = Vec::with_capacity(self.spec.parts().len());
        self.spec.key(row.doc.as_doc(), row.meta.as_deref(), &mut parts)?;
        self.keys.encode(&parts, &mut key);
        let arrival = self.arrival(row.record.as_deref());
        if self.is_late(&key, arrival) {
            self.key = key;
            return Ok(());
        }
        let sort_key = self
            .keep_key
            .then(|| parts.iter().map(|part| part.to_value()).collect::<Array>());
        if let Some(sort_key) = sort_key {
            row.meta.get_or_insert_default().sort_key = Some(Value::Array(sort_key));
        }
        self.keep(key, arrival, row)?;
        if self.kept.bytes() > batch.memory_bytes_max {
            self.spill(batch)?;
        }
        Ok(())
    }

    /// Takes a row with its key, unless enough others come before it.
    fn keep(&mut self, key: Vec<u8>, arrival: u64, row: Row) -> Result<()> {
        let item = Sortable { key, arrival, row };
        let State::Collect { rows, heap } = &mut self.state else {
            return Ok(());
        };
        let bytes = item.bytes();
        match self.limit {
            Some(limit) if (heap.len() as u64) < limit => {
                heap.push(item);
                self.kept.grow(bytes)?;
            }
            Some(_) => {
                let better = heap.peek().is_some_and(|worst| item < *worst);
                let out = if better { heap.pop() } else { None };
                if let Some(worst) = out {
                    heap.push(item);
                    self.kept.shrink(worst.bytes());
                    self.kept.grow(bytes)?;
                }
            }
            None => {
                rows.push(item);
                self.kept.grow(bytes)?;
            }
        }
        Ok(())
    }

    fn sorted_bytes(&self) -> u64 {
        self.sorted_bytes
            .unwrap_or(self.kept.bytes() as u64 + self.spilled.bytes)
    }

    fn spill(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Some(dir) = batch.spill_dir else {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!(
                    "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
                    batch.memory_bytes_max
                ),
            ));
        };
        let State::Collect { rows, heap } = &mut self.state else {
            return Ok(());
        };
        let mut rows = std::mem::take(rows);
        rows.extend(std::mem::take(heap));
        let rows = Ordered::new(rows)?;
        let records = rows.len() as u64;
        let mut run = RunWriter::write(dir, rows)?;
        self.spilled.add(records, run.bytes());
        self.kept.clear();
        for level in 0.. {
            if level == self.runs.len() {
                self.runs.push(Vec::new());
            }
            self.runs[level].push(run);
            if self.runs[level].len() < RUNS_MAX {
                break;
            }
            run = RunWriter::merge(dir, std::mem::take(&mut self.runs[level]))?;
        }
        Ok(())
    }

    /// All input is in: brings it in order.
    fn finish(&mut self) -> Result<()> {
        let State::Collect { rows, heap } = &mut self.state else {
            return Ok(());
        };
        let mut rows = std::mem::take(rows);
        rows.extend(std::mem::take(heap));
        let rows = Ordered::new(rows)?;
        self.sorted_bytes = Some(self.sorted_bytes());
        self.state = if self.runs.is_empty() {
            State::Memory(rows)
        } else {
            let runs = std::mem::take(&mut self.runs).into_iter().flatten().collect();
            State::Files(Merge::new(runs, rows)?)
        };
        Ok(())
    }
}

impl Operator for Sort {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if let State::Collect { .. } = self.state {
            self.input.expect(usize::MAX);
        }
        if !self.collect(batch)? {
            return Ok(Step::Pause);
        }
        while let State::Collect { .. } = self.state {
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            match step {
                Step::Row(row) => self.add(row, batch)?,
                Step::Pause => return Ok(Step::Pause),
                Step::Eof => self.finish()?,
            }
        }
        self.counters.works += 1;
        if self.limit.is_some_and(|limit| self.counters.advanced >= limit) {
            self.counters.is_eof = true;
            return Ok(Step::Eof);
        }
        // The consumer may take all the rows without looking at its interrupt.
        work(ROW)?;
        let next = match &mut self.state {
            State::Memory(rows) => {
                self.kept.shrink_by_one_of(rows.len());
                rows.pop()
            }
            State::Files(merge) => merge.next(&mut self.kept)?,
            State::Collect { .. } => None,
        };
        match next {
            Some(item) => {
                self.counters.advanced += 1;
                Ok(Step::Row(item.row))
            }
            None => {
                self.counters.is_eof = true;
                Ok(Step::Eof)
            }
        }
    }

    fn is_done(&self) -> bool {
        matches!(&self.state, State::Memory(rows) if rows.len() == 0)
            || self.limit.is_some_and(|limit| self.counters.advanced >= limit)
    }

    fn save(&mut self) {
        self.kept.rest();
        if let State::Files(merge) = &mut self.state {
            merge.rest();
        }
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::Sort, &self.counters).over(&*self.input);
        report
            .holding(self.kept.bytes())
            .spilling(self.spilled)
            .explained_by(self)
    }
}

impl Explain for Sort {
    fn plan_fields(&self, out: &mut Document) {
        sort_fields(&self.spec, self.limit, out);
        out.push("totalDataSizeSorted", Value::count(self.sorted_bytes()));
        self.spilled.append_to(out, Value::count);
    }

    fn stage_fields(&self, out: &mut Document) {
        out.push("totalDataSizeSortedBytesEstimate", self.sorted_bytes() as i64);
    }
}
