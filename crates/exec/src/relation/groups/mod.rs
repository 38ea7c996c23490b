//! Which group rows belong to.
//!
//! As long as each column has values of one simple type, what rows are grouped by are words of 64 bits ([`words`]): numbers as they are, texts by
//! numbers that they got when they were met. With the first value that is no such word the groups become those of [`any`], which tells any values
//! apart.

mod any;
mod words;

use super::key;
use crate::interner::Recent;
use any::AnyGroups;
use nestor_model::statement::{ROW, work};
use nestor_model::vector::{Data, NO_ROW, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Chunk, Env, Scalar};
use std::sync::Arc;
pub(crate) use words::Words;

/// Groups by number, in the order in which their first rows came.
pub(super) struct Groups<S> {
    by: Vec<S>,
    sets: Vec<Vec<usize>>,
    table: Table,
    /// For rows that are only looked for; nothing is added from the first of them on.
    recent: Vec<Recent>,
}

enum Table {
    Words(Box<Words>),
    Any(Box<AnyGroups>),
}

/// What the rows of a chunk are grouped by.
pub(in crate::relation) struct KeysOf {
    values: Vec<Arc<Vector>>,
    keys: Vec<Arc<Vector>>,
}

/// To what the rows of a chunk belong besides their values.
#[derive(Clone, Copy)]
pub(in crate::relation) enum Within<'w> {
    /// A grouping set.
    Set(u32),
    /// Of each row a group of others.
    Groups(&'w [u32]),
}

impl Within<'_> {
    fn of(&self, row: usize) -> u32 {
        match self {
            Self::Set(set) => *set,
            Self::Groups(of) => of[row],
        }
    }
}

impl<S: Scalar> Groups<S> {
    /// No groups.
    pub fn new(by: &[S], sets: &[Vec<usize>]) -> Self {
        let is_plain = by.iter().all(Scalar::is_own_key);
        let table = match Words::new(by.len(), sets).filter(|_| is_plain) {
            Some(words) => Table::Words(Box::new(words)),
            None => Table::Any(Box::new(AnyGroups::new(by.iter().map(|by| !by.is_own_key()).collect()))),
        };
        Self {
            by: by.to_vec(),
            sets: sets.to_vec(),
            table,
            recent: Vec::new(),
        }
    }

    /// The groups of empty sets, which are there also without rows.
    pub fn add_empty(&mut self) {
        for set in 0..self.sets.len() {
            if self.sets[set].is_empty() {
                match &mut self.table {
                    Table::Words(words) => words.add_empty(set as u32),
                    Table::Any(any) => any.add_empty(set as u32),
                }
            }
        }
    }

    /// Whether rows belong to them by grouping sets, and not within groups of others.
    pub fn has_sets(&self) -> bool {
        !self.sets.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.table {
            Table::Words(words) => words.len(),
            Table::Any(any) => any.len(),
        }
    }

    /// The grouping set of a group.
    pub fn set(&self, group: usize) -> usize {
        match &self.table {
            Table::Words(words) => words.set(group) as usize,
            Table::Any(any) => any.set(group) as usize,
        }
    }

    /// The values of a group's columns.
    pub fn values(&self, group: usize) -> Vec<Value> {
        match &self.table {
            Table::Words(words) => words.values(group),
            Table::Any(any) => any.values(group),
        }
    }

    /// The columns of the groups from one to another.
    pub fn columns(&self, from: usize, to: usize) -> Vec<Arc<Vector>> {
        match &self.table {
            Table::Words(words) => words.columns(from, to),
            Table::Any(any) => any.columns(from, to),
        }
    }

    /// The column by whose values rows are divided best, as far as that is known.
    pub fn dividing(&self) -> Option<usize> {
        match &self.table {
            Table::Words(words) => words.dividing(0..self.by.len()),
            _ => None,
        }
    }

    /// What rows are grouped by. Errors: those of the expressions.
    pub fn keys(&self, chunk: &Chunk, env: &Env<'_>) -> Result<KeysOf> {
        keys_of(&self.by, chunk, env)
    }

    /// What groups of others, with the same expressions, are grouped by. Errors: those of the interrupt.
    pub fn keys_again(&self, values: Vec<Arc<Vector>>) -> Result<KeysOf> {
        KeysOf::of(&self.by, values)
    }

    /// Sets `numbers` to the groups that rows belong to in a grouping set, new ones among them; returns how many bytes these take.
    pub fn find(&mut self, set: usize, keys: &KeysOf, rows: usize, numbers: &mut Vec<u32>) -> usize {
        numbers.clear();
        let mut columns = self.sets[set].clone();
        columns.sort_unstable();
        columns.dedup();
        if columns.is_empty() {
            let number = (0..self.len()).find(|group| self.set(*group) == set);
            numbers.resize(rows, number.unwrap_or_default() as u32);
            return 0;
        }
        self.number(Within::Set(set as u32), (&columns, keys, rows), numbers)
    }

