//! Multi-document transactions: a write set that is kept open from command to command.
//!
//! A transaction reads the state at its start with its own writes on top, and commits all or nothing.
//! Between its commands it lies in its session; while one of them runs, in that command's [`Context`]. Any
//! error aborts it ([`crate::failures`]). Each statement reserves the keys it wrote, so a conflict comes out at once.
//!
//! Its writes make one oplog entry, `applyOps`, at commit.

use crate::Context;
use crate::facts::Flags;
use crate::generic::{Generic, Lsid};
use crate::parameters::Param;
use crate::sessions::Session;
use crate::transaction_counts::{Committed, Tally, TransactionCounts, TransactionFacts};
use nestor_exec::write::oplog::Origin;
use nestor_model::{Error, ErrorCode, RawDocBuf, RawWriter, Result, Timestamp, bail};
use nestor_storage::{Engine, Lsn, Snapshot, View, WriteSet};
use std::cell::{Ref, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An open transaction.
pub struct Transaction {
    /// Its number within the session.
    pub number: i64,
    /// What it read and wrote.
    pub ws: WriteSet,
    /// Its operations, for `applyOps`.
    pub operations: Arc<Mutex<Vec<RawDocBuf>>>,
    /// Its place in the counts.
    pub tally: Tally,
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// What became of the newest transaction of a session.
#[derive(Debug, Default)]
pub enum State {
    /// There was none, or the newest number was a retryable write's.
    #[default]
    None,
    /// It is open. Empty while a command has it.
    Open(Option<Box<Transaction>>),
    /// It was committed: what a repeated commit answers.
    Committed(Option<(Lsn, Timestamp)>),
    /// It was aborted.
    Aborted,
}

/// What a command reads from.
pub enum ReadView<'c> {
    /// A state of the store.
    Snapshot(Snapshot),
    /// The open transaction.
    Transaction(Ref<'c, Option<Box<Transaction>>>),
}

impl ReadView<'_> {
    /// The view.
    pub fn view(&self) -> &dyn View {
        match self {
            Self::Snapshot(snapshot) => snapshot,
            Self::Transaction(txn) => match &**txn {
                Some(txn) => &txn.ws,
                // The context hands out this variant only while it has a transaction.
                None => unreachable!("a transaction's view outlives the transaction"),
            },
        }
    }

    /// The snapshot, outside of transactions.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            Self::Snapshot(snapshot) => Some(snapshot),
            Self::Transaction(_) => None,
        }
    }
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
    /// The transaction that a command belongs to: a new one, or the open one.
    ///
    /// Errors: 225 an older number, 251 no such transaction, 256 it was committed, 117 it was started already.
    pub fn take_transaction(
        &mut self,
        lsid: Lsid,
        generic: &Generic<'_>,
        engine: &Engine,
        counts: &Arc<TransactionCounts>,
        lifetime: Duration,
    ) -> Result<Box<Transaction>> {
        let number = generic.txn_number.unwrap_or(-1);
        self.check_number(lsid, number)?;
        if generic.start_transaction {
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
            self.txn_number = Some(number);
            self.statements.clear();
            self.txn = State::Open(None);
            let snapshot = engine.snapshot();
            let facts = TransactionFacts {
                number,
                read_level: generic.read_concern.level_name(),
                read_time: snapshot.optime(),
                started: Instant::now(),
                started_ms: crate::clock::now_ms(),
                lifetime,
                active_micros: AtomicU64::new(0),
            };
            return Ok(Box::new(Transaction {
                number,
                ws: engine.begin_transaction(snapshot),
                operations: Arc::default(),
                tally: Tally::new(counts.clone(), facts),
            }));
        }
        if self.txn_number != Some(number) {
            return Err(no_such(self, number));
        }
        self.expire();
        match &mut self.txn {
            State::Open(txn) => match txn.take() {
                Some(txn) => Ok(txn),
                None => Err(no_such(self, number)),
            },
            State::Committed(_) => bail!(
                TransactionCommitted,
                "Transaction with {{ txnNumber: {number} }} has been committed."
            ),
            State::Aborted | State::None => Err(no_such(self, number)),
        }
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

impl Context<'_> {
    /// What the command reads from: the open transaction, or a snapshot that satisfies the read concern.
    pub fn read_view(&self) -> Result<ReadView<'_>> {
        let txn = self.txn.borrow();
        if txn.is_some() {
            return Ok(ReadView::Transaction(txn));
        }
        drop(txn);
        Ok(ReadView::Snapshot(self.read_snapshot()?))
    }

    /// As [`Context::read_view`], for looking at the catalog and the like: the newest state whatever the read concern.
    pub fn current_view(&self) -> ReadView<'_> {
        let txn = self.txn.borrow();
        if txn.is_some() {
            return ReadView::Transaction(txn);
        }
        drop(txn);
        ReadView::Snapshot(self.service.engine.snapshot())
    }

    /// True while the command runs within a transaction.
    pub fn in_transaction(&self) -> bool {
        self.generic.in_transaction
    }
}

