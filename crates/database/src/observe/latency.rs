//! How long operations took, as a sum and a histogram, by what they were: for `opLatencies` and `latencyStats`.
//!
//! A bucket reaches from its lower bound to the next one's: 0, 2, 4, .. 1024 and 2048, 3072, 4096, 6144, .. 1572864 in
//! half steps, then doubling up to 2^40 microseconds.
//! Source: manual, "$collStats", "latencyStats Document".

use nestor_model::{Document, Value, doc};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of buckets.
const BUCKETS: usize = 51;
/// The first bucket of those in half steps, and the power of two where it begins.
const HALF_STEPS: (usize, u32) = (11, 11);
/// The first bucket after them, likewise.
const WHOLE_STEPS: (usize, u32) = (31, 21);

/// The class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It read documents.
    Reads,
    /// It wrote documents.
    Writes,
    /// Everything else.
    Commands,
    /// It ended a transaction.
    Transactions,
}

/// The classes with the names that replies give them.
pub const CLASSES: [(Class, &str); 4] = [
    (Class::Reads, "reads"),
    (Class::Writes, "writes"),
    (Class::Commands, "commands"),
    (Class::Transactions, "transactions"),
];

/// The latencies of one class.
#[derive(Debug)]
pub struct Latency {
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            micros: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }
}

impl Latency {
    /// Counts an operation.
    pub fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Relaxed);
        if let Some(bucket) = self.buckets.get(bucket_of(micros)) {
            bucket.fetch_add(1, Relaxed);
        }
    }
}

/// The latencies of a class, read at one time and added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    micros: u64,
    buckets: [u64; BUCKETS],
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            micros: 0,
            buckets: [0; BUCKETS],
        }
    }
}

impl Sum {
    /// Adds what was counted.
    pub fn add(&mut self, latency: &Latency) {
        self.micros = self.micros.saturating_add(latency.micros.load(Relaxed));
        for (sum, bucket) in self.buckets.iter_mut().zip(&latency.buckets) {
            *sum = sum.saturating_add(bucket.load(Relaxed));
        }
    }

    /// `{latency: .., ops: ..}`, with the buckets that are not empty in front if they are wanted.
    pub fn document(&self, with_histogram: bool) -> Document {
        let as_long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut out = Document::new();
        if with_histogram {
            let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
            let histogram: Vec<Value> = filled
                .map(|(i, count)| doc! { "micros": as_long(lower_bound(i)), "count": as_long(*count) }.into())
                .collect();
            out.push("histogram", histogram);
        }
        out.push("latency", as_long(self.micros));
        out.push("ops", as_long(self.buckets.iter().sum()));
        // Nothing is encrypted here.
        out.push("queryableEncryptionLatencyMicros", 0i64);
        out
    }
}

fn bucket_of(micros: u64) -> usize {
    // The power of two at or below it; 0 and 1 share the first bucket.
    let power = (micros | 1).ilog2();
    let (first, from) = HALF_STEPS;
    let (last, whole_from) = WHOLE_STEPS;
    if power < from {
        power as usize
    } else if power < whole_from {
        let is_upper_half = micros >> (power - 1) & 1;
        first + 2 * (power - from) as usize + is_upper_half as usize
    } else {
        (last + (power - whole_from) as usize).min(BUCKETS - 1)
    }
}

/// The lower bound of a bucket in microseconds, inclusive.
fn lower_bound(bucket: usize) -> u64 {
    let (first, from) = HALF_STEPS;
    let (last, whole_from) = WHOLE_STEPS;
    if bucket == 0 {
        0
    } else if bucket < first {
        1 << bucket
    } else if bucket < last {
        let step = bucket - first;
        let power = 1u64 << (from as usize + step / 2);
        power + power / 2 * (step as u64 % 2)
    } else {
        1 << (whole_from as usize + bucket - last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_double_and_have_half_steps_up_to_a_second() {
        let bounds: Vec<u64> = (0..BUCKETS).map(lower_bound).collect();
        assert_eq!(
            bounds[..17],
            [
                0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288
            ]
        );
        assert_eq!(bounds[28..33], [786_432, 1_048_576, 1_572_864, 2_097_152, 4_194_304]);
        assert_eq!(bounds[BUCKETS - 1], 1 << 40);
        assert!(bounds.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn times_fall_into_the_bucket_that_begins_at_or_below_them() {
        for bucket in 0..BUCKETS {
            let from = lower_bound(bucket);
            assert_eq!(bucket_of(from), bucket, "{from}");
            if bucket > 0 {
                assert_eq!(bucket_of(from - 1), bucket - 1, "{from} less one");
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_histogram_leaves_empty_buckets_out() {
        let latency = Latency::default();
        for micros in [1, 3, 3, 5000] {
            latency.count(Duration::from_micros(micros));
        }
        let mut sum = Sum::default();
        sum.add(&latency);
        let bucket = |micros: i64, count: i64| Value::from(doc! { "micros": micros, "count": count });
        assert_eq!(
            sum.document(true).to_raw(),
            doc! {
                "histogram": vec![bucket(0, 1), bucket(2, 2), bucket(4096, 1)],
                "latency": 5007i64,
                "ops": 4i64,
                "queryableEncryptionLatencyMicros": 0i64,
            }
            .to_raw()
        );
        assert!(sum.document(false).get("histogram").is_none());
    }

    #[test]
    fn classes_are_in_the_order_of_their_enum() {
        for (i, (class, name)) in CLASSES.iter().enumerate() {
            assert_eq!(*class as usize, i, "{name}");
        }
    }
}
