//! The manifest of a backup: lines of words, for people to read as well.
//!
//! ```text
//! nestor backup 1
//! parent 5e0c… | none            the backup that this one is an increment of
//! continues yes | no             its journal begins where that of the parent ends
//! start 120 1764000000 3 9a1b2c3d 77   last commit in the base: number, optime, checksum; the segment of the journal behind it
//! end 150 1764000060 1 00c0ffee  last commit in the backup
//! base 1048576 f00d…             bytes and hash of the base (the hash of its blocks' hashes), whatever of it is here
//! file base.blocks 1040 beef…    bytes and hash of each file that is here
//! id 77aa…                       hash of all lines before
//! ```
//!
//! Hashes are those of [`super::blocks`], in hexadecimal digits.

use super::blocks::{self, Hash};
use super::{BLOCKS, CHANGED, refused};
use crate::journal::segment::{self, Segment};
use crate::{Result, StorageError, files};
use nestor_model::{ErrorCode, Timestamp};
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

pub(super) const MANIFEST: &str = "nestor.backup";
const FIRST_LINE: &str = "nestor backup 1";

/// A file, or what it would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Held {
    /// Its name, below the backup's directory.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) hash: Hash,
}

/// The last commit of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Last {
    pub(super) seq: u64,
    pub(super) optime: Timestamp,
    /// Of its frame; 0 if it is not known.
    pub(super) checksum: u32,
}

/// The manifest of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Manifest {
    /// Hash of what it says; empty before it was written.
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) continues: bool,
    pub(super) base: Held,
    pub(super) blocks: Held,
    /// The blocks that differ from those of the parent.
    pub(super) changed: Option<Held>,
    pub(super) start: Last,
    /// The segment that the commit behind the base is in.
    pub(super) start_segment: u64,
    pub(super) end: Last,
    /// All other files.
    pub(super) files: Vec<Held>,
}

impl Manifest {
    fn lines(&self) -> String {
        let mut out = format!("{FIRST_LINE}\n");
        let yes = if self.continues { "yes" } else { "no" };
        let _ = writeln!(out, "parent {}", self.parent.as_deref().unwrap_or("none"));
        let _ = writeln!(out, "continues {yes}");
        let last = |last: &Last| {
            let Timestamp { secs, inc } = last.optime;
            format!("{} {secs} {inc} {:08x}", last.seq, last.checksum)
        };
        let _ = writeln!(out, "start {} {}", last(&self.start), self.start_segment);
        let _ = writeln!(out, "end {}", last(&self.end));
        let _ = writeln!(out, "base {} {}", self.base.bytes, hex(&self.base.hash));
        for file in [&self.blocks].into_iter().chain(&self.changed).chain(&self.files) {
            let _ = writeln!(out, "file {} {} {}", file.name, file.bytes, hex(&file.hash));
        }
        out
    }

    /// Writes it into the directory and returns its id.
    pub(super) fn write(&self, dir: &Path) -> Result<String> {
        let path = dir.join(MANIFEST);
        let mut text = self.lines();
        let id = hex(&blocks::hash(text.as_bytes()));
        let _ = writeln!(text, "id {id}");
        files::replace(&path, text.as_bytes()).map_err(|error| StorageError::io("write", &path, &error))?;
        Ok(id)
    }

    /// Reads that of the backup in `dir`.
    ///
    /// Errors: [`StorageError::Backup`] if there is none; [`StorageError::Corrupt`], [`StorageError::NewerFormat`].
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = format!(
                    "{} is no backup, or one that was not finished: there is no {MANIFEST}",
                    dir.display()
                );
                return Err(refused(ErrorCode::InvalidPath, message));
            }
            Err(error) => return Err(StorageError::io("read", &path, &error)),
        };
        let corrupt = |reason: &str| StorageError::Corrupt {
            file: path.clone(),
            offset: 0,
            reason: reason.into(),
        };
        let version = text.lines().next().and_then(|line| line.strip_prefix("nestor backup "));
        match version.and_then(|version| version.parse::<u32>().ok()) {
            Some(1) => {}
            Some(found) => {
                return Err(StorageError::NewerFormat {
                    file: path,
                    found,
                    supported: 1,
                });
            }
            None => return Err(corrupt("not the manifest of a backup")),
        }
        let Some((lines, id)) = text.rsplit_once("id ") else {
            return Err(corrupt("it is cut off"));
        };
        let id = id.strip_suffix('\n').unwrap_or_default();
        if hex(&blocks::hash(lines.as_bytes())) != id {
            return Err(corrupt("it is not what was written"));
        }
        let manifest = parse(lines, id).ok_or_else(|| corrupt("a line of it has no meaning"))?;
        match manifest.changed.is_some() == manifest.parent.is_some() {
            true => Ok(manifest),
            false => Err(corrupt("it is neither a full nor an incremental backup")),
        }
    }

    /// Whether it does not have all of that segment of the same journal.
    pub(super) fn lacks(&self, segment: &Segment) -> bool {
        let bytes = fs::metadata(&segment.path).map(|metadata| metadata.len()).ok();
        self.segments()
            .all(|(seq, held)| seq != segment.first_seq || Some(held.bytes) != bytes)
    }

    /// The segments of the journal that it has: first sequence number and file.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.files.iter().filter_map(|file| {
            let name = file.name.strip_prefix("journal/")?;
            Some((segment::parse_name(name)?, file))
        })
    }
}

