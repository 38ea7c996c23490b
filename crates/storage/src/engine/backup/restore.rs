//! A data directory from a backup and its parents, as it was at the end of the backup or at a time before it.
//!
//! The base is that of the last backup whose base is not younger than the time; journals of it and of the backups behind it say what
//! came until then. Start-up replays them, as after a crash, and ends there.

use super::blocks::{self, BLOCK_BYTES, Hasher};
use super::manifest::{Held, Manifest};
use super::{BASE, BLOCKS, CHANGED, COPY_BYTES, JOURNAL, MARK, copy_file, create_directory, refused, sync_directory};
use crate::encryption;
use crate::engine::directory::unlock;
use crate::journal::{recover, segment};
use crate::{Engine, EngineOptions, Result, StorageError, files};
use nestor_model::{ErrorCode, Timestamp};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The options of a restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Directories of a full backup and of the incremental ones that follow it, in any order.
    pub from: Vec<PathBuf>,
    /// A data directory, that of the server which was backed up, whose journal goes on where the last backup ends.
    pub journal: Option<PathBuf>,
    /// The new data directory: it is made, or is there and empty.
    pub to: PathBuf,
    /// The last commit that is to be in it: that of this time, or the last one before.
    pub until: Option<Timestamp>,
    /// The base of a full backup becomes that of the directory and is gone from the backup, instead of being copied.
    pub moves: bool,
}

/// The result of a restore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Optime of the last commit.
    pub until: Timestamp,
}

/// A backup: where it is and what it has.
struct Source {
    dir: PathBuf,
    manifest: Manifest,
}

/// Makes a data directory from backups, and opens it once with `options`, so that it is known to be sound as far as start-up can tell.
///
/// Errors: [`StorageError::Backup`] for backups that do not belong together, times that they do not have, and a directory that is not empty;
/// [`StorageError::Corrupt`] for a file that is not what was backed up; [`StorageError::Encryption`] for a master key that is missing or
/// another one, before anything is made.
pub fn restore(wanted: &RestoreOptions, options: EngineOptions) -> Result<Restored> {
    let chain = chain(&wanted.from)?;
    let (base, last) = choose(&chain, wanted)?;
    let mut segments = segments(&chain, base, last);
    if let Some(data) = &wanted.journal {
        let newest = &chain[chain.len() - 1].manifest;
        follow(&data.join(JOURNAL), newest.end.seq, &mut segments)?;
    }
    // Keys may have been added since the backup.
    let newest_keys = wanted
        .journal
        .as_deref()
        .filter(|dir| dir.join(encryption::FILE).exists());
    unlock(newest_keys.unwrap_or(&chain[last].dir), options.master_key.as_ref())?;
    make_empty(&wanted.to)?;
    let journal = wanted.to.join(JOURNAL);
    create_directory(&journal)?;
    restore_base(&chain[..=base], &wanted.to, wanted.moves)?;
    for (seq, (path, held)) in &segments {
        let name = segment::file_name(*seq);
        let copy = copy_file(path, &journal.join(&name), &name, u64::MAX)?;
        check_copy(path, &copy, held.as_ref())?;
    }
    let source = &chain[last];
    let is_whole = wanted.until.is_none() && wanted.journal.is_none();
    for file in &source.manifest.files {
        let is_wanted = !file.name.starts_with("journal/") && (is_whole || file.name != MARK);
        if is_wanted {
            let path = source.dir.join(&file.name);
            let copy = copy_file(&path, &wanted.to.join(&file.name), &file.name, u64::MAX)?;
            check_copy(&path, &copy, Some(file))?;
        }
    }
    if let Some(dir) = newest_keys {
        let (from, to) = (dir.join(encryption::FILE), wanted.to.join(encryption::FILE));
        let keys = fs::read(&from).map_err(|error| StorageError::io("read", &from, &error))?;
        files::replace(&to, &keys).map_err(|error| StorageError::io("write", &to, &error))?;
    }
    sync_directory(&journal)?;
    sync_directory(&wanted.to)?;
    let engine = Engine::open(
        &wanted.to,
        EngineOptions {
            recover_until: wanted.until,
            ..options
        },
    )?;
    let until = engine.last_optime();
    engine.close()?;
    Ok(Restored { until })
}