    /// The rows, of so many with these keys, that belong to groups that there are.
    ///
    /// Errors: those of the interrupt.
    pub fn known(&mut self, keys: &KeysOf, rows: usize) -> Result<Vec<u32>> {
        work(ROW / 2 * rows)?;
        let numbers = self.look_up(keys, rows);
        let known = (0..).zip(&numbers).filter(|(_, number)| **number != NO_ROW);
        Ok(known.map(|(row, _)| row).collect())
    }

    /// Of each row the group with all columns that it belongs to, [`NO_ROW`] where there is none yet.
    pub fn look_up(&mut self, keys: &KeysOf, rows: usize) -> Vec<u32> {
        let columns: Vec<usize> = (0..self.by.len()).collect();
        if let Table::Words(words) = &mut self.table {
            if let Some(found) = words.look_up(&keys.keys, rows, true, &mut self.recent) {
                return found;
            }
            let any = AnyGroups::of_words(words, self.by.len());
            self.table = Table::Any(Box::new(any));
        }
        match &self.table {
            Table::Any(any) => any.look_up((&columns, keys, rows)),
            Table::Words(_) => Vec::new(),
        }
    }

    /// As [`Groups::find`], for rows each of which belongs to a group of others: those of different ones are different.
    pub fn find_within(&mut self, of: &[u32], keys: &KeysOf, numbers: &mut Vec<u32>) -> usize {
        numbers.clear();
        let columns: Vec<usize> = (0..self.by.len()).collect();
        self.number(Within::Groups(of), (&columns, keys, of.len()), numbers)
    }

    /// Adds the group of each row, by what it is within and its values in some columns.
    fn number(
        &mut self,
        within: Within<'_>,
        (columns, keys, rows): (&[usize], &KeysOf, usize),
        numbers: &mut Vec<u32>,
    ) -> usize {
        if let Table::Words(words) = &mut self.table {
            if let Some(bytes) = words.number(within, (columns, &keys.keys, rows), numbers) {
                return bytes;
            }
            numbers.clear();
            let any = AnyGroups::of_words(words, self.by.len());
            self.table = Table::Any(Box::new(any));
        }
        match &mut self.table {
            Table::Any(any) => any.number(within, (columns, keys, rows), numbers),
            Table::Words(_) => 0,
        }
    }
}

/// What rows are grouped by. Errors: those of the expressions.
pub(in crate::relation) fn keys_of<S: Scalar>(by: &[S], chunk: &Chunk, env: &Env<'_>) -> Result<KeysOf> {
    let values = by.iter().map(|by| by.vector(chunk, env)).collect::<Result<_>>()?;
    KeysOf::of(by, values)
}

impl KeysOf {
    fn of<S: Scalar>(by: &[S], values: Vec<Arc<Vector>>) -> Result<Self> {
        let keys = by.iter().zip(&values).map(|(by, values)| key::of_vector(by, values));
        Ok(Self {
            keys: keys.collect::<Result<_>>()?,
            values,
        })
    }

    /// Those of some rows.
    pub fn gather(&self, rows: &[u32]) -> Self {
        let values: Vec<Arc<Vector>> = self.values.iter().map(|own| Arc::new(own.gather(rows))).collect();
        let keys = self.keys.iter().zip(&self.values).zip(&values);
        let key = |((key, of), values): ((&Arc<Vector>, &Arc<Vector>), &Arc<Vector>)| match Arc::ptr_eq(key, of) {
            true => values.clone(),
            false => Arc::new(key.gather(rows)),
        };
        Self {
            keys: keys.map(key).collect(),
            values,
        }
    }

    /// Bytes that they take, about.
    pub fn bytes(&self) -> usize {
        let others = self
            .keys
            .iter()
            .zip(&self.values)
            .filter(|(key, of)| !Arc::ptr_eq(key, of));
        let all = self.values.iter().chain(others.map(|(key, _)| key));
        all.map(|own| bytes_of(own)).sum()
    }

    /// What these are equal by.
    pub fn keys(&self) -> &[Arc<Vector>] {
        &self.keys
    }

    /// The values that rows are grouped by.
    pub fn values(&self) -> &[Arc<Vector>] {
        &self.values
    }
}

/// Bytes that a vector takes beside a pool that its texts are in.
pub(in crate::relation) fn bytes_of(vector: &Vector) -> usize {
    match &vector.data {
        Data::Text(texts) if texts.shared().is_some() => vector.len() * size_of::<u32>(),
        _ => vector.weight(),
    }
}

/// The places of the first rows of groups that were not there before, of which there were `known`.
pub(super) fn first_rows(numbers: &[u32], known: usize) -> Vec<u32> {
    // The first row of a new group is the one whose number is the next.
    let mut next = known as u32;
    let mut first = Vec::new();
    for (row, number) in numbers.iter().enumerate() {
        if *number == next {
            first.push(row as u32);
            next += 1;
        }
    }
    first
}
