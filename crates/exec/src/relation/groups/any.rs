//! Groups of any values, in a table of their hashes.

use super::words::Words;
use super::{KeysOf, Within};
use hashbrown::HashTable;
use nestor_model::Value;
use nestor_model::vector::{Builder, Data, NO_ROW, Seed, Vector};
use std::sync::Arc;

/// Groups by number, in the order in which their first rows came.
pub(super) struct AnyGroups {
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

impl AnyGroups {
    /// No groups, by columns of which `have_keys` says whether their values are equal by something else.
    pub fn new(have_keys: Vec<bool>) -> Self {
        Self {
            seed: Seed::default(),
            places: HashTable::new(),
            hashes: Vec::new(),
            set_of: Vec::new(),
            values: have_keys.iter().map(|_| Builder::default()).collect(),
            keys: have_keys.iter().map(|has| has.then(Builder::default)).collect(),
        }
    }

    /// The same groups, which were told apart by words so far.
    pub fn of_words(words: &Words, width: usize) -> Self {
        let mut own = Self::new(vec![false; width]);
        let count = words.len();
        let columns = words.columns(0, count);
        own.set_of = (0..count).map(|group| words.set(group)).collect();
        own.hashes = own.set_of.iter().map(|set| u64::from(*set)).collect();
        for (column, values) in columns.iter().enumerate() {
            // Columns that a group is not made of do not count to its hash.
            let has = |group: &usize| words.has(*group, column);
            let places: Vec<u32> = (0..count).filter(has).map(|group| group as u32).collect();
            let part = values.gather(&places);
            let mut hashes: Vec<u64> = places.iter().map(|at| own.hashes[*at as usize]).collect();
            part.hash(&own.seed, &mut hashes);
            places
                .iter()
                .zip(hashes)
                .for_each(|(at, hash)| own.hashes[*at as usize] = hash);
            own.values[column].extend(values, None);
        }
        for group in 0..count {
            let hashes = &own.hashes;
            own.places
                .insert_unique(hashes[group], group as u32, |at| hashes[*at as usize]);
        }
        own
    }

    /// The group of a set without columns.
    pub fn add_empty(&mut self, set: u32) {
        self.add(u64::from(set), set, (&[], None));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// What a group is within.
    pub fn set(&self, group: usize) -> u32 {
        self.set_of[group]
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

    /// Adds a group with the values that row `row` has in some columns of what it is grouped by, and returns how many bytes that takes.
    fn add(&mut self, hash: u64, set: u32, (columns, row): (&[usize], Option<(&KeysOf, usize)>)) -> usize {
        let number = self.hashes.len() as u32;
        self.hashes.push(hash);
        self.set_of.push(set);
        let mut bytes = 0;
        for column in 0..self.values.len() {
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

    /// The hashes of rows by what they are within and their values in some columns.
    fn hashes_of(&self, within: Within<'_>, (columns, keys, rows): (&[usize], &KeysOf, usize)) -> Vec<u64> {
        let mut hashes: Vec<u64> = (0..rows).map(|row| u64::from(within.of(row))).collect();
        for column in columns {
            keys.keys[*column].hash(&self.seed, &mut hashes);
        }
        hashes
    }

    /// The group of a row with such a hash, if there is one.
    fn find(&self, hash: u64, set: u32, (columns, keys, row): (&[usize], &KeysOf, usize)) -> Option<u32> {
        let is_same = |at: &u32| {
            let at = *at as usize;
            self.hashes[at] == hash
                && self.set_of[at] == set
                && columns.iter().all(|column| {
                    let known = self.keys[*column].as_ref().unwrap_or(&self.values[*column]);
                    keys.keys[*column].equals(row, known.so_far(), at)
                })
        };
        self.places.find(hash, is_same).copied()
    }

    /// Of each row the group of the first set that has its values, [`NO_ROW`] where there is none.
    pub fn look_up(&self, (columns, keys, rows): (&[usize], &KeysOf, usize)) -> Vec<u32> {
        let hashes = self.hashes_of(Within::Set(0), (columns, keys, rows));
        let each = hashes.into_iter().enumerate();
        each.map(|(row, hash)| self.find(hash, 0, (columns, keys, row)).unwrap_or(NO_ROW))
            .collect()
    }

    /// Adds the group of each row, by what it is within and its values in some columns; returns how many bytes new ones take.
    pub fn number(
        &mut self,
        within: Within<'_>,
        (columns, keys, rows): (&[usize], &KeysOf, usize),
        numbers: &mut Vec<u32>,
    ) -> usize {
        let hashes = self.hashes_of(within, (columns, keys, rows));
        let mut bytes = 0;
        for (row, hash) in hashes.into_iter().enumerate() {
            let set = within.of(row);
            let number = match self.find(hash, set, (columns, keys, row)) {
                Some(number) => number,
                None => {
                    bytes += self.add(hash, set, (columns, Some((keys, row))));
                    self.hashes.len() as u32 - 1
                }
            };
            numbers.push(number);
        }
        bytes
    }
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
