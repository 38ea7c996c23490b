//! Hot backups: a consistent copy of the directory while commits go on.
//!
//! ```text
//! hold      no checkpoint for a moment: a snapshot of the base is taken and the first bytes of its file are read, which name its root
//! base      the file is copied while checkpoints go on; the snapshot keeps the pages that matter from being written again
//! end       under the sequencer's lock: the last commit is noted, and the next one begins a new segment of the journal
//! journal   the segments from the base's checkpoint, or the end of the backup before, up to there
//! ```
//!
//! A backup is what a crash right after that last commit would have left. Files are copied as bytes, without looking into
//! them: what is encrypted stays encrypted, and the same code serves whatever a page holds.
//!
//! An *incremental* backup has of the base only the [`blocks`] that differ from those of the backup before it, its parent, and of
//! the journal what came since. It is no directory that opens; [`restore`](fn@restore) puts it and its parents together.
//!
//! A backup is a directory:
//!
//! ```text
//! nestor.backup     what it is and what belongs to it: manifest
//! base.blocks       a hash for each block of the base, see blocks
//! base.nestor       the base; not in an incremental one
//! base.changed      in an incremental one: the blocks that differ from the parent's
//! journal/          whole segments
//! nestor.durable    how far the journal reaches
//! nestor.format     and other small files of the data directory, as they are
//! ```
//!
//! The manifest is written last, so a directory without one is no backup.

mod blocks;
mod manifest;
mod restore;

pub use blocks::{BLOCK_BYTES, Hash, at as hash_of_block, read as block_hashes};
pub use restore::{RestoreOptions, Restored, restore};

use super::Engine;
use super::history::start;
use crate::journal::mark::Mark;
use crate::journal::segment::{self, Segment};
use crate::journal::{Position, frame};
use crate::{Lsn, Result, StorageError, files};
use blocks::Hasher;
use manifest::{Held, Last, MANIFEST, Manifest};
use nestor_model::{ErrorCode, Timestamp};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder below the data directory of a member of a set in which it makes the backups that it uploads.
pub const UPLOAD: &str = "upload";
const BASE: &str = "base.nestor";
const BLOCKS: &str = "base.blocks";
const CHANGED: &str = "base.changed";
const JOURNAL: &str = "journal";
const MARK: &str = "nestor.durable";
/// Bytes at the beginning of the base's file that name the root: both meta pages, of whatever size.
const HEAD_BYTES: u64 = 256 << 10;
/// Bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;
/// Files of a data directory that a backup has in its own form, or not at all.
const NOT_COPIED: [&str; 4] = ["nestor.lock", MARK, MANIFEST, "nestor.sock"];
/// No file that is copied beside base and journal is longer.
const SMALL_BYTES_MAX: u64 = 16 << 20;

/// The contents of a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Backup {
    /// Its name, by which incremental backups name it as their parent.
    pub id: String,
    /// The parent of an incremental one.
    pub parent: Option<String>,
    /// Optime of the last commit in its base: the earliest state that it restores.
    pub from: Timestamp,
    /// Optime of the last commit in it.
    pub until: Timestamp,
    /// Number of the last commit in its base.
    pub from_lsn: Lsn,
    /// Whether its parents and it together restore every state from the parents' first one on.
    pub continues: bool,
    /// Bytes of the base that the state has.
    pub base_bytes: u64,
    /// Bytes of the base that were copied.
    pub copied_bytes: u64,
    /// Bytes of the journal that were copied.
    pub journal_bytes: u64,
}

/// Takes the number, hash and bytes of a block of the base. All have [`BLOCK_BYTES`] but the last.
pub type PutBlock<'a, E> = dyn FnMut(u64, &Hash, &[u8]) -> Result<(), E> + 'a;

/// Keeps what a backup needs of the journal until it is done; one at a time.
struct Pin<'a>(&'a Engine);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.inner.checkpointer.keep_for_backup(None);
        self.0.inner.backup.store(false, std::sync::atomic::Ordering::Release);
    }
}

pub(super) fn refused(code: ErrorCode, message: impl Into<String>) -> StorageError {
    StorageError::Backup {
        code,
        message: message.into(),
    }
}

