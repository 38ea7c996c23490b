//! Checkpoints of the set: copies of a member's store beside the log, from which new members begin, moments are restored and branches
//! grow, and behind which the log is trimmed.
//!
//! ```text
//! files/checkpoints/<id>/...   the files of a backup (nestor_storage's engine::backup) without its base, and base.map
//! files/packs/<id>/<n>         blocks of the base that no checkpoint before had
//! files/branches/<address>     packs that a branch refers to; there files/origins/list says whose
//! records/checkpoints          which checkpoints are whole: written when everything of one is there
//! ```
//!
//! A block that the checkpoint before has, at the same place of the base, is not uploaded again: the map says in which pack it is
//! ([`map`]). A pack goes when no checkpoint and no branch refers to it; the few blocks that are left of a pack are uploaded again before
//! that, so that packs are at least about half full of what is needed.
//!
//! A checkpoint that the record does not name is half uploaded, and nobody begins from it; whoever uploads the next one removes it. Each
//! file and block is compared with its hash when a member begins from it.
//!
//! Reading order: this list, [`map`], [`upload`], [`fetch`], [`moments`].

mod fetch;
mod map;
pub mod moments;
mod upload;

pub(super) use fetch::{begin, is_empty};
pub(super) use upload::run;

use super::MemberError;
use crate::{Log, LogError, Version};
use map::BlockMap;
use nestor_model::{RawDoc, RawWriter, Timestamp, ValueRef};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The name of the record, and of the folder.
const RECORD: &str = "checkpoints";
/// The folders of packs and of what branches say.
const PACKS: &str = "packs";
const BRANCHES: &str = "branches";
/// The file of a branch that names the logs whose packs it refers to, and its folder.
const ORIGINS: &str = "origins/list";
const ORIGINS_FOLDER: &str = "origins";
/// The file of a checkpoint that says where the blocks of its base are.
const MAP: &str = "base.map";
/// The base in a backup, and the hashes of its blocks.
const BASE: &str = "base.nestor";
const HASHES: &str = "base.blocks";
/// Requests to the store at the same time.
const AT_ONCE: usize = 8;

/// A checkpoint that is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Its folder.
    id: String,
    /// The last commit in its base: whoever begins from it needs those behind it.
    pub seq: u64,
    /// The optime of that commit; none in a record of old.
    from: Option<Timestamp>,
    /// The optime of the last commit that it has.
    until: Option<Timestamp>,
    /// Bytes of its base.
    base_bytes: u64,
    /// What comes behind its base is that of another set, and not to be applied.
    is_base_only: bool,
    /// Its files, the manifest last.
    files: Vec<String>,
}

impl Checkpoint {
    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The optime of the last commit in its base; `None` of one that an older version made.
    pub fn from(&self) -> Option<Timestamp> {
        self.from
    }

    /// Bytes of its base.
    pub fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    /// The name of one of its files in the store.
    pub fn path_of(&self, file: &str) -> String {
        format!("{RECORD}/{}/{file}", self.id)
    }

    /// `HOST-SEQ-VERSION-LAST`: who made it, [`Self::seq`], the version of the record before it, and the last commit there was.
    fn new_id(host: &str, seq: u64, version: Version, last: u64) -> String {
        format!("{}-{seq}-{version}-{last}", name_of(host))
    }
}

/// A member as ids name it: letters, digits and points, and `-` in the place of all else.
pub(super) fn name_of(host: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    host.chars().map(letter).collect()
}

/// The part of a checkpoint's id that names its member, and its last commit; `None` for an id of another form.
fn parts_of(id: &str) -> Option<(&str, u64)> {
    let mut parts = id.rsplitn(4, '-');
    let (last, version, seq, host) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_number = |part: &str| part.parse::<u64>().is_ok();
    let seq = seq.parse().ok()?;
    (is_number(last) && is_number(version)).then_some((host, seq))
}

