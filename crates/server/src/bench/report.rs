//! The table a run prints.

use super::load::Outcome;
use super::messages::Case;
use nestor_model::{DocRef, RawDoc, ValueRef};
use std::time::Duration;

/// One case at one size.
pub struct Row {
    /// The workload that ran.
    pub case: Case,
    /// Size of the collection.
    pub documents: u64,
    /// Its operations, latencies and errors.
    pub outcome: Outcome,
    /// The server's CPU time; `None` when its process is not known.
    pub spent: Option<Duration>,
    /// The responder's CPU time per message.
    pub baseline: Duration,
}

impl Row {
    /// What was done, batches counted by their documents.
    fn operations(&self) -> f64 {
        (self.outcome.messages * self.case.operations_per_message(self.documents)).max(1) as f64
    }

    /// How fast.
    pub fn operations_per_second(&self) -> f64 {
        self.operations() / self.outcome.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Prints rows as they come and compares sizes at the end.
pub struct Report {
    /// Case, size and µs of server CPU per operation.
    costs: Vec<(Case, u64, f64)>,
    has_cpu: bool,
}

impl Report {
    /// Prints the head of the table.
    pub fn new(connections: usize, has_cpu: bool) -> Self {
        println!("{connections} connections (loading: 2); server CPU and latencies in µs");
        println!(
            "{:<30} {:>9} {:>10} {:>8} {:>10} {:>6} {:>8} {:>8} {:>8} {:>9}",
            "case", "documents", "ops/s", "CPU/op", "responder", "ratio", "p50", "p99", "p99.9", "max"
        );
        Self {
            costs: Vec::new(),
            has_cpu,
        }
    }

    /// Prints a row.
    pub fn add(&mut self, row: Row) {
        let per_message = row.case.operations_per_message(row.documents);
        let operations = row.operations();
        let baseline = microseconds(row.baseline) / per_message as f64;
        let quantile = |q: f64| row.outcome.latencies.value_at_quantile(q) as f64 / 1e3;
        let (cost, ratio) = match row.spent {
            Some(spent) => {
                let cost = microseconds(spent) / operations;
                self.costs.push((row.case, row.documents, cost));
                (format!("{cost:.2}"), format!("{:.1}", cost / baseline.max(1e-3)))
            }
            None => ("-".into(), "-".into()),
        };
        println!(
            "{:<30} {:>9} {:>10.0} {:>8} {:>10.2} {:>6} {:>8.0} {:>8.0} {:>8.0} {:>9.0}",
            row.case.title(),
            row.documents,
            row.operations_per_second(),
            cost,
            baseline,
            ratio,
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            row.outcome.latencies.max() as f64 / 1e3,
        );
    }

    /// Compares the largest size with the smallest.
    pub fn finish(&self) {
        if !self.has_cpu {
            println!("CPU of the server is not known: say --pid");
        }
        for case in Case::ALL {
            let mut of_case = self.costs.iter().filter(|(c, _, _)| *c == case);
            if let (Some(small), Some(large)) = (of_case.next(), of_case.next_back()) {
                println!(
                    "{}: {} documents cost {:.2} times what {} do",
                    case.title(),
                    large.1,
                    large.2 / small.2.max(1e-3),
                    small.1
                );
            }
        }
    }
}

/// How fast an index on `field` was built.
pub fn build_line(field: &str, documents: u64, elapsed: Duration, spent: Option<Duration>) -> String {
    let rate = documents as f64 / elapsed.as_secs_f64().max(1e-9);
    let cost = spent.map_or(String::new(), |spent| {
        format!(
            ", {:.2} µs of server CPU each",
            microseconds(spent) / documents.max(1) as f64
        )
    });
    format!("index on {field} of {documents} documents: {rate:.0} keys/s{cost}")
}

/// What `reply`, an explain of an operation of `case`, counted.
pub fn examined_line(case: Case, reply: RawDoc<'_>) -> String {
    let stats = execution_stats(reply.into());
    let count = |name| {
        stats
            .and_then(|stats| stats.get(name))
            .map_or("?".into(), |count| format!("{count:?}"))
    };
    format!(
        "{}: {} keys and {} documents examined for {} returned",
        case.title(),
        count("totalKeysExamined"),
        count("totalDocsExamined"),
        count("nReturned")
    )
}

/// The first `executionStats`: an aggregation has them in its first stage.
fn execution_stats(explained: DocRef<'_>) -> Option<DocRef<'_>> {
    if let Some(stats) = explained.get("executionStats").and_then(ValueRef::as_document) {
        return Some(stats);
    }
    let stages = explained.get("stages").and_then(ValueRef::as_array)?;
    let first = stages.iter().next().and_then(ValueRef::as_document)?;
    let cursor = first.get("$cursor").or_else(|| first.get("$geoNearCursor"));
    execution_stats(cursor.and_then(ValueRef::as_document)?)
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// For printing.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// For printing.
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
