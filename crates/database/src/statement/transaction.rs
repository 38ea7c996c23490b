//! Statements of transactions, and what a statement reads from, be it of a transaction or not.

use super::Statement;
use crate::concern::read::Level;
use crate::lock;
use crate::observe::transaction_counts::Committed;
use crate::parameters::Param;
use crate::sessions::transaction::{State, Transaction};
use nestor_exec::write::collection_locks::Shared;
use nestor_exec::write::oplog::Origin;
use nestor_model::{Result, Timestamp, bail};
use nestor_storage::{CollectionId, Lsn, Snapshot, View};
use std::cell::{Ref, RefCell};
use std::ops::DerefMut;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The state that a statement reads.
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
                // The statement hands out this variant only while it has a transaction.
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

impl Statement<'_> {
    /// The state that the statement reads: the open transaction, or a snapshot that satisfies the read concern.
    pub fn read_view(&self) -> Result<ReadView<'_>> {
        let txn = self.txn.borrow();
        if txn.is_some() {
            return Ok(ReadView::Transaction(txn));
        }
        drop(txn);
        Ok(ReadView::Snapshot(self.read_snapshot()?))
    }

    /// As [`Statement::read_view`], for looking at the catalog and the like: the newest state whatever the read concern.
    pub fn current_view(&self) -> ReadView<'_> {
        let txn = self.txn.borrow();
        if txn.is_some() {
            return ReadView::Transaction(txn);
        }
        drop(txn);
        ReadView::Snapshot(self.database.engine.snapshot())
    }

    /// In a read committed transaction, has the statement read the newest state, unless it runs within one that relies on what it has read.
    pub fn refresh(&self) {
        if self.terms.is_read_committed
            && !self.is_within()
            && let Some(txn) = self.txn.borrow_mut().as_mut()
        {
            txn.ws.refresh(self.database.engine.snapshot());
        }
    }

    /// When its transaction began, in milliseconds since the Unix epoch.
    pub(crate) fn transaction_started_ms(&self) -> Option<i64> {
        let txn = self.txn.borrow();
        txn.as_ref().map(|txn| txn.tally.facts().started_ms)
    }

    /// The number that its transaction is known by; without `gives` only if somebody was told of it before, or something was written.
    pub fn transaction_number(&self, gives: bool) -> Option<i64> {
        let known = self.txn_known.borrow();
        let known = known.as_ref()?;
        // Whoever writes has it meanwhile.
        let has_written = || match self.txn.try_borrow() {
            Ok(txn) => txn.as_ref().is_none_or(|txn| !txn.ws.is_empty()),
            Err(_) => true,
        };
        let is_given = known.is_given.fetch_or(gives, Relaxed);
        (gives || is_given || has_written()).then_some(known.number)
    }

    /// True while the statement runs within a transaction.
    pub fn in_transaction(&self) -> bool {
        self.terms.in_transaction
    }
}

/// Runs a statement of a transaction: takes the transaction out of its session, and puts it back if all went well.
/// `context` is whatever the statement is part of; `uses` tells which collections it uses in a state.
pub fn run<'r, C>(
    context: &mut C,
    is_commit: bool,
    uses: impl Fn(&C, &dyn View) -> Vec<CollectionId>,
    work: impl FnOnce(&mut C) -> Result<()>,
) -> Result<()>
where
    C: DerefMut<Target = Statement<'r>>,
{
    if context.database.options.replica_set.is_none() {
        bail!(
            IllegalOperation,
            "Transaction numbers are only allowed on a replica set member or mongos"
        );
    }
    run_anywhere(context, is_commit, uses, work)
}

/// As [`run`], on standalone servers too: that transactions need a replica set there is a rule of MongoDB's commands.
pub fn run_anywhere<'r, C>(
    context: &mut C,
    is_commit: bool,
    uses: impl Fn(&C, &dyn View) -> Vec<CollectionId>,
    work: impl FnOnce(&mut C) -> Result<()>,
) -> Result<()>
where
    C: DerefMut<Target = Statement<'r>>,
{
    let database = context.database;
    let (Some(lsid), Some(number)) = (context.terms.lsid, context.terms.txn_number) else {
        bail!(InvalidOptions, "a transaction needs a session and a transaction number");
    };
    let state = database.sessions.touch_with_history(lsid, &context.interrupt)?;
    let lifetime = lifetime(context);
    let mut session = lock(&state);
    let mut active = None;
    match &session.txn {
        State::Committed(last) if is_commit && session.txn_number == Some(number) => context.committed_before = *last,
        _ => {
            let counts = &database.node.transactions;
            let begin_at = |time| database.snapshot_at(Some(time), &context.interrupt);
            let limit_ms = database.node.parameters.number(Param::TransactionLockMillis);
            let at_most = u64::try_from(limit_ms).ok().map(Duration::from_millis);
            let share =
                |held: &mut Shared, view: &dyn View| held.share(&uses(context, view), at_most, &context.interrupt);
            let locks = (&database.node.gates.collections, share);
            let (terms, engine) = (&context.terms, &database.engine);
            let txn = session.take_transaction(lsid, terms, engine, begin_at, locks, (counts, lifetime))?;
            context.interrupt.limit_lifetime(txn.tally.facts().end());
            nestor_model::statement::stop_by(&context.interrupt);
            active = Some(txn.tally.activate());
            lock(&context.slot.operation).transaction = Some(txn.tally.facts().clone());
            context.txn_operations = Some(txn.operations.clone());
            context.txn_known = RefCell::new(Some(txn.known.clone()));
            context.txn = RefCell::new(Some(txn));
        }
    }
    let result = match context.terms.read_concern.after_cluster_time {
        Some(time) => database.await_time("afterClusterTime", time, &context.interrupt),
        None => Ok(()),
    }
    .and_then(|()| work(context));
    drop(active);
    let txn = context.txn.borrow_mut().take();
    if let Some(end) = context.effects.transaction.take() {
        session.txn = end;
    } else if context.committed_before.is_some() || (is_commit && txn.is_none() && result.is_ok()) {
        // A repeated commit changes nothing.
    } else if result.is_err() || context.effects.abort || txn.is_none() {
        session.txn = State::Aborted;
    } else {
        session.txn = State::Open(txn);
    }
    if !matches!(session.txn, State::Open(_)) {
        database.cursors.kill_transaction(lsid, number);
    }
    result
}