fn parse(lines: &str, id: &str) -> Option<Manifest> {
    let mut lines = lines.lines().skip(1).map(|line| line.split(' ').collect::<Vec<_>>());
    let mut line = |word: &str| lines.next().filter(|words| words.first() == Some(&word));
    let parent = line("parent")?;
    let continues = *line("continues")?.get(1)? == "yes";
    let (start, end, base) = (line("start")?, line("end")?, line("base")?);
    let mut files = Vec::new();
    let (mut blocks, mut changed) = (None, None);
    for words in lines {
        let [word, name, bytes, hash] = words[..] else {
            return None;
        };
        let file = Held {
            name: name.to_owned(),
            bytes: bytes.parse().ok()?,
            hash: unhex(hash)?,
        };
        let is_plain = name.strip_prefix("journal/").unwrap_or(name);
        if word != "file" || is_plain.is_empty() || is_plain.contains('/') || is_plain.starts_with('.') {
            return None;
        }
        match name {
            BLOCKS => blocks = Some(file),
            CHANGED => changed = Some(file),
            _ => files.push(file),
        }
    }
    Some(Manifest {
        id: id.to_owned(),
        parent: Some(*parent.get(1)?)
            .filter(|parent| *parent != "none")
            .map(str::to_owned),
        continues,
        base: Held {
            name: super::BASE.into(),
            bytes: base.get(1)?.parse().ok()?,
            hash: unhex(base.get(2)?)?,
        },
        blocks: blocks?,
        changed,
        start_segment: start.get(5)?.parse().ok()?,
        start: last(&start)?,
        end: last(&end)?,
        files,
    })
}

fn last(words: &[&str]) -> Option<Last> {
    Some(Last {
        seq: words.get(1)?.parse().ok()?,
        optime: Timestamp {
            secs: words.get(2)?.parse().ok()?,
            inc: words.get(3)?.parse().ok()?,
        },
        checksum: u32::from_str_radix(words.get(4)?, 16).ok()?,
    })
}

fn hex(hash: &Hash) -> String {
    hash.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn unhex(digits: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if digits.len() != 2 * hash.len() || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Manifest {
        let file = |name: &str| Held {
            name: name.into(),
            bytes: 40,
            hash: [7; 16],
        };
        let last = |seq| Last {
            seq,
            optime: Timestamp { secs: 9, inc: 1 },
            checksum: 0xfeed,
        };
        Manifest {
            id: String::new(),
            parent: Some("abc".into()),
            continues: true,
            base: file("base.nestor"),
            blocks: file("base.blocks"),
            changed: Some(file("base.changed")),
            start: last(3),
            start_segment: 1,
            end: last(5),
            files: vec![file("journal/0000000000000001.journal"), file("nestor.format")],
        }
    }

    #[test]
    fn it_is_read_as_it_was_written_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Manifest::read(dir.path()).is_err_and(|e| e.to_string().contains("is no backup")));
        let id = example().write(dir.path()).unwrap();
        let read = Manifest::read(dir.path()).unwrap();
        assert_eq!(read, Manifest { id, ..example() });
        assert_eq!(read.segments().map(|(seq, _)| seq).collect::<Vec<_>>(), [1]);
        let path = dir.path().join(MANIFEST);
        let sound = fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 2;
            fs::write(&path, &bytes).unwrap();
            assert!(Manifest::read(dir.path()).is_err(), "byte {at}");
            fs::write(&path, &sound[..at]).unwrap();
            assert!(Manifest::read(dir.path()).is_err(), "cut off at {at}");
        }
    }

    /// Names come from a file that somebody may have written: they do not lead out of the directory.
    #[test]
    fn names_stay_within_the_directory() {
        for name in ["../x", "journal/../x", "/etc/x", "journal/a/b", "", "journal/", ".x"] {
            let mut manifest = example();
            manifest.files[1].name = name.into();
            assert_eq!(parse(&manifest.lines(), "id"), None, "{name}");
        }
    }
}
