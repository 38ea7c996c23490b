//! What is counted of every operation: how often each command ran and failed, what documents and queries did, how long
//! it took. For `serverStatus`.
//!
//! Operations count on the lane of their connection, so that connections on different processors rarely write to the
//! same cache line; whoever reads adds the lanes up.

use crate::observe::counters::{Aligned, Counter};
use crate::observe::figures::Figures;
use crate::observe::latency::{CLASSES, Class, Latency, Sum};
use std::time::Duration;

/// Lanes; a power of two.
const LANES: usize = 8;

/// The counters of a process.
#[derive(Debug)]
pub struct Metrics {
    lanes: [Aligned<Lane>; LANES],
    /// Commands that do not exist.
    pub unknown_commands: Counter,
    /// Operations that ended because their `maxTimeMS` was over.
    pub timed_out: Counter,
}

/// Counts by the operations of some connections.
#[derive(Debug)]
struct Lane {
    work: [Counter; WORK],
    latencies: [Latency; CLASSES.len()],
    /// By number of the command.
    commands: Box<[CommandCounts]>,
}

/// How often a command ran, and how often it failed.
#[derive(Debug, Default)]
struct CommandCounts {
    total: Counter,
    failed: Counter,
}

/// Kinds of work that operations do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Documents deleted.
    Deleted,
    /// Documents inserted.
    Inserted,
    /// Documents returned to clients.
    Returned,
    /// Documents that updates found.
    Updated,
    /// Index keys examined.
    Scanned,
    /// Documents examined.
    ScannedObjects,
    /// Queries that scan a collection.
    CollectionScans,
    /// The open cursors that are tailable.
    TailableScans,
    /// Queries that sort without the help of an index.
    ScanAndOrder,
    /// Writes that met another's and were made again.
    WriteConflicts,
}

const WORK: usize = Work::WriteConflicts as usize + 1;

impl Metrics {
    /// Counters of a process that knows so many commands.
    pub fn new(commands: usize) -> Self {
        Self {
            lanes: std::array::from_fn(|_| Aligned::new(Lane::new(commands))),
            unknown_commands: Counter::default(),
            timed_out: Counter::default(),
        }
    }
}

impl Lane {
    fn new(commands: usize) -> Self {
        Self {
            work: Default::default(),
            latencies: Default::default(),
            commands: (0..commands).map(|_| CommandCounts::default()).collect(),
        }
    }
}

impl Metrics {
    fn lane(&self, connection: i64) -> &Lane {
        // The connections are numbered one by one.
        &self.lanes[connection as usize % LANES]
    }

    /// Counts a run of the command of that number.
    pub fn count_command(&self, connection: i64, number: usize, has_failed: bool) {
        if let Some(counts) = self.lane(connection).commands.get(number) {
            counts.total.add(1);
            if has_failed {
                counts.failed.add(1);
            }
        }
    }

    /// Counts how long an operation took.
    pub fn count_latency(&self, connection: i64, class: Class, took: Duration) {
        if let Some(latency) = self.lane(connection).latencies.get(class as usize) {
            latency.count(took);
        }
    }

    /// Counts what an operation, or a statement of it, did.
    pub fn count_work(&self, connection: i64, figures: &Figures) {
        let lane = self.lane(connection);
        let add = |work: Work, n: u64| {
            if n > 0 {
                lane.work[work as usize].add(n);
            }
        };
        let count = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        add(Work::Deleted, count(figures.deleted));
        add(Work::Inserted, count(figures.inserted) + u64::from(figures.upsert));
        add(Work::Returned, figures.returned.unwrap_or(0));
        add(Work::Updated, count(figures.matched));
        add(Work::WriteConflicts, figures.write_conflicts);
        if let Some(totals) = &figures.totals {
            add(Work::Scanned, totals.keys_examined);
            add(Work::ScannedObjects, totals.docs_examined);
            add(Work::ScanAndOrder, totals.has_sort_stage.into());
        }
        if let Some(scan) = figures.collection_scan {
            add(Work::CollectionScans, 1);
            add(Work::TailableScans, scan.is_tailable.into());
        }
    }

    /// How much work of a kind was done.
    pub fn work(&self, work: Work) -> i64 {
        self.sum(|lane| lane.work[work as usize].get())
    }

    /// The latencies of a class.
    pub fn latency(&self, class: Class) -> Sum {
        let mut sum = Sum::default();
        for lane in &self.lanes {
            sum.add(&lane.latencies[class as usize]);
        }
        sum
    }

    /// How often the command of that number ran, and how often it failed.
    pub fn command(&self, number: usize) -> (i64, i64) {
        let of = |counter: fn(&CommandCounts) -> &Counter| {
            self.sum(|lane| lane.commands.get(number).map_or(0, |counts| counter(counts).get()))
        };
        (of(|counts| &counts.total), of(|counts| &counts.failed))
    }

    fn sum(&self, of: impl Fn(&Lane) -> i64) -> i64 {
        self.lanes.iter().map(|lane| of(lane)).fold(0, i64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::figures::CollectionScan;
    use nestor_exec::summary::Totals;

    #[test]
    fn lanes_are_added_up() {
        let metrics = Metrics::new(3);
        let figures = Figures {
            returned: Some(3),
            matched: Some(2),
            upsert: true,
            totals: Some(Totals {
                keys_examined: 5,
                has_sort_stage: true,
                ..Totals::default()
            }),
            collection_scan: Some(CollectionScan { is_tailable: false }),
            ..Figures::default()
        };
        for connection in 1..=20 {
            metrics.count_work(connection, &figures);
            metrics.count_command(connection, 1, connection % 5 == 0);
            metrics.count_latency(connection, Class::Reads, Duration::from_micros(7));
        }
        let expected = [
            (Work::Returned, 60),
            (Work::Updated, 40),
            (Work::Inserted, 20),
            (Work::Deleted, 0),
            (Work::Scanned, 100),
            (Work::ScannedObjects, 0),
            (Work::CollectionScans, 20),
            (Work::TailableScans, 0),
            (Work::ScanAndOrder, 20),
        ];
        for (work, count) in expected {
            assert_eq!(metrics.work(work), count, "{work:?}");
        }
        assert_eq!(metrics.command(1), (20, 4));
        assert_eq!(metrics.command(0), (0, 0));
        let reads = metrics.latency(Class::Reads).document(false);
        assert_eq!(reads.get("latency").and_then(nestor_model::number::safe_i64), Some(140));
    }
}
