//! Checkpoints of the set: copies of a member's store beside the log, from which new members begin and behind which the log is trimmed.
//!
//! ```text
//! files/checkpoints/<id>/...   the files of a backup (nestor_storage's engine::backup)
//! records/checkpoints          which of them are whole: written when all files of one are there
//! ```
//!
//! A checkpoint that the record does not name is half uploaded, and nobody begins from it; whoever began it removes it. Each file is compared with
//! its hash when a member begins from it.
//!
//! A member begins in a folder below its data directory. While that folder is there, the directory holds nothing that anybody has
//! used, and the next start begins again.

use super::keeper::Keeper;
use super::{MemberError, MemberOptions, Stop};
use crate::{Log, LogError, Version};
use nestor_model::{RawDoc, RawWriter, ValueRef};
use nestor_storage::{Engine, RestoreOptions, StorageError, UPLOAD, restore};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of the record, and of the folder.
const RECORD: &str = "checkpoints";
/// Checkpoints that are kept. The log is kept from the older one on, for members that are just beginning from it.
const KEPT: usize = 2;
/// Where a member begins, below its data directory.
const BEGINNING: &str = "beginning";
/// How often a member looks whether one is due.
const LOOK: Duration = Duration::from_secs(2);

/// A checkpoint that is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Its folder.
    id: String,
    /// The last commit in its base: whoever begins from it needs those behind it.
    pub seq: u64,
    /// Its files, the manifest last.
    files: Vec<String>,
}

impl Checkpoint {
    /// The name of one of its files in the store.
    pub fn path_of(&self, file: &str) -> String {
        format!("{RECORD}/{}/{file}", self.id)
    }
}

/// The checkpoints that are whole, the oldest first, and the version of the record.
pub fn read(log: &dyn Log) -> Result<(Version, Vec<Checkpoint>), LogError> {
    let Some((version, bytes)) = log.record(RECORD)? else {
        return Ok((0, Vec::new()));
    };
    let found = decode(&bytes).ok_or_else(|| LogError::Damaged("the list of checkpoints".into()))?;
    Ok((version, found))
}

fn encode(checkpoints: &[Checkpoint]) -> Vec<u8> {
    let mut out = RawWriter::onto(Vec::new());
    for Checkpoint { id, seq, files } in checkpoints {
        out.begin_document(id);
        out.append("seq", i64::try_from(*seq).unwrap_or(i64::MAX));
        out.begin_array("files");
        for (i, file) in files.iter().enumerate() {
            out.append_index(i, file.as_str());
        }
        out.end();
        out.end();
    }
    out.finish()
}

fn decode(bytes: &[u8]) -> Option<Vec<Checkpoint>> {
    let document = RawDoc::validate(bytes).ok()?;
    let one = |(id, value): (&str, ValueRef<'_>)| {
        let ValueRef::Document(said) = value else { return None };
        let ValueRef::Int64(seq) = said.get("seq")? else {
            return None;
        };
        let files = said.get("files")?.as_array()?;
        let files = files.iter().map(|file| file.as_str().map(str::to_owned));
        Some(Checkpoint {
            id: id.to_owned(),
            seq: u64::try_from(seq).ok()?,
            files: files.collect::<Option<_>>()?,
        })
    };
    document.iter().map(one).collect()
}

fn local(path: &Path, error: &io::Error) -> MemberError {
    MemberError::Refused(format!("{}: {error}", path.display()))
}

/// Has a member with an empty directory begin from the newest checkpoint, if there is one.
pub(super) fn begin(log: &dyn Log, options: &MemberOptions) -> Result<(), MemberError> {
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
        match fetch(log, checkpoint, options) {
            Ok(()) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, checkpoint = checkpoint.id, "a checkpoint of the set is of no use");
                empty(dir)?;
            }
        }
    }
    Ok(())
}

fn fetch(log: &dyn Log, checkpoint: &Checkpoint, options: &MemberOptions) -> Result<(), MemberError> {
    let beginning = options.dir.join(BEGINNING);
    let (from, to) = (beginning.join("backup"), beginning.join("data"));
    for file in &checkpoint.files {
        let path = from.join(file);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| local(folder, &e))?;
        }
        log.download(&checkpoint.path_of(file), &path)?;
    }
    let mut engine = options.engine.clone();
    // It commits nothing of its own when it opens.
    engine.is_member = true;
    let wanted = RestoreOptions {
        from: vec![from.clone()],
        journal: None,
        to: to.clone(),
        until: None,
    };
    restore(&wanted, engine)?;
    for entry in fs::read_dir(&to).map_err(|e| local(&to, &e))? {
        let entry = entry.map_err(|e| local(&to, &e))?;
        let at = options.dir.join(entry.file_name());
        fs::rename(entry.path(), &at).map_err(|e| local(&at, &e))?;
    }
    fs::remove_dir_all(&from).map_err(|e| local(&from, &e))?;
    // What was moved is on disk before the sign goes that it may not be.
    let sync = |path: &Path| fs::File::open(path).and_then(|dir| dir.sync_all());
    sync(&options.dir).map_err(|e| local(&options.dir, &e))?;
    fs::remove_dir_all(&beginning).map_err(|e| local(&beginning, &e))
}

