//! The right input of a join: its rows, and where those with a key are.

use crate::interner::Recent;
use crate::relation::groups::{Within, Words};
use crate::relation::restrict::Numbers;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nestor_model::vector::{Builder, NO_ROW, Seed, Vector};
use nestor_planner::relation::Chunk;
use std::sync::{Arc, OnceLock};

/// Bytes of a row besides its values.
const ROW_BYTES: usize = 16;

/// Rows of the right input; those with the same key are a chain in the order in which they came.
pub(super) struct Table {
    /// The values of the rows.
    pub columns: Vec<Builder>,
    /// The next row of each row's chain.
    pub next: Vec<u32>,
    /// Bytes of the largest row.
    pub heaviest: usize,
    keys: Keys,
    /// The keys of all rows as any values, once somebody looked for what has no words.
    any: OnceLock<AnyKeys>,
}

/// Where chains are.
enum Keys {
    /// The words of keys, of each of these its chain, and of each row which of them it has.
    Words(Box<Words>, Vec<Ends>, Vec<u32>),
    /// Keys of any values.
    Any(AnyKeys),
}

/// The first and the last row of a chain.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Default)]
struct AnyKeys {
    seed: Seed,
    /// The keys of each row.
    parts: Vec<Builder>,
    chains: HashTable<(u64, Ends)>,
}

impl AnyKeys {
    fn new(parts: usize) -> Self {
        Self {
            parts: (0..parts).map(|_| Builder::default()).collect(),
            ..Self::default()
        }
    }

    /// Adds a row, whose key is there already, to the chain of that.
    fn link(&mut self, hash: u64, number: u32, next: &mut [u32]) {
        let parts = &self.parts;
        let is_same = |(own, ends): &(u64, Ends)| {
            *own == hash
                && parts.iter().all(|part| {
                    let part = part.so_far();
                    part.equals(number as usize, part, ends.first as usize)
                })
        };
        match self.chains.entry(hash, is_same, |(hash, _)| *hash) {
            Entry::Occupied(mut chain) => {
                let before = std::mem::replace(&mut chain.get_mut().1.last, number);
                next[before as usize] = number;
            }
            Entry::Vacant(place) => {
                let ends = Ends {
                    first: number,
                    last: number,
                };
                place.insert((hash, ends));
            }
        }
    }

    /// The first row of a key's chain.
    fn first(&self, hash: u64, keys: &[Arc<Vector>], row: usize) -> u32 {
        let is_same = |(own, ends): &(u64, Ends)| {
            let mut parts = keys.iter().zip(&self.parts);
            *own == hash && parts.all(|(key, part)| key.equals(row, part.so_far(), ends.first as usize))
        };
        self.chains.find(hash, is_same).map_or(NO_ROW, |(_, ends)| ends.first)
    }
}

impl Table {
    /// No rows of so many columns, by so many keys.
    pub fn new(width: usize, keys: usize) -> Self {
        Self {
            columns: (0..width).map(|_| Builder::default()).collect(),
            next: Vec::new(),
            heaviest: 0,
            keys: match Words::of_keys(keys) {
                Some(words) => Keys::Words(Box::new(words), Vec::new(), Vec::new()),
                None => Keys::Any(AnyKeys::new(keys)),
            },
            any: OnceLock::new(),
        }
    }

