//! Transaction blocks: BEGIN to COMMIT, on the transactions that commands have.
//!
//! A block is a transaction of a logical session that belongs to the connection; it begins with the first statement that needs one. After an
//! error the transaction is kept only if there is a savepoint to go back to. `read committed`, the default, reads the newest state with each
//! statement and waits for transactions that stand in its way; `repeatable read` reads the state of the first statement, and `serializable` is
//! validated at the commit; both end in 40001 on a conflict.

use super::Session;
use super::acting::{AUTHORIZATION, ROLE};
use super::attended::{Work, attend, once};
use super::channels::Act;
use super::sink::Sink;
use crate::ddl::temporary;
use crate::error::{Field, error, fail, with};
use crate::notices;
use crate::parse::own::PREPARE_TRANSACTION;
use crate::run::deferred::Waiting;
use crate::run::tables::SessionFacts;
use crate::settings::isolation::Isolation;
use crate::settings::{self, steering};
use crate::write::deferred;
use nestor_database::Database;
use nestor_database::concern::read::{Level, ReadConcern};
use nestor_database::observe::op_kind::OpKind;
use nestor_database::session_id::{Lsid, Owner};
use nestor_database::sessions::transaction::State;
use nestor_database::statement::{Statement, transaction};
use nestor_database::terms::Terms;
use nestor_database::uuid::Uuid;
use nestor_model::{ErrorCode, Namespace, Result};
use nestor_storage::View;
use sqlparser::ast::{ObjectName, TransactionAccessMode, TransactionMode};
use std::collections::BTreeMap;

/// A transaction block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// It has failed: only its end, or going back to a savepoint, is taken.
    pub(super) failed: bool,
    /// It is that of the statements of one message, which nobody wrote down.
    pub(super) implicit: bool,
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    /// Its modes, or settings, were said, so that the settings may not show the modes that transactions begin with.
    has_modes: bool,
    /// The number of its transaction, once there is one.
    number: Option<i64>,
    /// The transaction is there.
    is_open: bool,
    pub(super) savepoints: Vec<String>,
    /// Settings that were changed: behind how many savepoints, the name, and the value before.
    undo: Vec<(usize, String, Option<String>)>,
    /// Settings that have a value only until its end, with those that they have afterwards.
    local: BTreeMap<String, Option<String>>,
    /// What is to be said and heard when it commits: behind how many savepoints, and what.
    pub(super) said: Vec<(usize, Act)>,
    /// The memory that this takes, in bytes.
    pub(super) said_bytes: usize,
}

impl Session {
    /// Whether a statement that runs blocks may end its transaction: nothing else is in it, and nothing will be.
    pub(super) fn may_end(&self, sink: &Sink<'_, '_>) -> bool {
        match &self.block {
            None => true,
            // What else stands in one message belongs together.
            Some(block) => block.implicit && block.number.is_none() && !sink.describes,
        }
    }

    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    pub(super) fn set_default_modes(&mut self, modes: &[TransactionMode]) -> Result<()> {
        for mode in modes {
            let (name, value) = match mode {
                TransactionMode::IsolationLevel(level) => {
                    ("default_transaction_isolation", Isolation::of(*level)?.name())
                }
                TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => ("default_transaction_read_only", "on"),
                TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {
                    ("default_transaction_read_only", "off")
                }
            };
            settings::set(&mut self.facts.settings, name, Some(value))?;
        }
        self.settings_changed();
        Ok(())
    }

    /// A block as the settings want it.
    pub(super) fn new_block(&self, implicit: bool) -> Block {
        let setting = |name: &str| self.facts.settings.get(name).map_or("", String::as_str);
        let isolation = Isolation::of_name(setting("default_transaction_isolation"));
        Block {
            failed: false,
            implicit,
            isolation: isolation.unwrap_or(Isolation::ReadCommitted),
            read_only: setting("default_transaction_read_only") == "on",
            has_modes: false,
            number: None,
            is_open: false,
            savepoints: Vec::new(),
            undo: Vec::new(),
            local: BTreeMap::new(),
            said: Vec::new(),
            said_bytes: 0,
        }
    }

