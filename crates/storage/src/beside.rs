//! Files of what is derived of the base, beside it: each made as a whole, read block by block, and never needed.
//!
//! ```text
//! block     bytes, encrypted in an encrypted store, and then followed by tag (16) and seal (32)
//! ...
//! index     a block as the others: of each block before it the offset (8), the length (4) and the CRC-32C (4)
//! end       the same 16 bytes of the index | "NestorDE" (8) | CRC-32C of these 24 bytes (4)
//! ```
//!
//! A file is written under a temporary name and renamed. It is not synced: whatever of it does not reach the disk is found by the checksums, and
//! what has lost a file makes it anew. The context of an encrypted block is the name of its file and the offset in it. Who refers to a block holds
//! its checksum ([`Place`]); so a block of another file, or of an earlier file of the same name, is found too.

use crate::base::tree::PageFile;
use crate::encryption::{SEAL_BYTES, Seal, Seals, TAG_BYTES};
use crate::files;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory within that of the data.
pub(crate) const DIRECTORY: &str = "columns";

const MAGIC: &[u8; 8] = b"NestorDE";
const END_BYTES: usize = 28;
const PLACE_BYTES: usize = 16;
const NEW: &str = ".new";

/// Opens a file, or makes it.
pub type OpenFile = Arc<dyn Fn(&Path, bool) -> io::Result<Box<dyn PageFile>> + Send + Sync>;

/// A directory of such files. Clones are the same one.
#[derive(Clone)]
pub struct Beside {
    dir: PathBuf,
    seals: Option<Arc<Seals>>,
    open: OpenFile,
}

/// Where a block is, and what it is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Bytes of the file before it.
    pub offset: u64,
    /// Its own, as they were written.
    pub len: u32,
    /// Their checksum.
    pub crc: u32,
}

/// A file that is being made. If it is not finished it is gone.
pub struct NewFile {
    beside: Beside,
    name: String,
    file: Option<Box<dyn PageFile>>,
    len: u64,
    index: Vec<u8>,
}

impl Place {
    fn encode(self) -> [u8; PLACE_BYTES] {
        let mut out = [0; PLACE_BYTES];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..12].copy_from_slice(&self.len.to_le_bytes());
        out[12..].copy_from_slice(&self.crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        Some(Self {
            offset: u64::from(number(0)?) | u64::from(number(4)?) << 32,
            len: number(8)?,
            crc: number(12)?,
        })
    }
}

/// How a file is opened where nobody says otherwise.
pub(crate) fn open_file() -> OpenFile {
    Arc::new(|path, is_new| {
        let file = match is_new {
            true => files::create_anew(path)?,
            false => File::open(path)?,
        };
        Ok(Box::new(file))
    })
}

impl Beside {
    pub(crate) fn new(data: &Path, seals: Option<Arc<Seals>>, open: OpenFile) -> Self {
        Self {
            dir: data.join(DIRECTORY),
            seals,
            open,
        }
    }

    /// The names of the files; those that were not finished are removed.
    pub fn names(&self) -> Vec<String> {
        let (new, done): (Vec<String>, Vec<String>) = self.all().into_iter().partition(|name| name.ends_with(NEW));
        new.iter().for_each(|name| self.remove(name));
        done
    }

