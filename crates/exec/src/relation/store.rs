//! Rows that are read again, by their numbers: in memory while there is room for them, the others in a file, of which some blocks are in memory.

use super::spilled::{self, Writing};
use super::{Run, weight};
use crate::kept::Kept;
use crate::spill;
use nestor_model::{Result, Value};
use nestor_planner::relation::Tuple;
use nestor_storage::ScratchFile;
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// Rows of a block of the file, and bytes of them without the last one, at most.
const BLOCK_ROWS: usize = 64;
const BLOCK_BYTES: u64 = 1 << 15;

/// Blocks that stay in memory: readers at several places go on from one row to the next.
const BLOCKS_KEPT: usize = 8;

/// Rows in the order in which they came.
#[derive(Default)]
pub(super) struct Store {
    memory: Vec<Tuple>,
    kept: Kept,
    /// Those behind the ones in memory, while they are written.
    writing: Option<Writing>,
    file: Option<ScratchFile>,
    /// The number of the first row of each block, and where it begins.
    blocks: Vec<(usize, u64)>,
    len: usize,
    bytes: u64,
    read: RefCell<Vec<Block>>,
}

/// A block that was read, by its number.
type Block = (usize, Rc<Vec<Tuple>>);

/// A row of a store.
pub(super) enum Stored<'s> {
    Here(&'s [Value]),
    Read(Rc<Vec<Tuple>>, usize),
}

impl Deref for Stored<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match self {
            Self::Here(row) => row,
            Self::Read(rows, at) => &rows[*at],
        }
    }
}

impl Store {
    /// Rows that are in memory, and count elsewhere.
    pub fn of(rows: Vec<Tuple>) -> Self {
        Self {
            len: rows.len(),
            memory: rows,
            ..Self::default()
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a row.
    ///
    /// Errors: those of too little memory where there must be no files, those of files and of the interrupt.
    pub fn push<S>(&mut self, row: Tuple, run: &Run<'_, '_, S>) -> Result<()> {
        if self.writing.is_none() {
            let bytes = weight(&row);
            let room = run.batch.room();
            if room.is_none_or(|room| self.kept.bytes() + bytes <= room) {
                self.len += 1;
                self.memory.push(row);
                return self.kept.grow_within(room, bytes);
            }
        }
        let file = match &mut self.writing {
            Some(file) => file,
            none => none.insert(spilled::file(run)?),
        };
        let is_full = self
            .blocks
            .last()
            .is_none_or(|(first, begin)| self.len - first >= BLOCK_ROWS || file.bytes() - begin >= BLOCK_BYTES);
        if is_full {
            self.blocks.push((self.len, file.bytes()));
            self.kept.grow_spilling(size_of::<(usize, u64)>())?;
        }
        self.len += 1;
        file.push(row)
    }

    /// No more rows come: those that there are can be read.
    ///
    /// Errors: those of files.
    pub fn finish<S>(&mut self, run: &Run<'_, '_, S>) -> Result<()> {
        if let Some(file) = self.writing.take() {
            self.bytes = file.bytes();
            self.file = Some(file.finish(run)?);
        }
        Ok(())
    }

    /// A row, if there are so many.
    ///
    /// Errors: those of files and of the interrupt.
    pub fn get(&self, at: usize) -> Result<Option<Stored<'_>>> {
        if let Some(row) = self.memory.get(at) {
            return Ok(Some(Stored::Here(row)));
        }
        let Some(file) = self.file.as_ref().filter(|_| at < self.len) else {
            return Ok(None);
        };
        let block = self.blocks.partition_point(|(first, _)| *first <= at) - 1;
        let (first, begin) = self.blocks[block];
        let mut read = self.read.borrow_mut();
        if let Some(known) = read.iter().rposition(|(number, _)| *number == block) {
            let rows = read[known].1.clone();
            if known + 1 < read.len() {
                let last = read.remove(known);
                read.push(last);
            }
            return Ok(Some(Stored::Read(rows, at - first)));
        }
        let (behind, end) = self.blocks.get(block + 1).copied().unwrap_or((self.len, self.bytes));
        let mut bytes = vec![0; (end - begin) as usize];
        file.read_exact_at(&mut bytes, begin).map_err(spill::io_error)?;
        let mut bytes = bytes.as_slice();
        let rows = (first..behind).map(|_| spilled::read_row(&mut bytes));
        let rows = Rc::new(rows.collect::<Result<Vec<_>>>()?);
        if read.len() >= BLOCKS_KEPT {
            read.remove(0);
        }
        read.push((block, rows.clone()));
        Ok(Some(Stored::Read(rows, at - first)))
    }
}
