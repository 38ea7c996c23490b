//! Which transaction wrote each page last: what tells two nodes in one place apart whose checksums agree by accident.
//!
//! It is known from the opening of the file on. When somebody keeps names of nodes across restarts ([`Births::keep`]), it is also written
//! to a file beside that of the base, so that the same nodes have the same names afterwards: a *line* of names.
//!
//! ```text
//! header    "NestorNL" | version 1 (4) | line, a random number (8) | transaction before the first of the line (8) | CRC-32C of that (4)
//! record    length of what follows the checksum (4) | CRC-32C of that (4)
//!           transaction (8) | page (4) and checksum (4) of the root | then runs: first page (4), pages (4), born (4)
//! ```
//!
//! The first record has all pages, the others what one transaction wrote each, without a gap. A record is written before the meta page and not
//! synced: when records are missing after a crash, or are of another state than the base, the line has ended, and names of it are no more
//! than what was kept in vain. A born page is counted from the transaction before the first; 0 is that one or any before.

use super::page::{NodeRef, get_u32};
use crate::{encryption, files};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::super::NodeName;

const MAGIC: &[u8; 8] = b"NestorNL";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const RECORD_BYTES: usize = 8;
const RUN_BYTES: usize = 12;
/// The file is written anew when it is longer than this, and twice as long as it was when that was done last.
const BYTES_MAX: u64 = 4 << 20;
/// Transactions of a line, at most.
const LINE_MAX: u64 = 1 << 31;

/// A state of the base, as records name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) txn: u64,
    /// Page and checksum of the root.
    pub(crate) root: (u32, u32),
}

impl State {
    pub(crate) fn new(txn: u64, root: Option<(NodeRef, u8)>) -> Self {
        Self {
            txn,
            root: root.map_or((0, 0), |(node, _)| (node.page, node.crc)),
        }
    }
}

/// Which transaction wrote each page last, of those since the line began.
#[derive(Debug, Default)]
pub(crate) struct Births {
    /// The transaction before the first.
    begun: u64,
    /// What is written now.
    current: AtomicU32,
    pages: RwLock<Vec<u32>>,
    /// First page and number of pages of what the transaction under way has written.
    written: Mutex<Vec<(u32, u32)>>,
    log: Mutex<Option<Log>>,
    /// Where the file is, or may be.
    path: Option<PathBuf>,
}

#[derive(Debug)]
struct Log {
    file: File,
    line: u64,
    bytes: u64,
    /// At which it is written anew.
    bytes_max: u64,
}