    /// Adds the rows of a chunk at `places`, or all of them, by their keys; those that `is_null` says have none. Returns how many bytes that takes
    /// besides the values. `is_read`: the values of rows are wanted.
    pub fn add(
        &mut self,
        (chunk, keys): (&Chunk, &[Arc<Vector>]),
        places: Option<&[u32]>,
        is_null: &dyn Fn(usize) -> bool,
        is_read: bool,
    ) -> usize {
        if is_read {
            for (own, column) in self.columns.iter_mut().zip(&chunk.columns) {
                own.extend(column, places);
            }
        }
        let picked: Vec<Arc<Vector>>;
        let keys = match places {
            None => keys,
            Some(places) => {
                picked = keys.iter().map(|key| Arc::new(key.gather(places))).collect();
                &picked
            }
        };
        let place = |row: usize| places.map_or(row, |places| places[row] as usize);
        let rows = places.map_or(chunk.rows, <[u32]>::len);
        let from = self.next.len();
        self.next.resize(from + rows, NO_ROW);
        if let Keys::Words(words, chains, of_rows) = &mut self.keys {
            let (before, mut numbers) = (words.bytes(), Vec::with_capacity(rows));
            let all: Vec<usize> = (0..keys.len()).collect();
            if words.number(Within::Set(0), (&all, keys, rows), &mut numbers).is_some() {
                for (row, number) in (from as u32..).zip(&mut numbers) {
                    if is_null(place(row as usize - from)) {
                        *number = NO_ROW;
                        continue;
                    }
                    let at = *number as usize;
                    let none = Ends {
                        first: NO_ROW,
                        last: NO_ROW,
                    };
                    if chains.len() <= at {
                        chains.resize(at + 1, none);
                    }
                    match std::mem::replace(&mut chains[at].last, row) {
                        NO_ROW => chains[at].first = row,
                        last => self.next[last as usize] = row,
                    }
                }
                of_rows.extend(numbers);
                return words.bytes() - before + rows * ROW_BYTES;
            }
            // The words that there are already are not those of these rows.
            self.keys = Keys::Any(any_of(words, of_rows, &mut self.next[..from]));
        }
        if let Keys::Any(any) = &mut self.keys {
            for (own, key) in any.parts.iter_mut().zip(keys) {
                own.extend(key, None);
            }
            let hashes = hashes_of(keys, rows, &any.seed);
            for (row, hash) in hashes.into_iter().enumerate().filter(|(row, _)| !is_null(place(*row))) {
                any.link(hash, (from + row) as u32, &mut self.next);
            }
        }
        let of_keys: usize = keys.iter().map(|key| key.weight()).sum();
        rows * (ROW_BYTES + size_of::<(u64, Ends)>()) + of_keys
    }

    /// Of each row of a left chunk the first row of its chain. Whoever looks for several chunks keeps `recent` from one to the next.
    pub fn firsts(
        &self,
        keys: &[Arc<Vector>],
        rows: usize,
        is_null: &dyn Fn(usize) -> bool,
        recent: &mut Vec<Recent>,
    ) -> Vec<u32> {
        let any = match &self.keys {
            Keys::Any(any) => any,
            Keys::Words(words, chains, of_rows) => {
                if let Some(mut numbers) = words.look_up(keys, rows, false, recent) {
                    let first = |number: u32| chains.get(number as usize).map_or(NO_ROW, |ends| ends.first);
                    numbers.iter_mut().for_each(|number| *number = first(*number));
                    return numbers;
                }
                // Values that have the same words are equal, so that chains stay what they are.
                let mut next = vec![NO_ROW; self.next.len()];
                self.any.get_or_init(|| any_of(words, of_rows, &mut next))
            }
        };
        let hashes = hashes_of(keys, rows, &any.seed).into_iter().enumerate();
        let first = |(row, hash)| match is_null(row) {
            true => NO_ROW,
            false => any.first(hash, keys, row),
        };
        hashes.map(first).collect()
    }

    /// All rows, as far as their values are wanted, and their keys.
    pub fn into_rows(self) -> (Chunk, Vec<Arc<Vector>>) {
        let finish = |column: Builder| Arc::new(column.finish());
        let keys = match self.keys {
            Keys::Any(any) => any.parts.into_iter().map(finish).collect(),
            Keys::Words(words, _, of_rows) => {
                let columns = words.columns(0, words.len());
                columns.iter().map(|column| Arc::new(column.gather(&of_rows))).collect()
            }
        };
        let chunk = Chunk {
            rows: self.next.len(),
            columns: self.columns.into_iter().map(finish).collect(),
        };
        (chunk, keys)
    }

    /// The whole numbers that a key has, if it has no others.
    pub fn numbers(&self, key: usize) -> Option<Numbers> {
        match &self.keys {
            Keys::Words(words, ..) => Numbers::of(words.whole_numbers(key)?),
            Keys::Any(_) => None,
        }
    }
}

/// The same keys as any values.
fn any_of(words: &Words, of_rows: &[u32], next: &mut [u32]) -> AnyKeys {
    let columns = words.columns(0, words.len());
    let mut any = AnyKeys::new(columns.len());
    let keys: Vec<Arc<Vector>> = columns.iter().map(|column| Arc::new(column.gather(of_rows))).collect();
    for (own, key) in any.parts.iter_mut().zip(&keys) {
        own.extend(key, None);
    }
    next.fill(NO_ROW);
    let hashes = hashes_of(&keys, of_rows.len(), &any.seed);
    for (row, hash) in hashes
        .into_iter()
        .enumerate()
        .filter(|(row, _)| of_rows[*row] != NO_ROW)
    {
        any.link(hash, row as u32, next);
    }
    any
}

/// The hashes of rows by their keys.
fn hashes_of(keys: &[Arc<Vector>], rows: usize, seed: &Seed) -> Vec<u64> {
    let mut hashes = vec![0; rows];
    keys.iter().for_each(|key| key.hash(seed, &mut hashes));
    hashes
}
