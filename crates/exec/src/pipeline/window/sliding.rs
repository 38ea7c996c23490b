//! Functions that follow a window as it moves on, instead of looking at all of its rows each time.

use super::frame::Frame;
use nestor_model::Value;
use nestor_model::number::Num;
use nestor_query::accumulator::{State, Sum};
use nestor_query::collation::{Collator, compare};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A covariance over fewer pairs is computed anew rather than by taking pairs out.
const REMOVABLE_FROM: u32 = 32;

/// How much smaller than its largest the moment may become by taking pairs out: each factor of ten costs a digit.
const SHRINK_MAX: f64 = 1e-6;

/// The least or greatest value of a window: a queue of the rows that can still become it, best first. Each row enters
/// and leaves once, whatever the width. Both ends of the window only move forwards.
pub(super) struct SlidingExtremum<'v> {
    values: &'v [Value],
    better: Ordering,
    collator: Option<&'v Collator>,
    queue: VecDeque<usize>,
    /// Rows before this one were looked at.
    seen: usize,
}

impl<'v> SlidingExtremum<'v> {
    /// Over `values`, of which nulls are left out.
    pub(super) fn new(values: &'v [Value], least: bool, collator: Option<&'v Collator>) -> Self {
        Self {
            values,
            better: if least { Ordering::Less } else { Ordering::Greater },
            collator,
            queue: VecDeque::new(),
            seen: 0,
        }
    }

    /// The value of the next window.
    pub(super) fn slide(&mut self, (from, to): Frame) -> Value {
        for at in self.seen..to {
            let value = &self.values[at];
            if value.is_nullish() {
                continue;
            }
            // The first of equal ones stays in front.
            while let Some(last) = self.queue.back() {
                if compare(value.as_ref(), self.values[*last].as_ref(), self.collator) != self.better {
                    break;
                }
                self.queue.pop_back();
            }
            self.queue.push_back(at);
        }
        self.seen = self.seen.max(to);
        while self.queue.front().is_some_and(|first| *first < from) {
            self.queue.pop_front();
        }
        self.queue
            .front()
            .map_or(Value::Null, |best| self.values[*best].clone())
    }
}

/// The covariance of a window.
pub(super) struct SlidingCovariance<'v> {
    pairs: &'v [(Value, Value)],
    sample: bool,
    state: Covariance,
    current: Frame,
}

impl<'v> SlidingCovariance<'v> {
    pub(super) fn new(pairs: &'v [(Value, Value)], sample: bool) -> Self {
        Self {
            pairs,
            sample,
            state: Covariance::default(),
            current: (0, 0),
        }
    }

    /// The covariance of the next window.
    pub(super) fn slide(&mut self, target: Frame) -> Value {
        let current = self.current;
        let leaving = current.0..target.0.min(current.1);
        let follows = target.0 <= current.1;
        if !(follows && leaving.into_iter().all(|at| self.state.remove(&self.pairs[at]))) {
            self.state = Covariance::default();
            self.current = (target.0, target.0);
        }
        for at in self.current.1..target.1 {
            self.state.add(&self.pairs[at]);
        }
        self.current = target;
        self.state.result(self.sample)
    }
}

/// A covariance in one pass. Pairs that are not both numbers are left out. Pairs with an infinity or NaN count only
/// once there are two finite ones beside them: then their sum is the result. One finite pair alone gives 0.0.
#[derive(Default)]
struct Covariance {
    sum_x: Sum,
    sum_y: Sum,
    moment: Sum,
    /// The largest that the moment or a change of it was.
    moment_max: f64,
    count: u32,
    /// Taken out since the start: rounding errors add up with each.
    removed: u32,
    decimals: bool,
    not_finite: Option<Num>,
}

fn total(sum: &Sum) -> Num {
    Num::from_ref(sum.result().as_ref()).unwrap_or(Num::Int32(0))
}

/// Counts take part as doubles, which shows in the exponents of decimal results.
fn number(n: u32) -> Num {
    Num::Double(f64::from(n))
}

fn numbers((x, y): &(Value, Value)) -> Option<(Num, Num)> {
    Some((Num::from_ref(x.as_ref())?, Num::from_ref(y.as_ref())?))
}

impl Covariance {
    /// The co-moment grows by (x - mean of x before) * (y - mean of y with it).
    fn add(&mut self, pair: &(Value, Value)) {
        let Some((x, y)) = numbers(pair) else {
            return;
        };
        if !x.is_finite() || !y.is_finite() {
            let pair = x.add(y);
            self.not_finite = Some(self.not_finite.map_or(pair, |sum| sum.add(pair)));
            return;
        }
        self.decimals |= matches!(x, Num::Decimal(_)) || matches!(y, Num::Decimal(_));
        let from_mean = (self.count > 0).then(|| x.sub(divide(total(&self.sum_x), number(self.count))));
        self.count += 1;
        self.sum_x.add_number(Value::from(x).as_ref());
        self.sum_y.add_number(Value::from(y).as_ref());
        if let Some(dx) = from_mean {
            let dy = y.sub(divide(total(&self.sum_y), number(self.count)));
            self.change_moment(dx.mul(dy));
        }
    }

