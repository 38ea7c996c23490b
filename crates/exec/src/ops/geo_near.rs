//! GEO_NEAR_2DSPHERE and GEO_NEAR_2D: the records of index entries, nearest first.
//!
//! Rings around the point are searched one after the other, each wider than those before if they held little. Of a ring only
//! keys are scanned that no ring before it had; what a key tells is how near its record may be. Candidates wait in a heap by
//! that: the first of them is read, and waits again by its exact distance, until nothing that is nearer may be left. So
//! records are read for the rows that are asked for, and few others.
//!
//! How wide the first ring is depends on the keys next to that of the point. Where places lie together in clusters or along lines
//! the first ring may hold thousands all the same: a ring that turns out to be crowded ends nearer, at the last of as many
//! candidates as will do, and only what of the narrower ring was not scanned yet is scanned.

use crate::batch::Batch;
use crate::kept::Kept;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::ops::IndexScan;
use crate::ops::dedup::Dedup;
use crate::ops::index_scan::Scanned;
use crate::row::{Row, RowDoc};
use nestor_model::{Document, Error, ErrorCode, Result, Value, doc, values_equal};
use nestor_planner::access::IndexBounds;
use nestor_planner::catalog::Nearest;
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::plan::{GeoNear as GeoNearPlan, IndexScan as IndexScanPlan, ScanPurpose};
use nestor_query::env::DocMeta;
use nestor_query::matcher::nearest;
use nestor_storage::{Bytes, Collection, Index, RecordReader};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Keys on either side of the point's that tell how wide the first ring is.
const SAMPLE: usize = 8;
/// A ring with fewer entries makes the next one twice as wide.
const FEW: u64 = 64;
/// A ring with more entries makes the next one half as wide.
const MANY: u64 = 1_000;
/// Entries of a ring after which it may end nearer.
const CROWD: u64 = 256;
/// Candidates that a ring which ends nearer has at least; it has as many as there were rows before it.
const WANTED: u64 = 32;
/// Rings that explain lists.
const SHOWN_MAX: usize = 200;

/// A record that may be a row.
struct Candidate {
    /// Exact, if its document was read; else it is no nearer.
    distance: f64,
    record: Bytes,
    found: Option<Found>,
}

struct Found {
    doc: Bytes,
    place: Option<Value>,
}

impl Candidate {
    fn bytes(&self) -> usize {
        let found = self.found.as_ref().map_or(0, |found| found.doc.len());
        size_of::<Self>() + self.record.len() + found
    }
}

/// The nearest is the greatest, as the heap wants it; of several the one that was stored first.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = other.distance.total_cmp(&self.distance);
        // Documents that were not read yet may be nearer than their cells tell.
        let unread = self.found.is_none().cmp(&other.found.is_none());
        nearer
            .then(unread)
            .then_with(|| other.record.as_slice().cmp(self.record.as_slice()))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// A ring that was searched, for explain.
#[derive(Clone, Copy, Default)]
struct Ring {
    from: f64,
    to: f64,
    buffered: u64,
    returned: u64,
}

/// What a ring that may end nearer has to know.
#[derive(Default)]
struct Crowd {
    /// The keys of the rings before the current one, and those of it that were scanned before it was made narrower.
    before: IntervalList,
    /// The keys that the current scan is of.
    new: IntervalList,
    /// The last key that it gave; all entries of those before were seen.
    last: Option<Value>,
    /// Entries that it gave.
    entries: u64,
    /// How many there are when this is looked at the next time.
    next_look: u64,
}

/// Searches an index around a point.
pub struct GeoNear {
    collection: Arc<Collection>,
    index: Arc<Index>,
    plan: GeoNearPlan,
    records: RecordReader,
    /// The scan of the current ring.
    scan: Option<IndexScan>,
    /// The keys of the rings so far, the current one included.
    scanned: IntervalList,
    ring: Ring,
    crowd: Crowd,
    /// Whatever is no farther has been found.
    covered: f64,
    /// How wide the next ring is; `None` before the first.
    width: Option<f64>,
    heap: BinaryHeap<Candidate>,
    /// For indexes in which a record may have several entries.
    dedup: Dedup,
    kept: Kept,
    rings: Vec<Ring>,
    counters: Counters,
}

