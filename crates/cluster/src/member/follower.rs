//! A secondary applies the log: all of it at once, or, if it is delayed, what is old enough.

use super::keeper::Keeper;
use super::knocks::About;
use super::shipper::spawn_role;
use super::start::{READ_BYTES, apply};
use super::{MemberError, Stop};
use crate::{Entry, LogError, Reader};
use nestor_storage::{Clock, Engine, StorageError, time_of_frame};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long it waits at the end of the log before it looks again, unless somebody knocks: then, and while knocks do not arrive.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_WITH_KNOCKS: Duration = Duration::from_millis(200);
/// How long it waits when the store does not answer.
const AGAIN: Duration = Duration::from_millis(200);

/// The log as a member follows it.
pub(super) struct Following {
    reader: Box<dyn Reader>,
    /// What was read and is too young yet.
    ahead: VecDeque<Entry>,
    clock: Clock,
}

impl Following {
    /// Whoever follows with that reader, and tells the time by that clock.
    pub(super) fn new(reader: Box<dyn Reader>, clock: Clock) -> Self {
        let ahead = VecDeque::new();
        Self { reader, ahead, clock }
    }

    /// The next entries after `after` that are as old as `delay`; none if there are none yet.
    pub(super) fn next(&mut self, after: u64, delay: Duration) -> Result<Vec<Entry>, LogError> {
        if self.ahead.is_empty() {
            let entries = self.reader.read(after, READ_BYTES)?;
            if delay.is_zero() {
                return Ok(entries);
            }
            self.ahead = entries.into();
        }
        let due = u64::from((self.clock)()).saturating_sub(delay.as_secs());
        let is_due = |entry: &Entry| time_of_frame(&entry.frame).is_none_or(|time| u64::from(time.secs) <= due);
        let count = self.ahead.iter().take_while(|entry| is_due(entry)).count();
        Ok(self.ahead.drain(..count).collect())
    }
}

/// Applies what the log has and the member does not, until the role is over.
pub(super) fn run(
    engine: Engine,
    mut following: Following,
    keeper: Arc<Keeper>,
    stop: Arc<Stop>,
) -> Result<JoinHandle<()>, MemberError> {
    spawn_role("cluster-follower", keeper.clone(), move || {
        follow(&engine, &mut following, &keeper, &stop)
    })
}

fn follow(engine: &Engine, following: &mut Following, keeper: &Keeper, stop: &Stop) -> Result<(), MemberError> {
    while !stop.is_set() {
        let heard = keeper.knocks().heard(About::Log);
        match following.next(engine.last_lsn().0, keeper.delay()) {
            Ok(entries) if entries.is_empty() => {
                let look = match keeper.knocks().arrive() && keeper.delay().is_zero() {
                    true => LOOK_WITH_KNOCKS,
                    false => LOOK,
                };
                keeper.knocks().wait(About::Log, heard, look);
            }
            Ok(entries) => match apply(engine, entries) {
                // Whoever waits for this member is told.
                Ok(()) => keeper.knocks().notice(About::Members),
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
