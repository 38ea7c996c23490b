//! A secondary applies the log.

use super::keeper::Keeper;
use super::shipper::spawn_role;
use super::start::{READ_BYTES, apply};
use super::{MemberError, Stop};
use crate::{LogError, Reader};
use nestor_storage::{Engine, StorageError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long it waits at the end of the log before it looks again.
const LOOK: Duration = Duration::from_millis(20);
/// How long it waits when the store does not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// Applies what the log has and the member does not, until the role is over.
pub(super) fn run(
    engine: Engine,
    mut reader: Box<dyn Reader>,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    spawn_role("cluster-follower", keeper, move || follow(&engine, &mut *reader, &stop))
}

fn follow(engine: &Engine, reader: &mut dyn Reader, stop: &Stop) -> Result<(), MemberError> {
    while !stop.is_set() {
        match reader.read(engine.last_lsn().0, READ_BYTES) {
            Ok(entries) if entries.is_empty() => {
                stop.wait(LOOK);
            }
            Ok(entries) => match apply(engine, entries) {
                Err(MemberError::Storage(StorageError::Closed)) => return Ok(()),
                // The disk may have room again.
                Err(MemberError::Storage(error @ StorageError::OutOfDiskSpace { .. })) => {
                    tracing::warn!(%error, "what the log has cannot be applied");
                    stop.wait(AGAIN);
                }
                result => result?,
            },
            Err(LogError::Unavailable(why)) => {
                tracing::warn!(why, "the log cannot be read");
                stop.wait(AGAIN);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
