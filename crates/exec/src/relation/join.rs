//! Joins: a hash table of the right input, or all of its rows where no keys are equal.

use super::key::{self, RowKey};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Join, JoinKind, Scalar, Tuple};
use std::collections::HashMap;

struct HashJoin<S> {
    kind: JoinKind,
    left: BoxRows<S>,
    right: BoxRows<S>,
    keys: Vec<(S, S)>,
    condition: Option<S>,
    widths: (usize, usize),
    kept: Kept,
    /// The right input; made by the first pull.
    table: Option<Table>,
    /// The row of the left input, its matches, and how many were tried; whether it has a pair.
    current: Option<Current>,
    /// Which unmatched row of the right input comes next, once the left one is at its end.
    rest: usize,
    left_done: bool,
}

struct Table {
    rows: Vec<Tuple>,
    paired: Vec<bool>,
    by_key: HashMap<RowKey, Vec<u32>>,
}

struct Current {
    row: Tuple,
    /// `None`: all rows.
    matches: Option<Vec<u32>>,
    at: usize,
    paired: bool,
}

pub(super) fn join<S: Scalar>(plan: &Join<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    Box::new(HashJoin {
        kind: plan.kind,
        left,
        right,
        keys: plan.keys.clone(),
        condition: plan.condition.clone(),
        widths: (plan.left.width(), plan.right.width()),
        kept: Kept::default(),
        table: None,
        current: None,
        rest: 0,
        left_done: false,
    })
}

impl<S: Scalar> HashJoin<S> {
    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Table> {
        let mut table = Table {
            rows: Vec::new(),
            paired: Vec::new(),
            by_key: HashMap::new(),
        };
        // Keys are expressions over both rows side by side.
        let mut side = vec![Value::Null; self.widths.0];
        while let Some(row) = self.right.next(run)? {
            let mut bytes = weight(&row) + 1;
            let number = u32::try_from(table.rows.len()).unwrap_or(u32::MAX);
            if !self.keys.is_empty() {
                side.truncate(self.widths.0);
                side.extend(row.iter().cloned());
                match key::of_join(self.keys.iter().map(|(_, right)| right), &side, &run.env)? {
                    Some(key) => {
                        bytes += weight(&key.0) + 16;
                        table.by_key.entry(key).or_default().push(number);
                    }
                    None if matches!(self.kind, JoinKind::Right | JoinKind::Full) => {}
                    None => continue,
                }
            }
            self.kept.grow(bytes)?;
            table.rows.push(row);
        }
        table.paired = match self.kind {
            JoinKind::Right | JoinKind::Full => vec![false; table.rows.len()],
            _ => Vec::new(),
        };
        Ok(table)
    }
}

impl<S: Scalar> Rows<S> for HashJoin<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.table.is_none() {
            self.table = Some(self.read_right(run)?);
        }
        let Some(table) = &mut self.table else {
            return Ok(None);
        };
        loop {
            if self.left_done {
                if !matches!(self.kind, JoinKind::Right | JoinKind::Full) {
                    return Ok(None);
                }
                while let Some(row) = table.rows.get(self.rest) {
                    self.rest += 1;
                    if !table.paired[self.rest - 1] {
                        let mut out = vec![Value::Null; self.widths.0];
                        out.extend(row.iter().cloned());
                        return Ok(Some(out));
                    }
                }
                return Ok(None);
            }
            let Some(current) = &mut self.current else {
                let Some(row) = self.left.next(run)? else {
                    self.left_done = true;
                    continue;
                };
                let matches = match self.keys.is_empty() {
                    true => None,
                    false => {
                        let mut side = row.clone();
                        side.resize(self.widths.0 + self.widths.1, Value::Null);
                        let key = key::of_join(self.keys.iter().map(|(left, _)| left), &side, &run.env)?;
                        Some(key.and_then(|key| table.by_key.get(&key).cloned()).unwrap_or_default())
                    }
                };
                self.current = Some(Current {
                    row,
                    matches,
                    at: 0,
                    paired: false,
                });
                continue;
            };
            let number = match &current.matches {
                Some(matches) => matches.get(current.at).map(|n| *n as usize),
                None => Some(current.at).filter(|at| *at < table.rows.len()),
            };
            let Some(number) = number else {
                let Some(current) = self.current.take() else {
                    continue;
                };
                let wanted = match self.kind {
                    JoinKind::Left | JoinKind::Full | JoinKind::Anti => !current.paired,
                    _ => false,
                };
                if wanted {
                    let mut out = current.row;
                    if self.kind != JoinKind::Anti {
                        out.resize(self.widths.0 + self.widths.1, Value::Null);
                    }
                    return Ok(Some(out));
                }
                continue;
            };
            current.at += 1;
            row_done()?;
            let mut pair = Vec::with_capacity(self.widths.0 + self.widths.1);
            pair.extend(current.row.iter().cloned());
            pair.extend(table.rows[number].iter().cloned());
            if let Some(condition) = &self.condition
                && !condition.holds(&pair, &run.env)?
            {
                continue;
            }
            current.paired = true;
            if let Some(paired) = table.paired.get_mut(number) {
                *paired = true;
            }
            match self.kind {
                JoinKind::Anti => self.current = None,
                JoinKind::Semi => {
                    pair.truncate(self.widths.0);
                    self.current = None;
                    return Ok(Some(pair));
                }
                _ => return Ok(Some(pair)),
            }
        }
    }
}
