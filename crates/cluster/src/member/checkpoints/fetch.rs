//! A data directory from a checkpoint.
//!
//! A member begins in a folder below its data directory. While that folder is there, the directory holds nothing that anybody has
//! used, and the next start begins again.

use super::map::BlockMap;
use super::{BASE, Checkpoint, MAP, in_parallel, local, read};
use crate::member::patience::Patience;
use crate::member::{MemberError, MemberOptions};
use crate::{Log, LogError};
use nestor_model::Timestamp;
use nestor_storage::{BLOCK_BYTES, EngineOptions, RestoreOptions, restore};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

/// Where a directory begins, below itself.
const BEGINNING: &str = "beginning";

/// Has a member with an empty directory begin from the newest checkpoint, if there is one.
pub(in crate::member) fn begin(log: &dyn Log, options: &MemberOptions) -> Result<(), MemberError> {
    let dir = &options.dir;
    let beginning = dir.join(BEGINNING);
    if beginning.exists() {
        // The start before ended on the way here.
        empty(dir)?;
    }
    if !is_empty(dir) {
        return Ok(());
    }
    let (_, checkpoints) = read(log)?;
    for checkpoint in checkpoints.iter().rev() {
        match fetch(log, checkpoint, dir, options.engine.clone(), None) {
            Ok(()) => return Ok(()),
            // It may be as good as any.
            Err(error @ MemberError::Log(LogError::Unavailable(_))) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, checkpoint = checkpoint.id, "a checkpoint of the set is of no use");
                empty(dir)?;
            }
        }
    }
    Ok(())
}

/// Makes `dir`, which is empty, a data directory with the state of the checkpoint, or of a time that is in it.
pub(super) fn fetch(
    log: &dyn Log,
    checkpoint: &Checkpoint,
    dir: &Path,
    mut engine: EngineOptions,
    until: Option<Timestamp>,
) -> Result<(), MemberError> {
    let beginning = dir.join(BEGINNING);
    let (from, to) = (beginning.join("backup"), beginning.join("data"));
    for file in &checkpoint.files {
        if let Some(folder) = from.join(file).parent() {
            fs::create_dir_all(folder).map_err(|e| local(folder, &e))?;
        }
    }
    // One of thousands of requests must not cost all that the others brought.
    let patience = Patience::brief(Arc::default());
    in_parallel(&checkpoint.files, |file| {
        let to = from.join(file);
        patience.ask(|| {
            // What a try before left.
            let _ = fs::remove_file(&to);
            Ok(log.download(&checkpoint.path_of(file), &to)?)
        })
    })?;
    let map = from.join(MAP);
    if map.exists() {
        let bytes = fs::read(&map).map_err(|e| local(&map, &e))?;
        let to = from.join(BASE);
        put_together(log, &BlockMap::decode(&bytes)?, checkpoint.base_bytes, &to, &patience)?;
    }
    // It commits nothing of its own when it opens.
    engine.is_member = true;
    let wanted = RestoreOptions {
        from: vec![from.clone()],
        journal: None,
        to: to.clone(),
        until: until.or_else(|| checkpoint.from.filter(|_| checkpoint.is_base_only)),
        moves: true,
    };
    restore(&wanted, engine)?;
    for entry in fs::read_dir(&to).map_err(|e| local(&to, &e))? {
        let entry = entry.map_err(|e| local(&to, &e))?;
        let at = dir.join(entry.file_name());
        fs::rename(entry.path(), &at).map_err(|e| local(&at, &e))?;
    }
    fs::remove_dir_all(&from).map_err(|e| local(&from, &e))?;
    // What was moved is on disk before the sign goes that it may not be.
    let sync = |path: &Path| fs::File::open(path).and_then(|dir| dir.sync_all());
    sync(dir).map_err(|e| local(dir, &e))?;
    fs::remove_dir_all(&beginning).map_err(|e| local(&beginning, &e))
}

/// Writes the base that a map describes, pack by pack.
fn put_together(log: &dyn Log, map: &BlockMap, bytes: u64, to: &Path, patience: &Patience) -> Result<(), MemberError> {
    let failed = |e: &io::Error| local(to, e);
    let file = fs::File::create_new(to).map_err(|e| failed(&e))?;
    file.set_len(bytes).map_err(|e| failed(&e))?;
    let mut elsewhere: BTreeMap<&str, Arc<dyn Log>> = BTreeMap::new();
    for pack in &map.packs {
        if !pack.store.is_empty() && !elsewhere.contains_key(&*pack.store) {
            elsewhere.insert(&pack.store, log.elsewhere(&pack.store)?);
        }
    }
    let jobs: Vec<_> = map.packs.iter().zip(map.pieces()).collect();
    in_parallel(&jobs, |(pack, pieces)| {
        let log = elsewhere.get(&*pack.store).map_or(log, |other| &**other);
        let block = BLOCK_BYTES as u64;
        let first = pieces.iter().map(|(_, slot, _)| u64::from(*slot)).min().unwrap_or(0);
        let end = pieces.iter().map(|(_, slot, count)| u64::from(slot + count)).max();
        let Some(end) = end else { return Ok(()) };
        let found = patience.ask(|| Ok(log.get(&pack.name, first * block..end * block)?))?;
        for (number, slot, count) in pieces {
            let (at, offset) = ((u64::from(*slot) - first) * block, number * block);
            // The last block of a base may be shorter.
            let length = (u64::from(*count) * block).min(bytes.saturating_sub(offset));
            let piece = found.get(at as usize..(at + length) as usize);
            let piece = piece.ok_or_else(|| LogError::Damaged(format!("{} is too short", pack.name)))?;
            file.write_all_at(piece, offset).map_err(|e| failed(&e))?;
        }
        Ok(())
    })
}

pub(in crate::member) fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).map_or(true, |mut entries| entries.next().is_none())
}

fn empty(dir: &Path) -> Result<(), MemberError> {
    let remove = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        }
    };
    // The sign that nothing here was used goes last.
    let beginning = dir.join(BEGINNING);
    let entries = fs::read_dir(dir).map_err(|e| local(dir, &e))?;
    let mut others = entries.filter(|entry| !matches!(entry, Ok(entry) if entry.path() == beginning));
    others.try_for_each(remove).map_err(|e| local(dir, &e))?;
    match beginning.exists() {
        true => fs::remove_dir_all(&beginning).map_err(|e| local(&beginning, &e)),
        false => Ok(()),
    }
}
