//! What queries cost, by shape and client: what `$queryStats` shows.
//!
//! An *execution* is a query with all batches of its cursor. While it goes on its costs gather in a [`Recording`], which a cursor keeps
//! between batches; when the recording is dropped, by the end of the command or of the cursor, whatever ended it, it is added to the
//! entry of its key.
//!
//! Describing a query takes longer than a small query does, so not all are recorded: as many in a second as
//! `internalQueryStatsRateLimit` says, and besides all that have taken [`LONG`], of which a record costs nothing that counts. Entries are kept
//! in memory up to 1 % of it; those that were not seen for longest go first.
//!
//! Source: manual, "$queryStats (aggregation)".

pub mod transform;

use crate::clock;
use crate::lock;
use crate::machine;
use crate::observe::counters::Counter;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nestor_model::Decimal128;
use nestor_model::{Document, Value, doc};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Queries that take so long are always recorded.
pub const LONG: Duration = Duration::from_millis(10);
/// What an entry takes besides the bytes of its key.
const ENTRY_BYTES: usize = 512;

/// Queries by what they have in common.
#[derive(Debug)]
pub struct QueryStats {
    rate: AtomicI64,
    /// The second that queries are counted in, above how many were recorded in it.
    window: AtomicU64,
    started: Instant,
    bytes_max: usize,
    entries: Mutex<Entries>,
    /// Queries that were not recorded because there were too many.
    pub rate_limited: Counter,
    /// Entries that had to make room.
    pub evicted: Counter,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<[u8; 32], Entry>,
    /// The keys in the order in which they were seen last.
    by_use: BTreeMap<u64, [u8; 32]>,
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    key: Arc<Key>,
    used: u64,
    metrics: Metrics,
}

/// What queries of one entry have in common.
#[derive(Clone, Debug)]
pub struct Key {
    /// SHA-256 of the document.
    pub hash: [u8; 32],
    /// Hash of the query shape.
    pub shape_hash: String,
    /// The query shape, the client and other options.
    pub document: Document,
}

impl Key {
    /// The key of queries with that shape.
    pub fn new(shape_hash: String, document: Document) -> Self {
        Self {
            hash: Sha256::digest(document.to_raw().as_bytes()).into(),
            shape_hash,
            document,
        }
    }
}

/// What one execution, or a part of it, has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time spent in the server.
    pub micros: u64,
    /// Documents returned.
    pub docs_returned: u64,
    /// Index keys read.
    pub keys_examined: u64,
    /// Records read.
    pub docs_examined: u64,
    /// Rows were sorted.
    pub has_sort_stage: bool,
    /// Something was written to temporary files.
    pub used_disk: bool,
    /// Several plans were tried.
    pub from_multi_planner: bool,
    /// The plan was known from earlier.
    pub from_plan_cache: bool,
}

/// The cost of an execution that goes on.
#[derive(Debug)]
pub struct Recording {
    stats: Arc<QueryStats>,
    key: Arc<Key>,
    first_micros: u64,
    cost: Cost,
}

impl Recording {
    /// Adds a further batch.
    pub fn add(&mut self, batch: Cost) {
        self.cost.add(batch);
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stats.record(&self.key, self.first_micros, self.cost);
    }
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.micros = self.micros.saturating_add(other.micros);
        self.docs_returned += other.docs_returned;
        self.keys_examined += other.keys_examined;
        self.docs_examined += other.docs_examined;
        self.has_sort_stage |= other.has_sort_stage;
        self.used_disk |= other.used_disk;
        self.from_multi_planner |= other.from_multi_planner;
        self.from_plan_cache |= other.from_plan_cache;
    }
}

/// Sum, extremes and squares of a number.
#[derive(Clone, Copy, Debug)]
struct Spread {
    sum: u64,
    max: u64,
    min: u64,
    squares: u128,
}

impl Spread {
    const NONE: Self = Self {
        sum: 0,
        max: 0,
        min: u64::MAX,
        squares: 0,
    };

    fn add(&mut self, number: u64) {
        self.sum = self.sum.saturating_add(number);
        self.max = self.max.max(number);
        self.min = self.min.min(number);
        self.squares = self.squares.saturating_add(u128::from(number).pow(2));
    }

    fn to_document(self) -> Document {
        let long = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let squares = Decimal128::parse(&self.squares.to_string()).map(|(squares, _)| Value::from(squares));
        let mut out = doc! { "sum": long(self.sum), "max": long(self.max), "min": long(self.min) };
        out.push("sumOfSquares", squares);
        out
    }
}

