//! The primary's frames go into the log.

use super::checkpoints;
use super::keeper::Keeper;
use super::knocks::{About, Knock};
use super::{MemberError, Stop};
use crate::trimming::keeps_from;
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

/// What nobody waits for goes on its way after so long, together with what comes meanwhile: fewer requests to the store, and less work for all
/// members.
const UNHURRIED: Duration = Duration::from_millis(5);
/// Whoever was just answered is waited for before the next append: this part of the time that an append takes, but no longer than that.
const RETURN_PART: u32 = 4;
const RETURN_MAX: Duration = Duration::from_millis(5);
/// With so many commits to ship nothing is waited for.
const BACKLOG: u64 = 5_000;

/// When the next append is due: all who wait at the same time should share one. Whoever is answered by an append comes back with
/// the next write a moment later; if that append had begun at once, it would have left with half of the clients, and the other half would
/// always wait for two.
#[derive(Default)]
struct Pace {
    /// How long the last append took.
    took: Duration,
    /// Clients that were answered by it, or waited for the next one already.
    expected: usize,
}

impl Pace {
    fn appended(&mut self, took: Duration, answered: usize, waiting: usize) {
        (self.took, self.expected) = (took, answered + waiting);
    }

    /// How many are to wait, and how long at most, before the next append; `waiting` do.
    fn due(&self, waiting: usize) -> Option<(usize, Duration)> {
        match waiting {
            0 => Some((1, UNHURRIED)),
            _ if waiting < self.expected => Some((self.expected, (self.took / RETURN_PART).min(RETURN_MAX))),
            _ => None,
        }
    }

    /// Waits until the next append is due.
    fn wait(&self, engine: &Engine) {
        // Somebody may come who waits, and then others.
        for _ in 0..2 {
            let Some((count, at_most)) = self.due(engine.waiting()) else {
                return;
            };
            engine.wait_for_waiting(count, at_most);
        }
    }
}

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
    let mut pace = Pace::default();
    while !stop.is_set() {
        if looked.elapsed() >= TRIM {
            looked = Instant::now();
            match trim(engine, writer, log, keeper, trimmed) {
                Ok(below) => trimmed = below,
                Err(error @ LogError::Fenced(_)) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "the log is not trimmed"),
            }
        }
        if engine.last_lsn() <= frames.lsn() {
            engine.wait_for_commit(frames.lsn(), Instant::now() + LOOK);
        }
        match engine.last_lsn().0.saturating_sub(frames.lsn().0) {
            0 => continue,
            1..BACKLOG => pace.wait(engine),
            _ => {}
        }
        let next = match frames.next(BATCH_BYTES) {
            Err(StorageError::Closed) => return Ok(()),
            next => next?,
        };
        let Some(CommitFrame { lsn, optime, .. }) = next.last() else {
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
        let begun = Instant::now();
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
        let (about, is_awaiting) = (About::Log, engine.awaits_members());
        keeper.knocks().knock(Knock { about, is_awaiting });
        let answered = engine.note_committed(lsn, optime);
        pace.appended(begun.elapsed(), answered, engine.waiting());
    }
    Ok(())
}

/// Removes what nobody needs any more ([`crate::trimming`]). Returns below which number there is nothing.
fn trim(
    engine: &Engine,
    writer: &mut dyn Writer,
    log: &dyn Log,
    keeper: &Keeper,
    trimmed: u64,
) -> Result<u64, LogError> {
    let (_, kept) = checkpoints::read(log)?;
    let oldest = kept.first();
    let oldest = oldest.map(|oldest| (oldest.seq, u64::from(oldest.from().unwrap_or_default().secs)));
    if oldest.is_none() {
        return Ok(trimmed);
    }
    let age = engine.log_retention().age_min.as_secs();
    let begins = (age > 0).then(|| u64::from(engine.last_optime().secs).saturating_sub(age));
    match keeps_from(oldest, keeper.kept_by_all()?, begins) {
        Some(from) if from > trimmed => {
            writer.trim(from)?;
            Ok(from)
        }
        _ => Ok(trimmed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_waits_for_those_who_were_just_answered_and_not_long() {
        let mut pace = Pace::default();
        assert_eq!(pace.due(0), Some((1, UNHURRIED)), "nobody waits");
        assert_eq!(pace.due(1), None, "one waits, and no other is known");
        let took = Duration::from_millis(12);
        // Half of sixteen clients were answered, and the others wait already.
        pace.appended(took, 8, 8);
        assert_eq!(pace.due(8), Some((16, Duration::from_millis(3))));
        assert_eq!(pace.due(16), None);
        pace.appended(Duration::from_secs(3), 16, 0);
        assert_eq!(pace.due(1), Some((16, RETURN_MAX)));
        // Those who do not come back are not expected again.
        pace.appended(took, 1, 0);
        assert_eq!(pace.due(1), None);
    }
}