impl GeoNear {
    /// A search of `index`.
    pub fn new(collection: &Arc<Collection>, index: Arc<Index>, plan: GeoNearPlan) -> Self {
        Self {
            records: RecordReader::new(collection.records),
            collection: collection.clone(),
            index,
            plan,
            scan: None,
            scanned: IntervalList::none(),
            ring: Ring::default(),
            crowd: Crowd::default(),
            covered: -1.0,
            width: None,
            heap: BinaryHeap::new(),
            dedup: Dedup::default(),
            kept: Kept::default(),
            rings: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// A scan of the keys within the bounds of the other parts.
    fn scan_of(&self, keys: IntervalList, forward: bool, parts: usize) -> IndexScan {
        let mut bounds: Vec<IntervalList> = self.plan.bounds.parts.clone();
        for bound in bounds.iter_mut().skip(parts) {
            *bound = IntervalList::all();
        }
        bounds[self.plan.at] = keys;
        let plan = IndexScanPlan {
            index: self.plan.index.clone(),
            bounds: IndexBounds { parts: bounds },
            forward,
            key_filter: None,
            key_test: None,
            purpose: ScanPurpose::Entries,
        };
        // The nearest of a record's entries counts.
        IndexScan::new(&self.collection, self.index.clone(), plan).with_repeats()
    }

    /// How wide the first ring is: about as far as the tenth of the entries next to the point in the order of keys, because ten are what
    /// most searches want.
    fn first_width(&mut self, by: &dyn Nearest, batch: &mut Batch<'_>) -> Result<f64> {
        let farthest = by.farthest(&self.plan.near);
        let Some(at) = by.around(&self.plan.near)? else {
            return Ok(farthest);
        };
        let mut distances = Vec::with_capacity(2 * SAMPLE);
        for forward in [true, false] {
            let side = match forward {
                true => Interval::new(at.clone(), true, Value::MaxKey, true),
                false => Interval::new(Value::MinKey, true, at.clone(), false),
            };
            let mut scan = self.scan_of(IntervalList::of(side), forward, self.plan.at);
            for _ in 0..SAMPLE {
                match scan.next_part(batch, self.plan.at)? {
                    Scanned::Entry((key, _)) => distances.push(by.lower_bound(&self.plan.near, key.as_ref())),
                    Scanned::Pause | Scanned::Eof => break,
                }
            }
            self.count(&Counters::default(), scan.counters());
        }
        if distances.len() < SAMPLE {
            return Ok(farthest);
        }
        distances.sort_by(f64::total_cmp);
        Ok(distances[distances.len() * 5 / 8].clamp(farthest * 1e-9, farthest))
    }

    fn count(&mut self, before: &Counters, now: &Counters) {
        self.counters.keys_examined += now.keys_examined - before.keys_examined;
        self.counters.seeks += now.seeks - before.seeks;
    }

    /// Begins the next ring.
    fn open_ring(&mut self, by: &dyn Nearest, batch: &mut Batch<'_>) -> Result<()> {
        let near = self.plan.near.clone();
        let farthest = by.farthest(&near);
        let width = match self.width {
            Some(width) if self.ring.buffered < FEW => width * 2.0,
            Some(width) if self.ring.buffered > MANY => width / 2.0,
            Some(width) => width,
            None => self.first_width(by, batch)?,
        };
        self.width = Some(width);
        let from = self.covered.max(0.0);
        let mut to = from.max(near.min()) + width;
        // Half a ring at the end would cost what a whole one does.
        if to + width / 4.0 >= farthest || to <= from {
            to = farthest;
        }
        self.ring = Ring {
            from,
            to,
            ..Ring::default()
        };
        let before = std::mem::replace(&mut self.scanned, IntervalList::none());
        self.scan_ring(by, before)
    }

    /// Begins to scan what the current ring has and `before` has not.
    fn scan_ring(&mut self, by: &dyn Nearest, before: IntervalList) -> Result<()> {
        let keys = by.within(&self.plan.near, self.ring.to)?;
        let new = match before.is_empty() {
            true => keys.clone(),
            false => keys.intersect(&before.complement()),
        };
        self.scanned = before.union(&keys);
        self.scan = Some(self.scan_of(new.clone(), true, usize::MAX));
        self.crowd = Crowd {
            before,
            new,
            last: None,
            entries: 0,
            next_look: CROWD,
        };
        Ok(())
    }

    /// Whether the current ring was made narrower: it has many entries, and few of them will do. `key` is that of the entry that the scan
    /// gave; the narrower ring finds it again.
    ///
    /// Keys have to come in their order, which they do where all parts before have one value.
    fn narrow(&mut self, by: &dyn Nearest, key: &Value) -> Result<bool> {
        self.crowd.entries += 1;
        let is_other = self.crowd.last.as_ref().is_some_and(|last| !values_equal(last, key));
        if self.crowd.entries < self.crowd.next_look || !is_other {
            self.crowd.last = Some(key.clone());
            return Ok(false);
        }
        self.crowd.next_look *= 2;
        let from = self.ring.from.max(self.plan.near.min());
        let wanted = usize::try_from(self.counters.advanced.max(WANTED)).unwrap_or(usize::MAX);
        let mut distances: Vec<f64> = self.heap.iter().map(|candidate| candidate.distance).collect();
        let in_order = self.plan.bounds.parts[..self.plan.at]
            .iter()
            .all(IntervalList::is_point);
        let last = self.crowd.last.replace(key.clone());
        let (true, Some(last), true) = (in_order, last, wanted.saturating_mul(4) <= distances.len()) else {
            return Ok(false);
        };
        let (_, to, _) = distances.select_nth_unstable_by(wanted, f64::total_cmp);
        let (to, width) = (*to, *to - from);
        // Many at one place, or a ring that would stay as wide.
        if to <= from || to >= self.ring.to {
            return Ok(false);
        }
        let seen = IntervalList::of(Interval::new(Value::MinKey, true, last, true));
        let crowd = std::mem::take(&mut self.crowd);
        let before = crowd.before.union(&crowd.new.intersect(&seen));
        self.width = Some(width);
        self.ring.to = to;
        self.ring.buffered = wanted as u64;
        self.scan_ring(by, before)?;
        Ok(true)
    }

    /// The current ring was searched to its end.
    fn close_ring(&mut self, by: &dyn Nearest) {
        self.scan = None;
        self.covered = match self.ring.to >= by.farthest(&self.plan.near) {
            // Whatever is left was found.
            true => f64::INFINITY,
            false => self.ring.to,
        };
        if self.rings.len() < SHOWN_MAX {
            self.rings.push(self.ring);
        }
    }

    /// Takes an entry among the candidates.
    fn consider(&mut self, by: &dyn Nearest, key: &Value, record: Bytes) -> Result<()> {
        let distance = by.lower_bound(&self.plan.near, key.as_ref());
        if distance > self.plan.near.max() {
            return Ok(());
        }
        self.ring.buffered += 1;
        self.wait(Candidate {
            distance,
            record,
            found: None,
        })
    }

    fn wait(&mut self, candidate: Candidate) -> Result<()> {
        self.kept.grow(candidate.bytes())?;
        self.heap.push(candidate);
        Ok(())
    }

    /// The next candidate as a row, if its distance is known; else it is read.
    fn settle(&mut self, batch: &mut Batch<'_>) -> Result<Option<Row>> {
        let Some(candidate) = self.heap.pop() else {
            return Ok(None);
        };
        self.kept.shrink(candidate.bytes());
        if let Some(found) = candidate.found {
            let meta = self.plan.keeps_distance.then(|| {
                Box::new(DocMeta {
                    geo_distance: Some(candidate.distance),
                    geo_point: found.place,
                    ..DocMeta::default()
                })
            });
            if let Some(ring) = self.rings.last_mut() {
                ring.returned += 1;
            }
            return Ok(Some(Row {
                doc: RowDoc::Stored(found.doc),
                record: Some(candidate.record),
                meta,
            }));
        }
        if self.plan.index.is_multikey() && !self.dedup.is_new_record(&candidate.record)? {
            return Ok(None);
        }
        self.counters.docs_examined += 1;
        // The record may be gone since the entry was read.
        let Some(bytes) = self.records.get(batch.view, &candidate.record)? else {
            return Ok(None);
        };
        let found = nearest(&self.plan.near, bytes.document().as_doc(), &self.plan.path)?;
        let Some((distance, place)) = found else {
            return Ok(None);
        };
        let place = self.plan.keeps_distance.then(|| place.to_value());
        self.wait(Candidate {
            distance,
            record: candidate.record,
            found: Some(Found { doc: bytes, place }),
        })?;
        Ok(None)
    }
}

impl Operator for GeoNear {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let kind = self.plan.index.kind.clone();
        let Some(by) = kind.nearest() else {
            return Err(Error::new(ErrorCode::InternalError, "the index knows no distances"));
        };
        loop {
            if self.counters.is_eof {
                return Ok(Step::Eof);
            }
            if self
                .heap
                .peek()
                .is_some_and(|candidate| candidate.distance <= self.covered)
            {
                if !batch.spend()? {
                    return Ok(Step::Pause);
                }
                self.counters.works += 1;
                match self.settle(batch)? {
                    Some(row) => {
                        self.counters.advanced += 1;
                        return Ok(Step::Row(row));
                    }
                    None => continue,
                }
            }
            if let Some(mut scan) = self.scan.take() {
                let before = *scan.counters();
                let found = scan.next_part(batch, self.plan.at)?;
                self.count(&before, scan.counters());
                self.counters.works += u64::from(!matches!(found, Scanned::Pause));
                self.scan = Some(scan);
                match found {
                    Scanned::Entry((key, _)) if self.narrow(by, &key)? => {}
                    Scanned::Entry((key, record)) => self.consider(by, &key, record)?,
                    Scanned::Pause => return Ok(Step::Pause),
                    Scanned::Eof => self.close_ring(by),
                }
            } else if self.covered == f64::INFINITY {
                self.counters.is_eof = true;
                self.counters.works += 1;
            } else {
                self.open_ring(by, batch)?;
            }
        }
    }

    fn save(&mut self) {
        self.records.save();
        self.dedup.rest();
        self.kept.rest();
        if let Some(scan) = &mut self.scan {
            scan.save();
        }
    }

    fn report(&self) -> Report<'_> {
        let report = Report::new(self.plan.kind(), &self.counters);
        Report {
            index: Some(&self.index),
            ..report
                .holding(self.kept.bytes() + self.dedup.memory())
                .explained_by(self)
        }
    }
}

impl Explain for GeoNear {
    fn plan_fields(&self, out: &mut Document) {
        self.plan.fields(out);
        let intervals: Vec<Value> = (self.rings.iter())
            .map(|ring| {
                doc! {
                    "minDistance": ring.from,
                    "maxDistance": ring.to,
                    "maxInclusive": ring.to >= self.plan.near.max(),
                    "nBuffered": Value::count(ring.buffered),
                    "nReturned": Value::count(ring.returned),
                }
                .into()
            })
            .collect();
        out.push("searchIntervals", intervals);
        out.push("keysExamined", Value::count(self.counters.keys_examined));
        out.push("seeks", Value::count(self.counters.seeks));
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
