//! The history of sessions before the last start, read back from the oplog.
//!
//! A driver that lost its answer to a restart sends its write again. The oplog says which statements were
//! executed; a thread reads its last half hour from the oldest entry on, and the last commits in any case, because a clock that jumps
//! makes half an hour of a moment. Commands with a transaction number, of
//! whatever session, wait until it is through: only then is the newest number of a session known. That is bounded by the
//! oplog's size. Documents that findAndModify returned stand in the
//! oplog before its change.
//!
//! A secondary reads on for as long as it is one, and notes what it knows in a file now and then ([`super::noted`]): when it becomes primary it reads
//! what came after that. The file names the commit up to which it reaches, so one that does not agree with the oplog is as none.

use crate::lock;
use crate::observe::log::Log;
use crate::session_id::{Lsid, Owner};
use crate::sessions::transaction::State;
use crate::sessions::{Sessions, StatementResult, TIMEOUT, noted};
use crate::uuid::Uuid;
use nestor_model::number::safe_i64;
use nestor_model::{Error, ErrorCode, RawDoc, Result, Timestamp, ValueRef, doc};
use nestor_storage::{Engine, Lsn, StorageError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So many commits are read, whatever their times say.
const COMMITS_MIN: u64 = 20_000;

/// A secondary notes what it knows so often, if there is enough that is new: so many commits a new primary reads back in no time.
const NOTE: Duration = Duration::from_secs(5);
const NOTE_COMMITS: u64 = 5_000;
/// What noting costs is at most this part of its time.
const NOTE_PART: u32 = 20;
/// How long a secondary waits for commits before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The thread that reads. It holds the store: when this is dropped the thread ends, and has ended, so that nobody is refused who
/// opens the store again.
pub struct Reader {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic's message was printed already.
            let _ = thread.join();
        }
    }
}

/// Says that the history is known, also when reading it panicked: those who wait for it would wait for ever.
struct Known(Arc<Sessions>);

impl Drop for Known {
    fn drop(&mut self) {
        self.0.set_recovered();
    }
}

/// Starts reading, unless there is nothing to read. What cannot be read is told to `log`: such writes run again, as they would
/// after half an hour.
pub fn recover(engine: &Engine, sessions: &Arc<Sessions>, log: &Arc<Log>) -> Option<Reader> {
    let known = Known(sessions.clone());
    let newest = match engine.oplog_range() {
        Ok(Some((_, newest))) => newest,
        result => {
            if let Err(error) = result {
                tell(log, &error.into());
            }
            return None;
        }
    };
    let stop = Arc::<AtomicBool>::default();
    let (engine, log, stopped) = (engine.clone(), log.clone(), stop.clone());
    let read = move || {
        if let Err(error) = read(&engine, &known.0, newest, &stopped) {
            tell(&log, &error);
        }
    };
    // Without a thread nothing is read, as if it had ended.
    let thread = std::thread::Builder::new().name("session-history".into()).spawn(read);
    Some(Reader {
        thread: thread.ok(),
        stop,
    })
}

fn tell(log: &Log, error: &Error) {
    log.error(
        "WRITE",
        20_005,
        "session-history",
        "Cannot read all that sessions did before the start; writes that are sent again may run again",
        doc! { "error": error.to_string() },
    );
}

/// Goes on after what it misses: the newest entries are those that are asked for. Returns the first thing missed. Ends when
/// `stopped` is set.
fn read(engine: &Engine, sessions: &Sessions, newest: Timestamp, stopped: &AtomicBool) -> Result<()> {
    let from = begin(engine, sessions, newest);
    let mut cursor = engine.oplog_cursor(from).from_oldest();
    let mut result = Ok(());
    let mut lost_at = None;
    while cursor.position() < newest && !stopped.load(Ordering::Relaxed) {
        let noted = match cursor.next() {
            Ok(Some(entry)) => note(sessions, entry.as_raw()),
            Ok(None) => break,
            // Segments are removed meanwhile. If that is not all, there is no way on.
            Err(error @ StorageError::OplogHistoryLost) if lost_at != Some(cursor.position()) => {
                lost_at = Some(cursor.position());
                cursor = engine.oplog_cursor(cursor.position()).from_oldest();
                Err(error.into())
            }
            Err(error) => return Err(error.into()),
        };
        result = result.and(noted);
    }
    result
}

/// From where on the oplog has to be read, because what came before is known, or too old.
fn begin(engine: &Engine, sessions: &Sessions, newest: Timestamp) -> Timestamp {
    if let Some(noted) = noted::read(engine, sessions) {
        return noted;
    }
    let half_an_hour_ago = Timestamp {
        secs: newest.secs.saturating_sub(TIMEOUT.as_secs() as u32),
        inc: 0,
    };
    half_an_hour_ago.min(time_before_last(engine, COMMITS_MIN))
}

