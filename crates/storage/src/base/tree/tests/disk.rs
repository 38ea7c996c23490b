//! A disk in memory that fails and forgets as asked.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::PageFile;
use super::Random;

/// A file on a disk. Clones are the same file.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    /// The bytes as they are read.
    bytes: Vec<u8>,
    /// The bytes that are on the disk for certain.
    durable: Vec<u8>,
    /// The writes since the last sync.
    unsynced: Vec<Operation>,
    /// Writes, syncs and truncations until one fails; later ones fail as well if `stays` is set.
    fails_in: Option<usize>,
    stays: bool,
    reads: usize,
    writes: usize,
}

#[derive(Clone)]
enum Operation {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl Disk {
    pub(crate) fn with(bytes: Vec<u8>) -> Disk {
        let state = State {
            durable: bytes.clone(),
            bytes,
            ..State::default()
        };
        Disk(Arc::new(Mutex::new(state)))
    }

    /// A disk of the same state that goes its own way.
    pub(crate) fn copy(&self) -> Disk {
        Disk(Arc::new(Mutex::new(self.state().clone())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds this")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    /// The operation after `count` more fails, and if `stays` all behind it.
    pub(crate) fn fail_in(&self, count: usize, stays: bool) {
        let mut state = self.state();
        (state.fails_in, state.stays) = (Some(count), stays);
    }

    pub(crate) fn work_again(&self) {
        self.state().fails_in = None;
    }

    /// Whether the failure asked for has come.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().fails_in == Some(0)
    }

    /// Number of reads and writes so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.reads, state.writes)
    }

    /// The disk after the power went: of what was not synced, any part may be there, and one write half.
    pub(crate) fn crash(&self, random: &mut Random) -> Disk {
        let state = self.state();
        let mut bytes = state.durable.clone();
        let keep = random.below(101);
        let mut operations: Vec<_> = state
            .unsynced
            .iter()
            .filter(|_| random.percent(keep))
            .cloned()
            .collect();
        // Disks write in any order; the file system keeps changes of length in theirs.
        if operations
            .iter()
            .all(|operation| matches!(operation, Operation::Write(..)))
        {
            for i in 0..operations.len() {
                let other = random.below(operations.len());
                operations.swap(i, other);
            }
        }
        let torn = random.below(operations.len().max(1));
        for (i, mut operation) in operations.into_iter().enumerate() {
            if let Operation::Write(_, data) = &mut operation
                && i == torn
            {
                data.truncate(random.below(data.len() / 512 + 1) * 512);
            }
            operation.apply(&mut bytes);
        }
        Disk::with(bytes)
    }
}

impl State {
    fn operate(&mut self, operation: Option<Operation>) -> io::Result<()> {
        match &mut self.fails_in {
            Some(0) => {
                if !self.stays {
                    self.fails_in = None;
                }
                if operation.is_none() {
                    // Bytes that could not be written count as written: they are read, and no later sync covers them.
                    self.unsynced.clear();
                }
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Some(count) => *count -= 1,
            None => {}
        }
        match operation {
            Some(operation) => {
                operation.apply(&mut self.bytes);
                self.unsynced.push(operation);
            }
            None => {
                let bytes = &mut self.durable;
                self.unsynced.drain(..).for_each(|operation| operation.apply(bytes));
            }
        }
        Ok(())
    }
}

impl Operation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Operation::Write(offset, data) => {
                let end = *offset as usize + data.len();
                if bytes.len() < end && !data.is_empty() {
                    bytes.resize(end, 0);
                }
                if !data.is_empty() {
                    bytes[*offset as usize..end].copy_from_slice(data);
                }
            }
            Operation::SetLen(len) => bytes.resize(*len as usize, 0),
        }
    }
}

impl PageFile for Disk {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        state.reads += 1;
        match state.bytes.get(offset as usize..offset as usize + buffer.len()) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        state.writes += 1;
        // A disk that fills up takes the beginning of a write.
        let result = state.operate(Some(Operation::Write(offset, bytes.to_vec())));
        if result.is_err() {
            let part = Operation::Write(offset, bytes[..bytes.len() / 1024 * 512].to_vec());
            part.apply(&mut state.bytes);
            state.unsynced.push(part);
        }
        result
    }

    fn sync(&self) -> io::Result<()> {
        self.state().operate(None)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.state().operate(Some(Operation::SetLen(len)))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }
}
