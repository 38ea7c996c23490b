//! `nestor.keys`: the data keys, wrapped by the master key.
//!
//! | offset | size | meaning |
//! |---|---|---|
//! | 0 | 8 | `NestorKS` |
//! | 8 | 4 | format version: 1 |
//! | 12 | 4 | crc32c of the other bytes |
//! | 16 | 16 | random, of the store: it is not the key, and tells whose file this is |
//! | 32 | 4 | how many data keys there are, 1 to 65,536 |
//! | 36 | 4 | 0 |
//! | 40 | 12 | nonce, random |
//! | 52 | 4 | 0 |
//! | 56 | 44 for each | encrypted: number (4), when it was made in seconds since the epoch (8), data key (32) |
//! | | 16 | tag, over the encrypted bytes and bytes 0 to 12 and 16 to 56 |
//!
//! Numbers of data keys ascend; the last one is in use. Without this file nothing in the directory can be read, so it is part
//! of every backup; it is of no use without the master key.

use super::cipher::{Cipher, Nonce, TAG_BYTES};
use super::{Unsealed, random};
use crate::engine::directory::Directory;
use crate::{Result, StorageError, files};
use std::io::{self, ErrorKind};
use std::path::Path;
use zeroize::Zeroizing;

/// Name of the file.
pub(crate) const FILE: &str = "nestor.keys";
const MAGIC: &[u8; 8] = b"NestorKS";
const VERSION: u32 = 1;
const HEAD: usize = 56;
const ENTRY: usize = 44;
const COUNT_MAX: usize = 1 << 16;
/// A store that is opened and whose newest data key is older gets another one.
const AGE_MAX_SECS: u64 = 90 * 24 * 3600;

/// The key that wraps the others. It is cleared when it is dropped, and is never printed.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// From 32 bytes. `None` if they are not as many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        if bytes.len() != key.len() {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// A key that keys are derived from.
#[derive(Clone)]
pub(crate) struct DataKey {
    pub(crate) number: u32,
    /// Seconds since the epoch.
    made: u64,
    pub(crate) bytes: Zeroizing<[u8; 32]>,
}

/// The contents of the file, unwrapped.
pub(crate) struct KeyFile {
    store: [u8; 16],
    /// The data keys, at least one; the last one seals what is written now.
    data_keys: Vec<DataKey>,
}

/// Why a file cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unusable {
    /// A later version wrote the file.
    Newer(u32),
    /// The file is not what was written.
    Damaged(&'static str),
    /// Another key wrapped it.
    OtherKey,
}

impl KeyFile {
    /// The key file of a new store.
    pub(crate) fn new(now_secs: u64) -> io::Result<Self> {
        let mut file = Self {
            store: random()?,
            data_keys: Vec::new(),
        };
        file.add(now_secs)?;
        Ok(file)
    }

    /// Adds a data key, which is in use from now on.
    fn add(&mut self, now_secs: u64) -> io::Result<()> {
        let number = self.data_keys.last().map_or(1, |last| last.number + 1);
        if self.data_keys.len() < COUNT_MAX {
            self.data_keys.push(DataKey {
                number,
                made: now_secs,
                bytes: Zeroizing::new(random()?),
            });
        }
        Ok(())
    }

    /// Adds a data key if the last one is old. Whether it was.
    pub(crate) fn renew(&mut self, now_secs: u64) -> io::Result<bool> {
        let made = self.data_keys.last().map_or(0, |last| last.made);
        let is_old = now_secs.saturating_sub(made) > AGE_MAX_SECS;
        if is_old {
            self.add(now_secs)?;
        }
        Ok(is_old)
    }

    pub(crate) fn into_data_keys(self) -> Vec<DataKey> {
        self.data_keys
    }

    fn encode(&self, master: &MasterKey) -> io::Result<Vec<u8>> {
        let mut out = vec![0; HEAD];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..32].copy_from_slice(&self.store);
        out[32..36].copy_from_slice(&(self.data_keys.len() as u32).to_le_bytes());
        let nonce = random()?;
        out[40..52].copy_from_slice(&nonce);
        // At once: a vector that grew would leave keys behind.
        let mut keys = Zeroizing::new(Vec::with_capacity(self.data_keys.len() * ENTRY));
        for key in &self.data_keys {
            keys.extend_from_slice(&key.number.to_le_bytes());
            keys.extend_from_slice(&key.made.to_le_bytes());
            keys.extend_from_slice(&*key.bytes);
        }
        let tag = Cipher::new(&master.0).seal(Nonce(nonce), &context(&out), &mut keys);
        out.extend_from_slice(&keys);
        out.extend_from_slice(&tag);
        let crc = crc(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        Ok(out)
    }