/// Aborts the open transaction that a statement belongs to, which does not run.
pub fn abort(statement: &Statement<'_>) {
    let (Some(lsid), Some(number)) = (statement.terms.lsid, statement.terms.txn_number) else {
        return;
    };
    let sessions = &statement.database.sessions;
    let Ok(state) = sessions.touch_with_history(lsid, &statement.interrupt) else {
        return;
    };
    let mut session = lock(&state);
    if session.txn_number == Some(number) && matches!(session.txn, State::Open(_)) {
        session.txn = State::Aborted;
        statement.database.cursors.kill_transaction(lsid, number);
    }
}

/// Ends the transaction of a statement that goes on, with what it wrote or without, and begins another one in its place. The statement ends when
/// the first one would have been open for too long.
///
/// Errors: 251 where there is none; those of [`commit`], after which there is none.
pub fn go_on(statement: &Statement<'_>, commits: bool) -> Result<Option<(Lsn, Timestamp)>> {
    let Some(txn) = statement.txn.borrow_mut().take() else {
        bail!(NoSuchTransaction, "the transaction is gone");
    };
    let (number, operations) = (txn.number, txn.operations.clone());
    let last = match commits {
        true => commit(statement, txn)?,
        false => {
            drop(txn);
            lock(&operations).clear();
            None
        }
    };
    let database = statement.database;
    let ws = match statement.terms.read_concern.level() {
        Level::Serializable => database.engine.begin_serializable(),
        _ => database.engine.begin_transaction(database.engine.snapshot()),
    };
    let level = statement.terms.read_concern.level_name();
    let counts = (&database.node.transactions, lifetime(statement));
    let mut next = Transaction::new((number, level), ws, database.node.gates.collections.begin(), counts);
    // Whoever writes for the statement notes it there.
    next.operations = operations;
    *statement.txn_known.borrow_mut() = Some(next.known.clone());
    *statement.txn.borrow_mut() = Some(next);
    Ok(last)
}

/// How long a transaction may be open.
fn lifetime(statement: &Statement<'_>) -> Duration {
    let secs = statement
        .database
        .node
        .parameters
        .number(Param::TransactionLifetimeSeconds);
    Duration::from_secs(u64::try_from(secs).unwrap_or(u64::MAX))
}

/// Commits a transaction: its operations become one oplog entry, or a chain of them.
pub fn commit(statement: &Statement<'_>, mut txn: Box<Transaction>) -> Result<Option<(Lsn, Timestamp)>> {
    statement.check_transaction(&mut txn)?;
    let mut operations = std::mem::take(&mut *lock(&txn.operations));
    if txn.ws.drops() {
        // That a collection is gone is told before the writes of its transaction, of which nothing is left.
        operations.retain(|operation| operation.is_in(&txn.ws));
    }
    let mut written = Committed {
        operations: operations.len(),
        bytes: 0,
    };
    if !operations.is_empty() {
        let session = statement
            .terms
            .lsid
            .map(|lsid| (lsid.to_document().to_raw(), txn.number));
        let origin = Origin { session, collect: None };
        written.bytes = origin.log_transaction(&mut txn.ws, operations, crate::clock::now_ms())?;
    }
    let Transaction { ws, tally, .. } = *txn;
    let mut last = None;
    if !ws.is_empty() {
        let _admitted = statement.database.node.gates.admission.enter(&statement.interrupt)?;
        let changes = statement.audited_changes(&ws);
        let commit = statement.database.engine.commit(ws)?;
        statement.catalog_changes.borrow_mut().extend(changes);
        last = Some((commit.lsn, commit.optime));
    }
    tally.commit(written);
    Ok(last)
}
