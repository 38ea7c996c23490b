//! `$stdDevPop` and `$stdDevSamp`.

use nestor_model::number::Num;
use nestor_model::{Value, ValueRef};

/// Standard deviation in doubles, one pass (Welford).
#[derive(Clone, Debug)]
pub struct StdDev {
    sample: bool,
    count: u64,
    mean: f64,
    squares: f64,
}

impl StdDev {
    /// Of a population.
    pub fn population() -> Self {
        Self {
            sample: false,
            count: 0,
            mean: 0.0,
            squares: 0.0,
        }
    }

    /// Of a sample.
    pub fn sample() -> Self {
        Self {
            sample: true,
            ..Self::population()
        }
    }

    /// Adds a number; other values are left out.
    pub fn add(&mut self, value: ValueRef<'_>) {
        if let Some(number) = Num::from_ref(value) {
            let v = number.to_f64();
            self.count += 1;
            let from_mean = v - self.mean;
            self.mean += from_mean / self.count as f64;
            self.squares += from_mean * (v - self.mean);
        }
    }

    /// Null without numbers and for a sample with fewer than two; NaN once a number was infinite or NaN.
    pub fn result(&self) -> Value {
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
}