/// What the executions of one entry have cost.
#[derive(Clone, Debug)]
struct Metrics {
    last_micros: u64,
    count: u64,
    total: Spread,
    first: Spread,
    docs_returned: Spread,
    keys_examined: Spread,
    docs_examined: Spread,
    any: Cost,
    first_seen_ms: i64,
    last_seen_ms: i64,
}

impl Metrics {
    fn new(now_ms: i64) -> Self {
        Self {
            last_micros: 0,
            count: 0,
            total: Spread::NONE,
            first: Spread::NONE,
            docs_returned: Spread::NONE,
            keys_examined: Spread::NONE,
            docs_examined: Spread::NONE,
            any: Cost::default(),
            first_seen_ms: now_ms,
            last_seen_ms: now_ms,
        }
    }

    fn add(&mut self, first_micros: u64, cost: Cost, now_ms: i64) {
        self.last_micros = cost.micros;
        self.count += 1;
        self.total.add(cost.micros);
        self.first.add(first_micros);
        self.docs_returned.add(cost.docs_returned);
        self.keys_examined.add(cost.keys_examined);
        self.docs_examined.add(cost.docs_examined);
        self.any.add(cost);
        self.last_seen_ms = now_ms;
    }

    fn to_document(&self) -> Document {
        let long = |number| i64::try_from(number).unwrap_or(i64::MAX);
        doc! {
            "lastExecutionMicros": long(self.last_micros),
            "execCount": long(self.count),
            "totalExecMicros": self.total.to_document(),
            "firstResponseExecMicros": self.first.to_document(),
            "docsReturned": self.docs_returned.to_document(),
            "keysExamined": self.keys_examined.to_document(),
            "docsExamined": self.docs_examined.to_document(),
            "hasSortStage": self.any.has_sort_stage,
            "usedDisk": self.any.used_disk,
            "fromMultiPlanner": self.any.from_multi_planner,
            "fromPlanCache": self.any.from_plan_cache,
            "firstSeenTimestamp": Value::DateTime(self.first_seen_ms),
            "latestSeenTimestamp": Value::DateTime(self.last_seen_ms),
        }
    }
}

impl Default for QueryStats {
    fn default() -> Self {
        let mebibytes = usize::try_from(machine::usable_memory_mib()).unwrap_or(0);
        Self::with_bytes_max((mebibytes << 20) / 100)
    }
}

impl QueryStats {
    /// Keeps entries of so many bytes.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        Self {
            rate: AtomicI64::new(0),
            window: AtomicU64::new(0),
            started: Instant::now(),
            bytes_max,
            entries: Mutex::default(),
            rate_limited: Counter::default(),
            evicted: Counter::default(),
        }
    }

    /// Says how many queries are recorded in a second: none for 0, all for a negative number.
    pub fn set_rate(&self, rate: i64) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Whether a query that took so long is recorded.
    #[inline]
    pub fn wants(&self, took: Duration) -> bool {
        let rate = self.rate.load(Ordering::Relaxed);
        match rate {
            0 => false,
            _ if rate < 0 || took >= LONG => true,
            _ => self.has_room(rate),
        }
    }

    fn has_room(&self, rate: i64) -> bool {
        // The lower half counts, the upper one says in which second.
        let second = self.started.elapsed().as_secs() & 0xffff_ffff;
        let window = self.window.load(Ordering::Relaxed);
        let counted = match window >> 32 == second {
            true => window & 0xffff_ffff,
            false => 0,
        };
        if counted >= rate.unsigned_abs().min(0xffff_fffe) {
            self.rate_limited.add(1);
            return false;
        }
        // Two at once may count as one: the rate is no promise.
        self.window.store(second << 32 | (counted + 1), Ordering::Relaxed);
        true
    }

    /// Begins to record an execution, whose first batch has cost `cost`.
    pub fn begin(self: &Arc<Self>, key: Key, cost: Cost) -> Recording {
        Recording {
            stats: self.clone(),
            key: Arc::new(key),
            first_micros: cost.micros,
            cost,
        }
    }

    fn record(&self, key: &Arc<Key>, first_micros: u64, cost: Cost) {
        let now_ms = clock::now_ms();
        let mut entries = lock(&self.entries);
        let entries = &mut *entries;
        entries.uses += 1;
        let used = entries.uses;
        let entry = entries.by_key.entry(key.hash).or_insert_with(|| {
            entries.bytes += size(key);
            Entry {
                key: key.clone(),
                used,
                metrics: Metrics::new(now_ms),
            }
        });
        entry.metrics.add(first_micros, cost, now_ms);
        entries.by_use.remove(&entry.used);
        entry.used = used;
        entries.by_use.insert(used, key.hash);
        while entries.bytes > self.bytes_max {
            let Some((_, oldest)) = entries.by_use.pop_first() else {
                break;
            };
            if let Some(gone) = entries.by_key.remove(&oldest) {
                entries.bytes -= size(&gone.key);
                self.evicted.add(1);
            }
        }
    }

    /// How many entries there are, and the bytes that they take.
    pub fn size(&self) -> (usize, usize) {
        let entries = lock(&self.entries);
        (entries.by_key.len(), entries.bytes)
    }

    /// All entries: their keys and metrics, those that took most time first.
    pub fn list(&self) -> Vec<(Arc<Key>, Document)> {
        let mut found: Vec<(u64, Arc<Key>, Document)> = lock(&self.entries)
            .by_key
            .values()
            .map(|entry| (entry.metrics.total.sum, entry.key.clone(), entry.metrics.to_document()))
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.hash.cmp(&b.1.hash)));
        found.into_iter().map(|(_, key, metrics)| (key, metrics)).collect()
    }
}

