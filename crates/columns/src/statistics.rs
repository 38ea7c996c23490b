//! What is known of the values at a path without looking at all of them: of each segment once, put together for a tree.
//!
//! How many different ones there are tells a sketch of 256 registers (HyperLogLog: P. Flajolet and others, 2007), within about 7 %. What lies
//! where tells a sample in order, whose values stand for equally many rows each.

use crate::column::{Column, State};
use nestor_model::{BsonType, Value, ValueRef, order::hash_value};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

const REGISTERS: usize = 256;

/// Values of a segment that are kept.
const SAMPLE: usize = 48;

/// Values of a tree that are kept.
const SAMPLE_MAX: usize = 512;

/// Longer texts are not kept.
const TEXT_MAX: usize = 128;

/// How many of a tree's segments are looked at.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// What is known of the values at a path.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// Rows that were looked at.
    pub rows: u64,
    /// About how many there are.
    pub all: f64,
    /// The parts of them that have a value other than null, null, and nothing.
    pub values: f64,
    /// See `values`.
    pub nulls: f64,
    /// See `values`; the rest have what columns do not hold: documents, arrays.
    pub missing: f64,
    /// The types of the values, with the part of the rows that each has.
    pub types: Vec<(BsonType, f64)>,
    /// About how many different values there are in all rows.
    pub distinct: f64,
    /// Least and largest value, where they are all of one type.
    pub range: Option<(Value, Value)>,
    /// Values in order, each of which stands for as many rows as any other.
    pub sample: Vec<Value>,
}

/// The same of one segment.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    rows: u64,
    values: u64,
    nulls: u64,
    missing: u64,
    types: BTreeMap<u8, (BsonType, u64)>,
    sketch: Box<[u8; REGISTERS]>,
    sample: Vec<Value>,
}

fn hash(value: ValueRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(value, &mut hasher);
    hasher.finish()
}

impl Part {
    /// Of so many rows without anything.
    pub(crate) fn nothing(rows: usize) -> Self {
        Self {
            missing: rows as u64,
            ..Self::unknown(rows)
        }
    }

    /// Of so many rows that a segment does not hold.
    pub(crate) fn unknown(rows: usize) -> Self {
        Self {
            rows: rows as u64,
            values: 0,
            nulls: 0,
            missing: 0,
            types: BTreeMap::new(),
            sketch: Box::new([0; REGISTERS]),
            sample: Vec::new(),
        }
    }

    /// Of a column.
    pub(crate) fn of(column: &Column, rows: usize) -> Self {
        let mut out = Self::unknown(rows);
        let step = rows.div_ceil(SAMPLE).max(1);
        for row in 0..rows {
            match column.state(row) {
                State::Null => out.nulls += 1,
                State::Missing => out.missing += 1,
                State::Other | State::Document => {}
                State::Value => {
                    let value = column.value(row);
                    let kind = value.bson_type();
                    out.values += 1;
                    out.types.entry(kind as u8).or_insert((kind, 0)).1 += 1;
                    out.note(hash(value));
                    let is_short = value.as_str().is_none_or(|text| text.len() <= TEXT_MAX);
                    // Not always at the same places, lest they go with something in the data.
                    if (row + row / step % 7).is_multiple_of(step) && is_short {
                        out.sample.push(value.to_value());
                    }
                }
            }
        }
        out
    }

    fn note(&mut self, hash: u64) {
        let register = &mut self.sketch[hash as usize % REGISTERS];
        let zeros = ((hash >> 8) | 1 << 55).trailing_zeros() as u8 + 1;
        *register = (*register).max(zeros);
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.nulls += other.nulls;
        self.missing += other.missing;
        for (key, (kind, count)) in &other.types {
            self.types.entry(*key).or_insert((*kind, 0)).1 += count;
        }
        self.sketch
            .iter_mut()
            .zip(other.sketch.iter())
            .for_each(|(own, other)| *own = (*own).max(*other));
        self.sample.extend_from_slice(&other.sample);
    }

    /// About how many different hashes were noted.
    fn distinct(&self) -> f64 {
        const ALPHA: f64 = 0.7213 / (1.0 + 1.079 / REGISTERS as f64);
        let m = REGISTERS as f64;
        let sum: f64 = self.sketch.iter().map(|zeros| 0.5f64.powi(i32::from(*zeros))).sum();
        let raw = ALPHA * m * m / sum;
        let empty = self.sketch.iter().filter(|zeros| **zeros == 0).count();
        match raw <= 2.5 * m && empty > 0 {
            true => m * (m / empty as f64).ln(),
            false => raw,
        }
    }
}

