//! Moments of a set's past, from what is beside its log: restored into a directory, or as a branch, a set of its own.
//!
//! A moment is the newest checkpoint before it, and the commits of the log from there on. Those of the past that can be had begin with the
//! oldest checkpoint that is kept.
//!
//! A branch has a log of its own. Into that go the commits between checkpoint and moment, and a checkpoint whose map refers to the packs
//! of the set that it is a branch of, which are not copied. A file there ([`pin_of`]) names these packs, so that they stay. With each
//! checkpoint that the branch's members upload they refer to less of them; the file goes when that is nothing.

use super::fetch::fetch;
use super::{BRANCHES, Checkpoint, MAP, ORIGINS, RECORD, encode, local, map_of, pin_of, read};
use crate::member::start::{READ_BYTES, apply};
use crate::member::{MemberError, config};
use crate::{Entry, Log, LogError};
use nestor_model::Timestamp;
use nestor_storage::{Engine, EngineOptions, time_of_frame};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How often a moment is looked for again whose checkpoint went meanwhile.
const TRIES: u32 = 10;

/// What a moment turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The optime of its last commit.
    pub until: Timestamp,
    /// How many commits came behind the checkpoint.
    pub commits: u64,
}

/// Makes `dir`, which is made, or is there and empty, a data directory with the state of a time: that of the last commit that is not after
/// it, or of the last one there is.
///
/// Errors: the time is before all that is kept; those of the log and of the store.
pub fn restore_moment(
    log: &dyn Log,
    dir: &Path,
    at: Option<Timestamp>,
    engine: EngineOptions,
) -> Result<Moment, MemberError> {
    fs::create_dir_all(dir).map_err(|e| local(dir, &e))?;
    if !super::is_empty(dir) {
        return Err(MemberError::Refused(format!("{} is not empty", dir.display())));
    }
    // A log that is newer than this version is refused.
    config::read(log)?;
    let checkpoint = checkpoint_at(log, at)?;
    let is_within = |checkpoint: &Checkpoint| at.filter(|at| checkpoint.until.is_some_and(|until| *at < until));
    let within = checkpoint.as_ref().and_then(is_within);
    if let Some(checkpoint) = &checkpoint {
        fetch(log, checkpoint, dir, engine.clone(), within)?;
    }
    let mut options = engine;
    options.is_member = true;
    let engine = Engine::open(dir, options)?;
    let before = engine.last_lsn().0;
    if within.is_none() {
        let mut reader = log.open_reader()?;
        loop {
            let mut entries = reader.read(engine.last_lsn().0, READ_BYTES)?;
            let count = entries.len();
            entries.truncate(count_until(&entries, at));
            let is_end = entries.len() < count || count == 0;
            apply(&engine, entries)?;
            if is_end {
                break;
            }
        }
    }
    let (until, commits) = (engine.last_optime(), engine.last_lsn().0 - before);
    engine.close()?;
    Ok(Moment { until, commits })
}

/// How many of the entries are not after a time.
fn count_until(entries: &[Entry], at: Option<Timestamp>) -> usize {
    let is_within = |entry: &&Entry| at.is_none_or(|at| time_of_frame(&entry.frame).is_none_or(|time| time <= at));
    entries.iter().take_while(is_within).count()
}

/// The checkpoint to begin from for a moment; `None` if it is the empty store, because the log has everything.
fn checkpoint_at(log: &dyn Log, at: Option<Timestamp>) -> Result<Option<Checkpoint>, MemberError> {
    let (_, checkpoints) = read(log)?;
    let is_before = |checkpoint: &&Checkpoint| match (at, checkpoint.from) {
        (Some(at), Some(from)) => from <= at,
        (at, _) => at.is_none(),
    };
    if let Some(found) = checkpoints.iter().rfind(is_before) {
        return Ok(Some(found.clone()));
    }
    let first = match log.open_reader()?.read(0, 1) {
        Ok(entries) => {
            let Some(first) = entries.first() else {
                let address = log.address();
                return Err(MemberError::Refused(format!(
                    "{address} has no commits: no set has written there"
                )));
            };
            let first = time_of_frame(&first.frame);
            if at.is_none_or(|at| first.is_none_or(|first| first <= at)) {
                return Ok(None);
            }
            first
        }
        Err(LogError::Trimmed { .. }) => checkpoints.iter().find_map(|checkpoint| checkpoint.from),
        Err(error) => return Err(error.into()),
    };
    let Timestamp { secs, inc } = first.unwrap_or_default();
    Err(MemberError::Refused(format!(
        "what is kept begins with the state of {secs}:{inc}"
    )))
}

