//! One statement: what it runs on, and what it wants to happen besides its answer.

pub mod admission;
pub mod figures;
mod loan;
pub mod record;
pub mod relational;
pub mod settings;
pub mod transaction;

use crate::audit::changes::{self, Change};
use crate::connections::Slot;
use crate::database::Database;
use crate::observe::figures::Figures;
use crate::observe::latency::Class;
use crate::observe::op_kind::OpKind;
use crate::query_settings::Entry;
use crate::sessions::transaction::{Known, State, Transaction};
use crate::shape::{Described, Shape};
use crate::terms::Terms;
use crate::traffic::admitted::Admitted;
use crate::turns::Turns;
use nestor_exec::Interrupt;
use nestor_exec::write::oplog::Operation;
use nestor_model::{Namespace, Result, Timestamp};
use nestor_planner::FindQuery;
use nestor_planner::shape::Written;
use nestor_query::env::Caller;
use nestor_storage::{Guarantee, Lsn, View as _, WriteSet};
use relational::{Asserted, Relational};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One run of a statement.
pub struct Statement<'r> {
    /// The database.
    pub database: &'r Database,
    /// The part of its connection that others see.
    pub slot: &'r Slot,
    /// Session, transaction and concerns.
    pub terms: Terms<'r>,
    /// The kind of operation that it is counted as.
    pub op: OpKind,
    /// Says when to stop: killed, or out of time. Check it in every loop.
    pub interrupt: Interrupt,
    /// The time that a snapshot read reads, for its answer.
    pub at_cluster_time: Cell<Option<Timestamp>>,
    /// The open transaction that it belongs to.
    pub txn: RefCell<Option<Box<Transaction>>>,
    /// Where that transaction collects its operations.
    pub txn_operations: Option<Arc<Mutex<Vec<Operation>>>>,
    /// What its transaction is known by.
    pub txn_known: RefCell<Option<Arc<Known>>>,
    /// Its figures so far.
    pub figures: RefCell<Figures>,
    /// The operation that it is, as far as that tells.
    pub described: RefCell<Option<Described<'r>>>,
    /// When the running part of it began, or itself.
    pub statement_started: Cell<Instant>,
    /// It tried to write outside of transactions, whatever came of it.
    pub tried_write: Cell<bool>,
    /// Some of what it tried was committed.
    pub wrote: Cell<bool>,
    /// A fail point wants the connection closed once the statement has run.
    pub cut: Cell<bool>,
    /// The earlier answer of the transaction's commit, when this is a repetition of it.
    pub committed_before: Option<(Lsn, Timestamp)>,
    /// The user it is run for; `None` without access control.
    pub caller: Option<Arc<Caller>>,
    /// The settings for queries of its shape.
    pub query_settings: RefCell<Option<Arc<Entry>>>,
    /// The limits of traffic control that have let it in.
    pub admitted: RefCell<Admitted>,
    /// How it came, as the profiler shows it.
    pub protocol: &'static str,
    /// The changes of the catalog by its commits, if these are audited.
    pub catalog_changes: RefCell<Vec<Change>>,
    /// The time that it tells is that of its transaction's beginning.
    pub has_time_of_transaction: bool,
    /// Answers `$sql`; without it the stage is refused.
    pub relational: Option<&'r dyn Relational>,
    /// Knows what databases assert; without it none that asserts something is written to.
    pub asserted: Option<&'r dyn Asserted>,
    /// How long it waits for another transaction; without it as long as it may run.
    pub lock_timeout: Cell<Option<Duration>>,
    /// Bytes that building an index may hold, in place of the server's parameter.
    pub build_bytes_max: Option<usize>,
    /// The commit that reserved the numbers of sequences that it got, which nobody is told of before it is on disk.
    reserved: Cell<Option<Lsn>>,
    /// How its transaction's write set was lent to statements within it.
    loan: loan::Loan,
    /// The effects it wants besides its answer.
    pub effects: Effects,
}

/// A commit that the answer has to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The commit that is waited for.
    pub lsn: Lsn,
    /// The guarantee that it waits for.
    pub guarantee: Guarantee,
    /// How long to wait at most (`wtimeout`); afterwards the answer says that the write concern failed.
    pub timeout: Option<Duration>,
    /// The answer is that of a read, which tells nothing if the wait fails.
    pub is_read: bool,
}

/// The effects that a statement wants besides its answer.
#[derive(Debug, Default)]
pub struct Effects {
    /// Journal position the answer waits for.
    pub wait: Option<Wait>,
    /// Time of its own last write; the database's newest time otherwise.
    pub operation_time: Option<Timestamp>,
    /// The state that the transaction takes on, if it changes.
    pub transaction: Option<State>,
    /// The transaction is to be aborted although the answer is no error.
    pub abort: bool,
}

impl<'r> Statement<'r> {
    /// A statement that begins.
    pub fn new(
        database: &'r Database,
        slot: &'r Slot,
        terms: Terms<'r>,
        op: OpKind,
        (interrupt, started): (Interrupt, Instant),
    ) -> Self {
        Turns::begin(op.class() == Class::Writes);
        Self {
            database,
            slot,
            terms,
            op,
            interrupt,
            at_cluster_time: Cell::new(None),
            txn: RefCell::new(None),
            txn_operations: None,
            txn_known: RefCell::default(),
            figures: RefCell::default(),
            described: RefCell::default(),
            statement_started: Cell::new(started),
            tried_write: Cell::new(false),
            wrote: Cell::new(false),
            cut: Cell::new(false),
            committed_before: None,
            caller: None,
            query_settings: RefCell::default(),
            admitted: RefCell::default(),
            protocol: "op_msg",
            catalog_changes: RefCell::default(),
            has_time_of_transaction: false,
            relational: None,
            asserted: None,
            lock_timeout: Cell::default(),
            build_bytes_max: None,
            reserved: Cell::new(None),
            loan: loan::Loan::default(),
            effects: Effects::default(),
        }
    }

    /// The changes of the catalog in `ws`, if these are audited.
    pub(crate) fn audited_changes(&self, ws: &WriteSet) -> Vec<Change> {
        let (before, after) = (ws.snapshot().catalog(), ws.catalog());
        match Arc::ptr_eq(before, after) || !self.database.node.audit().is_on() {
            true => Vec::new(),
            false => changes::between(before, after),
        }
    }

    /// The database that names stand in.
    pub fn db(&self) -> &'r str {
        self.terms.db
    }

    /// It got numbers of a sequence with a commit.
    pub fn got_numbers(&self, lsn: Lsn) {
        self.reserved.set(self.reserved.get().max(Some(lsn)));
    }

    /// Waits until numbers of sequences that it got are on disk as given.
    ///
    /// Errors: that it is unknown whether they are.
    pub fn settle_numbers(&self) -> Result<()> {
        match self.reserved.take() {
            Some(lsn) => self.database.wait_durable(lsn),
            None => Ok(()),
        }
    }

    /// Tells those who watch which operation it is.
    pub fn describe(&self, shape: Shape<'r>) {
        *self.described.borrow_mut() = Some(Described { shape, query: None });
    }

    /// Tells those who watch which query finds the documents of the operation described before.
    pub fn describe_query(&self, query: FindQuery) {
        if let Some(described) = &mut *self.described.borrow_mut() {
            described.query = Some(query);
        }
    }

    /// Restricts a query to the indexes that a filter of its shape allows. True when there is one.
    pub fn apply_index_filter(&self, ns: &Namespace, query: &mut FindQuery, written: Written<'_>) -> bool {
        self.database.index_filters.apply(ns, query, written)
    }
}