    /// SET, and RESET without a value. A change goes with the transaction when that is rolled back.
    ///
    /// Errors: those of [`settings::set`].
    pub(super) fn change_setting(
        &mut self,
        database: &Database,
        name: &str,
        value: Option<&str>,
        is_local: bool,
    ) -> Result<()> {
        let name = name.replace('"', "").to_lowercase();
        // The modes of the transaction that is there go with it.
        let mode = value.map(|value| value.trim().to_lowercase());
        match (name.as_str(), mode.as_deref()) {
            ("transaction_isolation" | "transaction_read_only", None) => {
                return fail("0A000", format!("parameter \"{name}\" cannot be reset"));
            }
            ("transaction_isolation", Some(level)) => match Isolation::of_name(level) {
                Some(level) => return self.set_isolation(level),
                None => return settings::invalid(&name, level),
            },
            ("transaction_read_only", Some(on)) => match settings::switch(on) {
                Some(on) => return self.set_read_only(on),
                None => return settings::no_boolean(&name),
            },
            _ => {}
        }
        let whom = match name.as_str() {
            ROLE | AUTHORIZATION => {
                let value = value.or_else(|| self.facts.begun.get(&name).map(String::as_str));
                Some(self.asked_for(database, &name, value)?)
            }
            _ => None,
        };
        if name == AUTHORIZATION {
            self.change_setting(database, ROLE, None, is_local)?;
        }
        let before = self.facts.settings.get(&name).cloned();
        if is_local && self.block.is_none() {
            // It would end with this statement.
            if whom.is_some() {
                return Ok(());
            }
            return settings::change(&mut self.facts.settings.clone(), &self.facts.begun, &name, value);
        }
        match whom {
            Some(whom) => drop(self.facts.settings.insert(name.clone(), whom)),
            None => settings::change(&mut self.facts.settings, &self.facts.begun, &name, value)?,
        }
        self.settings_changed();
        if let Some(block) = &mut self.block {
            block.undo.push((block.savepoints.len(), name.clone(), before.clone()));
            match is_local {
                true => drop(block.local.entry(name).or_insert(before)),
                false => drop(block.local.remove(&name)),
            }
        }
        Ok(())
    }

    /// Gives all settings the values that sessions begin with, but for the client's rights and whom it acts as.
    pub(super) fn reset_settings(&mut self, database: &Database) {
        let names: Vec<String> = self.facts.settings.keys().cloned().collect();
        let is_reset = |name: &&String| !["is_superuser", ROLE, AUTHORIZATION].contains(&name.as_str());
        for name in names.iter().filter(is_reset) {
            // Each of them may have its first value.
            let _ = self.change_setting(database, name, None, false);
        }
    }

