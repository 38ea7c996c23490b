//! Multi-document transactions: a write set that is kept open from command to command.
//!
//! A transaction reads the state at its start with its own writes on top, and commits all or nothing.
//! Between its statements it lies in its session; while one of them runs, in that [`Statement`](crate::statement::Statement). Any
//! error aborts it ([`crate::failures`]). Each statement reserves the keys it wrote, so a conflict comes out at once.
//! With read concern level `serializable` what it read is validated at its commit, too.
//!
//! Its writes make one oplog entry, `applyOps`, at commit, or several if they do not fit into one.

use crate::concern::read::Level;
use crate::lock;
use crate::observe::transaction_counts::{Tally, TransactionCounts, TransactionFacts};
use crate::session_id::Lsid;
use crate::sessions::Session;
use crate::terms::Terms;
use nestor_exec::write::collection_locks::{CollectionLocks, Shared};
use nestor_exec::write::oplog::Operation;
use nestor_model::{Error, ErrorCode, Result, Timestamp, bail};
use nestor_storage::{Engine, Lsn, Savepoint, Snapshot, View, WriteSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

/// The number that a transaction is known by on the server, larger than those of all that began before it: the clock says where they begin when
/// the server starts.
#[derive(Debug)]
pub struct Known {
    /// The number.
    pub number: i64,
    /// Somebody was told of it.
    pub is_given: AtomicBool,
}

impl Known {
    fn next() -> Arc<Self> {
        static NEXT: LazyLock<AtomicI64> = LazyLock::new(|| AtomicI64::new(crate::clock::now_ms() << 10));
        Arc::new(Self {
            number: NEXT.fetch_add(1, Relaxed),
            is_given: AtomicBool::new(false),
        })
    }
}

/// An open transaction.
pub struct Transaction {
    /// Its number within the session.
    pub number: i64,
    /// What it is known by on the server.
    pub known: Arc<Known>,
    /// Its write set, through which it also reads.
    pub ws: WriteSet,
    /// Its operations, for `applyOps`.
    pub operations: Arc<Mutex<Vec<Operation>>>,
    /// Its place in the counts.
    pub tally: Tally,
    /// The locks of the collections that it uses.
    pub collections: Shared,
    /// States to go back to, oldest first.
    pub savepoints: Savepoints,
}

/// Named states of a transaction to go back to.
#[derive(Default)]
pub struct Savepoints(Vec<Named>);

struct Named {
    name: String,
    state: Savepoint,
    operations: usize,
}

impl Transaction {
    /// One that begins now, with its number and the level that it reads with.
    pub(crate) fn new(
        (number, read_level): (i64, &'static str),
        ws: WriteSet,
        collections: Shared,
        (counts, lifetime): (&Arc<TransactionCounts>, Duration),
    ) -> Box<Self> {
        let facts = TransactionFacts {
            number,
            read_level,
            read_time: ws.snapshot().optime(),
            started: Instant::now(),
            started_ms: crate::clock::now_ms(),
            lifetime,
            active_micros: AtomicU64::new(0),
        };
        Box::new(Self {
            number,
            known: Known::next(),
            ws,
            operations: Arc::default(),
            tally: Tally::new(counts.clone(), facts),
            collections,
            savepoints: Savepoints::default(),
        })
    }

    /// Marks the present state. A name may stand several times: the newest is meant.
    pub fn set_savepoint(&mut self, name: &str) {
        let named = Named {
            name: name.to_owned(),
            state: self.ws.savepoint(),
            operations: lock(&self.operations).len(),
        };
        self.savepoints.0.push(named);
    }

    /// Takes back everything since a savepoint, and the savepoints after it; false when there is none of this name. The savepoint stays.
    pub fn roll_back_to(&mut self, name: &str) -> bool {
        let Some(at) = self.savepoints.0.iter().rposition(|named| named.name == name) else {
            return false;
        };
        for inner in self.savepoints.0.drain(at + 1..).rev() {
            self.ws.release(inner.state);
        }
        if let Some(named) = self.savepoints.0.pop() {
            self.ws.rollback_to(named.state);
            lock(&self.operations).truncate(named.operations);
        }
        self.set_savepoint(name);
        true
    }

    /// Forgets a savepoint and those after it, and keeps what was done; false when there is none of this name.
    pub fn release_savepoint(&mut self, name: &str) -> bool {
        let Some(at) = self.savepoints.0.iter().rposition(|named| named.name == name) else {
            return false;
        };
        for named in self.savepoints.0.drain(at..).rev() {
            self.ws.release(named.state);
        }
        true
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// The state of the newest transaction of a session.
#[derive(Debug, Default)]
pub enum State {
    /// There was none, or the newest number was a retryable write's.
    #[default]
    None,
    /// It is open. The box is empty while a command has the transaction.
    Open(Option<Box<Transaction>>),
    /// It was committed: what a repeated commit answers.
    Committed(Option<(Lsn, Timestamp)>),
    /// It was aborted.
    Aborted,
}

fn no_such(session: &Session, number: i64) -> Error {
    Error::new(
        ErrorCode::NoSuchTransaction,
        match session.txn_number {
            Some(newest) if newest == number => format!("Transaction with {{ txnNumber: {number} }} has been aborted."),
            Some(newest) => format!(
                "Given transaction number {number} does not match any in-progress transactions. The active transaction number is {newest}"
            ),
            None => format!(
                "Given transaction number {number} does not match any in-progress transactions. The active transaction number is -1"
            ),
        },
    )
}

impl Session {
    /// The transaction that a command belongs to: a new one, or the open one. `share` has it share the locks of the collections that
    /// the command uses in a state, before a new one looks at that state; an error of it aborts the transaction.
    ///
    /// Errors: those of `share`; 225 an older number, 251 no such transaction, 256 it was committed, 117 it was started already, 239 it is to
    /// read a time that is not kept.
    pub fn take_transaction(
        &mut self,
        lsid: Lsid,
        terms: &Terms<'_>,
        engine: &Engine,
        begin_at: impl FnOnce(Timestamp) -> Result<Snapshot>,
        (locks, share): (&Arc<CollectionLocks>, impl Fn(&mut Shared, &dyn View) -> Result<()>),
        (counts, lifetime): (&Arc<TransactionCounts>, Duration),
    ) -> Result<Box<Transaction>> {
        let number = terms.txn_number.unwrap_or(-1);
        self.check_number(lsid, number)?;
        if terms.start_transaction {
            if self.txn_number == Some(number) && !matches!(self.txn, State::None) {
                bail!(
                    ConflictingOperationInProgress,
                    "Cannot start a transaction at given transaction number {number} as a transaction with the same number is already in progress or has completed"
                );
            }
            if self.txn_number == Some(number) {
                bail!(
                    50911,
                    "Cannot start a transaction at given transaction number {number} as a retryable write with the same number has been made"
                );
            }
            let mut collections = locks.begin();
            let state = engine.snapshot();
            if let Err(error) = share(&mut collections, &state) {
                self.begin(number, State::Aborted);
                return Err(error);
            }
            let concern = &terms.read_concern;
            let ws = match (concern.level(), concern.at_cluster_time) {
                (Level::Serializable, _) => engine.begin_serializable(),
                (_, None) => engine.begin_transaction(engine.snapshot()),
                (_, Some(time)) => engine.begin_transaction(begin_at(time)?),
            };
            // A name may have come to be another collection's while it waited.
            if !Arc::ptr_eq(state.catalog(), ws.catalog())
                && let Err(error) = share(&mut collections, &ws)
            {
                self.begin(number, State::Aborted);
                return Err(error);
            }
            self.begin(number, State::Open(None));
            let level = terms.read_concern.level_name();
            return Ok(Transaction::new((number, level), ws, collections, (counts, lifetime)));
        }
        if self.txn_number != Some(number) {
            return Err(no_such(self, number));
        }
        self.expire();
        match &mut self.txn {
            State::Open(txn) => match txn.take() {
                Some(mut txn) => match share(&mut txn.collections, &txn.ws) {
                    Ok(()) => Ok(txn),
                    Err(error) => {
                        self.txn = State::Aborted;
                        Err(error)
                    }
                },
                None => Err(no_such(self, number)),
            },
            State::Committed(_) => bail!(
                TransactionCommitted,
                "Transaction with {{ txnNumber: {number} }} has been committed."
            ),
            State::Aborted | State::None => Err(no_such(self, number)),
        }
    }

    /// Goes on to a new transaction.
    fn begin(&mut self, number: i64, txn: State) {
        self.txn_number = Some(number);
        self.statements.clear();
        self.txn = txn;
    }

    fn check_number(&self, lsid: Lsid, number: i64) -> Result<()> {
        match self.txn_number {
            Some(newest) if number < newest => bail!(
                TransactionTooOld,
                "Cannot start transaction with {{ txnNumber: {number} }} on session {} because a newer transaction with txnNumber {newest} has already started on this session.",
                lsid.id
            ),
            _ => Ok(()),
        }
    }

    /// Aborts the open transaction when it has been open for too long.
    pub fn expire(&mut self) {
        if let State::Open(Some(txn)) = &self.txn {
            if txn.tally.facts().is_too_old() {
                self.txn = State::Aborted;
            }
        }
    }
}