/// The backups in order: a full one, then increments of what is before each.
fn chain(from: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for dir in from {
        let manifest = Manifest::read(dir)?;
        sources.push(Source {
            dir: dir.clone(),
            manifest,
        });
    }
    let invalid = |message: String| refused(ErrorCode::InvalidOptions, message);
    let is_full = |source: &Source| source.manifest.parent.is_none();
    let first = sources.iter().position(is_full);
    let Some(first) = first else {
        let missing = sources.first().and_then(|source| source.manifest.parent.as_deref());
        return Err(invalid(format!(
            "an incremental backup needs its parents: name the full one too, and all between (the parent has id {})",
            missing.unwrap_or("none")
        )));
    };
    let mut chain = vec![sources.swap_remove(first)];
    while !sources.is_empty() {
        let newest = &chain[chain.len() - 1].manifest.id;
        let next = sources
            .iter()
            .position(|source| source.manifest.parent.as_ref() == Some(newest));
        let Some(next) = next else {
            let names: Vec<_> = sources.iter().map(|source| source.dir.display().to_string()).collect();
            return Err(invalid(format!(
                "these backups do not follow the others: {}",
                names.join(", ")
            )));
        };
        chain.push(sources.swap_remove(next));
    }
    Ok(chain)
}

/// The backup whose base, and the last one whose journal, have the state that is wanted.
fn choose(chain: &[Source], wanted: &RestoreOptions) -> Result<(usize, usize)> {
    let newest = chain.len() - 1;
    let Some(until) = wanted.until else {
        return Ok((newest, newest));
    };
    let invalid = |message: String| refused(ErrorCode::InvalidOptions, message);
    let time = |time: Timestamp| format!("{}:{}", time.secs, time.inc);
    let manifest = |i: usize| &chain[i].manifest;
    let Some(base) = (0..chain.len()).rfind(|i| manifest(*i).start.optime <= until) else {
        let first = time(manifest(0).start.optime);
        return Err(invalid(format!("the backups begin with the state of {first}")));
    };
    let last = match (base..chain.len()).find(|i| manifest(*i).end.optime >= until) {
        Some(last) => last,
        None if wanted.journal.is_some() => newest,
        None => {
            let end = time(manifest(newest).end.optime);
            return Err(invalid(format!("the backups end with the state of {end}")));
        }
    };
    match (base + 1..=last).find(|i| !manifest(*i).continues) {
        None => Ok((base, last)),
        Some(gap) => Err(invalid(format!(
            "the oplog between {} and {} is in none of the backups: it was gone when the second was made",
            time(manifest(gap - 1).end.optime),
            time(manifest(gap).start.optime)
        ))),
    }
}

type Segments = BTreeMap<u64, (PathBuf, Option<Held>)>;

/// The journal from before the base of backup `base` up to the end of backup `last`.
fn segments(chain: &[Source], base: usize, last: usize) -> Segments {
    let mut first = base;
    while first > 0 && chain[first].manifest.continues {
        first -= 1;
    }
    let mut segments = Segments::new();
    for source in &chain[first..=last] {
        for (seq, held) in source.manifest.segments() {
            // A segment that a later backup has again has grown.
            segments.insert(seq, (source.dir.join(&held.name), Some(held.clone())));
        }
    }
    segments
}

/// Adds the segments of a journal that goes on after commit `end`.
fn follow(journal: &Path, end: u64, segments: &mut Segments) -> Result<()> {
    let found = recover::files(journal)?;
    let Some(from) = found.iter().rfind(|seq| **seq <= end + 1) else {
        let message = format!("{} begins after the backups' end", journal.display());
        return Err(refused(ErrorCode::InvalidOptions, message));
    };
    for seq in found.iter().filter(|seq| *seq >= from) {
        segments.insert(*seq, (journal.join(segment::file_name(*seq)), None));
    }
    Ok(())
}

