//! Where an index scan goes next: bounds as bytes.
//!
//! The values of each part are bounded by a list of intervals. Here the lists are bytes of encoded parts in the
//! order of the scan, and [`ScanBounds::check`] tells of an entry's key whether it is in, whether the scan is
//! over, or to which bytes the cursor may jump because nothing in between can be in.
//!
//! Example, ascending parts, `a` in {1, 3}, `b` in (5, 9]:
//!
//! ```text
//! key (1, 2)    below b's interval    jump to (1, 5) FF, behind every entry with a = 1, b = 5
//! key (1, 7)    in
//! key (1, 10)   above                 jump to (1) FF, behind every entry with a = 1
//! key (2, 0)    a is in a gap         jump to (3) ...
//! key (4, 0)    above everything      over
//! ```

use nestor_model::Result;
use nestor_planner::access::IndexBounds;
use nestor_planner::interval::Interval;
use nestor_storage::keys;

/// Follows a prefix in every key that goes on behind it.
const BEHIND: u8 = 0xFF;

/// Encoded ends of an interval, in the order of bytes.
#[derive(Clone, Debug)]
struct ByteInterval {
    low: Vec<u8>,
    low_inclusive: bool,
    high: Vec<u8>,
    high_inclusive: bool,
    point: bool,
}

#[derive(Clone, Debug)]
struct BytePart {
    /// Ascending in the order of bytes.
    intervals: Vec<ByteInterval>,
    all: bool,
}

/// Bounds of a scan in one direction.
#[derive(Clone, Debug)]
pub struct ScanBounds {
    parts: Vec<BytePart>,
    descending: Vec<bool>,
    forward: bool,
    /// Parts from here on take everything.
    bounded: usize,
    /// The keys within are neighbours: points of the first parts, then one interval, then everything.
    single: bool,
    /// The far end of the range, if the keys are neighbours: forwards they are below these bytes, backwards not below; empty for no
    /// end.
    end: Vec<u8>,
}

/// The verdict on a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is within the bounds.
    In,
    /// Neither it nor anything behind it.
    Over,
    /// Go on at these bytes: forwards at the first key not below, backwards at the last key below.
    Jump,
}

impl ScanBounds {
    /// Encodes bounds for an index with parts of these directions.
    pub fn new(bounds: &IndexBounds, descending: &[bool], forward: bool) -> Self {
        let parts: Vec<BytePart> = bounds
            .parts
            .iter()
            .zip(descending)
            .map(|(list, descending)| {
                let mut intervals: Vec<ByteInterval> =
                    list.intervals().iter().map(|i| encode(i, *descending)).collect();
                if *descending {
                    intervals.reverse();
                }
                BytePart {
                    intervals,
                    all: list.is_all(),
                }
            })
            .collect();
        let bounded = parts.iter().rposition(|part| !part.all).map_or(0, |last| last + 1);
        let mut behind_points = parts.iter().skip_while(|part| {
            let point = |interval: &ByteInterval| interval.point;
            part.intervals.len() == 1 && part.intervals.first().is_some_and(point)
        });
        let first = behind_points.next();
        let single = first.is_none_or(|part| part.intervals.len() == 1) && behind_points.all(|part| part.all);
        let end = match single {
            true => far_end(&parts[..bounded], forward),
            false => Vec::new(),
        };
        Self {
            end,
            parts,
            descending: descending.to_vec(),
            forward,
            bounded,
            single,
        }
    }

    /// True when the keys within the bounds are neighbours: then the first one that is not in, from [`ScanBounds::start`] on,
    /// ends the scan.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// Whether a key from [`ScanBounds::start`] on lies behind the end of a [single](ScanBounds::is_single) range: the same as
    /// [`ScanBounds::check`] says, by one comparison.
    pub fn is_beyond(&self, key: &[u8]) -> bool {
        !self.end.is_empty() && (key >= self.end.as_slice()) == self.forward
    }

