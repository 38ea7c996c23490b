//! Joins: a hash table of the right input, or all of its rows where no keys are equal.

use super::key::{Keys, hash_of};
use super::{BoxRows, Rows, Run, row_done, weight};
use crate::kept::Kept;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nestor_model::{Result, Value, values_equal};
use nestor_planner::relation::{Join, JoinKind, Scalar, Tuple};
use std::hash::RandomState;

struct HashJoin<S> {
    kind: JoinKind,
    left: BoxRows<S>,
    right: BoxRows<S>,
    /// The keys over left rows, and over right rows behind the columns of the left.
    keys: (Keys<S>, Keys<S>),
    condition: Option<S>,
    widths: (usize, usize),
    kept: Kept,
    hashes: RandomState,
    /// The right input; made by the first pull.
    table: Option<Table>,
    /// The row of the left input that is being paired.
    current: Option<Current>,
    /// What is computed of the current row's key.
    computed: Vec<Value>,
    /// Which unmatched row of the right input comes next, once the left one is at its end.
    rest: usize,
    left_done: bool,
}

/// No row.
const END: u32 = u32::MAX;

/// Rows of the right input: those with the same key, or all where there are no keys, are a chain in the order in which they came.
struct Table {
    rows: Vec<Tuple>,
    /// The next row of each row's chain.
    next: Vec<u32>,
    paired: Vec<bool>,
    /// What was computed of each row's key: as many values for each as there are parts, unless these are columns.
    computed: Vec<Value>,
    chains: HashTable<Chain>,
}

#[derive(Clone, Copy)]
struct Chain {
    hash: u64,
    first: u32,
    last: u32,
}

/// Part `part` of the key of row number `row` of a table.
fn part_of<'t, S: Scalar>(keys: &Keys<S>, table: (&'t [Tuple], &'t [Value]), row: u32, part: usize) -> &'t Value {
    let row = row as usize;
    let computed = match keys.are_columns() {
        true => &[],
        false => &table.1[row * keys.len()..],
    };
    keys.part(part, &table.0[row], computed)
}

/// A row of the left input. While a pair is tried, the right row's values stand behind its own.
struct Current {
    row: Tuple,
    /// The next of the rows that may be paired with it.
    next: u32,
    paired: bool,
}

pub(super) fn join<S: Scalar>(plan: &Join<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    let widths = (plan.left.width(), plan.right.width());
    let (own, others) = plan.keys.iter().cloned().unzip();
    Box::new(HashJoin {
        kind: plan.kind,
        left,
        right,
        keys: (Keys::new(own, 0), Keys::new(others, widths.0)),
        condition: plan.condition.clone(),
        widths,
        kept: Kept::default(),
        hashes: RandomState::new(),
        table: None,
        current: None,
        computed: Vec::new(),
        rest: 0,
        left_done: false,
    })
}

impl<S: Scalar> HashJoin<S> {
    fn read_right(&mut self, run: &Run<'_, '_, S>) -> Result<Table> {
        let keys = &self.keys.1;
        let mut table = Table {
            rows: Vec::new(),
            next: Vec::new(),
            paired: Vec::new(),
            computed: Vec::new(),
            chains: HashTable::new(),
        };
        let keeps_all = matches!(self.kind, JoinKind::Right | JoinKind::Full);
        // Keys are expressions over both rows side by side.
        let mut side = vec![Value::Null; self.widths.0];
        let mut last = END;
        while let Some(row) = self.right.next(run)? {
            let number = u32::try_from(table.rows.len()).unwrap_or(END);
            let mut bytes = weight(&row) + 1 + size_of::<u32>();
            if keys.len() == 0 {
                if let Some(before) = table.next.get_mut(last as usize) {
                    *before = number;
                }
                last = number;
            } else {
                if !keys.are_columns() {
                    side.truncate(self.widths.0);
                    side.extend_from_slice(&row);
                }
                keys.compute(&side, &run.env, &mut self.computed)?;
                let parts = || (0..keys.len()).map(|i| keys.part(i, &row, &self.computed));
                let is_null = parts().any(|part| matches!(part, Value::Null));
                if is_null && !keeps_all {
                    continue;
                }
                if !is_null {
                    let hash = hash_of(&self.hashes, parts());
                    let known = (&*table.rows, &*table.computed);
                    let is_same = |chain: &Chain| {
                        let same = |(i, part)| values_equal(part, part_of(keys, known, chain.first, i));
                        chain.hash == hash && parts().enumerate().all(same)
                    };
                    match table.chains.entry(hash, is_same, |chain| chain.hash) {
                        Entry::Occupied(mut chain) => {
                            let before = std::mem::replace(&mut chain.get_mut().last, number);
                            table.next[before as usize] = number;
                        }
                        Entry::Vacant(place) => {
                            bytes += size_of::<Chain>() * 2;
                            place.insert(Chain {
                                hash,
                                first: number,
                                last: number,
                            });
                        }
                    }
                }
                bytes += self.computed.iter().map(Value::weight).sum::<usize>();
                table.computed.append(&mut self.computed);
            }
            self.kept.grow(bytes)?;
            table.next.push(END);
            table.rows.push(row);
        }
        if keeps_all {
            table.paired = vec![false; table.rows.len()];
        }
        Ok(table)
    }

