//! Many groups that several threads make: rows are divided by what they are grouped by, and the groups of each part are in one place, which one thread at a
//! time adds to. So nothing has to become one in the end.

use super::part::{Part, Prepared, Shape};
use crate::helper;
use crate::relation::groups::KeysOf;
use nestor_model::Result;
use nestor_model::vector::{NO_ROW, Seed};
use nestor_planner::relation::Scalar;
use nestor_planner::relation::chunk::ROWS;
use std::sync::{Mutex, PoisonError};

/// With so many groups of a thread rows are divided. Tests have few rows.
pub(super) const MANY: usize = if cfg!(debug_assertions) { 64 } else { 32 * ROWS };

/// Parts, more than threads: one that somebody is at is left for later.
const PARTS: usize = 4;

/// Rows that wait for a part are added when there are so many; with many more it is waited for.
const WAITING: usize = if cfg!(debug_assertions) { 16 } else { 2 * ROWS };
const WAITING_MAX: usize = 16 * WAITING;

/// To which part rows belong.
struct Division {
    /// The columns that tell.
    columns: Vec<usize>,
    seed: Seed,
}

/// Groups of rows that are divided.
pub(super) struct Divided<S> {
    by: Division,
    parts: Vec<Mutex<Part<S>>>,
}

/// The same, when all threads have ended; or groups of rows that are not divided.
pub(super) struct Parts<S> {
    by: Option<Division>,
    pub all: Vec<Part<S>>,
}

/// Rows that wait for parts.
#[derive(Default)]
pub(super) struct Waiting {
    parts: Vec<ForPart>,
    /// Bytes of all of them.
    bytes: usize,
}

#[derive(Default)]
struct ForPart {
    chunks: Vec<Prepared>,
    rows: usize,
    bytes: usize,
}

impl Division {
    fn parts(&self, keys: &KeysOf, rows: usize) -> Vec<u8> {
        let mut hashes = vec![0; rows];
        for column in &self.columns {
            keys.keys()[*column].hash(&self.seed, &mut hashes);
        }
        let part = |hash: u64| (hash >> 40) as u8 % PARTS as u8;
        hashes.into_iter().map(part).collect()
    }

    /// Of each part the rows that belong to it.
    fn rows(&self, keys: &KeysOf, rows: usize) -> Vec<Vec<u32>> {
        let room = rows / PARTS * 2;
        let mut out: Vec<Vec<u32>> = (0..PARTS).map(|_| Vec::with_capacity(room)).collect();
        let parts = (0..).zip(self.parts(keys, rows));
        parts.for_each(|(row, part)| out[usize::from(part)].push(row));
        out
    }
}

impl<S: Scalar> Divided<S> {
    /// No groups, divided by what tells these apart.
    pub fn of(shape: &Shape<S>, part: &Part<S>) -> Self {
        let all = || (0..shape.by.len()).collect();
        Self {
            by: Division {
                columns: part.groups.dividing().map_or_else(all, |column| vec![column]),
                seed: Seed::default(),
            },
            parts: (0..PARTS).map(|_| Mutex::new(Part::new(shape))).collect(),
        }
    }

    /// Divides the rows of a chunk among those that wait.
    pub fn divide(&self, chunk: &Prepared, waiting: &mut Waiting) {
        waiting.parts.resize_with(PARTS, ForPart::default);
        for (part, rows) in waiting.parts.iter_mut().zip(self.by.rows(chunk.keys(), chunk.rows())) {
            if !rows.is_empty() {
                let own = chunk.gather(&rows);
                let bytes = own.bytes();
                waiting.bytes += bytes;
                part.bytes += bytes;
                part.rows += rows.len();
                part.chunks.push(own);
            }
        }
    }

    /// Adds the rows that wait to their parts, those of which there are enough, or all; returns by how many bytes these grew.
    ///
    /// Errors: those of the functions, and of the interrupt.
    pub fn add(&self, shape: &Shape<S>, waiting: &mut Waiting, all: bool) -> Result<usize> {
        let mut grown = 0;
        for is_last in [false, true] {
            for (part, own_waiting) in self.parts.iter().zip(&mut waiting.parts) {
                if own_waiting.rows == 0 || !all && own_waiting.rows < WAITING {
                    continue;
                }
                let is_urgent = is_last && (all || own_waiting.rows >= WAITING_MAX);
                let Some(mut own) = helper::lock(part, is_urgent) else {
                    continue;
                };
                let ForPart { chunks, bytes, .. } = std::mem::take(own_waiting);
                waiting.bytes -= bytes;
                for chunk in chunks {
                    grown += own.add(shape, &chunk)?;
                }
            }
        }
        Ok(grown)
    }

    /// Takes the groups of a thread over; returns by how many bytes these grew.
    ///
    /// Errors: those of the functions, and of the interrupt.
    pub fn merge(&self, shape: &Shape<S>, part: Part<S>) -> Result<usize> {
        let mut grown = 0;
        let split = part.split(shape, PARTS, |keys, rows| self.by.parts(keys, rows))?;
        for (own, other) in self.parts.iter().zip(split) {
            if let Some(mut own) = helper::lock(own, true) {
                grown += own.merge(shape, other)?;
            }
        }
        Ok(grown)
    }

    /// All groups.
    pub fn finish(self) -> Parts<S> {
        let parts = self.parts.into_iter();
        Parts {
            by: Some(self.by),
            all: parts
                .map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner))
                .collect(),
        }
    }
}

impl Waiting {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<S: Scalar> Parts<S> {
    /// Groups of rows that are not divided.
    pub fn one(part: Part<S>) -> Self {
        Self {
            by: None,
            all: vec![part],
        }
    }

    /// The rows with these keys that belong to groups that there are.
    ///
    /// Errors: those of the interrupt.
    pub fn known(&mut self, keys: &KeysOf, rows: usize) -> Result<Vec<u32>> {
        let Some(by) = &self.by else {
            return match self.all.first_mut() {
                Some(part) => part.groups.known(keys, rows),
                None => Ok(Vec::new()),
            };
        };
        let mut out = Vec::new();
        for (part, rows) in self.all.iter_mut().zip(by.rows(keys, rows)) {
            let numbers = part.groups.look_up(&keys.gather(&rows), rows.len());
            let known = rows.iter().zip(numbers).filter(|(_, number)| *number != NO_ROW);
            out.extend(known.map(|(row, _)| *row));
        }
        out.sort_unstable();
        Ok(out)
    }

    /// Takes the rows of a chunk; returns by how many bytes the groups grew.
    ///
    /// Errors: those of the functions, and of the interrupt.
    pub fn add(&mut self, shape: &Shape<S>, chunk: &Prepared) -> Result<usize> {
        let Some(by) = &self.by else {
            return self.all.iter_mut().map(|part| part.add(shape, chunk)).sum();
        };
        let divided = by.rows(chunk.keys(), chunk.rows());
        let parts = self.all.iter_mut().zip(divided).filter(|(_, rows)| !rows.is_empty());
        parts.map(|(part, rows)| part.add(shape, &chunk.gather(&rows))).sum()
    }
}
