//! Analytics: few clients that ask much. [`events`] has the shape of JSONBench, five queries over nested events; [`hits`] that of ClickBench,
//! queries over one wide table. Both are made by the tool; what each query has to answer is computed from the same numbers.
//!
//! [`run`] loads either of them and compares every answer, row by row and in order.

mod events;
mod hits;
mod run;

pub use run::{Analytics, Shape};

use crate::rows::{Arguments, Rows};
use crate::statement::Statement;
use crate::wire::Protocol;
use std::cmp::Ordering;
use std::sync::LazyLock;

/// A value of an expected answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Expected {
    Int(i64),
    Text(String),
    /// A sum, and of how many: servers round averages in different ways.
    Average(i64, i64),
}

impl Expected {
    /// Which is larger, averages by their value.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Average(a, m), Self::Average(b, n)) => {
                (i128::from(*a) * i128::from(*n)).cmp(&(i128::from(*b) * i128::from(*m)))
            }
            _ => self.cmp(other),
        }
    }

    /// Whether that is what a server answered in column `column` of row `at`.
    fn is_in(&self, rows: &Rows, at: usize, column: usize) -> bool {
        match self {
            Self::Int(number) => rows.int(at, column) == Ok(*number),
            Self::Text(text) => rows.bytes(at, column) == Ok(text.as_bytes()),
            Self::Average(sum, count) => {
                let exact = *sum as f64 / *count as f64;
                // MySQL's averages of whole numbers have four digits.
                rows.float(at, column)
                    .is_ok_and(|found| (found - exact).abs() <= 1e-4 + 1e-9 * exact.abs())
            }
        }
    }
}

/// Rows of an answer, computed when they are first wanted.
type Answer = LazyLock<Vec<Vec<Expected>>, Box<dyn FnOnce() -> Vec<Vec<Expected>> + Send>>;

/// A query and what it has to answer.
struct Question {
    name: &'static str,
    statement: Statement,
    rows: Answer,
}

/// Data and their queries.
trait Dataset {
    /// The table.
    const NAME: &'static str;

    /// SQL that makes it.
    fn create(protocol: Protocol) -> String;

    /// Inserts `count` rows.
    fn insert(protocol: Protocol, count: usize) -> Statement;

    /// Pushes the parameters of row `id`.
    fn push(protocol: Protocol, seed: u64, rows: u64, id: u64, arguments: &mut Arguments);

    /// The queries over so many rows.
    fn questions(seed: u64, rows: u64) -> Vec<Question>;
}

/// Counts by key, the most frequent first and equal ones by key.
fn ranked<K: Ord + Clone>(counts: impl IntoIterator<Item = (K, i64)>) -> Vec<(K, i64)> {
    let mut all: Vec<(K, i64)> = counts.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}
