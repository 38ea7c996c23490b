//! `$stdDevPop` and `$stdDevSamp`.

use super::{Accumulator, Argument, Definition, State};
use crate::env::Val;
use nestor_model::number::Num;
use nestor_model::{Result, Value, ValueRef};

pub(super) const POPULATION: Definition = Definition {
    name: "$stdDevPop",
    argument: Argument::Expression,
    start: |_| Accumulator::StdDev(StdDev::population()),
};

pub(super) const SAMPLE: Definition = Definition {
    name: "$stdDevSamp",
    argument: Argument::Expression,
    start: |_| Accumulator::StdDev(StdDev::sample()),
};

/// A deviation over fewer numbers is computed anew rather than by taking numbers out.
const REMOVABLE_FROM: u64 = 32;
/// How much smaller than its largest the sum of squares may become by taking numbers out: each factor of ten costs a
/// digit.
const SHRINK_MAX: f64 = 1e-3;

/// Standard deviation in doubles, one pass (Welford).
///
/// Taking a number out does the step of adding it backwards. Rounding errors add up with each, so after as many steps
/// as there are numbers, or when the sum of squares lost digits, the deviation has to be computed anew.
#[derive(Clone, Debug)]
pub struct StdDev {
    sample: bool,
    count: u64,
    mean: f64,
    squares: f64,
    squares_max: f64,
    removed: u64,
}

impl StdDev {
    /// Of a population.
    pub fn population() -> Self {
        Self {
            sample: false,
            count: 0,
            mean: 0.0,
            squares: 0.0,
            squares_max: 0.0,
            removed: 0,
        }
    }

    /// How many numbers were taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Of a sample.
    pub fn sample() -> Self {
        Self {
            sample: true,
            ..Self::population()
        }
    }
}

impl State for StdDev {
    /// Adds a number; other values are left out.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if let Some(number) = Num::from_ref(value.as_ref()) {
            let v = number.to_f64();
            self.count += 1;
            let from_mean = v - self.mean;
            self.mean += from_mean / self.count as f64;
            self.squares += from_mean * (v - self.mean);
            self.squares_max = self.squares_max.max(self.squares);
        }
        Ok(())
    }

    /// Takes a number back out. False when that would cost digits; it is unchanged then.
    fn remove(&mut self, value: ValueRef<'_>) -> bool {
        let Some(number) = Num::from_ref(value) else {
            return true;
        };
        let v = number.to_f64();
        if self.count <= REMOVABLE_FROM || self.removed >= self.count {
            return false;
        }
        let mean = self.mean - (v - self.mean) / (self.count - 1) as f64;
        let squares = self.squares - (v - mean) * (v - self.mean);
        // Also false when anything was infinite or NaN.
        let is_sound = squares > self.squares_max * SHRINK_MAX && squares.is_finite();
        if is_sound {
            (self.mean, self.squares) = (mean, squares);
            self.count -= 1;
            self.removed += 1;
        }
        is_sound
    }

    /// Null without numbers and for a sample with fewer than two; NaN once a number was infinite or NaN.
    fn result(&self) -> Value {
        let divisor = if self.sample {
            self.count.saturating_sub(1)
        } else {
            self.count
        };
        if divisor == 0 {
            return Value::Null;
        }
        Value::Double((self.squares / divisor as f64).sqrt())
    }

    /// Numbers of a fixed size.
    fn memory(&self) -> usize {
        0
    }

    /// Count, mean, sum of squares.
    fn partial(&self) -> Value {
        vec![
            Value::Int64(self.count as i64),
            Value::Double(self.mean),
            Value::Double(self.squares),
        ]
        .into()
    }

    /// The two variances put together (Chan, Golub and LeVeque: updating formulae for variances).
    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        let ValueRef::Array(items) = partial else {
            return Ok(());
        };
        let (Some(ValueRef::Int64(count)), Some(ValueRef::Double(mean)), Some(ValueRef::Double(squares))) =
            (items.get(0), items.get(1), items.get(2))
        else {
            return Ok(());
        };
        if count == 0 {
            return Ok(());
        }
        if self.count == 0 {
            (self.mean, self.squares) = (mean, squares);
        } else {
            let (own, other) = (self.count as f64, count as f64);
            let from_mean = mean - self.mean;
            self.mean += from_mean * other / (own + other);
            self.squares += squares + from_mean * from_mean * own * other / (own + other);
        }
        self.count += count as u64;
        self.squares_max = self.squares_max.max(self.squares);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(state: &mut StdDev, values: &[f64]) {
        for value in values {
            state.add(Val::Ref(ValueRef::Double(*value))).expect("a number");
        }
    }

    fn of(values: &[f64]) -> f64 {
        let mut state = StdDev::sample();
        add_all(&mut state, values);
        match state.result() {
            Value::Double(v) => v,
            other => panic!("{other:?}"),
        }
    }

    /// Windows over numbers far from zero, over growing ones, and past an outlier.
    #[test]
    fn sliding_agrees_with_computing_anew() {
        let noise = |i: usize| ((i * 7919) % 1009) as f64 / 1009.0;
        let series: [(&str, Vec<f64>); 4] = [
            ("small", (0..2000).map(noise).collect()),
            ("far from zero", (0..2000).map(|i| 1e9 + noise(i)).collect()),
            ("growing", (0..2000).map(|i| (i * i) as f64 + noise(i)).collect()),
            (
                "outlier",
                (0..2000).map(|i| if i == 700 { 1e12 } else { noise(i) }).collect(),
            ),
        ];
        for (name, values) in series {
            let width = 100;
            let mut state = StdDev::sample();
            let mut anew = 0;
            for to in 0..values.len() {
                if to >= width && !state.remove(ValueRef::Double(values[to - width])) {
                    anew += 1;
                    state = StdDev::sample();
                    add_all(&mut state, &values[to + 1 - width..to]);
                }
                add_all(&mut state, &values[to..=to]);
                if to >= width {
                    let Value::Double(slid) = state.result() else {
                        panic!("a number");
                    };
                    let plain = of(&values[to + 1 - width..=to]);
                    assert!(
                        (slid - plain).abs() <= plain * 1e-6,
                        "{name} at {to}: {slid} for {plain}"
                    );
                }
            }
            assert!(anew < 100, "{name}: computed anew {anew} times");
        }
    }
}