    /// The keys of a [single](ScanBounds::is_single) range forwards: from the first on, up to and without the last, or to the end of the tree.
    pub fn range(&self) -> Option<(Vec<u8>, Option<&[u8]>)> {
        let is_range = self.single && self.forward && !self.is_empty();
        is_range.then(|| (self.start(), (!self.end.is_empty()).then_some(self.end.as_slice())))
    }

    /// Where a [single](ScanBounds::is_single) range forwards ends, if it does: keys within are below these bytes.
    pub fn end(&self) -> Option<&[u8]> {
        (self.single && self.forward && !self.end.is_empty()).then_some(self.end.as_slice())
    }

    /// True when nothing can be in.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().any(|part| part.intervals.is_empty())
    }

    /// Where the scan starts: forwards at the first key not below, backwards at the last key below; empty for the end of the tree it starts at.
    pub fn start(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_entry_point(0, &mut out);
        out
    }

    /// Appends the nearest end of parts `from..` in the order of the scan.
    fn append_entry_point(&self, from: usize, out: &mut Vec<u8>) {
        for part in &self.parts[from.min(self.bounded)..self.bounded] {
            let interval = if self.forward {
                part.intervals.first()
            } else {
                part.intervals.last()
            };
            let Some(interval) = interval else {
                return;
            };
            let (bytes, inclusive) = self.near_end(interval);
            out.extend_from_slice(bytes);
            if !inclusive {
                // Forwards behind, backwards before everything of that value.
                if self.forward {
                    out.push(BEHIND);
                }
                return;
            }
            if !interval.point && !self.forward {
                out.push(BEHIND);
                return;
            }
        }
        if !self.forward {
            out.push(BEHIND);
        }
    }

    fn near_end<'i>(&self, interval: &'i ByteInterval) -> (&'i [u8], bool) {
        if self.forward {
            (&interval.low, interval.low_inclusive)
        } else {
            (&interval.high, interval.high_inclusive)
        }
    }

    /// Looks at an entry's key; with [`Verdict::Jump`] the target is in `jump`.
    pub fn check(&self, key: &[u8], jump: &mut Vec<u8>) -> Result<Verdict> {
        let mut at = 0;
        for (i, part) in self.parts[..self.bounded].iter().enumerate() {
            let rest = key.get(at..).unwrap_or_default();
            let position = match self.place(part, rest) {
                Place::In(interval) => interval,
                Place::Before(interval) => {
                    jump.clear();
                    jump.extend_from_slice(&key[..at]);
                    let (bytes, inclusive) = self.near_end(interval);
                    jump.extend_from_slice(bytes);
                    match (self.forward, inclusive) {
                        (true, true) => self.append_entry_point(i + 1, jump),
                        (true, false) => jump.push(BEHIND),
                        (false, true) if interval.point => self.append_entry_point(i + 1, jump),
                        (false, true) => jump.push(BEHIND),
                        (false, false) => {}
                    }
                    return Ok(Verdict::Jump);
                }
                Place::Past if i == 0 => return Ok(Verdict::Over),
                Place::Past => {
                    // Nothing more with this prefix.
                    jump.clear();
                    jump.extend_from_slice(&key[..at]);
                    if self.forward {
                        jump.push(BEHIND);
                    }
                    return Ok(Verdict::Jump);
                }
            };
            if i + 1 < self.bounded {
                at += match position {
                    Some(point) => point.low.len(),
                    None => keys::part_bytes(rest, &self.descending[i..=i])?,
                };
            }
        }
        Ok(Verdict::In)
    }

    /// Where a part's value (at the start of `rest`) lies among the part's intervals.
    fn place<'p>(&self, part: &'p BytePart, rest: &[u8]) -> Place<'p> {
        if part.all {
            return Place::In(None);
        }
        if self.forward {
            // The first interval whose end is not below the value.
            let at = part
                .intervals
                .partition_point(|interval| is_above(rest, &interval.high, interval.high_inclusive));
            let Some(interval) = part.intervals.get(at) else {
                return Place::Past;
            };
            if is_below(rest, &interval.low, interval.low_inclusive) {
                return Place::Before(interval);
            }
            return Place::In(interval.point.then_some(interval));
        }
        let at = part
            .intervals
            .partition_point(|interval| !is_below(rest, &interval.low, interval.low_inclusive));
        let Some(interval) = at.checked_sub(1).and_then(|at| part.intervals.get(at)) else {
            return Place::Past;
        };
        if is_above(rest, &interval.high, interval.high_inclusive) {
            return Place::Before(interval);
        }
        Place::In(interval.point.then_some(interval))
    }
}

