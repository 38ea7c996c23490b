//! TEXT_OR: the documents that have terms of a text index, each with the sum of what its terms score.
//!
//! First all entries of all terms are added up by their records, without reading one. Then records are read as rows are asked
//! for: in the order of records, or the best first, so that a limit reads no more than it gives.

use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{Counters, Explain, Inputs, Operator, OwnInputs, Report, Step};
use crate::ops::IndexScan;
use crate::row::{Row, RowDoc};
use nestor_model::statement::{ROW, work};
use nestor_model::{Document, Error, ErrorCode, Result, Value};
use nestor_planner::NodeKind;
use nestor_planner::catalog::PartKind;
use nestor_planner::plan::{IndexScan as IndexScanPlan, TextOr as TextOrPlan};
use nestor_query::env::DocMeta;
use nestor_query::matcher::MatchExpr;
use nestor_storage::keys::{self, EntryFormat};
use nestor_storage::{Bytes, Collection, RecordReader};
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// What a record takes, about, beside its key.
const RECORD_BYTES: usize = 3 * size_of::<Scored>();

/// The key of a record; those of clustered collections are no ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RecordKey {
    Id(u64),
    Other(Bytes),
}

impl RecordKey {
    fn bytes(self) -> Bytes {
        match self {
            Self::Id(id) => Bytes::copy_from(&id.to_be_bytes()),
            Self::Other(bytes) => bytes,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Id(_) => RECORD_BYTES,
            Self::Other(bytes) => RECORD_BYTES + bytes.len(),
        }
    }
}

/// A record and what its terms score.
struct Scored {
    score: f64,
    record: RecordKey,
}

/// What terms of records score so far.
#[derive(Default)]
struct Scores {
    ids: HashMap<u64, f64, BuildHasherDefault<IdHasher>>,
    others: HashMap<Bytes, f64>,
    kept: Kept,
}

