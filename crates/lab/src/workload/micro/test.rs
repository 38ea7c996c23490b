//! The tests by their public names, and what each of them asks.

use super::ask::{Ask, By, Columns, Summary};

/// How a client chooses the rows it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Any row.
    Uniform,
    /// Always the same ones.
    Hot,
    /// All clients the same one.
    One,
    /// A few far more often than the others, by Zipf's law.
    Zipf,
    /// Rows that are not there yet.
    New,
}

/// A test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its public name.
    pub name: &'static str,
    /// What one operation asks, in order.
    pub asks: Vec<Ask>,
    /// Whether that is a transaction.
    pub is_transaction: bool,
    /// Which rows.
    pub choice: Choice,
}

/// Rows of queries by a list of keys.
const LIST: usize = 100;
/// Rows of ranges by an index.
const RANGE: u64 = 100;
/// Ids of ranges that are summarized.
const SUMMARY: u64 = 1_000;

impl Test {
    /// All 32, those that read first.
    pub fn all() -> Vec<Self> {
        use By::{Primary, Secondary};
        use Columns::{All, Covered, NotCovered};
        let points = |name, by, columns, count| single(name, Ask::Points(by, columns, count));
        let range = |name, by, columns| single(name, Ask::Range(by, columns, RANGE));
        let summary = |name, summary| single(name, Ask::Summarize(summary, SUMMARY));
        vec![
            Test {
                choice: Choice::Hot,
                ..points("hot-points", Primary, All, LIST)
            },
            points("point-query", Primary, NotCovered, 1),
            points("points-covered-pk", Primary, Covered, LIST),
            points("points-covered-si", Secondary, Covered, LIST),
            points("points-notcovered-pk", Primary, NotCovered, LIST),
            points("points-notcovered-si", Secondary, NotCovered, LIST),
            points("random-points_range=10", Primary, All, 10),
            points("random-points_range=100", Primary, All, 100),
            points("random-points_range=1000", Primary, All, 1_000),
            range("range-covered-pk", Primary, Covered),
            range("range-covered-si", Secondary, Covered),
            range("range-notcovered-pk", Primary, NotCovered),
            range("range-notcovered-si", Secondary, NotCovered),
            single("scan", Ask::Scan),
            summary("read-only-count", Summary::Count),
            summary("read-only-distinct", Summary::Distinct),
            summary("read-only-order", Summary::Order),
            transaction("read-only_range=10", reads(10)),
            transaction("read-only_range=100", reads(100)),
            transaction("read-only_range=10000", reads(10_000)),
            summary("read-only-simple", Summary::Simple),
            summary("read-only-sum", Summary::Sum),
            single("update-inlist", Ask::UpdateKs(LIST)),
            single("update-index", Ask::UpdateK),
            single("update-nonindex", Ask::UpdateC),
            Test {
                choice: Choice::One,
                ..single("update-one", Ask::UpdateK)
            },
            Test {
                choice: Choice::Zipf,
                ..single("update-zipf", Ask::UpdateK)
            },
            transaction("read-write_range=10", [reads(10), writes()].concat()),
            transaction("read-write_range=100", [reads(100), writes()].concat()),
            transaction("write-only", writes()),
            single("delete", Ask::Delete),
            Test {
                choice: Choice::New,
                ..single("insert", Ask::Insert(1))
            },
        ]
    }

    /// The test of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|test| test.name == name)
    }

    /// True when it changes rows.
    pub fn writes(&self) -> bool {
        self.asks.iter().any(|ask| ask.writes())
    }
}

fn single(name: &'static str, ask: Ask) -> Test {
    Test {
        name,
        asks: vec![ask],
        is_transaction: false,
        choice: Choice::Uniform,
    }
}

fn transaction(name: &'static str, asks: Vec<Ask>) -> Test {
    Test {
        name,
        asks,
        is_transaction: true,
        choice: Choice::Uniform,
    }
}

/// Ten points and one range for each summary.
fn reads(range: u64) -> Vec<Ask> {
    let mut asks = vec![Ask::Points(By::Primary, Columns::NotCovered, 1); 10];
    let summaries = [Summary::Simple, Summary::Sum, Summary::Order, Summary::Distinct];
    asks.extend(summaries.map(|summary| Ask::Summarize(summary, range)));
    asks
}

/// One update of each kind, and a row deleted and inserted again.
fn writes() -> Vec<Ask> {
    vec![Ask::UpdateK, Ask::UpdateC, Ask::Delete, Ask::Insert(1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_32_by_different_names() {
        let names: BTreeSet<&str> = Test::all().iter().map(|test| test.name).collect();
        assert_eq!(names.len(), 32);
        assert!(Test::named("scan").is_some_and(|test| !test.writes()));
        assert!(Test::named("read-write_range=10").is_some_and(|test| test.writes() && test.is_transaction));
        assert_eq!(Test::named("scans"), None);
    }
}