    /// The first of the rows of the table that have the key of a left row.
    fn first(&mut self, row: &[Value], run: &Run<'_, '_, S>) -> Result<u32> {
        let (keys, others) = (&self.keys.0, &self.keys.1);
        let Some(table) = &self.table else {
            return Ok(END);
        };
        if keys.len() == 0 {
            return Ok(if table.rows.is_empty() { END } else { 0 });
        }
        keys.compute(row, &run.env, &mut self.computed)?;
        let parts = || (0..keys.len()).map(|i| keys.part(i, row, &self.computed));
        if parts().any(|part| matches!(part, Value::Null)) {
            return Ok(END);
        }
        let hash = hash_of(&self.hashes, parts());
        let known = (&*table.rows, &*table.computed);
        let is_same = |chain: &Chain| {
            let same = |(i, part)| values_equal(part, part_of(others, known, chain.first, i));
            chain.hash == hash && parts().enumerate().all(same)
        };
        Ok(table.chains.find(hash, is_same).map_or(END, |chain| chain.first))
    }

    /// The next row of the right input that had no pair, beside nulls.
    fn unpaired(&mut self) -> Option<Tuple> {
        let table = self.table.as_mut()?;
        while let Some(row) = table.rows.get(self.rest) {
            self.rest += 1;
            if table.paired.get(self.rest - 1) == Some(&false) {
                let mut out = vec![Value::Null; self.widths.0];
                out.extend_from_slice(row);
                return Some(out);
            }
        }
        None
    }
}

impl<S: Scalar> Rows<S> for HashJoin<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.table.is_none() {
            self.table = Some(self.read_right(run)?);
        }
        loop {
            if self.left_done {
                return Ok(self.unpaired());
            }
            let Some(current) = &mut self.current else {
                let Some(mut row) = self.left.next(run)? else {
                    self.left_done = true;
                    continue;
                };
                row_done()?;
                let next = self.first(&row, run)?;
                let keeps_unpaired = matches!(self.kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti);
                if next == END && !keeps_unpaired {
                    continue;
                }
                if next != END && !matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                    row.reserve_exact(self.widths.1);
                }
                let paired = false;
                self.current = Some(Current { row, next, paired });
                continue;
            };
            let (Some(table), true) = (&mut self.table, current.next != END) else {
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
            let number = current.next as usize;
            current.next = table.next[number];
            row_done()?;
            let is_pair = match (&self.condition, self.kind) {
                (None, JoinKind::Semi | JoinKind::Anti) => true,
                (condition, _) => {
                    current.row.extend_from_slice(&table.rows[number]);
                    match condition {
                        Some(condition) => condition.holds(&current.row, &run.env)?,
                        None => true,
                    }
                }
            };
            if !is_pair {
                current.row.truncate(self.widths.0);
                continue;
            }
            current.paired = true;
            if let Some(paired) = table.paired.get_mut(number) {
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
                // The last pair of a row takes it along.
                _ if current.next == END => {
                    let row = std::mem::take(&mut current.row);
                    self.current = None;
                    return Ok(Some(row));
                }
                _ => {
                    let mut out = Vec::with_capacity(current.row.len());
                    out.extend_from_slice(&current.row[..self.widths.0]);
                    out.extend(current.row.drain(self.widths.0..));
                    return Ok(Some(out));
                }
            }
        }
    }
}
