//! Logical sessions: when they were last used, and what their retryable writes did.
//!
//! A session remembers the statements of its newest transaction number only, as MongoDB does: a client
//! retries a command before it sends the next one.

pub mod history;
mod noted;
pub mod transaction;

use self::transaction::State;
use crate::lock;
use crate::observe::transaction_counts::TransactionFacts;
use crate::session_id::Lsid;
use nestor_exec::interrupt::{self, Interrupt};
use nestor_model::{Document, Result, Value, bail};
use std::collections::{HashMap, HashSet, hash_map};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A session that was not used for so long is forgotten (`localLogicalSessionTimeoutMinutes`).
pub const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Most sessions kept at one time.
pub const SESSIONS_MAX: usize = 1_000_000;
/// How often who waits for the history looks whether it should go on.
const LOOK: Duration = Duration::from_millis(10);

/// The result of a statement of a retryable write, so that a retry gets the same answer.
#[derive(Clone, Debug, Default)]
pub struct StatementResult {
    /// Documents matched, inserted or deleted.
    pub n: i64,
    /// Documents changed.
    pub n_modified: i64,
    /// `_id` of the document an upsert inserted.
    pub upserted: Option<Value>,
    /// The document that findAndModify returned; null when it returned none. If it was read back, the whole document, of which
    /// the command returns what it asks for.
    pub value: Option<Document>,
    /// Read back from the oplog after a restart.
    pub recovered: bool,
}

/// State of one session. Whoever runs a write under a transaction number holds its lock meanwhile.
#[derive(Debug, Default)]
pub struct Session {
    /// Newest transaction number seen.
    pub txn_number: Option<i64>,
    /// The transaction of that number, if it was one.
    pub txn: State,
    /// Results of its retryable statements.
    pub statements: HashMap<i32, StatementResult>,
}

