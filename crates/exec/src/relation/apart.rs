//! Rows for which there is no room: they go to files by what they are grouped, compared or joined by, so that those with equal keys are in the
//! same file. Each file is read when all before it has been given; if it does not fit into memory either, it is divided once more, by other bits.

use super::Run;
use super::groups::{KeysOf, keys_of};
use super::key::RowKey;
use super::spilled::{self, BUFFER_BYTES, Writing, Written};
use crate::kept::Kept;
use nestor_model::order::hash_value;
use nestor_model::vector::Vector;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Chunk, Scalar};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Files that rows are divided among at a time.
pub(super) const FILES: usize = 16;
/// A file of a file of … is not divided any more: what has the same number so often has most of it.
pub(super) const LEVEL_MAX: u32 = 8;

/// Rows that wait, with how often they were divided.
pub(super) struct Waiting {
    pub rows: Written,
    pub level: u32,
}

/// Files that rows go to.
pub(super) struct Apart {
    files: Vec<Option<Writing>>,
    level: u32,
}

impl Apart {
    /// For rows that were divided so often before.
    ///
    /// Errors: those of `kept`.
    pub fn new(level: u32, kept: &mut Kept) -> Result<Self> {
        kept.grow_spilling(FILES * BUFFER_BYTES)?;
        Ok(Self {
            files: (0..FILES).map(|_| None).collect(),
            level,
        })
    }

    /// The file for rows with the keys that a row has.
    pub fn file_of(&self, keys: &[Arc<Vector>], row: usize) -> usize {
        self.file_by(|hasher| {
            for keys in keys {
                hash_value(keys.value(row).as_ref(), hasher);
            }
        })
    }

    /// The file for rows with a key.
    pub fn file_of_key(&self, key: &RowKey) -> usize {
        self.file_by(|hasher| key.hash(hasher))
    }

    fn file_by(&self, hash: impl FnOnce(&mut DefaultHasher)) -> usize {
        let mut hasher = DefaultHasher::new();
        self.level.hash(&mut hasher);
        hash(&mut hasher);
        (hasher.finish() % FILES as u64) as usize
    }

    /// Puts a row into a file.
    ///
    /// Errors: those of files and of the interrupt.
    pub fn push<S>(&mut self, file: usize, row: Vec<Value>, run: &Run<'_, '_, S>) -> Result<()> {
        let file = match &mut self.files[file] {
            Some(file) => file,
            none => none.insert(spilled::file(run)?),
        };
        file.push(row)
    }

    /// Puts the rows of a chunk away that are not among those of groups that are `known` by their keys; these.
    ///
    /// Errors: those of the expressions and of files.
    pub fn divide<S: Scalar>(
        &mut self,
        by: &[S],
        known: impl FnOnce(&KeysOf, usize) -> Result<Vec<u32>>,
        chunk: &Chunk,
        run: &Run<'_, '_, S>,
    ) -> Result<Vec<u32>> {
        let keys = keys_of(by, chunk, &run.env)?;
        let known = known(&keys, chunk.rows)?;
        let mut here = known.iter().map(|row| *row as usize).peekable();
        for row in 0..chunk.rows {
            if here.next_if_eq(&row).is_some() {
                continue;
            }
            let file = self.file_of(keys.keys(), row);
            self.push(file, chunk.row(row), run)?;
        }
        Ok(known)
    }

    /// What was put away, by files.
    ///
    /// Errors: those of files.
    pub fn finish<S>(self, run: &Run<'_, '_, S>) -> Result<Vec<Option<Waiting>>> {
        let level = self.level + 1;
        let read = |file: Option<Writing>| {
            file.map(|file| {
                let rows = file.read(run)?;
                Ok(Waiting { rows, level })
            })
            .transpose()
        };
        self.files.into_iter().map(read).collect()
    }
}