/// The checkpoints that are whole, the oldest first, and the version of the record.
pub fn read(log: &dyn Log) -> Result<(Version, Vec<Checkpoint>), LogError> {
    let Some((version, bytes)) = log.record(RECORD)? else {
        return Ok((0, Vec::new()));
    };
    let found = decode(&bytes).ok_or_else(|| LogError::Damaged("the list of checkpoints".into()))?;
    Ok((version, found))
}

/// The map of a checkpoint's blocks.
fn map_of(log: &dyn Log, checkpoint: &Checkpoint) -> Result<BlockMap, LogError> {
    BlockMap::decode(&log.contents(&checkpoint.path_of(MAP))?)
}

/// The name of the file by which a branch keeps the packs of the log that it is a branch of: its address, in hexadecimal digits.
fn pin_of(branch: &str) -> String {
    let mut name = format!("{BRANCHES}/");
    for byte in branch.bytes() {
        // Writing to a string never fails.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn encode(checkpoints: &[Checkpoint]) -> Vec<u8> {
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let mut out = RawWriter::onto(Vec::new());
    for checkpoint in checkpoints {
        out.begin_document(&checkpoint.id);
        out.append("seq", number(checkpoint.seq));
        if let (Some(from), Some(until)) = (checkpoint.from, checkpoint.until) {
            out.append("from", from);
            out.append("until", until);
        }
        out.append("baseBytes", number(checkpoint.base_bytes));
        out.append("baseOnly", checkpoint.is_base_only);
        out.begin_array("files");
        for (i, file) in checkpoint.files.iter().enumerate() {
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
        let number = |name| match said.get(name) {
            Some(ValueRef::Int64(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        let time = |name| match said.get(name) {
            Some(ValueRef::Timestamp(time)) => Some(time),
            _ => None,
        };
        let files = said.get("files")?.as_array()?;
        let files = files.iter().map(|file| file.as_str().map(str::to_owned));
        Some(Checkpoint {
            id: id.to_owned(),
            seq: number("seq")?,
            from: time("from"),
            until: time("until"),
            base_bytes: number("baseBytes").unwrap_or(0),
            is_base_only: said.get("baseOnly").is_some_and(|only| only.truthy()),
            files: files.collect::<Option<_>>()?,
        })
    };
    document.iter().map(one).collect()
}

fn local(path: &Path, error: &io::Error) -> MemberError {
    MemberError::Refused(format!("{}: {error}", path.display()))
}

/// Does all jobs, some at the same time, until one fails.
fn in_parallel<T: Sync>(jobs: &[T], work: impl Fn(&T) -> Result<(), MemberError> + Sync) -> Result<(), MemberError> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let is_failed = || failed.lock().map_or(true, |failed| failed.is_some());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(jobs.len()) {
            scope.spawn(|| {
                while !is_failed()
                    && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let (Err(error), Ok(mut failed)) = (work(job), failed.lock()) {
                        failed.get_or_insert(error);
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(()),
        Ok(Some(error)) => Err(error),
        Err(_) => Err(MemberError::Refused("a thread of a checkpoint panicked".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_round_trips() {
        let time = |secs| Some(Timestamp { secs, inc: 1 });
        let checkpoints = vec![
            Checkpoint {
                id: "a-1-12-77-3".into(),
                seq: 12,
                from: time(5),
                until: time(6),
                base_bytes: 99,
                is_base_only: true,
                files: vec!["journal/x".into(), "nestor.backup".into()],
            },
            Checkpoint {
                id: "b-1-90-78".into(),
                seq: 90,
                from: None,
                until: None,
                base_bytes: 0,
                is_base_only: false,
                files: vec![],
            },
        ];
        assert_eq!(decode(&encode(&checkpoints)), Some(checkpoints));
        assert_eq!(decode(b"x"), None);
    }

    #[test]
    fn ids_tell_their_member_and_commit() {
        let id = Checkpoint::new_id("db-1.example:27017", 77, 3, 90);
        assert_eq!(parts_of(&id), Some(("db-1.example-27017", 77)));
        assert_eq!(parts_of("db-1-77-9a1b"), None, "as they were");
    }
}
