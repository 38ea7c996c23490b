//! Response times: exact enough for p99.9, and counted in powers of two for reports.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The first bucket of reports ends here, in µs.
const FIRST_MICROS: u64 = 256;
/// Buckets of reports: up to 256 µs, 512 µs … and above.
pub const BUCKETS: usize = 18;
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Response times of one test.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("these bounds are good ones");
        Self(histogram)
    }
}

impl Latencies {
    /// One more.
    pub fn record(&mut self, time: Duration) {
        self.0
            .saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    /// Those of another client too.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds, so all fit.
        let _ = self.0.add(&other.0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that the part `quantile` does not exceed, in µs.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The longest, in µs.
    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }

    /// How many took at most 256 µs, at most 512 µs and so on; the last bucket has all others.
    pub fn buckets(&self) -> [u64; BUCKETS] {
        let mut counts = [0; BUCKETS];
        for value in self.0.iter_recorded() {
            let micros = value.value_iterated_to().div_ceil(1_000);
            let bucket = (micros.div_ceil(FIRST_MICROS)).next_power_of_two().trailing_zeros() as usize;
            counts[bucket.min(BUCKETS - 1)] += value.count_at_value();
        }
        counts
    }

    /// Where each bucket ends, as reports write it.
    pub fn bucket_names() -> Vec<String> {
        let name = |bucket: usize| {
            let micros = FIRST_MICROS << bucket;
            match micros {
                _ if bucket == BUCKETS - 1 => "more".to_owned(),
                0..1_000 => format!("{micros} µs"),
                1_000..1_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
                _ => format!("{:.1} s", micros as f64 / 1e6),
            }
        };
        (0..BUCKETS).map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_in_their_bucket() {
        let mut latencies = Latencies::default();
        for micros in [1, 200, 300, 600, 5_000, 60_000_000] {
            latencies.record(Duration::from_micros(micros));
        }
        let buckets = latencies.buckets();
        assert_eq!(buckets[..6], [2, 1, 1, 0, 0, 1]);
        assert_eq!(buckets.iter().sum::<u64>(), 6);
        assert_eq!(Latencies::bucket_names()[0], "256 µs");
        assert!((latencies.quantile_us(0.5) - 300.0).abs() < 2.0);
    }
}