impl Scores {
    /// Errors: those of [`Kept::grow`].
    fn add(&mut self, record: &[u8], score: f64) -> Result<()> {
        if let Ok(id) = record.try_into().map(u64::from_be_bytes) {
            match self.ids.entry(id) {
                Entry::Occupied(mut sum) => *sum.get_mut() += score,
                Entry::Vacant(new) => {
                    new.insert(score);
                    self.kept.grow(RECORD_BYTES)?;
                }
            }
            return Ok(());
        }
        match self.others.get_mut(record) {
            Some(sum) => *sum += score,
            None => {
                self.kept.grow(RECORD_BYTES + record.len())?;
                self.others.insert(Bytes::copy_from(record), score);
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Vec<Scored> {
        let ids = std::mem::take(&mut self.ids).into_iter();
        let ids = ids.map(|(id, score)| (RecordKey::Id(id), score));
        let others = std::mem::take(&mut self.others).into_iter();
        let others = others.map(|(key, score)| (RecordKey::Other(key), score));
        ids.chain(others)
            .map(|(record, score)| Scored { score, record })
            .collect()
    }
}

/// Record ids follow each other, so spreading them over the table is enough.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // Fibonacci hashing; the table looks at the first and at the last bits.
        self.0 = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// Adds up what terms score.
pub struct TextOr {
    scans: Vec<IndexScan>,
    /// For each scan the beginning of its keys.
    prefixes: Vec<Vec<u8>>,
    /// The scan that is read.
    at: usize,
    scores: Scores,
    state: State,
    best_first: bool,
    filter: Option<Arc<MatchExpr>>,
    records: RecordReader,
    counters: Counters,
}

enum State {
    /// Entries are being added up.
    Adding,
    /// Records in their order, the first one last.
    InOrder(Vec<Scored>),
    /// The best first.
    Best(BinaryHeap<Scored>),
}

/// The best is the greatest; of several the one that was stored first.
impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        let better = self.score.total_cmp(&other.score);
        better.then_with(|| other.record.cmp(&self.record))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scored {}

impl TextOr {
    /// The records of the entries of `scans`, which are those of `plan`.
    pub fn new(collection: &Collection, plan: &TextOrPlan, scans: Vec<IndexScan>) -> Self {
        let prefixes = scans.iter().map(|scan| beginning(scan.plan(), scan.format())).collect();
        Self {
            scans,
            prefixes,
            at: 0,
            scores: Scores::default(),
            state: State::Adding,
            best_first: plan.best_first,
            filter: plan.filter.clone(),
            records: RecordReader::new(collection.records),
            counters: Counters::default(),
        }
    }

    /// Adds entries up; `false` when there is more to do.
    fn add(&mut self, batch: &mut Batch<'_>) -> Result<bool> {
        while let Some(scan) = self.scans.get_mut(self.at) {
            let prefix = &self.prefixes[self.at];
            let scores = &mut self.scores;
            let is_over = scan.for_each_entry(batch, prefix, &mut |entry| {
                let Some(score) = keys::positive_double(&entry.key[prefix.len()..]) else {
                    return Err(Error::new(
                        ErrorCode::DataCorruptionDetected,
                        "an entry of a text index has no score",
                    ));
                };
                scores.add(entry.record, score)
            })?;
            if !is_over {
                return Ok(false);
            }
            self.at += 1;
        }
        let mut found = self.scores.take();
        self.state = match self.best_first {
            true => State::Best(BinaryHeap::from(found)),
            false => {
                found.sort_unstable_by(|a, b| b.record.cmp(&a.record));
                State::InOrder(found)
            }
        };
        Ok(true)
    }

    fn pop(&mut self) -> Option<Scored> {
        match &mut self.state {
            State::Adding => None,
            State::InOrder(records) => records.pop(),
            State::Best(records) => records.pop(),
        }
    }
}

/// What the keys of a scan for one term begin with: fixed values up to the term.
fn beginning(scan: &IndexScanPlan, format: &EntryFormat) -> Vec<u8> {
    let mut key = Vec::new();
    let parts = scan.index.parts.iter().zip(&scan.bounds.parts).zip(&format.descending);
    for ((part, list), descending) in parts {
        if let Some(interval) = list.intervals().first() {
            keys::encode_into(&interval.low, *descending, &mut key);
        }
        if part.kind == PartKind::Derived {
            break;
        }
    }
    key
}

impl Operator for TextOr {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        if matches!(self.state, State::Adding) && !self.add(batch)? {
            return Ok(Step::Pause);
        }
        loop {
            if !batch.spend()? {
                return Ok(Step::Pause);
            }
            self.counters.works += 1;
            let Some(Scored { score, record }) = self.pop() else {
                self.scores.kept.clear();
                return Ok(self.counters.gave(Step::Eof));
            };
            work(ROW)?;
            self.scores.kept.shrink(record.weight());
            let record = record.bytes();
            self.counters.docs_examined += 1;
            // The record may be gone since its entries were read.
            let Some(bytes) = self.records.get(batch.view, &record)? else {
                continue;
            };
            let row = Row {
                doc: RowDoc::Stored(bytes),
                record: Some(record),
                meta: Some(Box::new(DocMeta {
                    text_score: Some(score),
                    ..DocMeta::default()
                })),
            };
            if let Some(filter) = &self.filter {
                if !filter.matches(row.as_doc(), batch.op)? {
                    continue;
                }
            }
            return Ok(self.counters.gave(Step::Row(row)));
        }
    }

    fn save(&mut self) {
        self.scans.iter_mut().for_each(IndexScan::save);
        self.records.save();
        self.scores.kept.rest();
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(NodeKind::TextOr, &self.counters).holding(self.scores.kept.bytes());
        Report {
            below: Inputs::Own(self),
            ..report.explained_by(self)
        }
    }
}

impl OwnInputs for TextOr {
    fn input(&self, at: usize) -> Option<&dyn Operator> {
        self.scans.get(at).map(|scan| scan as &dyn Operator)
    }
}

impl Explain for TextOr {
    fn plan_fields(&self, out: &mut Document) {
        if let Some(filter) = &self.filter {
            out.push("filter", filter.serialize());
        }
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