/// Where a range of neighbours ends in the direction of the scan: the points of the first parts and the far end of the last.
fn far_end(parts: &[BytePart], forward: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let Some((last, points)) = parts.split_last() else {
        return out;
    };
    for point in points.iter().filter_map(|part| part.intervals.first()) {
        out.extend_from_slice(&point.low);
    }
    if let Some(last) = last.intervals.first() {
        let (bytes, is_behind) = match forward {
            true => (&last.high, last.high_inclusive),
            false => (&last.low, !last.low_inclusive),
        };
        out.extend_from_slice(bytes);
        if is_behind {
            out.push(BEHIND);
        }
    }
    out
}

enum Place<'p> {
    /// Within; the interval when it is a single value.
    In(Option<&'p ByteInterval>),
    /// This interval comes next.
    Before(&'p ByteInterval),
    /// None comes.
    Past,
}

/// Encoded values are free of prefixes: a key continues with `bytes` exactly when its value equals.
fn is_above(rest: &[u8], high: &[u8], inclusive: bool) -> bool {
    if rest.starts_with(high) {
        !inclusive
    } else {
        rest > high
    }
}

fn is_below(rest: &[u8], low: &[u8], inclusive: bool) -> bool {
    if rest.starts_with(low) { !inclusive } else { rest < low }
}

fn encode(interval: &Interval, descending: bool) -> ByteInterval {
    let bytes = |value| {
        let mut out = Vec::with_capacity(16);
        keys::encode_into(value, descending, &mut out);
        out
    };
    let point = interval.is_point();
    let (low, high) = (bytes(&interval.low), bytes(&interval.high));
    if descending {
        return ByteInterval {
            low: high,
            low_inclusive: interval.high_inclusive,
            high: low,
            high_inclusive: interval.low_inclusive,
            point,
        };
    }
    ByteInterval {
        low,
        low_inclusive: interval.low_inclusive,
        high,
        high_inclusive: interval.high_inclusive,
        point,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Value;
    use nestor_planner::interval::IntervalList;

    /// Keys of a unique index end with their values, others go on with a record.
    fn key(values: &[i32], descending: &[bool], unique: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for (v, d) in values.iter().zip(descending) {
            keys::encode_into(&Value::from(*v), *d, &mut out);
        }
        if !unique {
            out.push(7);
        }
        out
    }

    fn list(intervals: &[(i32, bool, i32, bool)]) -> IntervalList {
        let interval = |(l, li, h, hi): &(i32, bool, i32, bool)| Interval::new((*l).into(), *li, (*h).into(), *hi);
        IntervalList::union_of(intervals.iter().map(interval).collect())
    }

    /// Scans all pairs of 0..=9 by the verdicts and returns those that are in, and how many were looked at.
    fn scan(
        (a, b): (IntervalList, IntervalList),
        descending: [bool; 2],
        forward: bool,
        unique: bool,
    ) -> (Vec<(i32, i32)>, usize) {
        let bounds = ScanBounds::new(&IndexBounds { parts: vec![a, b] }, &descending, forward);
        let mut keys: Vec<(Vec<u8>, (i32, i32))> = (0..10)
            .flat_map(|a| (0..10).map(move |b| (key(&[a, b], &descending, unique), (a, b))))
            .collect();
        keys.sort();
        if !forward {
            keys.reverse();
        }
        let not_before = |key: &[u8], target: &[u8]| if forward { key >= target } else { key < target };
        let start = bounds.start();
        let mut at = if start.is_empty() {
            0
        } else {
            keys.iter()
                .position(|(k, _)| not_before(k, &start))
                .unwrap_or(keys.len())
        };
        let (mut found, mut looked, mut jump) = (Vec::new(), 0, Vec::new());
        while at < keys.len() {
            looked += 1;
            let verdict = bounds.check(&keys[at].0, &mut jump).expect("keys decode");
            if bounds.is_single() {
                assert_eq!(bounds.is_beyond(&keys[at].0), verdict != Verdict::In);
            }
            match verdict {
                Verdict::In => {
                    found.push(keys[at].1);
                    at += 1;
                }
                Verdict::Over => break,
                Verdict::Jump => {
                    let next = keys
                        .iter()
                        .position(|(k, _)| not_before(k, &jump))
                        .unwrap_or(keys.len());
                    assert!(next > at, "a jump goes on");
                    at = next;
                }
            }
        }
        (found, looked)
    }

    #[test]
    fn jumps_skip_what_cannot_be_in() {
        for (descending, forward, unique) in ways() {
            let a = list(&[(1, true, 1, true), (3, false, 5, true), (8, true, 8, true)]);
            let b = list(&[(5, false, 7, true), (9, true, 9, true)]);
            let (mut found, looked) = scan((a, b), descending, forward, unique);
            found.sort_unstable();
            let expected: Vec<(i32, i32)> = [1, 4, 5, 8]
                .into_iter()
                .flat_map(|a| [6, 7, 9].map(|b| (a, b)))
                .collect();
            assert_eq!(found, expected, "{descending:?} {forward}");
            assert!(looked <= 12 + 14, "{looked} keys looked at, {descending:?} {forward}");
        }
    }

    fn ways() -> impl Iterator<Item = ([bool; 2], bool, bool)> {
        let both = [false, true];
        let directions = both.into_iter().flat_map(move |a| both.map(move |b| [a, b]));
        directions.flat_map(move |directions| {
            both.into_iter()
                .flat_map(move |forward| both.map(move |unique| (directions, forward, unique)))
        })
    }

    /// Each end of each part within and without, in both directions of scan and parts, with and without records in the keys.
    #[test]
    fn ends_are_in_or_not_whatever_the_direction() {
        for (descending, forward, unique) in ways() {
            for ends in 0..16 {
                let is_in = |bit: u32| ends & (1 << bit) != 0;
                let a = (2, is_in(0), 4, is_in(1));
                let b = (3, is_in(2), 6, is_in(3));
                let within = |v: i32, (low, from, high, to): (i32, bool, i32, bool)| {
                    (v > low || from && v == low) && (v < high || to && v == high)
                };
                for (first, second) in [
                    (Some(a), Some(b)),
                    (Some(a), None),
                    (None, Some(b)),
                    (Some((3, true, 3, true)), Some(b)),
                ] {
                    let of = |bounds: Option<(i32, bool, i32, bool)>| {
                        bounds.map_or_else(IntervalList::all, |bounds| list(&[bounds]))
                    };
                    let (mut found, _) = scan((of(first), of(second)), descending, forward, unique);
                    found.sort_unstable();
                    let all = (0..10).flat_map(|a| (0..10).map(move |b| (a, b)));
                    let is_found =
                        |v: i32, bounds: Option<(i32, bool, i32, bool)>| bounds.is_none_or(|bounds| within(v, bounds));
                    let expected: Vec<(i32, i32)> = all
                        .filter(|(x, y)| is_found(*x, first) && is_found(*y, second))
                        .collect();
                    assert_eq!(
                        found, expected,
                        "{first:?} {second:?} {descending:?} {forward} {unique}"
                    );
                }
            }
        }
    }

    #[test]
    fn bounds_of_later_parts_only() {
        let (found, looked) = scan(
            (IntervalList::all(), list(&[(4, true, 4, true)])),
            [false, false],
            true,
            false,
        );
        assert_eq!(found, (0..10).map(|a| (a, 4)).collect::<Vec<_>>());
        assert!(looked <= 31, "{looked}");
    }
}
