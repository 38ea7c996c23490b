//! Temporary files of those who use a store. They have no name, and are gone when they are closed.
//!
//! Those of an encrypted store are encrypted with a key that is only in memory: in blocks of 8,192 bytes, each followed by its
//! tag, the nonce being the number of the block and that of the file. A block is written once, when it is full; the last one stays in
//! memory.

use crate::encryption::{Cipher, Nonce, TAG_BYTES, random};
use crate::files;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes encrypted at a time.
const BLOCK: usize = 8192;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// A directory for temporary files. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Scratch {
    dir: PathBuf,
    key: Option<Arc<Key>>,
}

#[derive(Debug)]
struct Key {
    cipher: Cipher,
    files: AtomicU32,
}

impl Scratch {
    /// Of files that are as they are written, in a directory that need not exist.
    pub fn plain(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            key: None,
        }
    }

    /// Of files that are encrypted.
    pub(crate) fn encrypted(dir: PathBuf) -> io::Result<Self> {
        let key = zeroize::Zeroizing::new(random()?);
        Ok(Self {
            dir,
            key: Some(Arc::new(Key {
                cipher: Cipher::new(&key),
                files: AtomicU32::new(0),
            })),
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A new file, for reading and writing.
    pub fn file(&self) -> io::Result<ScratchFile> {
        files::create_directories(&self.dir)?;
        let name = format!("spill-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = self.dir.join(name);
        let file = files::create_new(&path)?;
        std::fs::remove_file(&path)?;
        let Some(key) = &self.key else {
            return Ok(ScratchFile(Kind::Plain(file)));
        };
        let number = key
            .files
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |files| files.checked_add(1));
        let number = number
            .map_err(|_| io::Error::other("more temporary files than a key may encrypt; start the server again"))?;
        Ok(ScratchFile(Kind::Sealed(Box::new(Sealed {
            file,
            key: key.clone(),
            number,
            tail: Vec::with_capacity(BLOCK + TAG_BYTES),
            blocks: 0,
            position: 0,
            opened: Mutex::default(),
        }))))
    }
}

/// A temporary file. Writes go to its end; reads begin where the file was last sought to.
#[derive(Debug)]
pub struct ScratchFile(Kind);

#[derive(Debug)]
enum Kind {
    Plain(File),
    Sealed(Box<Sealed>),
}

#[derive(Debug)]
struct Sealed {
    file: File,
    key: Arc<Key>,
    number: u32,
    /// What is behind the last full block.
    tail: Vec<u8>,
    /// Full blocks, which are in the file.
    blocks: u64,
    /// Where the next read begins.
    position: u64,
    opened: Mutex<Opened>,
}

/// The block that was read last.
#[derive(Debug, Default)]
struct Opened {
    number: Option<u64>,
    bytes: Vec<u8>,
}

impl Sealed {
    fn len(&self) -> u64 {
        self.blocks * BLOCK as u64 + self.tail.len() as u64
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK - self.tail.len()));
            self.tail.extend_from_slice(now);
            bytes = rest;
            if self.tail.len() == BLOCK {
                self.write_tail()?;
            }
        }
        Ok(())
    }

    /// Writes the last block, which is full. After an error nothing more can be written: the number has been used.
    fn write_tail(&mut self) -> io::Result<()> {
        let number = self.blocks;
        let tag = self
            .key
            .cipher
            .seal(Nonce::of(self.number, number), &[], &mut self.tail);
        self.tail.extend_from_slice(&tag);
        self.blocks += 1;
        let written = self.file.write_all_at(&self.tail, number * (BLOCK + TAG_BYTES) as u64);
        self.tail.clear();
        written
    }

    /// Fills `buffer` from `position`, as far as there is something.
    fn read(&self, mut buffer: &mut [u8], mut position: u64) -> io::Result<usize> {
        let mut done = 0;
        while !buffer.is_empty() && position < self.len() {
            let (number, at) = (position / BLOCK as u64, (position % BLOCK as u64) as usize);
            let copy = |block: &[u8], buffer: &mut [u8]| {
                let bytes = &block[at..];
                let len = bytes.len().min(buffer.len());
                buffer[..len].copy_from_slice(&bytes[..len]);
                len
            };
            let len = match number == self.blocks {
                true => copy(&self.tail, buffer),
                false => {
                    let mut opened = self.opened.lock().expect("no holder of the lock panics");
                    if opened.number != Some(number) {
                        self.open(number, &mut opened)?;
                    }
                    copy(&opened.bytes[..BLOCK], buffer)
                }
            };
            buffer = &mut buffer[len..];
            position += len as u64;
            done += len;
        }
        Ok(done)
    }

    fn open(&self, number: u64, opened: &mut Opened) -> io::Result<()> {
        opened.number = None;
        opened.bytes.resize(BLOCK + TAG_BYTES, 0);
        self.file
            .read_exact_at(&mut opened.bytes, number * (BLOCK + TAG_BYTES) as u64)?;
        let (block, tag_bytes) = opened.bytes.split_at_mut(BLOCK);
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(tag_bytes);
        let cipher = &self.key.cipher;
        let result = cipher.open(Nonce::of(self.number, number), &[], block, tag);
        result.map_err(|unsealed| io::Error::new(ErrorKind::InvalidData, unsealed.0))?;
        opened.number = Some(number);
        Ok(())
    }
}