    /// The names of all files.
    pub(crate) fn all(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// A file that takes the place of another of this name once it is finished.
    pub fn create(&self, name: &str) -> io::Result<NewFile> {
        files::create_directories(&self.dir)?;
        let file = (self.open)(&self.dir.join(format!("{name}{NEW}")), true)?;
        Ok(NewFile {
            beside: self.clone(),
            name: name.to_owned(),
            file: Some(file),
            len: 0,
            index: Vec::new(),
        })
    }

    /// Of a file the block that was written last, and how long it is.
    ///
    /// Errors: [`ErrorKind::InvalidData`] when it is damaged.
    pub fn last(&self, name: &str) -> io::Result<(Vec<u8>, u64)> {
        let file = (self.open)(&self.dir.join(name), false)?;
        let index = self.index(&*file, name)?;
        let last = index.last().ok_or_else(damaged)?;
        Ok((self.block(&*file, name, *last)?, file.len()?))
    }

    /// Reads all of a file.
    ///
    /// Errors: as [`Beside::last`].
    pub(crate) fn verify(&self, name: &str) -> io::Result<()> {
        let file = (self.open)(&self.dir.join(name), false)?;
        let mut index = self.index(&*file, name)?.into_iter();
        index.try_for_each(|place| self.block(&*file, name, place).map(drop))
    }

    /// The places of the blocks of a file.
    fn index(&self, file: &dyn PageFile, name: &str) -> io::Result<Vec<Place>> {
        let mut end = [0; END_BYTES];
        let at = file.len()?.checked_sub(END_BYTES as u64).ok_or_else(damaged)?;
        file.read_at(&mut end, at)?;
        let crc = crc32c::crc32c(&end[..24]).to_le_bytes();
        let place = Place::decode(&end).filter(|_| end[24..] == crc && &end[16..24] == MAGIC);
        let index = self.block(file, name, place.ok_or_else(damaged)?)?;
        let places = index.chunks(PLACE_BYTES).map(Place::decode);
        places.collect::<Option<_>>().ok_or_else(damaged)
    }

    /// A block of a file.
    ///
    /// Errors: [`ErrorKind::InvalidData`] when it is not what was written there.
    pub fn read(&self, name: &str, place: Place) -> io::Result<Vec<u8>> {
        let file = (self.open)(&self.dir.join(name), false)?;
        self.block(&*file, name, place)
    }

    fn block(&self, file: &dyn PageFile, name: &str, place: Place) -> io::Result<Vec<u8>> {
        let len = place.len as usize;
        let sealed = self.seals.as_ref().map_or(0, |_| TAG_BYTES + SEAL_BYTES);
        // Whoever damaged the place could ask for any amount.
        let end = place.offset.checked_add((len + sealed) as u64).ok_or_else(damaged)?;
        if end > file.len()? {
            return Err(damaged());
        }
        let mut bytes = vec![0; len + sealed];
        file.read_at(&mut bytes, place.offset)?;
        if let Some(seals) = &self.seals {
            let (contents, rest) = bytes.split_at_mut(len);
            let (mut tag, mut seal) = ([0; TAG_BYTES], [0; SEAL_BYTES]);
            tag.copy_from_slice(&rest[..TAG_BYTES]);
            seal.copy_from_slice(&rest[TAG_BYTES..]);
            let (seal, context) = (Seal::decode(&seal), context(name, place.offset));
            seals
                .open(&seal, 0, &context, contents, tag)
                .map_err(|unsealed| io::Error::new(ErrorKind::InvalidData, unsealed.0))?;
            bytes.truncate(len);
        }
        match crc32c::crc32c(&bytes) == place.crc {
            true => Ok(bytes),
            false => Err(damaged()),
        }
    }

    /// Removes a file, if it can be.
    pub fn remove(&self, name: &str) {
        if let Err(error) = fs::remove_file(self.dir.join(name))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(name, %error, "a derived file cannot be removed");
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file is damaged")
}

fn context(name: &str, offset: u64) -> Vec<u8> {
    [b"beside\0", name.as_bytes(), &offset.to_le_bytes()].concat()
}

impl NewFile {
    /// Writes a block.
    pub fn append(&mut self, mut bytes: Vec<u8>) -> io::Result<Place> {
        let place = Place {
            offset: self.len,
            len: u32::try_from(bytes.len()).map_err(|_| ErrorKind::FileTooLarge)?,
            crc: crc32c::crc32c(&bytes),
        };
        if let Some(seals) = &self.beside.seals {
            let (tag, seal) = seals.seal(&context(&self.name, self.len), &mut bytes);
            bytes.extend(tag);
            bytes.extend(seal.encode());
        }
        self.write(&bytes)?;
        self.index.extend(place.encode());
        Ok(place)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(ErrorKind::BrokenPipe)?;
        file.write_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Gives the file its name; `last` is the block that names the others. How long it is.
    pub fn finish(mut self, last: Vec<u8>) -> io::Result<u64> {
        self.append(last)?;
        let index = std::mem::take(&mut self.index);
        let mut end = self.append(index)?.encode().to_vec();
        end.extend(MAGIC);
        end.extend(crc32c::crc32c(&end).to_le_bytes());
        self.write(&end)?;
        let to = self.beside.dir.join(&self.name);
        fs::rename(self.beside.dir.join(format!("{}{NEW}", self.name)), to)?;
        self.file = None;
        Ok(self.len)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.beside.remove(&format!("{}{NEW}", self.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::KeyFile;

    fn kinds(dir: &Path) -> [Beside; 2] {
        let keys = KeyFile::new(1).unwrap().into_data_keys();
        let seals = Arc::new(Seals::new(keys).unwrap());
        [
            Beside::new(&dir.join("plain"), None, open_file()),
            Beside::new(&dir.join("sealed"), Some(seals), open_file()),
        ]
    }

    fn make(beside: &Beside, name: &str) -> Place {
        let mut file = beside.create(name).unwrap();
        file.append(b"the first block".to_vec()).unwrap();
        let place = file.append(b"another".to_vec()).unwrap();
        file.finish(b"what names them".to_vec()).unwrap();
        place
    }

    #[test]
    fn blocks_come_back_and_damage_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for beside in kinds(dir.path()) {
            let place = make(&beside, "a");
            let (last, len) = beside.last("a").unwrap();
            assert_eq!(last, b"what names them");
            assert_eq!(beside.read("a", place).unwrap(), b"another");
            let path = beside.dir.join("a");
            let whole = fs::read(&path).unwrap();
            beside.verify("a").unwrap();
            assert_eq!(len, whole.len() as u64);
            let is_plain = whole.windows(7).any(|bytes| bytes == b"another");
            assert_eq!(is_plain, beside.seals.is_none());
            let sound = || {
                let (last, _) = beside.last("a").ok()?;
                let block = beside.read("a", place).ok()?;
                (last == b"what names them").then_some(block)
            };
            for at in place.offset as usize..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                fs::write(&path, &bytes).unwrap();
                // A seal has four bytes that mean nothing.
                let found = sound().filter(|_| beside.seals.is_none());
                assert_eq!(found, None, "{at}");
                assert!(sound().is_none_or(|block| block == b"another"), "{at}");
            }
            for len in 0..whole.len() {
                fs::write(&path, &whole[..len]).unwrap();
                assert_eq!(sound(), None, "{len} bytes of it");
            }
            // A block of another file, in its place.
            make(&beside, "b");
            fs::rename(beside.dir.join("b"), &path).unwrap();
            assert_eq!(
                sound().is_some(),
                beside.seals.is_none(),
                "the name is part of what was sealed"
            );
        }
    }

    #[test]
    fn what_was_not_finished_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        for beside in kinds(dir.path()) {
            make(&beside, "a");
            let mut file = beside.create("a").unwrap();
            file.append(b"new".to_vec()).unwrap();
            // As a crash leaves it.
            std::mem::forget(file);
            assert_eq!(fs::read_dir(&beside.dir).unwrap().count(), 2);
            assert_eq!(beside.last("a").unwrap().0, b"what names them");
            assert_eq!(beside.names(), ["a"]);
            assert_eq!(fs::read_dir(&beside.dir).unwrap().count(), 1);
            drop(beside.create("b").unwrap());
            assert_eq!(beside.names(), ["a"]);
            beside.remove("a");
            beside.remove("a");
            assert!(beside.names().is_empty());
        }
    }
}
