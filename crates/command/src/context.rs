//! What a running command has at hand.

use crate::connection::{Caller, Connection};
use crate::facts::Facts;
use crate::generic::Generic;
use crate::request::{Park, Sequence};
use crate::service::Service;
use nestor_database::audit::Event;
use nestor_database::rights::Privilege;
use nestor_database::statement::record::Observed;
use nestor_database::statement::relational::Asserted;
use nestor_database::statement::{Effects, Statement};
use nestor_exec::Interrupt;
use nestor_model::{Document, RawDoc, RawDocBuf};
use std::ops::{Deref, DerefMut};
use std::time::Instant;

/// One run of one command: a statement, and the words that ask for it.
pub struct Context<'r> {
    /// The service.
    pub service: &'r Service,
    /// The connection it came on.
    pub conn: Caller<'r>,
    /// The statement.
    pub statement: Statement<'r>,
    /// The command.
    pub spec: &'static Facts,
    /// The whole command document.
    pub body: RawDoc<'r>,
    /// Document sequences.
    pub sequences: &'r [Sequence<'r>],
    /// Arguments every command takes, but for the statement's.
    pub generic: Generic<'r>,
    /// Came as OP_QUERY.
    pub legacy: bool,
    /// The client allows a stream of replies.
    pub exhaust_allowed: bool,
    /// The effects that the command wants besides its reply.
    pub after: After,
    /// The rights that it was allowed by, where its words had to be understood to know them.
    pub privileges: Vec<Privilege>,
}

impl<'r> Deref for Context<'r> {
    type Target = Statement<'r>;

    fn deref(&self) -> &Statement<'r> {
        &self.statement
    }
}

impl<'r> DerefMut for Context<'r> {
    fn deref_mut(&mut self) -> &mut Statement<'r> {
        &mut self.statement
    }
}

/// The effects that a command wants besides its reply.
#[derive(Debug, Default)]
pub struct After {
    /// What the statement wants.
    pub effects: Effects,
    /// Run again later.
    pub park: Option<Park>,
    /// Until then it waits for the lock against writing.
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
    /// What goes to the audit log.
    pub audited: Vec<Event>,
    /// The command, if the profiler or the log may want it.
    pub observed: Option<Box<Observed>>,
}

impl<'r> Context<'r> {
    /// A run of `spec` that began at `started`.
    #[inline]
    pub fn new(
        service: &'r Service,
        conn: &'r mut Connection,
        spec: &'static Facts,
        (body, sequences): (RawDoc<'r>, &'r [Sequence<'r>]),
        mut generic: Generic<'r>,
        interrupt: Interrupt,
        started: Instant,
    ) -> Self {
        let conn = conn.caller();
        let terms = std::mem::take(&mut generic.terms);
        let mut statement = Statement::new(&service.database, conn.slot, terms, spec.op, (interrupt, started));
        statement.relational = service.relational.as_deref();
        statement.asserted = statement.relational.map(|relational| relational as &dyn Asserted);
        Self {
            statement,
            service,
            conn,
            spec,
            body,
            sequences,
            generic,
            legacy: false,
            exhaust_allowed: false,
            after: After::default(),
            privileges: Vec::new(),
        }
    }

    /// The database and the collection that the command names, if it names a collection.
    pub fn named_collection(&self) -> Option<(&'r str, &'r str)> {
        self.spec.collection_of(self.db(), self.body)
    }
}
