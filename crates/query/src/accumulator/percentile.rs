//! `$median` and `$percentile`.

use super::items;
use crate::{Expr, Scope};
use nestor_model::number::Num;
use nestor_model::{DocRef, Error, ErrorCode, Result, Value, ValueRef};

/// The options both take.
pub(super) struct Options {
    pub(super) input: Expr,
    /// Only of `$percentile`.
    pub(super) p: Option<Expr>,
}

impl Options {
    /// `{input, method}` and, for `$percentile`, `p`. Errors: 40414, 40415, 2 for a method that is not
    /// `approximate`, 7750301 and 7750303 for bad `p`.
    pub(super) fn parse(name: &str, with_p: bool, doc: DocRef<'_>, scope: &mut Scope) -> Result<Self> {
        let (mut input, mut p, mut method) = (None, None, None);
        for (option, value) in doc {
            match option {
                "input" => input = Some(Expr::parse(value, scope)?),
                "p" if with_p => p = Some(Expr::parse(value, scope)?),
                "method" => method = Some(value),
                _ => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '{name}.{option}' is an unknown field."),
                    ));
                }
            }
        }
        let missing = |option: &str| {
            Error::location(
                40414,
                format!("BSON field '{name}.{option}' is missing but a required field"),
            )
        };
        let input = input.ok_or_else(|| missing("input"))?;
        if with_p && p.is_none() {
            return Err(missing("p"));
        }
        match method.ok_or_else(|| missing("method"))? {
            ValueRef::String("approximate") => {}
            ValueRef::String("discrete" | "continuous") => {
                return Err(Error::new(
                    ErrorCode::InternalErrorNotSupported,
                    "only the method 'approximate' is supported for percentiles",
                ));
            }
            ValueRef::String(other) => {
                return Err(Error::bad_value(format!(
                    "currently only 'approximate' can be used as percentile 'method', not '{other}'"
                )));
            }
            other => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '{name}.method' is the wrong type '{}', expected type 'string'",
                    other.bson_type().alias()
                )));
            }
        }
        if let Some(constant) = p.as_ref().and_then(Expr::constant) {
            probabilities(constant)?;
        }
        Ok(Self { input, p })
    }
}

/// The values of `p`. Errors: 7750301 no array or empty, 7750302 not a number, 7750303 outside 0 to 1.
pub(super) fn probabilities(p: &Value) -> Result<Vec<f64>> {
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

    /// Takes a number; NaN and other values are left out.
    pub fn add(&mut self, value: ValueRef<'_>) {
        if let Some(number) = Num::from_ref(value).map(Num::to_f64).filter(|v| !v.is_nan()) {
            self.values.push(number);
        }
    }

    /// The values, null without numbers.
    pub fn result(&self) -> Value {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |p: &f64| percentile_of_sorted(&sorted, *p).map_or(Value::Null, Value::Double);
        if self.single {
            return at(&0.5);
        }
        self.probabilities.iter().map(at).collect::<Vec<_>>().into()
    }

    /// Heap bytes held.
    pub fn memory(&self) -> usize {
        self.values.len() * size_of::<f64>()
    }

    /// The state: the numbers.
    pub fn partial(&self) -> Value {
        self.values.iter().map(|v| Value::Double(*v)).collect::<Vec<_>>().into()
    }

    /// Takes what [`Percentile::partial`] gave.
    pub fn merge(&mut self, partial: ValueRef<'_>) {
        items(partial).for_each(|value| self.add(value));
    }
}

/// The value of the nearest rank: the least one that at least the share `p` does not exceed.
pub fn percentile_of_sorted(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