fn make_empty(to: &Path) -> Result<()> {
    match fs::read_dir(to) {
        Ok(mut entries) => match entries.next() {
            None => {}
            Some(_) => {
                let message = format!("{} is not empty", to.display());
                return Err(refused(ErrorCode::InvalidOptions, message));
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => create_directory(to)?,
        Err(error) => return Err(StorageError::io("open", to, &error)),
    }
    files::make_private(to).map_err(|error| StorageError::io("chmod", to, &error))
}

fn check_copy(path: &Path, copy: &Held, held: Option<&Held>) -> Result<()> {
    match held {
        Some(held) if (held.bytes, held.hash) != (copy.bytes, copy.hash) => Err(changed(path, 0)),
        _ => Ok(()),
    }
}

fn changed(path: &Path, offset: u64) -> StorageError {
    StorageError::Corrupt {
        file: path.to_owned(),
        offset,
        reason: "it is not what was backed up".into(),
    }
}

/// Puts the base of the last of these backups together.
fn restore_base(chain: &[Source], to: &Path, moves: bool) -> Result<()> {
    let path = to.join(BASE);
    let from = chain[0].dir.join(BASE);
    if moves {
        fs::rename(&from, &path).map_err(|error| StorageError::io("rename", &from, &error))?;
    } else {
        copy_file(&from, &path, BASE, u64::MAX)?;
    }
    let file = files::open(&path).map_err(|error| StorageError::io("open", &path, &error))?;
    for source in &chain[1..] {
        write_changed(source, &file, &path)?;
    }
    let last = &chain[chain.len() - 1];
    let (expected, bytes) = (&last.manifest.base, last.manifest.base.bytes);
    file.set_len(bytes)
        .map_err(|error| StorageError::io("truncate", &path, &error))?;
    let hashes = blocks::read(&last.dir.join(BLOCKS), bytes)?;
    let mut whole = Hasher::new();
    whole.update(&hashes);
    if whole.finish() != expected.hash {
        return Err(changed(&last.dir.join(BLOCKS), 0));
    }
    let mut buffer = vec![0; COPY_BYTES];
    let mut done = 0;
    while done < bytes {
        let wanted = (bytes - done).min(COPY_BYTES as u64) as usize;
        let read = file.read_exact_at(&mut buffer[..wanted], done);
        read.map_err(|error| StorageError::io("read", &path, &error))?;
        for (i, block) in buffer[..wanted].chunks(BLOCK_BYTES).enumerate() {
            let number = done / BLOCK_BYTES as u64 + i as u64;
            if blocks::at(&hashes, number) != Some(&blocks::hash(block)[..]) {
                return Err(changed(&path, number * BLOCK_BYTES as u64));
            }
        }
        done += wanted as u64;
    }
    file.sync_all().map_err(|error| StorageError::io("sync", &path, &error))
}

/// Writes the blocks that changed into the base.
fn write_changed(source: &Source, file: &File, to: &Path) -> Result<()> {
    let path = source.dir.join(CHANGED);
    let failed = |operation| {
        let path = &path;
        move |error: std::io::Error| StorageError::io(operation, path, &error)
    };
    let bytes = source.manifest.base.bytes;
    let mut input = BufReader::with_capacity(COPY_BYTES, File::open(&path).map_err(failed("open"))?);
    let mut left = source.manifest.changed.as_ref().map_or(0, |changed| changed.bytes);
    let mut block = vec![0; BLOCK_BYTES];
    while left > 0 {
        let mut number = [0; 8];
        input.read_exact(&mut number).map_err(failed("read"))?;
        let offset = u64::from_le_bytes(number).checked_mul(BLOCK_BYTES as u64);
        let Some(offset) = offset.filter(|offset| *offset < bytes) else {
            return Err(changed(&path, 0));
        };
        let length = (bytes - offset).min(BLOCK_BYTES as u64);
        let block = &mut block[..length as usize];
        input.read_exact(block).map_err(failed("read"))?;
        let written = file.write_all_at(block, offset);
        written.map_err(|error| StorageError::io("write", to, &error))?;
        left = left.checked_sub(8 + length).ok_or_else(|| changed(&path, 0))?;
    }
    Ok(())
}
