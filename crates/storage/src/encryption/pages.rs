//! The file under the tree, encrypted: every page is sealed by itself.
//!
//! | offset in the page of 8,192 bytes | size | meaning |
//! |---|---|---|
//! | 0 | 8,144 | encrypted: the page as the tree knows it |
//! | 8,144 | 16 | tag, over that and the context |
//! | 8,160 | 32 | [seal](super) |
//!
//! The context is `page`, four zero bytes, and the number of the page (8): a page in another's place does not open. One that
//! was in its place earlier does; of that, what refers to it tells by the checksum of the page's contents, which it holds,
//! up to the meta pages.
//!
//! So the tree has pages of 8,144 bytes, and on the disk they lie as those of other stores do, at multiples of 8,192, where
//! large writes can go past the page cache.

use super::cipher::TAG_BYTES;
use super::seals::{SEAL_BYTES, Seal, Seals};
use crate::base::tree::PageFile;
use crate::base::tree::direct::AlignedBuffer;
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Bytes of a page on the disk.
const DISK_BYTES: usize = 8192;
/// Bytes of it that are the tree's.
pub(crate) const PAGE_BYTES: usize = DISK_BYTES - TAG_BYTES - SEAL_BYTES;
/// Pages written at a time.
const WRITE_PAGES: usize = 128;
/// Pages read at a time.
const READ_PAGES: usize = 16;

thread_local! {
    /// Where pages are decrypted.
    static READING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file of sealed pages. Offsets and lengths are those of a file of pages of [`PAGE_BYTES`]; reads and writes are of whole pages.
pub(crate) struct SealedPages {
    file: Box<dyn PageFile>,
    seals: Arc<Seals>,
    /// Where pages are encrypted: one thread writes at a time, as a rule.
    writing: Mutex<AlignedBuffer>,
}

impl SealedPages {
    pub(crate) fn new(file: Box<dyn PageFile>, seals: Arc<Seals>) -> Self {
        Self {
            file,
            seals,
            writing: Mutex::default(),
        }
    }

    /// The contents of a file that holds these pages.
    pub(crate) fn encode(pages: &[u8], seals: &Seals) -> Vec<u8> {
        let mut out = vec![0; pages.len() / PAGE_BYTES * DISK_BYTES];
        for (number, (disk, page)) in out
            .chunks_exact_mut(DISK_BYTES)
            .zip(pages.chunks_exact(PAGE_BYTES))
            .enumerate()
        {
            seal(seals, number as u64, page, disk);
        }
        out
    }
}

fn context(number: u64) -> [u8; 16] {
    let mut context = *b"page\0\0\0\0........";
    context[8..].copy_from_slice(&number.to_le_bytes());
    context
}

fn seal(seals: &Seals, number: u64, page: &[u8], disk: &mut [u8]) {
    let (contents, rest) = disk.split_at_mut(PAGE_BYTES);
    contents.copy_from_slice(page);
    let (tag, seal) = seals.seal(&context(number), contents);
    rest[..TAG_BYTES].copy_from_slice(&tag);
    rest[TAG_BYTES..].copy_from_slice(&seal.encode());
}

fn open(seals: &Seals, number: u64, disk: &mut [u8]) -> io::Result<()> {
    let (contents, rest) = disk.split_at_mut(PAGE_BYTES);
    let (mut tag, mut seal) = ([0; TAG_BYTES], [0; SEAL_BYTES]);
    tag.copy_from_slice(&rest[..TAG_BYTES]);
    seal.copy_from_slice(&rest[TAG_BYTES..]);
    seals
        .open(&Seal::decode(&seal), 0, &context(number), contents, tag)
        .map_err(|unsealed| {
            io::Error::new(
                ErrorKind::InvalidData,
                format!("page {number} does not decrypt: {}", unsealed.0),
            )
        })
}

/// The number of the page that begins at `offset`, if what begins there and has `len` bytes is whole pages.
fn first_page(offset: u64, len: usize) -> io::Result<u64> {
    let is_whole = offset.is_multiple_of(PAGE_BYTES as u64) && len.is_multiple_of(PAGE_BYTES);
    match is_whole {
        true => Ok(offset / PAGE_BYTES as u64),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            "encrypted pages are read and written as a whole",
        )),
    }
}

impl PageFile for SealedPages {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut number = first_page(offset, buffer.len())?;
        READING.with_borrow_mut(|disk| {
            for pages in buffer.chunks_mut(READ_PAGES * PAGE_BYTES) {
                let count = pages.len() / PAGE_BYTES;
                if disk.len() < count * DISK_BYTES {
                    disk.resize(count * DISK_BYTES, 0);
                }
                let disk = &mut disk[..count * DISK_BYTES];
                self.file.read_at(disk, number * DISK_BYTES as u64)?;
                for (page, disk) in pages
                    .chunks_exact_mut(PAGE_BYTES)
                    .zip(disk.chunks_exact_mut(DISK_BYTES))
                {
                    open(&self.seals, number, disk)?;
                    page.copy_from_slice(&disk[..PAGE_BYTES]);
                    number += 1;
                }
            }
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut number = first_page(offset, bytes.len())?;
        let mut disk = self.writing.lock().expect("no holder of the lock panics");
        for pages in bytes.chunks(WRITE_PAGES * PAGE_BYTES) {
            let at = number * DISK_BYTES as u64;
            disk.clear(WRITE_PAGES * DISK_BYTES);
            for page in pages.chunks_exact(PAGE_BYTES) {
                seal(&self.seals, number, page, disk.room(DISK_BYTES));
                number += 1;
            }
            self.file.write_at(disk.bytes(), at)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn forget(&self, range: Range<u64>) {
        self.file.forget(self.place(range.start)..self.place(range.end));
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(self.place(len))
    }

    fn len(&self) -> io::Result<u64> {
        let len = self.file.len()?;
        let (pages, rest) = (len / DISK_BYTES as u64, len % DISK_BYTES as u64);
        Ok(pages * PAGE_BYTES as u64 + rest.min(PAGE_BYTES as u64 - 1))
    }

    fn page_bytes(&self) -> Option<usize> {
        Some(PAGE_BYTES)
    }

    fn place(&self, offset: u64) -> u64 {
        let (pages, rest) = (offset / PAGE_BYTES as u64, offset % PAGE_BYTES as u64);
        pages * DISK_BYTES as u64 + rest
    }
}
