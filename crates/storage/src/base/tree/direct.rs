//! The file under the tree on a real file system: large writes go past the page cache.
//!
//! The tree has its own cache, so a copy of what a checkpoint writes in the kernel's is memory that nobody reads, and
//! making it costs ten times the CPU of the write itself. Small writes (meta pages, single leaves between others) and
//! reads go through the page cache: of a small direct write the caller waits for the device, and a file that is larger than
//! the tree's cache profits from the kernel's.

use super::file::PageFile;
use crate::files;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The alignment of memory, offset and length of a direct write, on any device in use.
pub(crate) const ALIGNMENT: usize = 4096;
/// Writes below this are cheaper as copies.
const DIRECT_MIN: usize = 64 << 10;

/// A file with a second descriptor for direct writes.
pub(crate) struct DirectFile {
    file: File,
    direct: Option<File>,
    /// The file system took the descriptor but not the write.
    refused: AtomicBool,
}

impl DirectFile {
    /// Opens an existing file. Where direct writes are not possible all go through the page cache.
    pub(crate) fn open(path: &Path, read_only: bool) -> io::Result<DirectFile> {
        let file = match read_only {
            true => File::open(path)?,
            false => files::open(path)?,
        };
        let direct = || {
            let flags = (OFlags::DIRECT | OFlags::NOFOLLOW).bits().cast_signed();
            File::options().write(true).custom_flags(flags).open(path).ok()
        };
        Ok(DirectFile {
            file,
            direct: if read_only { None } else { direct() },
            refused: AtomicBool::new(false),
        })
    }

    /// The descriptor for a write, if it can be a direct one.
    fn direct(&self, bytes: &[u8], offset: u64) -> Option<&File> {
        let is_aligned = bytes.len().is_multiple_of(ALIGNMENT)
            && offset.is_multiple_of(ALIGNMENT as u64)
            && bytes.as_ptr().addr().is_multiple_of(ALIGNMENT);
        let is_worth_it = bytes.len() >= DIRECT_MIN && !self.refused.load(Ordering::Relaxed);
        self.direct.as_ref().filter(|_| is_aligned && is_worth_it)
    }
}

impl PageFile for DirectFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        PageFile::read_at(&self.file, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Some(direct) = self.direct(bytes, offset) {
            match PageFile::write_at(direct, bytes, offset) {
                // Also what is left of a write that was cut short is not aligned any more.
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
                    self.refused.store(true, Ordering::Relaxed);
                }
                outcome => return outcome,
            }
        }
        PageFile::write_at(&self.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        PageFile::sync(&self.file)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        PageFile::set_len(&self.file, len)
    }

    fn len(&self) -> io::Result<u64> {
        PageFile::len(&self.file)
    }
}

/// Bytes that grow at the end and begin at an aligned place in memory.
#[derive(Default)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    /// Where the bytes begin.
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.len]
    }

    /// Appends `count` zeros and returns them.
    pub(crate) fn grow(&mut self, count: usize) -> &mut [u8] {
        let bytes = self.room(count);
        bytes.fill(0);
        bytes
    }

    /// Appends `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends `count` bytes, whatever they are.
    pub(crate) fn room(&mut self, count: usize) -> &mut [u8] {
        let len = self.len + count;
        if self.start + len > self.memory.len() {
            let mut memory = vec![0; (2 * self.len).max(len) + ALIGNMENT];
            let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            memory[start..][..self.len].copy_from_slice(self.bytes());
            (self.memory, self.start) = (memory, start);
        }
        let at = self.start + std::mem::replace(&mut self.len, len);
        &mut self.memory[at..][..count]
    }

    /// Forgets the bytes, and memory beyond `keep` bytes.
    pub(crate) fn clear(&mut self, keep: usize) {
        self.len = 0;
        if self.memory.len() > keep + ALIGNMENT {
            *self = AlignedBuffer::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_keeps_what_it_has() {
        let mut buffer = AlignedBuffer::default();
        for round in 0..3 {
            for i in 1..=20_usize {
                let zeros = buffer.grow(1000 * i);
                assert!(zeros.iter().all(|b| *b == 0), "round {round}, piece {i}");
                zeros.fill(i as u8);
                assert!(buffer.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
            }
            assert_eq!(buffer.len(), 210_000);
            let expected: Vec<u8> = (1..=20_usize).flat_map(|i| vec![i as u8; 1000 * i]).collect();
            assert_eq!(buffer.bytes(), expected);
            buffer.clear(if round == 0 { 1 << 20 } else { 10 });
            assert_eq!(buffer.len(), 0);
        }
    }

    /// Direct and other writes of neighbouring and of the same pages, read back through the page cache.
    #[test]
    fn all_kinds_of_writes_are_seen_by_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let file = DirectFile::open(&path, false).unwrap();
        let mut expected = vec![1; 1 << 20];
        let mut cached = vec![0; 1 << 20];
        file.read_at(&mut cached, 0).unwrap();
        let mut buffer = AlignedBuffer::default();
        for (value, offset, len) in [
            (2, 0, 128 << 10),
            (3, 4096, 64 << 10),
            (4, 100, 64 << 10),
            (5, 8192, 100_000),
            (6, 8192, 4096),
            // Beyond the end of the file.
            (7, (1 << 20) - 4096, 256 << 10),
        ] {
            buffer.clear(1 << 20);
            buffer.grow(len).fill(value);
            file.write_at(buffer.bytes(), offset as u64).unwrap();
            expected.resize(expected.len().max(offset + len), 0);
            expected[offset..][..len].fill(value);
            let mut found = vec![0; expected.len()];
            file.read_at(&mut found, 0).unwrap();
            assert!(found == expected, "after the write of {value}");
        }
        file.sync().unwrap();
        assert!(std::fs::read(&path).unwrap() == expected);
        assert_eq!(file.len().unwrap(), expected.len() as u64);
    }
}
