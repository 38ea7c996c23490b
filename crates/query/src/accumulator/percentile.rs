//! `$median` and `$percentile`.

use super::{Accumulator, Argument, Definition, State, add_items};
use crate::env::Val;
use nestor_model::number::Num;
use nestor_model::{Error, Result, Value, ValueRef};

pub(super) const MEDIAN: Definition = Definition {
    name: "$median",
    argument: Argument::Percentile { with_p: false },
    start: |_| Accumulator::Percentile(Box::new(Percentile::median())),
};

pub(super) const DEFINITION: Definition = Definition {
    name: "$percentile",
    argument: Argument::Percentile { with_p: true },
    start: |settings| Accumulator::Percentile(Box::new(Percentile::new(settings.probabilities))),
};

/// The values of `p`. Errors: 7750301 no array or empty, 7750302 not a number, 7750303 outside 0 to 1.
pub(crate) fn probabilities(p: &Value) -> Result<Vec<f64>> {
    let bad = |code, what: &str| {
        Error::location(
            code,
            format!("the $percentile 'p' field must be an array of numbers from [0.0, 1.0], {what}"),
        )
    };
    let Some(items) = p.as_array().filter(|items| !items.is_empty()) else {
        return Err(bad(7_750_301, "but found something else"));
    };
    let mut out = Vec::new();
    for item in items.iter() {
        let number = Num::from_ref(item)
            .ok_or_else(|| bad(7_750_302, "but found a value that is no number"))?
            .to_f64();
        if !(0.0..=1.0).contains(&number) {
            return Err(bad(7_750_303, &format!("but found {number}")));
        }
        out.push(number);
    }
    Ok(out)
}

/// Collects numbers as doubles; other values are left out.
///
/// The manual allows an approximation; this one is exact (nearest rank), and its memory counts against the
/// operation's limit.
#[derive(Clone, Debug)]
pub struct Percentile {
    probabilities: Vec<f64>,
    single: bool,
    values: Vec<f64>,
}

impl Percentile {
    /// An array of one value per probability.
    pub fn new(probabilities: Vec<f64>) -> Self {
        Self {
            probabilities,
            single: false,
            values: Vec::new(),
        }
    }

    /// The value at 0.5, not in an array.
    pub fn median() -> Self {
        Self {
            probabilities: vec![0.5],
            single: true,
            values: Vec::new(),
        }
    }
}

impl State for Percentile {
    /// Takes a number; NaN and other values are left out.
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        if let Some(number) = Num::from_ref(value.as_ref()).map(Num::to_f64).filter(|v| !v.is_nan()) {
            self.values.push(number);
        }
        Ok(())
    }

    /// The values, null without numbers.
    fn result(&self) -> Value {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |p: &f64| percentile_of_sorted(&sorted, *p).map_or(Value::Null, Value::Double);
        if self.single {
            return at(&0.5);
        }
        self.probabilities.iter().map(at).collect::<Vec<_>>().into()
    }

    fn memory(&self) -> usize {
        self.values.len() * size_of::<f64>()
    }

    /// The numbers.
    fn partial(&self) -> Value {
        self.values.iter().map(|v| Value::Double(*v)).collect::<Vec<_>>().into()
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        add_items(self, partial)
    }
}

/// The value of the nearest rank: the least one that at least the share `p` does not exceed.
pub fn percentile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