impl Engine {
    /// Makes a backup in the directory `to`, which is made, or is there and empty; with `parent`, the directory of another backup,
    /// an incremental one. All commits before the call are in it. Commits and checkpoints go on meanwhile.
    ///
    /// `check` is called now and then. Errors: its own; [`StorageError::Backup`] for a store that lives in memory, a second backup
    /// at the same time, a directory that is not empty or a parent that is none; those of reading and writing. What
    /// was copied before an error stays, without a manifest.
    pub fn backup<E: From<StorageError>>(
        &self,
        to: &Path,
        parent: Option<&Path>,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Backup, E> {
        self.make_backup::<E>(to, parent, None, check)
    }

    /// Makes a full backup of which the blocks of the base are handed to `put`, in order, and not written into `to`: whoever has them puts
    /// them together to a file `base.nestor` there before it is restored.
    ///
    /// Errors: as [`Engine::backup`], and those of `put`.
    pub fn backup_blocks<E: From<StorageError>>(
        &self,
        to: &Path,
        put: &mut PutBlock<'_, E>,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<Backup, E> {
        self.make_backup(to, None, Some(put), check)
    }

    fn make_backup<E: From<StorageError>>(
        &self,
        to: &Path,
        parent: Option<&Path>,
        put: Option<&mut PutBlock<'_, E>>,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Backup, E> {
        let inner = &*self.inner;
        let (Some(store), Some(directory)) = (&inner.store, self.directory()) else {
            return Err(refused(
                ErrorCode::IllegalOperation,
                "a store that lives in memory has no backups",
            )
            .into());
        };
        if inner.backup.swap(true, std::sync::atomic::Ordering::AcqRel) {
            return Err(refused(
                ErrorCode::ConflictingOperationInProgress,
                "another backup is being made",
            )
            .into());
        }
        let _pin = Pin(self);
        let parent = match parent {
            Some(path) => Some((path, Manifest::read(path)?)),
            None => None,
        };
        make_empty(to, directory, self.is_member())?;
        // Everything up to here that was promised to be durable is in it, and so is all else that was accepted.
        let hold = self.hold_base();
        inner.check_open()?;
        let snapshot = store.base.snapshot();
        let from = start(&snapshot)?;
        let segments = store.journal.segments();
        let parent_end = parent
            .as_ref()
            .and_then(|(_, parent)| continuation(&segments, &parent.end));
        let journal_from = parent_end.map_or(from.position.segment, |end| end.min(from.position.segment));
        inner.checkpointer.keep_for_backup(Some(Position {
            segment: journal_from,
            offset: 0,
        }));
        let base = Base::open(&directory.join(BASE))?;
        drop(hold);
        let before = match &parent {
            Some((path, parent)) => Some(blocks::read(&path.join(BLOCKS), parent.base.bytes)?),
            None => None,
        };
        let copied = match put {
            Some(put) => {
                let (base, blocks) = base.copy(to, put, &mut check)?;
                CopiedBase {
                    bytes: base.bytes,
                    base,
                    blocks,
                    changed: None,
                }
            }
            None => base.copy_into(to, before.as_deref(), &mut check)?,
        };
        drop(snapshot);

        let (end, segments) = {
            let sequencer = inner.lock_sequencer();
            store.journal.end_segment();
            let current = sequencer.current();
            let end = Last {
                seq: current.seq,
                optime: current.optime,
                checksum: store.journal.last().map_or(0, |last| last.checksum),
            };
            (end, store.journal.segments())
        };
        store.journal.syncer.wait(end.seq)?;
        let first = match parent_end {
            // The parents have the journal before this.
            Some(end) => end,
            None => journal_from,
        };
        create_directory(&to.join(JOURNAL))?;
        let mut held = Vec::new();
        let mut journal_bytes = 0;
        for segment in segments.iter().filter(|segment| has_frames(segment)) {
            check()?;
            // Later ones were written after the end.
            let is_new = || match &parent {
                Some((_, parent)) if parent_end.is_some() => parent.lacks(segment),
                _ => true,
            };
            if segment.first_seq >= first && segment.first_seq <= end.seq && is_new() {
                let name = format!("{JOURNAL}/{}", segment::file_name(segment.first_seq));
                let copy = copy_file(&segment.path, &to.join(&name), &name, u64::MAX)?;
                journal_bytes += copy.bytes;
                held.push(copy);
            }
        }
        let mark = Mark {
            seq: end.seq,
            checksum: end.checksum,
            is_closed: false,
        };
        held.push(write_small(to, MARK, &mark.encode())?);
        for name in small_files(directory)? {
            held.push(copy_file(
                &directory.join(&name),
                &to.join(&name),
                &name,
                SMALL_BYTES_MAX,
            )?);
        }
        let manifest = Manifest {
            parent: parent.as_ref().map(|(_, parent)| parent.id.clone()),
            continues: parent_end.is_some(),
            base: copied.base,
            blocks: copied.blocks,
            changed: copied.changed,
            start: Last {
                seq: from.seq,
                optime: from.optime,
                checksum: from.last.map_or(0, |last| last.checksum),
            },
            start_segment: from.position.segment,
            end,
            files: held,
            id: String::new(),
        };
        sync_directory(&to.join(JOURNAL))?;
        let id = manifest.write(to)?;
        sync_directory(to)?;
        if let Some(above) = to.parent().filter(|above| *above != Path::new("")) {
            sync_directory(above)?;
        }
        Ok(Backup {
            id,
            continues: manifest.continues || manifest.parent.is_none(),
            parent: manifest.parent,
            from: from.optime,
            until: end.optime,
            from_lsn: Lsn(from.seq),
            base_bytes: manifest.base.bytes,
            copied_bytes: copied.bytes,
            journal_bytes,
        })
    }
}

/// The segment of the journal from which a backup has to have it so that it continues one which ended with `end`; `None` if the
/// journal begins later, or is that of another history.
fn continuation(segments: &[Arc<Segment>], end: &Last) -> Option<u64> {
    let next = end.seq + 1;
    let at = segments.iter().rposition(|segment| segment.first_seq <= next)?;
    let segment = &segments[at];
    if end.seq == 0 {
        return (segment.first_seq == 1).then_some(1);
    }
    // The frame of that commit, or the one before it.
    let mut offset = segment::HEADER_BYTES as u64;
    while let Ok(Some((header, length))) = segment.header(offset) {
        if frame::seq(&header) == end.seq {
            return (frame::checksum(&header) == end.checksum).then_some(segment.first_seq);
        }
        if frame::seq(&header) == next {
            let fits = frame::previous(&header).is_none_or(|previous| previous == end.checksum);
            return fits.then_some(segment.first_seq);
        }
        offset += length;
    }
    None
}

fn has_frames(segment: &Segment) -> bool {
    segment.len() > segment::HEADER_BYTES as u64
}

/// Makes the directory of a backup, or finds that it is empty and not within the data, unless it is the one of a member of a set.
fn make_empty(to: &Path, data: &Path, is_member: bool) -> Result<()> {
    let invalid = |reason: &str| {
        let message = format!("a backup cannot be made in {}: {reason}", to.display());
        refused(ErrorCode::InvalidOptions, message)
    };
    let is_new = match fs::read_dir(to) {
        Ok(mut entries) => match entries.next() {
            None => false,
            Some(_) => return Err(invalid("the directory is not empty")),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(StorageError::io("open", to, &error)),
    };
    let absolute = |path: &Path| {
        let known = path.ancestors().find_map(|above| above.canonicalize().ok());
        known.unwrap_or_else(|| path.to_owned())
    };
    let is_upload = is_member && to.starts_with(data.join(UPLOAD));
    if !is_upload && absolute(to).starts_with(absolute(data)) {
        return Err(invalid("it is within the data directory"));
    }
    if is_new {
        create_directory(to)?;
    }
    files::make_private(to).map_err(|error| StorageError::io("chmod", to, &error))
}

/// Names of the files beside base and journal that belong to the data.
fn small_files(directory: &Path) -> Result<Vec<String>> {
    let unreadable = |error: std::io::Error| StorageError::io("open", directory, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_own = name.starts_with("nestor.") && !name.ends_with(".new") && !name.contains(".log");
        if is_own && !NOT_COPIED.contains(&&*name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The base's file as it was when it was opened, for as long as the snapshot is held.
struct Base {
    path: PathBuf,
    file: File,
    head: Vec<u8>,
    bytes: u64,
}

struct CopiedBase {
    base: Held,
    blocks: Held,
    changed: Option<Held>,
    bytes: u64,
}

impl Base {
    fn open(path: &Path) -> Result<Self> {
        let failed = |operation| move |error: std::io::Error| StorageError::io(operation, path, &error);
        let file = File::open(path).map_err(failed("open"))?;
        let bytes = file.metadata().map_err(failed("open"))?.len();
        let mut head = vec![0; bytes.min(HEAD_BYTES) as usize];
        (&file).read_exact(&mut head).map_err(failed("read"))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            head,
            bytes,
        })
    }

    /// Copies it into `to`: all of it, or the blocks whose hashes differ from those of `before`.
    fn copy_into<E: From<StorageError>>(
        &self,
        to: &Path,
        before: Option<&[u8]>,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<CopiedBase, E> {
        let mut out = Output::create(&to.join(if before.is_some() { CHANGED } else { BASE }))?;
        let mut put = |number: u64, hash: &Hash, block: &[u8]| {
            match before {
                Some(before) if blocks::at(before, number) == Some(&hash[..]) => {}
                Some(_) => {
                    out.write(&number.to_le_bytes())?;
                    out.write(block)?;
                }
                None => out.write(block)?,
            }
            Ok(())
        };
        let (base, blocks) = self.copy(to, &mut put, check)?;
        let copied = out.finish(CHANGED)?;
        Ok(CopiedBase {
            base,
            blocks,
            bytes: copied.bytes,
            changed: before.is_some().then_some(copied),
        })
    }

    /// Hands its blocks on and writes their hashes into `to`. Returns what the manifest says of the base and of the file of hashes.
    fn copy<E: From<StorageError>>(
        &self,
        to: &Path,
        put: &mut PutBlock<'_, E>,
        check: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<(Held, Held), E> {
        let mut hashes = Output::create(&to.join(BLOCKS))?;
        hashes.write(&blocks::header())?;
        let mut buffer = vec![0; COPY_BYTES];
        let (mut whole, mut done) = (Hasher::new(), 0);
        while done < self.bytes {
            check()?;
            let wanted = (self.bytes - done).min(COPY_BYTES as u64) as usize;
            let bytes = &mut buffer[..wanted];
            if (done as usize) < self.head.len() {
                // The snapshot's root, whatever the file names by now.
                let from_head = &self.head[done as usize..];
                let wanted = wanted.min(from_head.len());
                bytes[..wanted].copy_from_slice(&from_head[..wanted]);
                self.read(&mut bytes[wanted..], done + wanted as u64)?;
            } else {
                self.read(bytes, done)?;
            }
            for (i, block) in bytes.chunks(blocks::BLOCK_BYTES).enumerate() {
                let number = done / blocks::BLOCK_BYTES as u64 + i as u64;
                let hash = blocks::hash(block);
                hashes.write(&hash)?;
                whole.update(&hash);
                put(number, &hash, block)?;
            }
            done += wanted as u64;
        }
        let base = Held {
            name: BASE.into(),
            bytes: self.bytes,
            hash: whole.finish(),
        };
        Ok((base, hashes.finish(BLOCKS)?))
    }

    /// Reads at `offset`. What was cut off the file meanwhile no snapshot needed.
    fn read(&self, mut bytes: &mut [u8], mut offset: u64) -> Result<()> {
        use std::os::unix::fs::FileExt;
        while !bytes.is_empty() {
            match self.file.read_at(bytes, offset) {
                Ok(0) => {
                    bytes.fill(0);
                    return Ok(());
                }
                Ok(read) => {
                    bytes = &mut bytes[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(StorageError::io("read", &self.path, &error)),
            }
        }
        Ok(())
    }
}

/// A new file, hashed while it is written.
struct Output {
    path: PathBuf,
    file: std::io::BufWriter<File>,
    hasher: Hasher,
    bytes: u64,
}

impl Output {
    fn create(path: &Path) -> Result<Self> {
        let file = files::create_new(path).map_err(|error| StorageError::io("create", path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            file: std::io::BufWriter::with_capacity(COPY_BYTES, file),
            hasher: Hasher::new(),
            bytes: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(|error| StorageError::io("write", &self.path, &error))
    }

    /// Syncs it. `name` is what the manifest calls it.
    fn finish(mut self, name: &str) -> Result<Held> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(|error| StorageError::io("sync", &self.path, &error))?;
        Ok(Held {
            name: name.to_owned(),
            bytes: self.bytes,
            hash: self.hasher.finish(),
        })
    }
}

/// Copies a file of at most `bytes_max`, which the manifest calls `name`, from one directory to another.
fn copy_file(from: &Path, to: &Path, name: &str, bytes_max: u64) -> Result<Held> {
    let mut file = File::open(from).map_err(|error| StorageError::io("open", from, &error))?;
    let mut out = Output::create(to)?;
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return out.finish(name),
            Ok(read) => out.write(&buffer[..read])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(StorageError::io("read", from, &error)),
        }
        if out.bytes > bytes_max {
            let message = format!("{} is longer than such a file may be", from.display());
            return Err(refused(ErrorCode::InvalidOptions, message));
        }
    }
}

fn write_small(to: &Path, name: &str, bytes: &[u8]) -> Result<Held> {
    let path = to.join(name);
    let mut out = Output::create(&path)?;
    out.write(bytes)?;
    out.finish(name)
}

fn create_directory(path: &Path) -> Result<()> {
    files::create_directories(path).map_err(|error| StorageError::io("create", path, &error))
}

fn sync_directory(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StorageError::io("sync", path, &error))
}

#[cfg(test)]
mod tests;