impl Statistics {
    /// What is known of all rows of a tree by that of some segments, which have a part of them.
    pub(crate) fn of<'p>(
        parts: impl ExactSizeIterator<Item = &'p Part> + Clone,
        part_of_all: f64,
        range: Option<(Value, Value)>,
    ) -> Self {
        let mut all = Part::unknown(0);
        let half = parts.len() / 2;
        let mut of_half = 0.0;
        for (at, part) in parts.enumerate() {
            if at == half {
                of_half = all.distinct();
            }
            all.add(part);
        }
        let share = |count: u64| count as f64 / all.rows.max(1) as f64;
        let seen = all
            .distinct()
            .min(all.values as f64)
            .max(f64::from(u8::from(all.values > 0)));
        // Values that come with new rows go on to come with those that were not looked at.
        let is_growing = half > 0 && seen > 1.6 * of_half;
        let distinct = match is_growing && part_of_all < 1.0 {
            true => seen / part_of_all.max(f64::MIN_POSITIVE),
            false => seen,
        };
        let mut sample = all.sample;
        sample.sort_by(|a, b| nestor_model::compare(a, b));
        let step = sample.len().div_ceil(SAMPLE_MAX).max(1);
        Self {
            rows: all.rows,
            all: all.rows as f64 / part_of_all.max(f64::MIN_POSITIVE),
            values: share(all.values),
            nulls: share(all.nulls),
            missing: share(all.missing),
            types: all.types.values().map(|(kind, count)| (*kind, share(*count))).collect(),
            distinct,
            range,
            sample: sample.into_iter().step_by(step).collect(),
        }
    }

    /// Whether columns hold what most rows have: what they do not hold may be anything.
    pub fn are_of_most(&self) -> bool {
        self.values + self.nulls + self.missing > 0.9
    }

    /// About which part of all rows has values for which a test holds, that is of one value at most if it `is_of_one`.
    pub fn part(&self, holds: impl Fn(&Value) -> bool, is_of_one: bool) -> f64 {
        let held = self.sample.iter().filter(|value| holds(value)).count();
        let sampled = held as f64 / self.sample.len().max(1) as f64;
        // What no sampled value meets is rarer than each of these.
        let least = 1.0 / (2 * self.sample.len().max(1)) as f64;
        let part = match (is_of_one, held) {
            (true, _) => sampled.max(1.0 / self.distinct.max(1.0)),
            (false, 0) => least,
            (false, _) => sampled,
        };
        self.values * part
    }

    /// The part of all rows whose values lie in an interval of equally many sampled ones, for who shows them: bounds from the least to the
    /// largest, `buckets` of them at most.
    pub fn bounds(&self, buckets: usize) -> Vec<Value> {
        let last = self.sample.len().saturating_sub(1);
        let buckets = buckets.min(last);
        let at = |bucket: usize| self.sample[bucket * last / buckets.max(1)].clone();
        match self.sample.is_empty() {
            true => Vec::new(),
            false => (0..=buckets).map(at).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuilder;

    fn part(from: i64, to: i64, distinct: i64) -> Part {
        let mut builder = ColumnBuilder::default();
        let rows = (to - from) as usize;
        for at in from..to {
            let value = match at % 10 {
                0 => ValueRef::Null,
                1 => ValueRef::Missing,
                _ => ValueRef::Int64(at.wrapping_mul(7919) % distinct),
            };
            builder.push((at - from) as usize, value);
        }
        Part::of(&builder.finish(rows), rows)
    }

    #[test]
    fn shares_and_numbers_of_values_are_about_right() {
        for distinct in [1, 5, 300, 6000] {
            let parts: Vec<Part> = (0..8).map(|at| part(at * 5000, at * 5000 + 5000, distinct)).collect();
            let found = Statistics::of(parts.iter(), 1.0, None);
            assert_eq!(found.rows, 40_000);
            assert!((found.values - 0.8).abs() < 0.001 && (found.nulls - 0.1).abs() < 0.001);
            // Rows whose number ends in 0 or 1 have no value, so that some values never come.
            let values = (0..40_000i64).filter(|at| at % 10 > 1).map(|at| at * 7919 % distinct);
            let exact = values.collect::<std::collections::HashSet<_>>().len();
            let error = found.distinct / exact as f64;
            assert!((0.9..1.1).contains(&error), "{exact}: {}", found.distinct);
            let middle = found.sample[found.sample.len() / 2].clone();
            let Value::Int64(middle) = middle else {
                panic!("{middle:?}")
            };
            assert!(
                (middle - distinct / 2).abs() <= 1 + distinct / 6,
                "{distinct}: {middle}"
            );
            assert!(found.sample.is_sorted_by(|a, b| nestor_model::compare(a, b).is_le()));
        }
    }

    #[test]
    fn what_grows_with_the_rows_goes_on_to_grow() {
        let parts: Vec<Part> = (0..8).map(|at| part(at * 5000, at * 5000 + 5000, i64::MAX)).collect();
        let found = Statistics::of(parts.iter(), 0.25, None);
        assert!((100_000.0..170_000.0).contains(&found.distinct), "{}", found.distinct);
        let same: Vec<Part> = (0..8).map(|_| part(0, 5000, 100)).collect();
        let found = Statistics::of(same.iter(), 0.25, None);
        assert!((70.0..130.0).contains(&found.distinct), "{}", found.distinct);
    }
}
