//! Rows of groups for which there is no room: they go to files by what they are grouped by, and each file is grouped when all before it has been given.

use super::Run;
use super::groups::{KeysOf, keys_of};
use super::spilled::{self, BUFFER_BYTES, Writing, Written};
use crate::kept::Kept;
use crate::spill::Spilled;
use nestor_model::Result;
use nestor_planner::relation::{Chunk, Scalar};

/// Files that rows are divided among at a time.
const FILES: u64 = 16;
/// A file of a file of … is grouped in memory whatever it takes: what has the same number so often has most of it.
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
        kept.grow_spilling(FILES as usize * BUFFER_BYTES)?;
        Ok(Self {
            files: (0..FILES).map(|_| None).collect(),
            level,
        })
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
            let file = &mut self.files[(keys.hash(row, self.level) % FILES) as usize];
            let file = match file {
                Some(file) => file,
                None => file.insert(spilled::file(run)?),
            };
            file.push(chunk.row(row))?;
        }
        Ok(known)
    }

    /// What was put away.
    ///
    /// Errors: those of files.
    pub fn finish<S>(self, run: &Run<'_, '_, S>) -> Result<Vec<Waiting>> {
        let level = self.level + 1;
        let mut figures = Spilled::default();
        let mut waiting = Vec::new();
        for file in self.files.into_iter().flatten() {
            figures.merge(file.figures());
            let rows = file.read()?;
            waiting.push(Waiting { rows, level });
        }
        if let Some(nodes) = run.shared.counts.nodes.as_ref().filter(|_| !waiting.is_empty()) {
            nodes.note_spilled(figures);
        }
        Ok(waiting)
    }
}
