//! The primary's frames go into the log.

use super::checkpoints;
use super::keeper::Keeper;
use super::{MemberError, Stop};
use crate::{Entry, Log, LogError, Writer};
use nestor_storage::{CommitFrame, Engine, StorageError};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes that are appended together at most, about.
const BATCH_BYTES: usize = 4 << 20;
/// How long it waits for a commit before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long it waits before it sends again what got no answer.
const AGAIN: Duration = Duration::from_millis(200);
/// How often it looks whether the log can be trimmed.
const TRIM: Duration = Duration::from_secs(5);

/// Ships what the journal has and the log does not, until the role is over.
pub(super) fn run(
    engine: Engine,
    mut writer: Box<dyn Writer>,
    log: Arc<dyn Log>,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    let keeper_of_thread = keeper.clone();
    spawn_role("cluster-shipper", keeper, move || {
        ship(&engine, &mut *writer, &*log, &keeper_of_thread, &stop)
    })
}

/// A thread that does what a member's role is about: an error in it ends the role.
pub(super) fn spawn_role(
    name: &str,
    keeper: Arc<Keeper>,
    work: impl FnOnce() -> Result<(), MemberError> + Send + 'static,
) -> Result<JoinHandle<()>, MemberError> {
    spawn(name, move || {
        if let Err(error) = work() {
            keeper.over(&error.to_string());
        }
    })
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, MemberError> {
    let thread = Builder::new().name(name.into()).spawn(work);
    thread.map_err(|e| MemberError::Refused(format!("no thread: {e}")))
}

fn ship(
    engine: &Engine,
    writer: &mut dyn Writer,
    log: &dyn Log,
    keeper: &Keeper,
    stop: &Stop,
) -> Result<(), MemberError> {
    let mut frames = engine.frames(nestor_storage::Lsn(writer.last()?));
    let (mut trimmed, mut looked) = (0, Instant::now());
    while !stop.is_set() {
        if looked.elapsed() >= TRIM {
            looked = Instant::now();
            match trim(writer, log, keeper, trimmed) {
                Ok(below) => trimmed = below,
                Err(error @ LogError::Fenced(_)) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "the log is not trimmed"),
            }
        }
        let next = match frames.next(BATCH_BYTES) {
            Err(StorageError::Closed) => return Ok(()),
            next => next?,
        };
        let Some(CommitFrame { lsn, optime, .. }) = next.last() else {
            engine.wait_for_commit(frames.lsn(), Instant::now() + LOOK);
            continue;
        };
        let (lsn, optime) = (*lsn, *optime);
        let entries: Vec<Entry> = next
            .into_iter()
            .map(|frame| Entry {
                seq: frame.lsn.0,
                frame: frame.bytes,
            })
            .collect();
        loop {
            match writer.append(&entries) {
                Ok(()) => break,
                Err(LogError::Unavailable(why)) => {
                    tracing::warn!(why, "the log does not take commits");
                    if stop.wait(AGAIN) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        engine.note_committed(lsn, optime);
    }
    Ok(())
}

/// Removes what nobody needs who has said anything lately, and whoever begins from a checkpoint that is kept. The entry of a checkpoint's last
/// commit stays, by which its base is known to be of this log. Returns below which number there is nothing.
fn trim(writer: &mut dyn Writer, log: &dyn Log, keeper: &Keeper, trimmed: u64) -> Result<u64, LogError> {
    let (_, kept) = checkpoints::read(log)?;
    let Some(oldest) = kept.first() else { return Ok(trimmed) };
    let below = oldest.seq.min(keeper.applied_by_all());
    if below > trimmed {
        writer.trim(below)?;
    }
    Ok(trimmed.max(below))
}