/// What a file says.
struct Read {
    line: u64,
    begun: u64,
    pages: Vec<u32>,
    bytes: u64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Births {
    /// Where the file of the base at `base` is.
    pub(crate) fn path_of(base: &Path) -> PathBuf {
        base.with_extension("births")
    }

    /// Of a base in this state, without a file.
    pub(crate) fn new(state: State) -> Self {
        Self {
            begun: state.txn,
            ..Self::default()
        }
    }

    /// Of a base in this state, with what the file says if that is of the same state. Unless it may only be read, what is behind is cut off.
    pub(crate) fn open(path: PathBuf, state: State, read_only: bool) -> Self {
        let found = fs::read(&path).ok().and_then(|bytes| read(&bytes, state));
        let Some(found) = found else {
            if !read_only {
                // Names of a line that has ended are never asked for.
                let _ = fs::remove_file(&path);
            }
            return Self {
                path: (!read_only).then_some(path),
                ..Self::new(state)
            };
        };
        let opened = match read_only {
            true => File::open(&path),
            false => files::open(&path).and_then(|file| file.set_len(found.bytes).map(|()| file)),
        };
        let log = opened.ok().map(|file| Log {
            file,
            line: found.line,
            bytes: found.bytes,
            bytes_max: BYTES_MAX.max(found.bytes),
        });
        Self {
            begun: found.begun,
            pages: RwLock::new(found.pages),
            log: Mutex::new(log),
            path: (!read_only).then_some(path),
            ..Self::default()
        }
    }

    /// Transaction `txn` begins to write.
    pub(crate) fn begin(&self, txn: u64) {
        lock(&self.written).clear();
        let born = u32::try_from(txn - self.begun).unwrap_or(u32::MAX);
        self.current.store(born, Ordering::Relaxed);
    }

    /// It writes so many pages.
    pub(crate) fn wrote(&self, page: u32, count: usize) {
        let born = self.current.load(Ordering::Relaxed);
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = (page as usize, page as usize + count);
        if pages.len() < to {
            pages.resize(to, 0);
        }
        pages[from..to].fill(born);
        lock(&self.written).push((page, count as u32));
    }

    /// What it wrote is about to become this state. A line whose file cannot be written ends.
    pub(crate) fn note(&self, state: State) {
        let mut log = lock(&self.log);
        let Some(own) = log.as_mut() else {
            return;
        };
        let born = self.current.load(Ordering::Relaxed);
        let runs = std::mem::take(&mut *lock(&self.written));
        let record = record(state, runs.into_iter().map(|(page, count)| (page, count, born)));
        let is_long = own.bytes + record.len() as u64 > own.bytes_max || state.txn - self.begun > LINE_MAX;
        let written = match is_long {
            true => Err(ErrorKind::FileTooLarge.into()),
            false => own.file.write_all_at(&record, own.bytes),
        };
        match written {
            Ok(()) => own.bytes += record.len() as u64,
            Err(_) if is_long && state.txn - self.begun <= LINE_MAX => *log = self.write(own.line, state).ok(),
            Err(_) => {
                *log = None;
                let _ = self.path.as_ref().map(fs::remove_file);
            }
        }
    }

    /// The line of names that are kept; `None` if none are.
    pub(crate) fn line(&self) -> Option<u64> {
        lock(&self.log).as_ref().map(|log| log.line)
    }

    /// Keeps names from now on, of a base in this state that nobody changes meanwhile.
    pub(crate) fn keep(&self, state: State) -> Option<u64> {
        let mut log = lock(&self.log);
        if log.is_none() && state.txn - self.begun < LINE_MAX {
            let line = encryption::random().map(u64::from_le_bytes);
            *log = line.and_then(|line| self.write(line, state)).ok();
        }
        log.as_ref().map(|log| log.line)
    }

    /// Writes all of the file.
    fn write(&self, line: u64, state: State) -> io::Result<Log> {
        let path = self.path.as_ref().ok_or(ErrorKind::Unsupported)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(line.to_le_bytes());
        bytes.extend(self.begun.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        let mut page = 0;
        let runs = pages.chunk_by(|a, b| a == b).map(|run| {
            page += run.len() as u32;
            (page - run.len() as u32, run.len() as u32, run[0])
        });
        bytes.extend(record(state, runs));
        files::replace(path, &bytes)?;
        Ok(Log {
            file: files::open(path)?,
            line,
            bytes: bytes.len() as u64,
            bytes_max: BYTES_MAX.max(2 * bytes.len() as u64),
        })
    }

    /// The names of nodes.
    pub(crate) fn names(&self, nodes: impl Iterator<Item = NodeRef>) -> Vec<NodeName> {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        let name = |node: NodeRef| NodeName {
            page: node.page,
            checksum: node.crc,
            born: pages.get(node.page as usize).copied().unwrap_or(0),
        };
        nodes.map(name).collect()
    }
}

fn record(state: State, runs: impl Iterator<Item = (u32, u32, u32)>) -> Vec<u8> {
    let mut out = vec![0; RECORD_BYTES];
    out.extend(state.txn.to_le_bytes());
    out.extend(state.root.0.to_le_bytes());
    out.extend(state.root.1.to_le_bytes());
    for (page, count, born) in runs {
        [page, count, born]
            .iter()
            .for_each(|number| out.extend(number.to_le_bytes()));
    }
    let len = (out.len() - RECORD_BYTES) as u32;
    let crc = crc32c::crc32c(&out[RECORD_BYTES..]);
    out[..4].copy_from_slice(&len.to_le_bytes());
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get_u32(bytes, at)) | u64::from(get_u32(bytes, at + 4)) << 32
}

/// What a file says of a base in this state; `None` when it does not go on up to that.
fn read(bytes: &[u8], state: State) -> Option<Read> {
    let header = bytes.get(..HEADER_BYTES)?;
    let is_sound = crc32c::crc32c(&header[..28]) == get_u32(header, 28);
    if &header[..8] != MAGIC || get_u32(header, 8) != VERSION || !is_sound {
        return None;
    }
    let mut out = Read {
        line: get_u64(header, 12),
        begun: get_u64(header, 20),
        pages: Vec::new(),
        bytes: HEADER_BYTES as u64,
    };
    let mut last: Option<State> = None;
    let mut at = HEADER_BYTES;
    while let Some(body) = body(bytes, at) {
        let own = State {
            txn: get_u64(body, 0),
            root: (get_u32(body, 8), get_u32(body, 12)),
        };
        // The transaction that a crash interrupted.
        if own.txn > state.txn {
            break;
        }
        if last.is_some_and(|last| own.txn != last.txn + 1) {
            return None;
        }
        for run in body[16..].chunks_exact(RUN_BYTES) {
            let (from, count) = (get_u32(run, 0) as usize, get_u32(run, 4) as usize);
            if out.pages.len() < from + count {
                out.pages.resize(from + count, 0);
            }
            out.pages[from..from + count].fill(get_u32(run, 8));
        }
        last = Some(own);
        at += RECORD_BYTES + body.len();
    }
    out.bytes = at as u64;
    (last == Some(state) && out.begun <= state.txn).then_some(out)
}

/// What a record says, if one begins there that is sound.
fn body(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let header = bytes.get(at..at + RECORD_BYTES)?;
    let len = get_u32(header, 0) as usize;
    let body = bytes.get(at + RECORD_BYTES..)?.get(..len)?;
    let is_sound = len >= 16 && (len - 16).is_multiple_of(RUN_BYTES) && crc32c::crc32c(body) == get_u32(header, 4);
    is_sound.then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(txn: u64) -> State {
        State {
            txn,
            root: (txn as u32 + 7, 1),
        }
    }

    fn apply(births: &Births, txn: u64, page: u32) {
        births.begin(txn);
        births.wrote(page, 2);
        births.note(at(txn));
    }

    fn born(births: &Births, page: u32) -> u32 {
        let node = NodeRef {
            page,
            ..NodeRef::default()
        };
        births.names(std::iter::once(node))[0].born
    }

    #[test]
    fn names_are_the_same_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.births");
        let births = Births::open(path.clone(), at(5), false);
        apply(&births, 6, 2);
        assert!(!path.exists() && births.line().is_none(), "nobody keeps names");
        let line = births.keep(at(6));
        assert!(line.is_some() && births.keep(at(6)) == line);
        apply(&births, 7, 3);
        apply(&births, 8, 9);
        // Written, and not committed when the process ended.
        apply(&births, 9, 2);
        drop(births);
        let births = Births::open(path.clone(), at(8), false);
        assert_eq!(births.line(), line);
        assert_eq!(
            [1, 2, 3, 4, 5, 9, 10].map(|page| born(&births, page)),
            [0, 1, 2, 2, 0, 3, 3]
        );
        apply(&births, 9, 20);
        drop(births);
        let births = Births::open(path.clone(), at(9), true);
        assert_eq!([2, 20].map(|page| born(&births, page)), [1, 4]);
        assert_eq!(Births::open(path.clone(), at(9), false).line(), line);
    }

    #[test]
    fn a_line_ends_where_something_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("base.births");
        let births = Births::open(path.clone(), at(5), false);
        births.keep(at(5));
        apply(&births, 6, 3);
        apply(&births, 7, 3);
        drop(births);
        let whole = fs::read(&path).unwrap();
        let opened = |bytes: &[u8], state| {
            fs::write(&path, bytes).unwrap();
            Births::open(path.clone(), state, false).line().is_some()
        };
        assert!(opened(&whole, at(7)));
        let other = State { txn: 7, root: (1, 1) };
        for state in [at(4), at(8), other] {
            assert!(!opened(&whole, state), "{state:?}");
            assert!(!path.exists(), "a file of a line that has ended is removed");
        }
        for len in 0..whole.len() {
            assert!(!opened(&whole[..len], at(7)), "{len}");
        }
        for at_byte in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at_byte] ^= 0x10;
            assert!(!opened(&bytes, at(7)), "{at_byte}");
        }
    }
}
