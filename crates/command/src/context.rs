//! What a running command has at hand.

use crate::connection::Connection;
use crate::dispatch::CommandSpec;
use crate::figures::Figures;
use crate::generic::Generic;
use crate::operation::shape::{Described, Shape};
use crate::profiler::record::Observed;
use crate::query_settings::Entry;
use crate::request::{Park, Sequence, Wait};
use crate::service::Service;
use crate::transaction::{State, Transaction};
use nestor_exec::Interrupt;
use nestor_model::{Document, RawDoc, RawDocBuf, Timestamp};
use nestor_planner::FindQuery;
use nestor_storage::Lsn;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// One run of one command.
pub struct Context<'r> {
    /// The service.
    pub service: &'r Service,
    /// The connection it came on.
    pub conn: &'r mut Connection,
    /// The command.
    pub spec: &'static CommandSpec,
    /// The whole command document.
    pub body: RawDoc<'r>,
    /// Document sequences.
    pub sequences: &'r [Sequence<'r>],
    /// Arguments every command takes.
    pub generic: Generic<'r>,
    /// Says when to stop: killed, or `maxTimeMS` over. Check it in every loop.
    pub interrupt: Interrupt,
    /// Came as OP_QUERY.
    pub legacy: bool,
    /// The client allows a stream of replies.
    pub exhaust_allowed: bool,
    /// What the command wants to happen besides its reply.
    pub after: After,
    /// The time that a snapshot read reads, for its reply.
    pub at_cluster_time: Cell<Option<Timestamp>>,
    /// The open transaction that the command belongs to.
    pub txn: RefCell<Option<Box<Transaction>>>,
    /// Where that transaction collects its operations.
    pub txn_operations: Option<Arc<Mutex<Vec<RawDocBuf>>>>,
    /// The operation that it prepared, as far as it says.
    pub described: RefCell<Option<Described<'r>>>,
    /// What is set for queries of its shape.
    pub query_settings: RefCell<Option<Arc<Entry>>>,
    /// What it counted.
    pub figures: RefCell<Figures>,
    /// When the running statement began, or the command.
    pub statement_started: Cell<Instant>,
    /// It tried to write outside of transactions, whatever came of it.
    pub tried_write: Cell<bool>,
    /// Some of what it tried was committed.
    pub wrote: Cell<bool>,
    /// A fail point wants the connection closed once the command has run.
    pub cut: Cell<bool>,
    /// What the transaction's commit answered before, when this is a repetition of it.
    pub committed_before: Option<(Lsn, Timestamp)>,
}

/// What a command wants to happen besides its reply.
#[derive(Debug, Default)]
pub struct After {
    /// Journal position the reply waits for.
    pub wait: Option<Wait>,
    /// Run again later.
    pub park: Option<Park>,
    /// What it waits for until then is the lock against writing.
    pub waits_for_lock: bool,
    /// The next request of an exhaust stream.
    pub exhaust: Option<RawDocBuf>,
    /// Close the connection.
    pub close: bool,
    /// Close the connection without a reply.
    pub hang_up: bool,
    /// `writeConcernError` to add to the reply. What stands there under `errorLabels` goes beside it.
    pub write_concern_error: Option<Document>,
    /// A fail point asked for the error.
    pub by_fail_point: bool,
    /// The error's labels are those that a fail point was given, none included.
    pub labels_given: bool,
    /// Time of the command's own last write; the service's newest time otherwise.
    pub operation_time: Option<Timestamp>,
    /// The command, if the profiler or the log may want it.
    pub observed: Option<Box<Observed>>,
    /// What becomes of the transaction.
    pub transaction: Option<State>,
    /// The transaction is to be aborted although the reply is no error.
    pub abort: bool,
}

impl<'r> Context<'r> {
    /// A run of `spec` that began at `started`.
    #[inline]
    pub fn new(
        service: &'r Service,
        conn: &'r mut Connection,
        spec: &'static CommandSpec,
        (body, sequences): (RawDoc<'r>, &'r [Sequence<'r>]),
        generic: Generic<'r>,
        interrupt: Interrupt,
        started: Instant,
    ) -> Self {
        Self {
            service,
            conn,
            spec,
            body,
            sequences,
            generic,
            interrupt,
            legacy: false,
            exhaust_allowed: false,
            after: After::default(),
            at_cluster_time: Cell::new(None),
            txn: RefCell::new(None),
            txn_operations: None,
            described: RefCell::default(),
            query_settings: RefCell::default(),
            figures: RefCell::default(),
            statement_started: Cell::new(started),
            tried_write: Cell::new(false),
            wrote: Cell::new(false),
            cut: Cell::new(false),
            committed_before: None,
        }
    }

    /// The database the command names.
    pub fn db(&self) -> &'r str {
        self.generic.db
    }

    /// The database and the collection that the command names, if it names a collection.
    pub fn named_collection(&self) -> Option<(&'r str, &'r str)> {
        self.spec.collection_of(self.generic.db, self.body)
    }

    /// Tells those who watch which operation the command is.
    pub fn describe(&self, shape: Shape<'r>) {
        *self.described.borrow_mut() = Some(Described { shape, query: None });
    }

    /// Tells those who watch which query finds the documents of the operation described before.
    pub fn describe_query(&self, query: FindQuery) {
        if let Some(described) = &mut *self.described.borrow_mut() {
            described.query = Some(query);
        }
    }
}
