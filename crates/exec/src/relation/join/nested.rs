//! Joins without equal keys: each row of the left input is tried with all rows of the right one.

use crate::kept::Kept;
use crate::relation::{BoxRows, Drained, Rows, Run, row_done, weight};
use nestor_model::statement::Scope;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Join, JoinKind, Scalar, Tuple};

struct Nested<S> {
    kind: JoinKind,
    left: BoxRows<S>,
    right: BoxRows<S>,
    condition: Option<S>,
    widths: (usize, usize),
    kept: Kept,
    /// The right input; made by the first pull.
    rows: Option<Vec<Tuple>>,
    /// Which of its rows had a pair, where that matters.
    paired: Vec<bool>,
    /// The row of the left input that is being paired.
    current: Option<Current>,
    /// Which unmatched row of the right input comes next, once the left one is at its end.
    rest: usize,
    left_done: bool,
}

/// A row of the left input. While a pair is tried, the right row's values stand behind its own.
struct Current {
    row: Tuple,
    /// The next row that may be paired with it.
    next: usize,
    paired: bool,
}

pub(super) fn join<S: Scalar>(plan: &Join<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    Box::new(Nested {
        kind: plan.kind,
        left,
        right,
        condition: plan.condition.clone(),
        widths: (plan.left.width(), plan.right.width()),
        kept: Kept::default(),
        rows: None,
        paired: Vec::new(),
        current: None,
        rest: 0,
        left_done: false,
    })
}

impl<S: Scalar> Nested<S> {
    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Vec<Tuple>> {
        let mut rows = Vec::new();
        let mut right = Drained::default();
        while let Some(row) = right.next(|| self.right.next_chunk(run))? {
            self.kept.grow(weight(&row) + 1)?;
            rows.push(row);
        }
        if matches!(self.kind, JoinKind::Right | JoinKind::Full) {
            self.paired = vec![false; rows.len()];
        }
        Ok(rows)
    }

    /// The next row of the right input that had no pair, beside nulls.
    fn unpaired(&mut self) -> Option<Tuple> {
        while self.rest < self.paired.len() {
            self.rest += 1;
            if !self.paired[self.rest - 1] {
                let mut out = vec![Value::Null; self.widths.0];
                out.extend_from_slice(self.rows.as_ref()?.get(self.rest - 1)?);
                return Some(out);
            }
        }
        None
    }
}

impl<S: Scalar> Rows<S> for Nested<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.rows.is_none() {
            self.rows = Some(self.read_right(run)?);
        }
        loop {
            if self.left_done {
                return Ok(self.unpaired());
            }
            let Some(current) = &mut self.current else {
                let Some(row) = self.left.next(run)? else {
                    self.left_done = true;
                    continue;
                };
                row_done()?;
                let (next, paired) = (0, false);
                self.current = Some(Current { row, next, paired });
                continue;
            };
            let Some(other) = self.rows.as_ref().and_then(|rows| rows.get(current.next)) else {
                let Some(Current { mut row, paired, .. }) = self.current.take() else {
                    continue;
                };
                match self.kind {
                    JoinKind::Anti if !paired => return Ok(Some(row)),
                    JoinKind::Left | JoinKind::Full if !paired => {
                        row.resize(self.widths.0 + self.widths.1, Value::Null);
                        return Ok(Some(row));
                    }
                    _ => continue,
                }
            };
            let number = current.next;
            current.next += 1;
            row_done()?;
            current.row.extend_from_slice(other);
            let _values = Scope::begin();
            let is_pair = match &self.condition {
                Some(condition) => condition.holds(&current.row, &run.env)?,
                None => true,
            };
            if !is_pair {
                current.row.truncate(self.widths.0);
                continue;
            }
            current.paired = true;
            if let Some(paired) = self.paired.get_mut(number) {
                *paired = true;
            }
            match self.kind {
                JoinKind::Anti => self.current = None,
                JoinKind::Semi => {
                    let mut row = std::mem::take(&mut current.row);
                    row.truncate(self.widths.0);
                    self.current = None;
                    return Ok(Some(row));
                }
                _ => {
                    let out = current.row.clone();
                    current.row.truncate(self.widths.0);
                    return Ok(Some(out));
                }
            }
        }
    }
}
