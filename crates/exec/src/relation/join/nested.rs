//! Joins without equal keys: each row of the left input is tried with all rows of the right one.
//!
//! Right rows for which there is no room go to a file, and so do the left ones then, which go by once for each block of right rows that fits into memory.

use super::divided::Seen;
use crate::kept::Kept;
use crate::relation::spilled::{self, Writing, Written};
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
    /// The right input, or a block of it; made by the first pull.
    rows: Option<Vec<Tuple>>,
    /// The right rows behind the block.
    others: Option<Written>,
    /// Where left rows wait for the next block.
    again: Again,
    /// Which left rows had a pair, where there are several blocks.
    seen: Seen,
    /// Which of its rows had a pair, where that matters.
    paired: Vec<bool>,
    /// The row of the left input that is being paired.
    current: Option<Current>,
    /// Which unmatched row of the right input comes next, once the left one is at its end.
    rest: usize,
    left_done: bool,
}

/// Left rows that are wanted for several blocks.
enum Again {
    /// They are not.
    No,
    /// They are written while they come.
    Writing(Writing),
    /// They are read in the place of the left input.
    Reading(Written),
}

/// A row of the left input. While a pair is tried, the right row's values stand behind its own.
struct Current {
    row: Tuple,
    /// The next row that may be paired with it.
    next: usize,
    paired: bool,
    /// Its number.
    number: u64,
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
        others: None,
        again: Again::No,
        seen: Seen::default(),
        paired: Vec::new(),
        current: None,
        rest: 0,
        left_done: false,
    })
}

impl<S: Scalar> Nested<S> {
    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Vec<Tuple>> {
        let room = run.batch.room();
        let mut rows = Vec::new();
        let mut right = Drained::default();
        while let Some(row) = right.next(|| self.right.next_chunk(run))? {
            let bytes = weight(&row) + 1;
            match room {
                None => self.kept.grow(bytes)?,
                Some(room) if self.kept.bytes() + bytes > room && !rows.is_empty() => {
                    let next = || right.next(|| self.right.next_chunk(run));
                    self.others = Some(spilled::rest(row, next, run)?);
                    self.again = Again::Writing(spilled::file(run)?);
                    break;
                }
                Some(_) => self.kept.grow_spilling(bytes)?,
            }
            rows.push(row);
        }
        self.expect_pairs(rows.len());
        Ok(rows)
    }

    fn expect_pairs(&mut self, rows: usize) {
        if matches!(self.kind, JoinKind::Right | JoinKind::Full) {
            self.paired = vec![false; rows];
        }
    }

    /// Whether there are no right rows behind the block.
    fn is_last(&self) -> bool {
        self.others.as_ref().is_none_or(Written::is_over)
    }

    /// The next left row with its number.
    fn left_row(&mut self, run: &Run<'_, '_, S>) -> Result<Option<(Tuple, u64)>> {
        loop {
            let row = match &mut self.again {
                Again::Reading(rows) => rows.next()?,
                _ => self.left.next(run)?,
            };
            let Some(row) = row else { return Ok(None) };
            row_done()?;
            if let Again::Writing(file) = &mut self.again {
                file.push(row.clone())?;
            }
            let number = self.seen.row;
            self.seen.row += 1;
            if !matches!(self.kind, JoinKind::Semi | JoinKind::Anti) || !self.seen.has(number) {
                return Ok(Some((row, number)));
            }
        }
    }

    /// Reads the next block of right rows, if there is one.
    fn go_on(&mut self, run: &Run<'_, '_, S>) -> Result<bool> {
        let Some(others) = self.others.as_mut().filter(|others| !others.is_over()) else {
            return Ok(false);
        };
        let mut rows = Vec::new();
        self.kept.clear();
        let room = run.batch.room().unwrap_or(usize::MAX);
        while self.kept.bytes() <= room {
            let Some(row) = others.next()? else { break };
            self.kept.grow_spilling(weight(&row) + 1)?;
            rows.push(row);
        }
        self.expect_pairs(rows.len());
        self.rows = Some(rows);
        self.again = match std::mem::replace(&mut self.again, Again::No) {
            Again::Writing(file) => Again::Reading(file.read(run)?),
            Again::Reading(mut rows) => {
                rows.rewind()?;
                Again::Reading(rows)
            }
            Again::No => Again::No,
        };
        (self.seen.row, self.rest, self.left_done) = (0, 0, false);
        Ok(true)
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
                if let Some(row) = self.unpaired() {
                    return Ok(Some(row));
                }
                match self.go_on(run)? {
                    true => continue,
                    false => return Ok(None),
                }
            }
            let Some(current) = &mut self.current else {
                let Some((row, number)) = self.left_row(run)? else {
                    self.left_done = true;
                    continue;
                };
                self.current = Some(Current {
                    row,
                    next: 0,
                    paired: false,
                    number,
                });
                continue;
            };
            let Some(other) = self.rows.as_ref().and_then(|rows| rows.get(current.next)) else {
                let Some(Current {
                    mut row,
                    paired,
                    number,
                    ..
                }) = self.current.take()
                else {
                    continue;
                };
                let has_none = !paired && self.is_last() && !self.seen.has(number);
                match self.kind {
                    JoinKind::Anti if has_none => return Ok(Some(row)),
                    JoinKind::Left | JoinKind::Full if has_none => {
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
            if !current.paired && !matches!(self.again, Again::No) {
                self.seen.add(current.number)?;
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
