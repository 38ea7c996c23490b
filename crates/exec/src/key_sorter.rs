//! The entries of an index in key order: sorted in memory, in runs in temporary files beyond a limit.
//!
//! ```text
//! run    entry*
//! entry  u32 key length | u32 value length | key | value      little-endian
//! ```

use crate::kept::Kept;
use crate::spill;
use nestor_model::sort::sort_copies_by;
use nestor_model::statement::work;
use nestor_model::{Error, Result};
use nestor_storage::base::{Change, ChangeSource};
use nestor_storage::{Scratch, ScratchFile};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Bytes read from and written to a run at a time.
const BUFFER_BYTES: usize = 128 << 10;
/// Most memory of one sorter: places in it are 32 bits.
const MEMORY_MAX: usize = 1 << 30;

/// Takes entries in any order. Keys must differ from each other unless the caller looks for equal ones in the result.
pub struct KeySorter {
    arena: Vec<u8>,
    items: Vec<Item>,
    memory_max: usize,
    dir: Scratch,
    runs: Vec<ScratchFile>,
    kept: Kept,
    spilled_bytes: u64,
    len: u64,
}

/// Where an entry is in the arena: its key, then its value.
#[derive(Clone, Copy)]
struct Item {
    /// The first bytes of the key, which mostly decide.
    head: u64,
    at: u32,
    key_len: u32,
    value_len: u32,
}

impl Item {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.at as usize..][..self.key_len as usize]
    }

    fn value<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.at as usize + self.key_len as usize..][..self.value_len as usize]
    }
}

fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

impl KeySorter {
    /// A sorter that holds about `memory_max` bytes and puts what is beyond into files in `dir`.
    pub fn new(memory_max: usize, dir: Scratch) -> Self {
        Self {
            arena: Vec::new(),
            items: Vec::new(),
            memory_max: memory_max.min(MEMORY_MAX),
            dir,
            runs: Vec::new(),
            kept: Kept::default(),
            spilled_bytes: 0,
            len: 0,
        }
    }

    /// Adds an entry.
    ///
    /// Errors: those of temporary files and of the statement's interrupt.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let held = self.arena.len() + self.items.len() * size_of::<Item>();
        if held + key.len() + value.len() > self.memory_max && !self.items.is_empty() {
            self.spill()?;
        }
        self.len += 1;
        self.items.push(Item {
            head: head(key),
            at: self.arena.len() as u32,
            key_len: key.len() as u32,
            value_len: value.len() as u32,
        });
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.kept
            .set_spilling(self.arena.len() + self.items.len() * size_of::<Item>())
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.len
    }

    /// Bytes written to temporary files so far, and number of files.
    pub fn spilled(&self) -> (u64, usize) {
        (self.spilled_bytes, self.runs.len())
    }

    fn sort(&mut self) -> Result<()> {
        let arena = &self.arena;
        sort_copies_by(&mut self.items, |a, b| {
            a.head.cmp(&b.head).then_with(|| a.key(arena).cmp(b.key(arena)))
        })
    }

    fn spill(&mut self) -> Result<()> {
        self.sort()?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, spill::temporary_file(&self.dir)?);
        for item in &self.items {
            work(1)?;
            let (key, value) = (item.key(&self.arena), item.value(&self.arena));
            let written = out
                .write_all(&item.key_len.to_le_bytes())
                .and_then(|()| out.write_all(&item.value_len.to_le_bytes()))
                .and_then(|()| out.write_all(key))
                .and_then(|()| out.write_all(value));
            written.map_err(spill::io_error)?;
            self.spilled_bytes += 8 + (key.len() + value.len()) as u64;
        }
        let mut file = out.into_inner().map_err(|e| spill::io_error(e.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(spill::io_error)?;
        self.runs.push(file);
        self.items.clear();
        self.arena.clear();
        Ok(())
    }

    /// The entries in ascending order. Errors as those of [`KeySorter::push`].
    pub fn finish(mut self) -> Result<Sorted> {
        if self.runs.is_empty() {
            self.sort()?;
            return Ok(Sorted {
                source: Source::Memory(self.arena, self.items.into_iter()),
                current: None,
                error: None,
                _kept: self.kept,
            }
            .started());
        }
        if !self.items.is_empty() {
            self.spill()?;
        }
        // They keep the room for another run, which is not needed any more.
        (self.arena, self.items) = (Vec::new(), Vec::new());
        self.kept.set_spilling(self.runs.len() * BUFFER_BYTES)?;
        let mut heads = BinaryHeap::with_capacity(self.runs.len());
        for file in self.runs {
            let mut run = Run {
                input: BufReader::with_capacity(BUFFER_BYTES, file),
                entry: Vec::new(),
                key_len: 0,
            };
            if run.next()? {
                heads.push(run);
            }
        }
        Ok(Sorted {
            source: Source::Runs(heads),
            current: None,
            error: None,
            _kept: self.kept,
        })
    }
}