    pub(crate) fn decode(bytes: &[u8], master: &MasterKey) -> Result<Self, Unusable> {
        if !bytes.starts_with(MAGIC) || bytes.len() < HEAD {
            return Err(Unusable::Damaged("it is no file of keys"));
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if word(12) != crc(bytes) {
            return Err(Unusable::Damaged("the checksum does not match"));
        }
        if word(8) != VERSION {
            return Err(Unusable::Newer(word(8)));
        }
        let count = word(32) as usize;
        if count == 0 || count > COUNT_MAX || bytes.len() != HEAD + count * ENTRY + TAG_BYTES {
            return Err(Unusable::Damaged("it has another length than it says"));
        }
        let (head, rest) = bytes.split_at(HEAD);
        let (wrapped, tag_bytes) = rest.split_at(count * ENTRY);
        let (mut nonce, mut tag, mut store) = ([0; 12], [0; TAG_BYTES], [0; 16]);
        nonce.copy_from_slice(&head[40..52]);
        tag.copy_from_slice(tag_bytes);
        store.copy_from_slice(&head[16..32]);
        let mut keys = Zeroizing::new(wrapped.to_vec());
        Cipher::new(&master.0)
            .open(Nonce(nonce), &context(head), &mut keys, tag)
            .map_err(|Unsealed(_)| Unusable::OtherKey)?;
        let mut data_keys: Vec<DataKey> = Vec::with_capacity(count);
        for entry in keys.chunks_exact(ENTRY) {
            let (mut number, mut made, mut key) = ([0; 4], [0; 8], Zeroizing::new([0; 32]));
            number.copy_from_slice(&entry[..4]);
            made.copy_from_slice(&entry[4..12]);
            key.copy_from_slice(&entry[12..]);
            let number = u32::from_le_bytes(number);
            if data_keys.last().is_some_and(|last| last.number >= number) {
                return Err(Unusable::Damaged("numbers of data keys do not ascend"));
            }
            data_keys.push(DataKey {
                number,
                made: u64::from_le_bytes(made),
                bytes: key,
            });
        }
        Ok(Self { store, data_keys })
    }

    /// Reads the file of the directory `dir`; `None` if there is none.
    pub(crate) fn read(dir: &Path, master: &MasterKey) -> Result<Option<Self>> {
        let path = dir.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io("open", &path, &error)),
        };
        Self::decode(&bytes, master)
            .map(Some)
            .map_err(|unusable| match unusable {
                Unusable::Newer(found) => StorageError::NewerFormat {
                    file: path,
                    found,
                    supported: VERSION,
                },
                Unusable::Damaged(reason) => StorageError::Corrupt {
                    file: path,
                    offset: 0,
                    reason: reason.into(),
                },
                Unusable::OtherKey => {
                    StorageError::encryption(dir, "is encrypted with another master key than the one given")
                }
            })
    }

    /// Writes the file such that after a crash it is whole, or as it was.
    pub(crate) fn write(&self, dir: &Path, master: &MasterKey) -> Result<()> {
        let path = dir.join(FILE);
        let written = self.encode(master).and_then(|bytes| files::replace(&path, &bytes));
        written.map_err(|e| StorageError::io("write", &path, &e))
    }
}

/// Makes the head of these bytes fit them, for fuzzing. `false` if they are too short.
pub(crate) fn mend(bytes: &mut [u8]) -> bool {
    let Some(keys) = bytes
        .len()
        .checked_sub(HEAD + TAG_BYTES)
        .filter(|keys| keys.is_multiple_of(ENTRY))
    else {
        return false;
    };
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[32..36].copy_from_slice(&((keys / ENTRY) as u32).to_le_bytes());
    let crc = crc(bytes);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    true
}

/// The data, beside the keys, that the tag authenticates.
fn context(head: &[u8]) -> [u8; HEAD - 4] {
    let mut out = [0; HEAD - 4];
    out[..12].copy_from_slice(&head[..12]);
    out[12..].copy_from_slice(&head[16..HEAD]);
    out
}

fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// Replaces the master key of the store in `dir`, which nobody may have open, and begins another data key: what is written from
/// now on cannot be read by who has the old master key and an old copy of `nestor.keys`. Before it returns without an error the old
/// master key is the right one, afterwards the new one.
///
/// Errors: those of opening the directory.
pub fn rotate(dir: &Path, old: &MasterKey, new: &MasterKey, now_secs: u64) -> Result<()> {
    // `open` would make a directory where there is none, so `read` comes first.
    drop(Directory::read(dir, Some(old))?);
    let _directory = Directory::open(dir, Some(old), now_secs)?;
    let Some(mut file) = KeyFile::read(dir, old)? else {
        return Err(StorageError::encryption(dir, "is not encrypted"));
    };
    file.add(now_secs)
        .map_err(|e| StorageError::io("write", &dir.join(FILE), &e))?;
    file.write(dir, new)
}
