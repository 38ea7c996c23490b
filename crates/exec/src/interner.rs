//! Texts by numbers, in the order in which they were met.

use hashbrown::HashTable;
use nestor_model::vector::{NO_ROW, Pool, Seed, Texts};
use std::sync::Arc;

/// Of a pool with so many times as many texts as there are rows no numbers are remembered.
const POOL_PART: usize = 64;

/// Bytes of a text besides its own.
const TEXT_BYTES: usize = 24;

/// No number yet.
const NONE: u32 = u32::MAX;

/// It is known that there is no number.
const ABSENT: u32 = u32::MAX - 1;

/// Different texts, each with a number.
#[derive(Default)]
pub(crate) struct Interner {
    texts: Texts,
    hashes: Vec<u64>,
    places: HashTable<u32>,
    recent: Recent,
    bytes: usize,
}

/// The pool of the rows that came last, and of its texts their numbers.
#[derive(Default)]
pub(crate) struct Recent {
    pool: Option<Arc<Pool>>,
    numbers: Vec<u32>,
}

impl Recent {
    /// Rows are of this pool from now on.
    fn set_pool(&mut self, pool: &Arc<Pool>) {
        if !self.pool.as_ref().is_some_and(|own| Arc::ptr_eq(own, pool)) {
            self.numbers.clear();
            self.numbers.resize(pool.len(), NONE);
            self.pool = Some(pool.clone());
        }
    }
}

impl Interner {
    /// All texts, by their numbers.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn found(&self, text: &str, hash: u64) -> Option<u32> {
        let is_same = |at: &u32| self.hashes[*at as usize] == hash && self.texts.get(*at as usize) == text;
        self.places.find(hash, is_same).copied()
    }

    /// The number of a text; `None` for one that was not met.
    pub fn known_number(&self, text: &str, seed: &Seed) -> Option<u32> {
        self.found(text, seed.text(text))
    }

    /// The number of a text; `None` when there is no more room.
    pub fn number(&mut self, text: &str, seed: &Seed) -> Option<u32> {
        let hash = seed.text(text);
        if let Some(number) = self.found(text, hash) {
            return Some(number);
        }
        let number = u32::try_from(self.texts.len()).ok().filter(|number| *number < ABSENT)?;
        self.texts.push(text).then_some(())?;
        self.hashes.push(hash);
        self.bytes += text.len() + TEXT_BYTES;
        let hashes = &self.hashes;
        self.places.insert_unique(hash, number, |at| hashes[*at as usize]);
        Some(number)
    }

    /// The numbers of the texts of rows, 0 for those that are null; `None` when there is no more room.
    pub fn words(&mut self, texts: &Texts, nulls: Option<&[bool]>, seed: &Seed) -> Option<Vec<u64>> {
        let is_null = |row: usize| nulls.is_some_and(|nulls| nulls[row]);
        let shared = texts.shared().filter(|(pool, _)| pool.len() / POOL_PART <= texts.len());
        let Some((pool, of_rows)) = shared else {
            let word = |row: usize| match is_null(row) {
                true => Some(0),
                false => self.number(texts.get(row), seed).map(u64::from),
            };
            return (0..texts.len()).map(word).collect();
        };
        self.recent.set_pool(pool);
        let mut words = Vec::with_capacity(of_rows.len());
        for (row, number) in of_rows.iter().enumerate() {
            let known = self.recent.numbers.get(*number as usize).copied().unwrap_or(NONE);
            words.push(u64::from(match known {
                _ if is_null(row) => 0,
                NONE => {
                    let found = self.number(pool.get(*number), seed)?;
                    if *number != NO_ROW {
                        self.recent.numbers[*number as usize] = found;
                    }
                    found
                }
                known => known,
            }));
        }
        Some(words)
    }

    /// The numbers of the texts of rows, and which of them have none. Nothing is added from the first question on with the same `recent`.
    pub fn known(&self, texts: &Texts, seed: &Seed, recent: &mut Recent) -> (Vec<u64>, Vec<bool>) {
        let shared = texts.shared().filter(|(pool, _)| pool.len() / POOL_PART <= texts.len());
        let mut numbers: Vec<u32> = Vec::with_capacity(texts.len());
        match shared {
            None => {
                let found = |row: usize| self.known_number(texts.get(row), seed).unwrap_or(ABSENT);
                numbers.extend((0..texts.len()).map(found));
            }
            Some((pool, of_rows)) => {
                recent.set_pool(pool);
                for number in of_rows {
                    let known = recent.numbers.get(*number as usize).copied().unwrap_or(NONE);
                    numbers.push(match known {
                        NONE => {
                            let found = self.known_number(pool.get(*number), seed).unwrap_or(ABSENT);
                            if *number != NO_ROW {
                                recent.numbers[*number as usize] = found;
                            }
                            found
                        }
                        known => known,
                    });
                }
            }
        }
        let words = numbers.iter().map(|number| u64::from(*number)).collect();
        (words, numbers.iter().map(|number| *number == ABSENT).collect())
    }
}