/// Starts reading on a secondary, for as long as it is one.
pub fn follow(engine: &Engine, log: &Arc<Log>) -> Reader {
    let stop = Arc::<AtomicBool>::default();
    let (engine, log, stopped) = (engine.clone(), log.clone(), stop.clone());
    let follow = move || {
        // Its own: what clients of a secondary do in sessions is nothing to be known.
        let sessions = Sessions::default();
        if let Err(error) = read_on(&engine, &sessions, &stopped) {
            tell(&log, &error);
        }
    };
    // Without a thread nothing is noted, and the oplog is read back.
    let thread = std::thread::Builder::new().name("session-history".into()).spawn(follow);
    Reader {
        thread: thread.ok(),
        stop,
    }
}

fn read_on(engine: &Engine, sessions: &Sessions, stopped: &AtomicBool) -> Result<()> {
    let from = begin(engine, sessions, engine.last_optime());
    let mut cursor = engine.oplog_cursor(from).from_oldest();
    let (mut noted_at, mut noted_upto, mut rest) = (Instant::now(), Lsn(0), NOTE);
    while !stopped.load(Ordering::Relaxed) {
        // Everything up to here is read when there is no more.
        let upto = engine.last_lsn();
        loop {
            match cursor.next() {
                Ok(Some(entry)) => note(sessions, entry.as_raw())?,
                Ok(None) => break,
                Err(StorageError::OplogHistoryLost) => cursor = engine.oplog_cursor(cursor.position()).from_oldest(),
                Err(StorageError::Closed) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        if noted_at.elapsed() >= rest && upto.0 >= noted_upto.0 + NOTE_COMMITS {
            let begun = Instant::now();
            sessions.sweep();
            noted::write(engine, sessions, upto)
                .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?;
            (noted_at, noted_upto, rest) = (Instant::now(), upto, NOTE.max(begun.elapsed() * NOTE_PART));
        }
        engine.wait_for_commit(upto, Instant::now() + LOOK);
    }
    Ok(())
}

/// The time of the commit before the last `count` ones; zero if not so many are kept.
fn time_before_last(engine: &Engine, count: u64) -> Timestamp {
    let Some(after) = engine.last_lsn().0.checked_sub(count + 1) else {
        return Timestamp::default();
    };
    let frames = engine.frames(Lsn(after)).next(1).unwrap_or_default();
    frames.first().map_or(Timestamp::default(), |frame| frame.optime)
}

/// Remembers what an entry says of its session, if it has one.
fn note(sessions: &Sessions, entry: RawDoc<'_>) -> Result<()> {
    // Entries of sessions begin with it.
    let Some(("lsid", ValueRef::Document(lsid))) = entry.iter().next() else {
        return Ok(());
    };
    let Some(ValueRef::Binary { bytes, .. }) = lsid.get("id") else {
        return Ok(());
    };
    let (Ok(id), Some(number)) = (bytes.try_into(), entry.get("txnNumber").and_then(safe_i64)) else {
        return Ok(());
    };
    let owner = match lsid.get("uid") {
        Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().map_or(Owner::NOBODY, Owner),
        _ => Owner::NOBODY,
    };
    let state = sessions.touch(Lsid { id: Uuid(id), owner })?;
    let mut session = lock(&state);
    if session.txn_number.is_some_and(|newest| newest > number) {
        return Ok(());
    }
    if session.txn_number != Some(number) {
        session.txn_number = Some(number);
        session.statements.clear();
        session.txn = State::None;
    }
    let id = || match entry.get("o2") {
        Some(ValueRef::Document(o2)) => o2.get("_id").map(|id| id.to_value()),
        _ => None,
    };
    let result = match entry.get("op").and_then(ValueRef::as_str) {
        // An insert has no use for the id; for an update this was an upsert.
        Some("i") => StatementResult {
            n: 1,
            upserted: id(),
            ..StatementResult::default()
        },
        Some("u") => StatementResult {
            n: 1,
            n_modified: 1,
            ..StatementResult::default()
        },
        Some("d") => StatementResult {
            n: 1,
            ..StatementResult::default()
        },
        // The image that the statement of the next entry returned.
        Some("n") => StatementResult {
            value: match (entry.get("o"), entry.get("stmtId")) {
                (Some(ValueRef::Document(image)), Some(_)) => Some(image.to_document()),
                _ => return Ok(()),
            },
            ..StatementResult::default()
        },
        Some("c") => {
            session.txn = State::Committed(None);
            return Ok(());
        }
        _ => return Ok(()),
    };
    let mut remember = |stmt_id: Option<ValueRef<'_>>| {
        let stmt_id = stmt_id.and_then(safe_i64).unwrap_or(0);
        let stmt_id = i32::try_from(stmt_id).unwrap_or(0);
        let image = session.statements.remove(&stmt_id).and_then(|before| before.value);
        session.statements.insert(
            stmt_id,
            StatementResult {
                recovered: true,
                value: result.value.clone().or(image),
                ..result.clone()
            },
        );
    };
    match entry.get("stmtId") {
        // Inserts of measurements that share a bucket.
        Some(ValueRef::Array(stmt_ids)) => stmt_ids.iter().for_each(|stmt_id| remember(Some(stmt_id))),
        stmt_id => remember(stmt_id),
    }
    Ok(())
}
