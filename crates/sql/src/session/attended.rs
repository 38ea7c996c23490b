//! A statement of a connection as others see it: what it is, how long it may run, what it costs.

use super::{Session, login};
use crate::current::{self, Current};
use crate::error::error;
use crate::parse::own::{self, Own};
use crate::parse::roles::Roles;
use crate::run::procedures;
use crate::run::tables::SessionFacts;
use crate::settings;
use crate::write;
use nestor_database::Database;
use nestor_database::connections::Slot;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::statement::Statement;
use nestor_database::statement::record::{Ending, Observed};
use nestor_database::terms::Terms;
use nestor_exec::Interrupt;
use nestor_model::interrupt::afterwards;
use nestor_model::namespace::ADMIN;
use nestor_model::statement::{Manners, mannered, under};
use nestor_model::{ErrorCode, RawWriter, Result, ValueRef, doc};
use sqlparser::ast::Statement as Ast;
use std::time::Instant;

/// Characters of a statement that others are shown.
const TEXT_SHOWN_MAX: usize = 4096;

/// Bytes of what others are shown beside the text and the name of the database.
const SHOWN_BYTES: usize = 32;

/// The work of a statement.
pub(super) type Work<'w> = &'w mut dyn FnMut(&mut Statement<'_>, &SessionFacts) -> Result<()>;

/// Has `run` run `work`, once, and gives what it gave: whatever kinds of work there are, what runs them is compiled once.
pub(super) fn once<T>(
    work: impl FnOnce(&mut Statement<'_>, &SessionFacts) -> Result<T>,
    run: impl FnOnce(Work<'_>) -> Result<()>,
) -> Result<T> {
    let (mut work, mut out) = (Some(work), None);
    run(&mut |statement, facts| {
        if let Some(work) = work.take() {
            out = Some(work(statement, facts)?);
        }
        Ok(())
    })?;
    out.ok_or_else(|| error("XX000", "a statement did not run"))
}

impl Session {
    /// Runs `work` as a statement of this connection, and of its transaction if it is in one. Gives what `work` gave.
    pub(super) fn statement<T>(
        &mut self,
        database: &Database,
        text: &str,
        kind: OpKind,
        work: impl FnOnce(&Statement<'_>, &SessionFacts) -> Result<T>,
    ) -> Result<T> {
        once(
            |statement: &mut Statement<'_>, facts: &SessionFacts| work(statement, facts),
            |work| self.attended(database, text, kind, work),
        )
    }

    /// As [`statement`](Self::statement), compiled once for all that is done so.
    fn attended(&mut self, database: &Database, text: &str, kind: OpKind, work: Work<'_>) -> Result<()> {
        self.act(database)?;
        let result = match self.block.is_some() {
            true => self.within_block(database, text, kind, work),
            false => {
                let terms = Terms {
                    db: &self.facts.database,
                    is_read_committed: true,
                    ..Terms::default()
                };
                attend((&self.slot, &self.facts), database, text, (terms, kind), |statement| {
                    work(statement, &self.facts)
                })
            }
        };
        self.audit(database, text, result.as_ref().err().map(nestor_model::Error::code));
        result.map_err(|e| crate::error::placed(e, text))
    }

    /// Tells the audit log that roles or their rights were changed.
    ///
    /// Errors: 42601.
    pub(super) fn audit_roles(&self, database: &Database, text: &str, ast: &Ast) -> Result<()> {
        let Some(Own::Roles(what)) = own::of(ast)? else {
            return Ok(());
        };
        let action = match &what {
            Roles::Create { .. } => "createUser",
            Roles::Alter { .. } | Roles::Settings { .. } => "updateUser",
            Roles::Drop { .. } => "dropUser",
            Roles::Privileges { gives: true, .. } => "grantPrivilegesToRole",
            Roles::Privileges { .. } | Roles::DropOwned { .. } => "revokePrivilegesFromRole",
            Roles::Members { gives: true, .. } => "grantRolesToUser",
            Roles::Members { .. } | Roles::Other(_) => "revokeRolesFromUser",
        };
        let param = doc! { "db": ADMIN, "sql": text };
        login::record(
            database,
            &self.slot,
            self.peers(),
            self.login.as_ref(),
            (action, param, None),
        );
        Ok(())
    }

    /// Tells the audit log that a statement was refused or, if that is recorded, allowed.
    fn audit(&self, database: &Database, text: &str, failed: Option<ErrorCode>) {
        let code = match failed {
            Some(ErrorCode::Unauthorized) => Some(ErrorCode::Unauthorized),
            None if database.node.audit().records_success() => None,
            _ => return,
        };
        let param = doc! { "command": "sql", "ns": self.facts.database.as_str(), "args": doc! { "sql": text } };
        let login = self.login.as_ref();
        login::record(database, &self.slot, self.peers(), login, ("authCheck", param, code));
    }
}

/// Runs `work` as a statement that others see, that can be stopped, and whose memory is counted.
pub(super) fn attend<'r>(
    (slot, facts): (&'r Slot, &SessionFacts),
    database: &'r Database,
    text: &str,
    (terms, kind): (Terms<'r>, OpKind),
    work: impl FnOnce(&mut Statement<'r>) -> Result<()>,
) -> Result<()> {
    procedures::begin();
    let started = Instant::now();
    // So many characters, or all of them.
    let longer = (text.len() > TEXT_SHOWN_MAX).then(|| text.char_indices().nth(TEXT_SHOWN_MAX));
    let end = longer.flatten().map_or(text.len(), |(end, _)| end);
    let mut shown = RawWriter::with_capacity(end + facts.database.len() + SHOWN_BYTES);
    shown.append("sql", ValueRef::String(&text[..end]));
    shown.append("$db", ValueRef::String(&facts.database));
    let shown = shown.into_doc();
    let is_of_block = terms.in_transaction;
    let opid = database.connections.next_operation();
    slot.start_operation("sql", opid, shown.as_raw(), started);
    database.node.counters.operations.count(kind.counter(), 1);
    let limit = |name: &str| settings::time(&facts.settings, name);
    let lock_timeout = limit("lock_timeout");
    let deadline = limit("statement_timeout").map(|most| facts.since.unwrap_or(started) + most);
    let interrupt = Interrupt::new(slot.kill.clone(), deadline);
    let mut statement = Statement::new(database, slot, terms, kind, (interrupt.clone(), started));
    statement.caller = facts.account.as_ref().map(|account| account.caller.clone());
    statement.protocol = "postgresql";
    statement.has_time_of_transaction = true;
    statement.asserted = Some(&write::assertions::Checks);
    statement.lock_timeout.set(lock_timeout);
    statement.build_bytes_max = facts.switches.build_bytes;
    let manners = Manners {
        operator_bytes_max: facts.switches.operator_bytes,
        has_helpers: facts.switches.has_helpers,
    };
    let result = under(&interrupt, slot.account.as_ref(), || {
        interrupt.check()?;
        statement.admit(false)?;
        let session = Current {
            id: slot.id,
            db: facts.database.as_str().into(),
            locks: database.advisory.clone(),
            channels: database.channels.clone(),
            interrupt: interrupt.clone(),
            lock_timeout: lock_timeout.into(),
            is_superuser: facts.settings.get("is_superuser").is_some_and(|on| on == "on"),
        };
        mannered(manners, || current::with(session, || work(&mut statement)))
    });
    if !is_of_block {
        database.advisory.end_transaction(slot.id);
    }
    slot.finish_operation();
    let took = started.elapsed();
    let metrics = &database.node.counters.metrics;
    metrics.count_latency(slot.id, kind.class(), took);
    metrics.count_work(slot.id, &statement.figures.borrow());
    if database.profiler.concerns(took) {
        let ending = Ending {
            response_bytes: None,
            error: result.as_ref().err(),
        };
        let ns = format!("{}.$cmd.sql", facts.database);
        afterwards(|| {
            Observed::of_language(&statement, ns, shown.as_raw().as_doc().to_document(), took)
                .record(database, slot, ending);
        });
    }
    result
}
