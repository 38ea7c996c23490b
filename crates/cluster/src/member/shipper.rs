//! The primary's frames go into the log.

use super::keeper::Keeper;
use super::{MemberError, Stop};
use crate::{Entry, LogError, Writer};
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

/// Ships what the journal has and the log does not, until the role is over.
pub(super) fn run(
    engine: Engine,
    mut writer: Box<dyn Writer>,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    spawn_role("cluster-shipper", keeper, move || ship(&engine, &mut *writer, &stop))
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

fn ship(engine: &Engine, writer: &mut dyn Writer, stop: &Stop) -> Result<(), MemberError> {
    let mut frames = engine.frames(nestor_storage::Lsn(writer.last()?));
    while !stop.is_set() {
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