impl ScratchFile {
    /// Fills `buffer` from `offset`; `UnexpectedEof` if the file is too short.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Kind::Plain(file) => file.read_exact_at(buffer, offset),
            Kind::Sealed(sealed) => match sealed.read(buffer, offset)? == buffer.len() {
                true => Ok(()),
                false => Err(ErrorKind::UnexpectedEof.into()),
            },
        }
    }
}

impl Write for ScratchFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(file) => file.write(bytes),
            Kind::Sealed(sealed) => sealed.append(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for ScratchFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(file) => file.read(buffer),
            Kind::Sealed(sealed) => {
                let read = sealed.read(buffer, sealed.position)?;
                sealed.position += read as u64;
                Ok(read)
            }
        }
    }
}

impl Seek for ScratchFile {
    /// From the beginning only.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match (&mut self.0, to) {
            (Kind::Plain(file), to) => file.seek(to),
            (Kind::Sealed(sealed), SeekFrom::Start(position)) => {
                sealed.position = position;
                Ok(position)
            }
            (Kind::Sealed(_), _) => Err(ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_files_give_back_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let kinds = [
            Scratch::plain(dir.path()),
            Scratch::encrypted(dir.path().to_owned()).unwrap(),
        ];
        for scratch in kinds {
            for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17] {
                let expected: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
                let mut file = scratch.file().unwrap();
                for piece in expected.chunks(777) {
                    file.write_all(piece).unwrap();
                }
                file.seek(SeekFrom::Start(0)).unwrap();
                let mut found = Vec::new();
                file.read_to_end(&mut found).unwrap();
                assert!(found == expected, "{scratch:?}, {len}");
                for (from, to) in [
                    (0, len),
                    (len / 3, len),
                    (len / 2, len / 2),
                    (len.saturating_sub(1), len),
                ] {
                    let mut found = vec![0; to - from];
                    file.read_exact_at(&mut found, from as u64).unwrap();
                    assert!(found == expected[from..to], "{scratch:?}, {from} to {to}");
                }
                let behind = file.read_exact_at(&mut [0], len as u64);
                assert_eq!(behind.unwrap_err().kind(), ErrorKind::UnexpectedEof);
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "they have no names");
    }

    #[test]
    fn encrypted_files_hold_nothing_that_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::encrypted(dir.path().to_owned()).unwrap();
        let mut files = [scratch.file().unwrap(), scratch.file().unwrap()];
        let text = b"the same words".repeat(2 * BLOCK / 14 + 1);
        let mut on_disk = Vec::new();
        for file in &mut files {
            file.write_all(&text).unwrap();
            let Kind::Sealed(sealed) = &file.0 else {
                panic!("it is encrypted")
            };
            let mut bytes = vec![0; 2 * (BLOCK + TAG_BYTES)];
            sealed.file.read_exact_at(&mut bytes, 0).unwrap();
            assert!(!bytes.windows(14).any(|words| words == b"the same words"));
            on_disk.push(bytes);
        }
        assert_ne!(on_disk[0], on_disk[1]);
        assert_ne!(on_disk[0][..BLOCK], on_disk[0][BLOCK + TAG_BYTES..][..BLOCK]);
        // Changed on the disk.
        let Kind::Sealed(sealed) = &files[0].0 else {
            panic!("it is encrypted")
        };
        sealed.file.write_all_at(b"x", 5).unwrap();
        assert_eq!(
            files[0].read_exact_at(&mut [0], 7).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        files[0].read_exact_at(&mut [0], BLOCK as u64 + 7).unwrap();
    }
}