/// Runs a command of a transaction: takes the transaction out of its session, and puts it back if all went well.
pub fn run(context: &mut Context<'_>, writer: &mut RawWriter) -> Result<()> {
    if context.service.options.replica_set.is_none() {
        bail!(
            IllegalOperation,
            "Transaction numbers are only allowed on a replica set member or mongos"
        );
    }
    let (Some(lsid), Some(number)) = (context.generic.lsid, context.generic.txn_number) else {
        bail!(InvalidOptions, "a transaction needs a session and a transaction number");
    };
    let state = context.service.sessions.touch_with_history(lsid, &context.interrupt)?;
    let lifetime_secs = context
        .service
        .node
        .parameters
        .number(Param::TransactionLifetimeSeconds);
    let lifetime = Duration::from_secs(u64::try_from(lifetime_secs).unwrap_or(u64::MAX));
    let mut session = crate::lock(&state);
    let is_commit = context.spec.flags.has(Flags::COMMITS);
    let mut active = None;
    match &session.txn {
        State::Committed(last) if is_commit && session.txn_number == Some(number) => context.committed_before = *last,
        _ => {
            let txn = session.take_transaction(
                lsid,
                &context.generic,
                &context.service.engine,
                &context.service.node.transactions,
                lifetime,
            )?;
            context.interrupt.limit_lifetime(txn.tally.facts().end());
            active = Some(txn.tally.activate());
            crate::lock(&context.conn.slot.operation).transaction = Some(txn.tally.facts().clone());
            context.txn_operations = Some(txn.operations.clone());
            context.txn = RefCell::new(Some(txn));
        }
    }
    let result = match context.generic.read_concern.after_cluster_time {
        Some(time) => context.service.await_time(time, &context.interrupt),
        None => Ok(()),
    }
    .and_then(|()| (context.spec.run)(context, writer));
    drop(active);
    let txn = context.txn.borrow_mut().take();
    if let Some(end) = context.after.transaction.take() {
        session.txn = end;
    } else if context.committed_before.is_some() || (is_commit && txn.is_none() && result.is_ok()) {
        // A repeated commit changes nothing.
    } else if result.is_err() || context.after.abort || txn.is_none() {
        session.txn = State::Aborted;
    } else {
        session.txn = State::Open(txn);
    }
    if !matches!(session.txn, State::Open(_)) {
        context.service.cursors.kill_transaction(lsid, number);
    }
    result
}

/// Aborts the open transaction that a command belongs to, which does not run.
pub fn abort(context: &Context<'_>) {
    let (Some(lsid), Some(number)) = (context.generic.lsid, context.generic.txn_number) else {
        return;
    };
    let Ok(state) = context.service.sessions.touch_with_history(lsid, &context.interrupt) else {
        return;
    };
    let mut session = crate::lock(&state);
    if session.txn_number == Some(number) && matches!(session.txn, State::Open(_)) {
        session.txn = State::Aborted;
        context.service.cursors.kill_transaction(lsid, number);
    }
}

/// Commits a transaction: its operations become one oplog entry.
pub fn commit(context: &Context<'_>, mut txn: Box<Transaction>) -> Result<Option<(Lsn, Timestamp)>> {
    let operations = std::mem::take(&mut *crate::lock(&txn.operations));
    let written = Committed {
        operations: operations.len(),
        bytes: operations.iter().map(|operation| operation.as_raw().len()).sum(),
    };
    if !operations.is_empty() {
        let mut apply = RawWriter::new();
        apply.begin_array("applyOps");
        for (i, operation) in operations.iter().enumerate() {
            apply.append_index(i, operation.as_raw());
        }
        apply.end();
        let apply = apply.into_doc();
        let session = context
            .generic
            .lsid
            .map(|lsid| (lsid.to_document().to_raw(), txn.number));
        let origin = Origin { session, collect: None };
        let entry = origin.command("admin", None, &apply.into(), crate::clock::now_ms());
        txn.ws.oplog(entry)?;
    }
    let Transaction { ws, tally, .. } = *txn;
    let mut last = None;
    if !ws.is_empty() {
        let _admitted = context.service.node.gates.admission.enter(&context.interrupt)?;
        let commit = context.service.engine.commit(ws)?;
        last = Some((commit.lsn, commit.optime));
    }
    tally.commit(written);
    Ok(last)
}
