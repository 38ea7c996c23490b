//! States from which rows are taken back in the order in which they came, for frames that move.

use crate::types::{Type, compare};
use nestor_model::{Result, Value};
use nestor_planner::relation::Accumulator;
use std::collections::VecDeque;

/// The largest or smallest value: of the rows so far those that nothing behind them wins against, so the first has won.
pub(super) struct Extremes {
    ty: Type,
    largest: bool,
    /// Values with the numbers of their rows.
    kept: VecDeque<(u64, Value)>,
    /// Rows that came, and that were taken back.
    came: u64,
    gone: u64,
    bytes: usize,
}

/// Bytes of a value that is kept besides its own.
const ENTRY_BYTES: usize = size_of::<u64>();

impl Extremes {
    /// Without rows.
    pub fn new(ty: Type, largest: bool) -> Self {
        Self {
            ty,
            largest,
            kept: VecDeque::new(),
            came: 0,
            gone: 0,
            bytes: 0,
        }
    }
}

impl Accumulator for Extremes {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let number = self.came;
        self.came += 1;
        let value = args.first().unwrap_or(&Value::Null);
        if matches!(value, Value::Null) {
            return Ok(());
        }
        while let Some((_, last)) = self.kept.back() {
            // Of equal values the first is given.
            let order = compare::compare(&self.ty, value, last);
            if !(if self.largest { order.is_gt() } else { order.is_lt() }) {
                break;
            }
            if let Some((_, last)) = self.kept.pop_back() {
                self.bytes -= last.weight() + ENTRY_BYTES;
            }
        }
        self.bytes += value.weight() + ENTRY_BYTES;
        self.kept.push_back((number, value.clone()));
        Ok(())
    }

    fn remove(&mut self, _args: &[Value]) -> Result<bool> {
        let is_first = self.kept.front().is_some_and(|(number, _)| *number == self.gone);
        if is_first && let Some((_, value)) = self.kept.pop_front() {
            self.bytes -= value.weight() + ENTRY_BYTES;
        }
        self.gone += 1;
        Ok(true)
    }

    fn result(&self) -> Result<Value> {
        Ok(self.kept.front().map_or(Value::Null, |(_, value)| value.clone()))
    }

    fn weight(&self) -> usize {
        self.bytes
    }
}

/// Whether all, or any, are true: by how many are, and are not.
pub(super) struct Truths {
    all: bool,
    counts: [u64; 2],
}

impl Truths {
    /// Without rows.
    pub fn new(all: bool) -> Self {
        Self { all, counts: [0, 0] }
    }
}

impl Accumulator for Truths {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        if let Some(Value::Bool(b)) = args.first() {
            self.counts[usize::from(*b)] += 1;
        }
        Ok(())
    }

    fn remove(&mut self, args: &[Value]) -> Result<bool> {
        if let Some(Value::Bool(b)) = args.first() {
            self.counts[usize::from(*b)] -= 1;
        }
        Ok(true)
    }

    fn result(&self) -> Result<Value> {
        Ok(match (self.counts, self.all) {
            ([0, 0], _) => Value::Null,
            ([no, _], true) => Value::Bool(no == 0),
            ([_, yes], false) => Value::Bool(yes > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::bind;
    use crate::expr::Expr;
    use crate::types::Type;
    use nestor_model::{Decimal128, Value};
    use std::slice::from_ref;

    /// States that slide give for each frame what one that begins there gives.
    #[test]
    fn rows_are_taken_back_exactly() {
        let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).expect("a decimal").0);
        let texts = [
            "1.5",
            "-0.25",
            "1.50",
            "7",
            "0.001",
            "123456789012345678901234567890",
            "NaN",
            "1.5",
            "2",
        ];
        let decimals: Vec<Value> = texts.iter().map(|text| decimal(text)).chain([Value::Null]).collect();
        let whole: Vec<Value> = [5, i64::MAX, -3, i64::MIN, 5, 5, 0].map(Value::Int64).into();
        let words: Vec<Value> = ["b", "a", "c", "c", "", "z"].map(Value::from).into();
        let truths: Vec<Value> = [true, true, false, true].map(Value::Bool).into();
        let names = |names: &[&'static str]| names.to_vec();
        let cases = [
            (Type::Numeric, decimals, names(&["sum", "avg", "min", "max", "count"])),
            (Type::Int8, whole, names(&["sum", "avg", "min", "max", "count"])),
            (Type::Text, words, names(&["min", "max", "count"])),
            (Type::Bool, truths, names(&["bool_and", "bool_or", "count"])),
        ];
        for (ty, values, names) in cases {
            // Over and over, with nulls between.
            let rows: Vec<Value> = (0..60)
                .map(|at| match at % 7 {
                    3 => Value::Null,
                    _ => values[(at * at + at / 4) % values.len()].clone(),
                })
                .collect();
            for name in names {
                let bound = bind(name, vec![Expr::constant(Value::Null, ty.clone())], false).expect("a function");
                for width in [1, 2, 5, 17] {
                    let mut sliding = bound.function.start_sliding().expect("it slides");
                    for (at, row) in rows.iter().enumerate() {
                        let from = (at + 1).saturating_sub(width);
                        let mut fresh = bound.function.start();
                        rows[from..=at]
                            .iter()
                            .for_each(|row| fresh.add(from_ref(row)).expect("room"));
                        if from > 0 && !sliding.remove(from_ref(&rows[from - 1])).expect("no error") {
                            sliding = bound.function.start_sliding().expect("it slides");
                            rows[from..at]
                                .iter()
                                .for_each(|row| sliding.add(from_ref(row)).expect("room"));
                        }
                        sliding.add(from_ref(row)).expect("room");
                        let shown = |value: nestor_model::Result<Value>| format!("{value:?}");
                        assert_eq!(
                            shown(sliding.result()),
                            shown(fresh.result()),
                            "{name} of {ty}, {width} rows to {at}"
                        );
                    }
                }
            }
        }
    }
}