impl Session {
    /// Begins or goes on with the retryable write `txn_number`.
    ///
    /// Errors: 225 when a newer one was seen.
    pub fn retryable(&mut self, lsid: Lsid, txn_number: i64) -> Result<()> {
        match self.txn_number {
            Some(newest) if txn_number < newest => bail!(
                TransactionTooOld,
                "Retryable write with txnNumber {txn_number} is prohibited on session {} because a newer retryable write with txnNumber {newest} has already started on this session.",
                lsid.id
            ),
            Some(newest) if txn_number == newest && !matches!(self.txn, State::None) => bail!(
                IncompleteTransactionHistory,
                "Cannot retry a retryable write that has been converted into a transaction"
            ),
            Some(newest) if txn_number == newest => Ok(()),
            _ => {
                self.txn_number = Some(txn_number);
                self.statements.clear();
                self.txn = State::None;
                Ok(())
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    /// What it did under a transaction number; none of a session that never had one.
    state: Option<Arc<Mutex<Session>>>,
    last_used: Instant,
}

type Known = HashMap<Lsid, Entry>;

/// The entry of a session that is used now, made if needed.
///
/// Errors: 261 when there are too many.
fn used(known: &mut Known, lsid: Lsid, now: Instant) -> Result<&mut Entry> {
    let is_full = known.len() >= SESSIONS_MAX;
    match known.entry(lsid) {
        hash_map::Entry::Occupied(entry) => {
            let entry = entry.into_mut();
            entry.last_used = now;
            Ok(entry)
        }
        // Those that nobody uses any more are swept each second.
        hash_map::Entry::Vacant(_) if is_full => bail!(
            TooManyLogicalSessions,
            "cannot add session into the cache: too many sessions"
        ),
        hash_map::Entry::Vacant(entry) => Ok(entry.insert(Entry {
            state: None,
            last_used: now,
        })),
    }
}

/// The states of the sessions that have one.
fn states(known: &Known) -> impl Iterator<Item = (&Lsid, &Arc<Mutex<Session>>)> {
    known
        .iter()
        .filter_map(|(lsid, entry)| Some((lsid, entry.state.as_ref()?)))
}

/// The sessions of a service.
#[derive(Debug, Default)]
pub struct Sessions {
    known: Mutex<Known>,
    /// Whether what sessions did before the start is known again. It is set under the lock beside it.
    is_recovered: AtomicBool,
    recovering: Mutex<()>,
    recovered: Condvar,
}

impl Sessions {
    /// Notes that a session was used at `now`.
    ///
    /// Errors: 261 when there are too many.
    pub fn note(&self, lsid: Lsid, now: Instant) -> Result<()> {
        used(&mut lock(&self.known), lsid, now).map(|_| ())
    }

    /// Notes that a session was used and returns its state, making it if needed.
    ///
    /// Errors: 261 when there are too many.
    pub fn touch(&self, lsid: Lsid) -> Result<Arc<Mutex<Session>>> {
        let mut known = lock(&self.known);
        let entry = used(&mut known, lsid, Instant::now())?;
        Ok(entry.state.get_or_insert_default().clone())
    }

    /// The history of sessions before the start has been read.
    pub fn set_recovered(&self) {
        let guard = lock(&self.recovering);
        self.is_recovered.store(true, Ordering::Release);
        drop(guard);
        self.recovered.notify_all();
    }

    /// As [`Sessions::touch`], after the history of all sessions was read back. That a session is known says nothing while
    /// the history is being read: it is read from its oldest entry on, and the newest ones are those that are retried.
    ///
    /// Errors: those of [`Sessions::touch`]; the operation is to stop.
    pub fn touch_with_history(&self, lsid: Lsid, interrupt: &Interrupt) -> Result<Arc<Mutex<Session>>> {
        if !self.is_recovered.load(Ordering::Acquire) {
            self.await_history(interrupt)?;
        }
        self.touch(lsid)
    }

    #[cold]
    fn await_history(&self, interrupt: &Interrupt) -> Result<()> {
        interrupt::while_waiting(|| {
            loop {
                let guard = lock(&self.recovering);
                if self.is_recovered.load(Ordering::Acquire) {
                    return Ok(());
                }
                let waited = self.recovered.wait_timeout(guard, LOOK);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                interrupt.check()?;
            }
        })
    }

    /// Aborts transactions that have been open for too long, so that nothing holds on to old states for ever.
    pub fn expire_transactions(&self) {
        let states: Vec<_> = states(&lock(&self.known)).map(|(_, state)| state.clone()).collect();
        for state in states {
            // A session that is locked is in use.
            if let Ok(mut session) = state.try_lock() {
                session.expire();
            }
        }
    }

    /// The open transactions that no command is at.
    pub fn idle_transactions(&self) -> Vec<(Lsid, Arc<TransactionFacts>)> {
        let known: Vec<_> = {
            let known = lock(&self.known);
            states(&known).map(|(lsid, state)| (*lsid, state.clone())).collect()
        };
        let idle = known.into_iter().filter_map(|(lsid, state)| {
            // A session that is locked is in use.
            match &state.try_lock().ok()?.txn {
                State::Open(Some(txn)) => Some((lsid, txn.tally.facts().clone())),
                _ => None,
            }
        });
        idle.collect()
    }

    /// Sessions that have a transaction number: of a retryable write or of a transaction.
    pub fn with_numbers(&self) -> usize {
        let known = lock(&self.known);
        // A session that is locked runs a numbered command.
        let has_number = |state: &Arc<Mutex<Session>>| match state.try_lock() {
            Ok(session) => session.txn_number.is_some(),
            Err(_) => true,
        };
        states(&known).filter(|(_, state)| has_number(state)).count()
    }

    /// Forgets a session.
    pub fn end(&self, lsid: &Lsid) {
        lock(&self.known).remove(lsid);
    }

    /// Forgets the sessions that `which` picks.
    pub fn end_those(&self, which: impl Fn(&Lsid) -> bool) {
        lock(&self.known).retain(|lsid, _| !which(lsid));
    }

    /// Forgets sessions that were not used for too long; returns them.
    pub fn sweep(&self) -> HashSet<Lsid> {
        let now = Instant::now();
        let is_old = |_: &Lsid, entry: &mut Entry| now.saturating_duration_since(entry.last_used) >= TIMEOUT;
        lock(&self.known).extract_if(is_old).map(|(lsid, _)| lsid).collect()
    }

    /// The known sessions, and how long ago each was used.
    pub fn all(&self) -> Vec<(Lsid, Duration)> {
        let now = Instant::now();
        let known = lock(&self.known);
        known
            .iter()
            .map(|(lsid, entry)| (*lsid, now.saturating_duration_since(entry.last_used)))
            .collect()
    }

    /// Number of known sessions.
    pub fn len(&self) -> usize {
        lock(&self.known).len()
    }

    /// True when none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uuid::Uuid;
    use std::sync::mpsc;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Sessions whose history is being read, and a command in a thread that wants one of them.
    fn waiting(lsid: Lsid, interrupt: Interrupt) -> (Arc<Sessions>, mpsc::Receiver<Result<Option<i64>>>) {
        let sessions = Arc::new(Sessions::default());
        // The number that the reader knows after the session's oldest entry.
        lock(&sessions.touch(lsid).expect("room")).txn_number = Some(1);
        let (answer, answers) = mpsc::channel();
        let shared = sessions.clone();
        std::thread::spawn(move || {
            let touched = shared.touch_with_history(lsid, &interrupt);
            answer.send(touched.map(|state| lock(&state).txn_number))
        });
        (sessions, answers)
    }

    #[test]
    fn a_session_that_is_known_in_part_waits_for_all_of_its_history() {
        let lsid = Lsid::of_nobody(Uuid([1; 16]));
        let (sessions, answers) = waiting(lsid, Interrupt::default());
        let early = answers.recv_timeout(Duration::from_millis(100));
        assert!(early.is_err(), "it went on with an old state: {early:?}");
        lock(&sessions.touch(lsid).expect("room")).txn_number = Some(2);
        sessions.set_recovered();
        let newest = answers.recv_timeout(PATIENCE).expect("an answer").expect("no error");
        assert_eq!(newest, Some(2));
    }

    #[test]
    fn who_waits_for_the_history_can_be_stopped() {
        let interrupt = Interrupt::new(Arc::default(), Some(Instant::now()));
        let (_sessions, answers) = waiting(Lsid::of_nobody(Uuid([1; 16])), interrupt);
        let stopped = answers
            .recv_timeout(PATIENCE)
            .expect("an answer")
            .expect_err("its time is over");
        assert_eq!(stopped.code().number(), 50);
    }

    #[test]
    fn a_session_that_is_only_used_has_no_state() {
        let (plain, numbered) = (Lsid::of_nobody(Uuid([1; 16])), Lsid::of_nobody(Uuid([2; 16])));
        let sessions = Sessions::default();
        sessions.note(plain, Instant::now()).expect("room");
        lock(&sessions.touch(numbered).expect("room")).txn_number = Some(1);
        sessions.note(numbered, Instant::now()).expect("room");
        assert_eq!((sessions.len(), sessions.with_numbers()), (2, 1));
        assert_eq!(states(&lock(&sessions.known)).count(), 1);
        sessions.end_those(|lsid| *lsid == numbered);
        assert_eq!((sessions.len(), sessions.with_numbers()), (1, 0));
        sessions.end(&plain);
        assert!(sessions.is_empty());
    }

    #[test]
    fn a_newer_number_forgets_and_an_older_one_is_refused() {
        let lsid = Lsid::of_nobody(Uuid([1; 16]));
        let sessions = Sessions::default();
        let state = sessions.touch(lsid).expect("room");
        let mut session = lock(&state);
        session.retryable(lsid, 5).expect("first");
        session.statements.insert(0, StatementResult::default());
        session.retryable(lsid, 5).expect("retry");
        assert_eq!(session.statements.len(), 1);
        session.retryable(lsid, 6).expect("newer");
        assert!(session.statements.is_empty());
        assert_eq!(session.retryable(lsid, 5).expect_err("older").code().number(), 225);
    }
}
