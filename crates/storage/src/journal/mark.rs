//! The mark: how far the journal is known to be durable, in a file beside it.
//!
//! A tail of the journal that was not synced when the machine stopped looks like one that was damaged later. So after each
//! sync the last durable commit is noted in `nestor.durable`, without a sync of its own: after a crash of the process the
//! mark is exact, after one of the machine it is a while old, but never ahead of the journal. It is synced when nothing was
//! written for a second, at the start and at the end. A journal that ends before its mark has lost commits, and is refused.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | `NestorDM` |
//! | 8 | 4 | format version: 1 |
//! | 12 | 4 | crc32c of the other 28 bytes |
//! | 16 | 8 | sequence number of the last commit known to be durable |
//! | 24 | 4 | checksum of its frame; 0 if it is not known |
//! | 28 | 4 | 1: the store was closed, nothing was committed after it; else 0 |
//!
//! Example: a store that was closed after commit 3, whose frame has the checksum 0x01020304, has
//!
//! ```text
//! 4e 65 73 74 6f 72 44 4d  01 00 00 00  0e 57 93 2d  03 00 00 00 00 00 00 00  04 03 02 01  01 00 00 00
//! ```

use crate::{Result, StorageError, files};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"NestorDM";
const VERSION: u32 = 1;

/// The commits that are known to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark {
    /// The last commit known to be.
    pub(crate) seq: u64,
    /// Checksum of its frame; 0 if it is not known.
    pub(crate) checksum: u32,
    /// Nothing was committed after it.
    pub(crate) is_closed: bool,
}

/// The mark as it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Mark(Mark),
    /// There is no file.
    Missing,
    /// The bytes are no mark: a loss of power while it was written may leave that.
    Unreadable,
}

impl Found {
    pub(crate) fn mark(self) -> Option<Mark> {
        match self {
            Self::Mark(mark) => Some(mark),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

impl Mark {
    /// The bytes of the file.
    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.seq.to_le_bytes());
        out[24..28].copy_from_slice(&self.checksum.to_le_bytes());
        out[28..].copy_from_slice(&u32::from(self.is_closed).to_le_bytes());
        let crc = crc(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let is_sound = bytes.starts_with(MAGIC) && word(8) == VERSION && word(12) == crc(bytes);
        is_sound.then(|| Self {
            seq: u64::from(word(16)) | u64::from(word(20)) << 32,
            checksum: word(24),
            is_closed: word(28) & 1 == 1,
        })
    }

    /// Reads the file at `path`.
    pub(crate) fn read(path: &Path) -> io::Result<Found> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::decode(&bytes).map_or(Found::Unreadable, Found::Mark)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Missing),
            Err(error) => Err(error),
        }
    }
}

/// Makes the file of a journal in which nothing is.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    files::replace(path, &Mark::default().encode())
}

fn crc(bytes: &[u8; BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// The file of the mark of an open journal. That it cannot be written stops nobody: the mark that is there stays true.
pub(crate) struct MarkFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Opened at the first write.
    file: Option<File>,
    is_synced: bool,
    /// How many copy the files, and want no mark that is newer than the journal that they have.
    holds: u32,
    /// The mark that would have been noted meanwhile.
    held: Option<Mark>,
    failed: Option<ErrorKind>,
}

impl MarkFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }

    /// Notes what is durable.
    pub(crate) fn note(&self, mark: Mark) {
        self.note_in(&mut self.state(), mark);
    }

    fn note_in(&self, state: &mut State, mark: Mark) {
        if state.holds > 0 {
            state.held = Some(mark);
            return;
        }
        state.is_synced = false;
        let result = self.write(state, mark);
        self.tell(state, result);
    }

    fn write(&self, state: &mut State, mark: Mark) -> io::Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(files::private().create(true).truncate(false).open(&self.path)?),
        };
        file.write_all_at(&mark.encode(), 0)
    }

    /// Syncs the mark unless that was done since it was written.
    pub(crate) fn sync(&self) {
        let mut state = self.state();
        if state.is_synced {
            return;
        }
        let result = state.file.as_ref().map_or(Ok(()), File::sync_data);
        state.is_synced = true;
        self.tell(&mut state, result);
    }

    /// Whether the mark was written since it was synced.
    pub(crate) fn is_synced(&self) -> bool {
        self.state().is_synced
    }

    /// Errors: a write or a sync of the mark failed.
    pub(crate) fn check(&self) -> Result<()> {
        match self.state().failed {
            Some(kind) => Err(StorageError::io("write", &self.path, &kind.into())),
            None => Ok(()),
        }
    }

    /// Keeps the mark as it is until [`MarkFile::release`].
    pub(crate) fn hold(&self) {
        self.state().holds += 1;
    }

    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.holds -= 1;
        if state.holds == 0
            && let Some(mark) = state.held.take()
        {
            self.note_in(&mut state, mark);
        }
    }

    fn tell(&self, state: &mut State, result: io::Result<()>) {
        if let Err(error) = result
            && state.failed.replace(error.kind()).is_none()
        {
            tracing::warn!(path = %self.path.display(), %error, "what is durable cannot be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: Mark = Mark {
        seq: 3,
        checksum: 0x0102_0304,
        is_closed: true,
    };

    #[test]
    fn the_example() {
        let text: Vec<String> = EXAMPLE.encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            text.join(" "),
            "4e 65 73 74 6f 72 44 4d 01 00 00 00 0e 57 93 2d 03 00 00 00 00 00 00 00 04 03 02 01 01 00 00 00"
        );
        assert_eq!(Mark::decode(&EXAMPLE.encode()), Some(EXAMPLE));
        for at in 0..BYTES {
            let mut bytes = EXAMPLE.encode();
            bytes[at] ^= 4;
            assert_eq!(Mark::decode(&bytes), None, "byte {at}");
        }
        assert_eq!(Mark::decode(&EXAMPLE.encode()[..31]), None);
    }

    #[test]
    fn while_it_is_held_it_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mark");
        assert_eq!(Mark::read(&path).unwrap(), Found::Missing);
        let file = MarkFile::new(path.clone());
        let mark = |seq| Mark { seq, ..Mark::default() };
        file.note(mark(1));
        file.hold();
        file.note(mark(2));
        assert_eq!(Mark::read(&path).unwrap(), Found::Mark(mark(1)));
        file.release();
        assert_eq!(Mark::read(&path).unwrap(), Found::Mark(mark(2)));
        file.sync();
        assert!(file.is_synced());
        file.note(mark(3));
        assert!(!file.is_synced());
    }
}