/// Entries in ascending order.
pub struct Sorted {
    source: Source,
    /// Of those in memory.
    current: Option<Item>,
    error: Option<Error>,
    _kept: Kept,
}

enum Source {
    Memory(Vec<u8>, std::vec::IntoIter<Item>),
    Runs(BinaryHeap<Run>),
}

impl Sorted {
    fn started(mut self) -> Self {
        if let Source::Memory(_, items) = &mut self.source {
            self.current = items.next();
        }
        self
    }

    /// Why the entries ended, if a temporary file could not be read.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }
}

impl ChangeSource for Sorted {
    fn current(&self) -> Option<Change<'_>> {
        let (key, value) = match &self.source {
            Source::Memory(arena, _) => self.current.map(|item| (item.key(arena), item.value(arena)))?,
            Source::Runs(heads) => heads.peek()?.entry(),
        };
        Some(Change {
            key,
            value: Some(value),
        })
    }

    fn advance(&mut self) {
        match &mut self.source {
            Source::Memory(_, items) => self.current = items.next(),
            Source::Runs(heads) => {
                let Some(mut run) = heads.peek_mut() else { return };
                match run.next() {
                    Ok(true) => {}
                    Ok(false) => {
                        PeekMut::pop(run);
                    }
                    Err(error) => {
                        drop(run);
                        heads.clear();
                        self.error = Some(error);
                    }
                }
            }
        }
    }
}

/// A run at its current entry. The least key is the greatest run, for the heap.
struct Run {
    input: BufReader<ScratchFile>,
    entry: Vec<u8>,
    key_len: usize,
}

impl Run {
    fn entry(&self) -> (&[u8], &[u8]) {
        self.entry.split_at(self.key_len)
    }

    /// Moves to the next entry; `false` at the end.
    fn next(&mut self) -> Result<bool> {
        use std::io::BufRead as _;
        if self.input.fill_buf().map_err(spill::io_error)?.is_empty() {
            return Ok(false);
        }
        let mut lengths = [0; 8];
        self.input.read_exact(&mut lengths).map_err(spill::io_error)?;
        let [a, b, c, d, e, f, g, h] = lengths;
        self.key_len = u32::from_le_bytes([a, b, c, d]) as usize;
        let value_len = u32::from_le_bytes([e, f, g, h]) as usize;
        self.entry.resize(self.key_len + value_len, 0);
        self.input.read_exact(&mut self.entry).map_err(spill::io_error)?;
        Ok(true)
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.entry().0 == other.entry().0
    }
}

impl Eq for Run {}

impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Run {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.entry().0.cmp(self.entry().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Entries = Vec<(Vec<u8>, Vec<u8>)>;

    /// Entries as they come out, and the number of runs.
    fn sorted(memory_max: usize, count: u32) -> (Entries, usize) {
        let mut sorter = KeySorter::new(memory_max, Scratch::plain(std::env::temp_dir()));
        let mut state = 12345u32;
        for i in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Keys of several lengths with long common beginnings; the number makes them differ.
            let key = format!("{}{:05}-{i}", "x".repeat((state >> 28) as usize), state >> 20);
            sorter.push(key.as_bytes(), &i.to_le_bytes()).expect("room");
        }
        let runs = sorter.spilled().1;
        let mut sorted = sorter.finish().expect("readable");
        let mut out = Vec::new();
        while let Some(change) = sorted.current() {
            out.push((change.key.to_vec(), change.value.expect("puts").to_vec()));
            sorted.advance();
        }
        assert!(sorted.take_error().is_none());
        (out, runs)
    }

    #[test]
    fn runs_in_files_give_what_memory_gives() {
        let (in_memory, none) = sorted(1 << 20, 3000);
        let (in_files, runs) = sorted(8 << 10, 3000);
        assert!(none == 0 && runs > 5, "{none} and {runs} runs");
        assert!(in_memory.len() == 3000 && in_memory.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(in_memory, in_files);
        assert!(sorted(1 << 20, 0).0.is_empty());
    }
}