/// The hash of a key as it is shown.
pub fn hash_text(hash: &[u8; 32]) -> String {
    STANDARD.encode(hash)
}

fn size(key: &Key) -> usize {
    // Documents of values take about four times their bytes.
    ENTRY_BYTES + 4 * key.document.to_raw().as_bytes().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{ValueRef, number};

    fn key(number: u8) -> Key {
        Key {
            hash: [number; 32],
            shape_hash: "AB".into(),
            document: doc! { "n": i32::from(number) },
        }
    }

    fn cost(micros: u64) -> Cost {
        Cost {
            micros,
            docs_returned: 2,
            ..Cost::default()
        }
    }

    #[test]
    fn an_execution_is_all_its_batches() {
        let stats = Arc::new(QueryStats::with_bytes_max(1 << 20));
        let mut first = stats.begin(key(1), cost(10));
        first.add(cost(5));
        assert!(stats.list().is_empty(), "it goes on");
        drop(first);
        drop(stats.begin(key(1), cost(7)));
        drop(stats.begin(key(2), cost(100)));
        let all = stats.list();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].0.hash, [2; 32], "what took most time comes first");
        let metrics = &all[1].1;
        let spread = |name: &str| match metrics.get(name) {
            Some(ValueRef::Document(spread)) => ["sum", "max", "min", "sumOfSquares"]
                .map(|name| spread.get(name).and_then(number::safe_i64).unwrap_or(-1)),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(spread("totalExecMicros"), [22, 15, 7, 15 * 15 + 7 * 7]);
        assert_eq!(spread("firstResponseExecMicros"), [17, 10, 7, 149]);
        assert_eq!(spread("docsReturned"), [6, 4, 2, 20]);
    }

    #[test]
    fn entries_make_room_for_others() {
        let stats = Arc::new(QueryStats::with_bytes_max(3 * size(&key(0))));
        for n in 0..3 {
            drop(stats.begin(key(n), cost(1)));
        }
        drop(stats.begin(key(0), cost(1)));
        drop(stats.begin(key(3), cost(1)));
        let mut left: Vec<u8> = stats.list().iter().map(|(key, _)| key.hash[0]).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 2, 3], "that which was not seen for longest is gone");
        assert_eq!((stats.evicted.get(), stats.size().0), (1, 3));
        assert_eq!(stats.size().1, 3 * size(&key(0)));
    }

    #[test]
    fn so_many_in_a_second_and_all_that_are_long() {
        let stats = QueryStats::with_bytes_max(0);
        assert!(!stats.wants(LONG), "it is off");
        stats.set_rate(5);
        // The second may end meanwhile.
        let wanted = (0..1_000).filter(|_| stats.wants(Duration::ZERO)).count();
        assert!((5..=10).contains(&wanted), "{wanted}");
        assert!(stats.wants(LONG));
        stats.set_rate(-1);
        assert!((0..100).all(|_| stats.wants(Duration::ZERO)));
    }
}