    fn restore(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) => drop(self.facts.settings.insert(name.to_owned(), value)),
            None => drop(self.facts.settings.remove(name)),
        }
        self.settings_changed();
    }

    /// Call it when settings have changed.
    pub fn settings_changed(&mut self) {
        self.tells = true;
        self.acts_anew();
        self.zone = settings::zone(&self.facts.settings);
        self.style = settings::style(&self.facts.settings);
        self.facts.switches = steering::switches(&self.facts.settings);
        if let Some(block) = &mut self.block {
            block.has_modes = true;
        }
        self.show_modes();
    }

    /// Has the settings show the modes of the transaction; outside of one those that the next one begins with.
    fn show_modes(&mut self) {
        let of_next = self.block.is_none().then(|| self.new_block(false));
        let Some(block) = self.block.as_ref().or(of_next.as_ref()) else {
            return;
        };
        let modes = [
            ("transaction_isolation", block.isolation.name()),
            ("transaction_read_only", settings::shown(block.read_only)),
        ];
        for (name, value) in modes {
            if let Some(shown) = self.facts.settings.get_mut(name).filter(|shown| *shown != value) {
                value.clone_into(shown);
            }
        }
    }

    /// BEGIN.
    pub(super) fn begin(&mut self, modes: &[TransactionMode]) -> Result<()> {
        if let Some(block) = &mut self.block {
            if !block.implicit {
                notices::warn("25001", "there is already a transaction in progress");
            }
            // What a message began without saying so is now the client's.
            block.implicit = false;
        } else {
            self.block = Some(self.new_block(false));
        }
        self.set_modes(modes)
    }

    /// Sets the modes of the block that is there.
    ///
    /// Errors: 25001 for a level once there are statements.
    pub(super) fn set_modes(&mut self, modes: &[TransactionMode]) -> Result<()> {
        if self.block.is_none() {
            notices::warn("25P01", "SET TRANSACTION can only be used in transaction blocks");
        }
        for mode in modes {
            match mode {
                TransactionMode::IsolationLevel(level) => self.set_isolation(Isolation::of(*level)?)?,
                TransactionMode::AccessMode(mode) => self.set_read_only(*mode == TransactionAccessMode::ReadOnly)?,
            }
        }
        Ok(())
    }

    /// Errors: 25001 once there are statements.
    fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.number.is_some() && isolation != block.isolation {
            return fail(
                "25001",
                "SET TRANSACTION ISOLATION LEVEL must be called before any query",
            );
        }
        (block.isolation, block.has_modes) = (isolation, true);
        self.show_modes();
        Ok(())
    }

    /// Errors: 25001 for writes once there are statements.
    fn set_read_only(&mut self, read_only: bool) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if block.read_only && !read_only && block.number.is_some() {
            return fail("25001", "transaction read-write mode must be set before any query");
        }
        (block.read_only, block.has_modes) = (read_only, true);
        self.show_modes();
        Ok(())
    }

    /// COMMIT; whether it rolled back, because the block had failed. With `chain` another one with the same modes begins.
    ///
    /// Errors: 40001, and others of the commit, after which the transaction is rolled back.
    pub(super) fn commit(&mut self, database: &Database, chain: bool) -> Result<bool> {
        self.check_chain(chain)?;
        let Some(block) = self.block.clone() else {
            return Ok(false);
        };
        if block.failed {
            self.roll_back(database, chain)?;
            return Ok(true);
        }
        let acts = self.facts.deferred.is_any() || self.facts.temporary.acts_at_commit();
        let settled = match block.is_open && acts {
            true => self.in_transaction(database, "COMMIT", OpKind::Command, |statement, facts| {
                deferred::settle(statement, facts, &|_| true)?;
                temporary::at_commit(statement, facts)?;
                // Rows of temporary tables may have been keys.
                deferred::settle(statement, facts, &|_| true)
            }),
            false => Ok(()),
        };
        if let Err(error) = settled {
            self.roll_back(database, chain)?;
            return Err(error);
        }
        let result = match block.is_open {
            false => Ok(()),
            true => self.in_transaction(database, "COMMIT", OpKind::EndTransaction, |statement, facts| {
                let txn = statement.txn.borrow_mut().take();
                let Some(txn) = txn else {
                    return fail("25P01", "the transaction is gone");
                };
                let last = transaction::commit(statement, txn)?;
                facts.wait(statement, last.map(|(lsn, _)| lsn))?;
                statement.effects.transaction = Some(State::Committed(last));
                Ok(())
            }),
        };
        self.end_block(&block, chain && result.is_ok(), result.is_ok());
        database.advisory.end_transaction(self.slot.id);
        if result.is_ok() && !block.said.is_empty() {
            self.settle_said(database, block.said.into_iter().map(|(_, act)| act).collect())?;
        }
        result.map(|()| false).map_err(|told| match told.code() {
            ErrorCode::WriteConflict => error(
                "40001",
                "could not serialize access due to read/write dependencies among transactions",
            ),
            _ => told,
        })
    }

    /// ROLLBACK.
    pub(super) fn roll_back(&mut self, database: &Database, chain: bool) -> Result<()> {
        self.check_chain(chain)?;
        let Some(block) = self.block.clone() else { return Ok(()) };
        if block.is_open {
            // It may be gone already, for its age.
            let _ = self.in_transaction(database, "ROLLBACK", OpKind::EndTransaction, |statement, _| {
                drop(statement.txn.borrow_mut().take());
                statement.effects.transaction = Some(State::Aborted);
                Ok(())
            });
        }
        self.end_block(&block, chain, false);
        database.advisory.end_transaction(self.slot.id);
        Ok(())
    }

    /// Commit in two phases, as where no transaction may be prepared: PREPARE TRANSACTION takes its transaction back, and there is none to be
    /// ended by another session.
    ///
    /// Errors: 55000; 42704, and 25001 within a transaction.
    pub(super) fn two_phase(&mut self, database: &Database, verb: &str, identifier: &str) -> Result<String> {
        let block = self.block.as_ref().filter(|block| !block.implicit);
        if verb != PREPARE_TRANSACTION {
            return match block {
                Some(_) => fail("25001", format!("{verb} cannot run inside a transaction block")),
                None => fail(
                    "42704",
                    format!("prepared transaction with identifier \"{identifier}\" does not exist"),
                ),
            };
        }
        let Some(failed) = block.map(|block| block.failed) else {
            notices::warn("25P01", "there is no transaction in progress");
            return Ok("ROLLBACK".to_owned());
        };
        self.roll_back(database, false)?;
        if failed {
            return Ok("ROLLBACK".to_owned());
        }
        let refused = error("55000", "prepared transactions are disabled");
        let hint = "Set max_prepared_transactions to a nonzero value.";
        Err(with(refused, &[(Field::Hint, hint)]))
    }

    fn check_chain(&self, chain: bool) -> Result<()> {
        match chain && self.block.as_ref().is_none_or(|block| block.implicit) {
            true => fail("25P01", "COMMIT AND CHAIN can only be used in transaction blocks"),
            false => Ok(()),
        }
    }

    fn end_block(&mut self, block: &Block, chain: bool, committed: bool) {
        self.facts.deferred.clear();
        self.end_portals(committed);
        match committed {
            true => {
                for (name, value) in &block.local {
                    self.restore(name, value.clone());
                }
            }
            false => {
                for (_, name, value) in block.undo.iter().rev() {
                    self.restore(name, value.clone());
                }
            }
        }
        self.block = chain.then(|| Block {
            isolation: block.isolation,
            read_only: block.read_only,
            has_modes: block.has_modes,
            ..self.new_block(false)
        });
        if block.has_modes {
            self.show_modes();
        }
    }

    /// SAVEPOINT.
    pub(super) fn set_savepoint(&mut self, database: &Database, name: &str) -> Result<()> {
        self.check_explicit("SAVEPOINT")?;
        self.savepoint_here(database, name)
    }

    /// The same, whoever began the block.
    pub(super) fn savepoint_here(&mut self, database: &Database, name: &str) -> Result<()> {
        self.in_transaction(database, "SAVEPOINT", OpKind::Command, |statement, _| {
            if let Some(txn) = statement.txn.borrow_mut().as_mut() {
                txn.set_savepoint(name);
            }
            Ok(())
        })?;
        self.facts.deferred.set_savepoint();
        if let Some(block) = &mut self.block {
            block.savepoints.push(name.to_owned());
        }
        Ok(())
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(super) fn roll_back_to(&mut self, database: &Database, name: &str) -> Result<()> {
        self.check_explicit("ROLLBACK TO SAVEPOINT")?;
        self.roll_back_here(database, name)
    }

    /// The same, whoever began the block.
    pub(super) fn roll_back_here(&mut self, database: &Database, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        self.in_transaction(database, "ROLLBACK TO", OpKind::Command, |statement, _| {
            if let Some(txn) = statement.txn.borrow_mut().as_mut() {
                txn.roll_back_to(name);
            }
            Ok(())
        })?;
        self.facts.deferred.roll_back_to(at);
        if let Some(block) = &mut self.block {
            block.savepoints.truncate(at + 1);
            block.failed = false;
            block.said.retain(|(depth, _)| *depth <= at);
            let undone = block.undo.iter().position(|(depth, ..)| *depth > at);
            let undone = undone.map_or_else(Vec::new, |first| block.undo.split_off(first));
            for (_, name, value) in undone.into_iter().rev() {
                self.restore(&name, value);
            }
        }
        Ok(())
    }

    /// RELEASE SAVEPOINT.
    pub(super) fn release(&mut self, database: &Database, name: &str) -> Result<()> {
        self.check_explicit("RELEASE SAVEPOINT")?;
        self.release_here(database, name)
    }

    /// The same, whoever began the block.
    pub(super) fn release_here(&mut self, database: &Database, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        self.in_transaction(database, "RELEASE", OpKind::Command, |statement, _| {
            if let Some(txn) = statement.txn.borrow_mut().as_mut() {
                txn.release_savepoint(name);
            }
            Ok(())
        })?;
        self.facts.deferred.release(at);
        if let Some(block) = &mut self.block {
            block.savepoints.truncate(at);
            // It stands and falls with what is around it from now on.
            let depths = block.undo.iter_mut().map(|(depth, ..)| depth);
            let depths = depths.chain(block.said.iter_mut().map(|(depth, _)| depth));
            depths.for_each(|depth| *depth = (*depth).min(at));
        }
        Ok(())
    }

    /// SET CONSTRAINTS: those of the names, or all, wait for the end of the transaction or are looked at from now on; what of them waits
    /// already is looked at then.
    ///
    /// Errors: 42704, 42809; 23503 for keys that are not whole.
    pub(super) fn set_constraints(
        &mut self,
        database: &Database,
        text: &str,
        (names, waits): (Option<&[ObjectName]>, bool),
    ) -> Result<()> {
        let in_block = self.block.is_some();
        if !in_block {
            notices::warn("25P01", "SET CONSTRAINTS can only be used in transaction blocks");
        }
        self.statement(database, text, OpKind::Command, |statement, facts| {
            let which = names
                .map(|names| deferred::named(statement, facts, names, waits))
                .transpose()?;
            if in_block {
                facts.deferred.choose(which.clone(), waits);
            }
            let is_due = |waiting: &Waiting| {
                let is_named =
                    |(table, name): &(Namespace, String)| *table == waiting.table && *name == waiting.constraint;
                which.as_ref().is_none_or(|which| which.iter().any(is_named))
            };
            match waits {
                true => Ok(()),
                false => deferred::settle(statement, facts, &is_due),
            }
        })
    }

    fn check_explicit(&self, what: &str) -> Result<()> {
        match &self.block {
            Some(block) if !block.implicit => Ok(()),
            _ => fail("25P01", format!("{what} can only be used in transaction blocks")),
        }
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let names = self.block.as_ref().map_or(&[][..], |block| &block.savepoints);
        let at = names.iter().rposition(|own| own == name);
        at.ok_or_else(|| error("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    /// Runs `work` as a statement of the block's transaction, which begins if it is the first. Gives what `work` gave.
    pub(super) fn in_transaction<T>(
        &mut self,
        database: &Database,
        text: &str,
        kind: OpKind,
        work: impl FnOnce(&mut Statement<'_>, &SessionFacts) -> Result<T>,
    ) -> Result<T> {
        once(work, |work| self.within_block(database, text, kind, work))
    }

    /// As [`in_transaction`](Self::in_transaction), compiled once for all that is done so.
    pub(super) fn within_block(&mut self, database: &Database, text: &str, kind: OpKind, work: Work<'_>) -> Result<()> {
        let owner = self
            .login
            .as_ref()
            .map_or(Owner::NOBODY, |login| Owner::of(&login.account.name));
        let lsid = *self.lsid.get_or_insert_with(|| Lsid {
            id: Uuid(database.new_uuid()),
            owner,
        });
        let Some(block) = &mut self.block else {
            return fail("25P01", "there is no transaction in progress");
        };
        let begins = block.number.is_none();
        let number = *block.number.get_or_insert(self.transactions);
        self.transactions += i64::from(begins);
        let facts = &self.facts;
        let terms = Terms {
            db: &facts.database,
            lsid: Some(lsid),
            txn_number: Some(number),
            start_transaction: begins,
            in_transaction: true,
            ends_transaction: kind == OpKind::EndTransaction,
            is_read_committed: block.isolation.is_read_committed(),
            read_concern: ReadConcern {
                level: (block.isolation == Isolation::Serializable).then_some(Level::Serializable),
                ..ReadConcern::default()
            },
            ..Terms::default()
        };
        let keeps = !block.savepoints.is_empty();
        let named = self.named.of(text);
        let (mut lives, mut result) = (false, Ok(()));
        let ran = attend((&self.slot, facts), database, text, (terms, kind), |statement| {
            let uses = |statement: &&mut Statement<'_>, view: &dyn View| named.collections(view, statement.db());
            let mut statement = statement;
            transaction::run_anywhere(&mut statement, false, uses, |statement| {
                statement.refresh();
                result = work(statement, facts);
                // Without a savepoint nobody can go back behind an error.
                statement.effects.abort = result.is_err() && !keeps;
                lives = !statement.effects.abort && statement.effects.transaction.is_none();
                Ok(())
            })
        });
        block.is_open = lives;
        ran.map_err(|told| match told.code() {
            ErrorCode::NoSuchTransaction if !begins => error(
                "25P03",
                "the transaction was ended, as it was open for longer than transactionLifetimeLimitSeconds allows",
            ),
            _ => told,
        })?;
        result
    }

    /// Forgets the connection's transaction and its temporary tables. Call it when the connection ends.
    pub fn end(&mut self, database: &Database) {
        self.listen_no_more(database);
        self.block = None;
        database.advisory.end_session(self.slot.id);
        if let Some(lsid) = self.lsid.take() {
            database.sessions.end(&lsid);
        }
        temporary::end(database, &self.slot, &self.facts);
    }
}
