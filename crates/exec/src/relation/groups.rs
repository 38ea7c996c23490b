//! Which group rows belong to.

use super::key;
use hashbrown::HashTable;
use nestor_model::vector::{Builder, Data, Seed, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Chunk, Env, Scalar};
use std::sync::Arc;

/// Groups by number, in the order in which their first rows came.
pub(super) struct Groups<S> {
    by: Vec<S>,
    sets: Vec<Vec<usize>>,
    seed: Seed,
    /// Numbers of groups by what they are equal by.
    places: HashTable<u32>,
    hashes: Vec<u64>,
    set_of: Vec<u32>,
    /// The values of each column; null in groups of sets without it.
    values: Vec<Builder>,
    /// What values are equal by, of columns where these are not the values themselves.
    keys: Vec<Option<Builder>>,
}

/// What the rows of a chunk are grouped by.
pub(super) struct KeysOf {
    values: Vec<Arc<Vector>>,
    keys: Vec<Arc<Vector>>,
}

impl<S: Scalar> Groups<S> {
    /// No groups.
    pub fn new(by: &[S], sets: &[Vec<usize>]) -> Self {
        Self {
            by: by.to_vec(),
            sets: sets.to_vec(),
            seed: Seed::default(),
            places: HashTable::new(),
            hashes: Vec::new(),
            set_of: Vec::new(),
            values: by.iter().map(|_| Builder::default()).collect(),
            keys: by.iter().map(|by| (!by.is_own_key()).then(Builder::default)).collect(),
        }
    }

    /// The groups of empty sets, which are there also without rows.
    pub fn add_empty(&mut self) {
        for set in 0..self.sets.len() {
            if self.sets[set].is_empty() {
                self.add(0, set as u32, (&[], None));
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The grouping set of a group.
    pub fn set(&self, group: usize) -> usize {
        self.set_of[group] as usize
    }

    /// The values of a group's columns.
    pub fn values(&self, group: usize) -> Vec<Value> {
        self.values.iter().map(|column| column.so_far().value(group)).collect()
    }

    /// The columns of the groups from one to another.
    pub fn columns(&self, from: usize, to: usize) -> Vec<Arc<Vector>> {
        let places: Vec<u32> = (from as u32..to as u32).collect();
        let each = self
            .values
            .iter()
            .map(|column| Arc::new(column.so_far().gather(&places)));
        each.collect()
    }

    /// What rows are grouped by. Errors: those of the expressions.
    pub fn keys(&self, chunk: &Chunk, env: &Env<'_>) -> Result<KeysOf> {
        let values: Vec<Arc<Vector>> = self.by.iter().map(|by| by.vector(chunk, env)).collect::<Result<_>>()?;
        let keys = self
            .by
            .iter()
            .zip(&values)
            .map(|(by, values)| key::of_vector(by, values));
        Ok(KeysOf {
            keys: keys.collect::<Result<_>>()?,
            values,
        })
    }

    /// Adds a group of a set with the values that row `row` has in some columns of what it is grouped by, and returns how many bytes that takes.
    fn add(&mut self, hash: u64, set: u32, (columns, row): (&[usize], Option<(&KeysOf, usize)>)) -> usize {
        let number = self.hashes.len() as u32;
        self.hashes.push(hash);
        self.set_of.push(set);
        let mut bytes = 0;
        for column in 0..self.by.len() {
            let row = row.filter(|_| columns.contains(&column));
            let mut push = |to: &mut Builder, of: &dyn Fn(&KeysOf) -> Arc<Vector>| match row {
                None => to.push_null(),
                Some((keys, row)) => {
                    let of = of(keys);
                    bytes += weight(&of, row);
                    to.push_from(&of, row);
                }
            };
            push(&mut self.values[column], &|keys| keys.values[column].clone());
            if let Some(own) = &mut self.keys[column] {
                push(own, &|keys| keys.keys[column].clone());
            }
        }
        let hashes = &self.hashes;
        self.places.insert_unique(hash, number, |at| hashes[*at as usize]);
        bytes
    }

    /// Sets `numbers` to the groups that rows belong to in a grouping set, new ones among them; returns how many bytes these take.
    pub fn find(&mut self, set: usize, keys: &KeysOf, rows: usize, numbers: &mut Vec<u32>) -> usize {
        numbers.clear();
        let columns = self.sets[set].clone();
        if columns.is_empty() {
            let number = self
                .set_of
                .iter()
                .position(|of| *of as usize == set)
                .unwrap_or_default();
            numbers.resize(rows, number as u32);
            return 0;
        }
        self.number(&vec![set as u32; rows], (&columns, keys), numbers)
    }

    /// As [`Groups::find`], for rows each of which belongs to a group of others: those of different ones are different.
    pub fn find_within(&mut self, of: &[u32], keys: &KeysOf, numbers: &mut Vec<u32>) -> usize {
        numbers.clear();
        let columns: Vec<usize> = (0..self.by.len()).collect();
        self.number(of, (&columns, keys), numbers)
    }

    /// Adds the group of each row, by its set and its values in some columns.
    fn number(&mut self, sets: &[u32], (columns, keys): (&[usize], &KeysOf), numbers: &mut Vec<u32>) -> usize {
        let mut hashes: Vec<u64> = sets.iter().map(|set| u64::from(*set)).collect();
        for column in columns {
            keys.keys[*column].hash(&self.seed, &mut hashes);
        }
        let mut bytes = 0;
        for (row, (hash, set)) in hashes.into_iter().zip(sets).enumerate() {
            let is_same = |at: &u32| {
                let at = *at as usize;
                self.hashes[at] == hash
                    && self.set_of[at] == *set
                    && columns.iter().all(|column| {
                        let known = self.keys[*column].as_ref().unwrap_or(&self.values[*column]);
                        keys.keys[*column].equals(row, known.so_far(), at)
                    })
            };
            let number = match self.places.find(hash, is_same) {
                Some(number) => *number,
                None => {
                    bytes += self.add(hash, *set, (columns, Some((keys, row))));
                    self.hashes.len() as u32 - 1
                }
            };
            numbers.push(number);
        }
        bytes
    }
}

impl KeysOf {
    /// The values that rows are grouped by.
    pub fn values(&self) -> &[Arc<Vector>] {
        &self.values
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

/// Bytes that the value of a row takes in a vector, about.
fn weight(vector: &Vector, row: usize) -> usize {
    match &vector.data {
        Data::Text(texts) => texts.get(row).len() + 9,
        Data::Values(values) => values[row].weight(),
        Data::Same(value, _) => value.weight(),
        _ => 9,
    }
}
