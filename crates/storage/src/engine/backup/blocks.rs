//! Hashes of the base's file, by which an incremental backup finds what has changed.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | `NestorBH` |
//! | 8 | 4 | format version: 1 |
//! | 12 | 4 | bytes of a block: 16384 |
//! | 16 | | for each block of the base the first 16 bytes of its SHA-256; the last block may be shorter |
//!
//! The changed blocks of an incremental backup stand one after the other, ascending: the number of the block (8 bytes, little-endian)
//! and its bytes.
//!
//! Why hashes of bytes, and not the checksums that the tree has of its pages: those have 32 bits, which is enough to find damage and not
//! enough to prove that nothing changed, and a page that is encrypted shows none. It costs reading the whole
//! base for each backup, and writing what changed.

use crate::{Result, StorageError};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// Bytes of a block; the last one of a base may be shorter.
pub const BLOCK_BYTES: usize = 16 << 10;
pub(super) const HASH_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"NestorBH";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;

/// The hash of a block.
pub type Hash = [u8; HASH_BYTES];

/// SHA-256 of what it is given, cut to [`HASH_BYTES`].
pub(super) struct Hasher(Sha256);

impl Hasher {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Hash {
        let digest = self.0.finalize();
        *digest.first_chunk().expect("SHA-256 has 32 bytes")
    }
}

pub(super) fn hash(bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finish()
}

pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
    header
}

/// The hashes in the file at `path`, of a base of so many bytes: those of its blocks, one after the other.
pub fn read(path: &Path, base_bytes: u64) -> Result<Vec<u8>> {
    let failed = |operation| move |error: std::io::Error| StorageError::io(operation, path, &error);
    let corrupt = |offset, reason: &str| StorageError::Corrupt {
        file: path.to_owned(),
        offset,
        reason: reason.into(),
    };
    let mut file = File::open(path).map_err(failed("open"))?;
    let mut found = [0; HEADER_BYTES];
    file.read_exact(&mut found).map_err(failed("read"))?;
    if found != header() {
        return Err(corrupt(0, "not the hashes of a base"));
    }
    let length = base_bytes.div_ceil(BLOCK_BYTES as u64) * HASH_BYTES as u64;
    let end = file.seek(std::io::SeekFrom::End(0)).map_err(failed("read"))?;
    if end != HEADER_BYTES as u64 + length {
        return Err(corrupt(end, "it has hashes of another number of blocks"));
    }
    file.seek(std::io::SeekFrom::Start(HEADER_BYTES as u64))
        .map_err(failed("read"))?;
    let mut hashes = vec![0; length as usize];
    file.read_exact(&mut hashes).map_err(failed("read"))?;
    Ok(hashes)
}

/// The hash of block `number`; `None` beyond the last.
pub fn at(hashes: &[u8], number: u64) -> Option<&[u8]> {
    let start = usize::try_from(number).ok()?.checked_mul(HASH_BYTES)?;
    hashes.get(start..start.checked_add(HASH_BYTES)?)
}