    fn change_moment(&mut self, change: Num) {
        self.moment.add_number(Value::from(change).as_ref());
        let reached = change.to_f64().abs().max(total(&self.moment).to_f64().abs());
        self.moment_max = self.moment_max.max(reached);
    }

    /// Takes a pair back out: the step of adding it, backwards. False when that is not exact enough; the covariance is
    /// of no more use then.
    fn remove(&mut self, pair: &(Value, Value)) -> bool {
        let Some((x, y)) = numbers(pair) else {
            return true;
        };
        if self.count <= REMOVABLE_FROM || self.removed >= self.count || self.decimals || self.not_finite.is_some() {
            return false;
        }
        let dy = y.sub(divide(total(&self.sum_y), number(self.count)));
        let removed = self.sum_x.remove(Value::from(x).as_ref()) && self.sum_y.remove(Value::from(y).as_ref());
        self.count -= 1;
        self.removed += 1;
        let dx = x.sub(divide(total(&self.sum_x), number(self.count)));
        self.change_moment(Num::Int32(0).sub(dx.mul(dy)));
        let left = total(&self.moment).to_f64().abs();
        removed && left.is_finite() && left > self.moment_max * SHRINK_MAX
    }

    fn result(&self, sample: bool) -> Value {
        let divisor = if sample {
            self.count.saturating_sub(1)
        } else {
            self.count
        };
        match (divisor, self.count, self.not_finite) {
            (0, _, _) => Value::Null,
            (_, 1, _) => Value::Double(0.0),
            (_, _, Some(sum)) => sum.into(),
            _ => divide(total(&self.moment), number(divisor)).into(),
        }
    }
}

/// The quotient: a decimal when either is one, else a double.
pub(super) fn divide(a: Num, b: Num) -> Num {
    match (a, b) {
        (Num::Decimal(_), _) | (_, Num::Decimal(_)) => Num::Decimal(a.to_decimal().div(b.to_decimal())),
        _ => Num::Double(a.to_f64() / b.to_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(i: usize) -> f64 {
        ((i * 7919) % 1009) as f64 / 1009.0
    }

    #[test]
    fn extrema_are_those_of_all_rows() {
        let values: Vec<Value> = (0..500)
            .map(|i| match (i * 31) % 7 {
                0 => Value::Null,
                1 => Value::Int32(i % 5),
                2 => Value::Double(f64::from(i % 5)),
                3 => Value::from("text"),
                n => Value::Int64(i64::from(i * n % 13)),
            })
            .collect();
        for width in [1, 2, 7, 60] {
            for least in [true, false] {
                let mut sliding = SlidingExtremum::new(&values, least, None);
                for to in 1..=values.len() {
                    let frame = (to.saturating_sub(width), to);
                    let mut plain = Value::Null;
                    for value in values[frame.0..to].iter().filter(|v| !v.is_nullish()) {
                        let better = if least { Ordering::Less } else { Ordering::Greater };
                        if plain.is_nullish() || compare(value.as_ref(), plain.as_ref(), None) == better {
                            plain = value.clone();
                        }
                    }
                    assert!(sliding.slide(frame).identical(&plain), "{frame:?} {least}");
                }
            }
        }
    }

    #[test]
    fn covariances_agree_with_those_computed_anew() {
        type Pair = fn(usize) -> (Value, Value);
        let series: [(&str, Pair); 4] = [
            ("small", |i| (noise(i).into(), noise(i * 3 + 1).into())),
            ("far from zero", |i| {
                ((1e8 + noise(i)).into(), (noise(i * 5) - 1e8).into())
            }),
            ("integers", |i| {
                (Value::Int32((i % 50) as i32), Value::Int64((i * i % 91) as i64))
            }),
            ("outlier and gaps", |i| match i {
                700 => (1e9.into(), 1e9.into()),
                900 => (f64::INFINITY.into(), 1.0.into()),
                _ if i % 10 == 3 => (Value::Null, 1.0.into()),
                _ => (noise(i).into(), noise(i * 3 + 1).into()),
            }),
        ];
        for (name, pair) in series {
            let pairs: Vec<(Value, Value)> = (0..2000).map(pair).collect();
            for sample in [true, false] {
                let mut sliding = SlidingCovariance::new(&pairs, sample);
                for to in 1..=pairs.len() {
                    let frame = (to.saturating_sub(100), to);
                    let mut plain = Covariance::default();
                    pairs[frame.0..to].iter().for_each(|pair| plain.add(pair));
                    let (slid, plain) = (sliding.slide(frame), plain.result(sample));
                    match (&slid, &plain) {
                        (Value::Double(a), Value::Double(b)) if b.is_finite() => {
                            assert!(
                                (a - b).abs() <= 1e-6 * b.abs().max(1e-3),
                                "{name} {frame:?}: {a} for {b}"
                            );
                        }
                        _ => assert!(slid.identical(&plain), "{name} {frame:?}: {slid:?} for {plain:?}"),
                    }
                }
            }
        }
    }
}