/// Makes a branch of the set at `origin`, with the state of a time, at `to`, where no log is.
///
/// Errors: as [`restore_moment`]; there is a log at `to`.
pub fn branch(origin: &dyn Log, to: &dyn Log, at: Option<Timestamp>) -> Result<Moment, MemberError> {
    config::read(origin)?;
    let mut writer = to.open_writer()?;
    if writer.last()? > 0 || config::read(to)?.is_some() || read(to)?.0 > 0 {
        let address = to.address();
        return Err(MemberError::Refused(format!("there is a log at {address} already")));
    }
    let checkpoint = pinned(origin, to, at)?;
    // The last commit of the base is what members compare theirs with.
    let mut last = checkpoint
        .as_ref()
        .map_or(0, |checkpoint| checkpoint.seq.saturating_sub(1));
    let (mut until, mut commits) = (Timestamp::default(), 0);
    let mut reader = origin.open_reader()?;
    loop {
        let mut entries = reader.read(last, READ_BYTES)?;
        let count = entries.len();
        entries.truncate(count_until(&entries, at));
        writer.append(&entries)?;
        if let Some(newest) = entries.last() {
            (last, until) = (newest.seq, time_of_frame(&newest.frame).unwrap_or(until));
        }
        commits += entries.len() as u64;
        if entries.len() < count || count == 0 {
            break;
        }
    }
    drop(writer);
    if let Some(checkpoint) = &checkpoint {
        refer(origin, to, checkpoint)?;
        commits = commits.saturating_sub(1);
    }
    Ok(Moment { until, commits })
}

/// The checkpoint for a moment, of which all packs stay from now on.
fn pinned(origin: &dyn Log, to: &dyn Log, at: Option<Timestamp>) -> Result<Option<Checkpoint>, MemberError> {
    for _ in 0..TRIES {
        let Some(checkpoint) = checkpoint_at(origin, at)? else {
            return Ok(None);
        };
        if !checkpoint.files.iter().any(|file| file == MAP) {
            let why = "the checkpoint before that time is of an older version, and has no packs";
            return Err(MemberError::Refused(why.into()));
        }
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pack in map_of(origin, &checkpoint)?.packs {
            names.entry(pack.store).or_default().push(pack.name);
        }
        let mut origins = Vec::new();
        for (store, packs) in names {
            let (pin, text) = (pin_of(to.address()), packs.join("\n"));
            match store.is_empty() {
                true => origin.put(&pin, text.as_bytes())?,
                false => origin.elsewhere(&store)?.put(&pin, text.as_bytes())?,
            }
            origins.push(if store.is_empty() {
                origin.address().to_owned()
            } else {
                store
            });
        }
        to.put(ORIGINS, origins.join("\n").as_bytes())?;
        // Whoever removes packs takes the checkpoint off the list first, and then looks for branches.
        if read(origin)?.1.contains(&checkpoint) {
            return Ok(Some(checkpoint));
        }
    }
    Err(LogError::Unavailable("the checkpoints of the set change too often".into()).into())
}

/// Gives the branch a checkpoint whose blocks are those of its origin.
fn refer(origin: &dyn Log, to: &dyn Log, checkpoint: &Checkpoint) -> Result<(), MemberError> {
    let mut map = map_of(origin, checkpoint)?;
    for pack in map.packs.iter_mut().filter(|pack| pack.store.is_empty()) {
        pack.store = origin.address().to_owned();
    }
    for file in &checkpoint.files {
        let path = checkpoint.path_of(file);
        match file == MAP {
            true => to.put(&path, &map.encode())?,
            // Hashes of blocks are the largest of them: a thousandth of the base.
            false => to.put(&path, &origin.contents(&path)?)?,
        }
    }
    let branched = Checkpoint {
        until: checkpoint.from,
        is_base_only: true,
        ..checkpoint.clone()
    };
    match to.replace_record(RECORD, 0, &encode(&[branched]))? {
        true => Ok(()),
        false => Err(MemberError::Refused(format!(
            "somebody else writes at {}",
            to.address()
        ))),
    }
}

/// Has the set at `origin` keep nothing any more for the branch at an address, which nobody runs any more.
///
/// Errors: it keeps nothing for such a branch; those of the log.
pub fn forget_branch(origin: &dyn Log, branch: &str) -> Result<(), MemberError> {
    let pin = pin_of(branch);
    if !origin.files(BRANCHES)?.contains(&pin) {
        let address = origin.address();
        return Err(MemberError::Refused(format!(
            "{address} keeps nothing for a branch at {branch}"
        )));
    }
    Ok(origin.remove(&pin)?)
}