pub(super) fn is_empty(dir: &Path) -> bool {
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

/// Uploads checkpoints whenever one is due, until the role is over. What fails is tried again.
pub(super) fn run(
    engine: Engine,
    log: Arc<dyn Log>,
    options: MemberOptions,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    super::shipper::spawn("cluster-checkpoints", move || {
        let uploader = Uploader {
            engine,
            log,
            options,
            stop,
        };
        while !uploader.stop.wait(LOOK) {
            if let Err(error) = uploader.look(&keeper) {
                tracing::warn!(%error, "no checkpoint of the set is uploaded");
            }
        }
    })
}

struct Uploader {
    engine: Engine,
    log: Arc<dyn Log>,
    options: MemberOptions,
    stop: Arc<Stop>,
}

impl Uploader {
    fn look(&self, keeper: &Keeper) -> Result<(), MemberError> {
        if !keeper.uploads() {
            return Ok(());
        }
        let (version, mut checkpoints) = read(&*self.log)?;
        let newest = checkpoints.last().map_or(0, |checkpoint| checkpoint.seq);
        if self.engine.last_lsn().0 < newest.saturating_add(self.options.checkpoint_commits) {
            return Ok(());
        }
        let dir = self.options.dir.join(UPLOAD);
        let result = self.upload(&dir);
        // What is left is removed the next time.
        let _ = fs::remove_dir_all(&dir);
        let Some(checkpoint) = result? else { return Ok(()) };
        let gone = match (checkpoints.len() + 1).checked_sub(KEPT) {
            Some(count) => checkpoints.drain(..count).collect(),
            None => Vec::new(),
        };
        checkpoints.push(checkpoint.clone());
        let is_first = self.log.replace_record(RECORD, version, &encode(&checkpoints))?;
        match is_first {
            true => gone.iter().try_for_each(|old| self.remove(old)),
            // Another member has uploaded one.
            false => self.remove(&checkpoint),
        }
    }

    /// `None` if it is time to end.
    fn upload(&self, dir: &Path) -> Result<Option<Checkpoint>, MemberError> {
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(|e| local(dir, &e))?;
        }
        // What the base has need not be in the journal that is copied.
        self.engine.checkpoint()?;
        let seq = self.engine.base_lsn()?.0;
        let check = || match self.stop.is_set() {
            true => Err(StorageError::Closed),
            false => Ok(()),
        };
        let backup = match self.engine.backup(dir, None, check) {
            Err(StorageError::Closed) => return Ok(None),
            backup => backup?,
        };
        let mut files = Vec::new();
        list(dir, dir, &mut files)?;
        // The manifest names and hashes the others.
        files.sort_by_key(|file| (file == "nestor.backup", file.clone()));
        let host = self.options.host.replace(':', "-");
        let checkpoint = Checkpoint {
            id: format!("{host}-{seq}-{}", backup.id),
            seq,
            files,
        };
        for file in &checkpoint.files {
            if self.stop.is_set() {
                self.remove(&checkpoint)?;
                return Ok(None);
            }
            self.log.upload(&checkpoint.path_of(file), &dir.join(file))?;
        }
        Ok(Some(checkpoint))
    }

    fn remove(&self, checkpoint: &Checkpoint) -> Result<(), MemberError> {
        for file in checkpoint.files.iter().rev() {
            self.log.remove(&checkpoint.path_of(file))?;
        }
        Ok(())
    }
}

/// Names of all files below `dir`, relative to `root`.
fn list(root: &Path, dir: &Path, files: &mut Vec<String>) -> Result<(), MemberError> {
    for entry in fs::read_dir(dir).map_err(|e| local(dir, &e))? {
        let path: PathBuf = entry.map_err(|e| local(dir, &e))?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            files.push(name.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_round_trips() {
        let checkpoints = vec![
            Checkpoint {
                id: "a-1-12-77".into(),
                seq: 12,
                files: vec!["journal/x".into(), "nestor.backup".into()],
            },
            Checkpoint {
                id: "b-1-90-78".into(),
                seq: 90,
                files: vec![],
            },
        ];
        assert_eq!(decode(&encode(&checkpoints)), Some(checkpoints));
        assert_eq!(decode(b"x"), None);
    }
}
